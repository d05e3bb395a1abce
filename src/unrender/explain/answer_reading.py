"""Reads an output once under given rules: the unit that explanations compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from unrender.machine.events import Event, Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, ToolCall
from unrender.nodes import Role
from unrender.parser.streaming import Span
from unrender.turn import Turn

SPOKEN = (Role.CONTENT, Role.MALFORMED)
"""What a stretch of text is that the user sees, since no call, and no part of one, was read there."""
UNREAD = (*SPOKEN, Role.REASONING)
"""The same, with what the user does not see."""


@dataclass(frozen=True, kw_only=True)
class AnswerReading:
    """How `output` was read as the answer to a prompt."""

    turn: Turn
    output: str
    events: tuple[Event, ...]
    spans: tuple[Span, ...]
    message: Message

    @classmethod
    def of(cls, turn: Turn, output: str) -> Self:
        """Read a whole output as the answer to `turn`. No text raises an error."""
        parser = turn.parser(ids=numbered_id)
        events = (*parser.feed(output), *parser.finish())
        return cls(turn=turn, output=output, events=events, spans=parser.spans, message=parser.message)

    @cached_property
    def malformed(self) -> tuple[Malformed, ...]:
        """The parts of the output that the format does not allow, in the order of the text."""
        return tuple(event for event in self.events if isinstance(event, Malformed))

    @property
    def whole_calls(self) -> tuple[ToolCall, ...]:
        """The calls that were read to their end."""
        return self.message.tool_calls

    @cached_property
    def unread(self) -> str:
        """The text that no call was read from. All other text is white space in it, so that positions stay the same."""
        return self._only(UNREAD)

    @cached_property
    def spoken(self) -> str:
        """The text that no call was read from, and that is no reasoning."""
        return self._only(SPOKEN)

    @cached_property
    def thought(self) -> str:
        """The reasoning, as it was written."""
        return self._only((Role.REASONING,))

    def _only(self, roles: tuple[Role, ...]) -> str:
        pieces = []
        for span in self.spans:
            text = self.output[max(span.start, 0) : span.end]
            pieces.append(text if span.role in roles else " " * len(text))
        return "".join(pieces)

    @property
    def rank(self) -> tuple[int, int, int]:
        """A key for comparing readings, greater is better: more whole calls, less malformed, less text left over."""
        return len(self.whole_calls), -len(self.malformed), -len(self.unread.split())
