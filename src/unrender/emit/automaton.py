"""Stops → the automaton of all text before the first of them (Aho-Corasick), state by state.

Each state is the beginning of a stop that has just been read. Rules: text is cut at the stop that is complete first;
of several that are complete at once, at the longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class State:
    """One state: where each next character leads.

    `finishing` maps a character to the stop that it completes, `onward` to another state; a character in `blocked`
    would complete a stop behind which nothing may follow; every other one leads back to the start.
    """

    prefix: str
    finishing: tuple[tuple[str, str], ...]
    onward: tuple[tuple[str, str], ...]
    blocked: str


@lru_cache(maxsize=256)
def states(stops: tuple[str, ...], alive: tuple[str, ...]) -> tuple[State, ...]:
    """Return the states of the text before the first of `stops`, the start first.

    `alive` are the stops behind which something may follow.
    """
    ends = frozenset(stops)
    first = frozenset(stop for stop in ends if not any(other in stop[:-1] for other in ends))
    prefixes = frozenset(stop[:length] for stop in first for length in range(len(stop))) | {""}
    builder = _Builder(first, frozenset(alive), prefixes)
    found: dict[str, State] = {}
    queue = [""]
    for prefix in queue:
        if prefix not in found:
            found[prefix] = builder.state(prefix)
            queue.extend(target for _, target in found[prefix].onward)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _Builder:
    ends: frozenset[str]
    live: frozenset[str]
    prefixes: frozenset[str]

    def state(self, prefix: str) -> State:
        finishing: list[tuple[str, str]] = []
        onward: list[tuple[str, str]] = []
        blocked = ""
        for character in self.expected(prefix):
            target = self.target(prefix + character)
            if target in self.ends and target in self.live:
                finishing.append((character, target))
            elif target in self.ends:
                blocked += character
            else:
                onward.append((character, target))
        return State(prefix, tuple(finishing), tuple(onward), blocked)

    def expected(self, prefix: str) -> list[str]:
        """Return the characters with which a stop that has begun goes on, or another one begins."""
        begun = [prefix[at:] for at in range(len(prefix) + 1)]
        found = {
            stop[len(part)] for stop in self.ends for part in begun if stop.startswith(part) and len(stop) > len(part)
        }
        return sorted(found)

    def target(self, text: str) -> str:
        """Return the longest end of `text` that is a stop or begins one."""
        tails = (text[at:] for at in range(len(text) + 1))
        return next(tail for tail in tails if tail in self.ends or tail in self.prefixes)
