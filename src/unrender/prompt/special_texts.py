"""Finds the text of special tokens in the pieces of a prompt, and the positions at which to split it.

A prompt is split inside each special token that a body contains, and each part is encoded on its own. So no tokenizer option is needed.
A marker that isn't a special token, such as `[INST]` for some models, is split between all its characters, so that its ids differ, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise


class SpecialTexts:
    """The texts of special tokens, and other markers, which are `spelled` character by character."""

    def __init__(self, texts: Iterable[str], spelled: Iterable[str] = ()) -> None:
        self._spelled = frozenset(spelled)
        longest_first = sorted({*texts, *self._spelled}, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._longest = max(map(len, longest_first), default=0)
        self._starts = {text[:at] for text in longest_first for at in range(1, len(text))}
        self._ends = {text[at:] for text in longest_first for at in range(1, len(text))}

    def first_in(self, text: str) -> str | None:
        """Return the first special token that occurs in `text`, or None."""
        found = self._special.search(text)
        return found and found[0]

    def touches(self, text: str) -> bool:
        """Return True if `text` contains a special token, or might be a part of one together with the text around it."""
        lengths = range(1, min(len(text), self._longest) + 1)
        ends = any(text[-length:] in self._starts or text[:length] in self._ends for length in lengths)
        return ends or self.first_in(text) is not None

    def split(self, pieces: Sequence[tuple[str, bool]]) -> list[str]:
        """Return the prompt, split at its `cuts`."""
        text = "".join(part for part, _ in pieces)
        return [text[start:end] for start, end in pairwise([0, *self.cuts(pieces), len(text)])]

    def cuts(self, pieces: Sequence[tuple[str, bool]]) -> Iterator[int]:
        """Yield positions at which to split a prompt. Each is inside the text of a special token that doesn't come entirely from the
        template.

        `pieces` are strings, each with a flag for message bodies.
        """
        text, starts = "".join(part for part, _ in pieces), piece_starts(pieces)
        bodies = [body for _, body in pieces]
        at, cut = 0, 0
        while any(bodies) and (found := self._special.search(text, at)):
            start, end = found.span()
            touched = _body_in(starts, bodies, start, end)
            if touched is not None and found[0] in self._spelled:
                yield from range(max(touched, start + 1, cut + 1), end)
                at, cut = end, end - 1
                continue
            # If the template's text ends with `<|im_` and a body starts with `end|>`, split at the border. Inside a body, continue after
            # the split, since the rest may contain another token.
            at = end if touched is None else max(touched, start + 1)
            if touched is not None and cut < at < end:
                cut = at
                yield cut


def piece_starts(pieces: Iterable[tuple[str, bool]]) -> list[int]:
    """Return the start of each piece, and the end of the last one."""
    return [0, *accumulate(len(part) for part, _ in pieces)]


def _body_in(starts: Sequence[int], bodies: Sequence[bool], low: int, high: int) -> int | None:
    """Return the start of the first body between `low` and `high`, or None."""
    first = bisect_right(starts, low, hi=len(bodies)) - 1
    last = bisect_right(starts, high - 1, hi=len(bodies)) - 1
    return next((max(starts[i], low) for i in range(first, last + 1) if bodies[i]), None)
