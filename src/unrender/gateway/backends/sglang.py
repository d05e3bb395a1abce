"""Client for SGLang's `/generate`, with structural tags. By default, the server sends the complete text again with every token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrender.gateway.backends import EngineCapabilities, EngineError, Job, OutputPiece
from unrender.gateway.backends.connection import (
    SHOWN,
    Connection,
    EngineObject,
    HttpEngine,
    LineReader,
    event_data,
    rows_of,
    score,
)
from unrender.gateway.backends.prompt_ids import PromptIds
from unrender.openai import Usage

_SAMPLING = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"}
)
_HALF = "\ufffd"
"""Replacement character for an incomplete character at the end of a text."""


class SGLang(HttpEngine):
    """Client for an SGLang server."""

    path = "/generate"

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._prompt_ids = PromptIds(self._tokens_of, start=self._start_of)
        self._incremental: bool | None = None
        """True if each frame contains only new text; None before the first request."""

    @property
    def capabilities(self) -> EngineCapabilities:
        """Features of SGLang, including structural tags and log probabilities."""
        return EngineCapabilities(
            dialect="structural_tag", logprobs=True, sampling=_SAMPLING, images="shown", takes_ids="text"
        )

    def _reader(self, job: Job) -> LineReader:
        tokens = length = 0
        told = _Told(job.logprobs, cumulative=not self._incremental)

        def read(line: bytes) -> tuple[list[OutputPiece], bool]:
            nonlocal tokens, length
            data = event_data(line, self._where)
            if not data:
                return [], False
            meta, text = EngineObject(data.get("meta_info") or {}, "meta_info"), data.text("text")
            reason = meta.get("finish_reason")
            finish = reason.get("type") if isinstance(reason, dict) else reason
            # Without incremental output, frames contain the complete answer so far: "It", then "It rains", of which only " rains" is new.
            if not self._incremental:
                text, length = _new(text, length, last=finish is not None)
            before, tokens = tokens, meta.number("completion_tokens")
            if finish in ("abort", "error"):
                why = EngineObject(reason if isinstance(reason, dict) else {}, self._where)
                said = why.text("message")[:SHOWN] or "the engine aborted the request"
                raise EngineError(said, where=self._where, status=why.number("status_code") or None)
            ended = None if finish is None else "length" if finish == "length" else "stop"
            usage = Usage(
                prompt_tokens=meta.number("prompt_tokens"),
                completion_tokens=tokens,
                cached_tokens=meta.number("cached_tokens"),
            )
            piece = OutputPiece(text, max(tokens - before, 0), ended, usage if ended else None, told.new(meta))
            return [piece], ended is not None

        return read

    async def _body(self, job: Job) -> dict[str, Any]:
        if self._incremental is None:
            try:
                info = await self._connection.json("/get_server_info")
            except EngineError as error:
                if error.status is None:
                    raise
                info = {}
            self._incremental = isinstance(info, dict) and bool(info.get("incremental_streaming_output"))
        return request_body(await self._prompt_ids.guarded(job))

    async def context(self) -> int | None:
        """Return the context size in the server's settings."""
        info = await self._query("/get_server_info")
        return info.number("context_length") or info.number("max_req_input_len") or None

    async def count(self, text: str) -> int | None:
        """Return the engine's token count, or None if the engine is too old to count tokens."""
        try:
            return (await self._tokenized(text)).number("count")
        except EngineError as error:
            if error.status is None:
                raise
            return None

    async def _tokenized(self, text: str, *, bos: bool = False) -> EngineObject:
        return await self._query("/tokenize", {"prompt": text, "add_special_tokens": bos})

    async def _tokens_of(self, text: str) -> list[int]:
        return (await self._tokenized(text)).given_ids("tokens")

    async def _start_of(self, prompt: str) -> list[int]:
        """Return the ids of the start of a prompt. As in prompts that are sent as text, the engine adds its BOS token."""
        return (await self._tokenized(prompt, bos=True)).given_ids("tokens")


def request_body(job: Job) -> dict[str, Any]:
    """Return the body of a request to `/generate`."""
    parameters: dict[str, Any] = {
        "max_new_tokens": job.limit,  # the default is 128, while null allows the entire remaining context
        "stop": list(job.turn.stop),
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        **job.sampling,
    }
    if job.seed is not None:
        parameters["sampling_seed"] = job.seed
    if job.grammar is not None:
        parameters["structural_tag"] = job.grammar.text
    prompt = {"text": job.turn.prompt} if job.prompt_ids is None else {"input_ids": list(job.prompt_ids)}
    body = {**prompt, "sampling_params": parameters, "stream": True, "rid": job.request_id}
    if job.turn.media:
        body["image_data"] = [medium.data for medium in job.turn.media]
    if job.logprobs is not None:
        body |= {"return_logprob": True, "top_logprobs_num": job.logprobs, "return_text_in_logprobs": True}
    return body


class _Told:
    """Collects log probabilities, and returns each of them only once. A server that sends the complete text again also sends all log
    probabilities again.
    """

    def __init__(self, top: int | None, *, cumulative: bool) -> None:
        self._top = top
        self._cumulative = cumulative
        self._seen = 0

    def new(self, meta: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """Return the tokens that have not been returned yet."""
        if self._top is None:
            return ()
        values, others = rows_of(meta, "output_token_logprobs"), rows_of(meta, "output_top_logprobs")
        # Skip the values that have been seen: after 2 of 3, only the third is new.
        start = self._seen if self._cumulative else 0
        self._seen = max(self._seen, len(values))
        found = []
        for at in range(start, len(values)):
            beside = others[at] if at < len(others) and isinstance(others[at], list) else []
            alternatives = [token for item in beside[: self._top] for token in _scored(item)]
            found += [token | {"top_logprobs": alternatives} for token in _scored(values[at])]
        return tuple(found)


def _new(text: str, length: int, *, last: bool) -> tuple[str, int]:
    """Return the text after the first `length` characters, and the new length. An incomplete character at the end is held back."""
    end = len(text) if last else len(text.rstrip(_HALF))
    return (text[length:end], end) if end > length else ("", length)


def _scored(item: Any) -> list[dict[str, Any]]:
    """Return a token from SGLang's list of log probability, id and text. The result is empty for invalid data."""
    match item:
        case [value, _, text]:
            return score(text, value)
    return []
