"""Renders short conversations that end like long ones, and finds the text that a template writes after an answer.

An answer here is of one kind, with words that stand for its texts and values; the last of them is `NEEDLE`, and nothing comes
after it but what ends the answer.
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
    """Return an answer whose last text or value is `needle`: content, or these calls with arguments that stand for theirs."""
    values = ["stub"] * (len(calls) - 1) + [needle]
    called = tuple(
        replace(call, arguments=json.dumps({_KEY: value})) for call, value in zip(calls, values, strict=bool(calls))
    )
    reasoning = THOUGHT if thinks else ""
    return Said(role="assistant", content="" if calls else needle, reasoning=reasoning, calls=called)


def answer_kind(answer: Said) -> str:
    """Return the name that `Continuation.ends` has for answers of a kind: a thought changes no end."""
    return "two calls" if len(answer.calls) > 1 else "call" if answer.calls else "content"


def closers(answer: Said, format: Format) -> str:
    """Return what is written between the last value of a short answer's calls and the end of the turn."""
    calls = [(call.name, {_KEY: NEEDLE}, call.id or "") for call in answer.calls]
    return encode_calls(own_calls(format), calls).rpartition(NEEDLE)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTail:
    """A conversation as a template writes it."""

    writer: Writer
    """The writer that wrote it, with its notes."""
    messages: Conversation
    text: str
    tail: str
    """The text after the needle."""


_NUMBER = re.compile(r"(\d+)")


def counts_calls(first: str, later: str, calls: int) -> bool:
    """Return whether two texts differ in numbers alone, each greater by a number of calls in the later one.

    >>> counts_calls("result 0 of 1", "result 2 of 1", 2), counts_calls("result 0", "results 2", 2)
    (True, False)
    """
    one, other = _NUMBER.split(first), _NUMBER.split(later)
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a == b or (i % 2 and int(b) - int(a) == calls) for i, (a, b) in enumerate(pairs)
    )


def recounted(first: str, later: str, by: int) -> str:
    """Return a text with the numbers greater by `by` that are greater by one in a text with one more call before it.

    >>> recounted("result 0 of 1", "result 1 of 1", 5)
    'result 5 of 1'
    """
    if not counts_calls(first, later, 1):
        raise ExtendError("the template writes numbers that do not count calls alone", "unproved")
    pairs = zip(_NUMBER.split(first), _NUMBER.split(later), strict=True)
    return "".join(a if a == b else str(int(a) + by) for a, b in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """The start of a short conversation that continues like a long one."""

    writer: Writer
    before: Conversation
    """The messages before the answer."""
    later: Conversation = ()
    """The same with one more call."""
    by: int = 0
    """The number of calls more that the long conversation has, for a template that counts them."""

    def written(self, answer: Said, new: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail:
        """Return the text after it. Raises `ExtendError` where the template does not write the needle once, or refuses."""
        made = later = None
        # Somebody may have said the needle.
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
    """Return a conversation and what is after its needle; None where the template does not write the needle once.

    Raises `TemplateError` where the template refuses the conversation, and `RequestError` for media that it does not show.
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
    r"""Return where a marker at the start of a text ends, white space apart; None where the text does not begin with it.

    >>> behind("\n</call><end>", "</call>\n"), behind("<end>", "</call>")
    (8, None)
    """
    found = re.match("".join(rf"\s*+{re.escape(character)}" for character in "".join(marker.split())), text)
    return found.end() if found else None
