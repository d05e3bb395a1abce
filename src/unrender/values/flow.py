r"""Lets a chunk take a fast path past the machine, when it is only more of the text that is being read.

Strategy: a machine that suspends in free text, or in a value, knows which literals and characters could end or change it.
Most chunks hold none of them. Such a chunk is one event; no instruction runs, and the machine is told later how much went
by. So most of the output costs one search and one event, and nothing is promised less: the instructions would have come
to the same.

>>> flow = Flow(["</think>"])
>>> [flow.take(chunk) for chunk in ("a < b", "a </th", "</think> b")]
[('a < b', 5), ('a ', 2), None]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from unrender.limits import LONGEST_HEAD


class Taker(Protocol):
    """The fast path of what is being read: it takes text without the machine."""

    def take(self, text: str) -> tuple[str, int] | None:
        """Take `text`; return its meaning, and the number of its characters that are decided.

        The other characters have to be given again, before the text that follows. Returns None when the machine has to
        read all of `text` itself.
        """
        ...


class Scanner(Protocol):
    """A resumable reader of one value."""

    @property
    def flow(self) -> Taker | None:
        """The fast path from the present place in the value; None when there is none."""
        ...

    @property
    def duplicate(self) -> str:
        """A key that came twice in one object, in a value that is done; "" where none did."""
        ...

    def copy(self) -> Scanner:
        """Return an independent scanner in the same state."""
        ...

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, int]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come."""
        ...


class Flow:
    """Text that goes on until certain literals or characters come. Immutable; one object for each place."""

    __slots__ = ("_ends", "_made_of", "_whole")

    _ends: Callable[[str], re.Match[str] | None]
    """Finds what ends the text, or may be the beginning of that."""
    _whole: Callable[[str], re.Match[str] | None]
    """Finds a literal, as far as it is looked at, or one of the characters."""

    def __init__(self, literals: Iterable[str] = (), characters: str = "", last: str = "") -> None:
        """`last` is a literal that counts at the end of a chunk alone."""
        self._made_of = (tuple(literals), characters, last)
        self._ends = self._first_ends

    def _first_ends(self, text: str) -> re.Match[str] | None:
        """Search for the first time: most places of a program are never looked at, and patterns take long to compile."""
        literals, characters, last = self._made_of
        heads: dict[str, Any] = {}
        for literal in literals:
            _plant(heads, literal, whole=True)
        _plant(heads, last, whole=False)
        options = [f"[{re.escape(characters)}]"] if characters else []
        ends = re.compile("|".join([*options, *_branches(heads)]) or r"(?!)").search
        options += [re.escape(literal[:LONGEST_HEAD]) for literal in literals if literal]
        self._whole = re.compile("|".join(options) or r"(?!)").search
        self._ends = ends
        return ends(text)

    def __reduce__(self) -> tuple[type[Flow], tuple[tuple[str, ...], str, str]]:
        return Flow, self._made_of

    def take(self, text: str) -> tuple[str, int] | None:
        """Return the text before a possible beginning of a literal; None when a whole literal is in `text`."""
        found = self._ends(text)
        if found is None:
            return text, len(text)
        if self._whole(text):
            return None
        at = found.start()
        return text[:at], at


def _plant(heads: dict[str, Any], literal: str, *, whole: bool) -> None:
    """Add a literal to a tree of characters; the key "" is where a whole one ends."""
    node = heads
    for character in literal[:LONGEST_HEAD]:
        node = node.setdefault(character, {})
    if whole or len(literal) > LONGEST_HEAD:
        node[""] = {}


def _branches(node: dict[str, Any]) -> list[str]:
    return [re.escape(character) + _rest(below) for character, below in sorted(node.items())]


def _rest(node: dict[str, Any]) -> str:
    """Return what may follow to make a literal whole, or to leave it open at the end."""
    return "" if "" in node else f"(?:{'|'.join([chr(92) + 'Z', *_branches(node)])})"


ESCAPED = '"\\' + "".join(map(chr, range(0x20)))
"""The characters that JSON's strings do not hold as they are."""
JSON_STRING = Flow(characters=ESCAPED)
"""Text inside a JSON string."""
