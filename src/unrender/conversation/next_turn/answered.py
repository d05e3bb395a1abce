"""Parse an answer for the next turn, and detect where it ended.

The turn's own parser parses the answer. To find out whether the answer ended inside reasoning, one more word is fed to a copy of the parser.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unrender.errors import ExtendError
from unrender.format import Format
from unrender.machine.events import Malformed, ReasoningText
from unrender.messages.wire import Message
from unrender.nodes import Role

if TYPE_CHECKING:
    from unrender.parser.streaming import Parser
    from unrender.turn import Turn, Unfinished

_WORD = "Vexquill"
_SAID = (Role.CONTENT, Role.NAME)
_TOKEN = re.compile(r"(?=.*\w).*[<>\[\]{}|]")
"""Matches text with brackets and letters, which is unlikely to occur in prose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A parsed answer, split into its text and its end."""

    message: Message
    """The message that `Turn.parse` returns for the answer."""
    written_ids: tuple[str, ...]
    """The id of each call, as written in the answer, or "" for a call without an id."""
    text: str
    """The answer without the sampled end of the turn and the whitespace around that end."""
    space: str
    """Whitespace at the end of the answer."""
    layout: str = ""
    """Whitespace before the sampled end of the turn."""
    sampled: str = ""
    """The end-of-turn marker if the model sampled it, else ""."""
    thinks: bool = False
    """True if the answer ended inside reasoning."""


def read_answer(turn: Turn, answer: str, unfinished: Unfinished, ends: Collection[str]) -> Answered:
    """Parse a turn's answer. `ends` are additional end-of-turn markers, besides those of the turn's format.

    Raises `ExtendError` for text after the end of the turn, and for an end of the turn inside reasoning. An incomplete call is also an
    error, unless `unfinished` allows it.
    """
    # Separate reasoning from content even if the request asks for both as one text. Accept the ids of earlier calls.
    turn = replace(turn, request=replace(turn.request, reasoning_format="auto"))
    bare = replace(turn, known_ids=())
    text, sampled = _without_end(turn, answer, ends)
    parser = bare.parser()
    parser.feed(answer[: answer.rindex(sampled)] if sampled else answer)
    thinks = _goes_on_thinking(parser)
    if thinks and sampled and not parser.message.tool_calls:
        if not turn.format.reasoning.closed_in(sampled):
            raise ExtendError(f"the answer ends with {sampled!r} inside reasoning", "answer")
        # A marker such as `<|end|>` may end both reasoning and a turn. If it occurs inside reasoning, it ends only the reasoning.
        text, sampled, thinks = answer.rstrip(), "", False
    whole = bare.parser()
    events = whole.finish(text=answer)
    _check_ends(turn, answer, whole)
    thinks = thinks and not whole.message.tool_calls
    # Ignore a missing end of the section after `</call>`: the calls are complete, although the parser reports it as malformed.
    closed = turn.format.tools.markers.closer.strip()
    whole_calls = bool(whole.message.tool_calls and closed and text.endswith(closed))
    reported = any(isinstance(event, Malformed) for event in events) and not thinks and not whole_calls
    broken = bool(whole.message.failed_calls) or reported
    if broken and unfinished == "error":
        raise ExtendError("the answer has an incomplete call", "call")
    written = tuple("" if call.id in whole._made_ids else call.id for call in whole.message.tool_calls)
    return Answered(
        message=turn.parse(answer) if turn.known_ids and any(written) else whole.message,
        written_ids=written,
        text=text,
        space=answer[len(answer.rstrip()) :],
        layout=answer[len(text) : answer.rindex(sampled)] if sampled else "",
        sampled=sampled,
        thinks=thinks,
    )


def ends_of_turn(format: Format, *more: str) -> tuple[str, ...]:
    """Return all end-of-turn markers of the format, and those in `more`. The markers are stripped of whitespace, and the longest come
    first.
    """
    texts = dict.fromkeys((*format.turn.all_ends, *(text.strip() for text in more if text.strip())))
    return tuple(sorted(texts, key=len, reverse=True))


def _without_end(turn: Turn, answer: str, ends: Collection[str]) -> tuple[str, str]:
    """Split an answer into the text before the sampled end of the turn and the end itself, such as `<|im_end|></s>`."""
    text, left = answer.rstrip(), [*ends_of_turn(turn.format, *ends)]
    while end := next((end for end in left if text.endswith(end)), ""):
        text = text.removesuffix(end).rstrip()
        left.remove(end)
    return text, answer[len(text) :].strip()


def _goes_on_thinking(parser: Parser) -> bool:
    """Return whether the parser would parse further text as reasoning."""
    copy = parser.copy()
    events = [*copy.feed(_WORD), *copy.finish()]
    return any(isinstance(event, ReasoningText) and _WORD in event.text for event in events)


def _check_ends(turn: Turn, answer: str, parser: Parser) -> None:
    """Raise `ExtendError` if there is text after the end of the turn. End-of-turn markers inside argument values are ignored."""
    ends, said, over, ended = ends_of_turn(turn.format), False, 0, ""
    for span in parser.spans:
        text, words = answer[span.start : span.end], span.role is Role.CONTENT
        if span.role is Role.NAME:
            ended = ""  # A part of the message has just started, so the previous marker didn't end the turn.
        if ended and words and text.strip():
            break
        said = said or (span.role in _SAID and bool(text.strip()))
        said = said or (span.role is Role.MARKER and text.strip() in ends and not turn.format.reasoning.closed_in(text))
        if said and not ended and (words or span.role is Role.MARKER):
            # The parser may treat an end-of-turn marker such as `[/END]` as content if text follows it, so search content too.
            ended = next((end for end in ends if end in text and (_TOKEN.search(end) or not words)), "")
            over = span.start + text.find(ended) + len(ended)
    if not ended:
        return
    behind = answer[over:].strip()
    for end in ends:
        behind = behind if end == ended else behind.removeprefix(end).strip()
    if behind:
        raise ExtendError(
            f"expected nothing after the end of the answer, found {behind!r:.60} after {ended!r}", "answer"
        )
