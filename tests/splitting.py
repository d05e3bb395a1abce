"""Cut an output into chunks, and feed them: the only place in the tests that slices.

Rules: `splits` always yields the whole text, single characters, and cuts that depend on nothing but text and seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from unrender.parsing.events import ArgumentsText, ContentText, Event, ReasoningText
from unrender.parsing.parser import Parser


def splits(text: str, seed: int = 0) -> Iterator[list[str]]:
    """Yield ways to cut `text` into chunks: whole, single characters, fours, and three random ones."""
    yield [text]
    yield list(text)
    yield sliced(text, 4)
    for largest in (3, 12, 60):
        chance = random.Random(f"{seed}:{largest}:{len(text)}")
        yield list(_random_chunks(text, chance, largest))


def sliced(text: str, size: int) -> list[str]:
    """Cut `text` into chunks of `size` characters, the last one shorter."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def _random_chunks(text: str, chance: random.Random, largest: int) -> Iterator[str]:
    at = 0
    while at < len(text):
        size = chance.randint(1, largest)
        yield text[at : at + size]
        at += size


def fed(parser: Parser, chunks: Iterable[str]) -> list[Event]:
    """Feed the chunks and finish; returns all events, as they came."""
    return [*fed_only(parser, chunks), *parser.finish()]


def fed_only(parser: Parser, chunks: Iterable[str]) -> list[Event]:
    """Feed the chunks, the output not being at its end; returns all events, as they came."""
    return [event for chunk in chunks for event in parser.feed(chunk)]


def merged(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring pieces of the same text: what chunking may cut differently becomes equal."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        match last, event:
            case (ContentText(a), ContentText(b)):
                joined[-1] = ContentText(a + b)
            case (ReasoningText(a), ReasoningText(b)):
                joined[-1] = ReasoningText(a + b)
            case (ArgumentsText(i, a), ArgumentsText(j, b)) if i == j:
                joined[-1] = ArgumentsText(i, a + b)
            case _:
                joined.append(event)
    return joined
