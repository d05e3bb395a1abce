"""PEG → context-free rules: what the dialects can say, and nothing that they cannot.

Strategy: roles, cuts and tolerances fall away. "All text up to a stop" is no context-free operator, so each `Until` is
joined with what follows it and becomes one `Stopped`: text up to the first stop, the stop itself, and the continuation
that this stop selects. Where an `Until` ends its rule, the continuation is carried into the rule (one copy for each),
so that it always meets its stop.

Rules: the result is exact: a text that the PEG would cut at an earlier stop is not generated. A lookahead that cannot
be decided from the literals behind it is refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from unrender.errors import GrammarError
from unrender.grammar import nodes
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
_END = nodes.End()
Rest = tuple[Node, ...]
Enough = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Text up to the first of `stops`, which are not part of it.

    `branches` says which of them may follow, and the rule behind each; the text that would be cut at any other stop is
    no part of the language. `at_end`: the text may also run to the end of the output, without any stop.
    """

    stops: tuple[str, ...]
    branches: tuple[tuple[str, Ref], ...]
    at_end: bool

    def longer(self, stop: str) -> tuple[str, ...]:
        """Return the stops that end with `stop`, and are met instead of it where they stand."""
        return tuple(other for other in self.stops if other != stop and other.endswith(stop))


@dataclass(frozen=True, slots=True)
class Lowered:
    """Context-free rules, all of them reachable from `root`; `Stopped` stands only at the top of a rule.

    Other rules are made of `Literal`, `Chars`, `Sequence`, `Choice`, `Optional`, `Repeat` (without separator), `Ref`
    and `JsonValue`.
    """

    root: str
    rules: Mapping[str, Node | Stopped]


def lower(grammar: Grammar) -> Lowered:
    """Return the context-free form of a grammar that `expand` has freed of calls.

    Raises `GrammarError` for a lookahead that no context-free rule can say, and for a rule that is not defined.
    """
    lowering = _Lowering(grammar.rules)
    lowering.find_open_rules()
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


@dataclass(slots=True)
class _Lowering:
    source: Mapping[str, Node]
    table: dict[str, Node | Stopped] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)
    rests: dict[Rest, Ref] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    texts: dict[Rest, Ref] = field(default_factory=dict)
    open_rules: set[str] = field(default_factory=set)
    """Rules that may end in text that only what follows them will stop."""
    pending: list[tuple[str, Node]] = field(default_factory=list)
    """Rules that are named, but not written yet: they wait, so that long chains of rules need no deep recursion."""
    loops: dict[Node, Node] = field(default_factory=dict)
    looped: dict[str, Node] = field(default_factory=dict)

    def find_open_rules(self) -> None:
        """Fill `open_rules`, from the rules that need no other one on."""
        count = -1
        while count != len(self.open_rules):
            count = len(self.open_rules)
            self.open_rules |= {name for name, node in self.source.items() if self.ends_open(node)}

    def finish(self) -> None:
        """Write the rules that are pending."""
        while self.pending:
            name, node = self.pending.pop()
            self.table[name] = self.closed(node)

    def rule(self, name: str) -> Node:
        found = self.looped.get(name) or self.source.get(name)
        if found is None:
            raise GrammarError(f"rule {name!r} is not defined")
        return found

    def rest(self, parts: Rest) -> Ref:
        """Return the rule of `parts`, one after the other, which run to the end of the output if they end open."""
        known = self.rests.get(parts)
        if known is None:
            hint = "root" if not self.rests else parts[0].rule if parts and isinstance(parts[0], Ref) else "rest"
            name = self.rules.reserve(hint)
            known = self.rests[parts] = Ref(name)
            self.table[name] = self.joined(parts)
        return known

    def joined(self, parts: Rest) -> Node:
        """Return `parts` in sequence."""
        done: list[Node] = []
        for at, part in enumerate(parts):
            if self.ends_open(part):
                done.append(self.continued(part, parts[at + 1 :]))
                break
            done.append(self.closed(part))
        return _sequence(done)

    def continued(self, node: Node, rest: Rest) -> Node:
        """Return `node`, which may end in text without a stop, together with `rest`, which brings the stop."""
        match node:
            case Until(stops):
                return self.text(stops, rest)
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.continued(inner, rest)
            case Sequence(parts):
                return self.joined((*parts, *rest))
            case Choice(options):
                return self.factored([(option, *rest) for option in _generated(options)])
            case Optional(inner):
                return self.factored([(inner, *rest), rest])
            case Repeat():
                return self.rest((self.loop(node), *rest))
            case Ref(name):
                return self.rest((self.rule(name), *rest))
        raise GrammarError(f"{type(node).__name__} cannot stand before other text")

    def loop(self, node: Repeat) -> Node:
        """Return a repetition as recursion or, when it is bounded, written out."""
        again = () if node.separator is None else (node.separator,)
        if node.maximum is not None:
            return _unrolled(node, again)
        if node not in self.loops:
            name = f"loop {len(self.loops)}"
            self.looped[name] = Sequence((node.node, Optional(Sequence((*again, Ref(name))))))
            least = Sequence((*((node.node, *again) * (node.minimum - 1)), Ref(name)))
            self.loops[node] = least if node.minimum else Optional(Ref(name))
        return self.loops[node]

    def text(self, stops: tuple[str, ...], rest: Rest) -> Ref:
        """Join `Until(stops)` with `rest`."""
        key = (Until(stops), *rest)
        if key not in self.texts:
            self.texts[key] = Ref(self.rules.reserve("text"))
            self.table[self.texts[key].rule] = self.stopped(stops, rest)
        return self.texts[key]

    def stopped(self, stops: tuple[str, ...], rest: Rest) -> Stopped:
        """Return text up to one of `stops`; each way in which `rest` begins belongs to one of them."""
        longest = max(map(len, stops), default=1)
        branches: dict[str, list[Rest]] = {}
        at_end = False

        def enough(text: str) -> bool:
            return len(text) > 2 * longest or any(stop in text for stop in stops)

        for lead in self.leads(rest, "", enough):
            if lead.rest == (_END,) and not lead.text:
                at_end = True
                continue
            stop = _first_stop(lead.text, stops)
            if not stop:
                raise GrammarError(f"text up to {stops} cannot be told from what follows: {lead.rest[:1]!r:.120}")
            after = lead.text[len(stop) :]
            branches.setdefault(stop, []).append((Literal(after), *lead.rest) if after else lead.rest)
        merged = {stop: self.branch(options) for stop, options in branches.items()}
        return Stopped(tuple(dict.fromkeys((*stops, *merged))), tuple(merged.items()), at_end)

    def branch(self, options: list[Rest]) -> Ref:
        node = self.factored(options)
        if isinstance(node, Ref):
            return node
        name = self.rules.reserve("branch")
        self.table[name] = node
        return Ref(name)

    def factored(self, options: list[Rest]) -> Node:
        """Return a choice in which no two options begin with the same literal character.

        A lexer that prefers the longest literal would lose the shorter option otherwise; beside free text, which is longer
        than any literal, the literals stay whole.
        """
        options = list(dict.fromkeys(options))
        leads = [lead for option in options for lead in self.leads(option, "", bool)]
        if any(not lead.text.strip(nodes.MARKS) and lead.rest != (_END,) for lead in leads):
            return _choice(list(dict.fromkeys(self.rest(_behind(lead, 0)) for lead in leads)))
        groups: dict[str, list[_Lead]] = {}
        for lead in leads:
            groups.setdefault(lead.text[:1], []).append(lead)
        return _choice([self.factor(group) for group in groups.values()])

    def factor(self, leads: list[_Lead]) -> Node:
        """Return a choice of leads that begin with the same character."""
        common = _common_prefix([lead.text for lead in leads])
        rests = [_behind(lead, len(common)) for lead in leads]
        if len(rests) == 1 or not common:
            return self.rest((Literal(common), *rests[0]) if common else rests[0])
        return _sequence([Literal(common), self.factored(rests)])

    def leads(self, rest: Rest, text: str, enough: Enough, seen: frozenset[str] = frozenset()) -> list[_Lead]:
        """Return the ways in which `text` and `rest` behind it begin: as much literal text as is `enough`, if it is there.

        `seen` are the rules that were entered without any text in between.
        """
        if enough(text):
            return [_Lead(text, rest)]
        if not rest:
            return [_Lead(text, (_END,))]
        head, tail = rest[0], rest[1:]
        match head:
            case Literal(more) | nodes.Layout(more) | nodes.Mark(more):
                return self.leads(tail, text + more, enough, frozenset() if more else seen)
            case nodes.Tag(_, inner) | nodes.Atomic(inner):
                return self.leads((inner, *tail), text, enough, seen)
            case Sequence(parts):
                return self.leads((*parts, *tail), text, enough, seen)
            case Choice(options):
                return [lead for o in _generated(options) for lead in self.leads((o, *tail), text, enough, seen)]
            case nodes.Cut() | nodes.Tolerated():
                return self.leads(tail, text, enough, seen)
            case Optional(inner):
                taken = self.leads((inner, *tail), text, enough, seen)
                return [*taken, *self.leads(tail, text, enough, seen)]
            case Ref(name) if name not in seen and not isinstance(self.rule(name), JsonValue):
                return self.leads((self.rule(name), *tail), text, enough, seen | {name})
            case nodes.End():
                return [_Lead(text, (_END,))]
            case nodes.Peek(Literal(next_text)):
                return [
                    lead for lead in self.look(tail, text, next_text, enough) if lead.text.startswith(text + next_text)
                ]
            case nodes.Negate(Literal(next_text)):
                found = self.look(tail, text, next_text, enough)
                return [lead for lead in found if not lead.text.startswith(text + next_text)]
            case Repeat():
                return self.repeat_leads(head, tail, text, enough, seen)
        return [_Lead(text, rest)]

    def look(self, rest: Rest, text: str, ahead: str, enough: Enough) -> list[_Lead]:
        """Return leads that are long enough to tell whether they go on with `ahead`."""
        least = len(text) + len(ahead)
        return self.leads(rest, text, lambda found: len(found) >= least and enough(found))

    def repeat_leads(self, node: Repeat, tail: Rest, text: str, enough: Enough, seen: frozenset[str]) -> list[_Lead]:
        if node.maximum == 0:
            return self.leads(tail, text, enough, seen)
        less = None if node.maximum is None else node.maximum - 1
        again = node.node if node.separator is None else Sequence((node.separator, node.node))
        more = Repeat(again, max(node.minimum - 1, 0), less)
        leads = self.leads((node.node, more, *tail), text, enough, seen)
        return leads if node.minimum > 0 else [*leads, *self.leads(tail, text, enough, seen)]

    def ends_open(self, node: Node) -> bool:
        """Return whether `node` may end in text that only what follows it will stop."""
        match node:
            case Until():
                return True
            case nodes.Tag(_, inner) | nodes.Atomic(inner) | Optional(inner) | Repeat(inner):
                return self.ends_open(inner)
            case Sequence(parts):
                return self.sequence_ends_open(parts)
            case Choice(options):
                return any(self.ends_open(option) for option in _generated(options))
            case Ref(name):
                return name in self.open_rules or name in self.looped
        return False

    def sequence_ends_open(self, parts: Rest) -> bool:
        for part in reversed(parts):
            if self.ends_open(part):
                return True
            if not _nullable(part):
                return False
        return False

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
                return self.joined(parts)
            case Choice(options):
                return _choice([self.closed(option) for option in _generated(options)])
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
            self.names[name] = self.rules.reserve(name)
            self.pending.append((self.names[name], self.rule(name)))
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


@dataclass(frozen=True, slots=True)
class _Lead:
    """One way in which a continuation begins: literal text, then `rest`."""

    text: str
    rest: Rest


def _common_prefix(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    return first[: next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _behind(lead: _Lead, length: int) -> Rest:
    """Return what is left of a lead behind its first `length` characters."""
    text = lead.text[length:]
    return (Literal(text), *lead.rest) if text else lead.rest


def _first_stop(text: str, stops: tuple[str, ...]) -> str:
    """Return `text` up to the end of the stop that is complete first in it; all of it when it holds none."""
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    return text[: min(ends, default=len(text))]


def _unrolled(node: Repeat, again: Rest) -> Node:
    result: Node = EMPTY
    for count in range(node.maximum or 0, 0, -1):
        step = Sequence((*(() if count == 1 else again), node.node, result))
        result = step if count <= node.minimum else Optional(step)
    return result


def _generated(options: tuple[Node, ...]) -> list[Node]:
    return [option for option in options if not isinstance(option, nodes.Tolerated)]


def _at_least_once(node: Node) -> TypeGuard[Repeat | Chars]:
    return isinstance(node, Repeat | Chars) and node.minimum == 1


def _nullable(node: Node) -> bool:
    match node:
        case Literal(text) | nodes.Layout(text):
            return text == ""
        case Chars(minimum=low) | Repeat(minimum=low):
            return low == 0
        case Optional() | nodes.Cut() | nodes.Mark() | nodes.Tolerated() | nodes.End() | nodes.Peek() | nodes.Negate():
            return True
        case Sequence(parts):
            return all(map(_nullable, parts))
        case Choice(options):
            return any(map(_nullable, _generated(options)))
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            return _nullable(inner)
    return False


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
