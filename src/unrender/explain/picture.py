"""Pictures a `Format` as whole answers in rows of parts, each with its role and its field of the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from unrender.format import Arguments, CallSyntax, Content, Format, Part, Reasoning, Slot, ToolMode
from unrender.rendering.capabilities import Capabilities

_ROLES = {Slot.NAME: "name", Slot.ID: "id", Slot.ARGUMENTS: "argument", Slot.KEY: "key", Slot.VALUE: "value"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePiece:
    """One part of an answer: a marker as it is written, or a slot for the model's own words."""

    text: str
    role: str
    field: str
    """The field of the format, e.g. `tools.call_start`; by it the evidence is found."""


def pictures(format_: Format, capabilities: Capabilities) -> list[tuple[PicturePiece, ...]]:
    """Return the parts of whole answers.

    There is one answer with content and a call; if the template does not write both together, there is one with each.
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
    elif not capabilities.supports_content_with_calls:
        ways = [[*to_content, *said], [*to_tools, *called]]
    elif turn.tools_first:
        ways = [[*to_tools, *called, *_marker(turn.tools_to_content, "turn.tools_to_content"), *said]]
    else:
        ways = [[*to_content, *said, *_marker(turn.content_to_tools, "turn.content_to_tools"), *called]]
    return [(*thought, *way, *_marker(turn.end, "turn.end")) for way in ways]


def field_texts(format_: Format) -> list[tuple[str, str]]:
    """Return the path and the value, as text, of every field that differs from its default."""
    return list(_markers(format_, ""))


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
    """Yield the parts of a run with one call."""
    yield from _marker(tools.section_start, "tools.section_start")
    yield from _marker(tools.call_start, "tools.call_start")
    for part in tools.function:
        yield from _arguments(tools.arguments) if part is Slot.ARGUMENTS else _part(part, "tools.function")
    yield from _marker(tools.call_end, "tools.call_end")
    yield from _marker(tools.section_end, "tools.section_end")


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
