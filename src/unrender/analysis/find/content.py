"""Finds the wrapper of content and the end of the turn from renderings (C1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from unrender.analysis.ask.answers import Answers, Turns
from unrender.analysis.ask.probes import CONTENT, EOS, NAMES, NUMBERS, REASONING, carries_needle
from unrender.analysis.find.reasoning import Openings, ReasoningFinding
from unrender.analysis.find.turn_frame import TurnFrame, end_in_history, tail_of
from unrender.format import Content, ContentMode, Spelling
from unrender.format.tokens import lexemes
from unrender.proof.split import closers_of, common_prefix, common_suffix, is_tag, is_word, tags_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tails:
    """The text after the last needle of an answer, up to the end of the turn."""

    content: str
    calls: str
    """Empty when calls are not rendered."""
    common: str
    """The end that both have in common, with whole markers."""
    before_eos: bool = False
    """EOS, which is in no tail, ends the turn after content."""
    unended: bool = False
    """The last answer of a conversation is not ended; the tail of content is that of an earlier one."""

    def end_of_calls(self, end: str) -> str:
        """Return how a turn of calls ends; empty when `end` is not shown after calls in the last message."""
        return "" if self.unended and not self.calls.endswith(end) else end


def find_tails(turns: Turns, frame: TurnFrame, answers: Answers, *, shows_calls: bool) -> Tails:
    """Compare how content and calls end; `shows_calls` says that the template writes calls at all."""
    # A template may refuse content that was not thought about: without thinking, it ends alike.
    body = answers.content or answers.content_no_thinking
    before_eos = body is not None and EOS in body.rpartition(CONTENT)[2]
    content = tail_of(body, CONTENT, frame)
    unended = not content.strip() and not before_eos
    # `Hi` in the last place, and `Hi<end>` before another question: only the history shows the end.
    if unended and tags_of(end := end_in_history(turns)):
        content = end
    calls = tail_of(answers.call, str(NUMBERS[0]), frame) if shows_calls else ""
    common = _whole_markers(common_suffix([content, calls]), [content, calls]) if calls else ""
    return Tails(content=content, calls=calls, common=common, before_eos=before_eos, unended=unended)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentFinding:
    """The wrapping of content, and the text that ends a turn that has content."""

    content: Content
    turn_end: str
    rule: str
    """The name of the heuristic that found where the wrapper ends."""
    lead: str = ""
    """White space before the wrapper where nothing else of the answer is before it."""
    after_reasoning: str = ""
    """The text before the wrapper after reasoning only, and not at the start of an answer."""

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        """The longer opener: models that begin content so after reasoning do so without reasoning as well."""
        start, longer = self.content.start.strip(), (self.after_reasoning + self.content.start).strip()
        return (Spelling(marker=start, others=(longer,), why="Content begins so after reasoning."),) * (longer != start)


_Ending = Callable[[str, Tails, Openings], str]
"""Takes content's opener and the ends of answers, and returns content's closer; empty when the rule does not apply."""


def _only_after_reasoning(_: str, tails: Tails, openings: Openings) -> str:
    # `Hi<end>` alone, and `<think>so</think><a>Hi</a><end>`: `</a>` is there only after reasoning.
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
    """Return content's closer: the text that ends content and no other part. Empty when nothing ends it."""
    return _end("", tails, openings, _COMPARED)[0]


def find_content(openings: Openings, tails: Tails, found: ReasoningFinding) -> ContentFinding:
    """Return the content's wrapper and the end of the turn.

    A closer alone does not make a wrapper: without an opener, the text after content ends the turn.
    """
    reasoning = found.reasoning
    # `<answer>Hi` beside `<think>so</think>\n<answer>Hi`: what opens content alone and after reasoning is compared.
    plain = without_reasoning(openings.content or "", found)
    reasoned = (openings.reasoning_content or "")[len(reasoning.end + found.to_content) :]
    start = plain if plain.strip() else reasoned if reasoned.strip() else ""
    if not start:
        return ContentFinding(content=Content(), turn_end=tails.content, rule="no marker opens it")
    lead = ""
    if reasoned and plain != reasoned and plain.lstrip() == reasoned:  # The white space belongs to the turn.
        lead, start = plain.removesuffix(reasoned), reasoned
    # `<message>Hi` alone, and `<final><message>Hi` after reasoning: `<final>` is between reasoning and content.
    between = reasoned.removesuffix(plain) if plain.strip() and reasoned.endswith(plain) else ""
    end, rule = _end(start, tails, openings, _RULES)
    always = bool(plain.strip()) or openings.reasoning_content is None
    # `<answer>` may be there after reasoning only: then content alone is plain.
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
    """Return an opening without the empty form of reasoning, or without its markers."""
    start, end, empty = found.reasoning.start, found.reasoning.end, found.reasoning.empty
    # `<think></think>\n<answer>`: the empty block is reasoning's, and so is the joint after it.
    if empty and opening.startswith(empty):
        return opening[len(empty) :].removeprefix(found.to_content)
    if start.strip() and opening.strip() == start.strip():
        return ""
    if end.strip() and end.strip() in opening:
        return opening.partition(end.strip())[2].removeprefix(found.to_content)
    return opening


def _mirrored_end(start: str, tails: Tails, _: Openings) -> str:
    """Without other answers to compare with, take as many markers from the tail as the opener has.

    One is left to end the turn, unless they close what the opener opened, and EOS ends it or calls end without them.
    """
    openers, (parts, tags) = tags_of(start), _parts_and_tags(tails.content)
    if not openers or len(tags) < len(openers):
        return ""
    # `<a>Hi</a>` + EOS: `</a>` closes `<a>`, and something else ends the turn. In `<a>Hi<end>`, `<end>` does.
    ends_otherwise = tails.before_eos or (tails.calls and parts[tags[0]] not in tails.calls)
    closed = ends_otherwise and parts[tags[0]] in closers_of(openers[-1])
    return "".join(parts[: tags[len(openers) - 1] + 1]) if closed or len(tags) > len(openers) else ""


def _closer(start: str, tails: Tails, openings: Openings) -> str:
    """Return the end marker of content that is written only after reasoning."""
    openers, (parts, tags) = tags_of(start), _parts_and_tags(openings.reasoned_tail)
    if not openers or not tags or tails.content.strip() or parts[tags[0]] not in closers_of(openers[-1]):
        return ""
    return "".join(parts[: tags[0] + 1])


def _parts_and_tags(text: str) -> tuple[list[str], list[int]]:
    parts = lexemes(text)
    return parts, [at for at, part in enumerate(parts) if is_tag(part)]


_RULES = (*_COMPARED, ("as many markers as open it", _mirrored_end), ("the marker that closes what opens it", _closer))


def _whole_markers(suffix: str, texts: list[str]) -> str:
    """Drop the rest of a composite marker from the start of `suffix`, as `<|sep|>` of `<|close|>tools<|sep|>`."""
    # After `say` in one text and `tools` in the other, `<|sep|>` is shared by accident: it belongs to the word before it.
    parts = lexemes(suffix)
    before = [lexemes(text[: len(text) - len(suffix)])[-1:] for text in texts]
    cut = parts and is_tag(parts[0]) and any(part and is_word(part[0]) for part in before)
    return "".join(parts[1:]) if cut else suffix


def find_beside(answers: Answers, content: Content, found: ReasoningFinding) -> Content | None:
    """Return the wrapper of content before calls; None when it is the usual wrapper, or when no rendering shows both.

    The text around such content is compared with the text around a call alone. A wrapper that is written around empty content
    as well shows its end that way. Any other wrapper ends with the marker that closes its opener.
    """
    mixed = answers.mixed
    if mixed is None or NAMES[0] not in mixed.partition(CONTENT)[2]:
        return None
    opening, _, after_content = mixed.partition(CONTENT)
    if carries_needle(opening):  # `[{"name": "f"}]Hi[{"name": "f"}]`: a call is before the content as well.
        return None
    before_reasoning, reasoned, _ = (answers.reasoned_call or "").partition(REASONING)
    if reasoned and before_reasoning.strip() == opening.strip():  # Content beside calls is where reasoning is.
        return None
    opening = without_reasoning(opening, found)
    alone = without_reasoning((answers.call or "").partition(NAMES[0])[0], found)
    if opening.strip() == content.start.strip():
        return _around_calls(content, alone, after_content)
    if not opening.strip():
        return Content()
    # `<say>Hi</say><call>` beside `<say></say><call>`: the wrapper is written around nothing as well, and both share its end.
    shared = common_prefix([alone[len(opening) :], after_content]) if alone.startswith(opening) else ""
    empty = bool(shared.strip())
    end = _closer_beside_calls(opening, shared if empty else after_content) or shared * empty
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=opening, end=end, wraps_empty=empty and bool(end))


def _around_calls(content: Content, alone: str, after_content: str) -> Content | None:
    """Return the wrapper that calls are inside of as content is: beside them, nothing ends it. None if they are outside.

    `alone` is what is before a call without content, `after_content` what is after content and holds the call.
    """
    # `<say>Hi<call>…</call></say>`: nothing ends content before the call, and the wrapper is there without content, too.
    start, end = content.start.strip(), content.end.strip()
    if not start or not end or end in after_content.partition(NAMES[0])[0] or end not in after_content:
        return None
    inside = alone.lstrip().startswith(start)
    return Content(mode=ContentMode.ALWAYS_WRAPPED, start=content.start, wraps_empty=True) if inside else None


def _closer_beside_calls(opening: str, after_content: str) -> str:
    """Return what follows content up to and with the marker that closes the opening's last one; empty without any."""
    tags = tags_of(opening)
    for closer in closers_of(tags[-1]) if tags else ():
        head, closed, _ = after_content.partition(closer)
        if closed and NAMES[0] not in head:
            return head + closed
    return ""
