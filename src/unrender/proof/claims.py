"""Weakens a Format by dropping or replacing claims that the template's own answers refute.

Strategy: the template's answers are parsed with the format. If any answers are misread, every weaker format that may help is tried, and the
one with the lowest cost is used. The search is repeated from that format, as long as the cost falls. A dropped claim costs less than a
false one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

from unrender.conversation.messages import Said
from unrender.errors import FormatError
from unrender.format import CallSyntax, Content, Format, Reasoning, ReasoningMode, ToolMode, TurnTexts
from unrender.limits import MAX_RETRIES
from unrender.nodes import Role
from unrender.proof import CutOut, Misread, Witness, misread, refused

_REASONING, _CALLS, _SEVERAL_CALLS = "reasoning is read", "calls are read", "several calls are read"
"""The claims that a format can parse reasoning, one call, and several calls."""
_FALSE, _UNCLAIMED, _UNWRITTEN = 10, 4, 2
"""Costs of a misread answer, an answer that the format doesn't claim to read, and an answer that no grammar allows."""
_JOINTS = tuple(item.name for item in fields(TurnTexts) if "_to_" in item.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A Format and the answers that it misreads."""

    format: Format
    given_up: tuple[str, ...] = ()
    """Messages about claims that were dropped because they don't hold."""
    misread: tuple[Misread, ...] = ()
    """Answers that are misread although the format claims to read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weaker:
    claim: str
    """The claim that is dropped."""
    parts: Callable[[Format], dict[str, Any]]
    """Function that returns the parts of a format that change if the claim is dropped. Empty if the format doesn't make the claim."""
    needed_by: Callable[[Said], bool]
    """Function that returns True for answers that can't be read unless the claim is true."""
    part: Role | None = None
    """The part of a message that the claim is about, or None for any part. The claim is refuted only if this part is misread in all answers
    that need the claim.
    """
    unread: bool = False
    """True if a format without the claim doesn't parse answers that need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """A format, and its results on the template's answers."""

    format: Format
    claim: str = ""
    """The claim that was dropped to get this format; empty for the original format."""
    more: tuple[str, ...] = ()
    """Messages about other claims that were dropped together with this one."""
    wrong: tuple[Misread, ...]
    faults: tuple[CutOut, ...]
    """Answers that the format claims to read, but that are misread or not allowed by its grammars."""
    cost: int


def prove(witness: Witness, format: Format) -> Proof:
    """Parse the template's answers with the format, and drop claims that these answers refute.

    A false claim is kept if no weaker format helps.
    """
    way = _weaken(_reading(witness, format), lambda trial: _trials(witness, trial))
    last, claims = way[-1], [trial.claim for trial in way]
    unclaimed = (words for claim, words in _unclaimed(witness, last.format) if claim not in claims)
    false = tuple(found for found in last.wrong if found.cut_out in last.faults)
    return Proof(format=last.format, given_up=(*_given_up(way), *unclaimed), misread=false)


def writable(witness: Witness, format: Format) -> tuple[Format, tuple[str, ...]]:
    """Return a format whose grammars allow as many of the template's answers as possible, and messages about the dropped claims."""
    if not _unwritten(witness, format):
        return format, ()

    def weaker(trial: _Trial) -> Iterator[_Trial]:
        format = trial.format
        claims = {weaker.claim: parts for weaker in _WEAKER if (parts := weaker.parts(format))}
        # If answers are `<bot>\nHi` with thinking off and `<bot>Hi` otherwise, a grammar that requires the line break rejects one of them.
        # Therefore try the format without each joint.
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
    """Return `trial`, followed by trials with one more claim dropped each, as long as the cost falls."""
    way = [trial]
    # Drop one claim at a time, because the weaker format may read answers that refute or confirm other claims.
    for _ in range(MAX_RETRIES if trial.wrong or trial.faults else 0):
        best = min(weaker(way[-1]), key=lambda trial: trial.cost, default=way[-1])
        if best.cost >= way[-1].cost:
            break
        way.append(best)
    return way


def _given_up(way: Sequence[_Trial]) -> Iterator[str]:
    """Yield a message for each dropped claim, with an answer that refutes it."""
    for before, after in pairwise(way):
        wrong = (*before.faults, *(found.cut_out for found in before.wrong))
        mended = next((shown for shown in wrong if shown not in after.faults), wrong[0]).answer
        yield f"{after.claim}: does not hold for what the template writes, and was given up: {mended!r:.200}"
        yield from after.more


def _reading(witness: Witness, format: Format, more: tuple[str, ...] = (), claim: str = "") -> _Trial:
    """Parse the template's answers with a format, and return the result as a trial."""
    format = witness.complete(format) if claim else format
    wrong = misread(witness, format)
    unclaimed = [shown for shown in witness.shown if not claims_to_read(format, shown.said)]
    faults = tuple(found.cut_out for found in wrong if found.cut_out not in unclaimed)
    # A misread answer costs more than two that the format doesn't claim to read, because users act on parsed answers.
    cost = _FALSE * len(faults) + _UNCLAIMED * len(unclaimed)
    return _Trial(format=format, claim=claim, more=more, wrong=wrong, faults=faults, cost=cost)


def _writing(witness: Witness, format: Format, more: tuple[str, ...] = (), claim: str = "") -> _Trial:
    """Parse the template's answers, match them against the format's grammars, and return the result as a trial."""
    read = _reading(witness, format, more, claim)
    unwritten = _unwritten(witness, read.format)
    cost = read.cost + _UNWRITTEN * len({shown.name for shown in unwritten})
    return replace(read, faults=unwritten, cost=cost)


def _unwritten(witness: Witness, format: Format) -> tuple[CutOut, ...]:
    """Return the answers that the format claims to read but its grammars don't allow."""
    claimed = tuple(shown for shown in witness.shown if claims_to_read(format, shown.said))
    return tuple(refused(replace(witness, shown=claimed), format))


def _unclaimed(witness: Witness, format: Format) -> Iterator[tuple[str, str]]:
    """Yield claims that the template's answers need but the format doesn't make, each with a message."""
    answers: dict[str, str] = {}
    for shown in reversed(witness.shown):
        if lacking := _lacking(format, shown.said):
            answers[lacking] = shown.answer
    for lacking, answer in answers.items():
        yield lacking, f"{lacking}: is not claimed, though the template writes it: {answer!r:.200}"


def _trials(witness: Witness, trial: _Trial) -> Iterator[_Trial]:
    """Yield a trial for each weaker format that may read more answers correctly."""
    wrong = [found.cut_out for found in trial.wrong]
    read = [shown.said for shown in witness.shown if shown not in wrong]
    for weaker in _WEAKER:
        # If no answer is read correctly, the texts cut out of the renderings may not be answers, so they refute nothing.
        if witness.is_over() or (weaker.unread and not read) or not _is_refuted(weaker, read, trial.wrong):
            continue
        if parts := weaker.parts(trial.format):
            yield _reading(witness, *possible_format(trial.format, **parts), weaker.claim)


def _is_refuted(weaker: _Weaker, read: Sequence[Said], wrong: Sequence[Misread]) -> bool:
    # The claim "several calls are read" is refuted if all answers with several calls are misread. If one of them is read correctly, the
    # claim is true, and the others are misread for a different reason.
    needing = [found for found in wrong if weaker.needed_by(found.cut_out.said)]
    refuted = all(weaker.part in (None, *found.parts) for found in needing)
    return bool(needing) and refuted and not any(map(weaker.needed_by, read))


def claims_to_read(format: Format, said: Said) -> bool:
    """Return whether a format claims to read answers that have the same parts as `said`."""
    return not _lacking(format, said)


def _lacking(format: Format, said: Said) -> str:
    """Return a claim that answers like `said` need and the format doesn't make, or "" if the format makes all these claims."""
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
        # If a format reads `f()` but not `f(a=1)`, the claim that it reads calls is dropped.
        needed_by=lambda said: any(call.arguments for call in said.calls),
        part=Role.CALL,
        unread=True,
    ),
)


_PLACE = re.compile(r"format\.(\w+)(?:\.(\w+))?")


def possible_format(format: Format, **parts: Any) -> tuple[Format, tuple[str, ...]]:
    """Return a valid Format with as many of `parts` as possible, and messages about the dropped parts.

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
            if not (found := _PLACE.match(error.where)):  # If the error names no field, the invalid part is unknown.
                return format, (*given_up, f"{error}, and everything found with it was given up")
            part, field = found.groups()
            value = parts.get(part, getattr(format, part))
            # Reset the field first, e.g. `reasoning.end`. If that doesn't help, reset the part that contains it.
            weaker = replace(value, **{field: getattr(type(value)(), field)}) if field else value
            if (part, field) in tried or weaker == value:
                weaker = getattr(Format(), part)
            tried.add((part, field))
            if weaker == value:
                return format, (*given_up, f"{error}, and everything found with it was given up")
            parts = {**parts, part: weaker}
            given_up.append(f"{error.where.removeprefix('format.')}: was given up: {error}")
