"""Lists the markers around the parts of an answer: ends of turn, headers, and joints, each with the place where it counts.

Rules:
- A marker that holds a special token counts wherever it is: text does not have such tokens.
- One that is made of words counts only where it may stand: an end of turn where nothing but an end or a header follows, a
  header right after an end of turn, a joint where content begins. Everywhere else the same words are text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from unrender.answer.literals import holds_token
from unrender.format import Format, Reasoning, ReasoningMode, Slot, TurnTexts

_SPECIAL = re.compile(r"<[^<>\s]+>$")
"""A special token at the end of a text."""
_JOINTS = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")


def ends(format: Format) -> Iterator[str]:
    """Yield what ends a turn; an engine may strip the last token of it, the one that stops the model."""
    # Of "<end><stop>" the engine strips `<stop>`, so that "<end>" alone has to end the turn.
    texts = (format.turn.end, *(trail(format) + end.lstrip() for end in format.turn.ends))
    yield from _markers((*texts, *(_SPECIAL.sub("", end.strip()) for end in texts)))


def headers_in_words(format: Format) -> Iterator[str]:
    """Yield the headers that are words: they are dropped right after an end of turn, and nowhere else."""
    yield from (header for header in _markers(format.turn.headers) if not holds_token(header))


def joints_in_words(format: Format) -> Iterator[str]:
    """Yield the words that may stand where content begins, and are none of it."""
    texts = (*format.ignored, *_stray_closers(format), *(getattr(format.turn, joint) for joint in _JOINTS))
    yield from (text for text in _markers(texts) if not holds_token(text))


def joints_before_calls(turn: TurnTexts) -> tuple[str, ...]:
    """Return the joints that are right before calls."""
    return turn.content_to_tools, turn.reasoning_to_tools, turn.start_to_tools


def dropped(format: Format) -> Iterator[str]:
    """Yield the special tokens that carry nothing: repeated headers, tokens between parts, stray reasoning closers."""
    turn = format.turn
    texts = [*turn.headers, *format.ignored]
    # Models repeat the last token of their header.
    texts += [last.group() for header in turn.headers if (last := _SPECIAL.search(header.strip()))]
    texts += [*_stray_closers(format), *(getattr(turn, joint) for joint in _JOINTS)]
    yield from (text for text in _markers(texts) if holds_token(text))


def _stray_closers(format: Format) -> Iterator[str]:
    # A stray `</think>` says nothing where reasoning has an opener of its own; where it has none, it ends reasoning.
    reasoning = format.reasoning
    if reasoning.mode is not ReasoningMode.DELIMITER and not reasoning.ends_within_start:
        yield from (end + after_reasoning(format.turn) for end in spellings(format, reasoning.end))


def _markers(texts: Iterable[str]) -> Iterator[str]:
    yield from dict.fromkeys(filter(_is_marker, texts))


def _is_marker(text: str) -> bool:
    """Return whether a text may stand for something else than itself: `$` is a part of prose, `∎` alone is not."""
    marker = text.strip()
    return len(marker) > 1 or (not marker.isascii() and unicodedata.category(marker)[0] in "SC")


def names_in_openers(format: Format, blocks: Iterable[Reasoning]) -> Iterator[tuple[str, Reasoning]]:
    """Yield the name of a tool whose calls would begin with a block's opener, and that block.

    Where calls are `<NAME>…</NAME>`, `<think>` begins a call of the tool `think`.
    """
    for block in blocks:
        opener = block.start.strip()
        for syntax in format.syntaxes:
            at = syntax.function.index(Slot.NAME)
            before = "".join((syntax.section_start, syntax.call_start, *map(str, syntax.function[:at]))).strip()
            after = syntax.name_suffix.strip()
            name = opener.removeprefix(before).removesuffix(after)
            if at and after and opener == before + name + after:
                yield name, block


def spellings(format: Format, marker: str) -> list[str]:
    """Return a marker in all its spellings, the format's own first."""
    # A format may say that models also write `<tool-call>` for `<tool_call>`.
    others = [other for spelling in format.spellings if spelling.marker == marker.strip() for other in spelling.others]
    return [marker, *others] if marker else others


def trail(format: Format) -> str:
    """Return the layout with which the end of a turn begins: engines strip the token after it."""
    end = format.turn.end
    return end[: len(end) - len(end.lstrip())]


def after_reasoning(turn: TurnTexts) -> str:
    """Return the most layout that is between reasoning and content; calls take their own."""
    # `</think> Hi` beside `</think>\n\n<call>`: the space is not the beginning of the line breaks.
    to_content, to_tools = map(layout, (turn.reasoning_to_content, turn.reasoning_to_tools))
    return to_tools if to_tools.startswith(to_content) else to_content


def layout(joint: str) -> str:
    """Return a joint that is nothing but white space; "" for any other."""
    return "" if joint.strip() else joint
