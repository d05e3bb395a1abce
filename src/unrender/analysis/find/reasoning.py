"""Finds the markers of reasoning, and the text after them, in renderings with and without it (R1, R2, R3).

Strategy: the text before the needle is the start marker. What is after it is closer, joint and the next part's opener;
texts in which different parts follow agree up to the end of closer and joint. Where a template drops reasoning, its
generation prompt, and the closers that it removes from content, tell the markers.

Heuristics are in three tables, each tried from the top: `_WAYS` to see reasoning at all, and two of ways to tell its closer
from what follows it, `_BEFORE_CONTENT` and `_BEFORE_CALLS`. The finding names those that decided.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

from unrender.analysis.ask.answers import Answers
from unrender.analysis.ask.probes import CONTENT, CONTENT2, NAMES, REASONING, REASONING_WORD
from unrender.analysis.find.turn_frame import TurnFrame, tail_of
from unrender.format import Reasoning, ReasoningMode
from unrender.format.tokens import lexemes
from unrender.proof.split import closers_of, common_prefix, common_suffix, is_tag, openers_of, tags_of

UNSEEN_JOINT = "\n\n"
"""The text that models write after reasoning that their template does not render: an empty line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """Text before and between the first parts of an answer; None when that shape is not rendered."""

    content: str | None
    """Before content, without reasoning."""
    calls: str | None
    """Before the first call's name, without reasoning and content."""
    reasoning: str | None
    """Before reasoning."""
    reasoning_content: str | None
    """Between reasoning and content."""
    reasoning_calls: str | None
    """Between reasoning and the first call's name."""
    content_no_thinking: str | None
    """Before content, with thinking switched off."""
    reasoning_content_and_calls: str | None
    """Between reasoning and content, where calls follow."""
    calls_no_thinking: str | None
    """Before the first call's name, with thinking switched off."""
    reasoned_tail: str
    """After content that reasoning is before, to the end of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFinding:
    """The reasoning's markers, and how they were found."""

    reasoning: Reasoning
    to_content: str = ""
    comparison: str = ""
    """R1, or R2 where the generation prompt alone shows the markers."""
    rule: str = ""
    """The names of the heuristics that decided, e.g. `reasoning is written; up to the opener's closer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningRecord:
    """All that is known when reasoning is looked for."""

    source: str
    """The template's own text or, of a function, all that it has written."""
    frame: TurnFrame
    answers: Answers
    openings: Openings
    content_end: str
    """The text that ends content and nothing else."""


def find_openings(answers: Answers, frame: TurnFrame) -> Openings:
    """Find the text before and between the parts of answers."""
    before = _before(answers.reasoned, REASONING)
    return Openings(
        content=_before(answers.content, CONTENT),
        calls=_before(answers.call, NAMES[0]),
        reasoning=_before(answers.reasoned_call, REASONING) if before is None else before,
        reasoning_content=_between(answers.reasoned, REASONING, CONTENT),
        reasoning_calls=_between(answers.reasoned_call, REASONING, NAMES[0]),
        content_no_thinking=_before(answers.content_no_thinking, CONTENT),
        reasoning_content_and_calls=_between(answers.reasoned_mixed, REASONING, CONTENT),
        calls_no_thinking=_before(answers.call_no_thinking, NAMES[0]),
        reasoned_tail=tail_of(answers.reasoned, CONTENT, frame),
    )


def find_reasoning(seen: ReasoningRecord) -> ReasoningFinding:
    """Find the reasoning's markers; mode NONE when nothing shows any."""
    for comparison, name, find in _WAYS:
        found = find(seen)
        if found is not None:
            return replace(found, comparison=comparison, rule="; ".join(filter(None, (name, found.rule))))
    return ReasoningFinding(reasoning=Reasoning())


def _from_presence(seen: ReasoningRecord) -> ReasoningFinding | None:
    """R1, R3: reasoning is rendered."""
    openings, frame = seen.openings, seen.frame
    # `<think>so</think>Hi`: what is between the two needles is known, whatever it is. Where it is not shown, the other ways of
    # `_WAYS` look at prompts, and at what a template cuts out of content.
    if openings.reasoning_content is None and openings.reasoning_calls is None:
        return None
    start = openings.reasoning or ""
    end, joint, rule = _split_closer(seen, start)
    if not end:
        return ReasoningFinding(reasoning=Reasoning())
    opener = _open_tag(frame.prefill)
    if not start.strip() and opener and end.strip() in closers_of(opener):
        start = frame.prefill  # `<bot><think>` is the prompt, and the history has `so</think>Hi`.
    if frame.prefill and frame.prefill == start.lstrip():
        start = frame.prefill  # Only the history writes the space before it, not the prompt.
    mode, empty = _mode(start, end, frame, openings), _empty_form(start, end, openings)
    reasoning = Reasoning(mode=mode, start=start, end=end, empty=empty)
    return ReasoningFinding(reasoning=reasoning, to_content=joint, rule=rule)


def _mode(start: str, end: str, frame: TurnFrame, openings: Openings) -> ReasoningMode:
    if not start.strip():
        # Nothing opens it, and only its end is marked: `so far...</think>Hello`.
        return ReasoningMode.DELIMITER
    if frame.prefill.strip().endswith(start.strip()):
        # With thinking off, the prompt may hold a closed block: `<think></think>`.
        closed = end.strip() in frame.prefill_no_thinking
        return ReasoningMode.FORCED_CLOSED if closed else ReasoningMode.FORCED_OPEN
    return ReasoningMode.TOOLS_ONLY if openings.reasoning_content is None else ReasoningMode.TAG_BASED


def _split_closer(seen: ReasoningRecord, start: str) -> tuple[str, str, str]:
    """Split the text after reasoning into end marker and joint; return them with the name of the rule."""
    openings, frame = seen.openings, seen.frame
    shown = openings.reasoning_content or openings.reasoning_calls or ""
    # `</think><end><bot>Hello`: where the header is written again, every part is a message of its own.
    closer, repeated, _ = shown.partition(frame.header or "\0")
    if frame.header.strip() and repeated and closer.strip():
        return closer, repeated, "every part is a message of its own"
    # `</think>\n\n<answer>Hi` has three parts, and no reading of it alone tells where the first ends. `</think>\n\n<call>` shares
    # `</think>\n\n` with it: that is closer and joint, and white space at its end is the joint.
    text, rule = _closer_and_joint(seen, start)
    header = common_suffix([text, frame.header])
    before = text[: len(text) - len(header)]
    if before.strip() and header.strip() and header.strip() == frame.header.strip():
        return before, header, rule
    if not text.strip():
        text, rule = openings.reasoning_content or "", "white space closes nothing: the next part's opener does"
    end = text.rstrip()
    # This joint is the one before content: before a call there may be less layout.
    before_content = openings.reasoning_content or openings.reasoning_content_and_calls or ""
    following = (before_content if before_content.startswith(end) else text)[len(end) :]
    return end, following[: len(following) - len(following.lstrip())], rule


def _closer_and_joint(seen: ReasoningRecord, start: str) -> tuple[str, str]:
    """Return the text after reasoning without the next part's start marker, and the name of the rule."""
    openings = seen.openings
    after = [text for text in (openings.reasoning_content, openings.reasoning_calls) if text is not None]
    # `<think></think>\nHi` beside `<think>so</think>\nHi`: an answer without reasoning may show its markers around nothing.
    without = [text for text in (openings.content, openings.calls) if text and start and text.startswith(start)]
    after += [text[len(start) :] for text in without]
    text = common_prefix(after) or after[0]
    # `</p><p kind="text">` and `</p><p kind="call">` share `</p>`: a tag that is open where they part is of what follows.
    head, opened, rest = text.rpartition("<")
    text = head if opened and head.strip() and ">" not in rest and any(char.isspace() for char in rest) else text
    if openings.reasoning_content is not None:
        return _first(_BEFORE_CONTENT, text, start, seen)
    return _first(_BEFORE_CALLS, text, start, seen) if len(set(after)) == 1 else (text, _SHARED)


_SHARED = "what all parts that follow share"
_Cut = Callable[[str, str, ReasoningRecord], str]
"""Splits the text after reasoning, given its start marker, into end marker and joint. Empty when the rule does not apply."""


def _first(rules: tuple[tuple[str, _Cut], ...], text: str, start: str, seen: ReasoningRecord) -> tuple[str, str]:
    found = ((cut(text, start, seen), name) for name, cut in rules)
    return next((item for item in found if item[0]), (text, _SHARED))


def _without_content_opener(text: str, start: str, seen: ReasoningRecord) -> str:
    """Remove the text that content starts with if there is no reasoning.

    The closer of reasoning is never taken for content's, though some templates write it alone before content. With thinking
    off, some write another marker in the opener's place. It closes reasoning too, unless a marker stands before it.
    """
    frame, openings = seen.frame, seen.openings
    closers = [closer for part in lexemes(start) if is_tag(part) for closer in closers_of(part)]
    alone = frame.prefill_no_thinking.strip()
    if frame.prefill.strip() == start.strip() and not tags_of(text.partition(alone or "\0")[0]):
        closers.append(alone)
    shown = [text for text in (openings.content, openings.content_no_thinking) if text and text.strip()]
    # `<bot> <answer>Hi` beside `…</think><answer>Hi`: the space is the header's.
    wanted = [form for text in shown for form in (text, text.lstrip())]
    rests = (
        text.removesuffix(opening) for opening in wanted if opening.strip() not in closers and text.endswith(opening)
    )
    return next((rest for rest in rests if rest.strip()), "")


def _without_as_many(text: str, _: str, seen: ReasoningRecord) -> str:
    """Remove content's closing marker from the end, lexeme by lexeme."""
    # `</r>\n<answer>Hi</answer>`: the content's closer has one lexeme, and so has its opener, `<answer>`.
    full = seen.openings.reasoning_content or ""
    size, parts = len(lexemes(seen.content_end.strip())), lexemes(full.rstrip())
    marks = any(is_tag(part) for part in parts[-size:])
    return "".join(parts[:-size]) if marks and text == full else ""


def _as_in_pair(text: str, start: str, seen: ReasoningRecord) -> str:
    # `[r]</r>\n` in the prompt without thinking: what follows `[r]` is the closer.
    pair = seen.frame.prefill_no_thinking
    closer = pair[len(start) :].rstrip()
    return closer if start and pair.startswith(start) and text.startswith(closer) else ""


def _before_call(text: str, _: str, seen: ReasoningRecord) -> str:
    calls = seen.openings.calls or "\0"
    return text.removesuffix(calls) if text.endswith(calls) else ""


def _up_to_closer(text: str, start: str, _: ReasoningRecord) -> str:
    """Return `text` up to and including the end marker for the last marker of `start`; empty if there is none.

    White space after it is kept when nothing else follows: that is the joint.
    """
    # `<a><think>` … `</think>\n\nso</a>`: the marker that was opened last is closed first.
    tags = tags_of(start)
    for closer in closers_of(tags[-1]) if tags else ():
        head, found, rest = text.partition(closer)
        if found:
            return head + closer + rest[: len(rest) - len(rest.lstrip())]
    return ""


_BEFORE_CONTENT: tuple[tuple[str, _Cut], ...] = (
    ("without what content alone begins with", _without_content_opener),
    ("without as many markers as close content", _without_as_many),
    ("up to the opener's closer", _up_to_closer),
)
_BEFORE_CALLS: tuple[tuple[str, _Cut], ...] = (
    ("as far as the prompt's empty block", _as_in_pair),
    ("up to the opener's closer", _up_to_closer),
    ("without what a call alone begins with", _before_call),
)


def _empty_form(start: str, end: str, openings: Openings) -> str:
    """Return the text that the template writes without reasoning.

    Content is looked at before calls, unless only calls differ with the switch. A template may refuse content without
    reasoning; then content is known only as it is with thinking off.
    """
    asked = [(openings.content, openings.content_no_thinking), (openings.calls, openings.calls_no_thinking)]
    opener, closer = start.strip(), end.strip()
    for opening, _ in sorted(asked, key=lambda pair: pair[0] == pair[1]):
        text = opening or ""
        # `[a][r]\n[r]`: an end that is part of the start comes after it.
        inside = text.find(opener) + len(opener) if closer in opener and opener in text else 0
        at = text.find(closer, inside) if closer else -1
        if at >= 0 and text[:at].strip() in ("", opener):
            return text[: at + len(closer)]
    return ""


def _from_empty_block(seen: ReasoningRecord) -> ReasoningFinding | None:
    """R2: the generation prompt writes an empty block, or content begins with one."""
    frame, openings = seen.frame, seen.openings
    shown = openings.content or ""
    texts = (frame.prefill_no_thinking, frame.prefill, shown, openings.content_no_thinking or "")
    pair = next(filter(None, map(_empty_block, texts)), None)
    if pair is None:
        return None
    opener, space, closer = pair
    open_prompt = frame.prefill.strip().endswith(opener)
    # Half of the white space in an empty block is the opener's, half the closer's: `<think>\n`, `\n</think>`.
    margin = (open_prompt and frame.prefill.rpartition(opener)[2]) or space[: (len(space) + 1) // 2]
    reasoning = Reasoning(
        mode=ReasoningMode.FORCED_CLOSED if open_prompt else ReasoningMode.TAG_BASED,
        start=opener + margin,
        end=margin + closer,
        empty="".join(pair) if "".join(pair) in shown else "",
    )
    _, closed, joint = frame.prefill_no_thinking.rpartition(closer)
    return ReasoningFinding(reasoning=reasoning, to_content=(joint if closed else "") or 2 * margin)


def _empty_block(text: str) -> tuple[str, str, str] | None:
    """Return opener, white space and closer of an empty block in `text`."""
    parts = lexemes(text)
    for at, part in enumerate(parts):
        space = "".join(takewhile(str.isspace, parts[at + 1 :]))
        closer = next((after for after in parts[at + 1 :] if after.strip()), "")
        if is_tag(part) and closer in closers_of(part):
            return part, space, closer
    return None


def _from_switch(seen: ReasoningRecord) -> ReasoningFinding | None:
    """R2: with thinking off, the generation prompt goes on where it ends with thinking on: what is added closes the thought."""
    start, off, shown = seen.frame.prefill, seen.frame.prefill_no_thinking, (seen.openings.content or "").strip()
    added = off.removeprefix(start)
    # `<bot>[r]` and `<bot>[r][done]`: no two markers are spelled alike, and no answer shows either.
    if not start.strip() or not added.strip() or added == off:
        return None
    end = added.rstrip()
    empty = end.strip() if shown == end.strip() else ""
    reasoning = Reasoning(mode=ReasoningMode.FORCED_CLOSED, start=start, end=end, empty=empty, unseen=True)
    return ReasoningFinding(reasoning=reasoning, to_content=added[len(end) :])


def _from_open_block(seen: ReasoningRecord) -> ReasoningFinding | None:
    """R2: the generation prompt opens a block."""
    frame, openings = seen.frame, seen.openings
    opener = _open_tag(frame.prefill)
    closers = closers_of(opener) if opener else ()
    shown = openings.content or ""
    # `<bot><say>` is every prompt, and `<bot><say>Hi</say>` an answer: that block is the response. A switch that changes whether
    # it is opened says that it is reasoning.
    always = opener and frame.prefill == frame.prefill_no_thinking and shown.strip().endswith(opener)
    if always and any(tag in closers for tag in tags_of(tail_of(seen.answers.content, CONTENT, frame))[:1]):
        return None
    # The prompt opens the block and the model closes it. A closer that the template never mentions is only taken if no
    # other could close the opener.
    closer = next((closer for closer in closers if closer in seen.source or len(closers) == 1), "")
    if not closer:
        return None
    margin = frame.prefill.rpartition(opener)[2]
    # Where the closer is alone before content, or before a call, it stands for no reasoning: `</think>\nHi`.
    joint = shown.partition(closer)[2] if shown.strip() == closer else ""
    empty = closer if shown.strip() == closer or (openings.calls or "").lstrip().startswith(closer) else ""
    start, end = opener + margin, margin + closer
    reasoning = Reasoning(mode=ReasoningMode.FORCED_OPEN, start=start, end=end, empty=empty, unseen=True)
    return ReasoningFinding(reasoning=reasoning, to_content=joint or UNSEEN_JOINT)


def _from_removal(seen: ReasoningRecord) -> ReasoningFinding | None:
    """String constants that look like closers: put `X</closer>Y` into content, and see X vanish."""
    for closer, body in seen.answers.cut.items():
        # `Contjaxmer</think>Contzurbin` comes back as `Contzurbin`: what is before this marker is cut off as reasoning.
        if body is None or CONTENT not in body or CONTENT2 in body:
            continue
        # Of several openers, the first that the template mentions.
        opener = max(openers_of(closer), key=lambda opener: opener in seen.source)
        mode = ReasoningMode.FORCED_OPEN if seen.frame.prefill.strip().endswith(opener) else ReasoningMode.TAG_BASED
        reasoning = Reasoning(mode=mode, start=opener, end=closer, unseen=True)
        return ReasoningFinding(reasoning=reasoning, to_content=UNSEEN_JOINT)
    return None


_QUOTED = re.compile(r"(?<=\w )(\[[^\[\]<>\n]{3,64}\]|<[^\[\]<>\n]{3,64}>)")
"""A marker within a sentence."""


def _from_quoted_closer(seen: ReasoningRecord) -> ReasoningFinding | None:
    """R2: the generation prompt begins a thought in words, and its instructions name one marker, which ends it."""
    # `… then respond after the marker [ANSWER].<bot>My thoughts:\n`. Of a pair, as `<a>` and `</a>`, neither is such a marker.
    words, said = seen.frame.prefill, seen.answers.instructions
    quoted = {
        tag for tag in _QUOTED.findall(said) if not any(text in said for text in closers_of(tag) + openers_of(tag))
    }
    if len(quoted) != 1 or not REASONING_WORD.search(words) or tags_of(words):
        return None
    margin = words[len(words.rstrip()) :]
    reasoning = Reasoning(mode=ReasoningMode.DELIMITER, end=margin + quoted.pop(), unseen=True)
    return ReasoningFinding(reasoning=reasoning, to_content=margin or UNSEEN_JOINT)


_WAYS: tuple[tuple[str, str, Callable[[ReasoningRecord], ReasoningFinding | None]], ...] = (
    ("R1", "reasoning is written", _from_presence),
    ("R2", "an empty block is in the prompt or before content", _from_empty_block),
    ("R2", "the generation prompt goes on with thinking off", _from_switch),
    ("R2", "the generation prompt ends in an open block", _from_open_block),
    ("R1", "content up to a closer is cut off", _from_removal),
    ("R2", "the prompt begins a thought in words, and quotes what ends it", _from_quoted_closer),
)


def _open_tag(prefill: str) -> str:
    parts = lexemes(prefill.rstrip())
    return parts[-1] if parts and is_tag(parts[-1]) and closers_of(parts[-1]) else ""


def _before(text: str | None, needle: str) -> str | None:
    return text.partition(needle)[0] if text is not None and needle in text else None


def _between(text: str | None, left: str, right: str) -> str | None:
    rest = (text or "").partition(left)[2]
    return rest.partition(right)[0] if right in rest else None
