"""Finds the causes of trouble in the evidence. `causes.toml` is the table of all causes, worst first, each with its explanation and fix.

Rules: each function returns the evidence for one cause, or "". A cause needs several answers, or a difference that no healthy engine shows.
An answer that a cause of the server explains isn't held against the model.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from unrender.probe.answers import Answer
from unrender.probe.evidence import Evidence, Served
from unrender.probe.server_causes import FEW, SERVER_CAUSES, SHARE, count_of, cut_short, of_kind, parsed, quoted
from unrender.probe.tasks import COUNTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause of trouble, with its evidence and what to do."""

    name: str
    level: str
    """"error" if calls get lost or wrong, "warning" if the model is weak."""
    what: str
    evidence: str
    fix: str


def find_causes(found: Evidence) -> tuple[Cause, ...]:
    """Return the causes that the evidence shows, worst first."""
    known: dict[str, str] = {}

    def evidence(name: str) -> str:
        if name not in known:
            known[name] = "" if any(map(evidence, UNLESS.get(name, ()))) else FINDERS[name](found)
        return known[name]

    return tuple(Cause(**entry, evidence=evidence(entry["name"])) for entry in table() if evidence(entry["name"]))


@cache
def table() -> Sequence[Mapping[str, str]]:
    """Return the table of all causes."""
    text = files(__package__).joinpath("causes.toml").read_text(encoding="utf-8")
    causes: Sequence[Mapping[str, str]] = tomllib.loads(text)["causes"]
    return causes


# Calls.


def _other_syntax(found: Evidence) -> str:
    calling = found.calling
    other = of_kind(calling, "other")
    if len(other) < FEW or len(other) < len(calling) * SHARE / 2:
        return ""
    name, times = Counter(answer.detail for answer in other).most_common(1)[0]
    return f"{count_of(other, calling)} write calls in another syntax, {times} of them as {name}{_under_grammar(found)}"


def _reasoning_unclosed(found: Evidence) -> str:
    open_ = [answer for answer in found.answers if "reasoning-not-closed" in answer.hints]
    return (
        f"{count_of(open_, found.answers)} end inside reasoning"
        if len(open_) > max(FEW, len(found.answers) * SHARE)
        else ""
    )


def _broken_calls(found: Evidence) -> str:
    calling, cut = found.calling, cut_short(found)
    broken = [
        answer
        for answer in of_kind(calling, "broken")
        if answer not in cut and "reasoning-not-closed" not in answer.hints
    ]
    if len(broken) < FEW:
        return ""
    return f"{count_of(broken, calling)}: {broken[0].detail}{_under_grammar(found)}{_speeds(found)}"


def _under_grammar(found: Evidence) -> str:
    right = [answer for answer in found.bound if answer.right]
    return f"; under a grammar {count_of(right, found.bound)} are right" if found.bound else ""


def _speeds(found: Evidence) -> str:
    """Describe the cost of a grammar in tokens per second."""
    free = rate_of([answer for answer in found.answers if any(answer.task is it.task for it in found.bound)])
    bound = rate_of(found.bound)
    return f", at {bound:.1f} instead of {free:.1f} tokens per second" if free and bound else ""


def rate_of(answers: Iterable[Answer]) -> float:
    """Return the generated tokens per second, including the time for prompts; 0 if unknown."""
    counted = [(answer.tokens, answer.seconds) for answer in answers if answer.usage]
    return sum(tokens for tokens, _ in counted) / (sum(seconds for _, seconds in counted) or 1.0)


def _own_parser(found: Evidence) -> str:
    served = [it for it in found.served if not it.error and it.answer.calls]
    wrong = [it for it in served if _made(it) != [(call.name, call.arguments) for call in it.answer.calls]]
    # An answer of another length is another answer of the model.
    wrong = [it for it in wrong if not it.generated or abs(it.generated - it.answer.tokens) <= 1]
    wrong += [it for it in served if it.defect and it not in wrong]
    if len(wrong) < min(FEW, sum(bool(it.defect) for it in wrong) or FEW) or len(wrong) * 2 < len(served) * SHARE:
        return ""
    lost, first = [it for it in wrong if not it.calls], wrong[0]
    came = first.defect or f"{len(first.calls)} calls, {quoted(str(_made(first)))}"
    return f"{len(wrong)} of {len(served)} answers with calls come back wrong, {len(lost)} of them without any; e.g. {came}"


def _made(served: Served) -> list[tuple[str, Any]]:
    return [(name, parsed(text)) for name, text in served.calls]


def _breaks_with_tools(found: Evidence) -> str:
    shares = {
        count: sum(it.right for it in those) / len(those)
        for count in COUNTS
        if len(
            those := [it for it in found.answers if it.task.count == count and not it.error and not it.task.variables]
        )
        > 4
    }
    if len(shares) < 2:
        return ""
    best = max(shares.values())
    first = next((count for count in shares if all(shares[it] < best - 1 / 3 for it in shares if it >= count)), None)
    if first is None:
        return ""
    told = ", ".join(f"{share:.0%} with {count}" for count, share in shares.items())
    return f"from {first} tools on: {told} are right"


def _calls_missing(found: Evidence) -> str:
    calling = found.calling
    silent = [answer for answer in of_kind(calling, "silent") if answer.text.strip() and not answer.is_cut]
    ended = [
        answer for answer in silent if answer not in cut_short(found) and "reasoning-not-closed" not in answer.hints
    ]
    return count_of(ended, calling) if len(ended) > max(FEW, len(calling) * SHARE) else ""


def _calls_uninvited(found: Evidence) -> str:
    free = [answer for answer in found.answers if not answer.task.wanted and not answer.error]
    called = of_kind(free, "uninvited")
    again = [answer for answer in called if answer.task.wish == "result"]
    more = f", {len(again)} of them after a result" if again else ""
    return count_of(called, free, f" without need contain calls{more}") if len(called) >= FEW else ""


def _single_calls(found: Evidence) -> str:
    several = [answer for answer in found.calling if answer.task.wish == "several"]
    single = [answer for answer in several if len(answer.calls) == 1]
    return count_of(single, several, " contain one call instead of two") if len(single) > FEW else ""


def _calls_wrong(found: Evidence) -> str:
    called = [answer for answer in found.calling if answer.calls and not answer.altered]
    wrong = [answer for answer in called if not answer.right and len(answer.calls) >= len(answer.task.wanted)]
    if len(wrong) <= max(FEW, len(called) * SHARE):
        return ""
    call = wrong[0].calls[0]
    return f"{count_of(wrong, called)}, e.g. {quoted(f'{call.name}({call.arguments_json})')} for {wrong[0].task.messages[0]['content']!r}"


def _thinking_matters(found: Evidence) -> str:
    off = [answer for answer in found.answers if answer.task.variables and not answer.error]
    names = {answer.task.name for answer in off}
    on = [
        it for it in found.answers
        if it.task.name in names and it.task.count == 5 and not it.task.variables and not it.error
    ]  # fmt: skip
    if not (off and on):
        return ""
    rights = [sum(answer.right for answer in answers) / len(answers) for answers in (on, off)]
    told = f"{rights[0]:.0%} with thinking, {rights[1]:.0%} without"
    return told if abs(rights[0] - rights[1]) > 1 / 3 else ""


def _calls_repaired(found: Evidence) -> str:
    calling = found.calling
    repaired = [answer for answer in of_kind(calling, "repaired") if answer not in cut_short(found)]
    if len(repaired) < FEW:
        return ""
    what, times = Counter(answer.detail for answer in repaired).most_common(1)[0]
    return f"{count_of(repaired, calling)}; in {times}, {what} is missing or damaged"


def _unsteady(found: Evidence) -> str:
    # The first answer may differ from the others in its last bits, because the engine hadn't cached its prompt.
    later = sorted({answer.text for answer in found.repeats[1:]})
    return (
        f"{len(later)} different answers to the same request, e.g. {' and '.join(map(quoted, later[:2]))}"
        if later[1:]
        else ""
    )


_TEXT = ("special-tokens-stripped", "text-altered", "token-limit")
UNLESS: Mapping[str, Sequence[str]] = {
    "context-too-short": ("stale-answers",),
    "prompt-changed": ("stale-answers", "context-too-short"),
    "begin-token-doubled": ("stale-answers",),
    "other-template": ("stale-answers", "begin-token-doubled"),
    "text-removed": ("special-tokens-stripped",),
    "token-limit": ("context-too-short",),
    "runs-on": ("token-limit", "foreign-template"),
    "other-syntax": ("special-tokens-stripped",),
    "broken-calls": _TEXT,
    "calls-missing": (*_TEXT, "foreign-template"),
    "calls-wrong": ("stale-answers",),
}
"""Causes that explain another cause, by the other's name, which isn't reported then."""
FINDERS: Mapping[str, Callable[[Evidence], str]] = {
    **SERVER_CAUSES,
    "other-syntax": _other_syntax,
    "reasoning-unclosed": _reasoning_unclosed,
    "broken-calls": _broken_calls,
    "own-parser": _own_parser,
    "thinking-matters": _thinking_matters,
    "breaks-with-tools": _breaks_with_tools,
    "calls-missing": _calls_missing,
    "calls-uninvited": _calls_uninvited,
    "single-calls": _single_calls,
    "calls-wrong": _calls_wrong,
    "calls-repaired": _calls_repaired,
    "unsteady": _unsteady,
}
"""The function for each cause, by name."""


_PARTS = {"one": "one call", "several": "several calls", "result": "after a result", "none": "no call"}


def parts(found: Evidence) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Yield the number of answers of each kind, by part of the tasks: a name, all answers, and the answers by kind and "right"."""
    groups: dict[str, list[Answer]] = {}
    for answer in found.answers:
        off = ["without thinking"] if answer.task.variables else []
        for name in (f"{answer.task.count} tools", _PARTS[answer.task.wish], *off):
            groups.setdefault(name, []).append(answer)
    for name, answers in groups.items():
        counted = Counter(str(answer.kind) for answer in answers)
        yield name, len(answers), {**counted, "right": sum(answer.right for answer in answers)}
