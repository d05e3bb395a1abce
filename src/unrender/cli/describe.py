"""A `Format` into what a person reads: an answer with slots for the model's own words, and the markers by name.

Rules: a marker is shown as a Python string, so that white space and line breaks can be seen; slots stand in «…», since a
pipe has no colours; only what differs from the default is listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from unrender.analysis.capabilities import Capabilities
from unrender.cli.terminal import BOLD_CYAN, GREEN, Styled
from unrender.format import Arguments, Content, Format, Part, Reasoning, Slot, ToolMode, Tools
from unrender.injection import Plan
from unrender.injection.instructions import call_form

SLOT_STYLE = BOLD_CYAN
MARKER_STYLE = GREEN

Row = tuple[str, str]
"""A label and what stands after it."""

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


def answers(format_: Format, capabilities: Capabilities) -> list[Styled]:
    """Return whole answers as the model writes them, from the first character to the end of the turn.

    One with content and a call, or one with each where the template does not write both.
    """
    content, calls = _content(format_.content), _calls(format_.tools)
    turn, reasons = format_.turn, bool(format_.reasoning.end)
    to_content, to_tools = (
        (turn.reasoning_to_content, turn.reasoning_to_tools) if reasons else ("", turn.start_to_tools)
    )
    if format_.tools.mode is ToolMode.NONE:
        ways = [[to_content, *content]]
    elif not capabilities.supports_content_with_calls:
        ways = [[to_content, *content], [to_tools, *calls]]
    elif turn.tools_first:
        ways = [[to_tools, *calls, turn.tools_to_content, *content]]
    else:
        ways = [[to_content, *content, turn.content_to_tools, *calls]]
    return [_styled([*_reasoning(format_.reasoning), *way, turn.end]) for way in ways]


def sections(format_: Format) -> Iterator[Section]:
    """Yield the parts of the format in the order of an answer, each with its markers by name."""
    yield "Turn", "", _rows(format_.turn)
    yield "Reasoning", format_.reasoning.mode, _rows(format_.reasoning)
    yield "Content", format_.content.mode, _rows(format_.content)
    if format_.content_with_calls is not None:
        yield "Content beside calls", format_.content_with_calls.mode, _rows(format_.content_with_calls)
    yield "Tools", format_.tools.mode, _tool_rows(format_.tools)
    if format_.tolerated:
        yield "Also read", "", [row for tools in format_.tolerated for row in _tolerated_rows(tools)]
    rows = [(f"{shown(item.marker)} also as", ", ".join(map(shown, item.others))) for item in format_.spellings]
    rest = ("ignored", "preserved_tokens", "declared")
    rows += [(name, shown(getattr(format_, name))) for name in rest if getattr(format_, name)]
    if rows:
        yield "Besides", "", rows


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


def help_rows(plan: Plan) -> list[Row]:
    """Return what `prepare` does about tools because the template does not; nothing where the template does it all."""
    rows = []
    if plan.offers:
        whose = f"the declared format {plan.format_name}" if plan.format_name else "the template's own syntax"
        rows = [("tools", "described in the system message"), ("calls", f"asked for in {whose}")]
        rows += [("", line) for line in call_form(plan.format.tools).splitlines()]
    history = [name for name, done in (("calls", plan.writes_calls), ("results", plan.writes_results)) if done]
    return rows + ([("history", f"{' and '.join(history)} become text")] if history else [])


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


def _reasoning(reasoning: Reasoning) -> list[str]:
    return [reasoning.start, "«reasoning»", reasoning.end] if reasoning.end else []


def _content(content: Content) -> list[str]:
    return [content.start, "«content»", content.end]


def _calls(tools: Tools) -> list[str]:
    parts = [_arguments(tools.arguments) if part is Slot.ARGUMENTS else [_part(part)] for part in tools.function]
    call = [piece for pieces in parts for piece in pieces]
    return [tools.section_start, tools.call_start, *call, tools.call_end, tools.section_end]


def _arguments(arguments: Arguments) -> list[str]:
    entry = [_part(part) for part in arguments.entry]
    return [arguments.start, *entry, arguments.end] if entry else ["«arguments»"]


def _part(part: Part) -> str:
    return f"«{part.value}»" if isinstance(part, Slot) else part


def _styled(pieces: list[str]) -> Styled:
    return [(piece, SLOT_STYLE if piece.startswith("«") else MARKER_STYLE) for piece in pieces]


def _rows(part: Any) -> list[Row]:
    pairs = ((item, getattr(part, item.name)) for item in fields(part) if item.name != "mode")
    return [(item.name, shown(value)) for item, value in pairs if value != item.default]


def _tolerated_rows(tools: Tools) -> list[Row]:
    return [("syntax", repr("".join(_calls(tools)))), ("why", tools.why)]


def _tool_rows(tools: Tools) -> list[Row]:
    rows = [row for row in _rows(tools) if row[0] not in ("arguments", "envelope")]
    rows += [(name, shown(getattr(tools, name))) for name in _VIEWS if getattr(tools, name) not in ("", "none")]
    rows += [(f"arguments.{name}", value) for name, value in _rows(tools.arguments) if name != "codec"]
    rows += [(f"codec.{name}", value) for name, value in _rows(tools.arguments.codec)]
    if tools.envelope:
        rows += [(f"envelope.{name}", value) for name, value in _rows(tools.envelope)]
    return rows
