"""Writes short conversations that end as long ones do, and finds what a template writes behind an answer.

An answer here is of one kind, with words that stand for its texts and values; the last of them is `NEEDLE`, and nothing comes
after it but what ends the answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from unrender.conversation.adapt import shown_media
from unrender.conversation.messages import Conversation, Said, SaidCall
from unrender.conversation.transcript import Writer
from unrender.format import Format
from unrender.values.notations import encode_calls

NEEDLE = "Quaxlorvim"
THOUGHT = "Brindlemox"
QUESTION = Said(role="user", content="Stubquestion")
_KEY = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call of an answer: the tool's name, and the call's id."""

    name: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKind:
    """A kind of answer: whether it thinks, and what it calls; without calls it is content."""

    thinks: bool = False
    calls: tuple[Called, ...] = ()

    def message(self, needle: str = NEEDLE) -> Said:
        """Return an answer of this kind whose last text or value is `needle`."""
        values = ["stub"] * (len(self.calls) - 1) + [needle]
        calls = tuple(
            SaidCall(name=call.name, id=call.id, arguments=json.dumps({_KEY: value}))
            for call, value in zip(self.calls, values, strict=bool(self.calls))
        )
        reasoning = THOUGHT if self.thinks else ""
        return Said(role="assistant", content="" if calls else needle, reasoning=reasoning, calls=calls)

    def closers(self, format: Format) -> str:
        """Return what is written between the last value of its calls and the end of the turn."""
        calls = [(call.name, {_KEY: NEEDLE}, call.id) for call in self.calls]
        return encode_calls(calls, format.tools).rpartition(NEEDLE)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTail:
    """A conversation as a template writes it."""

    writer: Writer
    """The writer that wrote it, with its notes."""
    messages: Conversation
    text: str
    tail: str
    """The text behind the needle."""


def written(writer: Writer, messages: Conversation, *, asks: bool = True, needle: str = NEEDLE) -> WrittenTail | None:
    """Return a conversation and what is behind its needle; None where the template does not write the needle once.

    Raises `TemplateError` where the template refuses the conversation, and `MessageError` for media that it does not show.
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
    at = 0
    for character in "".join(marker.split()):
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text) or text[at] != character:
            return None
        at += 1
    return at
