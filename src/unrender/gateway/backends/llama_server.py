"""Client for llama.cpp's server (`/completion`), with lazy GBNF grammars and the engine's own template.

Ollama's `/api/generate` uses the same sampling parameters, but doesn't support grammars. So answers from Ollama are only validated when
they are complete.

`start` runs a server in this process: llama.cpp's own server code (`xllamacpp`) on a loopback port.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from unrender import TemplateError
from unrender.gateway.backends import IMAGE, SAMPLING, EngineCapabilities, EngineError, Job, OutputPiece, free_cores
from unrender.gateway.backends.connection import Connection, EngineObject, HttpEngine, list_in, parsed, scored_items
from unrender.gateway.failure import invalid
from unrender.openai import Usage
from unrender.rendering.loading import LoadedTemplates
from unrender.version import install_command

LLAMA_SAMPLING: Mapping[str, tuple[str, float]] = {
    "temperature": ("temperature", 1.0),
    "top_p": ("top_p", 1.0),
    "top_k": ("top_k", 0),
    "min_p": ("min_p", 0.0),
    "presence_penalty": ("presence_penalty", 0.0),
    "frequency_penalty": ("frequency_penalty", 0.0),
    "repetition_penalty": ("repeat_penalty", 1.0),
}
"""The engine's name and the neutral value of each sampling parameter, by common name. The values are always sent, since the engine's
defaults differ from OpenAI's.
"""
_TRIGGERS = {"word": 1, "pattern": 2}
_FINISHED = {"eos": "stop", "word": "stop", "limit": "length"}
SLOTS = 4
"""Number of answers that a server in this process generates in parallel. Further requests wait."""
_MAGIC = b"GGUF"
"""First bytes of a file with weights."""
_ERRORS = 1
"""Log level of llama.cpp in this process."""


def llama_sampling(asked: Mapping[str, float]) -> dict[str, float]:
    """Return all sampling parameters with the engine's names."""
    return {theirs: asked.get(ours, neutral) for ours, (theirs, neutral) in LLAMA_SAMPLING.items()}


class LlamaServer(HttpEngine):
    """Client for a llama-server. `process` keeps a server in this process alive."""

    path = "/completion"
    sign = "/props"
    capabilities = EngineCapabilities(
        dialect="gbnf",
        lazy=True,
        logprobs=True,
        token_ids=True,
        takes_ids="text",
        sampling=SAMPLING,
        images="marked",
    )

    strips_stop = True
    _bos: str | None = None
    """BOS token that the engine adds to every prompt; None before the first request."""

    def __init__(self, connection: Connection, *, model: str = "", process: Any = None) -> None:
        super().__init__(connection, model=model)
        self._process = process

    def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Return the engine's output. If the client wants token ids, a prompt reuses the exact ids that were sampled before."""
        generate = super().generate
        return self._prompt_ids.generated(job, generate) if job.wants_ids else generate(job)

    async def templates(self) -> LoadedTemplates:
        """Return the chat template of the loaded model. Raises `EngineError` or `TemplateError`."""
        props = await self._query("/props")
        source, with_tools = props.text("chat_template"), props.text("chat_template_tool_use")
        if not source:
            raise TemplateError(f"{self._connection.url}/props: the engine has no chat template; name one with --model")
        sources = {"default": source, **({"tool_use": with_tools} if with_tools else {})}
        bos, eos = props.text("bos_token"), props.text("eos_token")
        return LoadedTemplates(sources=sources, bos_token=bos, eos_token=eos, origin=self._connection.url)

    async def rendered(self, request: Mapping[str, Any]) -> str | None:
        """Return the engine's own prompt. Old servers can't show it."""
        try:
            return (await self._query("/apply-template", request)).text("prompt") or None
        except EngineError as error:
            if error.status not in (404, 501):
                raise
            return None

    async def context(self) -> int | None:
        """Return the context size of one slot."""
        return (await self._query("/props")).number("default_generation_settings", "n_ctx") or None

    def _pieces(self, data: EngineObject, top: int | None) -> list[OutputPiece]:
        text = data.text("content")
        logprobs = () if top is None else tuple(scored_items(list_in(data, "completion_probabilities"), top))
        if not data.get("stop"):
            ids = data.ids("tokens")
            tokens = int(bool(text)) if ids is None else len(ids)
            return [OutputPiece(text, tokens, None, None, logprobs, ids=tuple(ids or ()))]
        usage = Usage(
            prompt_tokens=data.number("tokens_evaluated"),
            completion_tokens=data.number("tokens_predicted"),
            cached_tokens=data.number("timings", "cache_n"),
        )
        return [OutputPiece(text, 0, _FINISHED.get(str(data.get("stop_type")), "stop"), usage, logprobs)]

    async def _prompt(self, prompt: str) -> str:
        """Return a prompt without the BOS token, which the engine adds itself."""
        if self._bos is None:
            # Find the BOS token by tokenizing an empty text: the result contains only this token, or nothing if the engine adds none.
            probe = {"content": "", "add_special": True, "with_pieces": True}
            tokens = (await self._query("/tokenize", probe)).get("tokens")
            first = tokens[0] if tokens and isinstance(tokens, list) else {"piece": ""}
            piece = first.get("piece") if isinstance(first, dict) else None
            # If a piece is only part of a character, the server returns a list of bytes. Old servers return only ids.
            self._bos = piece if isinstance(piece, str) else (await self._query("/props")).text("bos_token")
        return prompt.removeprefix(self._bos)

    async def count(self, text: str) -> int | None:
        """Return the engine's token count."""
        return len(await self._tokens_of(text))

    async def _tokenized(self, text: str, *, start: bool = False) -> EngineObject:
        content = await self._prompt(text) if start else text
        return await self._query("/tokenize", {"content": content, "add_special": start})

    async def _body(self, job: Job) -> dict[str, Any]:
        job = await self._prompt_ids.guarded(job)
        prompt: Any = await self._prompt(job.turn.prompt) if job.prompt_ids is None else job.prompt_ids
        if job.turn.media:
            # Use the server's own placeholder for images, a random text that is chosen at startup. Older servers use a fixed one.
            mark = (await self._query("/props")).text("media_marker") or "<__media__>"
            images = [medium.data.partition(",")[2] for medium in job.turn.media]
            prompt = {"prompt_string": prompt.replace(IMAGE, mark), "multimodal_data": images}
        body: dict[str, Any] = {
            "prompt": prompt,
            "stream": True,
            "n_predict": -1 if job.limit is None else job.limit,
            "stop": list(job.turn.stop),
            "preserved_tokens": list(job.turn.preserved_tokens),
            "cache_prompt": True,
            "return_tokens": True,
            **llama_sampling(job.sampling),
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


def start(path: str, *, context: int = 0, slots: int = SLOTS, threads: int = 0) -> tuple[str, Any]:
    """Load a model, and serve it on a loopback port. Return the loopback address, and an object that must be kept while the model is used.

    `context` is the number of tokens for all slots together; 0 uses the model's training length. `threads=0` leaves one core free. Raises
    `Failure` if the package or the file is missing, or if the file is not a model.
    """
    xllamacpp = llama_cpp()
    if not Path(path).is_file():
        raise invalid(f"path: {path}: no such file", param="path")
    with Path(path).open("rb") as file:
        if (found := file.read(len(_MAGIC))) != _MAGIC:  # llama.cpp would report this in ten lines
            said = f"path: {path}: expected a GGUF file, which starts with {_MAGIC!r}, found {found!r}"
            raise invalid(f"{said}; a template is `template` or --model", param="path")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context
    parameters.n_parallel = slots
    if threads := threads or free_cores():
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    parameters.verbosity = _ERRORS
    try:
        server = xllamacpp.Server(parameters)
    except Exception as error:
        raise invalid(f"path: {path}: {error}", param="path") from error
    return server.listening_address, server


def llama_cpp() -> Any:
    """Return the llama.cpp module. Raises `Failure` if it is not installed or can't be loaded."""
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        message = f"gguf: needs llama.cpp in this process ({error}): {install_command('gguf')}"
        raise invalid(message, param="backend") from None


class Ollama(HttpEngine):
    """Client for an Ollama server."""

    path = "/api/generate"
    health = sign = "/api/version"
    capabilities = EngineCapabilities(sampling=SAMPLING)

    def _event(self, line: bytes) -> EngineObject:
        return EngineObject(parsed(line, self._where) if line.strip() else {}, self._where)

    def _pieces(self, data: EngineObject, top: int | None) -> list[OutputPiece]:  # noqa: ARG002 - it returns no log probabilities
        text = data.text("response")
        if not data.get("done"):
            return [OutputPiece(text)]
        usage = Usage(prompt_tokens=data.number("prompt_eval_count"), completion_tokens=data.number("eval_count"))
        return [OutputPiece(text, 0, "length" if data.get("done_reason") == "length" else "stop", usage)]

    async def _body(self, job: Job) -> dict[str, Any]:
        options: dict[str, Any] = {
            **llama_sampling(job.sampling),
            "num_predict": -1 if job.limit is None else job.limit,
            "stop": list(job.turn.stop),
        }
        if job.seed is not None:
            options["seed"] = job.seed
        return {"model": self._model, "prompt": job.turn.prompt, "raw": True, "stream": True, "options": options}
