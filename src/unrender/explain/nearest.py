"""Finds the call syntax that reads most of an output: declared, common, or the template's own without markers.

Strategy: each candidate replaces the template's own syntax, and the output is read again; what gives more whole calls than the
template's own reading is nearer, and among equals what leaves less text over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from unrender.errors import FormatError
from unrender.explain.answer_reading import AnswerReading
from unrender.explain.diagnosis import Nearest
from unrender.explain.syntaxes import COMMON
from unrender.format import CallSyntax, Format, Skeleton, Slot, ToolMode
from unrender.formats import declared_formats
from unrender.grammar.assemble import entry_literals
from unrender.messages.wire import ToolCall


@dataclass(frozen=True, slots=True)
class Near:
    """The nearest syntax, and the output as it reads it."""

    name: str
    why: str
    reading: AnswerReading

    @property
    def told(self) -> Nearest:
        """What an explanation says of it."""
        return Nearest(name=self.name, why=self.why, calls=tuple(map(call_text, self.reading.whole_calls)))


def find_nearest(reading: AnswerReading) -> Near | None:
    """Return the syntax that reads more calls than the template's own.

    None when there is no such syntax, or when the template's own left no text unread.
    """
    if not reading.turn.request.calls_allowed or not reading.unread.strip():
        return None
    nearest: Near | None = None
    for candidate in _candidates():
        other = read_as(reading, candidate.syntax)
        # A syntax without markers, such as `name(key=value)`, also reads `the file (see below)`: it counts only with arguments.
        if other is None or (not entry_literals(candidate.syntax) and not _has_arguments(other)):
            continue
        best = nearest.reading if nearest else reading
        if len(other.whole_calls) > len(reading.whole_calls) and other.rank > best.rank:
            nearest = Near(candidate.name, candidate.why, other)
    return nearest


def _has_arguments(reading: AnswerReading) -> bool:
    """Return whether a call has arguments; prose has names with empty parentheses, too."""
    return any(call.arguments != "{}" for call in reading.whole_calls)


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
        yield (
            "with the first character of its opener missing",
            replace(tools, section_start=beheaded[0], call_start=beheaded[1]),
        )


def call_text(call: ToolCall) -> str:
    """Return a call as a person would write it."""
    return f"{call.name}({call.arguments})"


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    why: str
    syntax: CallSyntax


@cache
def _candidates() -> tuple[_Candidate, ...]:
    declared = (
        _Candidate(f"the declared format {item.name!r}", item.why, tools)
        for item in declared_formats()
        for tools in _syntaxes(item.format)
    )
    common = (_Candidate(name, "a common way to write calls", tools) for name, tools in COMMON.items())
    return (*common, *declared)


def _syntaxes(format: Format) -> Iterator[CallSyntax]:
    yield from (tools for tools in (format.tools, *format.tolerated) if tools.mode is not ToolMode.NONE)


def _stripped(tools: CallSyntax, tokens: tuple[str, ...]) -> CallSyntax:
    """Return the syntax as it looks when `tokens` are taken out of the output."""
    arguments = replace(
        tools.arguments,
        start=_without(tools.arguments.start, tokens),
        end=_without(tools.arguments.end, tokens),
        entry=_parts(tools.arguments.entry, tokens),
    )
    return replace(
        tools,
        section_start=_without(tools.section_start, tokens),
        section_end=_without(tools.section_end, tokens),
        call_start=_without(tools.call_start, tokens),
        call_end=_without(tools.call_end, tokens),
        separator=_without(tools.separator, tokens),
        function=_parts(tools.function, tokens),
        arguments=arguments,
    )


def _parts(skeleton: Skeleton, tokens: tuple[str, ...]) -> Skeleton:
    kept = (part if isinstance(part, Slot) else _without(part, tokens) for part in skeleton)
    return tuple(part for part in kept if part)


def _without(text: str, tokens: tuple[str, ...]) -> str:
    for token in tokens:
        text = text.replace(token, "")
    return text
