"""Collects the comparisons that support a format, and logs the decisions of the analysis.

Rules: each comparison shows two renderings that differ in one respect. If there were several possible findings, the comparison also names
the heuristic that chose one. Comparisons with only one rendering are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any

from unrender.analysis import Analysis, Evidence, Shown
from unrender.analysis.ask.answers import Answers, Turns
from unrender.format import Format, ReasoningMode, ToolMode
from unrender.limits import MAX_REMARK

_WHEN: Mapping[str, Callable[[Format], bool]] = {
    "always": lambda _: True,
    "prefill": lambda fmt: bool(fmt.turn.prefill or fmt.turn.prefill_no_thinking),
    "reasoning": lambda fmt: fmt.reasoning.mode is not ReasoningMode.NONE,
    "calls": lambda fmt: fmt.tools.mode is not ToolMode.NONE,
    "both": lambda fmt: _WHEN["reasoning"](fmt) and _WHEN["calls"](fmt),
    "tagged": lambda fmt: bool(fmt.tools.arguments.entry),
}
"""Conditions under which a comparison applies to a format, by name."""
_WORDS = {
    "prompt": "the generation prompt",
    "prompt_off": "the generation prompt with thinking off",
    "whole": "an answer of content, with its header",
    "content": "content",
    "reasoned": "reasoning and content",
    "cut": "content that contains an end marker of reasoning",
    "call": "a call",
    "reasoned_call": "reasoning and a call",
    "mixed": "content and a call",
    "two_calls": "two calls",
    "long_call": "a call with two arguments",
    "empty_call": "a call without arguments",
    "many": "a call with values of several types",
    "other_name": "a call of another function",
    "other_id": "a call with another id",
    "other_key": "a call with another argument",
    "other_value": "a call with another value",
    "numeral": "a call with the same digits as a string",
}
_HEADER = "the text that starts the generation prompt and each answer"
_PREFILL = "the text after the header in the generation prompt"
_NO_ARGUMENTS = "the text around all arguments, and the text without arguments"
_COMPARISONS = (
    ("always", "", "turn.headers", _HEADER, "prompt", "whole"),
    ("reasoning", "R1", "reasoning", "the markers around reasoning", "content", "reasoned"),
    ("reasoning", "R1", "reasoning", "the text that the template removes from content", "content", "cut"),
    ("prefill", "R2", "turn.prefill", _PREFILL, "prompt", "prompt_off"),
    ("both", "R3", "reasoning.mode", "the answers that contain reasoning", "reasoned", "reasoned_call"),
    ("always", "C1", "content", "the markers around content", "content", "call"),
    ("reasoning", "C1", "content", "content after reasoning", "content", "reasoned"),
    ("calls", "C1", "content_with_calls", "content in answers with calls", "content", "mixed"),
    ("calls", "T1", "tools.mode", "the text that a call adds", "content", "call"),
    (
        "calls",
        "T2",
        "tools.call_start",
        "the markers around all calls, and the markers around each call",
        "call",
        "two_calls",
    ),
    ("calls", "T3", "tools.function", "the text around the function's name", "call", "other_name"),
    ("calls", "T4", "tools.arguments.codec", "the notation of values", "call", "many"),
    ("calls", "T5", "tools.arguments.separator", "the separator between arguments", "call", "long_call"),
    ("calls", "T6", "tools.arguments.when_empty", _NO_ARGUMENTS, "call", "empty_call"),
    ("calls", "T7", "tools.call_id", "the position of the call's id", "call", "other_id"),
    ("tagged", "A1", "tools.arguments.entry", "the text around an argument's name", "call", "other_key"),
    ("tagged", "A2", "tools.arguments.entry", "the text around a value", "call", "other_value"),
    ("calls", "A3", "tools.arguments.codec", "the difference between a string and a number", "call", "numeral"),
)
"""Comparisons, each with a condition (a key of `_WHEN`), a short name, the part of the format, what the comparison shows, and two renderings
(keys of `_WORDS`).
"""


def collect_evidence(
    turns: Turns, answers: Answers, variants: Mapping[str, str | None], fmt: Format, rules: Mapping[str, str]
) -> tuple[Evidence, ...]:
    """Return all comparisons that support `fmt`.

    `variants` maps names to renderings of answers whose calls differ from the usual call in one respect. `rules` maps comparisons to the
    heuristics that chose their findings.
    """
    asked = turns.question
    # Most names in `_WORDS` are fields of `Answers` or keys of `variants`. The texts of the four other names are added below.
    texts = {name: getattr(answers, name, None) or variants.get(name) for name in _WORDS}
    texts |= {"prompt": asked.prompt, "prompt_off": asked.prompt_no_thinking, "whole": turns.content}
    texts["cut"] = next((text for text in answers.cut.values() if text is not None), None)
    shown = {name: Shown(what=_WORDS[name], text=text[:MAX_REMARK]) for name, text in texts.items() if text is not None}
    return tuple(
        Evidence(
            part=part, comparison=name, finding=finding, left=shown[left], right=shown[right], rule=rules.get(name, "")
        )
        for when, name, part, finding, left, right in _COMPARISONS
        if left in shown and right in shown and _WHEN[when](fmt)
    )


_log = logging.getLogger("unrender.analysis")


def tell(analysis: Analysis, *, part_opener: str) -> None:
    """Log the decisions of an analysis.

    `part_opener` is the marker that required a second pass over the template, or an empty string if there was only one pass.
    """
    if not _log.isEnabledFor(logging.DEBUG):
        return
    for item in fields(analysis.capabilities):
        value = getattr(analysis.capabilities, item.name)
        if value != item.default:
            _log.debug("capability %s: %r", item.name, value)
    if part_opener:
        _log.debug("every part of an answer starts with %r, so the template was analysed a second time", part_opener)
    for found in analysis.evidence:
        value = _shown(attrgetter(found.part)(analysis.format))
        name, rule = f"{found.comparison} " * bool(found.comparison), f" decided by: {found.rule}" * bool(found.rule)
        _log.debug("%s%s: %s; from %s%s", name, found.part, value, found.finding, rule)
    for name in analysis.format.declared:
        _log.debug("declared format %s applies, and adds to the derived format", name)
    for diagnostic in analysis.diagnostics:
        _log.debug("not determined: %s", diagnostic)
    _log.debug("derived from %d renderings", analysis.renderings)


def _shown(value: Any) -> str:
    """Return the fields of a part that differ from their defaults, on one line."""
    if not is_dataclass(value):
        return repr(value)
    pairs = [(item.name, getattr(value, item.name), item.default) for item in fields(value)]
    return ", ".join(f"{name}={part!r}" for name, part, default in pairs if part != default) or "the default"
