"""Shows a `Format` as sample answers, split into parts with their roles and fields.

`listing` shows a parser's program with one line per instruction, which contains its address, name and fields. Numbers in `target`, `end`,
`hub` and similar fields are addresses of other instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from itertools import islice
from typing import Any

from unrender.analysis import Evidence
from unrender.conversation.capabilities import Capabilities
from unrender.format import Arguments, CallSyntax, Content, Format, Part, Reasoning, Slot, ToolMode, TurnTexts
from unrender.format.parts import MARKERS
from unrender.limits import MAX_SHOWN_ITEMS
from unrender.parser.streaming import Parser
from unrender.values.finder import Finder, Flow
from unrender.values.unmarked_ends import Follow

_ROLES = {Slot.NAME: "name", Slot.ID: "id", Slot.ARGUMENTS: "argument", Slot.KEY: "key", Slot.VALUE: "value"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePiece:
    """One part of an answer, which is either a literal marker or a slot for the model's own text."""

    text: str
    role: str
    field: str
    """The field of the format, e.g. `tools.separator`. It also identifies the evidence for the part."""


def pictures(
    format_: Format, capabilities: Capabilities, evidence: Iterable[Evidence] = ()
) -> list[tuple[PicturePiece, ...]]:
    """Return sample answers as sequences of parts.

    The sample is one answer with content and a call. If the template doesn't render both together, there's one answer for each. If calls
    have a different end of turn, it's taken from `evidence`.
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
    ended = _end_of_calls(turn, evidence)
    return [(*thought, *way, *(ended if way[-1:] == called[-1:] else _marker(turn.end, "turn.end"))) for way in ways]


def _end_of_calls(turn: TurnTexts, evidence: Iterable[Evidence]) -> list[PicturePiece]:
    """Return the end of turn after calls, which may differ from the one after content, e.g. `<wait>` in `<call>f</call><wait>`."""
    written = next((found.right.text for found in evidence if found.part == "tools.mode"), turn.end)
    usual = bool(turn.end) and written.endswith(turn.end)
    other = "" if usual else next(filter(written.endswith, turn.ends), "")
    return list(_marker(other, "turn.ends") if other else _marker(turn.end, "turn.end"))


def field_texts(value: Any) -> list[tuple[str, str]]:
    """Return the path and text of every field of a Format or of capabilities that differs from its default."""
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
    """Yield the parts of a section with one call."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One instruction, with its address, its name, and its fields as text."""

    address: int
    name: str
    fields: str

    def __str__(self) -> str:
        return f"{self.address:4}  {self.name}  {self.fields}".rstrip()


def listing(parser: Parser) -> tuple[Line, ...]:
    """Return the program of `parser`, in order of addresses.

    >>> from unrender import Format
    >>> from unrender.types import Request
    >>> str(listing(Parser(Format(undeclared_reasoning=False), Request()))[0])
    '   0  Jump  target=6'
    """
    return tuple(
        Line(address=address, name=type(instruction).__name__, fields=" ".join(_fields(instruction)))
        for address, instruction in enumerate(parser._program_listing)
    )


def _fields(holder: Any) -> Iterator[str]:
    """Yield the fields whose values aren't the defaults. Fields that only speed up the parser are left out."""
    for field in fields(holder) if is_dataclass(holder) else ():
        value = getattr(holder, field.name)
        plain = field.default is not MISSING and bool(value == field.default)
        if not isinstance(value, Flow) and not plain:
            yield f"{field.name}={_shown(value)}"


def _listed(opening: str, texts: Collection[str], closing: str) -> str:
    """Return a string with the first items, and the number of remaining ones."""
    found, more = list(islice(texts, MAX_SHOWN_ITEMS)), len(texts) - MAX_SHOWN_ITEMS
    return opening + ", ".join([*found, *([f"and {more} more"] if more > 0 else [])]) + closing


def _items(opening: str, closing: str) -> Callable[[Any], str]:
    return lambda values: _listed(opening, [_shown(value) for value in values], closing)


def _table(table: Mapping[Any, Any]) -> str:
    return _listed("{", [f"{_shown(key)}: {_shown(value)}" for key, value in table.items()], "}")


_SHOWN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (Finder, lambda finder: _items("<", ">")(finder.literals)),
    (Follow, lambda _: "<text after the value>"),
    (Enum, lambda member: str(member.value)),
    (Mapping, _table),
    (tuple, _items("(", ")")),
    (list, _items("[", "]")),
    (frozenset, lambda values: _items("{", "}")(sorted(values, key=repr))),
)
"""Formatters of field values. The first matching class is used. Values of other classes are formatted with `repr`."""


def _shown(value: Any) -> str:
    for kind, show in _SHOWN:
        if isinstance(value, kind):
            return show(value)
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(_fields(value))})"
    return value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)
