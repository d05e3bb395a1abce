"""OpenAI's Completions: reads a prompt into an Ask, and writes events as chunks.

The text is passed through: no template writes the prompt, no parser reads the answer.

Source: https://platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from unrender.gateway.ask import Ask
from unrender.gateway.failure import Failure
from unrender.gateway.fields import Fields, wrong
from unrender.gateway.surfaces.chat import DONE, frame, read_sampling, refusal
from unrender.gateway.surfaces.surface import Api, Head, Outcome
from unrender.limits import MOST_CHOICES, MOST_COMPLETION_LOGPROBS, MOST_STOPS, MOST_TOKENS
from unrender.machine.events import ContentText, Event
from unrender.parser.completions import Usage, finish_reason


def read(body: Any) -> Ask:
    """Read a request. Raises `Failure` that names the wrong field."""
    fields = Fields.of(body)
    options = fields.inside("stream_options")
    prompt = _prompt(fields.any("prompt"))
    echoes = fields.flag("echo")
    fields.without_effect(best_of=1, logit_bias={}, suffix="")
    return Ask(
        model=fields.text("model") or "",
        raw=prompt,
        stream=fields.flag("stream"),
        include_usage=options.flag("include_usage"),
        choices=fields.integer("n", 1, MOST_CHOICES) or 1,
        stop=fields.texts("stop", MOST_STOPS),
        limit=fields.integer("max_tokens", 1, MOST_TOKENS),
        sampling=read_sampling(fields),
        seed=fields.integer("seed", -(2**63), 2**63),
        logprobs=fields.integer("logprobs", 0, MOST_COMPLETION_LOGPROBS),
        unheeded=(*options.left(), *fields.left()),
        echo={"prompt": prompt if echoes else ""},
    )


def _prompt(prompt: Any) -> str:
    """Return the one text that a prompt is."""
    given = prompt[0] if isinstance(prompt, list) and len(prompt) == 1 else prompt
    if not isinstance(given, str):
        raise wrong("prompt", "one text, not tokens or several texts", prompt)
    return given


class CompletionsSurface:
    """The chunks of one answer, and the completion that they add up to."""

    def __init__(self, ask: Ask, head: Head) -> None:
        self._ask = ask
        self._head = head
        self._texts: dict[int, list[str]] = {}
        self._logprobs: dict[int, list[Mapping[str, Any]]] = {}
        self._reasons: dict[int, str] = {}
        self._usage: Usage | None = None

    def begin(self) -> bytes:
        """Return the prompt of each choice, if the request asked to repeat it, and the warnings."""
        prompt = self._ask.echo["prompt"]
        self._texts = {index: [prompt] for index in range(self._ask.choices)}
        if not prompt and not self._head.warnings:
            return b""
        first, *others = (self._choice(index, prompt) for index in range(self._ask.choices))
        warnings = {"warnings": list(self._head.warnings)} if self._head.warnings else {}
        chunks = [self._chunk(first) | warnings, *map(self._chunk, others if prompt else ())]
        return b"".join(map(frame, chunks))

    def frames(self, index: int, events: Sequence[Event], logprobs: Sequence[Mapping[str, Any]] = ()) -> bytes:
        """Return a chunk with the text of the events."""
        text = "".join(event.text for event in events if isinstance(event, ContentText))
        if not text:
            return b""
        self._texts[index].append(text)
        self._logprobs.setdefault(index, []).extend(logprobs)
        return frame(self._chunk(self._choice(index, text, logprobs)))

    def end(self, index: int, outcome: Outcome) -> bytes:
        """Return the chunk with the finish reason."""
        reason = self._reasons[index] = finish_reason(outcome.message, outcome.reason)
        return frame(self._chunk(self._choice(index, "", reason=reason)))

    def finish(self, usage: Usage) -> bytes:
        """Return the usage, if the request asked for it, and the end of the stream."""
        self._usage = usage
        return (frame(self._body([]) | {"usage": _cost(usage)}) if self._ask.include_usage else b"") + DONE

    def body(self) -> dict[str, Any]:
        """Return the `text_completion`."""
        choices = [
            self._choice(index, "".join(texts), self._logprobs.get(index, ()), self._reasons[index])
            for index, texts in self._texts.items()
        ]
        warnings = {"warnings": list(self._head.warnings)} if self._head.warnings else {}
        return self._body(choices) | {"usage": self._usage and _cost(self._usage)} | warnings

    def _choice(
        self, index: int, text: str, logprobs: Sequence[Mapping[str, Any]] = (), reason: str | None = None
    ) -> dict[str, Any]:
        told = None if self._ask.logprobs is None else _legacy(logprobs)
        return {"index": index, "text": text, "logprobs": told, "finish_reason": reason}

    def _chunk(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        return self._body([choice])

    def _body(self, choices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        head = self._head
        return {
            "id": head.id,
            "object": "text_completion",
            "created": head.created,
            "model": head.model,
            "choices": choices,
        }

    def failed(self, failure: Failure) -> bytes:
        """Return the error in place of a chunk, and the end of the stream."""
        return frame(refusal(failure)) + DONE

    def ping(self) -> bytes:
        """Return a comment, which clients ignore."""
        return b": ping\n\n"


def _cost(usage: Usage) -> dict[str, Any]:
    return {name: value for name, value in usage.to_openai().items() if name != "completion_tokens_details"}


def _legacy(tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return log probabilities in the form of this API."""
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [
            {other["token"]: other["logprob"] for other in token.get("top_logprobs") or ()} for token in tokens
        ],
        "text_offset": _offsets(tokens),
    }


def _offsets(tokens: Sequence[Mapping[str, Any]]) -> list[int]:
    offsets, at = [], 0
    for token in tokens:
        offsets.append(at)
        at += len(token["token"])
    return offsets


def _new_id() -> str:
    return f"cmpl-{secrets.token_hex(12)}"


COMPLETIONS = Api("completions", read, CompletionsSurface, refusal, _new_id)
