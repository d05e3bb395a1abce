"""Parse an answer for the next turn: its calls, and the state in which it ended.

The turn's own parser reads the text. To find out whether the answer ended inside reasoning, one more word is fed to a copy of the parser.
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
"""Text with brackets and letters, which doesn't occur in prose by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A parsed answer and the state in which it ended."""

    message: Message
    """The answer as parsed by `Turn.parse`."""
    written_ids: tuple[str, ...]
    """The id of each call in the answer; "" for calls without one."""
    text: str
    """The answer without the sampled end of the turn and the white space around it."""
    space: str
    """White space at the end of the answer."""
    layout: str = ""
    """White space before the sampled end of the turn."""
    sampled: str = ""
    """The end of the turn, if the model wrote it, else empty."""
    thinks: bool = False
    """True if the answer ended inside reasoning."""


def read_answer(turn: Turn, answer: str, unfinished: Unfinished, ends: Collection[str]) -> Answered:
    """Parse a turn's answer. `ends` are end-of-turn texts in addition to those of its format.

    Raises `ExtendError` for an incomplete call (unless it counts as text) and for text after the end of the turn. The end of the turn
    inside reasoning is an error too.
    """
    # Reasoning that is returned as content is still reasoning here. Ids in the answer may equal those of earlier calls.
    turn = replace(turn, request=replace(turn.request, reasoning_format="auto"))
    bare = replace(turn, known_ids=())
    text, sampled = _without_end(turn, answer, ends)
    parser = bare.parser()
    parser.feed(answer[: answer.rindex(sampled)] if sampled else answer)
    thinks = _goes_on_thinking(parser)
    if thinks and sampled and not parser.message.tool_calls:
        if not turn.format.reasoning.closed_in(sampled):
            raise ExtendError(f"the answer ends with {sampled!r} inside reasoning", "answer")
        # `<|end|>` ends reasoning as well as a turn. Here it ends the reasoning, and the answer continues.
        text, sampled, thinks = answer.rstrip(), "", False
    whole = bare.parser()
    events = whole.finish(text=answer)
    _check_ends(turn, answer, whole)
    thinks = thinks and not whole.message.tool_calls
    # A missing end of the section after `</call>` is reported as malformed, although the calls are complete.
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
    """Return all texts that end an answer, and `more`: stripped, without duplicates, the longest first."""
    texts = dict.fromkeys((*format.turn.all_ends, *(text.strip() for text in more if text.strip())))
    return tuple(sorted(texts, key=len, reverse=True))


def _without_end(turn: Turn, answer: str, ends: Collection[str]) -> tuple[str, str]:
    """Return the answer without the sampled end of the turn, and that end, e.g. `<|im_end|></s>`."""
    text, left = answer.rstrip(), [*ends_of_turn(turn.format, *ends)]
    while end := next((end for end in left if text.endswith(end)), ""):
        text = text.removesuffix(end).rstrip()
        left.remove(end)
    return text, answer[len(text) :].strip()


def _goes_on_thinking(parser: Parser) -> bool:
    """Return whether more text would be part of the reasoning."""
    copy = parser.copy()
    events = [*copy.feed(_WORD), *copy.finish()]
    return any(isinstance(event, ReasoningText) and _WORD in event.text for event in events)


def _check_ends(turn: Turn, answer: str, parser: Parser) -> None:
    """Raise `ExtendError` for text after the end of a turn. Ends inside of values don't count."""
    ends, said, over, ended = ends_of_turn(turn.format), False, 0, ""
    for span in parser.spans:
        text, words = answer[span.start : span.end], span.role is Role.CONTENT
        if span.role is Role.NAME:
            ended = ""  # The end of a message may also end each of its parts.
        if ended and words and text.strip():
            break
        said = said or (span.role in _SAID and bool(text.strip()))
        said = said or (span.role is Role.MARKER and text.strip() in ends and not turn.format.reasoning.closed_in(text))
        if said and not ended and (words or span.role is Role.MARKER):
            # The parser may read an end like `[/END]` as content if more text follows.
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
