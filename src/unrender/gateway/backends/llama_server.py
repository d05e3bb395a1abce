"""Talks to llama.cpp's server, `/completion`: lazy GBNF grammars, and the engine's own template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrender import LoadedTemplates, TemplateError, TriggerKind, Usage
from unrender.gateway.backends.backend import EngineCapabilities, Job, Piece
from unrender.gateway.backends.connection import Connection, HttpEngine, Reader, event, number, objects, score, text_of

_SAMPLING = {
    "temperature": ("temperature", 1.0),
    "top_p": ("top_p", 1.0),
    "top_k": ("top_k", 0),
    "min_p": ("min_p", 0.0),
    "presence_penalty": ("presence_penalty", 0.0),
    "frequency_penalty": ("frequency_penalty", 0.0),
    "repetition_penalty": ("repeat_penalty", 1.0),
}
"""Common names → the engine's, with the value that changes nothing: the engine's own defaults are not OpenAI's."""
_TRIGGERS = {TriggerKind.WORD: 1, TriggerKind.PATTERN: 2}
_FINISHED = {"eos": "stop", "word": "stop", "limit": "length"}


class LlamaServer(HttpEngine):
    """A llama-server. `process` keeps a server in this process alive."""

    path = "/completion"

    def __init__(self, connection: Connection, *, process: Any = None) -> None:
        super().__init__(connection)
        self._process = process
        self._bos: str | None = None
        """The token that the engine writes before every prompt; None while nobody has asked."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """Grammars in GBNF, lazy ones included."""
        return EngineCapabilities(dialect="gbnf", lazy=True, logprobs=True, sampling=frozenset(_SAMPLING))

    async def templates(self) -> LoadedTemplates:
        """Return the chat template of the model that the engine has loaded. Raises `EngineError`, `TemplateError`."""
        where = f"{self._connection.url}/props"
        props = await self._query("GET", "/props")
        source = text_of(props, "chat_template", where)
        if not source:
            raise TemplateError(f"{where}: the engine has no chat template; name one with --model")
        with_tools = text_of(props, "chat_template_tool_use", where)
        sources = {"default": source, **({"tool_use": with_tools} if with_tools else {})}
        bos, eos = (text_of(props, name, where) for name in ("bos_token", "eos_token"))
        return LoadedTemplates(sources=sources, bos_token=bos, eos_token=eos, origin=self._connection.url)

    def _reader(self, job: Job) -> Reader:
        def read(line: bytes, more: bool) -> tuple[list[Piece], bool]:
            data = event(line, self._where)
            return ([self._piece(data, job.logprobs, more=more)], bool(data.get("stop"))) if data else ([], False)

        return read

    def _piece(self, data: Mapping[str, Any], top: int | None, *, more: bool) -> Piece:
        text = text_of(data, "content", self._where)
        logprobs = (
            ()
            if top is None
            else tuple(
                token
                for item in objects(data, "completion_probabilities", self._where)
                for token in _token(item, top, self._where)
            )
        )
        if not data.get("stop"):
            ids = data.get("tokens")
            return Piece(text, len(ids) if isinstance(ids, list) else int(bool(text)), None, None, logprobs, more)
        usage = Usage(
            prompt_tokens=number(data, "tokens_evaluated"),
            completion_tokens=number(data, "tokens_predicted"),
            cached_tokens=number(data, "timings", "cache_n"),
        )
        return Piece(text, 0, _FINISHED.get(str(data.get("stop_type")), "stop"), usage, logprobs)

    async def _prompt(self, prompt: str) -> str:
        """Return a prompt without the token that the engine writes before it anyway."""
        if self._bos is None:
            # The tokens of nothing, with special ones, are the first token alone, where the engine adds one.
            probe = {"content": "", "add_special": True, "with_pieces": True}
            tokens = (await self._query("POST", "/tokenize", probe)).get("tokens")
            first = tokens[0] if tokens and isinstance(tokens, list) else {}
            piece = first.get("piece") if isinstance(first, dict) else None
            if first != {} and not isinstance(piece, str):
                piece = text_of(await self._query("GET", "/props"), "bos_token", self._where)
            self._bos = piece or ""
        return prompt.removeprefix(self._bos)

    async def count(self, text: str) -> int | None:
        """Return the engine's own count."""
        tokens = (await self._query("POST", "/tokenize", {"content": text, "add_special": False})).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    async def _body(self, job: Job) -> dict[str, Any]:
        prompt = await self._prompt(job.turn.prompt)
        body: dict[str, Any] = {
            "prompt": prompt,
            "stream": True,
            "n_predict": -1 if job.limit is None else job.limit,
            "stop": list(job.turn.stop),
            "preserved_tokens": list(job.turn.preserved_tokens),
            "cache_prompt": True,
            "return_tokens": True,
            **{theirs: job.sampling.get(ours, neutral) for ours, (theirs, neutral) in _SAMPLING.items()},
        }
        if job.seed is not None:
            body["seed"] = job.seed % 2**32
        if job.logprobs is not None:
            body["n_probs"] = max(job.logprobs, 1)
        if job.grammar is not None:
            body["grammar"] = job.grammar.text
            if job.grammar.triggers:
                body["grammar_lazy"] = True
                body["grammar_triggers"] = [
                    {"type": _TRIGGERS[trigger.kind], "value": trigger.value} for trigger in job.grammar.triggers
                ]
        return body


def _token(item: Mapping[str, Any], top: int, where: str) -> list[dict[str, Any]]:
    others = objects(item, "top_logprobs", where)[:top]
    return [token | {"top_logprobs": [one for other in others for one in _plain(other)]} for token in _plain(item)]


def _plain(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a token with its own bytes, which may be half a character."""
    own = item.get("bytes")
    known = isinstance(own, list) and all(type(byte) is int and 0 <= byte < 256 for byte in own)
    return [token | ({"bytes": own} if known else {}) for token in score(item.get("token"), item.get("logprob"))]
