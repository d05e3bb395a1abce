"""Finds the wrapper of content and the end of the turn from renderings (C1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unrender.analysis.ask import CONTENT, EOS, NAMES, NUMBERS, REASONING, carries_needle
from unrender.analysis.ask.answers import Answers, Turns
from unrender.analysis.find.reasoning import Openings, ReasoningFinding
from unrender.analysis.find.turn_frame import TurnFrame, end_in_history, tail_of
from unrender.format import Content, ContentMode, Spelling, lexemes
from unrender.proof.split import closers_of, common_prefix, common_suffix, is_tag, is_word, tags_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """Text after the last needle of answers with content and of answers with calls, through the end of the turn."""

    content: str
    calls: str
    """Text after the last call, or an empty string if calls aren't rendered."""
    common: str
    """Common suffix of `content` and `calls`, without partial markers."""
    before_eos: bool = False
    """True if EOS ends the turn after content. `content` and `calls` never contain EOS itself."""
    unended: bool = False
    """True if the last answer of a conversation has no end marker. `content` then comes from an earlier answer."""

    def end_of_calls(self, end: str) -> str:
        """Return the end of a turn with calls, or an empty string if the last answer doesn't show it. `end` is the end of other turns."""
        return "" if self.unended and not self.calls.endswith(end) else end


def find_tails(turns: Turns, frame: TurnFrame, answers: Answers, *, shows_calls: bool) -> Tails:
    """Compare the text after content with the text after calls. `shows_calls` is true if the template renders calls."""
    # If the template rejects content without reasoning unless thinking is off, use that rendering: the text after content doesn't depend on
    # thinking.
    body = answers.content or answers.content_no_thinking
    before_eos = body is not None and EOS in body.rpartition(CONTENT)[2]
    content = tail_of(body, CONTENT, frame)
    unended = not content.strip() and not before_eos
    # If the last answer is `Hi` and an earlier answer is `Hi<end>`, use the end of the earlier answer.
    if unended and tags_of(end := end_in_history(turns)):
        content = end
    calls = tail_of(answers.call, str(NUMBERS[0]), frame) if shows_calls else ""
    common = _whole_markers(common_suffix([content, calls]), [content, calls]) if calls else ""
    return Tails(content=content, calls=calls, common=common, before_eos=before_eos, unended=unended)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentFinding:
    """Wrapper of content, and the text that ends a turn with content."""

    content: Content
    turn_end: str
    rule: str
    """Name of the heuristic that found the end of the content's wrapper."""
    lead: str = ""
    """Whitespace that precedes the wrapper at the start of an answer."""
    after_reasoning: str = ""
    """Text between reasoning and the wrapper, written only after reasoning."""

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        """Alternative opener of content: the longer opener, which templates write only after reasoning, but models also write without
        reasoning.
        """
        start, longer = self.content.start.strip(), (self.after_reasoning + self.content.start).strip()
        return (Spelling(marker=start, others=(longer,), why="Content begins so after reasoning."),) * (longer != start)


_Ending = Callable[[str, Tails, Openings], str]
"""Function that returns content's closer, or an empty string if the function's rule doesn't apply. The function takes content's opener and
the text after answers.
"""


def _only_after_reasoning(_: str, tails: Tails, openings: Openings) -> str:
    # If answers are `Hi<end>` and `<think>so</think><a>Hi</a><end>`, `</a>` is written only after reasoning.
    reasoned = openings.reasoned_tail
    known = tails.content or openings.content is not None
    return reasoned.removesuffix(tails.content) if known and reasoned.endswith(tails.content) else ""


_COMPARED: tuple[tuple[str, _Ending], ...] = (
    ("what follows content after reasoning only", _only_after_reasoning),
    (
        "what follows content and no call",
        lambda _, tails, __: tails.content[: -len(tails.common)] if tails.common.strip() else "",
    ),
)


def wrapper_end(tails: Tails, openings: Openings) -> str:
    """Return content's closer, which follows content and no other part, or an empty string if there is none."""
    return _end("", tails, openings, _COMPARED)[0]


def find_content(openings: Openings, tails: Tails, found: ReasoningFinding) -> ContentFinding:
    """Return the content's wrapper and the end of the turn.

    A closer alone isn't a wrapper: without an opener, the text after content ends the turn.
    """
    reasoning = found.reasoning
    # Compare the text before content alone, `<answer>Hi`, with the text before content after reasoning, `<think>so</think>\n<answer>Hi`.
    plain = without_reasoning(openings.content or "", found)
    reasoned = (openings.reasoning_content or "")[len(reasoning.end + found.to_content) :]
    start = plain if plain.strip() else reasoned if reasoned.strip() else ""
    if not start:
        return ContentFinding(content=Content(), turn_end=tails.content, rule="no marker opens it")
    lead = ""
    # Whitespace at the start of `plain` isn't part of the opener.
    if reasoned and plain != reasoned and plain.lstrip() == reasoned:
        lead, start = plain.removesuffix(reasoned), reasoned
    # If answers are `<message>Hi` and, after reasoning, `<final><message>Hi`, `<final>` is text between reasoning and content.
    between = reasoned.removesuffix(plain) if plain.strip() and reasoned.endswith(plain) else ""
    end, rule = _end(start, tails, openings, _RULES)
    always = bool(plain.strip()) or openings.reasoning_content is None
    # If `<answer>` is written only after reasoning, content alone has no wrapper.
    mode = ContentMode.ALWAYS_WRAPPED if always else ContentMode.WRAPPED_WITH_REASONING
    turn_end = tails.content.removeprefix(end) if always else tails.content
    before_calls = filter(None, (openings.calls, openings.reasoning_calls))
    written_empty = bool(end) and any(start + end in text for text in before_calls)
    content = Content(mode=mode, start=start, end=end, wraps_empty=written_empty)
    return ContentFinding(content=content, turn_end=turn_end, rule=rule, lead=lead, after_reasoning=between)


def _end(start: str, tails: Tails, openings: Openings, rules: tuple[tuple[str, _Ending], ...]) -> tuple[str, str]:
    found = ((find(start, tails, openings), name) for name, find in rules)
    return next((item for item in found if item[0]), ("", "nothing closes it"))


def without_reasoning(opening: str, found: ReasoningFinding) -> str:
    """Remove empty reasoning and the markers of reasoning from an opening."""
    start, end, empty = found.reasoning.start, found.reasoning.end, found.reasoning.empty
    # In `<think></think>\n<answer>`, the empty block and the joint after it are part of reasoning.
    if empty and opening.startswith(empty):
        return opening[len(empty) :].removeprefix(found.to_content)
    if start.strip() and opening.strip() == start.strip():
        return ""
    if end.strip() and end.strip() in opening:
        return opening.partition(end.strip())[2].removeprefix(found.to_content)
    return opening


def _mirrored_end(start: str, tails: Tails, _: Openings) -> str:
    """Return content's closer: as many markers from the text after content as content's opener has. Used if there are no other answers to
    compare with.

    Another marker must follow to end the turn. That marker may be missing if the returned markers close the opener, and either EOS ends the
    turn or calls end without the returned markers.
    """
    openers, (parts, tags) = tags_of(start), _parts_and_tags(tails.content)
    if not openers or len(tags) < len(openers):
        return ""
    # In `<a>Hi</a>` + EOS, `</a>` closes `<a>`, because EOS ends the turn. In `<a>Hi<end>`, nothing closes `<a>`, because `<end>` ends the
    # turn.
    ends_otherwise = tails.before_eos or (tails.calls and parts[tags[0]] not in tails.calls)
    closed = ends_otherwise and parts[tags[0]] in closers_of(openers[-1])
    return "".join(parts[: tags[len(openers) - 1] + 1]) if closed or len(tags) > len(openers) else ""


def _closer(start: str, tails: Tails, openings: Openings) -> str:
    """Return the end marker of content, if the template writes this marker only after reasoning."""
    openers, (parts, tags) = tags_of(start), _parts_and_tags(openings.reasoned_tail)
    if not openers or not tags or tails.content.strip() or parts[tags[0]] not in closers_of(openers[-1]):
        return ""
    return "".join(parts[: tags[0] + 1])


def _parts_and_tags(text: str) -> tuple[list[str], list[int]]:
    parts = lexemes(text)
    return parts, [at for at, part in enumerate(parts) if is_tag(part)]


_RULES = (*_COMPARED, ("as many markers as open it", _mirrored_end), ("the marker that closes what opens it", _closer))


def _whole_markers(suffix: str, texts: list[str]) -> str:
    """Remove a partial marker from the start of `suffix`, e.g. `<|sep|>` from `<|close|>tools<|sep|>`."""
    # If `<|sep|>` follows the word `say` in one text and `tools` in another, it completes these words, so it isn't a shared marker.
    parts = lexemes(suffix)
    before = [lexemes(text[: len(text) - len(suffix)])[-1:] for text in texts]
    cut = parts and is_tag(parts[0]) and any(part and is_word(part[0]) for part in before)
    return "".join(parts[1:]) if cut else suffix


def find_beside(answers: Answers, content: Content, found: ReasoningFinding) -> Content | None:
    """Return the wrapper of content before calls, or None if it's the usual wrapper or no rendering shows content and calls.

    The text around such content is compared with the text around a call alone. If the wrapper is also written around empty content, the
    comparison shows its end. Any other wrapper ends with the marker that closes its opener.
    """
    mixed = answers.mixed
    if mixed is None or NAMES[0] not in mixed.partition(CONTENT)[2]:
        return None
    opening, _, after_content = mixed.partition(CONTENT)
    if carries_needle(opening):  # Skip openings that contain a call, as in `[{"name": "f"}]Hi[{"name": "f"}]`.
        return None
    before_reasoning, reasoned, _ = (answers.reasoned_call or "").partition(REASONING)
    # If content with calls is written between the markers of reasoning, it has no wrapper of its own.
    if reasoned and before_reasoning.strip() == opening.strip():
        return None
    opening = without_reasoning(opening, found)
    alone = without_reasoning((answers.call or "").partition(NAMES[0])[0], found)
    if opening.strip() == content.start.strip():
        return _around_calls(content, alone, after_content)
    if not opening.strip():
        return Content()
    # If `<say>Hi</say><call>` and `<say></say><call>` are written, the wrapper is also written around empty content. The common text after
    # the content and after the opener starts with the wrapper's end.
    shared = common_prefix([alone[len(opening) :], after_content]) if alone.startswith(opening) else ""
    empty = bool(shared.strip())
    end = _closer_beside_calls(opening, shared if empty else after_content) or shared * empty
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=opening, end=end, wraps_empty=empty and bool(end))


def _around_calls(content: Content, alone: str, after_content: str) -> Content | None:
    """Return the content's wrapper without its end if calls are inside the wrapper, or None if calls are outside.

    `alone` is the text before a call without content. `after_content` is the text after content, including the call.
    """
    # Calls are inside if nothing ends the content before the call, as in `<say>Hi<call>…</call></say>`, and a call without content is also
    # inside the wrapper.
    start, end = content.start.strip(), content.end.strip()
    if not start or not end or end in after_content.partition(NAMES[0])[0] or end not in after_content:
        return None
    inside = alone.lstrip().startswith(start)
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=content.start, wraps_empty=True) if inside else None


def _closer_beside_calls(opening: str, after_content: str) -> str:
    """Return the text after content, up to and including the closer of the opening's last marker, or an empty string if there is no closer."""
    tags = tags_of(opening)
    for closer in closers_of(tags[-1]) if tags else ():
        head, closed, _ = after_content.partition(closer)
        if closed and NAMES[0] not in head:
            return head + closed
    return ""
