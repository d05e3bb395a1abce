"""Turns a rendering of calls into skeletons: the slots in the order of the text, with the literals between them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unrender.format import Part, Skeleton, Slot

COUNTER = "\ue000"
"""Stands for a counter inside a literal while skeletons are being solved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The text[start:end] that fills a slot of item number `owner`."""

    start: int
    end: int
    slot: Slot
    owner: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Items in a row, each from its first slot to its last, with the literals around them."""

    before: str
    items: tuple[Skeleton, ...]
    betweens: tuple[str, ...]
    after: str


def find_tokens(text: str, words: Mapping[str, tuple[Slot, int]], covered: Sequence[Token] = ()) -> list[Token]:
    """Find all `words` in `text` outside the `covered` tokens; return both in order.

    `words` gives the slot and the owner of each text.
    """
    if not words:
        return sorted(covered, key=lambda token: token.start)
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    found = list(covered)
    for match in re.finditer(pattern, text):
        if not any(token.start <= match.start() < token.end for token in covered):
            slot, owner = words[match.group()]
            found.append(Token(start=match.start(), end=match.end(), slot=slot, owner=owner))
    return sorted(found, key=lambda token: token.start)


def make_row(text: str, tokens: Sequence[Token], count: int) -> Row | None:
    """Cut `text` into items by their owners 0 … `count`-1; None when one is missing or two are interleaved."""
    groups = [[token for token in tokens if token.owner == owner] for owner in range(count)]
    if not all(groups):
        return None
    bounds = [(group[0].start, group[-1].end) for group in groups]
    if any(left[1] > right[0] for left, right in itertools.pairwise(bounds)):
        return None
    earlier = [token.end for token in tokens if token.end <= bounds[0][0]]
    later = [token.start for token in tokens if token.start >= bounds[-1][1]]
    return Row(
        before=text[max(earlier, default=0) : bounds[0][0]],
        items=tuple(skeleton_of(text, group) for group in groups),
        betweens=tuple(text[left[1] : right[0]] for left, right in itertools.pairwise(bounds)),
        after=text[bounds[-1][1] : min(later, default=len(text))],
    )


def skeleton_of(text: str, tokens: Sequence[Token]) -> Skeleton:
    """Return slots and literals from the first token to the last."""
    parts: list[Part] = [tokens[0].slot]
    for token, following in itertools.pairwise(tokens):
        parts += [text[token.end : following.start], following.slot]
    return merge(parts)


def merge(parts: Iterable[Part]) -> Skeleton:
    """Join neighbouring literals, drop empty ones, and turn counters into slots."""
    merged: list[Part] = []
    for part in parts:
        pieces = [part] if isinstance(part, Slot) else re.split(f"({COUNTER})", part)
        for piece in pieces:
            if piece == COUNTER:
                merged.append(Slot.INDEX)
            elif merged and not isinstance(piece, Slot) and not isinstance(merged[-1], Slot):
                merged[-1] = str(merged[-1]) + piece
            elif piece:
                merged.append(piece)
    return tuple(merged)


def mark_counters(row: Row) -> tuple[Row, int | None]:
    """Replace numbers that count the items by `COUNTER`. Also returns the first number; None when nothing counts."""
    starts: list[int] = []
    heads = _mark([row.before, *row.betweens], starts, backwards=True)
    tails = _mark([*(text for text in heads[1:]), row.after], starts, backwards=False)
    items = tuple(_mark_item(row.items, item, starts) for item in row.items)
    marked = Row(before=heads[0], items=items, betweens=tuple(tails[:-1]), after=tails[-1])
    return marked, min(starts) if starts else None


def _mark(texts: Sequence[str], starts: list[int], *, backwards: bool) -> list[str]:
    """Mark numbers that grow by one from text to text, as far as the texts agree from their end or start."""
    step = -1 if backwards else 1
    rows = [_digits_apart(text)[::step] for text in texts]
    for at, column in enumerate(zip(*rows, strict=False)):
        if _counts(column):
            starts.append(int(column[0]))
            for row in rows:
                row[at] = COUNTER
        elif len(set(column)) > 1:
            break
    return ["".join(row[::step]) for row in rows]


def _mark_item(items: Sequence[Skeleton], item: Skeleton, starts: list[int]) -> Skeleton:
    if len({len(other) for other in items}) > 1:
        return item
    return merge(_mark_part([other[i] for other in items], part, starts) for i, part in enumerate(item))


def _mark_part(column: Sequence[Part], part: Part, starts: list[int]) -> Part:
    rows = [_digits_apart(text) for text in column]
    if isinstance(part, Slot) or len({len(row) for row in rows}) > 1:
        return part
    counting = [at for at, cells in enumerate(zip(*rows, strict=True)) if _counts(cells)]
    starts.extend(int(rows[0][at]) for at in counting)
    return "".join(COUNTER if at in counting else piece for at, piece in enumerate(_digits_apart(part)))


def _digits_apart(text: str) -> list[str]:
    """Cut `text` into numbers and single other characters: a counter may be inside a tag."""
    return re.findall(r"\d+|\D", text)


def _counts(column: Sequence[str]) -> bool:
    numbers = [int(cell) for cell in column if cell.isascii() and cell.isdigit()]
    steps = {right - left for left, right in itertools.pairwise(numbers)}
    return len(numbers) == len(column) and steps == {1}
