"""A call syntax in, the places out where a raw value ends that no marker of its own closes.

Strategy: such a value may hold commas and brackets. It ends where the text goes on as the syntax says it may: with the
separator and the next argument's name, or with the bracket that closes the arguments and what may stand after them.
Names and white space are bounded, so the tail that may be such an end is short.
"""

from __future__ import annotations

import re
from functools import cached_property

from unrender.format import Part, Slot, Tools
from unrender.grammar.notations import notation_of

_GAP = r"\s{0,64}+"
_NAME = r"[^\W\d][\w.\-]{0,63}+"
_LENGTHS = {_GAP: 64, _NAME: 64}
"""Characters that a piece may have, where it may have more than one."""


class Follow:
    """Finds the end of a raw value; made like a `Finder`, and used in its place. Immutable."""

    def __init__(self, syntax: Tools) -> None:
        self.syntax = syntax

    def __reduce__(self) -> tuple[type[Follow], tuple[Tools]]:
        return Follow, (self.syntax,)

    @classmethod
    def needed(cls, syntax: Tools) -> bool:
        """Return whether raw values of `syntax` have no marker of their own that closes them."""
        arguments = syntax.arguments
        open_ended = arguments.entry[-1:] == (Slot.VALUE,) and notation_of(arguments.codec).unquoted
        return open_ended and bool(arguments.separator.strip() and arguments.end.strip())

    def find(self, text: str, start: int) -> tuple[int, str]:
        """Return where the value that goes on at `start` ends, and what ends it, when no more text comes; (-1, "") if nothing does."""
        found = self._last.search(text, start)
        return (found.start(), found.group()) if found else (-1, "")

    def decided(self, text: str, start: int) -> tuple[int, str]:
        """Return the same however the text goes on; (n, "") when the value goes on at least up to n."""
        found = self._ends.search(text, start)
        # What is begun at the end of the text lies near it: what comes before is not searched again for each value.
        begun = self._begun.search(text, max(start, len(text) - self._longest))
        limit = begun.start() if begun else len(text)
        return (found.start(), found.group()) if found and found.start() < limit else (limit, "")

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        following = [_whole(pieces) + "(?=[^=])" for pieces in self._next_arguments]
        return re.compile("|".join([*following, *map(_whole, self._closings)]))

    @cached_property
    def _last(self) -> re.Pattern[str]:
        end = self.syntax.arguments.end
        following = [_whole(pieces) + "(?!=)" for pieces in self._next_arguments]
        closed = [_whole(pieces) + r"\s*\Z" for pieces in _after_layout(end, [re.escape(end.strip())])]
        return re.compile("|".join([*following, *map(_whole, self._closings), *closed]))

    @cached_property
    def _begun(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_beginning, (*self._next_arguments, *self._closings))))

    @cached_property
    def _longest(self) -> int:
        """Characters that a beginning of what may follow has at most."""
        return max(
            sum(_LENGTHS.get(piece, 1) for piece in pieces) for pieces in (*self._next_arguments, *self._closings)
        )

    @property
    def _next_arguments(self) -> list[list[str]]:
        arguments = self.syntax.arguments
        pieces = _pieces(arguments.separator, *arguments.entry[: arguments.entry.index(Slot.VALUE)])
        return _after_layout(arguments.separator, pieces)

    @property
    def _closings(self) -> list[list[str]]:
        """What closes the arguments, with what closes the run of calls, or begins the next one."""
        syntax = self.syntax
        behind = syntax.function[syntax.function.index(Slot.ARGUMENTS) + 1 :]
        closing = (syntax.arguments.end, *behind, syntax.call_end)
        last = _pieces(*closing, syntax.section_end)
        further = _pieces(*closing, syntax.separator, syntax.call_start, *_head(syntax))
        return [found for pieces in (last, further) for found in _after_layout(syntax.arguments.end, pieces)]


def _head(syntax: Tools) -> list[Part]:
    """Return what a call begins with, up to and with what follows its name."""
    at = syntax.function.index(Slot.NAME)
    behind = syntax.function[at + 1 : at + 2]
    return [*syntax.function[: at + 1], *((syntax.arguments.start,) if behind == (Slot.ARGUMENTS,) else behind)]


def _pieces(*parts: Part) -> list[str]:
    """Return the patterns of the parts, piece by piece; words are split into their characters."""
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, Slot):
            pieces += [_GAP, _NAME]
            continue
        for token in re.findall(r"\w+|[^\w\s]", part):
            pieces += [_GAP, *map(re.escape, token)]
    return pieces[1:]


def _after_layout(marker: str, pieces: list[str]) -> list[list[str]]:
    """Return the pieces after ever less of the white space with which the marker begins: it is no part of the value."""
    layout = marker[: len(marker) - len(marker.lstrip())]
    return [[*map(re.escape, layout[at:]), *pieces] for at in range(len(layout) + 1)]


def _whole(pieces: list[str]) -> str:
    return "".join(pieces)


def _beginning(pieces: list[str]) -> str:
    """Return the pattern of any beginning of the pieces that ends the text."""
    pattern = rf"{pieces[-1]}\Z"
    for piece in reversed(pieces[:-1]):
        pattern = rf"{piece}(?:\Z|{pattern})"
    return pattern
