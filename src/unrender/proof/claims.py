"""Weakens a Format until it holds: a claim that the template's own answers refute is given up, or gives way to a weaker one.

Strategy: answers are read with the format. Where some are misread, every weaker claim that could mend that is tried, and the
one under which the least is misread wins; it may itself be weakened. A claim that is given up costs less than one that is
false, and nothing is given up in vain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import pairwise
from typing import Any

from unrender.conversation.messages import Said
from unrender.errors import FormatError
from unrender.format import CallSyntax, Content, Format, Reasoning, ReasoningMode, ToolMode, TurnTexts
from unrender.limits import MAX_RETRIES
from unrender.nodes import Role
from unrender.proof.cut import CutOut
from unrender.proof.reading import Misread, Witness, misread, refused

_REASONING, _CALLS, _SEVERAL_CALLS = "reasoning is read", "calls are read", "several calls are read"
"""The claims without which such answers are not read at all."""
_FALSE, _UNCLAIMED, _UNWRITTEN = 10, 4, 2
"""The costs of an answer that is misread, of one that the format does not claim to read, and of one that no grammar allows."""
_JOINTS = tuple(item.name for item in fields(TurnTexts) if "_to_" in item.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A Format, and the answers that are misread with it."""

    format: Format
    given_up: tuple[str, ...] = ()
    """The claims that did not hold, in words."""
    misread: tuple[Misread, ...] = ()
    """Answers that are misread all the same, though the format claims to read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weaker:
    claim: str
    """The claim that is given up."""
    parts: Callable[[Format], dict[str, Any]]
    """The weaker parts; empty if the format doesn't have this finding."""
    needed_by: Callable[[Said], bool]
    """Only answers like these need the claim."""
    part: Role | None = None
    """Of these answers, the claim is refuted by those of which this part is misread; it holds unless all of them refute it."""
    unread: bool = False
    """Without the claim, such answers are not read at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A format, and how far it holds."""

    format: Format
    claim: str = ""
    """The claim that it does not make, and a stronger format does."""
    more: tuple[str, ...] = ()
    """Claims that cannot be without this one, in words."""
    wrong: tuple[Misread, ...]
    faults: tuple[CutOut, ...]
    """The answers that it claims to read, and for which it is wrong."""
    cost: int


def prove(witness: Witness, format: Format) -> Proof:
    """Read the template's answers with the format, and weaken the format until its claims about them are true.

    Claims that no weaker format mends are left.
    """
    way = _weaken(_reading(witness, format), lambda trial: _trials(witness, trial))
    last, claims = way[-1], [trial.claim for trial in way]
    unclaimed = (words for claim, words in _unclaimed(witness, last.format) if claim not in claims)
    false = tuple(found for found in last.wrong if found.cut_out in last.faults)
    return Proof(format=last.format, given_up=(*_given_up(way), *unclaimed), misread=false)


def writable(witness: Witness, format: Format) -> tuple[Format, tuple[str, ...]]:
    """Return a format whose grammars allow what the template writes, as far as a weaker one does; and in words what was wrong."""
    if not _unwritten(witness, format):
        return format, ()

    def weaker(trial: _Trial) -> Iterator[_Trial]:
        format = trial.format
        claims = {weaker.claim: parts for weaker in _WEAKER if (parts := weaker.parts(format))}
        # `<bot>\nHi` with thinking off and `<bot>Hi` otherwise: a grammar that demands the line break allows one of them alone.
        for joint in (name for name in _JOINTS if getattr(format.turn, name)):
            claims[joint] = {"turn": replace(format.turn, **dict[str, Any]({joint: ""}))}
        for claim, parts in claims.items():
            yield _writing(witness, *possible_format(format, **parts), claim)

    way = _weaken(_writing(witness, format), weaker)
    left = {shown.name: shown.answer for shown in way[-1].faults}
    unwritten = (
        f"{name}: is read, but no grammar allows what the template writes: {answer!r:.200}"
        for name, answer in left.items()
    )
    return way[-1].format, (*_given_up(way), *unwritten)


def _weaken(trial: _Trial, weaker: Callable[[_Trial], Iterator[_Trial]]) -> list[_Trial]:
    """Return a trial, and after it the best of those that are weaker, of those that are weaker than that, and so on."""
    way = [trial]
    # One claim at a time: what is read without it decides which of the others are refuted.
    for _ in range(MAX_RETRIES if trial.wrong or trial.faults else 0):
        best = min(weaker(way[-1]), key=lambda trial: trial.cost, default=way[-1])
        if best.cost >= way[-1].cost:
            break
        way.append(best)
    return way


def _given_up(way: Sequence[_Trial]) -> Iterator[str]:
    """Yield the dropped findings, each with an answer that was misread before and isn't now."""
    for before, after in pairwise(way):
        wrong = (*before.faults, *(found.cut_out for found in before.wrong))
        mended = next((shown for shown in wrong if shown not in after.faults), wrong[0]).answer
        yield f"{after.claim}: does not hold for what the template writes, and was given up: {mended!r:.200}"
        yield from after.more


def _reading(witness: Witness, format: Format, more: tuple[str, ...] = (), claim: str = "") -> _Trial:
    """Return how far the template's answers are read with a format."""
    format = witness.complete(format) if claim else format
    wrong = misread(witness, format)
    unclaimed = [shown for shown in witness.shown if not claims_to_read(format, shown.said)]
    faults = tuple(found.cut_out for found in wrong if found.cut_out not in unclaimed)
    # An answer that is read as something else costs more than two that are not claimed: users act on what they read.
    cost = _FALSE * len(faults) + _UNCLAIMED * len(unclaimed)
    return _Trial(format=format, claim=claim, more=more, wrong=wrong, faults=faults, cost=cost)


def _writing(witness: Witness, format: Format, more: tuple[str, ...] = (), claim: str = "") -> _Trial:
    """Return how far the template's answers are read with a format, and are what its grammars allow."""
    read = _reading(witness, format, more, claim)
    unwritten = _unwritten(witness, read.format)
    cost = read.cost + _UNWRITTEN * len({shown.name for shown in unwritten})
    return replace(read, faults=unwritten, cost=cost)


def _unwritten(witness: Witness, format: Format) -> tuple[CutOut, ...]:
    """Return the answers that the format claims to read and that its grammars do not allow."""
    claimed = tuple(shown for shown in witness.shown if claims_to_read(format, shown.said))
    return tuple(refused(replace(witness, shown=claimed), format))


def _unclaimed(witness: Witness, format: Format) -> Iterator[tuple[str, str]]:
    """Yield each claim that the format does not make though the template writes such answers, and that in words."""
    answers: dict[str, str] = {}
    for shown in reversed(witness.shown):
        if lacking := _lacking(format, shown.said):
            answers[lacking] = shown.answer
    for lacking, answer in answers.items():
        yield lacking, f"{lacking}: is not claimed, though the template writes it: {answer!r:.200}"


def _trials(witness: Witness, trial: _Trial) -> Iterator[_Trial]:
    """Yield the results for each weaker format that may help."""
    wrong = [found.cut_out for found in trial.wrong]
    read = [shown.said for shown in witness.shown if shown not in wrong]
    for weaker in _WEAKER:
        # If no answer is read at all, the texts cut out of the renderings may not be answers: that refutes nothing.
        if witness.is_over() or (weaker.unread and not read) or not _is_refuted(weaker, read, trial.wrong):
            continue
        if parts := weaker.parts(trial.format):
            yield _reading(witness, *possible_format(trial.format, **parts), weaker.claim)


def _is_refuted(weaker: _Weaker, read: Sequence[Said], wrong: Sequence[Misread]) -> bool:
    # "Several calls are read" is refuted if all answers of several calls are misread. If one of them is read, the claim holds,
    # and something else is wrong with the others.
    needing = [found for found in wrong if weaker.needed_by(found.cut_out.said)]
    refuted = all(weaker.part in (None, *found.parts) for found in needing)
    return bool(needing) and refuted and not any(map(weaker.needed_by, read))


def claims_to_read(format: Format, said: Said) -> bool:
    """Return whether a format claims to read answers with the same parts as `said`."""
    return not _lacking(format, said)


def _lacking(format: Format, said: Said) -> str:
    """Return a claim that reading such an answer needs and the format does not make; "" when it makes them all."""
    if said.reasoning and format.reasoning.mode is ReasoningMode.NONE:
        return _REASONING
    if said.calls and format.tools.mode is ToolMode.NONE:
        return _CALLS
    return "" if len(said.calls) < 2 or format.tools.parallel else _SEVERAL_CALLS


def _no_reasoning(format: Format) -> dict[str, Any]:
    turn = replace(format.turn, prefill="", prefill_no_thinking="", reasoning_to_content="", reasoning_to_tools="")
    return {} if format.reasoning.mode is ReasoningMode.NONE else {"reasoning": Reasoning(), "turn": turn}


_WEAKER = (
    _Weaker(
        claim="content beside calls has a wrapper of its own",
        parts=lambda format: {} if format.content_with_calls is None else {"content_with_calls": None},
        needed_by=lambda said: bool(said.content and said.calls),
    ),
    _Weaker(
        claim="content is wrapped",
        parts=lambda format: {"content": Content()} if format.content.start else {},
        needed_by=lambda said: bool(said.content),
    ),
    _Weaker(
        claim="something is written for no reasoning",
        parts=lambda format: {"reasoning": replace(format.reasoning, empty="")} if format.reasoning.empty else {},
        needed_by=lambda said: not said.reasoning,
    ),
    _Weaker(
        claim=_SEVERAL_CALLS,
        parts=lambda format: (
            {"tools": replace(format.tools, parallel=False, separator="")} if format.tools.parallel else {}
        ),
        needed_by=lambda said: len(said.calls) > 1,
        part=Role.CALL,
        unread=True,
    ),
    _Weaker(
        claim=_REASONING,
        parts=_no_reasoning,
        needed_by=lambda said: bool(said.reasoning),
        part=Role.REASONING,
        unread=True,
    ),
    _Weaker(
        claim=_CALLS,
        parts=lambda format: {} if format.tools.mode is ToolMode.NONE else {"tools": CallSyntax()},
        # What reads `f()` and loses every `f(a=1)` reads no calls.
        needed_by=lambda said: any(call.arguments for call in said.calls),
        part=Role.CALL,
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
            if not (found := _PLACE.match(error.where)):  # No field is to blame: nothing tells which of them is wrong.
                return format, (*given_up, f"{error}, and everything found with it was given up")
            part, field = found.groups()
            value = parts.get(part, getattr(format, part))
            # `reasoning.end`: first the field goes, and when that does not help, the part that it belongs to.
            weaker = replace(value, **{field: _default(type(value), field)}) if field else value
            if (part, field) in tried or weaker == value:
                weaker = _default(Format, part)
            tried.add((part, field))
            if weaker == value:
                return format, (*given_up, f"{error}, and everything found with it was given up")
            parts = {**parts, part: weaker}
            given_up.append(f"{error.where.removeprefix('format.')}: was given up: {error}")


def _default(kind: Any, name: str) -> Any:
    return next(item.default for item in fields(kind) if item.name == name and item.default is not MISSING)
