"""Parsers of answers.

The input is text in chunks of any size. The output is events, and messages made from events. Read `streaming` first: `Parser` feeds the
machine, and most text takes a fast path around it. `streaming` also creates the machine for a format and a request. `prompt_tail` finds the
prefill in a prompt. `message` combines events, and distinguishes special tokens from ordinary text that looks like one. `expectations`
describes the text that may come next, and finds calls that weren't parsed. `saved_states` saves and restores parsers. This module iterates
over the events of an answer that arrives in chunks, and finds its first broken call: one that can't be parsed, or whose arguments violate
its tool's schema.

Rule: a saved parser contains the text that it was fed, and is restored by feeding that text again. Everything that affects parsing has to
be in the `Transcript`, the format or the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from unrender.errors import GrammarError, RequestError
from unrender.limits import MAX_FEW
from unrender.machine import Event, Malformed, ToolCallFinished, ToolCallStarted
from unrender.messages import CallStatus, Message, ToolCall
from unrender.parser.streaming import Parser
from unrender.signatures import found

Item = TypeVar("Item")


class AnswerStream(Generic[Item]):
    """The events of one streamed answer. Iterate with `for`, or with `async for` if the chunks come from an async iterable.

    Each chunk is parsed when the iteration reaches it, and the parser is finished after the last chunk. You can iterate only once.
    `message` is the message so far.

    Raises `RequestError` for the wrong kind of iteration, or if a chunk isn't a string.
    """

    __slots__ = ("_added", "_begun", "_chunks", "_finished", "_items", "_later", "_parser")

    def __init__(
        self,
        parser: Parser,
        chunks: Iterable[str] | AsyncIterable[str],
        *,
        added: Callable[[str], Iterable[Item]],
        finished: Callable[[], Iterable[Item]],
    ) -> None:
        self._parser, self._chunks, self._added, self._finished = parser, chunks, added, finished
        self._begun = False
        self._items, self._later = self._read(), self._read_later()

    @property
    def message(self) -> Message:
        """The message so far, complete at the end of the stream. Raises `RequestError` if the iteration hasn't started."""
        if not self._begun:
            raise RequestError(
                "message: no chunk was read yet; iterate over the stream first, e.g. `for event in stream`"
            )
        return self._parser.message

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        self._begun = True
        return next(self._items)

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        self._begun = True
        return await anext(self._later)

    def _read(self) -> Iterator[Item]:
        if isinstance(self._chunks, str) or not isinstance(self._chunks, Iterable):
            raise RequestError(f"chunks: expected an iterable of texts, found {type(self._chunks).__name__}")
        for number, chunk in enumerate(self._chunks):
            yield from self._added(_text(chunk, number))
        yield from self._finished()

    async def _read_later(self) -> AsyncIterator[Item]:
        if not isinstance(self._chunks, AsyncIterable):
            raise RequestError(f"chunks: expected an async iterable of texts, found {type(self._chunks).__name__}")
        number = 0
        async for chunk in self._chunks:
            for item in self._added(_text(chunk, number)):
                yield item
            number += 1
        for item in self._finished():
            yield item


def _text(chunk: object, number: int) -> str:
    if not isinstance(chunk, str):
        raise RequestError(f"chunks[{number}]: expected text, found {found(chunk)}")
    return chunk


@dataclass(frozen=True, slots=True)
class Broken:
    """A call that failed or violates its tool's schema. Positions are character indexes in the answer."""

    name: str
    start: int
    end: int
    """Position at which parsing failed."""
    stop: int
    status: CallStatus
    over: int = field(default=0, compare=False)
    """Position at which the next call, or the end of the answer, follows."""
    later: tuple[tuple[str, Mapping[str, Any], str], ...] = field(default=(), compare=False)
    """Name, arguments and id of the complete calls after the broken one."""
    further: bool = field(default=False, compare=False)
    """True if another broken call follows."""


def first_broken(parser: Parser, text: str, finish_reason: str | None, prefill: int) -> Broken | None:
    """Parse an answer with a new parser, and return its first broken call. The prompt contains the first `prefill` characters."""
    starts: dict[int, int] = {}
    events = parser.finish(finish_reason, text=text)
    for index, event in enumerate(events):
        if isinstance(event, ToolCallStarted):
            starts[event.index] = event.position
        elif breaks(event, parser):
            found = _span(event, parser, starts, text, prefill)
            return found and _with_later(found, events[index + 1 :], parser, text)
    return None


def only_call(parser: Parser, text: str) -> Mapping[str, Any] | None:
    """Parse a text with a new parser. Return the arguments if the text is one complete, undamaged call. Otherwise, return None."""
    events = parser.finish("stop", text=text)
    calls = parser.message.tool_calls
    if len(calls) != 1 or any(isinstance(event, Malformed) for event in events):
        return None
    return calls[0].arguments if calls[0].status == "complete" and not calls[0].problems() else None


def breaks(event: Event, parser: Parser) -> bool:
    """Return True if this event reports a failed call, or a complete call whose arguments violate its tool's schema."""
    match event:
        case Malformed(call=call):
            return call is not None
        case ToolCallFinished(index, "complete"):
            with suppress(GrammarError):
                return bool(parser.message.tool_calls[index].problems())
    return False


def _span(event: Event, parser: Parser, starts: Mapping[int, int], text: str, prefill: int) -> Broken | None:
    match event:
        case Malformed(position=position, call=ToolCall(name=name, status=status, text=own)):
            # A call fails at its end, unless the parser continued after the call.
            start = text.find(own, max(position - len(own), 0))
            return Broken(name, start, position, start + len(own), status) if start >= 0 else None
        case ToolCallFinished(index=index, position=end):
            # If a call has no start event, it started in the prefill.
            start, name = starts.get(index, -prefill), parser.message.tool_calls[index].name
            return Broken(name, start, end, end, "complete")
    return None


def _with_later(broken: Broken, events: Sequence[Event], parser: Parser, text: str) -> Broken:
    """Return a broken call with the calls in the events after it."""
    finished = [parser.message.tool_calls[event.index] for event in events if isinstance(event, ToolCallFinished)]
    complete = [call for call in finished if call.status == "complete" and not call.problems()]
    failed = any(isinstance(event, Malformed) and event.call is not None for event in events)
    # The parser stops reading a call at its error. The rest of the call's text may contain further arguments.
    starts = (event.position for event in events if isinstance(event, ToolCallStarted))
    return replace(
        broken,
        over=max(broken.stop, next(starts, len(text))),
        later=tuple((call.name, call.arguments or {}, call.id) for call in complete[:MAX_FEW]),
        further=failed or len(complete) < len(finished) or len(complete) > MAX_FEW,
    )
