"""PEG → context-free rules: what the dialects can say, and nothing that they cannot.

Strategy: roles, cuts and tolerances fall away. "All text up to a stop" is no context-free operator, so each `Until` is
joined with what follows it and becomes one `Stopped`: text up to the first stop, the stop itself, and the continuation
that this stop selects. Where an `Until` ends its rule, the continuation is carried into the rule, but no further than to
the literal that surely stops it: so a call is one rule, whatever may follow it.

Rules: the result is exact: a text that the PEG would cut at an earlier stop is not generated. A lookahead that cannot
be decided from the literals behind it is refused by name, never dropped. Rules are linear in the source's rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from unrender.emit.leads import Beginnings, Group
from unrender.emit.openness import Openness, generated, recursive_rules
from unrender.emit.stops import Place, Places, Rest
from unrender.errors import GrammarError
from unrender.grammar import nodes
from unrender.grammar.budget import STANDARD
from unrender.grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonValue,
    Literal,
    Node,
    Optional,
    Ref,
    Repeat,
    Sequence,
    Until,
)
from unrender.grammar.rules import Rules

EMPTY = Literal("")


@dataclass(frozen=True, slots=True)
class Stopped:
    """Text up to the first of `stops`, which are not part of it.

    `branches` says which of them may follow, and the rule behind each; the text that would be cut at any other stop is
    no part of the language. `at_end`: the text may also run to the end of the output, without any stop.
    """

    stops: tuple[str, ...]
    branches: tuple[tuple[str, Ref], ...]
    at_end: bool


def longer_stops(stops: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return, for each stop that others end with, those others: they are met instead of it where they stand."""
    found: dict[str, tuple[str, ...]] = {}
    known = frozenset(stops)
    for other in stops:
        for at in range(1, len(other)):
            if other[at:] in known:
                found[other[at:]] = (*found.get(other[at:], ()), other)
    return found


@dataclass(frozen=True, slots=True)
class Lowered:
    """Context-free rules, all of them reachable from `root`; `Stopped` stands only at the top of a rule.

    Other rules are made of `Literal`, `Chars`, `Sequence`, `Choice`, `Optional`, `Repeat` (without separator), `Ref`
    and `JsonValue`.
    """

    root: str
    rules: Mapping[str, Node | Stopped]


def lower(grammar: Grammar, *, for_lexer: bool = True, steps: int = STANDARD.steps) -> Lowered:
    """Return the context-free form of a grammar that `expand` has freed of calls.

    `for_lexer`: beside each other stand only literals that a lexer tells apart, which prefers the longest.

    Raises `GrammarError` for a lookahead that no context-free rule can say, for a rule that is not defined, and for a
    grammar that takes more than so many steps.
    """
    lowering = _Lowering(grammar.rules, steps, for_lexer=for_lexer)
    root = lowering.rest((grammar.root,))
    lowering.finish()
    return Lowered(root.rule, reachable(root.rule, lowering.table))


def reachable(root: str, table: Mapping[str, Node | Stopped]) -> Mapping[str, Node | Stopped]:
    """Return the rules of `table` that `root` needs, itself first."""
    found: dict[str, Node | Stopped] = {}
    queue = [root]
    for name in queue:
        if name not in found:
            found[name] = table[name]
            queue.extend(references(table[name]))
    return found


def references(node: Node | Stopped) -> Iterator[str]:
    """Yield the names of the rules that `node` refers to, in the order of the text."""
    if isinstance(node, Stopped):
        yield from (branch.rule for _, branch in node.branches)
    else:
        yield from (below.rule for below in nodes.walk(node) if isinstance(below, Ref))


class _Lowering:
    """Rules are named when they are first referred to and written later, so that long chains need no deep recursion."""

    def __init__(self, source: Mapping[str, Node], steps: int, *, for_lexer: bool) -> None:
        self.source = source
        self.most = steps
        self.openness = Openness(source)
        self.places = Places(self.rule, self.step)
        self.beginnings = Beginnings(self.looked_into) if for_lexer else None
        self.recursive = recursive_rules(source) if for_lexer else frozenset()
        self.table: dict[str, Node | Stopped] = {}
        self.rules = Rules()
        self.rests: dict[Rest, Ref] = {}
        self.names: dict[str, str] = {}
        self.texts: dict[Rest, Ref] = {}
        self.branches: dict[tuple[int, str], Ref] = {}
        self.choices: dict[tuple[int, str], Place] = {}
        self.loops: dict[Node, Node] = {}
        self.looped: dict[str, Node] = {}
        self.pending: deque[tuple[str, Callable[[], Node | Stopped]]] = deque()
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.most:
            raise GrammarError(f"grammar: more than {self.most} steps to write it; offer fewer tools, or simpler ones")

    def finish(self) -> None:
        """Write the rules that are pending."""
        while self.pending:
            self.step()
            name, write = self.pending.popleft()
            self.table[name] = write()

    def later(self, hint: str, write: Callable[[], Node | Stopped]) -> Ref:
        """Return the name of a rule that will be written."""
        name = self.rules.reserve(hint)
        self.pending.append((name, write))
        return Ref(name)

    def rule(self, name: str) -> Node:
        found = self.looped.get(name) or self.source.get(name)
        if found is None:
            raise GrammarError(f"rule {name!r} is not defined")
        return found

    def looked_into(self, name: str) -> Node | None:
        """Return a rule that may be taken apart to see how it begins."""
        node = self.rule(name)
        return None if name in self.recursive or isinstance(node, JsonValue) else node

    def rest(self, parts: Rest) -> Ref:
        """Return the rule of `parts`, one after the other, which run to the end of the output if they end open."""
        known = self.rests.get(parts)
        if known is None:
            first = parts[0] if parts else EMPTY
            hint = "root" if not self.rests else first.rule if isinstance(first, Ref) else "rest"
            if len(parts) == 1 and self.rests and isinstance(first, Ref) and not self.openness.endings(first):
                known = self.named(first.rule)
            else:
                known = self.later(hint, lambda: self.joined(parts, self.chosen))
            self.rests[parts] = known
        return known

    def joined(self, parts: Rest, write: Callable[[Node], Node]) -> Node:
        """Return `parts` in sequence; what ends open is joined with as much behind it as surely stops it.

        `write` is for the other parts.
        """
        done: list[Node] = []
        flat = _flat(parts)
        at = 0
        while at < len(flat):
            endings = self.openness.endings(flat[at])
            end = at + 1 if not endings else _closed_at(endings, flat, at + 1)
            done.append(self.continued(flat[at], flat[at + 1 : end]) if endings else write(flat[at]))
            at = end
        return _sequence(done)

    def chosen(self, node: Node) -> Node:
        """Return a part of an answer that brings its own stops; options that a lexer would confuse are taken apart."""
        if isinstance(node, Choice) and self.beginnings is not None:
            options = [_flat((option,)) for option in generated(node.options)]
            if any(group.shared for group in self.beginnings.groups(options)):
                return self.factored(options)
        return self.closed(node)

    def continued(self, node: Node, rest: Rest) -> Node:
        """Return `node`, which may end in text without a stop, together with `rest`, which brings the stop."""
        match node:
            case Until(stops):
                return self.text(stops, rest)
            case Choice(options):
                return self.factored([_flat((option, *rest)) for option in generated(options)])
            case Optional(inner):
                return self.factored([_flat((inner, *rest)), rest])
            case Repeat():
                return self.rest(_flat((self.loop(node), *rest)))
            case Ref(name):
                return self.rest(_flat((self.rule(name), *rest)))
        raise GrammarError(f"{type(node).__name__} cannot stand before other text")

    def loop(self, node: Repeat) -> Node:
        """Return a repetition as rules that refer to the next round."""
        if node not in self.loops:
            again = () if node.separator is None else (node.separator,)
            name = f"loop {len(self.loops)}"
            endless = node.maximum is None
            rounds = max(node.minimum, 1) if node.maximum is None else node.maximum
            for count in range(rounds, 0, -1):
                more = Sequence((*again, Ref(f"{name} {min(count + 1, rounds)}")))
                tail = more if count < node.minimum else Optional(more)
                last = count == rounds and not endless
                self.looped[f"{name} {count}"] = node.node if last else Sequence((node.node, tail))
                self.openness.add(f"{name} {count}", self.looped[f"{name} {count}"])
            first = Ref(f"{name} 1")
            self.loops[node] = EMPTY if node.maximum == 0 else first if node.minimum else Optional(first)
        return self.loops[node]

    def text(self, stops: tuple[str, ...], rest: Rest) -> Ref:
        """Join `Until(stops)` with `rest`."""
        key = (Until(stops), *rest)
        if key not in self.texts:
            self.texts[key] = self.later("text", lambda: self.stopped(stops, rest))
        return self.texts[key]

    def stopped(self, stops: tuple[str, ...], rest: Rest) -> Stopped:
        """Return text up to one of `stops`; each way in which `rest` begins belongs to one of them."""
        place = self.places.place(stops, rest)
        branches = tuple((stop, self.branch(place, stop)) for stop in place.found)
        return Stopped(tuple(dict.fromkeys((*stops, *place.found))), branches, place.at_end)

    def branch(self, place: Place, stop: str) -> Ref:
        """Return the rule of what may follow `stop`."""
        place = self.first_choice(place, stop)
        own, below = place.behind(stop)
        if len(own) == 1 and not below:
            return self.rest(_flat(own[0]))
        key = (id(place), stop)
        if key not in self.branches:
            self.branches[key] = self.later("branch", lambda: self.branched(place, stop))
        return self.branches[key]

    def first_choice(self, place: Place, stop: str) -> Place:
        """Return the place to which only one way leads from `place`, and from which there are several, or an end."""
        passed: list[Place] = []
        while (id(place), stop) not in self.choices:
            passed.append(place)
            own, below = place.behind(stop)
            if own or len(below) != 1:
                self.choices[id(place), stop] = place
            else:
                place = below[0]
        found = self.choices[id(place), stop]
        self.choices.update(((id(other), stop), found) for other in passed)
        return found

    def branched(self, place: Place, stop: str) -> Node:
        own, below = place.behind(stop)
        flat = [_flat(option) for option in own]
        if not below:
            return self.factored(flat)
        return _choice([*map(self.rest, flat), *(self.branch(other, stop) for other in below)])

    def factored(self, options: list[Rest]) -> Node:
        """Return a choice of `options`, taken apart where they begin alike."""
        options = list(dict.fromkeys(options))
        if self.beginnings is None:
            return _choice([self.rest(option) for option in options])
        groups = self.beginnings.groups(options)
        return _choice(list(dict.fromkeys(map(self.group, groups))))

    def group(self, group: Group) -> Node:
        self.step()
        if not group.shared:
            return self.rest(_flat(group.options[0]))
        return _sequence([Literal(group.shared), self.factored([_flat(option) for option in group.options])])

    def closed(self, node: Node) -> Node:
        """Return a node that brings its own stops."""
        match node:
            case Chars(maximum=0):
                return EMPTY
            case Literal() | Chars() | JsonValue():
                return node
            case nodes.Layout(text) | nodes.Mark(text):
                return Literal(text)
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.closed(inner)
            case Sequence(parts):
                return self.joined(parts, self.closed)
            case Choice(options):
                return _choice([self.closed(option) for option in generated(options)])
            case Optional(inner):
                found = self.closed(inner)
                return replace(found, minimum=0) if _at_least_once(found) else Optional(found)
            case Repeat(inner, low, high, separator):
                return self.repeated(self.closed(inner), low, high, separator)
            case Ref(name):
                return self.named(name)
            case nodes.Tolerated() | nodes.Cut() | nodes.End():
                return EMPTY
        raise GrammarError(f"{type(node).__name__} cannot be written as a context-free rule: {node!r:.120}")

    def named(self, name: str) -> Ref:
        if name not in self.names:
            node = self.rule(name)
            self.names[name] = self.later(name, lambda: self.closed(node)).rule
        return Ref(self.names[name])

    def repeated(self, node: Node, low: int, high: int | None, separator: Node | None) -> Node:
        if node == EMPTY or high == 0:
            return EMPTY
        if separator is None:
            return (
                replace(node, minimum=0) if (low, high) == (0, 1) and _at_least_once(node) else Repeat(node, low, high)
            )
        again = _sequence([self.closed(separator), node])
        more = self.repeated(again, max(low - 1, 0), None if high is None else high - 1, None)
        whole = _sequence([node, more])
        return whole if low > 0 else Optional(whole)


def _flat(parts: Rest) -> Rest:
    """Return `parts`, sequences and tags taken apart, neighbouring literals joined, what says nothing left out."""
    flat: list[Node] = []
    queue = list(reversed(parts))
    while queue:
        part = queue.pop()
        match part:
            case Sequence(inner):
                queue.extend(reversed(inner))
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                queue.append(inner)
            case nodes.Cut() | nodes.Tolerated() | nodes.End():
                continue
            case Literal(text) | nodes.Layout(text):
                if flat and isinstance(last := flat[-1], Literal):
                    flat[-1] = Literal(last.text + text)
                elif text:
                    flat.append(Literal(text))
            case _:
                flat.append(part)
    return tuple(flat)


def _closed_at(endings: Collection[tuple[str, ...]], parts: Rest, start: int) -> int:
    """Return the end of the first literal from `start` on in which one stop of each of `endings` is complete."""
    for at in range(start, len(parts)):
        part = parts[at]
        if isinstance(part, Literal) and all(any(stop in part.text for stop in stops) for stops in endings):
            return at + 1
    return len(parts)


def _at_least_once(node: Node) -> TypeGuard[Repeat | Chars]:
    return isinstance(node, Repeat | Chars) and node.minimum == 1


def _sequence(parts: list[Node]) -> Node:
    """Return `parts` in sequence, nested ones and neighbouring literals joined."""
    merged: list[Node] = []
    for item in (item for part in parts for item in (part.parts if isinstance(part, Sequence) else (part,))):
        if isinstance(item, Literal) and merged and isinstance(merged[-1], Literal):
            merged[-1] = Literal(merged[-1].text + item.text)
        elif item != EMPTY:
            merged.append(item)
    if not merged:
        return EMPTY
    return merged[0] if len(merged) == 1 else Sequence(tuple(merged))


def _choice(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Choice(tuple(options))
