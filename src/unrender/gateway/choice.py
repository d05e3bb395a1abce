"""Reads the pieces of one choice into events: parsing, stop texts, counting, and how it ended.

Rule: work per piece does not grow with what came before. Stop texts are looked for in the content alone; what could become
one is held back, at most as long as the longest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unrender.gateway.backends.backend import Piece
from unrender.gateway.surfaces.surface import Outcome
from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
    of_open_call,
)
from unrender.machine.policy import Policy
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.parser.completions import Usage
from unrender.parser.message import MessageFold
from unrender.parser.streaming import Parser
from unrender.turn import Turn
from unrender.values.finder import Finder

_OF_CALLS = (ToolCallStarted, ArgumentsText, ToolCallFinished)


class Choice:
    """One answer as it is generated."""

    __slots__ = (
        "_before",
        "_finder",
        "_fold",
        "_held",
        "_length",
        "_logprobs",
        "_reasoned",
        "_skipped",
        "_thinking",
        "_tokens",
        "broken",
        "finish_reason",
        "parser",
        "stopped_by",
        "usage",
    )  # fmt: skip

    def __init__(
        self, turn: Turn, stop: Sequence[str] = (), *, logprobs: bool = False, policy: Policy | None = None
    ) -> None:
        self.parser: Parser = turn.parser(policy=policy)
        self.broken: int = 0
        """How often something was met that the format does not allow."""
        self.finish_reason: str | None = None
        self.stopped_by: str = ""
        """The stop text that has ended the content; nothing more is wanted then."""
        self.usage: Usage | None = None
        """What the engine has counted."""
        self._finder = Finder(stop) if stop else None
        self._fold = MessageFold() if stop or turn.continued else None
        self._before: list[Event] = []
        """The events of a call that the prompt has begun and this answer goes on with."""
        self._skipped = 0
        """Calls that were there before."""
        if turn.continued:
            # What was there before does not belong to this answer, except a call that is still open: clients need its name.
            self._before = of_open_call(self.parser.feed(""))
            self._skipped = sum(call.status is not CallStatus.OPEN for call in self.parser.message.tool_calls)
        self._held = ""
        self._tokens = 0
        self._thinking = False
        self._reasoned: int | None = None
        """How many tokens were generated when reasoning ended; None before that."""
        self._length = 0
        self._logprobs: deque[tuple[int, Mapping[str, Any]]] | None = deque() if logprobs else None
        """Tokens that may be content, with the place in the output where each ends."""

    def feed(self, piece: Piece) -> list[Event]:
        """Take a piece; return the events that are final now."""
        text, tokens, finish, usage, logprobs, _ = piece
        if finish is not None:
            self.finish_reason = finish
        if usage is not None:
            self.usage = usage
        self._tokens += tokens
        if not text:
            return []
        if self._logprobs is not None:
            self._place(text, logprobs)
        return self._taken(self._own(self.parser.feed(text)), tokens)

    def finish(self) -> list[Event]:
        """End the answer; return the last events."""
        return [] if self.stopped_by else self._taken(self._own(self.parser.finish(self.finish_reason)), 0)

    @property
    def outcome(self) -> Outcome:
        """How the choice ended. Call it after `finish`."""
        message = self._fold.message if self._fold else self.parser.message
        reason = "stop" if self.stopped_by else self.finish_reason
        return Outcome(message=message, reason=reason, stopped_by=self.stopped_by)

    @property
    def counted(self) -> Usage:
        """The tokens of the choice, by the engine's count if it gives one."""
        completion = self.usage.completion_tokens if self.usage else self._tokens
        whole = completion if self._thinking else 0
        return Usage(
            prompt_tokens=self.usage.prompt_tokens if self.usage else 0,
            completion_tokens=completion,
            reasoning_tokens=min(self._reasoned, completion) if self._reasoned is not None else whole,
            cached_tokens=self.usage.cached_tokens if self.usage else None,
        )

    def content_logprobs(self) -> list[Mapping[str, Any]]:
        """Return the tokens of content that have become final since the last call."""
        settled, found = self.parser.settled, []
        if not self._logprobs or self._logprobs[0][0] > settled:
            return []
        spans = self.parser.spans
        ends = [span.end for span in spans]
        while self._logprobs and self._logprobs[0][0] <= settled:
            end, token = self._logprobs.popleft()
            if spans[bisect_left(ends, end)].role is Role.CONTENT:
                found.append(token)
        return found

    def _place(self, text: str, tokens: Sequence[Mapping[str, Any]]) -> None:
        """Note where each token ends; a token that holds only a part of a character ends with its piece."""
        assert self._logprobs is not None
        at, self._length = self._length, self._length + len(text)
        whole = sum(len(str(token["token"])) for token in tokens) == len(text)
        for token in tokens:
            at = at + len(str(token["token"])) if whole else self._length
            self._logprobs.append((at, token))

    def _own(self, events: list[Event]) -> list[Event]:
        """Return the events of this answer, its calls counted from 0."""
        if self._before:
            events, self._before = [*self._before, *events], []
        if not self._skipped:
            return events
        return [
            replace(event, index=event.index - self._skipped) if isinstance(event, _OF_CALLS) else event
            for event in events
        ]

    def _taken(self, events: list[Event], tokens: int) -> list[Event]:
        if events and self._reasoned is None:
            self._count_reasoning(events, tokens)
        for event in events:
            if type(event) is Malformed:
                self.broken += 1
        if self._finder is not None:
            events = [] if self.stopped_by else list(self._up_to_stop(events, self._finder))
        if self._fold is not None:
            self._fold.add(events)
        return events

    def _count_reasoning(self, events: Sequence[Event], tokens: int) -> None:
        self._thinking = self._thinking or type(events[0]) is ReasoningText
        if not self._thinking:
            self._reasoned = 0
        elif type(events[-1]) is not ReasoningText:
            self._reasoned = self._tokens - tokens

    def _up_to_stop(self, events: Sequence[Event], finder: Finder) -> Iterator[Event]:
        for event in events:
            if isinstance(event, ContentText):
                text = self._held + event.text
                at, self.stopped_by = finder.decided(text, 0)
            elif isinstance(event, Malformed):
                yield event
                continue
            else:
                text = self._held
                at, self.stopped_by = finder.find(text, 0)
                at = at if self.stopped_by else len(text)
            self._held = text[at:]
            if at:
                yield ContentText(text[:at])
            if self.stopped_by:
                return
            if not isinstance(event, ContentText):
                yield event
