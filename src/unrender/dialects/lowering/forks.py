"""Finds how nodes may begin, how they may end, and where a lexer could confuse two ways to go on.

`Openness` says which nodes may be empty, and which may end in text that only the next node stops. `Forks` says how a node
may begin, and how it may go on at places where it might also have ended.

Strategy: all are least fixed points over the rules. A rule is looked at again only when one that it refers to has changed,
so long chains of rules cost no more than their length. A text is told apart from others by its first literal, and free
text, which may be anything, by its stops.

Rules: a node with more than `MOST_WAYS` beginnings is not looked into, and clashes with nothing; nor are more than
`MOST_COMPARED` beginnings compared. `unsure` says that either was met.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from unrender import nodes
from unrender.dialects.lowering.stops import Rest, Stops, flat
from unrender.limits import MOST_COMPARED, MOST_WAYS
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Repeat, Sequence, Until

_CLOSED: frozenset[Stops] = frozenset()


class Openness:
    """Which of some rules may be empty, and how each may end; `add` includes another rule."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._empty: set[str] = set()
        self._endings: dict[str, frozenset[Stops]] = {}
        self._known: dict[int, tuple[Node, frozenset[Stops]]] = {}
        users = users_of(rules)
        until_settled(rules, users, self._becomes_empty)
        until_settled(rules, users, self._ends_in_more)

    def _becomes_empty(self, name: str, node: Node) -> bool:
        if name in self._empty or not self.nullable(node):
            return False
        self._empty.add(name)
        return True

    def _ends_in_more(self, name: str, node: Node) -> bool:
        found = self._unsettled(node)
        if found == self._endings.get(name, _CLOSED):
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
        """Return the endings while those of the rules may still grow; so none of them is kept in `_known`."""
        return self._find(node, self._unsettled)

    def _find(self, node: Node, below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        match node:
            case Literal() | Chars():
                return _CLOSED
            case Ref(name):
                return self._endings.get(name, _CLOSED)
            case Until(stops):
                return frozenset((stops,))
            case nodes.Tag(_, inner) | nodes.Atomic(inner) | Optional(inner) | Repeat(inner):
                return below(inner)
            case Sequence(parts):
                return self._find_last(parts, below)
            case Choice(options):
                return _CLOSED.union(*map(below, generated(options)))
        return _CLOSED

    def _find_last(self, parts: tuple[Node, ...], below: Callable[[Node], frozenset[Stops]]) -> frozenset[Stops]:
        # `Until("</a>"), Optional("!")` may end in the free text, since the mark may be missing.
        found = _CLOSED
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
    # A rule on a circle has an endless path along its references and against them; so has a rule between two circles.
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
    return inverted({name: nodes.references(node) for name, node in rules.items()})


def inverted(below: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return, for each name, the names that it is below."""
    above: dict[str, list[str]] = {}
    for name, others in below.items():
        for other in dict.fromkeys(others):
            above.setdefault(other, []).append(name)
    return above


def until_settled(
    rules: Mapping[str, Node], users: Mapping[str, list[str]], changed: Callable[[str, Node], bool]
) -> None:
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


class Head(NamedTuple):
    """The first literal of a node; `origin` is the rule that holds it, or the number of what follows it."""

    text: str
    origin: int | str


Heads = frozenset[Head | Until]
"""The first literals of a node, and the free text that it may begin with."""
DEPTH = 3
"""Literals that are looked through to see where two ways part."""
_NONE: Heads = frozenset()
_MANY: Heads = frozenset((Head("", 0),))


class Forks:
    """How each of some rules begins and continues; `add` includes another rule."""

    def __init__(self, rules: Mapping[str, Node], openness: Openness) -> None:
        self.unsure: bool = False
        """Whether a question had no answer because there were too many beginnings."""
        self._openness = openness
        self._rules = dict(rules)
        self._continuations: dict[Head, Heads] = {}
        self._rests: list[Rest] = []
        self._numbers: dict[Rest, int] = {}
        self._heads: dict[str, Heads] = {}
        self._ends: dict[str, Heads] = {}
        self._compared = 0
        users = users_of(rules)
        until_settled(rules, users, self._begins_in_more)
        until_settled(rules, users, self._goes_on_in_more)

    def _begins_in_more(self, name: str, node: Node) -> bool:
        found = frozenset(_within(name, head) for head in self.heads(node))
        if found == self._heads.get(name, _NONE):
            return False
        self._heads[name] = found
        return True

    def _goes_on_in_more(self, name: str, node: Node) -> bool:
        found = self.ends(node)
        if found == self._ends.get(name, _NONE):
            return False
        self._ends[name] = found
        return True

    def add(self, name: str, node: Node) -> None:
        """Include a rule that refers only to included ones and to itself."""
        self._rules[name] = node
        while self._begins_in_more(name, node) or self._goes_on_in_more(name, node):
            continue

    def heads(self, node: Node) -> Heads:
        """Return how `node` may begin."""
        match node:
            case Literal() | nodes.Layout() | Sequence() | nodes.Tag() | nodes.Atomic():
                return self.first_of((node,))
            case Until():
                return frozenset((node,))
            case Optional(inner):
                return self.heads(inner)
            case Repeat(inner, _, _, separator):
                # A round is a lexeme of its own: it is not joined with the separator after it.
                again: Rest = () if separator is None else (Optional(Sequence((separator, inner))),)
                return self.first_of((inner, *again))
            case Choice(options):
                return _union(map(self.heads, generated(options)))
            case Ref(name):
                return self._heads.get(name, _NONE)
        return _NONE

    def first_of(self, parts: Rest) -> Heads:
        """Return how `parts`, one after the other, may begin."""
        found: list[Heads] = []
        plain = flat(parts)
        for at, part in enumerate(plain):
            if isinstance(part, Literal):
                found.append(frozenset((Head(part.text, self._number(plain[at + 1 :])),)) if part.text else _NONE)
            else:
                found.append(self.heads(part))
            if not self._openness.nullable(part):
                break
        return _union(found)

    def confused(self, options: Iterable[Node]) -> bool:
        """Return whether a lexer would confuse any of several nodes that are at one place."""
        by_text: dict[str, list[set[Head]]] = {}
        if self._compared > MOST_COMPARED:
            return False
        every = [self.heads(option) for option in options]
        self._compared += sum(map(len, every))
        self.unsure |= self._compared > MOST_COMPARED or (_MANY in every and len(every) > 1)
        # Free text may read on over any literal beside it, and `</a` is lost beside `</ab`.
        free = any(isinstance(head, Until) for heads in every for head in heads)
        for heads in every:
            for text, found in _by_text(heads).items():
                by_text.setdefault(text, []).append(found)
        if (free and len(every) > 1) or any(b.startswith(a) for a, b in pairwise(sorted(by_text)) if a):
            return True
        # Of `", "` in two options only one lexeme is made; what follows it then has to tell the two apart.
        return any(
            self._part_ways(group[at], set().union(*group[:at]), DEPTH)
            for group in by_text.values()
            for at in range(1, len(group))
        )

    def clash(self, some: Heads, others: Heads, depth: int = DEPTH) -> bool:
        """Return whether a lexer may confuse nodes with these heads.

        It does when a literal begins with another one, or is beside free text. The same literal in both is one lexeme,
        after which both ways are open; then what follows it must not clash.
        """
        if not some or not others:
            return False
        self._compared += len(some) + len(others)
        if _MANY in (some, others) or self._compared > MOST_COMPARED:
            self.unsure = True
            return False
        if any(isinstance(head, Until) for head in (*some, *others)):
            return True
        mine, theirs = _by_text(some), _by_text(others)
        if _longer(mine, theirs) or _longer(theirs, mine):
            return True
        return any(self._part_ways(mine[text], theirs[text], depth) for text in mine.keys() & theirs.keys())

    def _part_ways(self, some: set[Head], others: set[Head], depth: int) -> bool:
        """Return whether what follows the same literal may be confused; only `DEPTH` literals are looked through."""
        if others <= some:  # The same rules, or the same continuations: there is one way on, not two.
            return False
        mine, theirs = (_union(map(self._following, heads)) for heads in (some, others - some))
        return not mine or not theirs or depth == 0 or self.clash(mine, theirs, depth - 1)

    def _following(self, head: Head) -> Heads:
        """Return how what follows a literal may begin."""
        if head not in self._continuations:
            body = self.heads(self._rules[head.origin]) if isinstance(head.origin, str) else ()
            inner = [one for one in body if isinstance(one, Head) and one.text == head.text]
            numbers = [one.origin for one in (inner if isinstance(head.origin, str) else [head])]
            self._continuations[head] = _union(self.first_of(self._rests[at]) for at in numbers if isinstance(at, int))
        return self._continuations[head]

    def _number(self, rest: Rest) -> int:
        # Heads are hashed often, and a rest may be long: its number stands for it.
        if rest not in self._numbers:
            self._numbers[rest] = len(self._rests)
            self._rests.append(rest)
        return self._numbers[rest]

    def ends(self, node: Node) -> Heads:
        """Return how `node` may continue at places where it might also have ended."""
        match node:
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.ends(inner)
            case Optional(inner):
                return _union((self.heads(inner), self.ends(inner)))
            case Repeat(inner, _, high, separator):
                again = () if high == 1 else (separator, inner) if separator else (inner,)
                may_end = (self.heads(inner),) if node.minimum == 0 else ()
                return _union((self.first_of(again), self.ends(inner), *may_end))
            case Sequence(parts):
                return self._ends_of(parts)
            case Choice(options):
                found = [self.ends(option) for option in generated(options)]
                return _union((*found, self.heads(node)) if self._openness.nullable(node) else found)
            case Ref(name):
                return self._ends.get(name, _NONE)
        return _NONE

    def _ends_of(self, parts: tuple[Node, ...]) -> Heads:
        found: list[Heads] = []
        for part in reversed(parts):
            found.append(self.ends(part))
            if not self._openness.nullable(part):
                break
            found.append(self.heads(part))
        return _union(found)


def _by_text(heads: Heads) -> dict[str, set[Head]]:
    found: dict[str, set[Head]] = {}
    for head in heads:
        if isinstance(head, Head):
            found.setdefault(head.text, set()).add(head)
    return found


def _longer(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether one of `others` begins with one of `some`, and goes on."""
    texts = sorted(others)
    # What is longer than a text and begins with it sorts directly after it: `</a` before `</ab`.
    return any((at := bisect_right(texts, one)) < len(texts) and texts[at].startswith(one) for one in some)


def _within(rule: str, head: Head | Until) -> Head | Until:
    """Return `head` as it is seen from outside of `rule`."""
    return head if isinstance(head, Until) or isinstance(head.origin, str) else Head(head.text, rule)


def _union(found: Iterable[Heads]) -> Heads:
    heads = _NONE.union(*found)
    return _MANY if len(heads) > MOST_WAYS or not _MANY.isdisjoint(heads) else heads
