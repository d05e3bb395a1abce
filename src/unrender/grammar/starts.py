"""Computes how each node may start: its first characters, whether it may be empty, and the rules it enters first.

The parser's machine uses the result to decide choices, and the compiler uses it to find left recursion. Rules: the set of characters is an
upper bound, since a node may still fail after one of them. Ruling out an option by its first character is therefore always safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from unrender import nodes
from unrender.errors import GrammarError
from unrender.nodes import Chars, Choice, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence, Until

LAST = 0x10FFFF
"""The last Unicode code point."""
CodeRanges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points, sorted and without overlaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The possible starts of a node."""

    ranges: CodeRanges = ()
    """Possible first characters."""
    empty: bool = False
    """True if the node may match without consuming a character."""
    rules: frozenset[str] = frozenset()
    """Rules that the node may enter before it consumes a character."""

    def either(self, other: Start) -> Start:
        """Return the start of a choice between this node and another."""
        ranges = merged_ranges((*self.ranges, *other.ranges))
        return Start(ranges=ranges, empty=self.empty or other.empty, rules=self.rules | other.rules)

    def then(self, other: Start) -> Start:
        """Return the start of a sequence of this node and another."""
        # `"a"? "b"` starts with a or b; `"a" "b"` only starts with a.
        if not self.empty:
            return self
        return replace(self.either(other), empty=other.empty)

    def or_nothing(self) -> Start:
        """Return the start of an optional node with this start."""
        return replace(self, empty=True)

    def pattern(self) -> re.Pattern[str] | None:
        """Return a pattern for the next character; None if the character is unrestricted or may be missing."""
        if self.empty or self.ranges == ANY_START.ranges:
            return None
        return re.compile(class_of(self.ranges) if self.ranges else "(?!)")


ANY_START = Start(ranges=((0, LAST),))
NOTHING = Start(empty=True)
_NEVER = Start()


def merged_ranges(ranges: Iterable[tuple[int, int]]) -> CodeRanges:
    """Return the same code points as sorted, non-overlapping ranges.

    >>> merged_ranges([(5, 9), (1, 4), (20, 30)])
    ((1, 9), (20, 30))
    """
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def other_characters(ranges: CodeRanges) -> CodeRanges:
    """Return the code points outside `ranges`."""
    # The gaps lie between the ends of adjacent ranges: the range 5-9 leaves 0-4, and 10 and above.
    edges = [-1, *(edge for pair in ranges for edge in pair), LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1)


def class_of(ranges: CodeRanges) -> str:
    """Return the character class of `ranges` in the syntax of Python's `re`."""
    return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"


def ranges_of(chars: Chars) -> CodeRanges:
    """Return the code points that `chars` may match."""
    inside = merged_ranges((ord(low), ord(high)) for low, high in chars.ranges)
    return other_characters(inside) if chars.negated else inside


def starts_of(rules: Mapping[str, Node]) -> dict[str, Start]:
    """Return the start of each rule.

    Raises `GrammarError` for left recursion, and for nodes that aren't combinators.
    """
    known = dict.fromkeys(rules, _NEVER)
    changed = True
    while changed:  # This loop terminates, since each iteration adds to a bounded set.
        changed = False
        for name, node in rules.items():
            start = start_of(node, known)
            if start != known[name]:
                known[name], changed = start, True
    for name in rules:
        # Reject left recursion: in `a = "x"? b` with `b = a "y"`, `a` refers to itself before a character is consumed.
        if name in nodes.reached(known[name].rules, lambda rule: known[rule].rules):
            raise GrammarError(f"rule {name!r} may enter itself before it consumes a character (left recursion)")
    return known


def start_of(node: Node, known: Mapping[str, Start]) -> Start:  # noqa: C901 -- a table, by kind of node
    """Return the start of `node`. `known` contains the starts of the rules."""
    match node:
        case Literal(text):
            return _text(text)
        case nodes.Layout():
            return _SPACE.or_nothing()
        case Chars():
            return _chars(node)
        case Until():
            return ANY_START.or_nothing()
        case Sequence(parts):
            return reduce(Start.then, (start_of(part, known) for part in parts), NOTHING)
        case Choice(options):
            return reduce(Start.either, (start_of(option, known) for option in options), _NEVER)
        case Optional(inner):
            return start_of(inner, known).or_nothing()
        case Repeat():
            return _repeat(node, known)
        case Ref(name):
            return replace(known[name], rules=known[name].rules | {name})
        case nodes.Peek(inner) | nodes.Negate(inner):
            return Start(empty=True, rules=start_of(inner, known).rules)
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            return start_of(inner, known)
        case nodes.Cut():
            return (
                ANY_START.or_nothing()
            )  # The node after a cut must always be tried, since the cut takes effect even if that node fails.
        case nodes.End() | nodes.Mark():
            return NOTHING
        case JsonValue():
            return _JSON
        case nodes.PythonValue():
            return ANY_START
        case nodes.Quoted(quote):
            return _text(quote)
        case nodes.AnswerPart():
            raise GrammarError("a part of a Format's answer is not allowed in this grammar")


def _text(text: str) -> Start:
    return Start(ranges=((ord(text[0]), ord(text[0])),)) if text else NOTHING


def _chars(node: Chars) -> Start:
    start = Start(ranges=ranges_of(node)) if node.maximum != 0 else NOTHING
    return start.or_nothing() if node.minimum == 0 else start


def _repeat(node: Repeat, known: Mapping[str, Start]) -> Start:
    if node.maximum == 0:
        return NOTHING
    once = start_of(node.node, known)
    # If the first iteration of `(a? by ",")` is empty, the match starts with the separator.
    if node.separator is not None:
        once = once.then(start_of(node.separator, known).or_nothing())
    return once.or_nothing() if node.minimum == 0 else once


_SPACE = Start(ranges=merged_ranges((ord(c), ord(c)) for c in map(chr, range(0x3001)) if c.isspace()))
_JSON = Start(ranges=merged_ranges((ord(c), ord(c)) for c in ' \t\n\r{["-0123456789tfn'))
