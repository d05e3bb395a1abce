"""Finds the causes that lie in the server: what it does to prompts, to texts and to grammars.

Rules: each function returns the evidence for one cause, or "". A difference counts if no healthy engine shows it.
"""

from __future__ import annotations

import json
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from os.path import commonprefix
from typing import Any

from unrender.probe.answers import Answer, Kind, may_think
from unrender.probe.evidence import Evidence
from unrender.probe.tasks import COUNTS

FEW = 2
"""Minimum number of answers that show a cause."""
_MANY = 7
"""Minimum number of answers without exception that show a cause."""
SHARE = 0.2
"""Minimum share of the answers that show a weakness of the model."""
_SHOWN = 40
"""Maximum number of characters that are quoted."""


def count_of(answers: Iterable[Answer], among: Sequence[Answer], more: str = "") -> str:
    """Return how many of the answers these are, as text."""
    return f"{len(list(answers))} of {len(among)} answers{more}"


def of_kind(answers: Iterable[Answer], *kinds: Kind) -> list[Answer]:
    """Return the answers of these kinds."""
    return [answer for answer in answers if answer.kind in kinds]


def quoted(text: str) -> str:
    """Return a quotation of the start of a text."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def parsed(text: Any) -> Any:
    """Return the value of a JSON text, and anything else unchanged."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text


# Prompts.


def _is_too_long(answer: Answer) -> bool:
    return _is_context(answer.error) and answer.status != 429


def _is_context(error: str) -> bool:
    return any(word in error.casefold() for word in ("context", "too long", "maximum", "exceed"))


def _engine_fails(found: Evidence) -> str:
    failed = [answer for answer in found.answers if answer.error and not _is_too_long(answer)]
    if len(failed) < FEW:
        errors = [it.error for it in found.renderings] + [it.error for it in found.served]
        errors = [error for error in errors if error and not _is_context(error)]
        return f"its own endpoints reject {len(errors)} requests, e.g. {quoted(errors[0])}" if errors else ""
    error, times = Counter(answer.error for answer in failed).most_common(1)[0]
    return f"{count_of(failed, found.answers)} are errors, {times} of them {quoted(error)}"


def _context_too_short(found: Evidence) -> str:
    refused = [answer for answer in found.answers if answer.error and _is_too_long(answer)]
    if refused:
        counts = " and ".join(map(str, sorted({answer.task.count for answer in refused})))
        size = f" of {found.context} tokens" if found.context else ""
        return f"requests with {counts} tools don't fit into the context{size}: {quoted(refused[0].error)}"
    cut = [answer for answer in found.answers if _lost(answer) > FEW]
    whole = [answer for answer in found.answers if answer.read and abs(_lost(answer)) <= FEW]
    # Only long prompts are cut, so every prompt that is read completely is shorter than what is read of them.
    if not cut or not whole or max(it.sent for it in whole) > min(it.read for it in cut) + FEW:
        return _cut_by_length(found)
    worst = max(cut, key=_lost)
    return f"the engine read {worst.read} of the {worst.sent} tokens of a prompt with {worst.task.count} tools"


def _cut_by_length(found: Evidence) -> str:
    """Compare prompts by their characters for each token, for engines that can't count. The tools in all of them are written alike."""
    uncounted = [answer for answer in found.answers if answer.read and not answer.sent]
    groups = [
        sorted((it for it in uncounted if it.task.count == count), key=attrgetter("read")) for count in COUNTS[1:]
    ]
    sizes = [(len(group[0].turn.prompt) / group[0].read, group[0]) for group in groups if group]
    # Some engines don't count the tokens in their cache, so that requests of the same length have different counts.
    even = all(group[-1].read < 1.5 * group[0].read for group in groups if group)
    if len(sizes) < FEW or not even or sizes[-1][0] < 1.4 * sizes[0][0]:
        return ""
    first, last = sizes[0][1], sizes[-1][1]
    prompts = [
        f"{it.read} tokens of {len(it.turn.prompt)} characters with {it.task.count} tools" for it in (first, last)
    ]
    return f"the engine read {prompts[0]}, but only {prompts[1]}"


def _lost(answer: Answer) -> int:
    """Return the number of tokens in the prompt that the engine didn't read; negative if it read more; 0 if unknown."""
    return answer.sent - answer.read if answer.sent and answer.read else 0


def _prompt_changed(found: Evidence) -> str:
    if found.touched:
        return found.touched
    known = [answer for answer in found.answers if answer.sent and answer.read]
    odd = [answer for answer in known if abs(_lost(answer)) > FEW]
    # An engine that adds a begin-of-text token which the template lacks reads one token more in each prompt.
    if len(known) > _MANY and min(map(_lost, known)) > 0:
        odd = known
    example = f", e.g. {odd[0].read} tokens instead of {odd[0].sent}" if odd else ""
    return f"in {count_of(odd, found.answers, example)}" if len(odd) >= FEW else ""


def _begin_token_doubled(found: Evidence) -> str:
    if found.doubled:
        return "the engine counts one token more than the prompt has, although the prompt begins with the token"
    bos, shifts = found.template._with_tools.bos_token, _shifts(found)
    if not bos:
        return ""
    if found.renderings and all(it.theirs == bos + it.ours for it in found.renderings):
        return f"the server's own prompt begins with {quoted(found.renderings[0].theirs or '')} after the token"
    if any(it.theirs not in (None, it.ours) for it in found.renderings):
        return ""
    if {1} == {*shifts} or {-1} == {*shifts}:
        less, more = (
            ("the prompt has", "its own endpoint") if shifts[0] > 0 else ("its own endpoint reads", "the engine")
        )
        return f"{more} reads one token more than {less} in each of {len(shifts)} requests"
    return ""


def _shifts(found: Evidence) -> list[int]:
    """Return the numbers of tokens that the server's own endpoint reads in addition to the prompt."""
    counts = [it.counts for it in found.renderings] + [(it.answer.read, it.tokens) for it in found.served]
    return [theirs - ours for ours, theirs in counts if ours and theirs]


def _other_template(found: Evidence) -> str:
    shifts = {*_shifts(found)}
    shown = [it for it in found.renderings if it.theirs is not None]
    differing = [it for it in shown if it.theirs != it.ours]
    if differing:
        rendering = differing[0]
        where = f"{len(differing)} of {len(shown)} conversations differ; the one {rendering.name}"
        ours, theirs, at = _difference(rendering.ours, rendering.theirs or "")
        return f"{where} at character {at}: {theirs} instead of {ours}"
    # A single token in each request may be a begin-of-text token that the template lacks.
    if (len(shifts) == 1 and abs(min(shifts)) < FEW) or not any(shifts):
        return ""
    worst = max(found.renderings, key=lambda it: abs(it.counts[1] - it.counts[0]) * all(it.counts), default=None)
    if worst and all(worst.counts) and worst.counts[0] != worst.counts[1]:
        return f"the conversation {worst.name} has {worst.counts[1]} tokens instead of {worst.counts[0]}"
    return f"requests have up to {max(map(abs, shifts))} tokens more or less than the prompt"


def _difference(sent: str, came: str) -> tuple[str, str, int]:
    """Return where two texts begin to differ: quotations of both, and the position."""
    at = len(commonprefix([sent, came]))
    return quoted(sent[at:]), quoted(came[at:]), at


def _prompt_echoed(found: Evidence) -> str:
    echoed = [answer for answer in found.answers if answer.turn.prompt[-2 * _SHOWN :] in answer.text]
    return f"in {count_of(echoed, found.answers)}" if len(echoed) >= FEW else ""


def _stale_answers(found: Evidence) -> str:
    late = [
        new for old, new in pairwise(found.answers)
        if old.task.wanted and old.task.name != new.task.name and old.task.right(new.calls) and not new.right
    ]  # fmt: skip
    if len(late) > max(2 * FEW, len(found.answers) / 10):
        return f"{count_of(late, found.answers)} have the calls of the request before"
    for count in COUNTS:
        answers = [it for it in found.answers if it.task.count == count and it.text.strip() and not it.is_cut]
        called = [answer for answer in answers if answer.calls]
        # A real model doesn't give four tasks the same call, or thanks and questions the same text as tasks.
        for same in (called, answers if len(answers) > _MANY else []):
            asked = {it.task.name for it in same}
            if len({it.text for it in same}) == 1 and len(asked) >= 4 and len(same[0].text) > _SHOWN / 2:
                return f"the answers to {len(asked)} different tasks with {count} tools are {quoted(same[0].text)}"
    return ""


# Text.


def _special_tokens_stripped(found: Evidence) -> str:
    if found.forced:
        sent, came = found.forced
        lost = [token for token in found.template.format.preserved_tokens if token in sent and token not in came]
        stripped = lost and not sent.startswith(came) and _without(sent, lost).split() == came.split()
        return f"a grammar enforced {quoted(sent.strip())}, and {quoted(came.strip())} arrived" if stripped else ""
    bare = [answer for answer in found.calling if "special-tokens-stripped" in answer.hints]
    gone = [answer for answer in bare if (answer.unseen or 0) >= FEW]
    if len(gone) < FEW or len(gone) * 2 < len(bare) or len(bare) * 2 < len(found.calling):
        return _reasoning_stripped(found)
    more = f", and the engine generated {_median(gone)} more tokens than their text has"
    return count_of(bare, found.calling, f" lack the markers of calls{more}")


def _reasoning_stripped(found: Evidence) -> str:
    """Compare the missing tokens of answers with and without thinking. A stop string is missing in both."""
    end, known = found.template.format.reasoning.end, [answer for answer in found.answers if answer.unseen is not None]
    on, off = ([it.unseen or 0 for it in known if may_think(it.turn) is thinks] for thinks in (True, False))
    if len(on) <= _MANY or len(off) <= FEW or min(on) < max(off) + FEW or any(end in answer.text for answer in known):
        return ""
    return f"no answer has {end.strip()!r}, and with thinking, at least {min(on)} generated tokens are missing, otherwise at most {max(off)}"


def _without(text: str, tokens: Iterable[str]) -> str:
    for token in tokens:
        text = text.replace(token, "")
    return text


def _median(answers: Iterable[Answer]) -> int:
    return round(statistics.median(answer.unseen or 0 for answer in answers))


def _text_removed(found: Evidence) -> str:
    gone = [answer for answer in found.answers if answer.is_cut]
    if len(gone) < FEW or _changed(found):
        return ""
    return f"in {count_of(gone, found.answers)}, {_median(gone)} generated tokens (median) aren't in the text"


def cut_short(found: Evidence) -> list[Answer]:
    """Return the calls that end too early although neither the model nor the token limit ended them."""
    broken = [answer for answer in of_kind(found.calling, "broken", "silent", "repaired") if answer.finish == "stop"]
    other = {"reasoning-not-closed", "special-tokens-stripped"}
    shown = [answer for answer in broken if answer.text and not answer.altered and not other & answer.hints.keys()]
    cut = [answer for answer in shown if ("truncated" in answer.hints or answer.expected) and not _has_end(answer)]
    ends = Counter(answer.expected for answer in cut)
    place, times = ends.most_common(1)[0] if ends else ("", 0)
    enough = times > FEW and times * 2 >= len(found.calling)
    return [answer for answer in cut if answer.expected == place] if enough else []


def _has_end(answer: Answer) -> bool:
    ends = [end.strip() for end in answer.turn.format.tools.markers[2:] if end.strip()]
    return answer.text.rstrip().endswith(tuple(ends))


def _cut_inside_calls(found: Evidence) -> str:
    cut, (sent, came) = cut_short(found), found.forced or ("", "")
    if not sent.startswith(came):
        return ""
    if sent.rstrip() != came.rstrip() and not _empty_answers(found):
        return f"a grammar enforced {quoted(sent.strip())}, and the answer ended before {quoted(sent[len(came) :])}"
    if not cut or cut[0].is_cut:
        return ""
    return count_of(
        cut,
        found.calling,
        f" end inside a call, where {cut[0].expected} is due, e.g. {quoted(cut[0].text[-_SHOWN:])}",
    )


def _token_limit(found: Evidence) -> str:
    short = [
        answer for answer in (*found.answers, *found.bound)
        if answer.finish == "length" and answer.usage and answer.tokens < answer.limit
    ]  # fmt: skip
    over = [answer for answer in (*found.answers, *found.repeats) if answer.tokens > answer.limit + FEW]
    if len(over) >= FEW:
        return f"{len(over)} answers have up to {max(answer.tokens for answer in over)} tokens; the request allowed {over[0].limit}"
    if len(short) < FEW:
        return ""
    most = max(answer.tokens for answer in short)
    return f"{len(short)} answers end after at most {most} tokens; the request allowed {short[0].limit}"


def _foreign_template(found: Evidence) -> str:
    wrong, end = [answer for answer in found.answers if not answer.right], found.template.format.turn.end.strip()
    if (found.end_tokens or 1) < FEW or len(wrong) * 2 <= len(found.answers):
        return ""
    return f"the end of a turn, {quoted(end)}, is {found.end_tokens} tokens, and {count_of(wrong, found.answers)} are wrong"


def _runs_on(found: Evidence) -> str:
    over = [answer for answer in found.answers if "text-after-end" in answer.hints]
    if len(over) >= FEW:
        return f"{count_of(over, found.answers)}: {over[0].hints['text-after-end']}"
    calling = found.calling
    endless = [it for it in calling if it.finish == "length" and "reasoning-not-closed" not in it.hints]
    if len(endless) <= max(FEW, len(calling) * SHARE):
        return ""
    return f"{count_of(endless, calling)} reach the limit of {endless[0].limit} tokens, e.g. with {quoted(endless[0].text[-_SHOWN:])}"


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
    if found.forced is None or _special_tokens_stripped(found):
        return _changed(found)
    sent, came = found.forced
    explained = _text_removed(found) or sent.startswith(came)
    ours, theirs, at = _difference(sent, came)
    other = (
        "" if explained else f"a grammar enforced text, and at its character {at}, {theirs} arrived instead of {ours}"
    )
    return _changed(found) or other


def _changed(found: Evidence) -> str:
    """Return the evidence for a known change of the text."""
    altered = [answer for answer in found.answers if answer.altered]
    if len(altered) >= FEW:
        return f"{count_of(altered, found.answers)} contain {altered[0].altered}"
    halves = [answer for answer in found.answers if "\ufffd" in answer.text]
    if len(halves) >= FEW:
        return f"{count_of(halves, found.answers)} contain U+FFFD, the sign of broken characters"
    sent, came = found.forced or ("", "")
    for name, removed in _CHANGES.items() if sent != came and not _special_tokens_stripped(found) else ():
        if removed(sent) == removed(came) != "":
            ours, theirs, _ = _difference(sent, came)
            return f"a grammar enforced {ours}, and {theirs} arrived: changed {name}"
    return _same_in_all(found)


_LACKS: Mapping[str, Callable[[str], bool]] = {
    "upper-case letter": str.islower,
    "lower-case letter": str.isupper,
    "space": lambda text: " " not in text,
    "digit": lambda text: not any(map(str.isdigit, text)),
}
"""Characters that each model writes in some answer, and functions that return whether a text lacks them."""


def _same_in_all(found: Evidence) -> str:
    """Return the evidence for a case or for text that all answers share."""
    ended = [it for it in found.answers if _said(it) and it.finish == "stop" and "text-after-end" not in it.hints]
    # Reasoning may always begin with the same words.
    plain = [it for it in ended if not may_think(it.turn)]
    texts = list(map(_said, ended))
    if len(texts) <= _MANY:
        return ""
    meant = [it for it in ended if any(call["name"] in it.text for call in it.task.wanted)]
    counted = [it for it in meant if any(map(str.isdigit, str(it.task.wanted)))]
    for name, holds in _LACKS.items():
        if holds("".join(texts)) and (name != "digit" or len(counted) > FEW):
            return f"none of {len(texts)} answers has a {name}"
    bare = [_said(it) for it in plain if it.kind == "text"]
    if len(bare) > FEW and all(isinstance(parsed(text), dict) for text in bare):
        return f"{len(bare)} answers without calls are JSON objects, e.g. {quoted(bare[0])}"
    shared = {
        "end": (commonprefix([text[::-1] for text in texts])[::-1], ended),
        "begin": (commonprefix(list(map(_said, plain))), plain),
    }
    for name, (text, answers) in shared.items():
        if len(text) > FEW and any(it.calls for it in answers) and of_kind(answers, "text"):
            return f"all answers {name} with {quoted(text)}, with and without calls"
    return ""


def _said(answer: Answer) -> str:
    """Return an answer without whitespace and the end of the turn, which some engines send."""
    ends = answer.turn.format.turn.all_ends
    return next((text for end in ends if (text := answer.text.removesuffix(end)) != answer.text), answer.text).strip()


def _grammar_ignored(found: Evidence) -> str:
    if found.grammar is False:
        return "the engine gave a free answer where a grammar allowed a single word"
    rejected = [answer for answer in found.bound if answer.error and not _is_too_long(answer)]
    if len(rejected) >= FEW:
        return f"{count_of(rejected, found.bound)} under a grammar are errors, e.g. {quoted(rejected[0].error)}"
    free = [it for it in of_kind(found.bound, "other", "silent", "broken") if it.finish == "stop"]
    lost = _special_tokens_stripped(found) or _text_altered(found) or _text_removed(found) or _cut_inside_calls(found)
    if len(free) < FEW or lost:
        return ""
    return f"{count_of(free, found.bound)} aren't the call that a grammar enforced, e.g. {quoted(free[0].text)}"


def _empty_answers(found: Evidence) -> str:
    empty = [answer for answer in found.answers if not answer.error and not answer.text.strip() and not answer.is_cut]
    wanted = [answer for answer in empty if answer.task.wanted]
    enough = len(wanted) > FEW or len(empty) > max(FEW, len(found.answers) * SHARE)
    return f"{count_of(empty, found.answers)} are empty" if enough else ""


SERVER_CAUSES: Mapping[str, Callable[[Evidence], str]] = {
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
    "foreign-template": _foreign_template,
    "runs-on": _runs_on,
    "grammar-ignored": _grammar_ignored,
    "empty-answers": _empty_answers,
}
"""The function for each cause in the server, by name."""
