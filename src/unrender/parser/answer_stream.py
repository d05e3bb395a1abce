"""Streams of events, or OpenAI chunks, for an answer that arrives in chunks."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

from unrender.errors import RequestError
from unrender.messages import Message
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
