"""Reads an output under other rules, and finds the call syntax that reads most of it: declared, common, or the template's own
without markers.

Strategy: each candidate replaces the template's own syntax, and the output is read again; what gives more whole calls than the
template's own reading is nearer, and among equals what leaves less text over.

Rules: nothing here is ever generated, and the nearest match wins, so the order does not matter. Common syntaxes are data:
`formats/markers/common.json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

from unrender.errors import FormatError
from unrender.format import CallSyntax, Format, Skeleton, Slot, ToolMode
from unrender.formats import common_calls, declared_formats
from unrender.machine.events import Event, Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Message, ToolCall
from unrender.nodes import Role
from unrender.parser.streaming import Span
from unrender.turn import Turn

SPOKEN = (Role.CONTENT, Role.MALFORMED)
"""The roles of text that the user sees: nothing of a call was read there."""
UNREAD = (*SPOKEN, Role.REASONING)
"""The same, and the role of reasoning, which the user does not see."""


@dataclass(frozen=True, kw_only=True)
class AnswerReading:
    """The reading of `output` as the answer to a prompt."""

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
        """The text that no call was read from, without the reasoning."""
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


# The nearest syntax.


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The call syntax, other than the template's, that reads most calls of the output."""

    name: str
    """A declared format's name, or an example of a common syntax."""
    why: str
    calls: tuple[str, ...]
    """The calls that it reads, as `name(arguments)`."""


def find_nearest(reading: AnswerReading) -> tuple[Nearest | None, AnswerReading]:
    """Return the syntax that reads more calls than the template's own, and the output as it reads it.

    None, and the same reading, when no syntax does, or when the template's own left no text unread.
    """
    nearest, best = None, reading
    if not reading.turn.request._calls_allowed or not reading.unread.strip():
        return nearest, best
    for name, why, syntax in _candidates():
        other = read_as(reading, syntax)
        # A syntax without markers, such as `name(key=value)`, also reads `the file (see below)`: it counts only with arguments.
        if other is None or (not syntax.openers and all(call.arguments_json == "{}" for call in other.whole_calls)):
            continue
        if len(other.whole_calls) > len(reading.whole_calls) and other.rank > best.rank:
            nearest, best = Nearest(name=name, why=why, calls=tuple(map(call_text, other.whole_calls))), other
    return nearest, best


def read_as(reading: AnswerReading, syntax: CallSyntax) -> AnswerReading | None:
    """Read the same output with only this call syntax; None when the format cannot have it."""
    try:
        format = replace(reading.turn.format, tools=syntax, tolerated=())
    except FormatError:
        return None
    return AnswerReading.of(replace(reading.turn, format=format), reading.output)


def without_markers(format: Format) -> Iterator[tuple[str, CallSyntax]]:
    """Yield the template's own syntax as engines and tokenizers damage it, each with words for what is missing."""
    tools = format.tools
    if tools.mode is ToolMode.NONE:
        return
    bare = _stripped(tools, format.preserved_tokens)
    if bare != tools:
        yield "without its special tokens", bare
    openers = (tools.section_start, tools.call_start)
    if any(text.strip() for text in openers):
        yield "without its openers", replace(tools, section_start="", call_start="")
        # What is left of `<tool_call>` may be `tool_call>`.
        beheaded = [text.strip()[1:] for text in openers]
        cut = replace(tools, section_start=beheaded[0], call_start=beheaded[1])
        yield "with the first character of its opener missing", cut


def call_text(call: ToolCall) -> str:
    """Return a call as a person would write it."""
    return f"{call.name}({call.arguments_json})"


@cache
def _candidates() -> tuple[tuple[str, str, CallSyntax], ...]:
    """Return the syntaxes to try, each after its name and the reason why it is known."""
    common = ((item.name, item) for item in common_calls())
    declared = ((f"the declared format {item.name!r}", item) for item in declared_formats())
    return tuple((name, item.why, tools) for name, item in (*common, *declared) for tools in item.format.syntaxes)


def _stripped(tools: CallSyntax, tokens: tuple[str, ...]) -> CallSyntax:
    """Return the syntax as it looks when `tokens` are taken out of the output."""

    def skeleton(parts: Skeleton) -> Skeleton:
        kept = (part if isinstance(part, Slot) else without(part, tokens) for part in parts)
        return tuple(part for part in kept if part)

    around = ("section_start", "section_end", "call_start", "call_end", "separator")
    markers: dict[str, Any] = {name: without(getattr(tools, name), tokens) for name in around}
    arguments: dict[str, Any] = {name: without(getattr(tools.arguments, name), tokens) for name in ("start", "end")}
    entry = replace(tools.arguments, **arguments, entry=skeleton(tools.arguments.entry))
    return replace(tools, **markers, function=skeleton(tools.function), arguments=entry)


def without(text: str, tokens: tuple[str, ...]) -> str:
    """Return a text with the tokens taken out of it."""
    for token in tokens:
        text = text.replace(token, "")
    return text
