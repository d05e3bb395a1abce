"""Finds the characters of a rendered conversation that the model wrote, as a mask for training.

Strategy: the model's text in a message starts after the prompt for that message, and stops at the end of the turn. If the template keeps
prefixes, both positions are found by rendering only the start of the conversation. Otherwise, e.g. if reasoning of earlier turns is
dropped, the pieces of the rendering show where the message's own text is. In this case, the model's text is between the header before
that text and the end of turn after it.

`attributed_prompt` splits a rendered conversation into message text, template text and model output: the pieces of the rendering show whose each
text is, and the model's output may contain texts and markers.

Rules: the generation prompt doesn't count as the model's text. The model's text includes the token that ends its turn, but not the layout
after that token. A message with ambiguous borders is an error, never a guess.
"""

from __future__ import annotations

import json
import warnings
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any

from unrender.chat_template import ChatTemplate, as_template
from unrender.conversation.adapt import shown_media, with_names
from unrender.conversation.messages import Said, read_conversation, read_messages
from unrender.conversation.pieces import RenderedConversation
from unrender.conversation.tools import read_offer
from unrender.errors import RequestError, TemplateError, TemplateWarning
from unrender.format import Format
from unrender.messages import Request
from unrender.nodes import Role
from unrender.parser.prompt_tail import after_header, read_prefill
from unrender.parser.streaming import Parser
from unrender.prompt import AUTHORS, Piece, PieceKind
from unrender.proof.split import common_suffix
from unrender.signatures import checked

_NEEDLE = "qzneedlezq"
"""Unique word as the content of a short answer."""
_ASSISTANT = "assistant"
_CALL = (Role.NAME, Role.ARGUMENT, Role.ID, Role.MARKER)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSpan:
    """The range of a rendering that the model wrote in one message: `text[start:end]` of the rendering."""

    message: int
    """Index of the message in the conversation. A tool result inside a content block counts as a separate message."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMask:
    """A rendered conversation, with the ranges of text that the model wrote."""

    text: str
    written: tuple[MaskSpan, ...]

    def characters(self) -> list[bool]:
        """Return one boolean per character: True if the model wrote it."""
        mask = [False] * len(self.text)
        for part in self.written:
            mask[part.start : part.end] = [True] * (part.end - part.start)
        return mask

    @checked
    def tokens(self, offsets: Iterable[tuple[int, int]]) -> list[int]:
        """Return one number per token: 1 if the model wrote the token, else 0.

        `offsets` are the start and end of each token in characters, as in a fast tokenizer's `offset_mapping`. A token is attributed to the
        model if the model wrote its first character. Empty tokens are never attributed to the model.
        """
        mask = self.characters()
        return [int(low < high and mask[low]) for low, high in offsets]


@checked
def assistant_mask(
    template: ChatTemplate | str | PathLike[str],
    messages: Sequence[Any],
    *,
    tools: Sequence[Any] | None = None,
    **template_kwargs: Any,
) -> AssistantMask:
    """Render a conversation and return a mask of the characters that the model wrote.

    The template doesn't need `{% generation %}`. `template_kwargs` are template variables, as in `ChatTemplate.prepare`. Raises
    `RequestError` if a message is malformed or has ambiguous borders, and `TemplateError` if the template rejects the conversation.
    """
    mask, shown = mask_of(as_template(template), messages, tools, template_kwargs)
    for note in shown.writer.notes:
        warnings.warn(note, TemplateWarning, stacklevel=3)
    return mask


def mask_of(
    template: ChatTemplate, messages: Sequence[Any], tools: Sequence[Any] | None, variables: Mapping[str, Any]
) -> tuple[AssistantMask, RenderedConversation]:
    """Return the mask of a conversation as `assistant_mask` does, without warnings, and the rendered conversation."""
    offer = read_offer(tools)  # rows of data may contain tools with invalid schemas
    request = Request(tools=offer.tools)
    writer = template._writing(offer, request, variables)
    conversation = read_conversation(messages, writer.template, as_text=writer.as_text)
    read, _ = shown_media(conversation, writer.template, writer.capabilities)
    said = with_names(read)
    writer, rendering = writer.taken(said, asks=False)
    if rendering.error is not None:
        raise TemplateError(f"the template refuses the conversation: {rendering.error}")
    text = rendering.text
    _check_arguments(messages, text)
    # Remove the time limit that all renderings share, because each border needs more renderings.
    shown = RenderedConversation(replace(writer, time=None), said, request, offer.plain)
    rendered = _Rendered(shown, text)
    answers = [i for i, message in enumerate(said) if message.role == _ASSISTANT]
    return AssistantMask(text=text, written=tuple(_written(rendered, i) for i in answers)), shown


def _check_arguments(messages: Sequence[Any], text: str) -> None:
    """Raise `RequestError` if a template rewrote arguments that aren't JSON, because the model didn't write the result."""
    for index, said in enumerate(read_messages(messages)[0]):
        for call in said.calls:
            if isinstance(call.arguments, str) and call.arguments not in text and not _is_json(call.arguments):
                raise RequestError(
                    f"messages[{index}].tool_calls: expected JSON arguments of {call.name!r:.60}, found {call.arguments!r:.60}; "
                    "the template writes other arguments than the model"
                )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class _Rendered:
    """A conversation and its rendering."""

    shown: RenderedConversation
    text: str

    def beginning(self, count: int, *, asks: bool = False) -> str | None:
        """Return the rendering of the first messages alone, or None if the template rejects them."""
        return self.shown.writer.text(self.shown.messages[:count], asks=asks)

    @property
    def format(self) -> Format:
        """The format of answers, with all tokens that end a turn."""
        return self.shown.writer.ended

    @cached_property
    def _pieces(self) -> Mapping[int | None, list[tuple[int, int, Piece]]]:
        """The pieces of each message in the rendering, each with its start and end. The template's own pieces are under None."""
        found, end = defaultdict[int | None, list[tuple[int, int, Piece]]](list), 0
        for piece in self.shown.pieces(self.text, asks=False):
            start, end = end, end + len(piece.text)
            found[piece.message].append((start, end, piece))
        return found

    def _places(self, index: int, *kinds: PieceKind, where: str = "") -> list[tuple[int, int]]:
        """Return the start and end of each piece of a message that is of one of these kinds, and whose path contains `where`."""
        found = self._pieces.get(index, ())
        return [(start, end) for start, end, piece in found if piece.kind in kinds and where in piece.where]

    def first(self, index: int, *kinds: PieceKind) -> int | None:
        """Return the start of a message's text of these kinds."""
        return next((start for start, _ in self._places(index, *kinds)), None)

    def before(self, index: int) -> int | None:
        """Return the start of a message's content, or of the name of its first call if there is no content."""
        places = self._places(index, "content", "result") or self._places(index, "name", where="tool_calls")
        return places[0][0] if places else None

    def after(self, index: int) -> int | None:
        """Return the end of the name of a message's last call, or of its content if there are no calls."""
        if calls := self.shown.messages[index].calls:
            # The result may repeat the name, as in `functions.f to=assistant`.
            places = self._places(index, "name", where=f"tool_calls[{len(calls) - 1}]")[:1]
        else:
            places = self._places(index, "content")
        return places[-1][1] if places else None


def _written(rendered: _Rendered, index: int) -> MaskSpan:
    start = _start(rendered, index)
    end = None if start is None else _end(rendered, index, start)
    if start is None or end is None or start > end:
        raise RequestError(
            f"messages[{index}]: cannot tell where the rendering of this answer {'ends' if start is not None else 'begins'}; "
            "the template keeps no prefix, and shows no text of the message; "
            f"try it at the end of a conversation: assistant_mask(template, messages[:{index + 1}])"
        )
    return MaskSpan(message=index, start=start, end=end)


def _start(rendered: _Rendered, index: int) -> int | None:
    """Return the start of the model's text: after the prompt, or after the header if the history doesn't contain the complete prompt."""
    full, format = rendered.text, rendered.format
    prompt = rendered.beginning(index, asks=True) if index else None
    if prompt is not None:
        if full.startswith(prompt):
            return len(prompt)
        # If the prompt ends in `<bot><think>` and the history contains `<bot>Hi`, the answer starts after their common header, `<bot>`.
        header = prompt.removesuffix(read_prefill(format, prompt))
        if full.startswith(header):
            return len(header)
    # Some templates render reasoning as a separate turn before the content.
    place = rendered.first(index, "reasoning")
    place = rendered.before(index) if place is None else place
    written = None if place is None else after_header(format, full[:place])
    if place is None or (written is not None and not any(end in written for end in format.turn.all_ends)):
        return None if place is None or written is None else place - len(written)
    # In `<bot>Hi<end><user>Well?<end><call>f</call>`, no header precedes the call: the last header belongs to another answer.
    history = rendered.beginning(index)
    if history is None or not full.startswith(history) or after_header(format, full[len(history) : place]):
        return None
    return len(history)


def _end(rendered: _Rendered, index: int, start: int) -> int | None:
    """Return the end of the model's text: after the token that ends its turn, or where the next message starts."""
    full, last = rendered.text, index + 1 == len(rendered.shown.messages)
    place = rendered.after(index)
    # The answer ends before the text of the next message, so search for the end of turn only before that text.
    following = len(full) if last else rendered.before(index + 1)
    if place is None or following is None:
        return _end_of_history(rendered, index)
    ends = [at + len(core) for core in rendered.format.turn.all_ends if (at := full.find(core, place, following)) >= 0]
    if ends or last:
        return min(ends, default=len(full))
    if rendered.shown.messages[index].calls:
        return _end_of_calls(rendered.format, full[:following], start)
    return _before_header(rendered, place, following, index)


def _end_of_history(rendered: _Rendered, index: int) -> int | None:
    """Return the position where the conversation up to this message ends, or None if the template doesn't keep that prefix."""
    history = rendered.beginning(index + 1)
    if history is None or not rendered.text.startswith(history):
        return None
    ends = [at + len(core) for core in rendered.format.turn.all_ends if (at := history.rfind(core)) >= 0]
    return max(ends, default=len(history))


def _before_header(rendered: _Rendered, place: int, limit: int, index: int) -> int | None:
    """Return the start of the next message's header, for templates without an end of turn. To find the header, a plain answer is rendered
    before the same message.
    """
    messages, plain = rendered.shown.messages, Said(role=_ASSISTANT, content=_NEEDLE)
    text = rendered.shown.writer.text((*messages[:index], plain, *messages[index + 1 :]), asks=False)
    following = messages[index + 1].content
    if text is None or not isinstance(following, str) or not following or text.count(_NEEDLE) != 1:
        return None
    begun = text.index(_NEEDLE) + len(_NEEDLE)
    at = text.find(following, begun)
    return limit - len(common_suffix([text[begun:at], rendered.text[place:limit]])) if at >= 0 else None


def _end_of_calls(format: Format, text: str, start: int) -> int | None:
    """Return the end of the calls that start at `start`, where the header of their results starts."""
    parser = Parser(format, Request(tools=None), prompt=text[:start])
    parser.feed(text[start:])
    parser.finish()
    called = [start + span.end for span in parser.spans if span.role in _CALL]
    return max(called) if parser.message.tool_calls else None


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

    def pieces(self) -> list[tuple[str, bool]]:
        """Return text pieces for a `PromptEncoder`. The flag of a piece is true for message text, which is never encoded as special tokens.

        Special tokens are allowed in messages from the author of the application.
        """
        return [(part.text, part.role is not None and part.role not in AUTHORS) for part in self.parts]


def attributed_prompt(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return the prompt that `ChatTemplate.prepare` renders, split into parts. Raises the same errors as `prepare`.

    >>> template = ChatTemplate.from_string("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>")
    >>> [part.text for part in attributed_prompt(template, [{"role": "user", "content": "Hello"}]).parts]
    ['<user>', 'Hello', '</>', '<assistant>']
    """
    turn = template.prepare(messages, tools=tools, **settings)
    written: tuple[MaskSpan, ...] | None = ()
    if any(isinstance(message, Mapping) and message.get("role") == _ASSISTANT for message in messages):
        try:
            mask, _ = mask_of(template, messages, tools, settings)
            kept = turn.prompt.startswith(mask.text[: mask.written[-1].end])
            written = mask.written if kept else None
        except RequestError:
            written = None
    return _attributed(turn.format.turn.all_ends, turn.pieces, written)


def attributed_conversation(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return a conversation rendered without a generation prompt, split into parts. Raises the same errors as `assistant_mask`."""
    mask, shown = mask_of(template, messages, tools, settings)
    return _attributed(shown.writer.ended.turn.all_ends, shown.pieces(mask.text, asks=False), mask.written)


def _attributed(ends: Sequence[str], pieces: Sequence[Piece], written: Sequence[MaskSpan] | None) -> Attributed:
    return Attributed(
        parts=tuple(part for part in _parts(pieces, written or (), ends) if part.text),
        bodies_certain=all(piece.kind != "unknown" for piece in pieces),
        sampled_certain=written is not None,
    )


def _parts(pieces: Iterable[Piece], written: Sequence[MaskSpan], ends: Sequence[str]) -> Iterator[RenderedPart]:
    """Yield the bodies, the text that the model wrote, and the text between them. The text between two messages is split into the end of one
    message and the header of the next.
    """
    gap, last = "", None
    for text, piece, span in _cut_at(written, pieces):
        # A piece with an unknown owner may contain the start of an answer and the text before it.
        if span is None and (not piece.body or text != piece.text):
            gap += text
            continue
        # Tools are described inside a message, so their text belongs to the message before them.
        message = last if (found := (span or piece).message) is None else found
        place = _end_of_turn(gap, ends, inside=last is not None) if last != message else 0
        yield RenderedPart(text=gap[:place], message=last)
        yield RenderedPart(text=gap[place:], message=message)
        role = piece.role if piece.body else None
        # Text of tools and documents is written inside a message, but it isn't the message's own text.
        yield RenderedPart(text=text, message=message, body=role != "", sampled=span is not None, role=role)
        gap, last = "", message
    place = _end_of_turn(gap, ends, inside=last is not None)
    yield RenderedPart(text=gap[:place], message=last)
    yield RenderedPart(text=gap[place:])


def _cut_at(written: Sequence[MaskSpan], pieces: Iterable[Piece]) -> Iterator[tuple[str, Piece, MaskSpan | None]]:
    """Yield the text of the pieces, cut where the model's text starts and ends, with the piece and the span that contain it."""
    borders, at = [place for span in written for place in (span.start, span.end)], 0
    for piece in pieces:
        end = at + len(piece.text)
        for low, high in pairwise([at, *borders[bisect_right(borders, at) : bisect_left(borders, end)], end]):
            passed = bisect_right(borders, low)
            yield piece.text[low - at : high - at], piece, written[passed // 2] if passed % 2 else None
        at = end


def _end_of_turn(gap: str, ends: Sequence[str], *, inside: bool) -> int:
    """Return the position in `gap` after the end of turn and the whitespace that follows it."""
    found = [at + len(end) for end in ends if (at := gap.find(end)) >= 0]
    place = min(found, default=0) if inside else max(found, default=0)
    return len(gap) - len(gap[place:].lstrip())
