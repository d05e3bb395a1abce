"""Splits a rendered conversation into message text, template text and model output.

Strategy: the conversation is rendered again with a placeholder for each message text. Text around the placeholders belongs to the template.
If replacing the placeholders with the message texts results in the first rendering, the positions of these texts are certain. Model output
is found as in `assistant_mask`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unrender.chat_template import ChatTemplate
from unrender.conversation.messages import with_texts, words_in
from unrender.errors import RequestError, TokenizerError
from unrender.format import Format
from unrender.token_ids import PromptEncoder
from unrender.training.masks import assistant_mask

_ASSISTANT = "assistant"
_PLANTED = "qzbody{}zq"
_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    str.strip,
    str.lstrip,
    str.rstrip,
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text.strip(), ensure_ascii=False)[1:-1],
)
"""Functions for the forms in which templates render message text: unchanged, trimmed, or as JSON."""
Render = Callable[[Sequence[Any]], str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributed:
    """A rendered conversation, split into parts."""

    parts: tuple[RenderedPart, ...]
    """The parts of the conversation, in order. The messages' text is split from the template's text only if `bodies_certain` is true."""
    bodies_certain: bool = True
    """True if the positions of all messages' own text are certain."""
    sampled_certain: bool = True
    """True if the positions of all text that the model wrote are certain."""

    def pieces(
        self, encoder: PromptEncoder, messages: Sequence[Any], *, special: Collection[int] = ()
    ) -> list[tuple[str, bool]]:
        """Return text pieces for a `PromptEncoder`. The flag of a piece is true for message text, which is never encoded as special tokens.

        `special` contains the indices of messages in which special tokens are allowed.
        Raises `TokenizerError` if a message contains the text of a special token and its position isn't certain.
        """
        if not self.bodies_certain:
            for index, text in texts_of(messages):
                if index not in special and (found := encoder.spelled(text)) is not None:
                    raise TokenizerError(
                        f"messages[{index}]: holds {found!r}, the text of a special token, and it is not certain where the prompt "
                        "has it; take it out of the message"
                    )
        return [(part.text, part.body and not part.sampled and part.message not in special) for part in self.parts]


def attributed_prompt(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return the prompt that `ChatTemplate.prepare` renders, split into parts. Raises the same errors as `prepare`.

    >>> template = ChatTemplate.from_string("{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>")
    >>> [part.text for part in attributed_prompt(template, [{"role": "user", "content": "Hello"}]).parts]
    ['<user>', 'Hello', '</>', '<assistant>']
    """

    def render(conversation: Sequence[Any]) -> str:
        return template.prepare(conversation, tools=tools, **settings).prompt

    prompt = render(messages)
    text = ""
    spans: list[_Span] | None = []
    if any(isinstance(message, Mapping) and message.get("role") == _ASSISTANT for message in messages):
        try:
            text, spans = _written(template, messages, tools, settings)
        except RequestError:
            spans = None
    last = spans[-1].end if spans else 0
    return _attributed(template.format, render, messages, prompt, spans if prompt[:last] == text[:last] else None)


def attributed_conversation(
    template: ChatTemplate, messages: Sequence[Any], *, tools: Sequence[Any] | None = None, **settings: Any
) -> Attributed:
    """Return a conversation rendered without a generation prompt, split into parts. Raises the same errors as `assistant_mask`."""

    def render(conversation: Sequence[Any]) -> str:
        return assistant_mask(template, conversation, tools=tools, **settings).text

    return _attributed(template.format, render, messages, *_written(template, messages, tools, settings))


def texts_of(messages: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Yield the texts of all messages except the assistant's, each with the index of its message."""
    for index, message in enumerate(messages):
        yield from ((index, text) for text in (words_in(message.get("content")) if _is_said(message) else ()))


def _is_said(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") != _ASSISTANT


class _Span(NamedTuple):
    """The range of a message's text, or of model output."""

    start: int
    end: int
    message: int
    sampled: bool = False


def _written(
    template: ChatTemplate, messages: Sequence[Any], tools: Sequence[Any] | None, settings: Mapping[str, Any]
) -> tuple[str, list[_Span] | None]:
    """Return a conversation without a generation prompt, and the ranges that the model wrote."""
    mask = assistant_mask(template, messages, tools=tools, **settings)
    return mask.text, [_Span(span.start, span.end, span.message, sampled=True) for span in mask.written]


def _attributed(
    format: Format, render: Render, messages: Sequence[Any], text: str, spans: Sequence[_Span] | None
) -> Attributed:
    bodies = _bodies(render, messages, text)
    written = sorted(spans or ())
    own = [body for body in bodies or () if not any(s.start < body.end and body.start < s.end for s in written)]
    parts = _parts(text, sorted([*own, *written]), format.turn.all_ends)
    return Attributed(
        parts=tuple(part for part in parts if part.text),
        bodies_certain=bodies is not None,
        sampled_certain=spans is not None,
    )


def _parts(text: str, spans: Sequence[_Span], ends: Sequence[str]) -> Iterator[RenderedPart]:
    """Yield the spans and the text between them. The text between two spans is split into the end of one message and the header of the
    next.
    """
    position, last = 0, None
    for span in spans:
        gap = text[position : span.start]
        place = _end_of_turn(gap, ends, inside=last is not None) if last != span.message else 0
        yield RenderedPart(text=gap[:place], message=last)
        yield RenderedPart(text=gap[place:], message=span.message)
        yield RenderedPart(text=text[span.start : span.end], message=span.message, body=True, sampled=span.sampled)
        position, last = span.end, span.message
    gap = text[position:]
    place = _end_of_turn(gap, ends, inside=last is not None)
    yield RenderedPart(text=gap[:place], message=last)
    yield RenderedPart(text=gap[place:])


def _end_of_turn(gap: str, ends: Sequence[str], *, inside: bool) -> int:
    """Return the position in `gap` after the end of turn and the whitespace that follows it."""
    found = [at + len(end) for end in ends if (at := gap.find(end)) >= 0]
    place = min(found, default=0) if inside else max(found, default=0)
    return len(gap) - len(gap[place:].lstrip())


def _bodies(render: Render, messages: Sequence[Any], text: str) -> list[_Span] | None:
    """Return the ranges of the messages' own text, or None if they aren't certain."""
    texts = list(texts_of(messages))
    words = [_PLANTED.format(number) for number in range(len(texts))]
    if any(word in text for word in words):
        return None
    left = iter(words)
    planted = [
        {**message, "content": with_texts(message.get("content"), left)} if _is_said(message) else message
        for message in messages
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The first rendering already issued these warnings.
        skeleton = render(planted)
    return _filled(skeleton, texts, text)


def _filled(skeleton: str, texts: Sequence[tuple[int, str]], text: str) -> list[_Span] | None:
    """Return the ranges of the message texts in `text`.

    Returns None if the positions don't match, i.e. if `skeleton` with the message texts in place of its placeholders isn't `text`.
    """
    planted = [*re.finditer(_PLANTED.format(r"(\d+)"), skeleton)]
    spans: list[_Span] = []
    position = begun = 0
    for place, word in enumerate(planted):
        literal = skeleton[begun : word.start()]
        if not text.startswith(literal, position):
            return None
        position, begun = position + len(literal), word.end()
        following = skeleton[begun : planted[place + 1].start() if place + 1 < len(planted) else None]
        message, said = texts[int(word[1])]
        written = next((w for form in _FORMS if text.startswith((w := form(said)) + following, position)), None)
        if written is None:
            return None
        spans.append(_Span(position, position + len(written), message))
        position += len(written)
    return spans if text[position:] == skeleton[begun:] else None
