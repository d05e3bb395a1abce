"""Counts the cost of a rendering, and raises an error before a malicious template exceeds its limits.

Strategy: Python code can't be interrupted from outside. Therefore, every operation (a loop iteration, a call, a filter, an operator) is
counted *before* it runs. Everything that can grow (text, lists) is measured before it's created. No single step takes long, and the clock
is checked after a fixed amount of work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from unrender.limits import MAX_DEPTH, Limits
from unrender.rendering.printing import values_inside

_BULK = 50_000
"""Maximum number of characters that are copied, searched or compared between two clock checks."""
_STEP = _BULK // 64
"""Cost of a step, as a number of characters. The clock is checked every 64 steps."""
_ITEM = 8
"""Cost of a list item, as a number of characters."""
_NODE = 12
"""Cost of a nested value, as a number of characters, without the cost of its text."""

# WebAssembly has no thread clock, so the wall clock is used there.
now: Callable[[], float] = getattr(time, "thread_time", time.perf_counter)


class Exhausted(Exception):
    """Raised if a rendering exceeds a limit. The message names the limit."""


class CostBudget:
    """Counts the cost of a rendering against its `Limits`. All methods raise `Exhausted` if a limit is exceeded."""

    __slots__ = ("_limits", "_listed", "_made", "_steps", "_unseen", "_until")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._steps = 0
        self._made = 0
        self._listed = 0
        self._unseen = 0
        self._until = now() + limits.rendering_seconds

    def step(self) -> None:
        """Count one step of the rendering."""
        self._steps += 1
        self._unseen += _STEP
        if self._unseen > _BULK:
            self.check()

    def check(self) -> None:
        """Raise `Exhausted` if the number of steps or the elapsed time exceeds its limit."""
        self._unseen = 0
        if self._steps > self._limits.rendering_steps:
            raise Exhausted(f"the template needs more than {self._limits.rendering_steps} steps")
        if now() > self._until:
            raise Exhausted(f"the template needs more than {self._limits.rendering_seconds} seconds")

    def text(self, characters: int) -> None:
        """Count a text of the given length. May be called before or after the text is created."""
        if characters > self._limits.rendering_characters:
            raise Exhausted(f"the template makes a text of more than {self._limits.rendering_characters} characters")
        # The total length is limited too, because a loop may keep many pieces of text: `{% set _ = kept.append(long ~ i) %}`.
        self._made += characters
        if self._made > 10 * self._limits.rendering_characters:
            raise Exhausted(f"the template makes more than {10 * self._limits.rendering_characters} characters of text")
        self._work(characters)

    def read(self, characters: int) -> None:
        """Count the cost of searching or copying a text of the given length."""
        self.step()
        self._work(characters)

    def items(self, count: int) -> None:
        """Count a list of `count` items."""
        if count > self._limits.rendering_items:
            raise Exhausted(f"the template makes a list of more than {self._limits.rendering_items} items")
        self._listed += count
        if self._listed > 25 * self._limits.rendering_items:
            raise Exhausted(f"the template makes lists of more than {25 * self._limits.rendering_items} items together")
        self._work(_ITEM * count)

    def weigh(self, value: Any) -> int:
        """Return the approximate length of `value` as text. A part that occurs several times is counted each time.

        Nested lists can be small in memory but huge as text, so they're measured before they're printed, compared or hashed.
        """
        if isinstance(value, str | bytes):
            return len(value)
        # If `x = [x, x]` is repeated sixty times, there are 60 lists in memory, but 2 ** 60 in the printed text. Values are therefore
        # counted level by level, so that the limit is exceeded after a few levels.
        total, depth, level, limit = 0, 0, [value], self._limits.rendering_characters
        while level:
            deeper: list[Any] = []
            for item in level:
                kind = type(item)
                if kind is str:
                    total += len(item) + 4
                    continue
                if kind is dict:  # Fast path for most containers.
                    deeper += item
                    deeper += item.values()
                elif isinstance(item, str | bytes):
                    total += len(item) + 4 - _NODE
                else:
                    deeper.extend(values_inside(item))
                total += _NODE
                if total + _NODE * len(deeper) > limit:
                    break
            if total + _NODE * len(deeper) > limit:
                raise Exhausted(f"the template makes a text of more than {limit} characters")
            depth, level = depth + 1, deeper
            if depth > MAX_DEPTH and level:
                raise Exhausted(f"the template nests values more than {MAX_DEPTH} levels deep")
        self._work(total)
        return total

    def _work(self, characters: int) -> None:
        self._unseen += characters
        if self._unseen > _BULK:
            self.check()
