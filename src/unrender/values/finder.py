r"""Finds the first of several literals in text that arrives in pieces, and lets the text before them pass.

Strategy: one compiled alternation finds whole literals. The sorted literals tell how much of the text's tail may still
become one. A call costs time for the text that is new, plus the longest literal. Where all literals have the same first
character after their white space, long text is searched for that character, which is ten times as fast.

A `Flow` is the fast path past the machine. A machine that suspends in free text, or in a value, knows which literals and
characters could end or change it. Most chunks hold none of them: such a chunk is one event, and no instruction runs. The
result is the same as running the instructions.

Rules: a guarded literal counts only when no letter or digit follows. `>>>all` is not found in `>>>allocate`.

>>> flow = Flow(["</think>"])
>>> [flow.take(chunk) for chunk in ("a < b", "a </th", "</think> b")]
[('a < b', 5), ('a ', 2), None]
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

from unrender.limits import MAX_HEAD


class Flow:
    """Free text up to certain literals or characters. Immutable; one object for each place."""

    __slots__ = ("_made_of", "_whole", "search")

    search: Callable[[str], re.Match[str] | None]
    """Finds text that ends the free text, or a prefix of it."""
    _whole: Callable[[str], re.Match[str] | None]
    """Finds a literal, as far as it is looked at, or one of the characters."""

    def __init__(self, literals: Iterable[str] = (), characters: str = "", last: str = "") -> None:
        """`last` is a literal that counts at the end of a chunk alone."""
        self._made_of = (tuple(literals), characters, last)
        self.search = self._first_search

    def _first_search(self, text: str) -> re.Match[str] | None:
        """Search for the first time: most places of a program are never looked at, and patterns take long to compile."""
        literals, characters, last = self._made_of
        heads: dict[str, Any] = {}
        for literal in literals:
            _plant(heads, literal, whole=True)
        _plant(heads, last, whole=False)
        options = [f"[{re.escape(characters)}]"] if characters else []
        ends = re.compile("|".join([*options, *_branches(heads)]) or r"(?!)").search
        options += [re.escape(literal[:MAX_HEAD]) for literal in literals if literal]
        self._whole = re.compile("|".join(options) or r"(?!)").search
        self.search = ends
        return ends(text)

    def __reduce__(self) -> tuple[type[Flow], tuple[tuple[str, ...], str, str]]:
        return Flow, self._made_of

    def take(self, text: str) -> tuple[str, int] | None:
        """Return the text before a possible beginning of a literal; None when a whole literal is in `text`."""
        found = self.search(text)
        # `a < b` passes whole, of `a </` the last two characters are undecided, and `</think>` is for the machine.
        if found is None:
            return text, len(text)
        if self._whole(text):
            return None
        at = found.start()
        return text[:at], at


def _plant(heads: dict[str, Any], literal: str, *, whole: bool) -> None:
    """Add a literal to a tree of characters; the key "" is where a whole one ends."""
    node = heads
    for character in literal[:MAX_HEAD]:
        node = node.setdefault(character, {})
    if whole or len(literal) > MAX_HEAD:
        node[""] = {}


def _branches(node: dict[str, Any]) -> list[str]:
    # Of `</a`, after `<`: the end of the text, or `/` and so on. A beginning counts only where the text ends in it.
    return [
        re.escape(character) + ("" if "" in below else f"(?:{'|'.join([chr(92) + 'Z', *_branches(below)])})")
        for character, below in sorted(node.items())
    ]


ESCAPED = '"\\' + "".join(map(chr, range(0x20)))
"""The characters that JSON's strings do not hold as they are."""
JSON_STRING = Flow(characters=ESCAPED)
"""Text inside a JSON string."""


_LONG = 64
"""Characters from which on it pays to search for a first character."""


def end_of(pattern: re.Pattern[str], text: str, start: int, limit: int = sys.maxsize) -> int:
    """Return where the match of `pattern` at `start` ends; `start` where it does not match."""
    found = pattern.match(text, start, limit)
    return found.end() if found else start


class Finder:
    """Searches for any of some literals. Of several at one place, it finds the longest. Immutable."""

    __slots__ = ("_cores", "_flows", "_leads", "first", "guarded", "literals", "longest", "pattern", "sorted")

    def __init__(self, literals: Iterable[str], guarded: Iterable[str] = ()) -> None:
        # The longest first: an alternation takes the first option that matches, and `<t>\n` must win over
        # `<t>`.
        self.literals: tuple[str, ...] = tuple(
            sorted({text for text in literals if text}, key=lambda text: (-len(text), text))
        )
        self.guarded: frozenset[str] = frozenset(guarded)
        # Whether `final` is guarded from `finally` takes one character more to know.
        self.longest: int = max(map(len, self.literals), default=0) + bool(self.guarded)
        self.sorted: tuple[str, ...] = tuple(sorted(self.literals))
        never = r"(?!)"
        self.pattern: re.Pattern[str] = re.compile(
            "|".join(self._expression(text, text) for text in self.literals) or never
        )
        self._cores: re.Pattern[str] | None = None
        self._leads: list[str] = []
        """The white space with which literals begin, the longest first."""
        self._flows: dict[str, Flow] = {}
        heads = "".join(sorted({re.escape(text[0]) for text in self.literals}))
        self.first: re.Pattern[str] = re.compile(f"[{heads}]" if heads else never)

    def _expression(self, literal: str, rest: str, lead: str = "") -> str:
        """Return a pattern for the `rest` of a literal after its `lead`."""
        guard = r"(?!\w)" if literal in self.guarded else ""
        return re.escape(rest) + guard + (f"(?<={re.escape(literal)})" if lead else "")

    def __reduce__(self) -> tuple[type[Finder], tuple[tuple[str, ...], frozenset[str]]]:
        return Finder, (self.literals, self.guarded)

    def flow(self, characters: str) -> Flow:
        """Return the fast path of text before the literals and before `characters`; it is made once."""
        if characters not in self._flows:
            self._flows[characters] = Flow(self.literals, characters)
        return self._flows[characters]

    def find(self, text: str, start: int, end: int = sys.maxsize) -> tuple[int, str]:
        """Return the position of the first literal between `start` and `end`, and the literal; (-1, "") if none."""
        if min(len(text), end) - start >= _LONG and (cores := self._cores or self._searched_for()) is not self.pattern:
            core = cores.search(text, start, end)
            if core is None:
                return -1, ""
            # The core of `\n</call>` is `</call>`. The longest white space that is there before it belongs to a literal.
            for lead in self._leads:
                at = core.start() - len(lead)
                if at >= start and (found := self.pattern.match(text, at, end)):
                    return at, found.group()
        found = self.pattern.search(text, start, end)
        return (found.start(), found.group()) if found else (-1, "")

    def _searched_for(self) -> re.Pattern[str]:
        """Return what finds the literals without the white space that they begin with; `pattern` where they differ too much."""
        self._cores = self.pattern
        split = [(literal[: len(literal) - len(literal.lstrip())], literal.lstrip()) for literal in self.literals]
        heads = {core[:1] for _, core in split}
        if len(heads) == 1 and heads != {""}:
            options = [self._expression(lead + core, core[1:], lead) for lead, core in split]
            self._cores = re.compile(f"{re.escape(heads.pop())}(?:{'|'.join(options)})")
            self._leads = sorted({lead for lead, _ in split}, key=len, reverse=True)
        return self._cores

    def decided(self, text: str, start: int, *, whole: bool = False) -> tuple[int, str]:
        """Return the position and the literal that `find` returns for every continuation of `text`.

        It returns (n, "") when there is no literal, or when an earlier one may still be completed: the text before n is
        then certain. With `whole`, the literal itself is certain too: no longer one can begin at its place.
        """
        at, literal = self.find(text, start)
        # As much text follows as the longest literal has: a longer one at this place would have been found.
        if literal and len(text) - at >= self.longest:
            return at, literal
        # Of `</a>` and `</a>\n`, `x</a>` holds the first, and may become the second.
        # With `whole`, a literal at `limit` itself may still become the longer one.
        limit = self.undecided_from(text, start)
        return (at, literal) if literal and at < limit + (not whole) else (limit, "")

    def at(self, text: str, start: int) -> str:
        """Return the literal at `start`, or ""."""
        found = self.pattern.match(text, start)
        return found.group() if found else ""

    def undecided_from(self, text: str, start: int) -> int:
        """Return where the tail of `text` may be an incomplete literal; the length of `text` if it cannot be one."""
        size = len(text)
        tail = size - self.longest + 1
        # Only so many characters at the end can be an incomplete literal, however long the text is.
        head = self.first.search(text, max(start, tail))
        while head:
            at = head.start()
            if self._begins(text[at:]):
                return at
            head = self.first.search(text, at + 1)
        return size

    def absent(self, text: str, start: int) -> bool:
        """Return whether `text` from `start` on lacks even the first character of each literal."""
        return self.first.search(text, start) is None

    def may_grow(self, text: str, start: int) -> bool:
        """Return whether all of `text` from `start` on may become a longer literal, or is a guarded one."""
        return 0 < len(text) - start < self.longest and self._begins(text[start:])

    def _begins(self, tail: str) -> bool:
        """Return whether `tail` is the beginning of a longer literal, or a guarded one."""
        literals = self.sorted
        # Sorted, all literals that begin with `tail` come right where it would be inserted.
        index = bisect_left(literals, tail)
        if index == len(literals) or not literals[index].startswith(tail):
            return False
        if len(literals[index]) > len(tail) or tail in self.guarded:
            return True
        return index + 1 < len(literals) and literals[index + 1].startswith(tail)
