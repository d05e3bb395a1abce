"""Reads an answer for the turn after it: its calls, and how far it had come when it ended.

The text is read by the turn's own parser. Where it ended is found by one more word, given to a copy: the word goes on with a
thought, or it does not.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer, and where it ended."""

    message: Message
    text: str
    """The answer without the end that was sampled, and without white space around that."""
    space: str
    """White space at the end of the answer."""
    sampled: str = ""
    """The end of the turn that the model wrote; empty where it wrote none."""
    thinks: bool = False
    """The answer ended inside a thought."""
    made_ids: frozenset[str] = frozenset()
    """Ids of calls that the answer does not hold, since its format writes none."""

    @property
    def calls(self) -> bool:
        """Whether the answer makes calls."""
        return bool(self.message.tool_calls)


def read_answer(turn: Turn, answer: str, unfinished: Unfinished) -> Answered:
    """Read an answer to a turn.

    Raises `ExtendError` for a call that was begun and is not complete, unless that counts as text, for text behind the end of
    the turn, and for an end inside a thought.
    """
    # Reasoning that is asked for as content is a thought all the same.
    turn = replace(turn, request=replace(turn.request, reasoning_format="auto"))
    text, sampled = _without_end(turn, answer)
    parser = turn.parser()
    parser.feed(text)
    thinks = _goes_on_thinking(parser)
    if thinks and sampled and not parser.message.tool_calls:
        if not turn.format.reasoning.closed_in(sampled):
            raise ExtendError(f"the answer ends with {sampled!r} inside a thought", "answer")
        # `<|end|>` ends a thought as well as a turn: here it ends the thought, and the answer is not over.
        text, sampled, thinks = answer.rstrip(), "", False
    whole = turn.parser()
    events = whole.finish(text=answer)
    thinks = thinks and not whole.message.tool_calls
    _check_ends(turn, answer, whole)
    message = whole.message
    broken = bool(message.failed_calls) or (not thinks and any(isinstance(event, Malformed) for event in events))
    if broken and unfinished == "error":
        raise ExtendError("the answer has a call that is not complete", "call")
    return Answered(
        message=message,
        text=text,
        space=answer[len(answer.rstrip()) :],
        sampled=sampled,
        thinks=thinks,
        made_ids=frozenset(whole.state()["ids"]),
    )


def ends_of_turn(format: Format) -> tuple[str, ...]:
    """Return all texts that may end an answer, the longest first, without white space around them."""
    turn = format.turn
    texts = (turn.end, *turn.ends, format.reasoning.end)
    found = dict.fromkeys(text.strip() for text in texts if text.strip())
    return tuple(sorted(found, key=len, reverse=True))


def _without_end(turn: Turn, answer: str) -> tuple[str, str]:
    """Return the answer without the end of the turn that was sampled, if one was, and that end."""
    text = answer.rstrip()
    for end in ends_of_turn(turn.format):
        if text.endswith(end) and end != turn.format.reasoning.end.strip():
            return text.removesuffix(end).rstrip(), end
    return text, ""


def _goes_on_thinking(parser: Parser) -> bool:
    """Return whether more text would be a part of a thought."""
    copy = parser.copy()
    events = [*copy.feed(_WORD), *copy.finish()]
    return any(isinstance(event, ReasoningText) and _WORD in event.text for event in events)


def _check_ends(turn: Turn, answer: str, parser: Parser) -> None:
    ended = ""
    for span in parser.spans:
        text = answer[span.start : span.end].strip()
        if ended and text:
            raise ExtendError(
                f"the answer goes on after its end: expected nothing behind {ended!r}, found {text!r:.60}", "answer"
            )
        if span.role is Role.MARKER and text in turn.stop:
            ended = text
