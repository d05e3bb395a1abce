"""Finds names of declared tools and arguments that are not plain words, such as `page[size]`, `$filter`, `2fa` or `get weather`.

An undeclared name ends at whitespace, a bracket or a quotation mark. A declared name may contain any character, and even the start of a
marker. Declared names are therefore tried first. If several names match, the longest one that is followed by a marker is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from unrender.cache import kept
from unrender.limits import MAX_NAME
from unrender.values.finder import SPACE, Finder, end_of

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
