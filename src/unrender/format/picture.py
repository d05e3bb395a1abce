"""Shows a `Format` as sample answers, split into parts with their roles and fields, and describes it in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from unrender.format.parts import (
    MARKERS,
    Arguments,
    CallSyntax,
    Content,
    Part,
    Reasoning,
    ReasoningMode,
    Slot,
    ToolMode,
    TurnTexts,
)
from unrender.printable import Line, lines_of, rows_of

if TYPE_CHECKING:
    from unrender.format import Format

_ROLES = {Slot.NAME: "name", Slot.ID: "id", Slot.ARGUMENTS: "argument", Slot.KEY: "key", Slot.VALUE: "value"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePiece:
    """One part of an answer, which is either a literal marker or a slot for the model's own text."""

    text: str
    role: str
    field: str
    """Path of the field in the format, e.g. `tools.separator`. The part's evidence has the same path."""


def pictures(format_: Format, *, together: bool = True, with_call: str = "") -> list[tuple[PicturePiece, ...]]:
    """Return sample answers as sequences of parts.

    Usually, there's one answer with content and a call. If the template doesn't render content and calls `together`, there's one answer with
    content and one with a call. `with_call` is a rendered answer with a call: if it ends with another end of turn, that end is shown after calls.
    """
    turn = format_.turn
    reasons = bool(format_.reasoning.end)
    thought = list(_between(format_.reasoning, "reasoning")) if reasons else []
    said, called = list(_between(format_.content, "content")), list(call_picture(format_.tools))
    to_content = _marker(turn.reasoning_to_content if reasons else "", "turn.reasoning_to_content")
    before = "reasoning_to_tools" if reasons else "start_to_tools"
    to_tools = _marker(getattr(turn, before), f"turn.{before}")
    if format_.tools.mode is ToolMode.NONE:
        ways = [[*to_content, *said]]
    elif not together:
        ways = [[*to_content, *said], [*to_tools, *called]]
    elif turn.tools_first:
        ways = [[*to_tools, *called, *_marker(turn.tools_to_content, "turn.tools_to_content"), *said]]
    else:
        ways = [[*to_content, *said, *_marker(turn.content_to_tools, "turn.content_to_tools"), *called]]
    ended = _end_of_calls(turn, with_call or turn.end)
    return [(*thought, *way, *(ended if way[-1:] == called[-1:] else _marker(turn.end, "turn.end"))) for way in ways]


def _end_of_calls(turn: TurnTexts, written: str) -> list[PicturePiece]:
    """Return the end of turn after calls, which may differ from the one after content, e.g. `<wait>` in `<call>f</call><wait>`."""
    usual = bool(turn.end) and written.endswith(turn.end)
    other = "" if usual else next(filter(written.endswith, turn.ends), "")
    return list(_marker(other, "turn.ends") if other else _marker(turn.end, "turn.end"))


def field_texts(value: Any) -> list[tuple[str, str]]:
    """Return the paths and texts of the fields that differ from their defaults, in a Format or in capabilities."""
    return list(_markers(value, ""))


def _markers(value: Any, path: str) -> Iterator[tuple[str, str]]:
    for item in fields(value):
        inner, place = getattr(value, item.name), f"{path}.{item.name}" if path else item.name
        if is_dataclass(inner):
            yield from _markers(inner, place)
        elif inner != item.default and not (isinstance(inner, tuple) and any(map(is_dataclass, inner))):
            yield place, _text(inner)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        if any(isinstance(part, Slot) for part in value):
            return "".join(f"«{part.value}»" if isinstance(part, Slot) else part for part in value)
        return ", ".join(map(_text, value))
    return str(value)


def _marker(text: str, path: str) -> Iterator[PicturePiece]:
    if text:
        yield PicturePiece(text=text, role="marker", field=path)


def _between(markers: Reasoning | Content, name: str) -> Iterator[PicturePiece]:
    yield from _marker(markers.start, f"{name}.start")
    yield PicturePiece(text=name, role=name, field=name)
    yield from _marker(markers.end, f"{name}.end")


def call_picture(tools: CallSyntax) -> Iterator[PicturePiece]:
    """Yield the parts of a section of calls that contains one call."""
    around = [list(_marker(text, f"tools.{field}")) for text, field in zip(tools.markers, MARKERS, strict=True)]
    inside = (
        _arguments(tools.arguments) if part is Slot.ARGUMENTS else _part(part, "tools.function")
        for part in tools.function
    )
    for pieces in (*around[:2], *inside, *around[2:]):
        yield from pieces


def _arguments(arguments: Arguments) -> Iterator[PicturePiece]:
    if not arguments.entry:
        yield PicturePiece(text="arguments", role="argument", field="tools.arguments")
        return
    yield from _marker(arguments.start, "tools.arguments.start")
    for part in arguments.entry:
        yield from _part(part, "tools.arguments.entry")
    yield from _marker(arguments.end, "tools.arguments.end")


def _part(part: Part, path: str) -> Iterator[PicturePiece]:
    if isinstance(part, Slot):
        yield PicturePiece(text=part.value, role=_ROLES.get(part, "argument"), field=path)
    else:
        yield from _marker(part, path)


_REASONING: Mapping[ReasoningMode, str] = {
    ReasoningMode.NONE: "not in the template",
    ReasoningMode.TAG_BASED: "optional, in {start}…{end}",
    ReasoningMode.DELIMITER: "up to {end}",
    ReasoningMode.FORCED_OPEN: "opened by the prompt, up to {end}",
    ReasoningMode.FORCED_CLOSED: "opened by the prompt, up to {end}",
    ReasoningMode.TOOLS_ONLY: "only before tool calls, in {start}…{end}",
}
_CALLS: Mapping[ToolMode, str] = {
    ToolMode.JSON_NATIVE: "JSON",
    ToolMode.TAG_WITH_JSON: "a name, then JSON arguments",
    ToolMode.TAG_WITH_TAGGED: "a name, then tagged arguments",
}


def reasoning_in_words(format: Format, off: Iterable[tuple[str, Any]] = ()) -> str:
    """Return a description of a format's reasoning, with the template variables that turn it `off`."""
    reasoning = format.reasoning
    written = _REASONING[reasoning.mode].format(start=inline(reasoning.start), end=inline(reasoning.end))
    switches = ", ".join(f"{name}={json.dumps(value)}" for name, value in off)
    return written + (f"; {switches} turns it off" if switches else "")


def calls_in_words(format: Format) -> str:
    """Return a description of a format's tool calls."""
    tools = format.tools
    if tools.mode is ToolMode.NONE:
        return "not in the template"
    opener = next((inline(text) for text in tools.markers[:2] if text.strip()), "")
    where = f"in {opener}" if opener else f"starting with {inline(tools.openers[0])}" if tools.openers else ""
    count = "several per answer" if tools.parallel else "one per answer"
    ids = "no call ids" if tools.call_id == "none" and not tools.id_parts else "with call ids"
    return f"{_CALLS[tools.mode]} {where}".rstrip() + f", {count}; {ids}"


def inline(text: str) -> str:
    """Return a marker on one line, without the whitespace around it."""
    return text.strip().replace("\n", "↵")


def format_rows(format: Format, off: Iterable[tuple[str, Any]] = ()) -> dict[str, str]:
    """Return a description of a format by topic. `off` are the template variables that turn reasoning off."""
    more = len(format.tolerated)
    rows = {
        "Reasoning": reasoning_in_words(format, off),
        "Tool calls": calls_in_words(format),
        "Stop at": " ".join(map(inline, format.turn.all_ends)) or "the end of the sequence",
        "Keep tokens": " ".join(format.preserved_tokens) or "none",
        "Also parsed": f"{more} more call syntax{'es' * (more > 1)}" if more else "",
    }
    return {topic: text for topic, text in rows.items() if text}


def format_page(format: Format) -> Iterator[Line]:
    """Yield a sample answer, with «…» around the model's own text, and a description by topic."""
    for row in pictures(format):
        shown = [(it.text if it.role == "marker" else f"«{it.text}»", it.role) for it in row]
        yield from lines_of(shown)
    yield []
    yield from rows_of(format_rows(format).items())
