"""Describes a `Format` for people: an answer with slots for the model's own words, and the markers by name.

Rules: a marker is shown as a Python string, so that white space and line breaks can be seen; slots are in «…», since a
pipe has no colours; only what differs from the default is listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from unrender.analysis import Capabilities, Evidence
from unrender.cli.terminal import NO_STYLE, ROLES, Row, Styled
from unrender.conversation.offer import Plan, call_form
from unrender.explain.picture import PicturePiece, call_picture, pictures
from unrender.format import CallSyntax, Format, Part, Slot

Section = tuple[str, str, list[Row]]
"""A heading, the word that sums it up, and its rows."""

_VIEWS = (*(name for name in vars(CallSyntax) if name.endswith(("_prefix", "_suffix", "_close"))), "call_id")
"""The field's names for the markers of a call, which `CallSyntax` derives from its skeletons."""


def answers(format_: Format, capabilities: Capabilities, evidence: Iterable[Evidence] = ()) -> list[Styled]:
    """Return whole answers as the model writes them, from the first character to the end of the turn."""
    return [[_styled(piece) for piece in row] for row in pictures(format_, capabilities, evidence)]


def sections(format_: Format) -> Iterator[Section]:
    """Yield the parts of the format in the order of an answer, each with its markers by name."""
    yield "Turn", "", _rows(format_.turn)
    yield "Reasoning", format_.reasoning.mode, _rows(format_.reasoning)
    yield "Content", format_.content.mode, _rows(format_.content)
    if format_.content_with_calls is not None:
        yield "Content beside calls", format_.content_with_calls.mode, _rows(format_.content_with_calls)
    yield "CallSyntax", format_.tools.mode, _tool_rows(format_.tools)
    if format_.tolerated:
        yield "Also read", "", [row for tools in format_.tolerated for row in _tolerated_rows(tools)]
    rows = [(f"{shown(item.marker)} also as", ", ".join(map(shown, item.others))) for item in format_.spellings]
    rest = ("ignored", "preserved_tokens", "declared")
    rows += [(name, shown(getattr(format_, name))) for name in rest if getattr(format_, name)]
    if rows:
        yield "Besides", "", rows


def capability_rows(capabilities: Capabilities) -> list[Row]:
    """Return rows on what the template does, does not do, requires and refuses, and a row for each other capability.

    Capabilities at their default have no row.
    """
    values = {item.name: (getattr(capabilities, item.name), item.default) for item in fields(capabilities)}
    kinds = {name: value for name, (value, _) in values.items() if isinstance(value, bool)}

    def listed(prefix: str, *, wanted: bool) -> str:
        names = (name for name, value in kinds.items() if value is wanted and name.startswith(prefix))
        return ", ".join(_words(name.removeprefix(prefix)) for name in names)

    rows = [("does", listed("supports_", wanted=True)), ("does not", listed("supports_", wanted=False))]
    rows += [("demands", demands)] if (demands := listed("requires_", wanted=True)) else []
    refused = ", ".join(dict.fromkeys(refusal.feature for refusal in capabilities.refuses))
    rows += [("refuses", refused)] if refused else []
    own = values.keys() - kinds.keys() - {"refuses"}
    others = ((name, value) for name, (value, default) in values.items() if name in own and value != default)
    for name, value in others:
        pairs = isinstance(value, tuple)
        text = ", ".join(f"{key}={json.dumps(inner)}" for key, inner in value) if pairs else str(value)
        rows.append((_words(name), text))
    return rows


def help_rows(plan: Plan) -> list[Row]:
    """Return what `prepare` does about tools in place of the template; no rows when the template does everything."""
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
    return repr(value) if type(value) is str else str(value)  # The members of a `StrEnum` are not quoted.


def _words(name: str) -> str:
    return name.replace("_", " ")


def _part(part: Part) -> str:
    return f"«{part.value}»" if isinstance(part, Slot) else part


def _styled(piece: PicturePiece) -> tuple[str, str]:
    return piece.text if piece.role == "marker" else f"«{piece.text}»", ROLES.get(piece.role, NO_STYLE)


def _rows(part: Any) -> list[Row]:
    pairs = ((item, getattr(part, item.name)) for item in fields(part) if item.name != "mode")
    return [(item.name, shown(value)) for item, value in pairs if value != item.default]


def _tolerated_rows(tools: CallSyntax) -> list[Row]:
    return [("syntax", repr("".join(_styled(piece)[0] for piece in call_picture(tools)))), ("why", tools.why)]


def _tool_rows(tools: CallSyntax) -> list[Row]:
    rows = [row for row in _rows(tools) if row[0] not in ("arguments", "envelope")]
    rows += [(name, shown(getattr(tools, name))) for name in _VIEWS if getattr(tools, name) not in ("", "none")]
    rows += [(f"arguments.{name}", value) for name, value in _rows(tools.arguments) if name != "codec"]
    rows += [(f"codec.{name}", value) for name, value in _rows(tools.arguments.codec)]
    return rows + ([(f"envelope.{name}", value) for name, value in _rows(tools.envelope)] if tools.envelope else [])
