"""Finds the call syntax that matches an output best: declared, common, or the template's own without markers.

Strategy: the output is parsed with each candidate syntax instead of the template's own. The best candidate finds the most complete calls.
If several candidates find as many calls, the best one leaves the least text.

Rules: candidate syntaxes are parsed, but never generated. The order of the candidates doesn't matter. Common syntaxes are stored in
`formats/markers/common.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Self

from unrender.cache import kept
from unrender.errors import FormatError
from unrender.format import CallSyntax, Format, Skeleton, Slot, ToolMode
from unrender.format.declared import common_calls, declared_formats
from unrender.format.parts import text_of
from unrender.machine import Event, Malformed, numbered_id
from unrender.messages import Message, ToolCall
from unrender.nodes import Role
from unrender.parser.streaming import Span
from unrender.turn import Turn

SPOKEN = (Role.CONTENT, Role.MALFORMED)
"""Roles of text that the user sees, outside of calls."""
UNREAD = (*SPOKEN, Role.REASONING)
"""Roles of text outside of calls, including reasoning."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class AnswerReading:
    """The result of parsing `output` as the answer to a prompt."""

    turn: Turn
    output: str
    events: tuple[Event, ...]
    spans: tuple[Span, ...]
    message: Message

    @classmethod
    def of(cls, turn: Turn, output: str) -> Self:
        """Parse a complete output as the answer to `turn`. Never raises an error."""
        parser = turn.parser(ids=numbered_id)
        events = (*parser.feed(output), *parser.finish())
        return cls(turn=turn, output=output, events=events, spans=parser.spans, message=parser.message)

    @cached_property
    def malformed(self) -> tuple[Malformed, ...]:
        """The parts of the output that the format doesn't allow, in order."""
        return tuple(event for event in self.events if isinstance(event, Malformed))

    @property
    def whole_calls(self) -> tuple[ToolCall, ...]:
        """The complete calls."""
        return self.message.tool_calls

    @cached_property
    def unread(self) -> str:
        """The text outside of calls. The text of calls is replaced with spaces, so that positions remain valid."""
        return self._only(UNREAD)

    @cached_property
    def spoken(self) -> str:
        """The text outside of calls and reasoning."""
        return self._only(SPOKEN)

    @cached_property
    def thought(self) -> str:
        """The text of the reasoning."""
        return self._only((Role.REASONING,))

    def _only(self, roles: tuple[Role, ...]) -> str:
        pieces = []
        for span in self.spans:
            text = self.output[max(span.start, 0) : span.end]
            pieces.append(text if span.role in roles else " " * len(text))
        return "".join(pieces)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key of the result; higher is better. Better results have more complete calls, and less malformed or remaining text."""
        return len(self.whole_calls), -len(self.malformed), -len(self.unread.split())


# Search.


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The call syntax, other than the template's, that matches the most calls in the output."""

    name: str
    """Name of a declared format, or an example of a common syntax."""
    why: str
    calls: tuple[str, ...]
    """The calls found with this syntax, as `name(arguments)`."""


def find_nearest(reading: AnswerReading) -> tuple[Nearest | None, AnswerReading]:
    """Return the best syntax that finds more calls than the template's own, and the result of parsing with it.

    Returns None and the given result if no syntax finds more calls, or if there's no text outside of calls.
    """
    nearest, best = None, reading
    if not reading.turn.request._calls_allowed or not reading.unread.strip():
        return nearest, best
    for name, why, syntax in candidates_in(reading.output):
        other = read_as(reading, syntax)
        # A syntax without markers, such as `name(key=value)`, also matches `the file (see below)`. So such a syntax only counts if its
        # calls have arguments.
        if other is None or (not syntax.openers and all(call.arguments_json == "{}" for call in other.whole_calls)):
            continue
        if len(other.whole_calls) > len(reading.whole_calls) and other.rank > best.rank:
            nearest, best = Nearest(name=name, why=why, calls=tuple(map(call_text, other.whole_calls))), other
    return nearest, best


def read_as(reading: AnswerReading, syntax: CallSyntax) -> AnswerReading | None:
    """Parse the same output with only this call syntax. Returns None if the format can't use this syntax."""
    format = changed(reading.turn.format, tools=syntax, tolerated=())
    return AnswerReading.of(replace(reading.turn, format=format), reading.output) if format else None


@kept(2_000)
def changed(format: Format, **parts: Any) -> Format | None:
    """Return the format with other `parts`, or None if the result isn't a valid format."""
    try:
        return replace(format, **parts)
    except FormatError:
        return None


def best_syntaxes(reading: AnswerReading) -> list[CallSyntax]:
    """Return the syntaxes that parse most calls of an answer, and leave least of its text: a fence belongs to the call in it."""
    found = [
        (syntax, other.rank) for _, _, syntax in candidates_in(reading.output) if (other := read_as(reading, syntax))
    ]
    best = max((rank for _, rank in found), default=None)
    return [syntax for syntax, rank in found if rank == best]


def holds_call(turn: Turn, output: str) -> bool:
    """Return whether an answer has calls of offered tools if a common syntax is tolerated, with arguments that match the schema."""
    syntaxes = (replace(syntax, checked=True) for syntax in best_syntaxes(AnswerReading.of(turn, output)))
    formats = (changed(turn.format, tolerated=(*turn.format.tolerated, syntax)) for syntax in syntaxes)
    return any(AnswerReading.of(replace(turn, format=it), output).whole_calls for it in formats if it)


def without_markers(format: Format) -> Iterator[tuple[str, CallSyntax]]:
    """Yield damaged versions of the template's syntax with descriptions. Engines and tokenizers can damage output in these ways."""
    tools = format.tools
    if tools.mode is ToolMode.NONE:
        return
    bare = _stripped(tools, format.preserved_tokens)
    if bare != tools:
        yield "without its special tokens", bare
    openers = (tools.section_start, tools.call_start)
    if any(text.strip() for text in openers):
        yield "without its openers", replace(tools, section_start="", call_start="")
        # Also try markers without their first character, e.g. `tool_call>` instead of `<tool_call>`.
        beheaded = [text.strip()[1:] for text in openers]
        cut = replace(tools, section_start=beheaded[0], call_start=beheaded[1])
        yield "with the first character of its opener missing", cut


def call_text(call: ToolCall) -> str:
    """Return a call in readable form."""
    return f"{call.name}({call.arguments_json})"


@cache
def candidates() -> tuple[tuple[str, str, CallSyntax], ...]:
    """Return the candidate syntaxes, each with its name and the reason for it."""
    common = ((item.name, item) for item in common_calls())
    declared = ((f"the declared format {item.name!r}", item) for item in declared_formats())
    return tuple((name, item.why, tools) for name, item in (*common, *declared) for tools in item.format.syntaxes)


def candidates_in(output: str) -> Iterator[tuple[str, str, CallSyntax]]:
    """Yield the candidates that may parse a call in `output`.

    `output` contains one of their start markers or, if they have none, a word that they write before a call's name. Compiling parsers for the others would take most of the time of an explanation.
    """
    for name, why, syntax in candidates():
        markers = [marker for text in syntax.markers[:2] if (marker := text.strip())]
        signs = markers or _WORD.findall(text_of(*syntax.function[:1]))
        if not signs or any(sign in output for sign in signs):
            yield name, why, syntax


def _stripped(tools: CallSyntax, tokens: tuple[str, ...]) -> CallSyntax:
    """Return the syntax with `tokens` removed from its markers."""

    def skeleton(parts: Skeleton) -> Skeleton:
        kept = (part if isinstance(part, Slot) else without(part, tokens) for part in parts)
        return tuple(part for part in kept if part)

    around = ("section_start", "section_end", "call_start", "call_end", "separator")
    markers: dict[str, Any] = {name: without(getattr(tools, name), tokens) for name in around}
    arguments: dict[str, Any] = {name: without(getattr(tools.arguments, name), tokens) for name in ("start", "end")}
    entry = replace(tools.arguments, **arguments, entry=skeleton(tools.arguments.entry))
    return replace(tools, **markers, function=skeleton(tools.function), arguments=entry)


def without(text: str, tokens: tuple[str, ...]) -> str:
    """Return `text` without any of `tokens`."""
    for token in tokens:
        text = text.replace(token, "")
    return text
