"""OpenAI's Completions: reads a prompt into an Ask, and writes events as chunks.

The text is passed through: no template writes the prompt, no parser reads the answer.

Source: https://platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema

from unrender import ContentText, Event, Usage, finish_reason
from unrender.gateway.failure import Failure
from unrender.gateway.schema import Whole, texts, wrong
from unrender.gateway.surfaces.ask import Ask
from unrender.gateway.surfaces.chat import DONE, frame, refusal
from unrender.gateway.surfaces.requests import Choices, Limit, Sampling, Seed, Stop, StreamOptions
from unrender.gateway.surfaces.surface import Api, Head, Outcome, Surface

_PROMPT = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1}]}


class CompletionsRequest(Sampling):
    """A request."""

    neutral: ClassVar = {"best_of": 1, "logit_bias": {}, "suffix": ""}

    prompt: Annotated[Any, WithJsonSchema(_PROMPT)]
    echo: bool | None = None
    stream_options: StreamOptions | None = None
    n: Choices | None = None
    stop: Stop | None = None
    max_tokens: Limit | None = None
    seed: Seed | None = None
    logprobs: Annotated[int, Field(ge=0, le=5), Whole] | None = None


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    request = CompletionsRequest.read(body)
    prompt = request.prompt[0] if isinstance(request.prompt, list) and len(request.prompt) == 1 else request.prompt
    if not isinstance(prompt, str):
        raise wrong("prompt", "one text, not tokens or several texts", request.prompt)
    return Ask(
        model=request.model or "",
        raw=prompt,
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        choices=request.n or 1,
        stop=texts(request.stop),
        limit=request.max_tokens,
        sampling=request.sampling,
        seed=request.seed,
        logprobs=request.logprobs,
        unheeded=tuple(request.unheeded()),
        echo={"prompt": prompt if request.echo else ""},
    )


class CompletionsSurface(Surface):
    """The chunks of one answer, and the completion that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        super().__init__(ask, head)
        self._texts: dict[int, list[str]] = {index: [ask.echo["prompt"]] for index in range(ask.choices)}
        self._logprobs: dict[int, list[Mapping[str, Any]]] = {}

    def begin(self) -> bytes:
        """Return the prompt of each choice, if the request asked to repeat it, and the warnings."""
        prompt, warnings = self._ask.echo["prompt"], self._warnings()
        if not prompt and not warnings:
            return b""
        first, *others = (self._body([self._choice(index, prompt)]) for index in self._texts)
        return b"".join(map(frame, [first | warnings, *(others if prompt else ())]))

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return a chunk with the text of the events."""
        # Nothing is parsed here, so all that comes is content.
        text = "".join(event.text for event in events if isinstance(event, ContentText))
        if not text:
            return b""
        self._texts[index].append(text)
        self._logprobs.setdefault(index, []).extend(logprobs)
        return frame(self._body([self._choice(index, text, logprobs)]))

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the chunk with the finish reason."""
        self._outcomes[index] = outcome
        return frame(self._body([self._choice(index, "", reason=finish_reason(outcome.message, outcome.reason))]))

    def finish(self, usage: Usage) -> bytes:
        """Return the usage, if the request asked for it, and the end of the stream."""
        self._usage = usage
        return (frame(self._body([]) | {"usage": _cost(usage)}) if self._ask.include_usage else b"") + DONE

    def body(self) -> dict[str, Any]:
        """Return the `text_completion`."""
        choices = []
        for index, parts in self._texts.items():
            outcome, logprobs = self._outcomes[index], self._logprobs.get(index, ())
            reason = finish_reason(outcome.message, outcome.reason)
            choices.append(self._choice(index, "".join(parts), logprobs, reason))
        return self._body(choices) | {"usage": self._usage and _cost(self._usage)} | self._warnings()

    def _choice(
        self, index: int, text: str, logprobs: Sequence[Mapping[str, Any]] = (), reason: str | None = None
    ) -> dict[str, Any]:
        told = None if self._ask.logprobs is None else _legacy(logprobs)
        return {"index": index, "text": text, "logprobs": told, "finish_reason": reason}

    def _body(self, choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        head = self._head
        told = {"id": head.id, "object": "text_completion", "created": head.created, "model": head.model}
        return told | {"choices": choices}

    def failed(self, failure: Failure) -> bytes:
        """Return the error in place of a chunk, and the end of the stream."""
        return frame(refusal(failure)) + DONE


def _cost(usage: Usage) -> dict[str, Any]:
    return {name: value for name, value in usage.to_openai().items() if name != "completion_tokens_details"}


def _legacy(tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return log probabilities in the form of this API."""
    texts = [token["token"] for token in tokens]
    others = [token.get("top_logprobs") or () for token in tokens]
    return {
        "tokens": texts,
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [{other["token"]: other["logprob"] for other in beside} for beside in others],
        "text_offset": list(accumulate(map(len, texts[:-1]), initial=0)) if texts else [],
    }


def _new_id() -> str:
    return f"cmpl-{secrets.token_hex(12)}"


COMPLETIONS = Api("completions", CompletionsRequest, read, CompletionsSurface, refusal, _new_id)
