"""Collects the evidence for a format from the records of its template: each comparison, with both texts.

Rules: a comparison shows two renderings that differ in one respect, with the name of the heuristic that decided where there
was a choice. What one of the two does not show is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unrender.analysis.ask.answers import Answers, Turns, Variants
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.analysis.result import Evidence, Shown
from unrender.format import Format, ReasoningMode, ToolMode
from unrender.limits import LONGEST_EVIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that a template was asked for, and what it wrote."""

    turns: Turns
    frame: TurnFrame
    answers: Answers
    variants: Variants


@dataclass(frozen=True, slots=True)
class _Comparison:
    name: str
    part: str
    question: str
    sides: tuple[str, str]
    """Keys of `_WORDS`."""
    when: Callable[[Format], bool] = lambda _: True


def _has_prefill(fmt: Format) -> bool:
    return bool(fmt.turn.prefill or fmt.turn.prefill_no_thinking)


def _reasons(fmt: Format) -> bool:
    return fmt.reasoning.mode is not ReasoningMode.NONE


def _calls(fmt: Format) -> bool:
    return fmt.tools.mode is not ToolMode.NONE


def _reasons_and_calls(fmt: Format) -> bool:
    return _reasons(fmt) and _calls(fmt)


def _is_tagged(fmt: Format) -> bool:
    return bool(fmt.tools.arguments.entry)


_WORDS = {
    "prompt": "the generation prompt",
    "prompt_no_thinking": "the same, with thinking off",
    "whole": "an answer of content, with its header",
    "content": "content",
    "reasoned": "reasoning and content",
    "cut": "content up to and after a closer of reasoning",
    "call": "a call",
    "reasoned_call": "reasoning and a call",
    "mixed": "content and a call",
    "two_calls": "two calls",
    "long_call": "a call with two arguments",
    "empty_call": "a call without arguments",
    "many": "a call with values of many kinds",
    "other_name": "a call of another function",
    "other_id": "a call with another id",
    "other_key": "a call with another argument",
    "other_value": "a call with another value",
    "numeral": "a call with the same digits as a string",
}
_COMPARISONS = (
    _Comparison(
        "",
        "turn.headers",
        "what do the generation prompt and all answers to one question begin with?",
        ("prompt", "whole"),
    ),
    _Comparison("R1", "reasoning", "what is around reasoning?", ("content", "reasoned"), _reasons),
    _Comparison("R1", "reasoning", "what of content is cut off?", ("content", "cut"), _reasons),
    _Comparison(
        "R2",
        "turn.prefill",
        "what does the generation prompt write after the header?",
        ("prompt", "prompt_no_thinking"),
        _has_prefill,
    ),
    _Comparison(
        "R3", "reasoning.mode", "where does reasoning occur?", ("reasoned", "reasoned_call"), _reasons_and_calls
    ),
    _Comparison("C1", "content", "what is around content?", ("content", "call")),
    _Comparison("C1", "content", "is it there after reasoning?", ("content", "reasoned"), _reasons),
    _Comparison("C1", "content_with_calls", "is it there beside calls?", ("content", "mixed"), _calls),
    _Comparison("T1", "tools.mode", "what is a call made of?", ("content", "call"), _calls),
    _Comparison(
        "T2", "tools.call_start", "what is written once, and what for each call?", ("call", "two_calls"), _calls
    ),
    _Comparison("T3", "tools.function", "what is around the function's name?", ("call", "other_name"), _calls),
    _Comparison("T4", "tools.arguments.codec", "how are values of every kind written?", ("call", "many"), _calls),
    _Comparison("T5", "tools.arguments.separator", "what is between arguments?", ("call", "long_call"), _calls),
    _Comparison(
        "T6",
        "tools.arguments.when_empty",
        "what is around all arguments, and what when there are none?",
        ("call", "empty_call"),
        _calls,
    ),
    _Comparison("T7", "tools.call_id", "where does the call's id stand?", ("call", "other_id"), _calls),
    _Comparison("A1", "tools.arguments.entry", "what is around an argument's name?", ("call", "other_key"), _is_tagged),
    _Comparison("A2", "tools.arguments.entry", "what is around a value?", ("call", "other_value"), _is_tagged),
    _Comparison("A3", "tools.arguments.codec", "what tells a string from a number?", ("call", "numeral"), _calls),
)


def collect_evidence(record: Record, fmt: Format, rules: Mapping[str, str]) -> tuple[Evidence, ...]:
    """Return all comparisons that are evidence for `fmt`.

    `rules` are the heuristics that decided, by comparison.
    """
    texts = _texts(record)
    evidence: list[Evidence] = []
    for item in _COMPARISONS:
        left, right = (texts.get(side) for side in item.sides)
        if left is None or right is None or not item.when(fmt):
            continue
        found = Evidence(
            part=item.part,
            comparison=item.name,
            finding=item.question,
            left=Shown(what=_WORDS[item.sides[0]], text=left[:LONGEST_EVIDENCE]),
            right=Shown(what=_WORDS[item.sides[1]], text=right[:LONGEST_EVIDENCE]),
            rule=rules.get(item.name, ""),
        )
        evidence.append(found)
    return tuple(evidence)


def _texts(record: Record) -> dict[str, str | None]:
    """Return the text of each side that was rendered."""
    answers, variants, asked = record.answers, record.variants, record.turns.question
    found = {name: getattr(answers, name, None) or getattr(variants, name, None) for name in _WORDS}
    cut = next((text for text in answers.cut.values() if text is not None), None)
    found |= {"prompt": asked.prompt, "prompt_no_thinking": asked.prompt_no_thinking, "whole": record.turns.content}
    return found | {"cut": cut}
