"""A `Format` into what a person reads: an answer with slots for the model's own words, and the markers by name.

Rules: a marker is shown as a Python string, so that white space and line breaks can be seen; slots stand in «…», since a
pipe has no colours; only what differs from the default is listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from rich.text import Text

from unrender.analysis.capabilities import Capabilities
from unrender.format import Arguments, Format, Part, Slot, ToolMode, Tools

SLOT_STYLE = "bold cyan"
MARKER_STYLE = "green"

Row = tuple[str, str]
"""A label and what stands behind it."""

Section = tuple[str, str, list[Row]]
"""A heading, the word that sums it up, and its rows."""

_VIEWS = (
    "name_prefix",
    "name_suffix",
    "function_close",
    "arg_name_prefix",
    "arg_name_suffix",
    "value_prefix",
    "value_suffix",
    "call_id",
)
"""The field's names for the markers of a call, which `Tools` derives from its skeletons."""


def answer(format_: Format) -> Text:
    """Return one whole answer as the model writes it: reasoning, content and a call, then the end of the turn."""
    turn, reasoning, content = format_.turn, format_.reasoning, format_.content
    text = [reasoning.start, "«reasoning»", reasoning.end] if reasoning.end else []
    parts: list[list[str]] = [[content.start, "«content»", content.end]]
    joints = [turn.reasoning_to_content if reasoning.end else "", turn.content_to_tools]
    if format_.tools.mode is not ToolMode.NONE:
        parts.append(list(_calls(format_.tools)))
    if turn.tools_first:
        parts.reverse()
        joints = [turn.reasoning_to_tools if reasoning.end else "", turn.tools_to_content]
    for joint, part in zip(joints, parts, strict=False):
        text += [joint, *part]
    return _styled([*text, turn.end])


def sections(format_: Format) -> Iterator[Section]:
    """Yield the parts of the format in the order of an answer, each with its markers by name."""
    yield "Turn", "", _rows(format_.turn)
    yield "Reasoning", format_.reasoning.mode, _rows(format_.reasoning)
    yield "Content", format_.content.mode, _rows(format_.content)
    yield "Tools", format_.tools.mode, _tool_rows(format_.tools)
    for tools in format_.tolerated:
        yield "Also read", tools.mode, _tool_rows(tools)
    tolerances = [(spelling.marker, ", ".join(map(shown, spelling.others))) for spelling in format_.spellings]
    rest = ("ignored", "preserved_tokens", "declared")
    rows = [(name, shown(getattr(format_, name))) for name in rest if getattr(format_, name)]
    if tolerances or rows:
        yield "Beyond", "", [*((f"{shown(marker)} also as", others) for marker, others in tolerances), *rows]


def capability_rows(capabilities: Capabilities) -> list[Row]:
    """Return what the template does, does not do and demands in three rows, and all else that is not the default."""
    values = {item.name: (getattr(capabilities, item.name), item.default) for item in fields(capabilities)}
    kinds = {name: value for name, (value, _) in values.items() if isinstance(value, bool)}
    yes = [name.removeprefix("supports_") for name, value in kinds.items() if value and name.startswith("supports_")]
    no = [name.removeprefix("supports_") for name, value in kinds.items() if not value and name.startswith("supports_")]
    demands = [
        name.removeprefix("requires_") for name, value in kinds.items() if value and name.startswith("requires_")
    ]
    rows = [("does", ", ".join(map(_words, yes))), ("does not", ", ".join(map(_words, no)))]
    rows += [("demands", ", ".join(map(_words, demands)))] if demands else []
    others = ((name, value) for name, (value, default) in values.items() if name not in kinds and value != default)
    return rows + [(_words(name), _pairs(value) if isinstance(value, tuple) else str(value)) for name, value in others]


def shown(value: Any) -> str:
    """Return a field's value as it is printed: strings quoted, skeletons as one string with «slots»."""
    if isinstance(value, tuple) and any(isinstance(item, Slot) for item in value):
        return repr("".join(map(_part, value)))
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    if isinstance(value, Slot):
        return _part(value)
    if type(value) is str:
        return repr(value)
    return str(value)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _pairs(pairs: tuple[tuple[str, Any], ...]) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in pairs)


def _calls(tools: Tools) -> Iterator[str]:
    yield from (tools.section_start, tools.call_start)
    for part in tools.function:
        yield from _arguments(tools.arguments) if part is Slot.ARGUMENTS else (_part(part),)
    yield from (tools.call_end, tools.section_end)


def _arguments(arguments: Arguments) -> Iterator[str]:
    entry = [_part(part) for part in arguments.entry]
    yield from (arguments.start, *entry, arguments.end) if entry else ("«arguments»",)


def _part(part: Part) -> str:
    return f"«{part.value}»" if isinstance(part, Slot) else part


def _styled(pieces: list[str]) -> Text:
    text = Text()
    for piece in pieces:
        text.append(piece, style=SLOT_STYLE if piece.startswith("«") else MARKER_STYLE)
    return text


def _rows(part: Any) -> list[Row]:
    pairs = ((item, getattr(part, item.name)) for item in fields(part) if item.name != "mode")
    return [(item.name, shown(value)) for item, value in pairs if value != item.default]


def _tool_rows(tools: Tools) -> list[Row]:
    rows = [row for row in _rows(tools) if row[0] not in ("arguments", "envelope")]
    rows += [(name, shown(getattr(tools, name))) for name in _VIEWS if getattr(tools, name) not in ("", "none")]
    rows += [(f"arguments.{name}", value) for name, value in _rows(tools.arguments) if name != "codec"]
    rows += [(f"codec.{name}", value) for name, value in _rows(tools.arguments.codec)]
    if tools.envelope:
        rows += [(f"envelope.{name}", value) for name, value in _rows(tools.envelope)]
    return rows
