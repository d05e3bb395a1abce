"""Finds how a node may begin, and how it may go on at places where it might also have ended.

Strategy: least fixed points over the rules, as in `openness`. A text is told apart from others by its first literal;
free text, which may be anything, by its stops.

Rules: a node with more than `MOST_WAYS` beginnings is not looked into, and clashes with nothing; nor are more than
`MOST_COMPARED` compared. `unsure` says that either was met.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from unrender import nodes
from unrender.dialects.lowering.flattening import flat
from unrender.dialects.lowering.openness import Openness, generated, settle, users_of
from unrender.dialects.lowering.stops import Rest
from unrender.limits import MOST_COMPARED, MOST_WAYS
from unrender.nodes import Choice, Literal, Node, Optional, Ref, Repeat, Sequence, Until


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
        settle(rules, users, self._begins_in_more)
        settle(rules, users, self._goes_on_in_more)

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
        free = any(isinstance(head, Until) for heads in every for head in heads)
        for heads in every:
            for text, found in _by_text(heads).items():
                by_text.setdefault(text, []).append(found)
        if (free and len(every) > 1) or any(b.startswith(a) for a, b in pairwise(sorted(by_text)) if a):
            return True
        return any(self._part_ways(one, set().union(*before), DEPTH) for before, one in _each_after(by_text.values()))

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
        """Return whether what follows the same literal may be confused; what is more than `DEPTH` literals on is not known."""
        if others <= some:
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


def _each_after(groups: Iterable[list[set[Head]]]) -> Iterator[tuple[list[set[Head]], set[Head]]]:
    """Yield each set of a group with those before it."""
    for group in groups:
        yield from ((group[:at], group[at]) for at in range(1, len(group)))


def _longer(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether one of `others` begins with one of `some`, and goes on."""
    texts = sorted(others)
    return any(_goes_on(one, texts) for one in some)


def _goes_on(text: str, texts: list[str]) -> bool:
    """Return whether one of the sorted `texts` begins with `text`, and is longer."""
    at = bisect_right(texts, text)
    return at < len(texts) and texts[at].startswith(text)


def _within(rule: str, head: Head | Until) -> Head | Until:
    """Return `head` as it is seen from outside of `rule`."""
    return head if isinstance(head, Until) or isinstance(head.origin, str) else Head(head.text, rule)


def _union(found: Iterable[Heads]) -> Heads:
    heads = _NONE.union(*found)
    return _MANY if len(heads) > MOST_WAYS or not _MANY.isdisjoint(heads) else heads
