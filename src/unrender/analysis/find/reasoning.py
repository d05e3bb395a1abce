"""Finds the markers of reasoning, and the text after them, in renderings with and without reasoning (R1, R2, R3).

Strategy: the text before the reasoning is the start marker. The text after the reasoning consists of the closer, the joint and the next
part's opener. Texts with different next parts are equal up to the end of the joint. If a template drops reasoning, the markers come from
its generation prompt, or from closers up to which it removes content.

The heuristics are in three tables, and each table is tried from the top. `_WAYS` finds reasoning. `_BEFORE_CONTENT` and `_BEFORE_CALLS`
separate the closer of reasoning from the following text. The finding names the heuristics that chose it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile

from unrender.analysis.ask import CONTENT, CONTENT2, NAMES, REASONING, REASONING_WORD, text_between
from unrender.analysis.ask.answers import Answers
from unrender.analysis.find.turn_frame import TurnFrame, tail_of
from unrender.format import Reasoning, ReasoningMode, lexemes
from unrender.proof.split import closers_of, common_prefix, common_suffix, is_tag, openers_of, tags_of

UNSEEN_JOINT = "\n\n"
"""Joint between reasoning and content for templates that don't render reasoning: an empty line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """Text before and between the first parts of an answer, or None for a shape of answer that isn't rendered."""

    content: str | None
    """Text before content, without reasoning."""
    calls: str | None
    """Text before the first call's name, without reasoning and content."""
    reasoning: str | None
    """Text before reasoning."""
    reasoning_content: str | None
    """Text between reasoning and content."""
    reasoning_calls: str | None
    """Text between reasoning and the first call's name."""
    content_no_thinking: str | None
    """Text before content, with thinking switched off."""
    reasoning_content_and_calls: str | None
    """Text between reasoning and content if calls follow."""
    calls_no_thinking: str | None
    """Text before the first call's name, with thinking switched off."""
    reasoned_tail: str
    """Text after content that follows reasoning, through the end of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFinding:
    """Markers of reasoning, and the heuristics that found them."""

    reasoning: Reasoning
    to_content: str = ""
    comparison: str = ""
    """Name of the comparison: `R1`, or `R2` if the markers come from the generation prompt."""
    rule: str = ""
    """Names of the heuristics that found the markers, e.g. `reasoning is written; up to the opener's closer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningRecord:
    """Renderings and other input of the search for reasoning."""

    source: str
    """The template's source or, if the template is a function, all text that it has returned."""
    frame: TurnFrame
    answers: Answers
    openings: Openings
    content_end: str
    """Text that ends content and no other part."""


def find_openings(answers: Answers, frame: TurnFrame) -> Openings:
    """Find the text before and between the parts of answers."""
    before = _before(answers.reasoned, REASONING)
    return Openings(
        content=_before(answers.content, CONTENT),
        calls=_before(answers.call, NAMES[0]),
        reasoning=_before(answers.reasoned_call, REASONING) if before is None else before,
        reasoning_content=text_between(answers.reasoned, REASONING, CONTENT),
        reasoning_calls=text_between(answers.reasoned_call, REASONING, NAMES[0]),
        content_no_thinking=_before(answers.content_no_thinking, CONTENT),
        reasoning_content_and_calls=text_between(answers.reasoned_mixed, REASONING, CONTENT),
        calls_no_thinking=_before(answers.call_no_thinking, NAMES[0]),
        reasoned_tail=tail_of(answers.reasoned, CONTENT, frame),
    )


def find_reasoning(seen: ReasoningRecord) -> ReasoningFinding:
    """Find the markers of reasoning. The mode is NONE if there are none."""
    for comparison, name, find in _WAYS:
        found = find(seen)
        if found is not None:
            return replace(found, comparison=comparison, rule="; ".join(filter(None, (name, found.rule))))
    return ReasoningFinding(reasoning=Reasoning())


def _from_presence(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find the markers of rendered reasoning (R1, R3)."""
    openings, frame = seen.openings, seen.frame
    # If reasoning isn't rendered, the other entries of `_WAYS` find the markers. Otherwise the text between the needles contains the
    # closer, as in `<think>so</think>Hi`.
    if openings.reasoning_content is None and openings.reasoning_calls is None:
        return None
    start = openings.reasoning or ""
    end, joint, rule = _split_closer(seen, start)
    if not end:
        return ReasoningFinding(reasoning=Reasoning())
    opener = _open_tag(frame.prefill)
    if not start.strip() and opener and end.strip() in closers_of(opener):
        # Use the prompt's opener: the prompt ends in `<bot><think>`, but the history contains only `so</think>Hi`.
        start = frame.prefill
    if frame.prefill and frame.prefill == start.lstrip():
        start = frame.prefill  # Drop whitespace that the prompt doesn't have before the marker.
    mode, empty = _mode(start, end, frame, openings), _empty_form(start, end, openings)
    reasoning = Reasoning(mode=mode, start=start, end=end, empty=empty)
    return ReasoningFinding(reasoning=reasoning, to_content=joint, rule=rule)


def _mode(start: str, end: str, frame: TurnFrame, openings: Openings) -> ReasoningMode:
    if not start.strip():
        # Without a start marker, the end marker only delimits reasoning, as in `so far...</think>Hello`.
        return ReasoningMode.DELIMITER
    if frame.prefill.strip().endswith(start.strip()):
        # Check whether the prompt with thinking off contains a closed block, such as `<think></think>`.
        closed = end.strip() in frame.prefill_no_thinking
        return ReasoningMode.FORCED_CLOSED if closed else ReasoningMode.FORCED_OPEN
    return ReasoningMode.TOOLS_ONLY if openings.reasoning_content is None else ReasoningMode.TAG_BASED


def _split_closer(seen: ReasoningRecord, start: str) -> tuple[str, str, str]:
    """Split the text after reasoning into end marker and joint. Return the end marker, the joint, and the name of the heuristic that found
    them.
    """
    openings, frame = seen.openings, seen.frame
    shown = openings.reasoning_content or openings.reasoning_calls or ""
    # If the header is repeated, as in `</think><end><bot>Hello`, reasoning and content are separate messages, so the header is part of the
    # joint.
    closer, repeated, _ = shown.partition(frame.header or "\0")
    if frame.header.strip() and repeated and closer.strip():
        return closer, repeated, "every part is a message of its own"
    # The closer, the joint and content's opener in `</think>\n\n<answer>Hi` can't be separated without another text. `</think>\n\n<call>`
    # shares only `</think>\n\n`, the closer and the joint.
    text, rule = _closer_and_joint(seen, start)
    header = common_suffix([text, frame.header])
    before = text[: len(text) - len(header)]
    if before.strip() and header.strip() and header.strip() == frame.header.strip():
        return before, header, rule
    if not text.strip():
        text, rule = openings.reasoning_content or "", "whitespace closes nothing: the next part's opener does"
    end = text.rstrip()
    # Use the joint before content, because the whitespace before a call may be shorter.
    before_content = openings.reasoning_content or openings.reasoning_content_and_calls or ""
    following = (before_content if before_content.startswith(end) else text)[len(end) :]
    return end, following[: len(following) - len(following.lstrip())], rule


def _closer_and_joint(seen: ReasoningRecord, start: str) -> tuple[str, str]:
    """Return the text after reasoning without the next part's start marker, and the name of the heuristic that found this text."""
    openings = seen.openings
    after = [text for text in (openings.reasoning_content, openings.reasoning_calls) if text is not None]
    # If answers without reasoning also contain the markers, compare these answers: `<think></think>\nHi` with `<think>so</think>\nHi`.
    without = [text for text in (openings.content, openings.calls) if text and start and text.startswith(start)]
    after += [text[len(start) :] for text in without]
    text = common_prefix(after) or after[0]
    # `</p><p kind="text">` and `</p><p kind="call">` share `</p><p kind="`. Remove the incomplete tag, which is part of the following text.
    head, opened, rest = text.rpartition("<")
    text = head if opened and head.strip() and ">" not in rest and any(char.isspace() for char in rest) else text
    if openings.reasoning_content is not None:
        return _first(_BEFORE_CONTENT, text, start, seen)
    return _first(_BEFORE_CALLS, text, start, seen) if len(set(after)) == 1 else (text, _SHARED)


_SHARED = "what all parts that follow share"
_Cut = Callable[[str, str, ReasoningRecord], str]
"""Function that returns the end marker and the joint, or an empty string if the function's heuristic doesn't apply. The function takes the
text after reasoning and reasoning's start marker.
"""


def _first(rules: tuple[tuple[str, _Cut], ...], text: str, start: str, seen: ReasoningRecord) -> tuple[str, str]:
    found = ((cut(text, start, seen), name) for name, cut in rules)
    return next((item for item in found if item[0]), (text, _SHARED))


def _without_content_opener(text: str, start: str, seen: ReasoningRecord) -> str:
    """Remove the opener of content, which is also written before content without reasoning.

    Reasoning's closer is never mistaken for content's opener, although some templates write this closer before content without reasoning.
    With thinking off, some templates replace reasoning's opener with another marker. That marker closes reasoning too, unless another
    marker precedes it.
    """
    frame, openings = seen.frame, seen.openings
    closers = [closer for part in lexemes(start) if is_tag(part) for closer in closers_of(part)]
    alone = frame.prefill_no_thinking.strip()
    if frame.prefill.strip() == start.strip() and not tags_of(text.partition(alone or "\0")[0]):
        closers.append(alone)
    shown = [text for text in (openings.content, openings.content_no_thinking) if text and text.strip()]
    # If answers are `<bot> <answer>Hi` and `…</think><answer>Hi`, the space belongs to the header, so also try content's opener without the
    # space.
    wanted = [form for text in shown for form in (text, text.lstrip())]
    rests = (
        text.removesuffix(opening) for opening in wanted if opening.strip() not in closers and text.endswith(opening)
    )
    return next((rest for rest in rests if rest.strip()), "")


def _without_as_many(text: str, _: str, seen: ReasoningRecord) -> str:
    """Remove content's opener, assuming that it has as many lexemes as content's closer."""
    # In `</r>\n<answer>Hi</answer>`, the closer of content is one lexeme, so the opener is the last lexeme before content, `<answer>`.
    full = seen.openings.reasoning_content or ""
    size, parts = len(lexemes(seen.content_end.strip())), lexemes(full.rstrip())
    marks = any(is_tag(part) for part in parts[-size:])
    return "".join(parts[:-size]) if marks and text == full else ""


def _as_in_pair(text: str, start: str, seen: ReasoningRecord) -> str:
    # If the prompt with thinking off contains `[r]</r>\n`, the closer is the text after `[r]`.
    pair = seen.frame.prefill_no_thinking
    closer = pair[len(start) :].rstrip()
    return closer if start and pair.startswith(start) and text.startswith(closer) else ""


def _before_call(text: str, _: str, seen: ReasoningRecord) -> str:
    calls = seen.openings.calls or "\0"
    return text.removesuffix(calls) if text.endswith(calls) else ""


def _up_to_closer(text: str, start: str, _: ReasoningRecord) -> str:
    """Return `text` up to and including the closer of the last marker of `start`, or an empty string if there is no closer.

    Whitespace after the closer is included, because the whitespace is the joint.
    """
    # In `<a><think>` … `</think>\n\nso</a>`, the marker that was opened last is closed first.
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
    """Return the text that the template writes instead of reasoning if an answer has none.

    Content is checked before calls, unless only calls depend on the thinking switch, because some templates reject content without
    reasoning.
    """
    asked = [(openings.content, openings.content_no_thinking), (openings.calls, openings.calls_no_thinking)]
    opener, closer = start.strip(), end.strip()
    for opening, _ in sorted(asked, key=lambda pair: pair[0] == pair[1]):
        text = opening or ""
        # In `[a][r]\n[r]`, the end marker `[r]` is also part of the start marker, so search after the start marker.
        inside = text.find(opener) + len(opener) if closer in opener and opener in text else 0
        at = text.find(closer, inside) if closer else -1
        if at >= 0 and text[:at].strip() in ("", opener):
            return text[: at + len(closer)]
    return ""


def _from_empty_block(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find an empty block in the generation prompt or before content (R2)."""
    frame, openings = seen.frame, seen.openings
    shown = openings.content or ""
    texts = (frame.prefill_no_thinking, frame.prefill, shown, openings.content_no_thinking or "")
    pair = next(filter(None, map(_empty_block, texts)), None)
    if pair is None:
        return None
    opener, space, closer = pair
    open_prompt = frame.prefill.strip().endswith(opener)
    # Divide the whitespace in an empty block between the opener and the closer: `<think>\n`, `\n</think>`.
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
    """Return the opener, whitespace and closer of an empty block in `text`, or None if there is no such block."""
    parts = lexemes(text)
    for at, part in enumerate(parts):
        space = "".join(takewhile(str.isspace, parts[at + 1 :]))
        closer = next((after for after in parts[at + 1 :] if after.strip()), "")
        if is_tag(part) and closer in closers_of(part):
            return part, space, closer
    return None


def _from_switch(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find text that the generation prompt adds with thinking off (R2). The added text closes the reasoning."""
    start, off, shown = seen.frame.prefill, seen.frame.prefill_no_thinking, (seen.openings.content or "").strip()
    added = off.removeprefix(start)
    # If the prompts are `<bot>[r]` and `<bot>[r][done]`, `[done]` closes reasoning, although the markers aren't spelled as a pair.
    if not start.strip() or not added.strip() or added == off:
        return None
    end = added.rstrip()
    empty = end.strip() if shown == end.strip() else ""
    reasoning = Reasoning(mode=ReasoningMode.FORCED_CLOSED, start=start, end=end, empty=empty, unseen=True)
    return ReasoningFinding(reasoning=reasoning, to_content=added[len(end) :])


def _from_open_block(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find a reasoning block that the generation prompt opens (R2)."""
    frame, openings = seen.frame, seen.openings
    opener = _open_tag(frame.prefill)
    closers = closers_of(opener) if opener else ()
    shown = openings.content or ""
    # If every prompt ends in `<bot><say>` and an answer is `<bot><say>Hi</say>`, the block contains content, not reasoning. If the block's
    # opener depends on a switch, the block contains reasoning.
    always = opener and frame.prefill == frame.prefill_no_thinking and shown.strip().endswith(opener)
    if always and any(tag in closers for tag in tags_of(tail_of(seen.answers.content, CONTENT, frame))[:1]):
        return None
    # Use a closer that occurs in the template. Any other closer is used only if it's the only one that fits the opener.
    closer = next((closer for closer in closers if closer in seen.source or len(closers) == 1), "")
    if not closer:
        return None
    margin = frame.prefill.rpartition(opener)[2]
    # If content or a call follows a closer without an opener, as in `</think>\nHi`, the closer stands for empty reasoning.
    joint = shown.partition(closer)[2] if shown.strip() == closer else ""
    empty = closer if shown.strip() == closer or (openings.calls or "").lstrip().startswith(closer) else ""
    start, end = opener + margin, margin + closer
    reasoning = Reasoning(mode=ReasoningMode.FORCED_OPEN, start=start, end=end, empty=empty, unseen=True)
    return ReasoningFinding(reasoning=reasoning, to_content=joint or UNSEEN_JOINT)


def _from_removal(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find a closer up to which the template removes content: `X</closer>Y` is rendered as `Y`."""
    for closer, body in seen.answers.cut.items():
        # If `Contjaxmer</think>Contzurbin` is rendered as `Contzurbin`, the template treats the text up to `</think>` as reasoning, and
        # drops it.
        if body is None or CONTENT not in body or CONTENT2 in body:
            continue
        # If there are several openers, use the first one that the template contains.
        opener = max(openers_of(closer), key=lambda opener: opener in seen.source)
        mode = ReasoningMode.FORCED_OPEN if seen.frame.prefill.strip().endswith(opener) else ReasoningMode.TAG_BASED
        reasoning = Reasoning(mode=mode, start=opener, end=closer, unseen=True)
        return ReasoningFinding(reasoning=reasoning, to_content=UNSEEN_JOINT)
    return None


_QUOTED = re.compile(r"(?<=\w )(\[[^\[\]<>\n]{3,64}\]|<[^\[\]<>\n]{3,64}>)")
"""Matches a marker inside a sentence."""


def _from_quoted_closer(seen: ReasoningRecord) -> ReasoningFinding | None:
    """Find the end marker in a prompt's instructions, if the prompt starts reasoning in plain words and names only one marker (R2)."""
    # The prompt may be `… then respond after the marker [ANSWER].<bot>My thoughts:\n`. Ignore pairs of markers, like `<a>` and `</a>`.
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
