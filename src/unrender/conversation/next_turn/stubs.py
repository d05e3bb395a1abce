"""Render short conversations that end like long ones, and find the text that a template writes after an answer.

Each answer contains placeholder words as its text and argument values. The last placeholder is `NEEDLE`, so the text after it is the end of
the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unrender.answer.build import own_calls
from unrender.answer.encode import encode_calls
from unrender.conversation.adapt import shown_media
from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError, TemplateError
from unrender.format import Format

NEEDLE = "Quaxlorvim"
THOUGHT = "Brindlemox"
QUESTION = Said(role="user", content="Stubquestion")
_KEY = "value"


def short_answer(calls: Sequence[SaidCall] = (), *, thinks: bool = False, needle: str = NEEDLE) -> Said:
    """Return an answer that ends with `needle`: as the last argument value if there are `calls`, otherwise as the content."""
    values = ["stub"] * (len(calls) - 1) + [needle]
    called = tuple(
        replace(call, arguments=json.dumps({_KEY: value})) for call, value in zip(calls, values, strict=bool(calls))
    )
    reasoning = THOUGHT if thinks else ""
    return Said(role="assistant", content="" if calls else needle, reasoning=reasoning, calls=called)


def answer_kind(answer: Said) -> str:
    """Return the kind of an answer, which is its key in `Continuation.ends`. Reasoning doesn't affect the kind."""
    return "two calls" if len(answer.calls) > 1 else "call" if answer.calls else "content"


def closers(answer: Said, format: Format) -> str:
    """Return the text between the last argument value of a short answer's calls and the end of the turn."""
    calls = [(call.name, {_KEY: NEEDLE}, call.id or "") for call in answer.calls]
    return encode_calls(own_calls(format), calls).rpartition(NEEDLE)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTail:
    """A conversation that a template has rendered."""

    writer: Writer
    """The writer that rendered the conversation, with its notes."""
    messages: Conversation
    text: str
    tail: str
    """The text after the needle."""


_NUMBER = re.compile(r"(\d+)")


def counts_calls(first: str, later: str, calls: int) -> bool:
    """Return whether two texts differ only in numbers, and each number that differs is greater by `calls` in the later text.

    >>> counts_calls("result 0 of 1", "result 2 of 1", 2), counts_calls("result 0", "results 2", 2)
    (True, False)
    """
    one, other = _NUMBER.split(first), _NUMBER.split(later)
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a == b or (i % 2 and int(b) - int(a) == calls) for i, (a, b) in enumerate(pairs)
    )


def recounted(first: str, later: str, by: int) -> str:
    """Return `first` with `by` added to its call numbers. These are the numbers that differ in `later`, a rendering with one more call.

    >>> recounted("result 0 of 1", "result 1 of 1", 5)
    'result 5 of 1'
    """
    if not counts_calls(first, later, 1):
        raise ExtendError("one more call changes more in the rendering than the numbers of calls", "unproved")
    pairs = zip(_NUMBER.split(first), _NUMBER.split(later), strict=True)
    return "".join(a if a == b else str(int(a) + by) for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """The start of a short conversation that has the same continuation as a long one."""

    writer: Writer
    before: Conversation
    """The messages before the answer."""
    later: Conversation = ()
    """Like `before`, but with one more call."""
    by: int = 0
    """Number of calls that the long conversation has in addition to those in `before`. Used only for templates that number the calls."""

    def written(self, answer: Said, new: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail:
        """Return the rendering and the text after an answer. Raises `ExtendError` if the template rejects the messages or doesn't render
        the needle exactly once.
        """
        made = later = None
        # If a message also contains the needle, try the needle spelled backwards.
        for word in (needle, needle[::-1]):
            said = _with_word(answer, needle, word)
            try:
                made = written(self.writer, (*self.before, said, *new), asks=asks, needle=word)
                later = written(self.writer, (*self.later, said, *new), asks=asks, needle=word) if self.by else None
            except TemplateError as error:
                raise ExtendError(f"the template rejects the messages: {error}", "messages") from error
            if made is not None:
                break
        if made is None:
            raise ExtendError("the template doesn't write the answer exactly once and unchanged", "unproved")
        if later is None:
            return made
        tail = recounted(made.tail, later.tail, self.by)
        return replace(made, tail=tail, text=made.text.removesuffix(made.tail) + tail)


def _with_word(answer: Said, old: str, new: str) -> Said:
    calls = (replace(call, arguments=call.arguments.replace(old, new)) for call in answer.calls)
    content, reasoning = answer.content.replace(old, new), answer.reasoning.replace(old, new)
    return replace(answer, content=content, reasoning=reasoning, calls=tuple(calls))


def written(writer: Writer, messages: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail | None:
    """Return the rendered conversation, or None if it doesn't contain the needle exactly once.

    Raises `TemplateError` if the template rejects the conversation, and `RequestError` for media that the template doesn't support.
    """
    shown, _ = shown_media(messages, writer.template, writer.capabilities)
    writer, rendering = writer.taken(shown, asks=asks)
    text = rendering.unwrap()
    before, _, tail = text.partition(needle)
    return (
        None
        if (not before and not tail) or needle in tail or needle not in text
        else WrittenTail(writer=writer, messages=shown, text=text, tail=tail)
    )


def behind(text: str, marker: str) -> int | None:
    r"""Return the position in `text` after `marker`, ignoring whitespace. Returns None if `text` doesn't start with the marker.

    >>> behind("\n</call><end>", "</call>\n"), behind("<end>", "</call>")
    (8, None)
    """
    found = re.match("".join(rf"\s*+{re.escape(character)}" for character in "".join(marker.split())), text)
    return found.end() if found else None
