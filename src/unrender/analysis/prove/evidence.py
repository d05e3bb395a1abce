"""Collects the evidence for a format from the records of its template: each comparison, with both texts.

Rules: a comparison shows two renderings that differ in one respect, with the name of the heuristic that decided where there
was a choice. What one of the two does not show is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from unrender.analysis.ask.answers import Answers, Variants
from unrender.analysis.ask.questions import Turns
from unrender.analysis.find.turn_frame import Frame
from unrender.analysis.result import Evidence, Shown
from unrender.format import Format, ReasoningMode, ToolMode
from unrender.limits import LONGEST_EVIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that a template was asked for, and what it wrote."""

    turns: Turns
    frame: Frame
    answers: Answers
    variants: Variants


@dataclass(frozen=True, slots=True, kw_only=True)
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
        name="",
        part="turn.headers",
        question="what do the generation prompt and all answers to one question begin with?",
        sides=("prompt", "whole"),
    ),
    _Comparison(
        name="R1",
        part="reasoning",
        question="what is around reasoning?",
        sides=("content", "reasoned"),
        when=_reasons,
    ),
    _Comparison(
        name="R1", part="reasoning", question="what of content is cut off?", sides=("content", "cut"), when=_reasons
    ),
    _Comparison(
        name="R2",
        part="turn.prefill",
        question="what does the generation prompt write after the header?",
        sides=("prompt", "prompt_no_thinking"),
        when=_has_prefill,
    ),
    _Comparison(
        name="R3",
        part="reasoning.mode",
        question="where does reasoning occur?",
        sides=("reasoned", "reasoned_call"),
        when=_reasons_and_calls,
    ),
    _Comparison(name="C1", part="content", question="what is around content?", sides=("content", "call")),
    _Comparison(
        name="C1",
        part="content",
        question="is it there after reasoning?",
        sides=("content", "reasoned"),
        when=_reasons,
    ),
    _Comparison(
        name="C1",
        part="content_with_calls",
        question="is it there beside calls?",
        sides=("content", "mixed"),
        when=_calls,
    ),
    _Comparison(
        name="T1", part="tools.mode", question="what is a call made of?", sides=("content", "call"), when=_calls
    ),
    _Comparison(
        name="T2",
        part="tools.call_start",
        question="what is written once, and what for each call?",
        sides=("call", "two_calls"),
        when=_calls,
    ),
    _Comparison(
        name="T3",
        part="tools.function",
        question="what is around the function's name?",
        sides=("call", "other_name"),
        when=_calls,
    ),
    _Comparison(
        name="T4",
        part="tools.arguments.codec",
        question="how are values of every kind written?",
        sides=("call", "many"),
        when=_calls,
    ),
    _Comparison(
        name="T5",
        part="tools.arguments.separator",
        question="what is between arguments?",
        sides=("call", "long_call"),
        when=_calls,
    ),
    _Comparison(
        name="T6",
        part="tools.arguments.when_empty",
        question="what is around all arguments, and what when there are none?",
        sides=("call", "empty_call"),
        when=_calls,
    ),
    _Comparison(
        name="T7",
        part="tools.call_id",
        question="where does the call's id stand?",
        sides=("call", "other_id"),
        when=_calls,
    ),
    _Comparison(
        name="A1",
        part="tools.arguments.entry",
        question="what is around an argument's name?",
        sides=("call", "other_key"),
        when=_is_tagged,
    ),
    _Comparison(
        name="A2",
        part="tools.arguments.entry",
        question="what is around a value?",
        sides=("call", "other_value"),
        when=_is_tagged,
    ),
    _Comparison(
        name="A3",
        part="tools.arguments.codec",
        question="what tells a string from a number?",
        sides=("call", "numeral"),
        when=_calls,
    ),
)


def collect_evidence(record: Record, fmt: Format, rules: Mapping[str, str]) -> tuple[Evidence, ...]:
    """Return all comparisons that are evidence for `fmt`.

    `rules` are the heuristics that decided, by comparison.
    """
    return tuple(_evidence(_texts(record), fmt, rules))


def _evidence(texts: Mapping[str, str | None], fmt: Format, rules: Mapping[str, str]) -> Iterator[Evidence]:
    for item in _COMPARISONS:
        left, right = (texts.get(side) for side in item.sides)
        if left is None or right is None or not item.when(fmt):
            continue
        yield Evidence(
            part=item.part,
            comparison=item.name,
            finding=item.question,
            left=Shown(what=_WORDS[item.sides[0]], text=left[:LONGEST_EVIDENCE]),
            right=Shown(what=_WORDS[item.sides[1]], text=right[:LONGEST_EVIDENCE]),
            rule=rules.get(item.name, ""),
        )


def _texts(record: Record) -> dict[str, str | None]:
    """Return the text of each side that was rendered."""
    answers, variants, asked = record.answers, record.variants, record.turns.question
    found = {name: getattr(answers, name, None) or getattr(variants, name, None) for name in _WORDS}
    cut = next((text for text in answers.cut.values() if text is not None), None)
    found |= {"prompt": asked.prompt, "prompt_no_thinking": asked.prompt_no_thinking, "whole": record.turns.content}
    return found | {"cut": cut}
