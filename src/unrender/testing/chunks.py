"""Cuts an output into chunks as an engine might.

Rules: nothing else in this package slices an output. Every way of cutting gives back the whole text when joined, and is
the same for the same text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from unrender.limits import MOST_PAIRS

_RANDOM_SIZES = (3, 12, 60)


def splits(text: str) -> Iterator[list[str]]:
    """Yield the ways to cut `text`: whole, in single characters, in two at every place, in fours, and at random.

    >>> list(splits("ab"))[:3]
    [['ab'], ['a', 'b'], ['a', 'b']]
    """
    yield [text]
    yield pieces(text, 1)
    yield from pairs(text)
    yield pieces(text, 4)
    for largest in _RANDOM_SIZES:
        yield random_pieces(text, largest)


def pieces(text: str, size: int) -> list[str]:
    """Cut `text` into pieces of `size` characters; the last one may be shorter."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def pairs(text: str) -> Iterator[list[str]]:
    """Yield `text` cut in two, at every place or at `MOST_PAIRS` of them."""
    step = max(1, -(-len(text) // MOST_PAIRS))
    for i in range(1, len(text), step):
        yield [text[:i], text[i:]]


def random_pieces(text: str, largest: int, seed: int = 0) -> list[str]:
    """Cut `text` into pieces of 1 to `largest` characters, the same for the same seed."""
    chance = random.Random(f"{seed}:{largest}:{len(text)}")  # noqa: S311 - reproducible, not secret
    cut: list[str] = []
    at = 0
    while at < len(text):
        cut.append(text[at : at + chance.randint(1, largest)])
        at += len(cut[-1])
    return cut
