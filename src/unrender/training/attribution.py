"""Splits a rendered conversation into message text, template text and model output.

Strategy: the pieces of the rendering show whose each text is. Model output is found as in `assistant_mask`, and may contain texts and markers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from unrender.chat_template import ChatTemplate
from unrender.errors import RequestError
from unrender.prompt import AUTHORS, Piece
from unrender.training.masks import AssistantMask, mask_of

_ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPart:
    """A part of a rendered conversation."""

    text: str
    message: int | None = None
    """Index of the message that the part belongs to; None for text such as a generation prompt."""
    body: bool = False
    """True for the text of a message and for model output, False for text of the template."""
    sampled: bool = False
    """True if this part was written by the model."""
    role: str | None = None
    """Role of the message that this text comes from, "" for the text of tools and documents, and None for text of the template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """A rendered conversation, split into parts."""

    parts: tuple[RenderedPart, ...]
    """The parts of the conversation, in order. The messages' text is split from the template's text only if `bodies_certain` is true."""
    bodies_certain: bool = True
    """True if the positions of all messages' own text are certain."""
    sampled_certain: bool = True
    """True if the positions of all text that the model wrote are certain."""

    def pieces(self, *, special_roles: Collection[str] = AUTHORS) -> list[tuple[str, bool]]:
        """Return text pieces for a `PromptEncoder`. The flag of a piece is true for message text, which is never encoded as special tokens.

        Special tokens are allowed in messages with one of the `special_roles`.
        """
        return [(part.text, part.role is not None and part.role not in special_roles) for part in self.parts]


def attributed_prompt(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return the prompt that `ChatTemplate.prepare` renders, split into parts. Raises the same errors as `prepare`.

    >>> template = ChatTemplate.from_string("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>")
    >>> [part.text for part in attributed_prompt(template, [{"role": "user", "content": "Hello"}]).parts]
    ['<user>', 'Hello', '</>', '<assistant>']
    """
    turn = template.prepare(messages, tools=tools, **settings)
    mask: AssistantMask | None = None
    written: list[_Span] | None = []
    if any(isinstance(message, Mapping) and message.get("role") == _ASSISTANT for message in messages):
        try:
            mask, _ = mask_of(template, messages, tools, settings)
            written = _spans(mask)
        except RequestError:
            written = None
    last = written[-1].end if written else 0
    kept = mask is None or turn.prompt[:last] == mask.text[:last]
    return _attributed(turn.format.turn.all_ends, turn.pieces, written if kept else None)


def attributed_conversation(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return a conversation rendered without a generation prompt, split into parts. Raises the same errors as `assistant_mask`."""
    mask, shown = mask_of(template, messages, tools, settings)
    return _attributed(shown.writer.ended.turn.all_ends, shown.pieces(mask.text, asks=False), _spans(mask))


class _Span(NamedTuple):
    """The range of a message's text, or of model output."""

    start: int
    end: int
    message: int | None
    sampled: bool = False


def _spans(mask: AssistantMask) -> list[_Span]:
    return sorted(_Span(span.start, span.end, span.message, sampled=True) for span in mask.written)


def _attributed(ends: Sequence[str], pieces: Sequence[Piece], written: Sequence[_Span] | None) -> Attributed:
    return Attributed(
        parts=tuple(part for part in _parts(pieces, written or (), ends) if part.text),
        bodies_certain=all(piece.kind != "unknown" for piece in pieces),
        sampled_certain=written is not None,
    )


def _parts(pieces: Sequence[Piece], written: Sequence[_Span], ends: Sequence[str]) -> Iterator[RenderedPart]:
    """Yield the spans and the text between them. The text between two spans is split into the end of one message and the header of the
    next.
    """
    text = "".join(piece.text for piece in pieces)
    starts = [0, *accumulate(len(piece.text) for piece in pieces)]
    begun = [span.start for span in written]
    own = []
    for start, end, piece in zip(starts, starts[1:], pieces, strict=False):
        before = bisect_left(begun, end) - 1
        if piece.body and (before < 0 or written[before].end <= start):
            own.append(_Span(start, end, piece.message))
    position, last = 0, None
    for span in sorted([*own, *written], key=lambda span: span.start):
        # Tools are described inside a message, so their text belongs to the message before them.
        message = last if span.message is None else span.message
        gap = text[position : span.start]
        place = _end_of_turn(gap, ends, inside=last is not None) if last != message else 0
        yield RenderedPart(text=gap[:place], message=last)
        yield RenderedPart(text=gap[place:], message=message)
        for at in range(bisect_right(starts, span.start) - 1, len(pieces)):
            part = text[max(starts[at], span.start) : min(starts[at + 1], span.end)]
            if starts[at] >= span.end:
                break
            role = pieces[at].role if pieces[at].body else None
            # Text of tools and documents is written inside a message, but it isn't the message's own text.
            yield RenderedPart(text=part, message=message, body=role != "", sampled=span.sampled, role=role)
        position, last = span.end, message
    gap = text[position:]
    place = _end_of_turn(gap, ends, inside=last is not None)
    yield RenderedPart(text=gap[:place], message=last)
    yield RenderedPart(text=gap[place:])


def _end_of_turn(gap: str, ends: Sequence[str], *, inside: bool) -> int:
    """Return the position in `gap` after the end of turn and the whitespace that follows it."""
    found = [at + len(end) for end in ends if (at := gap.find(end)) >= 0]
    place = min(found, default=0) if inside else max(found, default=0)
    return len(gap) - len(gap[place:].lstrip())
