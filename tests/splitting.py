"""Ways to feed outputs in chunks, few enough for tests over thousands of outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unrender import Event, Parser
from unrender.explain import joined_events
from unrender.testing.chat import pieces, random_pieces

__all__ = ["fed", "fed_only", "merged", "pieces", "random_pieces", "splits"]


def splits(text: str, seed: int = 0) -> Iterator[list[str]]:
    """Yield ways to cut `text` into chunks: whole, single characters, fours, and three random ones."""
    yield [text]
    yield pieces(text, 1)
    yield pieces(text, 4)
    for largest in (3, 12, 60):
        yield random_pieces(text, largest, seed)


def fed(parser: Parser, chunks: Iterable[str]) -> list[Event]:
    """Feed the chunks and finish; return all events in order."""
    return [*fed_only(parser, chunks), *parser.finish()]


def fed_only(parser: Parser, chunks: Iterable[str]) -> list[Event]:
    """Feed the chunks without finishing; return all events in order."""
    return [event for chunk in chunks for event in parser.feed(chunk)]


def merged(events: Iterable[Event]) -> list[Event]:
    """Return the events with adjacent pieces of the same text joined."""
    return list(joined_events(list(events)))
