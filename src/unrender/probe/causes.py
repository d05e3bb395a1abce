"""Finds the causes of trouble in the evidence. `causes.toml` is the table of all causes, worst first, each with its explanation and fix.

Rules: each function returns the evidence for one cause, or "". A cause needs several answers, or a difference that no healthy engine shows.
An answer that a cause of the server explains isn't held against the model.
"""

from __future__ import annotations

import json
import statistics
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from os.path import commonprefix
from typing import Any

from unrender.probe.answers import Answer, Kind
from unrender.probe.evidence import Evidence, Rendering, Served
from unrender.probe.tasks import COUNTS

_FEW = 2
"""Minimum number of answers that show a cause."""
_SHARE = 0.2
"""Minimum share of the answers that show a weakness of the model."""
_SHOWN = 40
"""Maximum number of characters that are quoted."""


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
    shown = ((entry, FINDERS[entry["name"]](found)) for entry in table())
    return tuple(Cause(**entry, evidence=evidence) for entry, evidence in shown if evidence)


@cache
def table() -> Sequence[Mapping[str, str]]:
    """Return the table of all causes."""
    text = files(__package__).joinpath("causes.toml").read_text(encoding="utf-8")
    causes: Sequence[Mapping[str, str]] = tomllib.loads(text)["causes"]
    return causes


def _of(answers: Iterable[Answer], among: Sequence[Answer], more: str = "") -> str:
    return f"{len(list(answers))} of {len(among)} answers{more}"


def _calling(found: Evidence) -> list[Answer]:
    """Return the answers that should contain calls, without errors."""
    return [answer for answer in found.answers if answer.task.wanted and not answer.error]


def _kinds(answers: Iterable[Answer], *kinds: Kind) -> list[Answer]:
    return [answer for answer in answers if answer.kind in kinds]


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


# Prompts.


def _is_too_long(answer: Answer) -> bool:
    said = answer.error.casefold()
    return any(word in said for word in ("context", "too long", "maximum", "exceed")) and answer.status != 429


def _engine_fails(found: Evidence) -> str:
    failed = [answer for answer in found.answers if answer.error and not _is_too_long(answer)]
    if len(failed) < _FEW:
        return ""
    error, times = Counter(answer.error for answer in failed).most_common(1)[0]
    return f"{_of(failed, found.answers)} are errors, {times} of them {_quoted(error)}"


def _context_too_short(found: Evidence) -> str:
    refused = [answer for answer in found.answers if answer.error and _is_too_long(answer)]
    if refused:
        counts = sorted({answer.task.count for answer in refused})
        size = f" of {found.context} tokens" if found.context else ""
        return f"requests with {_listed(counts)} tools don't fit into the context{size}: {_quoted(refused[0].error)}"
    cut = [answer for answer in found.answers if _lost(answer) > _FEW]
    whole = [answer for answer in found.answers if _read(answer) and abs(_lost(answer)) <= _FEW]
    # Only long prompts are cut, so every prompt that is read completely is shorter than what is read of them.
    if not cut or not whole or max(map(_sent, whole)) > min(map(_read, cut)) + _FEW:
        return ""
    worst = max(cut, key=_lost)
    return f"the engine read {_read(worst)} of the {_sent(worst)} tokens of a prompt with {worst.task.count} tools"


def _sent(answer: Answer) -> int:
    return answer.sent or 0


def _read(answer: Answer) -> int:
    return (answer.usage.prompt_tokens or 0) if answer.usage else 0


def _lost(answer: Answer) -> int:
    """Return the number of tokens in the prompt that the engine didn't read; negative if it read more; 0 if unknown."""
    return _sent(answer) - _read(answer) if _sent(answer) and _read(answer) else 0


def _prompt_changed(found: Evidence) -> str:
    odd = [answer for answer in found.answers if abs(_lost(answer)) > _FEW]
    if len(odd) < _FEW or _context_too_short(found):
        return ""
    return f"in {_of(odd, found.answers)}, e.g. {_read(odd[0])} tokens instead of {_sent(odd[0])}"


def _begin_token_doubled(found: Evidence) -> str:
    if found.doubled:
        return "the engine counts one token more than the prompt has, although the prompt begins with the token"
    more = [it for it in found.served if it.tokens and it.tokens - _read(it.answer) == 1]
    bos = found.template._with_tools.bos_token
    if bos and more and len(more) == len([it for it in found.served if it.tokens]) and not _differing(found):
        return (
            f"its own endpoint reads one token more than the prompt has in {len(more)} of {len(found.served)} requests"
        )
    return ""


def _differing(found: Evidence) -> list[Rendering]:
    return [it for it in found.renderings if it.theirs != it.ours]


def _other_template(found: Evidence) -> str:
    differing = _differing(found)
    if differing:
        rendering = differing[0]
        where = f"{len(differing)} of {len(found.renderings)} conversations differ; the one {rendering.name}"
        if rendering.theirs is None:
            return f"{where} is rejected: {_quoted(rendering.error)}"
        at = len(commonprefix([rendering.ours, rendering.theirs]))
        ours, theirs = rendering.ours[at:], rendering.theirs[at:]
        return f"{where} at character {at}: {_quoted(theirs)} instead of {_quoted(ours)}"
    other = [it for it in found.served if it.tokens and _read(it.answer) and abs(it.tokens - _read(it.answer)) > _FEW]
    if found.renderings or len(other) < _FEW:
        return ""
    return f"in {len(other)} of {len(found.served)} requests, e.g. {other[0].tokens} tokens instead of {_read(other[0].answer)}"


def _prompt_echoed(found: Evidence) -> str:
    echoed = [answer for answer in found.answers if answer.turn.prompt[-2 * _SHOWN :] in answer.text]
    return f"in {_of(echoed, found.answers)}" if len(echoed) >= _FEW else ""


def _stale_answers(found: Evidence) -> str:
    said = Counter(answer.text for answer in _calling(found) if answer.text.strip() and not _is_missing(answer))
    text, times = next(iter(said.items()), ("", 0))
    asked = {answer.task.name for answer in found.answers if answer.text == text}
    # A real model doesn't give four tasks the same call.
    if len(said) != 1 or len(asked) < 4 or not any(answer.calls for answer in found.answers):
        return ""
    return f"{times} answers to {len(asked)} different tasks are {_quoted(text)}"


# Text.


def _special_tokens_stripped(found: Evidence) -> str:
    tokens = found.template.format.preserved_tokens
    if found.forced and found.forced[0] != found.forced[1]:
        sent, came = (_without(text, tokens) for text in found.forced)
        if sent != found.forced[0] and sent.split() == came.split() == found.forced[1].split():
            return f"a grammar enforced {_quoted(found.forced[0])}, and {_quoted(found.forced[1])} arrived"
    bare = [answer for answer in _calling(found) if "special-tokens-stripped" in answer.hints]
    gone = [answer for answer in bare if (answer.unseen or 0) >= _FEW]
    if len(gone) < _FEW or len(gone) * 2 < len(bare):
        return ""
    more = f", and the engine generated {_median(gone)} more tokens than their text has"
    return _of(bare, _calling(found), f" lack the markers of calls{more}")


def _without(text: str, tokens: Iterable[str]) -> str:
    for token in tokens:
        text = text.replace(token, "")
    return text


def _median(answers: Iterable[Answer]) -> int:
    return round(statistics.median(answer.unseen or 0 for answer in answers))


def _generated(answer: Answer) -> int:
    return (answer.usage.completion_tokens or 0) if answer.usage else 0


def _is_missing(answer: Answer) -> bool:
    return (answer.unseen or 0) > max(4, _generated(answer) / 6)


def _text_removed(found: Evidence) -> str:
    gone = list(filter(_is_missing, found.answers))
    if len(gone) < _FEW or _special_tokens_stripped(found):
        return ""
    return f"in {_of(gone, found.answers)}, {_median(gone)} generated tokens (median) aren't in the text"


def _cut(found: Evidence) -> list[Answer]:
    """Return the calls that end too early although neither the model nor the token limit ended them."""
    broken = [answer for answer in _kinds(_calling(found), "broken", "silent", "repaired") if answer.finish == "stop"]
    shown = [answer for answer in broken if answer.text and "reasoning-not-closed" not in answer.hints]
    cut = [answer for answer in shown if "truncated" in answer.hints or answer.expected]
    ends = Counter(answer.expected for answer in cut)
    place, times = ends.most_common(1)[0] if ends else ("", 0)
    enough = times > _FEW and times * 2 >= len(_calling(found))
    return [answer for answer in cut if answer.expected == place] if enough else []


def _cut_inside_calls(found: Evidence) -> str:
    cut = _cut(found)
    if not cut or _is_missing(cut[0]):
        return ""
    return _of(
        cut,
        _calling(found),
        f" end inside a call, where {cut[0].expected} is due, e.g. {_quoted(cut[0].text[-_SHOWN:])}",
    )


def _token_limit(found: Evidence) -> str:
    short = [
        answer for answer in (*found.answers, *found.bound)
        if answer.finish == "length" and answer.usage and _generated(answer) < answer.limit
    ]  # fmt: skip
    if len(short) < _FEW or _context_too_short(found):
        return ""
    most = max(map(_generated, short))
    return f"{len(short)} answers end after at most {most} tokens; the request allowed {short[0].limit}"


def _runs_on(found: Evidence) -> str:
    over = [answer for answer in found.answers if "text-after-end" in answer.hints]
    return f"{_of(over, found.answers)}: {over[0].hints['text-after-end']}" if len(over) >= _FEW else ""


_CHANGES: Mapping[str, Callable[[str], str]] = {
    "case": str.casefold,
    "whitespace at the ends": str.strip,
    "whitespace": lambda text: "".join(text.split()),
    "characters that aren't ASCII": lambda text: "".join(filter(str.isascii, text)),
    "accents": lambda text: unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode(),
    "punctuation": lambda text: "".join(filter(str.isalnum, text)),
}
"""Parts of a text that careless servers change, each with a function that removes the part."""


def _text_altered(found: Evidence) -> str:
    altered = [answer for answer in found.answers if answer.altered]
    if len(altered) >= _FEW:
        return f"{_of(altered, found.answers)} contain {altered[0].altered}"
    halves = [answer for answer in found.answers if "\ufffd" in answer.text]
    if len(halves) >= _FEW:
        return f"{_of(halves, found.answers)} contain U+FFFD, the sign of broken characters"
    if found.forced is None or _special_tokens_stripped(found):
        return ""
    sent, came = found.forced
    for name, removed in _CHANGES.items() if sent != came else ():
        if removed(sent) == removed(came) != "":
            return f"a grammar enforced {_quoted(sent)}, and {_quoted(came)} arrived: changed {name}"
    return ""


def _grammar_ignored(found: Evidence) -> str:
    if found.grammar is not False:
        return ""
    return "the engine gave a free answer where a grammar allowed a single word"


def _empty_answers(found: Evidence) -> str:
    empty = [
        answer for answer in found.answers if not answer.error and not answer.text.strip() and not _is_missing(answer)
    ]
    return f"{_of(empty, found.answers)} are empty" if len(empty) > max(_FEW, len(found.answers) * _SHARE) else ""


# Calls.


def _other_syntax(found: Evidence) -> str:
    if _special_tokens_stripped(found):
        return ""
    calling = _calling(found)
    other = _kinds(calling, "other")
    if len(other) < _FEW or len(other) < len(calling) * _SHARE / 2:
        return ""
    name, times = Counter(answer.detail for answer in other).most_common(1)[0]
    return f"{_of(other, calling)} write calls in another syntax, {times} of them as {name}"


def _reasoning_unclosed(found: Evidence) -> str:
    open_ = [answer for answer in found.answers if "reasoning-not-closed" in answer.hints]
    return (
        f"{_of(open_, found.answers)} end inside reasoning"
        if len(open_) > max(_FEW, len(found.answers) * _SHARE)
        else ""
    )


def _broken_calls(found: Evidence) -> str:
    calling, cut = _calling(found), _cut(found)
    broken = [
        answer
        for answer in _kinds(calling, "broken")
        if answer not in cut and "reasoning-not-closed" not in answer.hints
    ]
    if len(broken) < _FEW or _special_tokens_stripped(found) or _text_altered(found) or _token_limit(found):
        return ""
    bound = (
        f"; under a grammar {_of([it for it in found.bound if it.right], found.bound)} are right" if found.bound else ""
    )
    speed = _speeds(found)
    return f"{_of(broken, calling)}: {broken[0].detail}{bound}{speed}"


def _speeds(found: Evidence) -> str:
    """Describe the cost of a grammar in tokens per second."""
    free = rate_of([answer for answer in found.answers if any(answer.task is it.task for it in found.bound)])
    bound = rate_of(found.bound)
    return f", at {bound:.1f} instead of {free:.1f} tokens per second" if free and bound else ""


def rate_of(answers: Iterable[Answer]) -> float:
    """Return the generated tokens per second, including the time for prompts; 0 if unknown."""
    counted = [(_generated(answer), answer.seconds) for answer in answers if answer.usage]
    return sum(tokens for tokens, _ in counted) / (sum(seconds for _, seconds in counted) or 1.0)


def _own_parser(found: Evidence) -> str:
    served = [it for it in found.served if not it.error.startswith("404") and it.answer.calls]
    wrong = [it for it in served if _made(it) != [(call.name, call.arguments) for call in it.answer.calls]]
    # An answer of another length is another answer of the model.
    wrong = [it for it in wrong if it.error or not it.generated or abs(it.generated - _generated(it.answer)) <= 1]
    if len(wrong) < _FEW or len(wrong) * 2 < len(served) * _SHARE:
        return ""
    lost, first = [it for it in wrong if not it.calls], wrong[0]
    came = _quoted(first.error) if first.error else f"{len(first.calls)} calls, {_quoted(str(_made(first)))}"
    return f"{len(wrong)} of {len(served)} answers with calls come back wrong, {len(lost)} of them without any; e.g. {came}"


def _made(served: Served) -> list[tuple[str, Any]]:
    return [(name, _parsed(text)) for name, text in served.calls]


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


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
    calling = _calling(found)
    silent = [answer for answer in _kinds(calling, "silent") if answer.text.strip() and not _is_missing(answer)]
    ended = [answer for answer in silent if answer not in _cut(found) and "reasoning-not-closed" not in answer.hints]
    explained = _text_altered(found) or _special_tokens_stripped(found) or _token_limit(found)
    return _of(ended, calling) if len(ended) > max(_FEW, len(calling) * _SHARE) and not explained else ""


def _calls_uninvited(found: Evidence) -> str:
    free = [answer for answer in found.answers if not answer.task.wanted and not answer.error]
    called = _kinds(free, "uninvited")
    again = [answer for answer in called if answer.task.wish == "result"]
    more = f", {len(again)} of them after a result" if again else ""
    return _of(called, free, f" without need contain calls{more}") if len(called) >= _FEW else ""


def _single_calls(found: Evidence) -> str:
    several = [answer for answer in _calling(found) if answer.task.wish == "several"]
    single = [answer for answer in several if len(answer.calls) == 1]
    return _of(single, several, " contain one call instead of two") if len(single) > _FEW else ""


def _calls_wrong(found: Evidence) -> str:
    called = [answer for answer in _calling(found) if answer.calls and not answer.altered]
    wrong = [answer for answer in called if not answer.right and len(answer.calls) >= len(answer.task.wanted)]
    if len(wrong) <= max(_FEW, len(called) * _SHARE) or _stale_answers(found):
        return ""
    call = wrong[0].calls[0]
    return f"{_of(wrong, called)}, e.g. {_quoted(f'{call.name}({call.arguments_json})')} for {wrong[0].task.messages[0]['content']!r}"


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
    calling = _calling(found)
    repaired = [answer for answer in _kinds(calling, "repaired") if answer not in _cut(found)]
    if len(repaired) < _FEW:
        return ""
    what, times = Counter(answer.detail for answer in repaired).most_common(1)[0]
    return f"{_of(repaired, calling)}; in {times}, {what} is missing or damaged"


def _unsteady(found: Evidence) -> str:
    # The first answer may differ from the others in its last bits, because the engine hadn't cached its prompt.
    later = found.repeats[1:]
    return f"{_quoted(later[0])} and {_quoted(later[1])}" if len(later) > 1 and later[0] != later[1] else ""


def _listed(counts: Sequence[int]) -> str:
    return " and ".join(map(str, counts))


FINDERS: Mapping[str, Callable[[Evidence], str]] = {
    "engine-fails": _engine_fails,
    "context-too-short": _context_too_short,
    "prompt-changed": _prompt_changed,
    "begin-token-doubled": _begin_token_doubled,
    "other-template": _other_template,
    "prompt-echoed": _prompt_echoed,
    "stale-answers": _stale_answers,
    "special-tokens-stripped": _special_tokens_stripped,
    "text-removed": _text_removed,
    "text-altered": _text_altered,
    "cut-inside-calls": _cut_inside_calls,
    "token-limit": _token_limit,
    "runs-on": _runs_on,
    "grammar-ignored": _grammar_ignored,
    "empty-answers": _empty_answers,
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


def parts(found: Evidence) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Yield the number of answers of each kind, by part of the tasks: a name, all answers, and the answers by kind and "right"."""
    groups: dict[str, list[Answer]] = {}
    for answer in found.answers:
        groups.setdefault(f"{answer.task.count} tools", []).append(answer)
        groups.setdefault(
            {"one": "one call", "several": "several calls", "result": "after a result", "none": "no call"}[
                answer.task.wish
            ],
            [],
        ).append(answer)
        if answer.task.variables:
            groups.setdefault("without thinking", []).append(answer)
    for name, answers in groups.items():
        counted = Counter(str(answer.kind) for answer in answers)
        yield name, len(answers), {**counted, "right": sum(answer.right for answer in answers)}
