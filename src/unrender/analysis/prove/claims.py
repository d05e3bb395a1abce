"""Weakens a Format until it holds: a claim that the template's own answers refute is given up, or gives way to a weaker one.

Strategy: answers are written again from the format (`find_doubts`), and read with it (`prove`). Where answers are misread,
every weaker claim that could mend that is tried, and the one under which the least is misread wins; it may itself be
weakened. A claim that is given up costs less than one that is false, and nothing is given up in vain. In the end,
`with_headers` lets answers follow every prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from unrender.analysis.additions import complete
from unrender.analysis.ask.answers import Answers, Turns
from unrender.analysis.ask.probes import Prober, carries_needle
from unrender.analysis.find.turn_frame import TurnFrame, until_sentinel
from unrender.analysis.prove.readback import SAID, CutOut, Misread, ProbeAnswer, cut_outs, misread, refused
from unrender.errors import FormatError, GrammarError
from unrender.format import CallSyntax, Content, Format, Reasoning, ReasoningMode, ToolMode, TurnTexts
from unrender.limits import MOST_REFUTED_CLAIMS
from unrender.messages.wire import Request, Tool
from unrender.parser.prompt_tail import after_header, begun_by
from unrender.values.notations import encode_answer

_REASONING, _CALLS, _SEVERAL_CALLS = "reasoning is read", "calls are read", "several calls are read"
"""The claims without which such answers are not read at all."""
_FALSE, _UNCLAIMED, _UNWRITTEN = 10, 4, 2
"""What an answer costs that is misread, one that the format does not claim to read, and one that no grammar allows."""
_JOINTS = tuple(item.name for item in fields(TurnTexts) if "_to_" in item.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A Format, and the answers that are misread with it."""

    format: Format
    given_up: tuple[str, ...] = ()
    """The claims that did not hold, in words."""
    misread: tuple[Misread, ...] = ()
    """What is misread all the same, though the format claims to read it."""
    shown: tuple[CutOut, ...] = ()
    """The answers that were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weaker:
    claim: str
    """What is given up."""
    parts: Callable[[Format], dict[str, Any]]
    """The weaker parts; none where the format does not make the claim."""
    needed_by: Callable[[ProbeAnswer], bool]
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
    # One claim at a time: what is read without it decides which of the others are refuted.
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
    return Proof(format=format, given_up=tuple(given_up), misread=false, shown=shown)


def writable(prober: Prober, format: Format, shown: Sequence[CutOut]) -> tuple[Format, tuple[str, ...]]:
    """Return a format whose grammars allow what the template writes, as far as a weaker one does; and in words what was wrong."""
    given_up: list[str] = []
    unwritten = _unwritten(format, shown)
    for _ in range(MOST_REFUTED_CLAIMS if unwritten else 0):
        # `<bot>\nHi` with thinking off and `<bot>Hi` otherwise: a grammar that demands the line break allows one of them alone.
        weaker = [(weaker.claim, weaker.parts(format)) for weaker in _WEAKER]
        weaker += [(name, _without_joint(format, name)) for name in _JOINTS]
        trials = [
            (claim, complete(possible_format(format, **parts)[0], prober.words)) for claim, parts in weaker if parts
        ]
        claim, best = min([("", format), *trials], key=lambda trial: _cost_of_writing(prober, trial[1], shown))
        if not claim:
            break
        format, left = best, _unwritten(best, shown)
        mended, *_ = (*(answer for name, answer in unwritten.items() if name not in left), *unwritten.values())
        given_up.append(f"{claim}: does not hold for what the template writes, and was given up: {mended!r:.200}")
        unwritten = left
    for name, answer in unwritten.items():
        given_up.append(f"{name}: is read, but no grammar allows what the template writes: {answer!r:.200}")
    return format, tuple(given_up)


def _cost_of_writing(prober: Prober, format: Format, shown: Sequence[CutOut]) -> int:
    return _cost(format, shown, misread(prober, format, shown)) + _UNWRITTEN * len(_unwritten(format, shown))


def _unwritten(format: Format, shown: Sequence[CutOut]) -> dict[str, str]:
    """Return the answers that the format claims to read and that its grammars do not allow, by what they say."""
    claimed = [cut_out for cut_out in shown if claims_parts(format, cut_out.said)]
    return {cut_out.said.name: cut_out.answer for cut_out in refused(format, claimed)}


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
        if prober.spent.is_over or (weaker.unread and not read) or not _is_refuted(weaker, read, wrong):
            continue
        if parts := weaker.parts(format):
            weakened, more = possible_format(format, **parts)
            trial = complete(weakened, prober.words)
            left = misread(prober, trial, shown)
            yield _Trial(cost=_cost(trial, shown, left), claim=weaker.claim, more=more, format=trial, wrong=left)


def _is_refuted(weaker: _Weaker, read: Sequence[ProbeAnswer], wrong: Sequence[Misread]) -> bool:
    # "Several calls are read" is refuted if all answers of several calls are misread. If one of them is read, the claim holds,
    # and something else is wrong with the others.
    needing = [found for found in wrong if weaker.needed_by(found.said)]
    return bool(needing) and all(map(weaker.refuted_by, needing)) and not any(map(weaker.needed_by, read))


def _cost(format: Format, shown: Sequence[CutOut], wrong: Sequence[Misread]) -> int:
    # An answer that is read as something else costs more than two that are not claimed: users act on what they read.
    false = [found.cut_out for found in wrong]
    return sum(
        _UNCLAIMED if not claims_parts(format, cut_out.said) else _FALSE * (cut_out in false) for cut_out in shown
    )


def claims_to_read(format: Format, *, reasoning: bool, calls: int) -> bool:
    """Return whether a format claims to read answers with `calls` calls, and with reasoning if `reasoning`."""
    return not _lacking(format, reasoning=reasoning, calls=calls)


def claims_parts(format: Format, said: ProbeAnswer) -> bool:
    """Return whether a format claims to read answers with the same parts as `said`."""
    return claims_to_read(format, reasoning=bool(said.reasoning), calls=len(said.calls))


def _lacking(format: Format, *, reasoning: bool, calls: int) -> str:
    """Return a claim that reading such an answer needs and the format does not make; "" when it makes them all."""
    if reasoning and format.reasoning.mode is ReasoningMode.NONE:
        return _REASONING
    if calls and format.tools.mode is ToolMode.NONE:
        return _CALLS
    return "" if calls < 2 or format.tools.parallel else _SEVERAL_CALLS


def _without_empty(format: Format) -> dict[str, Any]:
    return {"reasoning": replace(format.reasoning, empty="")} if format.reasoning.empty else {}


def _without_joint(format: Format, name: str) -> dict[str, Any]:
    changed: dict[str, Any] = {name: ""}
    return {"turn": replace(format.turn, **changed)} if getattr(format.turn, name) else {}


def _one_call(format: Format) -> dict[str, Any]:
    return {"tools": replace(format.tools, parallel=False, separator="")} if format.tools.parallel else {}


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
        parts=lambda format: {} if format.tools.mode is ToolMode.NONE else {"tools": CallSyntax()},
        # What reads `f()` and loses every `f(a=1)` reads no calls.
        needed_by=lambda said: any(call.arguments for call in said.calls),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """An answer that the format does not reproduce."""

    shape: str
    """What the answer consists of, e.g. `content and calls`."""
    rendered: str
    rebuilt: str

    def __str__(self) -> str:
        return f"{self.shape}: rendered as {self.rendered!r:.200}, understood as {self.rebuilt!r:.200}"


def find_doubts(answers: Answers, frame: TurnFrame, fmt: Format) -> tuple[Doubt, ...]:
    """Return the shapes that the template renders and the format does not reproduce, white space apart."""
    doubts: list[Doubt] = []
    for said in SAID:
        body = getattr(answers, said.shape)
        parts = (said.content, said.reasoning, *(call.name for call in said.calls))
        if body is None or not all(part in body for part in parts):
            continue
        body = until_sentinel(body).removesuffix(frame.appended)
        made = [(call.name, call.arguments, call.id) for call in said.calls]
        rebuilt = encode_answer(fmt, content=said.content, reasoning=said.reasoning, calls=made)
        # `<t></t>Hi` beside `<call>…`: some templates write the empty form of reasoning before one part only; readers take it
        # as optional.
        # The history may leave out what every prompt begins.
        options = (rebuilt, rebuilt.removeprefix(fmt.reasoning.empty), rebuilt.removeprefix(fmt.turn.prefill))
        ends = ("", fmt.turn.end, *fmt.turn.ends)
        if _squeeze(body) not in [_squeeze(option + end) for option in options for end in ends]:
            doubts.append(Doubt(shape=said.name, rendered=body, rebuilt=rebuilt))
    return tuple(doubts)


def _squeeze(text: str) -> str:
    return "".join(text.split())


def calls_are_refuted(doubts: Sequence[Doubt], fmt: Format) -> bool:
    """Return whether neither one call nor two can be written again: the derived syntax is then worthless."""
    # Calls in a row may differ from one alone, as in `<c>f</c>` and `[f, g]`: one of the two is enough to go on.
    refuted = {doubt.shape for doubt in doubts}
    needed = {"one call", "two calls"} if fmt.tools.parallel else {"one call"}
    return fmt.tools.mode is not ToolMode.NONE and needed <= refuted


_REQUESTS = (Request(), Request(tools=(Tool(name="f"),)))


def with_headers(format: Format, turns: Turns) -> tuple[Format, tuple[str, ...]]:
    """Return a format with which answers can be written after every prompt, and in words what it claims no more."""
    given_up: list[str] = []
    for prompt, bare in _prompts(turns):
        begun = begun_by(format, prompt, lambda bare=bare: bare)  # type: ignore[misc]
        # The prompt ends in `<bot>final:` and answers begin with `<bot>` alone: the longer text is one more header.
        cut = _header_in(format, begun)
        header = _last_header(format, prompt.removesuffix(begun)) + begun[:cut]
        if not cut or carries_needle(header):
            continue
        changed: dict[str, Any] = {"headers": (*format.turn.headers, header)}
        for name in ("prefill", "prefill_no_thinking"):
            known = getattr(format.turn, name)
            if known.strip() and begun.rstrip().endswith(known.strip()):
                changed[name] = begun[cut:]
            elif cut < len(begun):  # `<think><think></think>` with thinking off begins with the same text.
                changed[name] = known.removeprefix(begun[:cut])
        format, more = possible_format(format, turn=replace(format.turn, **changed))
        if begun[:cut].strip():
            given_up.append(
                f"the prompt begins answers with {begun[:cut]!r:.200}, as no answer does: it counts as their header"
            )
        given_up += more
    return format, tuple(given_up)


def _prompts(turns: Turns) -> Iterator[tuple[str, str | None]]:
    """Yield what follows an input in the prompt, and without one."""
    for asked in (turns.question, turns.result):
        if asked is not None:
            pairs = ((asked.prompt, asked.bare), (asked.prompt_no_thinking, asked.bare_no_thinking))
            yield from ((prompt, bare) for prompt, bare in pairs if prompt is not None)


def _header_in(format: Format, begun: str) -> int:
    """Return the length of the part that no answer writes: up to the opener of reasoning, or else all of it."""
    opener = format.reasoning.start.strip()
    opened = begun.count(opener) if opener else 0
    # `<think><think>`: a thought is opened once, so the first is not the answer's.
    starts = [*([0] if opened < 2 else []), *([begun.rfind(opener)] if opened else []), len(begun)]
    return next(start for start in starts if not begun[start:].strip() or _is_written(format, begun[start:]))


def _is_written(format: Format, begun: str) -> bool:
    """Return whether answers with and without tools may begin so."""
    from unrender.dialects.remainder import Remainder  # noqa: PLC0415 -- wanted for few templates

    requests = _REQUESTS if format.tools.mode is not ToolMode.NONE else _REQUESTS[:1]
    try:
        return all(Remainder(format=format, request=request, begun=begun).begins for request in requests)
    except GrammarError:  # No grammar can be written, whatever the prompt begins.
        return True


def _last_header(format: Format, prompt: str) -> str:
    """Return the header with which a prompt ends, with the layout after it."""
    written = after_header(format, prompt)
    cores = [header.strip() for header in format.turn.headers if header.strip() and header.strip() in prompt]
    if written is None or not cores:
        return ""
    ends = {prompt.rfind(core) + len(core): core for core in sorted(cores, key=len)}
    core = ends[max(ends)]
    return prompt[prompt.rfind(core) :]
