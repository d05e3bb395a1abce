"""Builds the automaton of all text before the first of some stops (Aho-Corasick).

Each state is the beginning of a stop that has just been read. Rules: text is cut at the stop that is complete first;
of several that are complete at once, at the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unrender.cache import kept


@dataclass(frozen=True, slots=True)
class State:
    """One state of the automaton: where each next character leads.

    `finishing` maps a character to the stop that it completes, `onward` to another state. A character in `blocked`
    would complete a stop after which nothing may follow. Every other character leads back to the start.
    """

    prefix: str
    finishing: tuple[tuple[str, str], ...]
    onward: tuple[tuple[str, str], ...]
    blocked: str


@kept(lambda found: 300 * len(found))
def states(stops: tuple[str, ...], alive: tuple[str, ...]) -> tuple[State, ...]:
    """Return the states of the text before the first of `stops`, the start first.

    `alive` are the stops after which something may follow. Time and states are linear in the characters of the stops.
    """
    ends, live = frozenset(stops), frozenset(alive)
    moves = _moves(_first(ends))
    found: dict[str, State] = {}
    queue = [""]
    for prefix in queue:
        if prefix not in found:
            found[prefix] = _state(prefix, moves[prefix], ends, live)
            queue.extend(target for _, target in found[prefix].onward)
    return tuple(found.values())


def _state(prefix: str, moves: Mapping[str, str], ends: frozenset[str], live: frozenset[str]) -> State:
    ordered = sorted(moves.items())
    return State(
        prefix,
        finishing=tuple((character, target) for character, target in ordered if target in live),
        onward=tuple((character, target) for character, target in ordered if target not in ends),
        blocked="".join(character for character, target in ordered if target in ends - live),
    )


def _first(ends: frozenset[str]) -> list[str]:
    """Return the stops that are complete before any other one that they hold."""
    lengths = sorted({len(stop) for stop in ends})

    def holds_another(stop: str) -> bool:
        inside = len(stop) - 1
        return any(
            stop[at : at + length] in ends
            for length in lengths
            for at in range(inside - length + 1)
            if length <= inside
        )

    return sorted(stop for stop in ends if not holds_another(stop))


def _moves(stops: list[str]) -> dict[str, dict[str, str]]:
    """Return, for each beginning of a stop, the characters that lead to another one or complete a stop."""
    children: dict[str, dict[str, str]] = {"": {}}
    for stop in stops:
        for at, character in enumerate(stop):
            children.setdefault(stop[:at], {})[character] = stop[: at + 1]
    whole = frozenset(stops)
    moves = {"": children[""]}
    fails_to = dict.fromkeys(children[""].values(), "")
    queue = list(children[""].values())
    for prefix in queue:
        fallback = moves.get(fails_to[prefix], {})
        own = children.get(prefix, {})
        for character, target in own.items():
            fails_to[target] = fallback.get(character, "")
        queue.extend(own.values())
        if prefix not in whole:
            moves[prefix] = {**fallback, **own}
    return moves
