"""Defines readers of text in chunks: they suspend at the end of a chunk, resume with the next one, and can be copied."""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import Any, ClassVar, Protocol, Self

_OWN = frozenset((list, set, dict, deque))
"""Types that are changed in place, so that each copy needs its own."""


class Resumable:
    """A reader that can be copied in the middle of its work. All of its state is in `__slots__`."""

    __slots__ = ()
    _names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        cls._names = tuple(name for part in cls.__mro__ for name in getattr(part, "__slots__", ()))

    def copy(self) -> Self:
        """Return an independent copy, which shares immutable parts."""
        # Reading the text again would need no such method, but costs 4 to 150 times as much (fifty calls: 8 ms, not 50 µs).
        other = object.__new__(type(self))
        for name in self._names:
            value: Any = getattr(self, name)
            setattr(other, name, value.copy() if type(value) in _OWN or isinstance(value, Resumable) else value)
        return other


class Status(IntEnum):
    """The status that a scanner returns after each piece of text."""

    MORE = 0
    DONE = 1
    FAILED = 2


MORE, DONE, FAILED = Status
"""The same as module constants: to look a member up in its enum costs as much as to scan a few characters."""


class Taker(Protocol):
    """The fast path for the current text, which bypasses the machine."""

    def take(self, text: str) -> tuple[str, int] | None:
        """Take `text`; return its meaning, and the number of its characters that are decided.

        The other characters have to be given again, before the text that follows. Returns None when the machine has to
        read all of `text` itself.
        """
        ...


class Scanner(Resumable):
    """A resumable reader of one value."""

    __slots__ = ()

    @property
    def flow(self) -> Taker | None:
        """The fast path from the present place in the value; None when there is none."""
        return None

    @property
    def duplicate(self) -> str:
        """A key that came twice in one object, in a value that is done; "" where none did."""
        return ""

    @property
    def wanted(self) -> str:
        """The text that was expected where a value failed."""
        return "a JSON value"

    @property
    def behind(self) -> int:
        """Number of characters before the present place that may have to be read again."""
        return 0

    def passed(self, text: str) -> None:
        """Note text that took the fast path."""

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come.

        Returns the place up to which it was read, the JSON text of that, and the status. A value that ends before text that
        was read already, no more than `behind` characters, is done there, and that text is read again.
        """
        raise NotImplementedError
