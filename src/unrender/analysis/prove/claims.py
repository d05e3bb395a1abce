"""Weakens a Format until its claims hold: claims that the template's own answers refute give way to weaker ones.

Strategy: every weaker claim that could mend what is misread is tried, and the one under which the least is misread wins; it
may itself be weakened. A claim that is given up costs less than one that is false, and nothing is given up in vain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from unrender.analysis.ask.probes import Prober
from unrender.analysis.declarations import complete
from unrender.analysis.prove.readback import CutOut, Misread, Said, cut_outs, misread
from unrender.errors import FormatError
from unrender.format import CallSyntax, Content, Format, Reasoning, ReasoningMode, ToolMode
from unrender.limits import MOST_REFUTED_CLAIMS

_REASONING, _CALLS, _SEVERAL_CALLS = "reasoning is read", "calls are read", "several calls are read"
"""The claims without which such answers are not read at all."""
_FALSE, _UNCLAIMED = 10, 4
"""What an answer costs that is misread, and one that the format does not claim to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A Format, and the answers that are misread with it."""

    format: Format
    given_up: tuple[str, ...] = ()
    """The claims that did not hold, in words."""
    misread: tuple[Misread, ...] = ()
    """What is misread all the same, though the format claims to read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weaker:
    claim: str
    """What is given up."""
    parts: Callable[[Format], dict[str, Any]]
    """The weaker parts; none where the format does not make the claim."""
    needed_by: Callable[[Said], bool]
    """Only answers like these need the claim."""
    refuted_by: Callable[[Misread], bool] = bool
    """Of these answers, the claim is refuted by those; it holds unless all of them refute it."""
    unread: bool = False
    """Without the claim, such answers are not read at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What comes of a weaker format."""

    cost: int
    claim: str
    more: tuple[str, ...]
    """What cannot be without the claim, in words."""
    format: Format
    wrong: tuple[Misread, ...]


def prove(prober: Prober, format: Format) -> Proof:
    """Read the template's answers with the format, and weaken the format until its claims about them are true.

    Claims that no weaker format mends are left.
    """
    shown = cut_outs(prober)
    wrong = misread(prober, format, shown)
    given_up: list[str] = []
    weakened: list[str] = []
    for _ in range(MOST_REFUTED_CLAIMS if wrong else 0):
        best = min(_trials(prober, format, shown, wrong), key=lambda trial: trial.cost, default=None)
        if best is None or best.cost >= _cost(format, shown, wrong):
            break
        mended = _mended(wrong, best)
        given_up.append(f"{best.claim}: does not hold for what the template writes, and was given up: {mended!r:.200}")
        given_up += best.more
        weakened.append(best.claim)
        format, wrong = best.format, best.wrong
    false = tuple(found for found in wrong if claims_parts(format, found.said))
    given_up += (words for claim, words in _unclaimed(format, shown) if claim not in weakened)
    return Proof(format=format, given_up=tuple(given_up), misread=false)


def _unclaimed(format: Format, shown: Sequence[CutOut]) -> Iterator[tuple[str, str]]:
    """Yield each claim that the format does not make though the template writes such answers, and that in words."""
    answers: dict[str, str] = {}
    for cut_out in reversed(shown):
        if lacking := _lacking(format, reasoning=bool(cut_out.said.reasoning), calls=len(cut_out.said.calls)):
            answers[lacking] = cut_out.answer
    for lacking, answer in answers.items():
        yield lacking, f"{lacking}: is not claimed, though the template writes it: {answer!r:.200}"


def _mended(wrong: Sequence[Misread], trial: _Trial) -> str:
    """Return an answer that was misread and is read now, or is not claimed to be read any longer."""
    left = [found.cut_out for found in trial.wrong if claims_parts(trial.format, found.said)]
    return next(found.cut_out.answer for found in wrong if found.cut_out not in left)


def _trials(prober: Prober, format: Format, shown: Sequence[CutOut], wrong: Sequence[Misread]) -> Iterator[_Trial]:
    """Yield what comes of each weaker format that may mend what is wrong."""
    cut_out_wrong = [found.cut_out for found in wrong]
    read = [cut_out.said for cut_out in shown if cut_out not in cut_out_wrong]
    for weaker in _WEAKER:
        # If no answer is read at all, the texts cut out of the renderings may not be answers: that refutes nothing.
        if prober.given_up or (weaker.unread and not read) or not _is_refuted(weaker, read, wrong):
            continue
        if parts := weaker.parts(format):
            weakened, more = possible_format(format, **parts)
            trial = complete(weakened, prober.words)
            left = misread(prober, trial, shown)
            yield _Trial(cost=_cost(trial, shown, left), claim=weaker.claim, more=more, format=trial, wrong=left)


def _is_refuted(weaker: _Weaker, read: Sequence[Said], wrong: Sequence[Misread]) -> bool:
    needing = [found for found in wrong if weaker.needed_by(found.said)]
    return bool(needing) and all(map(weaker.refuted_by, needing)) and not any(map(weaker.needed_by, read))


def _cost(format: Format, shown: Sequence[CutOut], wrong: Sequence[Misread]) -> int:
    false = [found.cut_out for found in wrong]
    return sum(
        _UNCLAIMED if not claims_parts(format, cut_out.said) else _FALSE * (cut_out in false) for cut_out in shown
    )


def claims_parts(format: Format, said: Said) -> bool:
    """Return whether a format claims to read answers with the same parts as `said`."""
    return claims_to_read(format, reasoning=bool(said.reasoning), calls=len(said.calls))


def claims_to_read(format: Format, *, reasoning: bool, calls: int) -> bool:
    """Return whether a format claims to read answers with `calls` calls, and with reasoning if `reasoning`."""
    return not _lacking(format, reasoning=reasoning, calls=calls)


def _lacking(format: Format, *, reasoning: bool, calls: int) -> str:
    """Return a claim that reading such an answer needs and the format does not make; "" when it makes them all."""
    if reasoning and format.reasoning.mode is ReasoningMode.NONE:
        return _REASONING
    if calls and format.tools.mode is ToolMode.NONE:
        return _CALLS
    return "" if calls < 2 or format.tools.parallel else _SEVERAL_CALLS


def _without_wrapper(format: Format) -> dict[str, Any]:
    return {"content": Content()} if format.content.start else {}


def _without_second_wrapper(format: Format) -> dict[str, Any]:
    return {} if format.content_with_calls is None else {"content_with_calls": None}


def _without_empty(format: Format) -> dict[str, Any]:
    return {"reasoning": replace(format.reasoning, empty="")} if format.reasoning.empty else {}


def _one_call(format: Format) -> dict[str, Any]:
    return {"tools": replace(format.tools, parallel=False, separator="")} if format.tools.parallel else {}


def _no_reasoning(format: Format) -> dict[str, Any]:
    turn = replace(format.turn, prefill="", prefill_no_thinking="", reasoning_to_content="", reasoning_to_tools="")
    return {} if format.reasoning.mode is ReasoningMode.NONE else {"reasoning": Reasoning(), "turn": turn}


def _no_calls(format: Format) -> dict[str, Any]:
    return {} if format.tools.mode is ToolMode.NONE else {"tools": CallSyntax()}


_WEAKER = (
    _Weaker(
        claim="content beside calls has a wrapper of its own",
        parts=_without_second_wrapper,
        needed_by=lambda said: bool(said.content and said.calls),
    ),
    _Weaker(claim="content is wrapped", parts=_without_wrapper, needed_by=lambda said: bool(said.content)),
    _Weaker(
        claim="something is written for no reasoning", parts=_without_empty, needed_by=lambda said: not said.reasoning
    ),
    _Weaker(
        claim=_SEVERAL_CALLS,
        parts=_one_call,
        needed_by=lambda said: len(said.calls) > 1,
        refuted_by=lambda wrong: wrong.calls_are_wrong,
        unread=True,
    ),
    _Weaker(
        claim=_REASONING,
        parts=_no_reasoning,
        needed_by=lambda said: bool(said.reasoning),
        refuted_by=lambda wrong: wrong.reasoning_is_wrong,
        unread=True,
    ),
    _Weaker(
        claim=_CALLS,
        parts=_no_calls,
        needed_by=lambda said: bool(said.calls),
        refuted_by=lambda wrong: wrong.calls_are_wrong,
        unread=True,
    ),
)


_PLACE = re.compile(r"format\.(\w+)(?:\.(\w+))?")


def possible_format(format: Format, **parts: Any) -> tuple[Format, tuple[str, ...]]:
    """Return `format` with `parts` in it, as far as such a Format can exist, and sentences about what was given up.

    >>> from unrender.format import Reasoning, ReasoningMode
    >>> possible_format(Format(), reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end=" "))[0] == Format()
    True
    """
    given_up: list[str] = []
    tried: set[tuple[str, str]] = set()
    while True:
        try:
            return replace(format, **parts), tuple(given_up)
        except FormatError as error:
            parts = {**{part: getattr(format, part) for part in _parts(error.where)}, **parts}
            weaker = _weaker(parts, error.where, tried)
            if weaker == parts:
                return format, (*given_up, f"{error}, and everything found with it was given up")
            parts = weaker
            given_up.append(f"{error.where.removeprefix('format.')}: was given up: {error}")


def _parts(where: str) -> list[str]:
    found = _PLACE.match(where)
    return [found.group(1)] if found else []


def _weaker(parts: dict[str, Any], where: str, tried: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the parts without the field at `where` or, when that was `tried`, without the part that it belongs to."""
    found = _PLACE.match(where)
    if not found:
        return parts
    part, field = found.groups()
    value = parts[part]
    if field and (part, field) not in tried:
        tried.add((part, field))
        return {**parts, part: replace(value, **{field: _default(type(value), field)})}
    return {**parts, part: _default(Format, part)}


def _default(kind: Any, name: str) -> Any:
    return next(item.default for item in fields(kind) if item.name == name and item.default is not MISSING)
