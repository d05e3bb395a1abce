"""Splits the literals between items in a row into the markers that each item repeats, and the separators.

For items in a row, `before` item₁ `between` item₂ `after`: an item's own prefix ends both `before` and `between`, its own
suffix begins both `between` and `after`. Where the two overlap, the border is drawn between whole tags, after white space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unrender.analysis.split import common_prefix, common_suffix, is_tag, is_word, lexemes

_OPEN_TAG = re.compile(r"[^<>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The literals of a row of items."""

    prefix: str
    """Before each item."""
    suffix: str
    """After each item."""
    separator: str
    """Between two."""
    rule: str = ""
    """The name of the rule that drew the borders."""


def solve(before: Sequence[str], between: str, after: Sequence[str]) -> Solution:
    """Find prefix, suffix and separator of the items in a row.

    >>> solve(["<c>", "hi <c>"], "</c>, <c>", ["</c>."])
    Solution(prefix='<c>', suffix='</c>', separator=', ', rule='what is between two, and at both ends')
    """
    prefix = common_suffix([*before, between])
    suffix = common_prefix([between, *after])
    if len(prefix) + len(suffix) <= len(between):
        separator = between[len(suffix) : len(between) - len(prefix)]
        return Solution(prefix=prefix, suffix=suffix, separator=separator, rule="what is between two, and at both ends")
    border = min(_borders(between, len(between) - len(prefix), len(suffix)), key=lambda at: _awkwardness(between, at))
    return Solution(
        prefix=between[border:], suffix=between[:border], separator="", rule="the border lies between whole tags"
    )


def _borders(between: str, first: int, last: int) -> list[int]:
    positions, at = [first], 0
    for part in lexemes(between):
        at += len(part)
        if first < at <= last:
            positions.append(at)
    return positions


def _awkwardness(between: str, at: int) -> tuple[bool, bool, bool, bool, int]:
    left, right = lexemes(between[:at])[-1:], lexemes(between[at:])[:1]
    inside = _OPEN_TAG.match(between[at:]) is not None
    broken = bool(left and right) and (_binds(left[0], right[0]) or _binds(right[0], left[0]))
    return inside, broken, right == ["\n"], bool(right) and right[0].isspace(), at


def _binds(marker: str, word: str) -> bool:
    return is_tag(marker) and is_word(word)
