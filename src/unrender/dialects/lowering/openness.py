"""Finds which nodes may be empty, and which may end in text that only the next node will stop.

Strategy: both are least fixed points over the rules; a rule is looked at again only when one that it refers to has
changed, so that long chains of rules cost no more than their length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from unrender import nodes
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Repeat, Sequence, Until

Stops = tuple[str, ...]
_NONE: frozenset[Stops] = frozenset()


class Openness:
    """Which of some rules may be empty, and how each may end; `add` includes another rule."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._empty: set[str] = set()
        self._endings: dict[str, frozenset[Stops]] = {}
        self._known: dict[int, tuple[Node, frozenset[Stops]]] = {}
        users = users_of(rules)
        settle(rules, users, self._becomes_empty)
        settle(rules, users, self._ends_in_more)

    def _becomes_empty(self, name: str, node: Node) -> bool:
        if name in self._empty or not self.nullable(node):
            return False
        self._empty.add(name)
        return True

    def _ends_in_more(self, name: str, node: Node) -> bool:
        found = self._unsettled(node)
        if found == self._endings.get(name, _NONE):
            return False
        self._endings[name] = found
        return True

    def add(self, name: str, node: Node) -> None:
        """Include a rule that refers only to included ones and to itself."""
        if self.nullable(node):
            self._empty.add(name)
        self._endings[name] = self._unsettled(node)

    def nullable(self, node: Node) -> bool:
        """Return whether `node` generates the empty text; text up to a stop does not count as empty."""
        match node:
            case Ref(name):
                return name in self._empty
            case Literal(text) | nodes.Layout(text):
                return text == ""
            case Chars(minimum=0) | Optional() | nodes.Cut() | nodes.Mark() | nodes.Tolerated() | nodes.End():
                return True
            case nodes.Peek() | nodes.Negate():
                return True
            case Repeat(inner, low, _, _):
                return low == 0 or self.nullable(inner)
            case Sequence(parts):
                return all(map(self.nullable, parts))
            case Choice(options):
                return any(map(self.nullable, generated(options)))
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.nullable(inner)
        return False

    def endings(self, node: Node) -> frozenset[Stops]:
        """Return the stops of each free text that `node` may end in."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._find(node, self.endings))
        return known[1]

    def _unsettled(self, node: Node) -> frozenset[Stops]:
        """Return the endings while those of the rules may still grow, so that none is kept."""
        return self._find(node, self._unsettled)

    def _find(self, node: Node, below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        match node:
            case Literal() | Chars():
                return _NONE
            case Ref(name):
                return self._endings.get(name, _NONE)
            case Until(stops):
                return frozenset((stops,))
            case nodes.Tag(_, inner) | nodes.Atomic(inner) | Optional(inner) | Repeat(inner):
                return below(inner)
            case Sequence(parts):
                return self._find_last(parts, below)
            case Choice(options):
                return _NONE.union(*map(below, generated(options)))
        return _NONE

    def _find_last(self, parts: tuple[Node, ...], below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        found = _NONE
        for part in reversed(parts):
            found |= below(part)
            if not self.nullable(part) and not isinstance(part, Until):
                break
        return found


def generated(options: tuple[Node, ...]) -> list[Node]:
    """Return the options that are also generated, not only read."""
    return [option for option in options if not isinstance(option, nodes.Tolerated)]


def recursive_rules(rules: Mapping[str, Node]) -> frozenset[str]:
    """Return the recursive rules, and the rules that lie between two of them.

    A rule is recursive if it refers to itself, directly or through other rules.
    """
    below = {name: {other for other in nodes.references(node) if other in rules} for name, node in rules.items()}
    above: dict[str, set[str]] = {name: set() for name in rules}
    for name, others in below.items():
        for other in others:
            above[other].add(name)
    return frozenset(rules) - _loose(below, above) - _loose(above, below)


def _loose(edges: Mapping[str, set[str]], back: Mapping[str, set[str]]) -> set[str]:
    """Return the names from which no endless path leads along `edges`."""
    left = {name: len(others) for name, others in edges.items()}
    queue = [name for name, count in left.items() if not count]
    for name in queue:
        for other in back[name]:
            left[other] -= 1
            if not left[other]:
                queue.append(other)
    return set(queue)


def users_of(rules: Mapping[str, Node]) -> dict[str, list[str]]:
    """Return the rules that refer to each rule."""
    users: dict[str, list[str]] = {}
    for name, node in rules.items():
        for below in dict.fromkeys(nodes.references(node)):
            users.setdefault(below, []).append(name)
    return users


def settle(rules: Mapping[str, Node], users: Mapping[str, list[str]], changed: Callable[[str, Node], bool]) -> None:
    """Call `changed` for every rule, and again for the users of each rule that changed, until none does.

    A rule comes after the rules that it refers to, so a chain of rules is settled in one round.
    """
    order = _leaves_first(rules, users)
    waiting = set(order)
    while waiting:
        for name in order:
            if name in waiting:
                waiting.discard(name)
                if changed(name, rules[name]):
                    waiting.update(users.get(name, ()))


def _leaves_first(rules: Mapping[str, Node], users: Mapping[str, list[str]]) -> list[str]:
    """Return the rules, each after those that it refers to; those of a circle in any order."""
    order: dict[str, None] = {}
    seen: set[str] = set()
    for root in rules:
        path = [] if root in seen else [(root, iter(users.get(root, ())))]
        seen.add(root)
        while path:
            name, above = path[-1]
            following = next((user for user in above if user not in seen), None)
            if following is None:
                order[name] = None
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(users.get(following, ()))))
    return list(reversed(order))
