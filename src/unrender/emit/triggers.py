"""Format and request → what tells an engine that a tool call begins, for grammars that wait until then.

Rules: a trigger is the outermost literal with which the primary call syntax begins. It is a plain word only where it
cannot stand in reasoning and is no ordinary text; otherwise it is a pattern that the whole output so far must match,
whose first group is the call's beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from unrender.assemble import entry_literals
from unrender.format import Format, ReasoningMode
from unrender.messages import Request, ToolChoice

_DISTINCTIVE = re.compile(r"\w.*\W|\W.*\w", re.DOTALL)
_ANY = r"[\s\S]*?"


class TriggerKind(StrEnum):
    """How an engine compares a trigger with the output."""

    WORD = "word"
    """As text, anywhere."""
    PATTERN = "pattern"
    """As a regular expression (ECMAScript) from the beginning of the output; the grammar starts at its first group."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A sign that a call begins."""

    kind: TriggerKind
    value: str


def triggers(format: Format, request: Request, begun: str = "") -> tuple[Trigger, ...]:
    """Return the triggers of a lazy grammar; none when the grammar holds from the start, or when there are no calls.

    `begun` is what the prompt has already written of the answer.
    """
    lazy = request.tool_choice is ToolChoice.AUTO and request.calls_allowed and request.response_schema is None
    literals = entry_literals(format.tools) if lazy else []
    if not literals:
        return ()
    opener = literals[0].strip()
    distinctive = len(opener) > 2 and _DISTINCTIVE.search(opener) is not None
    before = _before(format, begun)
    if distinctive and not before:
        return (Trigger(TriggerKind.WORD, opener),)
    between = _unopened(format) if distinctive else r"\s*"
    return (Trigger(TriggerKind.PATTERN, f"^{before}{between}({re.escape(opener)})"),)


def _before(format: Format, begun: str) -> str:
    """Return the pattern of reasoning that must have ended before a call counts."""
    reasoning = format.reasoning
    end, start = reasoning.end.strip(), reasoning.start.strip()
    if not end or reasoning.mode is ReasoningMode.NONE:
        return ""
    ended = f"{_ANY}{re.escape(end)}"
    opened = bool(start) and start in begun and end not in begun[begun.rindex(start) :]
    if opened:
        return ended
    return f"(?:\\s*{re.escape(start)}{ended})?" if start else f"(?:{ended})?"


def _unopened(format: Format) -> str:
    """Return the pattern of text in which no reasoning is opened."""
    start = format.reasoning.start.strip()
    return f"(?:(?!{re.escape(start)})[\\s\\S])*?" if start else _ANY
