"""Stores parsed text as long as it's needed, with the role of each part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from unrender.limits import MAX_CONTEXT
from unrender.nodes import Role
from unrender.values.resumable import Resumable


@dataclass(frozen=True, slots=True)
class Span:
    """The role of a piece of the output. `start` and `end` are character indices in the output."""

    role: Role
    start: int
    end: int


@dataclass(slots=True, eq=False)
class ReadText(Resumable):
    """Text before a machine's buffer, stored in pieces to avoid copies."""

    needed: deque[str] = field(default_factory=deque)
    """Text that may have to be parsed again."""
    start: int = 0
    """Position of the first piece."""
    looked: int = 0
    """The argument `first` of the last call of `add`."""
    gone: deque[str] = field(default_factory=deque)
    """The end of the text that is no longer needed, kept as context."""
    gone_size: int = 0

    def add(self, text: str, start: int, first: int) -> None:
        """Store `text`, which starts at the position `start`. Text from the position `first` on is still needed."""
        if first != self.looked:
            self._drop(first, start)
        kept = first - start
        if kept > 0:
            end = min(kept, len(text))
            self._put_by(text[max(end - MAX_CONTEXT, 0) : end])
        if kept < len(text):
            self.needed.append(text[max(kept, 0) :])
            self.start = max(first, start) if len(self.needed) == 1 else self.start

    def _drop(self, first: int, end: int) -> None:
        """Drop the pieces before the position `first`. The last piece ends at `end`."""
        self.looked = first
        # Don't split the piece that contains `first`, because each further chunk would copy the rest again.
        while self.needed and (first >= end or self.start + len(self.needed[0]) <= first):
            text = self.needed.popleft()
            self.start += len(text)
            self._put_by(text)

    def _put_by(self, text: str) -> None:
        gone = self.gone
        gone.append(text[-MAX_CONTEXT:])
        self.gone_size += len(gone[-1])
        while self.gone_size - len(gone[0]) >= MAX_CONTEXT:
            self.gone_size -= len(gone.popleft())

    def take_back(self, size: int) -> str:
        """Remove and return at least the last `size` characters."""
        pieces: list[str] = []
        while size > 0:
            pieces.append(self.needed.pop())
            size -= len(pieces[-1])
        return "".join(reversed(pieces))

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces in reverse order."""
        return chain(reversed(self.needed), reversed(self.gone))


def relabel(roles: list[Role], ends: list[int], start: int, end: int, role: Role) -> None:
    """Set the role of all text from `start` to `end`. Spans are represented by two lists of their roles and ends.

    >>> roles, ends = [Role.CONTENT, Role.MARKER], [2, 9]
    >>> relabel(roles, ends, 4, 6, Role.CONTENT)
    >>> ends
    [2, 4, 6, 9]
    """
    # Replace all spans from `first` to `last`. The parts of these spans outside the given range keep their role.
    first, last = bisect_right(ends, start), bisect_left(ends, end)
    begins = ends[first - 1] if first else 0
    new = [(roles[first], start)] if start > begins else []
    new.append((role, end))
    if ends[last] > end:
        new.append((roles[last], ends[last]))
    roles[first : last + 1] = [role for role, _ in new]
    ends[first : last + 1] = [stop for _, stop in new]


def up_to(spans: list[tuple[Role, int]], end: int) -> list[tuple[Role, int]]:
    """Return the roles and ends of the spans before the position `end`. A span that contains the position is shortened."""
    cut = next((i for i, (_, stop) in enumerate(spans) if stop > end), None)
    if cut is None:
        return spans
    kept = spans[:cut]
    return kept if kept and kept[-1][1] == end else [*kept, (spans[cut][0], end)]
