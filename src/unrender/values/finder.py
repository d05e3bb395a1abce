r"""Finds the first of several literals in chunked text, and releases the text before it.

Strategy: a compiled alternation finds complete literals. A sorted list of the literals shows how many characters at the end of the text may
be the start of a literal. The cost of a search depends on the length of the new text and of the longest literal. If all literals start with
the same character after their leading whitespace, long text is searched only for that character. This is ten times as fast.

A `Flow` is a fast path that bypasses the machine. A machine that suspends in free text or in a value knows which literals and characters
could end the text or value. Most chunks contain none of these literals and characters, and become one event without running the machine.

Rules: a guarded literal matches only if no letter or digit follows. `>>>all` is not found in `>>>allocate`.

>>> flow = Flow(["</think>"])
>>> [flow.take(chunk) for chunk in ("a < b", "a </th", "</think> b")]
[('a < b', 5), ('a ', 2), None]
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from unrender.cache import kept
from unrender.limits import MAX_HEAD, MAX_NAME


class Flow:
    """A fast path for free text that ends at certain literals or characters. Immutable after creation."""

    __slots__ = ("_made_of", "_whole", "search")

    search: Callable[[str], re.Match[str] | None]
    """Matches a literal or character that ends the free text, or a prefix of a literal at the end of the chunk."""
    _whole: Callable[[str], re.Match[str] | None]
    """Matches one of the characters, or the first `MAX_HEAD` characters of a literal."""

    def __init__(self, literals: Iterable[str] = (), characters: str = "", last: str = "") -> None:
        """Create a fast path for text before `literals` and `characters`.

        `last` is a literal of which only a prefix at the end of a chunk is detected.
        """
        self._made_of = (tuple(literals), characters, last)
        self.search = self._first_search

    def _first_search(self, text: str) -> re.Match[str] | None:
        """Compile the patterns on the first search, because most instances are never used."""
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
        """Return the text before a possible start of a literal, and the length of that text.

        Returns None if `text` contains a complete literal.
        """
        found = self.search(text)
        # If the literal is `</think>`, all of `a < b` is consumed, but the last two characters of `a </` are undecided. A complete
        # `</think>` is left to the machine.
        if found is None:
            return text, len(text)
        if self._whole(text):
            return None
        at = found.start()
        return text[:at], at


def _plant(heads: dict[str, Any], literal: str, *, whole: bool) -> None:
    """Add a literal to a prefix tree. The key "" marks the end of a complete literal."""
    node = heads
    for character in literal[:MAX_HEAD]:
        node = node.setdefault(character, {})
    if whole or len(literal) > MAX_HEAD:
        node[""] = {}


def _branches(node: dict[str, Any]) -> list[str]:
    # After the `<` of `</a`, match either `/` or the end of the text. A prefix matches only at the end of the text.
    return [
        re.escape(character) + ("" if "" in below else f"(?:{'|'.join([chr(92) + 'Z', *_branches(below)])})")
        for character, below in sorted(node.items())
    ]


ESCAPED = '"\\' + "".join(map(chr, range(0x20)))
"""Characters that must be escaped in JSON strings."""
JSON_STRING = Flow(characters=ESCAPED)
"""Fast path for text inside a JSON string."""


SPACE = re.compile(r"\s*")
_LONG = 64
"""Minimum length of text for which it's faster to search for the first character of the literals."""


def end_of(pattern: re.Pattern[str], text: str, start: int, limit: int = sys.maxsize) -> int:
    """Return the end of the match of `pattern` at `start`, or `start` if it doesn't match."""
    found = pattern.match(text, start, limit)
    return found.end() if found else start


class Finder:
    """Searches for any of several literals. If several literals match at one position, the longest is returned. Immutable."""

    __slots__ = ("_cores", "_flows", "_leads", "first", "guarded", "literals", "longest", "pattern", "sorted")

    def __init__(self, literals: Iterable[str], guarded: Iterable[str] = ()) -> None:
        # Longest first: an alternation takes the first option that matches, and `<t>\n` must take precedence over `<t>`.
        self.literals: tuple[str, ...] = tuple(
            sorted({text for text in literals if text}, key=lambda text: (-len(text), text))
        )
        self.guarded: frozenset[str] = frozenset(guarded)
        # One more character is needed to distinguish a guarded `final` from `finally`.
        self.longest: int = max(map(len, self.literals), default=0) + bool(self.guarded)
        self.sorted: tuple[str, ...] = tuple(sorted(self.literals))
        never = r"(?!)"
        self.pattern: re.Pattern[str] = re.compile(
            "|".join(self._expression(text, text) for text in self.literals) or never
        )
        self._cores: re.Pattern[str] | None = None
        self._leads: list[str] = []
        """Leading whitespace of the literals, longest first."""
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
        """Return the fast path for text before any of the literals or `characters`. Instances are cached."""
        if characters not in self._flows:
            self._flows[characters] = Flow(self.literals, characters)
        return self._flows[characters]

    def find(self, text: str, start: int, end: int = sys.maxsize) -> tuple[int, str]:
        """Find the first literal between `start` and `end`. Returns the position and the literal, or (-1, "") if no literal is found."""
        if min(len(text), end) - start >= _LONG and (cores := self._cores or self._searched_for()) is not self.pattern:
            core = cores.search(text, start, end)
            if core is None:
                return -1, ""
            # The search finds `</call>`, the core of `\n</call>`. The literal also includes the longest matching whitespace before its
            # core.
            for lead in self._leads:
                at = core.start() - len(lead)
                if at >= start and (found := self.pattern.match(text, at, end)):
                    return at, found.group()
        found = self.pattern.search(text, start, end)
        return (found.start(), found.group()) if found else (-1, "")

    def _searched_for(self) -> re.Pattern[str]:
        """Return a pattern for the literals without their leading whitespace.

        Returns `pattern` if the literals differ in their first character after it.
        """
        self._cores = self.pattern
        split = [(literal[: len(literal) - len(literal.lstrip())], literal.lstrip()) for literal in self.literals]
        heads = {core[:1] for _, core in split}
        if len(heads) == 1 and heads != {""}:
            options = [self._expression(lead + core, core[1:], lead) for lead, core in split]
            self._cores = re.compile(f"{re.escape(heads.pop())}(?:{'|'.join(options)})")
            self._leads = sorted({lead for lead, _ in split}, key=len, reverse=True)
        return self._cores

    def decided(self, text: str, start: int, *, whole: bool = False) -> tuple[int, str]:
        """Return the result of `find` if it is the same for every continuation of `text`.

        Returns (n, "") if no literal is found, or if an earlier one may still be completed. The text before position n is then final. If
        `whole` is True, a literal that may become a longer one isn't returned.
        """
        at, literal = self.find(text, start)
        # If the rest of the text is at least as long as the longest literal, no longer literal can start at this position.
        if literal and len(text) - at >= self.longest:
            return at, literal
        # With literals `</a>` and `</a>\n`, the `</a>` in `x</a>` may become the longer literal. If `whole` is True, `</a>` is not returned
        # yet.
        limit = self.undecided_from(text, start)
        return (at, literal) if literal and at < limit + (not whole) else (limit, "")

    def search(self, text: str, start: int, *, final: bool, whole: bool = False) -> tuple[int, str]:
        """Return the result of `decided`. If no more text follows (`final`), everything is decided."""
        if not final:
            return self.decided(text, start, whole=whole)
        at, literal = self.find(text, start)
        return (at, literal) if literal else (len(text), "")

    def at(self, text: str, start: int) -> str:
        """Return the literal at `start`, or ""."""
        found = self.pattern.match(text, start)
        return found.group() if found else ""

    def undecided_from(self, text: str, start: int) -> int:
        """Return the start of a possible incomplete literal at the end of `text`.

        Returns the length of `text` if no literal can start there.
        """
        size = len(text)
        tail = size - self.longest + 1
        # An incomplete literal starts at `tail` or later, because it is shorter than the longest literal.
        head = self.first.search(text, max(start, tail))
        while head:
            at = head.start()
            if self._begins(text[at:]):
                return at
            head = self.first.search(text, at + 1)
        return size

    def absent(self, text: str, start: int) -> bool:
        """Return whether no character in `text[start:]` can start a literal."""
        return self.first.search(text, start) is None

    def may_grow(self, text: str, start: int) -> bool:
        """Return whether `text[start:]` is a prefix of a longer literal, or a guarded literal."""
        return 0 < len(text) - start < self.longest and self._begins(text[start:])

    def _begins(self, tail: str) -> bool:
        """Return whether `tail` is a proper prefix of a literal, or a guarded literal."""
        literals = self.sorted
        # In sorted order, the literals that start with `tail` immediately follow its insertion point.
        index = bisect_left(literals, tail)
        if index == len(literals) or not literals[index].startswith(tail):
            return False
        if len(literals[index]) > len(tail) or tail in self.guarded:
            return True
        return index + 1 < len(literals) and literals[index + 1].startswith(tail)


_PLAIN = re.compile(r"[^\W\d][\w.\-]*")
NOT_HERE = -1
"""Returned by `OddNames.end_at` if there is no declared name at the position."""


class OddNames:
    """The declared names of the tools, or of one tool's arguments, that are not plain words. Immutable.

    >>> OddNames(("city", "page[size]", "a.b", "$filter")).names
    ('page[size]', '$filter')
    """

    def __init__(self, declared: Iterable[str]) -> None:
        found = {name for name in declared if 0 < len(name) <= MAX_NAME and not _PLAIN.fullmatch(name)}
        self.names: tuple[str, ...] = tuple(sorted(found, key=lambda name: (-len(name), name)))
        """The names, longest first."""

    def __bool__(self) -> bool:
        return bool(self.names)

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.names)

    def end_at(
        self, text: str, at: int, stops: Finder, *, final: bool, ends: re.Pattern[str] | None = None
    ) -> int | None:
        """Return the end of the longest name at `at` that is followed by one of `stops` or by a match of `ends`.

        Returns `NOT_HERE` if no name matches, and None if more text is needed. Whitespace is allowed before a stop.
        """
        if not final and (at >= len(text) or self._finder.may_grow(text, at)):
            return None
        for name in self.names if self._finder.at(text, at) else ():
            end = at + len(name)
            if not text.startswith(name, at):
                continue
            after = end_of(SPACE, text, end)
            if not final and (after == len(text) or stops.may_grow(text, after)):
                return None
            ended = ends is not None and (end == len(text) or ends.match(text, end))
            if ended or stops.at(text, after) or stops.at(text, end):
                return end
        return NOT_HERE


NO_NAMES = OddNames(())


@kept(1_000)
def odd_names(declared: tuple[str, ...]) -> OddNames:
    """Return the declared names that are not plain words. Instances are cached."""
    return OddNames(declared)


# Damaged end markers.

INSERTED, _REMOVED = 2, 3
"""Maximum numbers of extra and of missing characters in a damaged end marker. In `</a1>`, the `1` is extra."""
_FIRST_WORD = re.compile(r"\W*\w+")


def torn_head(marker: str, name: str = "") -> str:
    """Return the start of a marker up to its first word or `name`, e.g. `</a` of `</a>`. Returns "" if the marker consists only of this
    start.
    """
    found = _FIRST_WORD.match(marker)
    at = marker.rfind(name) if name else -1
    head = marker[: at + len(name)] if at >= 0 else found.group() if found else marker[:-1]
    return head if head != marker and len(head) > 1 and not head[0].isalnum() else ""


def is_damaged(torn: str, closer: str) -> bool:
    """Return whether `torn` equals `closer`, except for a few additional or missing characters in one place."""
    size = min(len(torn), len(closer))
    before = next((at for at in range(size) if torn[at] != closer[at]), size)
    rest = size - before
    after = next((at for at in range(rest) if torn[-1 - at] != closer[-1 - at]), rest)
    return len(torn) - before - after <= INSERTED and len(closer) - before - after <= _REMOVED
