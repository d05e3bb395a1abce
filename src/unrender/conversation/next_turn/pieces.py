"""Separate the text of new messages from the template's text around them.

Strategy: Render the same conversation again, with a unique word in place of each text of the new messages. Text between these words belongs
to the template. Text at the positions of the words belongs to the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

from unrender.conversation.messages import Conversation, Said, with_texts, words_in
from unrender.conversation.next_turn.stubs import Stub, WrittenTail
from unrender.errors import ExtendError
from unrender.turn import Piece

_WORD = "Wobblefern{}x{}z"


@dataclass(frozen=True, slots=True)
class Extended:
    """Text that was appended to a prompt and its answer, with the data that it was rendered from."""

    stub: Stub
    answer: Said
    """A short placeholder of the same kind as the answer."""
    new: Conversation
    lead: str
    """Text that is added to close the answer, although the template wouldn't write it there."""
    end: str
    """Text that ends the answer, without the part that the answer already contains."""
    rest: str
    """The template's text after the end of the answer."""

    @property
    def text(self) -> str:
        """The complete appended text."""
        return self.lead + self.end + self.rest


def appended_pieces(extended: Extended) -> tuple[Piece, ...]:
    """Return the appended text in pieces. Raises `ExtendError` if the template mixes the text of different messages."""
    planted, rest = _planted(extended.new), extended.rest
    whole, tail = (_tail(extended, new, asks=True) for new in (planted, extended.new))
    # Sort by position, since some templates write results in the order of the calls.
    texts = sorted(_texts(extended.new), key=lambda text: whole.find(text[0]))
    first, *around = _between([word for word, _, _ in texts], whole)
    # Shorten `first` like `rest`, whose start is missing if the answer already contains it.
    first = rest[: len(first) + len(rest) - len(tail)] if texts else rest
    bodies = _bodies(rest, [first, *around], [text for _, _, text in texts])
    pieces = [Piece(text=extended.lead), Piece(text=extended.end)]
    owners: list[int | None] = [index for _, index, _ in texts]
    pieces += _scaffold(first, "", None, owners[0] if owners else None)
    closings: dict[tuple[Any, ...], str] = {}
    for at, body in enumerate(bodies):
        owner, following = owners[at], owners[at + 1] if at + 1 < len(owners) else None
        closing = "" if owner == following else _closing(extended, planted, texts[at], closings)
        pieces.append(Piece(text=body, message=owner, body=True))
        pieces += _scaffold(around[at], closing, owner, following)
    return tuple(piece for piece in pieces if piece.text)


def check_shown(stub: Stub, made: WrittenTail, answer: Said, new: Conversation) -> None:
    """Raise `ExtendError` if the template doesn't render a new message after the answer."""
    missing = [(word, index) for word, index, text in _texts(new) if text.strip() not in made.tail]
    # The template may have trimmed or escaped the text. To check this, render a unique word in its place.
    tail = stub.written(answer, _planted(new)).tail if missing else ""
    for word, index in missing:
        if word not in tail:
            raise ExtendError(f"messages[{index}].content: not shown by the template after the answer", "messages")


def _texts(new: Conversation) -> Iterator[tuple[str, int, str]]:
    """For each piece of text in the messages, yield a unique word, the index of the message, and the text."""
    for i, message in enumerate(new):
        for k, text in enumerate(words_in(message.content)):
            if text.strip():
                yield _WORD.format(i, k), i, text


def _planted(new: Conversation) -> Conversation:
    planted = []
    for i, message in enumerate(new):
        words = (_WORD.format(i, k) if text.strip() else text for k, text in enumerate(words_in(message.content)))
        planted.append(replace(message, content=with_texts(message.content, words)))
    return tuple(planted)


def _tail(extended: Extended, new: Conversation, *, asks: bool) -> str:
    return extended.stub.written(extended.answer, new, asks=asks).tail


def _mixed() -> ExtendError:
    return ExtendError("the template doesn't write each new message once, in order", "unproved")


def _between(words: Sequence[str], text: str) -> list[str]:
    """Return the text before, between and after the words."""
    around = []
    for word in words:
        before, found, text = text.partition(word)
        if not found or word in text:
            raise _mixed()
        around.append(before)
    return [*around, text]


def _bodies(text: str, around: Sequence[str], said: Sequence[str]) -> list[str]:
    """Return the bodies of the messages: the parts of `text` between the strings in `around`. `said` are the original texts, which the
    template may have trimmed or escaped.
    """
    if not text.startswith(around[0]) or not text.endswith(around[-1]):
        raise _mixed()
    at, bodies = len(around[0]), []
    for i, words in enumerate(said):
        after = around[i + 1]
        if i + 1 == len(said):
            end = len(text) - len(after)
        else:
            # A result may contain the text that follows it. To find where the result ends, first try its original length.
            ends = (at + len(form) for form in (words, words.strip()) if text.startswith(form + after, at))
            end = next(ends, text.find(after, at))
        if end < at:
            raise _mixed()
        bodies.append(text[at:end])
        at = end + len(after)
    return bodies


def _closing(
    extended: Extended, planted: Conversation, place: tuple[str, int, str], known: dict[tuple[Any, ...], str]
) -> str:
    """Return the text that the template writes after a message's word if no other message follows. The text is cached in `known` by kind of
    message.
    """
    word, index, _ = place
    message = planted[index]
    kind = (message.role, message.name, isinstance(message.content, list) and len(message.content))
    if kind not in known:
        known[kind] = _tail(extended, planted[: index + 1], asks=False).partition(word)[2]
    return known[kind]


def _scaffold(text: str, closing: str, owner: int | None, following: int | None) -> Iterator[Piece]:
    """Split the text between two messages into the end of the first message and the start of the second, and yield both as pieces."""
    if owner == following:
        yield Piece(text=text, message=owner)
        return
    shared = len(commonprefix([text, closing]))
    yield Piece(text=text[:shared], message=owner)
    yield Piece(text=text[shared:], message=following)
