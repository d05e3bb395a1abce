"""Client for SGLang's `/generate`, with structural tags. By default, the server sends the complete text again with every token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unrender.gateway.backends import SAMPLING, EngineCapabilities, EngineError, Job, OutputPiece
from unrender.gateway.backends.connection import SHOWN, EngineObject, HttpEngine, list_in, score
from unrender.openai import Usage

_HALF = "\ufffd"
"""Replacement character for an incomplete character at the end of a text."""


class SGLang(HttpEngine):
    """Client for an SGLang server."""

    path = "/generate"
    sign = "/get_server_info"
    capabilities = EngineCapabilities(
        dialect="structural_tag", logprobs=True, sampling=SAMPLING, images="shown", takes_ids="text"
    )

    _incremental: bool | None = None
    """True if each frame contains only new text; None before the first request."""

    def _reader(self, job: Job) -> Callable[[EngineObject], list[OutputPiece]]:
        return _Answer(job.logprobs, self._where, cumulative=not self._incremental).read

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

    async def _tokenized(self, text: str, *, start: bool = False) -> EngineObject:
        # As in prompts that are sent as text, the engine adds its BOS token to the start of a prompt.
        return await self._query("/tokenize", {"prompt": text, "add_special_tokens": start})


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


class _Answer:
    """Reads the frames of one answer. If the server is `cumulative`, each frame contains the complete answer so far, with all log
    probabilities: "It", then "It rains", of which only " rains" is new.
    """

    def __init__(self, top: int | None, where: str, *, cumulative: bool) -> None:
        self._top, self._where, self._cumulative = top, where, cumulative
        self._tokens = self._length = self._scores = 0

    def read(self, data: EngineObject) -> list[OutputPiece]:
        """Return the new piece in a frame. Raises `EngineError` if the answer was aborted."""
        meta, text = EngineObject(data.get("meta_info") or {}, "meta_info"), data.text("text")
        reason = meta.get("finish_reason")
        finish = reason.get("type") if isinstance(reason, dict) else reason
        if self._cumulative:
            # Hold back an incomplete character at the end.
            end = max(len(text) if finish is not None else len(text.rstrip(_HALF)), self._length)
            text, self._length = text[self._length : end], end
        before, self._tokens = self._tokens, meta.number("completion_tokens")
        if finish in ("abort", "error"):
            why = EngineObject(reason if isinstance(reason, dict) else {}, self._where)
            said = why.text("message")[:SHOWN] or "the engine aborted the request"
            raise EngineError(said, where=self._where, status=why.number("status_code") or None)
        ended = None if finish is None else "length" if finish == "length" else "stop"
        usage = Usage(
            prompt_tokens=meta.number("prompt_tokens"),
            completion_tokens=self._tokens,
            cached_tokens=meta.number("cached_tokens"),
        )
        tokens = max(self._tokens - before, 0)
        return [OutputPiece(text, tokens, ended, usage if ended else None, self._new_scores(meta))]

    def _new_scores(self, meta: EngineObject) -> tuple[Mapping[str, Any], ...]:
        """Return the log probabilities that have not been returned yet."""
        if self._top is None:
            return ()
        values, others = list_in(meta, "output_token_logprobs"), list_in(meta, "output_top_logprobs")
        # After 2 of 3 values, only the third is new.
        start = self._scores if self._cumulative else 0
        self._scores = max(self._scores, len(values))
        found = []
        for at in range(start, len(values)):
            beside = others[at] if at < len(others) and isinstance(others[at], list) else []
            alternatives = [token for item in beside[: self._top] for token in _scored(item)]
            found += [token | {"top_logprobs": alternatives} for token in _scored(values[at])]
        return tuple(found)


def _scored(item: Any) -> list[dict[str, Any]]:
    """Return a token from SGLang's list of log probability, id and text. The result is empty for invalid data."""
    match item:
        case [value, _, text]:
            return score(text, value)
    return []
