"""Finds the characters of a rendered conversation that the model wrote, as a mask for training.

Strategy: the model's text in a message starts after the prompt for that message, and stops at the end of the turn. If the template keeps
prefixes, both positions are found by rendering only the start of the conversation. Otherwise, e.g. if reasoning of earlier turns is
dropped, a needle (a unique word) is inserted into the message to find it. In this case, the model's text is between the header before the
needle and the end of turn after it.

`attributed_prompt` splits a rendered conversation into message text, template text and model output: the pieces of the rendering show whose each
text is, and the model's output may contain texts and markers.

Rules: the generation prompt doesn't count as the model's text. The model's text includes the token that ends its turn, but not the layout
after that token. A message with ambiguous borders is an error, never a guess.
"""

from __future__ import annotations

import json
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from os import PathLike
from typing import Any, NamedTuple

from unrender.chat_template import ChatTemplate, as_template
from unrender.conversation.adapt import shown_media, with_names
from unrender.conversation.messages import Conversation, Said, read_conversation, read_messages
from unrender.conversation.pieces import RenderedConversation
from unrender.conversation.tools import read_offer
from unrender.conversation.transcript import Writer
from unrender.errors import RequestError, TemplateError, TemplateWarning
from unrender.format import Format
from unrender.messages import Request
from unrender.nodes import Role
from unrender.parser.prompt_tail import after_header, read_prefill
from unrender.parser.streaming import Parser
from unrender.prompt import AUTHORS, Piece
from unrender.proof.split import common_suffix
from unrender.signatures import checked

_NEEDLE = "qzneedlezq"
"""Unique word that is inserted into a message, so that the message can be found in the rendering."""
_CALL = (Role.NAME, Role.ARGUMENT, Role.ID, Role.MARKER)
Plant = Callable[[Said], Said | None]
"""Function that inserts a needle into a message and returns the new message, or None if the message has no text."""


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
    rendered, full = _taken(template._writing(offer, request, variables), messages)
    answers = [i for i, said in enumerate(rendered.messages) if said.role == "assistant"]
    mask = AssistantMask(text=full, written=tuple(_written(rendered, full, i) for i in answers))
    return mask, RenderedConversation(rendered.writer, rendered.messages, request, offer.plain)


def _taken(writer: Writer, messages: Sequence[Any]) -> tuple[_Rendered, str]:
    """Return the conversation and its rendering."""
    conversation = read_conversation(messages, writer.template, as_text=writer.as_text)
    read, _ = shown_media(conversation, writer.template, writer.capabilities)
    # Add names to results before planting needles. If names were added later, a needle in a call's name would also appear in the call's
    # result.
    shown = with_names(read)
    writer, rendering = writer.taken(shown, asks=False)
    if rendering.error is not None:
        raise TemplateError(f"the template refuses the conversation: {rendering.error}")
    _check_arguments(messages, rendering.text)
    # Remove the time limit that all renderings share, because each border needs more renderings.
    return _Rendered(replace(writer, time=None), shown), rendering.text


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


def _written(rendered: _Rendered, full: str, index: int) -> MaskSpan:
    start = _start(rendered, full, index)
    end = None if start is None else _end(rendered, full, index, start)
    if start is None or end is None or start > end:
        raise RequestError(
            f"messages[{index}]: cannot tell where the rendering of this answer {'ends' if start is not None else 'begins'}; "
            "the template keeps no prefix, and shows no text of the message; "
            f"try it at the end of a conversation: assistant_mask(template, messages[:{index + 1}])"
        )
    return MaskSpan(message=index, start=start, end=end)


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A conversation that can be rendered up to any of its messages."""

    writer: Writer
    messages: Conversation

    def planted(self, index: int, message: Said) -> str | None:
        """Render the conversation with another message at `index`."""
        return self.writer.text((*self.messages[:index], message, *self.messages[index + 1 :]), asks=False)

    @property
    def ends(self) -> tuple[str, ...]:
        """Tokens that end a turn."""
        return self.writer.ended.turn.all_ends


def _start(rendered: _Rendered, full: str, index: int) -> int | None:
    """Return the start of the model's text: after the prompt, or after the header if the history doesn't contain the complete prompt."""
    prompt = rendered.writer.text(rendered.messages[:index], asks=True) if index else None
    if prompt is not None:
        if full.startswith(prompt):
            return len(prompt)
        # If the prompt ends in `<bot><think>` and the history contains `<bot>Hi`, the answer starts after their common header, `<bot>`.
        header = prompt.removesuffix(read_prefill(rendered.writer.ended, prompt))
        if full.startswith(header):
            return len(header)
    place = _place(rendered, full, index, _before_thought)
    place = _place(rendered, full, index, _before) if place is None else place
    written = None if place is None else after_header(rendered.writer.ended, full[:place])
    if place is None or (written is not None and not any(end in written for end in rendered.ends)):
        return None if place is None or written is None else place - len(written)
    # In `<bot>Hi<end><user>Well?<end><call>f</call>`, no header precedes the call: the last header belongs to another answer.
    history = rendered.writer.text(rendered.messages[:index], asks=False)
    if (
        history is None
        or not full.startswith(history)
        or after_header(rendered.writer.ended, full[len(history) : place])
    ):
        return None
    return len(history)


def _end(rendered: _Rendered, full: str, index: int, start: int) -> int | None:
    """Return the end of the model's text: after the token that ends its turn, or where the next message starts."""
    last = index + 1 == len(rendered.messages)
    place = _place(rendered, full, index, _after)
    # The answer ends before the text of the next message, so search for the end of turn only before that text.
    following = len(full) if last else _place(rendered, full, index + 1, _before)
    if place is None or following is None:
        return _end_of_history(rendered, full, index)
    ends = [at + len(core) for core in rendered.ends if (at := full.find(core, place, following)) >= 0]
    if ends or last:
        return min(ends, default=len(full))
    if rendered.messages[index].calls:
        return _end_of_calls(rendered.writer.ended, full[:following], start)
    return _before_header(rendered, full, place, following, index)


def _end_of_history(rendered: _Rendered, full: str, index: int) -> int | None:
    """Return the position where the conversation up to this message ends, or None if the template doesn't keep that prefix."""
    history = rendered.writer.text(rendered.messages[: index + 1], asks=False)
    if history is None or not full.startswith(history):
        return None
    ends = [at + len(core) for core in rendered.ends if (at := history.rfind(core)) >= 0]
    return max(ends, default=len(history))


def _before_header(rendered: _Rendered, full: str, place: int, limit: int, index: int) -> int | None:
    """Return the start of the next message's header, for templates without an end of turn. To find the header, a plain answer is rendered
    before the same message.
    """
    plain = rendered.planted(index, Said(role="assistant", content=_NEEDLE))
    following = rendered.messages[index + 1].content
    if plain is None or not isinstance(following, str) or not following or plain.count(_NEEDLE) != 1:
        return None
    begun = plain.index(_NEEDLE) + len(_NEEDLE)
    at = plain.find(following, begun)
    return limit - len(common_suffix([plain[begun:at], full[place:limit]])) if at >= 0 else None


def _end_of_calls(format: Format, text: str, start: int) -> int | None:
    """Return the end of the calls that start at `start`, where the header of their results starts."""
    parser = Parser(format, Request(tools=None), prompt=text[:start])
    parser.feed(text[start:])
    parser.finish()
    called = [start + span.end for span in parser.spans if span.role in _CALL]
    return max(called) if parser.message.tool_calls else None


def _place(rendered: _Rendered, full: str, index: int, plant: Plant) -> int | None:
    """Return the position in `full` of the needle that `plant` inserts, or None if the needle isn't rendered."""
    message = plant(rendered.messages[index])
    planted = rendered.planted(index, message) if message is not None else None
    if message is None or planted is None or _NEEDLE not in planted:
        return None
    # A needle in a call's name may occur several times, because the result may repeat the name, as in `functions.f to=assistant`. A needle
    # in content must occur only once.
    if planted.count(_NEEDLE) > 1 and message.calls == rendered.messages[index].calls:
        return None
    place = planted.index(_NEEDLE)
    return place if full.startswith(planted[:place]) else None


def _before_thought(said: Said) -> Said | None:
    """Insert a needle before the reasoning. Some templates render reasoning as a separate turn before the content."""
    return replace(said, reasoning=_NEEDLE + said.reasoning) if said.reasoning else None


def _before(said: Said) -> Said | None:
    """Insert a needle before the content, or in the name of the first call."""
    if isinstance(said.content, str) and said.content:
        # In `<bot>qzneedlezqHi`, the text before the needle is the same as in the real rendering, so the needle's position is the start of
        # `Hi`.
        return replace(said, content=_NEEDLE + said.content)
    if not said.calls:
        return None
    first, *others = said.calls
    return replace(said, calls=(replace(first, name=_NEEDLE + first.name), *others))


def _after(said: Said) -> Said | None:
    """Insert a needle in the name of the last call, or after the content."""
    if said.calls:
        *others, last = said.calls
        return replace(said, calls=(*others, replace(last, name=last.name + _NEEDLE)))
    return replace(said, content=said.content + _NEEDLE) if isinstance(said.content, str) and said.content else None


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
