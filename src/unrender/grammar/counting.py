"""Restricts a grammar made by hand to answers with a given number of calls.

Strategy: each node is written once for each count that is asked of it. Where only one part of a sequence can hold a call,
that part takes the count and the others stay as they are, so that a usual grammar does not grow. What cannot match any
more is taken out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from unrender import nodes
from unrender.errors import GrammarError
from unrender.limits import MOST_ROUNDS
from unrender.nodes import EMPTY, Choice, Grammar, Node, Optional, Ref, Repeat, Role, Rules, Sequence, Tag

NEVER = Choice(())
"""Matches nothing."""


class CallCount(StrEnum):
    """How many calls an answer shall have."""

    ANY = "any"
    NONE = "none"
    ONE = "one"
    AT_MOST_ONE = "at-most-one"
    SOME = "some"
    """One or more."""

    @property
    def allows_none(self) -> bool:
        return self in (CallCount.ANY, CallCount.NONE, CallCount.AT_MOST_ONE)


_SHARES = {
    CallCount.NONE: ((CallCount.NONE, CallCount.NONE),),
    CallCount.ONE: ((CallCount.ONE, CallCount.NONE), (CallCount.NONE, CallCount.ONE)),
    CallCount.AT_MOST_ONE: ((CallCount.ONE, CallCount.NONE), (CallCount.NONE, CallCount.AT_MOST_ONE)),
    CallCount.SOME: ((CallCount.SOME, CallCount.ANY), (CallCount.NONE, CallCount.SOME)),
}
"""How a count is shared between a part and what follows it."""


def counted(grammar: Grammar, count: CallCount) -> Grammar:
    """Return the grammar of the answers with that many calls.

    Raises `GrammarError` when there is no such answer, and for repetitions of calls that are too long to count.

    >>> from unrender.nodes import Literal
    >>> called = Tag(Role.CALL, Literal("<call>"))
    >>> counted(Grammar(Repeat(called)), CallCount.SOME).root
    Repeat(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='<call>')), minimum=1, maximum=None, separator=None)
    >>> counted(Grammar(Choice((called, Literal("Hi")))), CallCount.NONE).root
    Literal(text='Hi')
    """
    if count is CallCount.ANY:
        return grammar
    counter = _Counter(grammar.rules)
    found = _without_impossible(Grammar(counter.node(grammar.root, count), counter.made.table))
    if found is None:
        raise GrammarError(f"tool_choice: the grammar has no answer with this number of calls: {count.value}")
    return found


class _Counter:
    def __init__(self, rules: Mapping[str, Node]) -> None:
        self.rules = rules
        self.calling = _reaching_calls(rules)
        self.silent = _possible(rules, calls=False)
        self.made = Rules()
        self.made.merge(rules)
        self.copies: dict[tuple[str, CallCount], Ref] = {}

    def node(self, node: Node, count: CallCount) -> Node:
        if count is CallCount.ANY:
            return node
        if not _may_call(node, self.calling):
            return node if count.allows_none else NEVER
        match node:
            case Tag():
                return NEVER if count is CallCount.NONE else node
            case Ref(rule):
                return self.copy(rule, count)
            case Sequence(parts):
                return self.sequence(parts, count)
            case Choice(options):
                return Choice(tuple(self.node(option, count) for option in options))
            case Optional(inner):
                once = self.node(inner, count)
                return Optional(once) if count.allows_none else once
            case nodes.Atomic(inner):
                return nodes.Atomic(self.node(inner, count))
            case Repeat():
                return self.repeat(node, count)
        raise AssertionError(f"{type(node).__name__} holds no calls")

    def copy(self, rule: str, count: CallCount) -> Ref:
        key = (rule, count)
        if key not in self.copies:
            self.copies[key] = Ref(self.made.reserve(f"{rule}-{count.value}"))
            self.made.define(self.copies[key].rule, self.node(self.rules[rule], count))
        return self.copies[key]

    def sequence(self, parts: tuple[Node, ...], count: CallCount) -> Node:
        callers = [at for at, part in enumerate(parts) if _may_call(part, self.calling)]
        first = callers[0]
        before, part, rest = parts[:first], parts[first], parts[first + 1 :]
        if len(callers) == 1:
            return Sequence((*before, self.node(part, count), *rest))
        options = [
            Sequence((*before, self.node(part, own), self.node(Sequence(rest), others)))
            for own, others in _SHARES[count]
        ]
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def repeat(self, node: Repeat, count: CallCount) -> Node:
        low, high, inner = node.minimum, node.maximum, node.node
        if node.separator is not None and _may_call(node.separator, self.calling):
            raise GrammarError("tool_choice: calls in the separator of a repetition cannot be counted")
        if not _is_possible(inner, self.silent, calls=False):
            return self.calls(node, count)
        if count is CallCount.NONE:
            return replace(node, node=self.node(inner, count))
        if high is not None or low > 1:
            return self.node(_unrolled(node), count)
        between = () if node.separator is None else (node.separator,)
        own, others = _SHARES[count][0]
        silent = Repeat(Sequence((self.node(inner, CallCount.NONE), *between)))
        rounds = Sequence((silent, self.node(inner, own), Repeat(Sequence((*between, self.node(inner, others))))))
        if count is not CallCount.AT_MOST_ONE:
            return rounds
        return Choice((rounds, replace(node, node=self.node(inner, CallCount.NONE))))

    def calls(self, node: Repeat, count: CallCount) -> Node:
        """Return a repetition each of whose rounds has a call."""
        low, high = node.minimum, node.maximum
        if count is CallCount.SOME:
            return NEVER if high == 0 else replace(node, minimum=max(low, 1))
        none = EMPTY if low == 0 else NEVER
        one = NEVER if low > 1 or high == 0 else self.node(node.node, CallCount.ONE)
        options = {CallCount.NONE: (none,), CallCount.ONE: (one,), CallCount.AT_MOST_ONE: (one, none)}[count]
        return options[0] if len(options) == 1 else Choice(options)


def _unrolled(node: Repeat) -> Node:
    """Return the repetition with its rounds one by one, as far as they are bounded."""
    low, high = node.minimum, node.maximum
    rounds = low if high is None else high
    if rounds > MOST_ROUNDS:
        raise GrammarError(f"tool_choice: calls in more than {MOST_ROUNDS} rounds cannot be counted, found {rounds}")
    between = () if node.separator is None else (node.separator,)
    tail: Node = Repeat(Sequence((*between, node.node))) if high is None else EMPTY
    for at in range(rounds, 0, -1):
        this = Sequence((*(between if at > 1 else ()), node.node, tail))
        tail = this if at <= low else Optional(this)
    return tail


def _may_call(node: Node, calling: frozenset[str]) -> bool:
    """Return whether what `node` consumes may hold a call, where `calling` are the rules that may."""
    match node:
        case Tag(role=Role.CALL):
            return True
        case Ref(rule):
            return rule in calling
        case nodes.Peek() | nodes.Negate() | nodes.Tolerated():
            return False
    return any(_may_call(child, calling) for child in nodes.children(node))


def _reaching_calls(rules: Mapping[str, Node]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, node in rules.items() if _may_call(node, found))
        if more == found:
            return found
        found = more


def _possible(rules: Mapping[str, Node], *, calls: bool) -> frozenset[str]:
    """Return the rules that match some text, `calls` or not."""
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, node in rules.items() if _is_possible(node, found, calls=calls))
        if more == found:
            return found
        found = more


def _is_possible(node: Node, rules: frozenset[str], *, calls: bool = True) -> bool:
    match node:
        case Tag(role=Role.CALL) if not calls:
            return False
        case Tag(_, inner) | nodes.Atomic(inner):
            return _is_possible(inner, rules, calls=calls)
        case Ref(rule):
            return rule in rules
        case Sequence(parts):
            return all(_is_possible(part, rules, calls=calls) for part in parts)
        case Choice(options):
            return any(_is_possible(option, rules, calls=calls) for option in options)
        case Repeat(inner, low):
            return low == 0 or _is_possible(inner, rules, calls=calls)
    return True


def _without_impossible(grammar: Grammar) -> Grammar | None:
    """Return the grammar without options that match nothing; None when nothing is left."""
    possible = _possible(grammar.rules, calls=True)
    if not _is_possible(grammar.root, possible):
        return None

    def kept(node: Node) -> Node:
        match node:
            case Choice(options):
                able = tuple(option for option in options if _is_possible(option, possible))
                return able[0] if len(able) == 1 else Choice(able)
            case Optional(inner) | Repeat(inner, 0) if not _is_possible(inner, possible):
                return EMPTY
        return node

    rules = {name: nodes.rewrite(grammar.rules[name], kept) for name in grammar.rules if name in possible}
    root = nodes.rewrite(grammar.root, kept)
    needed = _needed(root, rules)
    return Grammar(root, {name: node for name, node in rules.items() if name in needed})


def _needed(root: Node, rules: Mapping[str, Node]) -> frozenset[str]:
    """Return the rules that `root` refers to, by way of others or not."""
    queue = nodes.references(root)
    found = set(queue)
    for name in queue:
        fresh = set(nodes.references(rules[name])) - found
        found |= fresh
        queue.extend(fresh)
    return frozenset(found)
