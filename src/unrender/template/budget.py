"""Limits on a rendering into an error, before a hostile template has cost more than they allow.

Strategy: nothing interrupts Python from outside. Whatever a template can do in one go (a loop's round, a call, a filter,
an operator) is counted *before* it is done, and everything that can grow (text, lists) is measured before it is made,
so that no single step takes long and the clock is looked at often enough.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jinja2.utils import Namespace

_STEPS_BETWEEN_LOOKS_AT_THE_CLOCK = 64
_BULK = 50_000  # characters; copying them takes long enough to be worth a look at the clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one rendering may cost. The defaults leave room for a conversation of some million tokens."""

    steps: int = 2_000_000
    """Rounds of loops, calls, filters and outputs."""
    characters: int = 10_000_000
    """Characters of the output, and of any text made on the way; all texts together may be ten times as long."""
    items: int = 200_000
    """Items of any list made on the way."""
    seconds: float = 1.0
    """Processor time of the rendering thread, so that a busy machine changes nothing."""
    source: int = 200_000
    """Characters of the template itself, which compile in about two seconds at worst."""


class Exhausted(Exception):
    """A rendering has reached one of its limits; the message says which."""


class Budget:
    """What is left of the `Limits` of one rendering. Every method raises `Exhausted` when it is too little."""

    __slots__ = ("_limits", "_look", "_made", "_steps", "_until")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._steps = 0
        self._made = 0
        self._look = _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK
        self._until = time.thread_time() + limits.seconds

    def step(self) -> None:
        """Count one small piece of work."""
        self._steps += 1
        if self._steps >= self._look:
            self.check()

    def check(self) -> None:
        """Compare steps and time with the limits."""
        self._look = self._steps + _STEPS_BETWEEN_LOOKS_AT_THE_CLOCK
        if self._steps > self._limits.steps:
            raise Exhausted(f"the template needs more than {self._limits.steps} steps")
        if time.thread_time() > self._until:
            raise Exhausted(f"the template needs more than {self._limits.seconds} seconds")

    def text(self, characters: int) -> None:
        """Make room for a text of that length, before or after it is made."""
        if characters > self._limits.characters:
            raise Exhausted(f"the template makes a text of more than {self._limits.characters} characters")
        self._made += characters
        if self._made > 10 * self._limits.characters:
            raise Exhausted(f"the template makes more than {10 * self._limits.characters} characters of text")
        if characters > _BULK:
            self.check()

    def read(self, characters: int) -> None:
        """Count the searching or copying of a text of that length, of which nothing need remain."""
        self.step()
        if characters > _BULK:
            self.check()

    def items(self, count: int) -> None:
        """Make room for a list of that length."""
        if count > self._limits.items:
            raise Exhausted(f"the template makes a list of more than {self._limits.items} items")

    def weigh(self, value: Any) -> int:
        """Return about how many characters `value` has as text, things that it holds twice counted twice.

        Lists that hold each other are small in memory and endless as text: hence measured before they are written,
        compared or hashed.
        """
        if isinstance(value, str | bytes):
            return len(value)
        total, waiting = 0, [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str | bytes):
                total += len(item) + 4
            else:
                total += 12  # an inner node costs more time than characters
                waiting.extend(_inside(item))
            if total + 12 * len(waiting) > self._limits.characters:
                raise Exhausted(f"the template makes a text of more than {self._limits.characters} characters")
        return total


def _inside(value: Any) -> Any:
    if isinstance(value, Mapping):
        return chain(value.keys(), value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, Namespace):
        return object.__getattribute__(value, "_Namespace__attrs").values()
    return ()
