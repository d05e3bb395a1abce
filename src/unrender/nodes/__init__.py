"""Defines grammar nodes, which are PEG combinators as frozen data, and `Rules`, which collects named nodes.

Open this module first: it defines all node types, and functions to walk and rewrite nodes. `patterns` reads, writes and matches the regular
expressions of JSON Schema. `texts` builds nodes for string formats, excluded words and escaped characters.

A handwritten grammar is used for parsing and for generating dialects. If a node isn't parsed as it's generated, its docstring describes the
difference. For example, a `Layout` is generated as its text and parsed as any whitespace. The answer of a `Format` is a tree of other
nodes, which `answer` defines. Each node's docstring starts with its PEG form, in which `.` is any character. Rule: nodes are
immutable, and equal if their parts are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, TypeVar

from unrender.errors import GrammarError
from unrender.json_values import FrozenDict, JsonSchema, frozen
from unrender.signatures import checked

T = TypeVar("T")


class Role(StrEnum):
    """The role of a piece of output."""

    REASONING = "reasoning"
    CONTENT = "content"
    NAME = "name"
    ID = "id"
    ARGUMENT = "argument"
    KEY = "key"
    """The name of one argument."""
    VALUE = "value"
    """The value of one argument."""
    CALL = "call"
    """One complete call."""
    MARKER = "marker"
    LAYOUT = "layout"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Leaf:
    """Base class of nodes without child nodes."""


@dataclass(frozen=True, slots=True)
class Literal(Leaf):
    """`"text"`: exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Layout(Leaf):
    """Whitespace: generated as `text`, parsed as any whitespace."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars(Leaf):
    """`[a-z]{min,max}`: characters in `ranges`, whose ends are included. If `negated` is True, all other characters."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False
    minimum: int = 1
    maximum: int | None = 1


@dataclass(frozen=True, slots=True)
class Until(Leaf):
    """`(!stop .)*`: all text before the first of `stops`, which isn't consumed. Without `stops`, all remaining text."""

    stops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a b c`"""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """`a / b / c`: the first option that matches."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Optional:
    """`a?`"""

    node: Node


@dataclass(frozen=True, slots=True)
class Repeat:
    """`a{minimum,maximum}`: `a` repeatedly, with `separator` between repetitions. There's no limit if `maximum` is None."""

    node: Node
    minimum: int = 0
    maximum: int | None = None
    separator: Node | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a rule in `Grammar.rules`."""

    rule: str


@dataclass(frozen=True, slots=True)
class Peek:
    """`&a`: `a` must follow, but isn't consumed."""

    node: Node


@dataclass(frozen=True, slots=True)
class Negate:
    """`!a`: `a` must not follow."""

    node: Node


@dataclass(frozen=True, slots=True)
class End(Leaf):
    """`!.`: the end of the output."""


@dataclass(frozen=True, slots=True)
class Tag:
    """`a`: its text gets the given role in the message."""

    role: Role
    node: Node


@dataclass(frozen=True, slots=True)
class Atomic:
    """`a`: its text is buffered until all of `a` has matched."""

    node: Node


@dataclass(frozen=True, slots=True)
class Cut(Leaf):
    """A cut: the text matched so far becomes final, so the parser can't backtrack into it."""


MARKS = "".join(map(chr, range(0xFDD0, 0xFDF0)))
"""Unicode noncharacters, which don't occur in text."""


@dataclass(frozen=True, slots=True)
class Mark(Leaf):
    """Matches no text. The sampler inserts `text`, one of `MARKS`, as a position marker and removes it later."""

    text: str


@dataclass(frozen=True, slots=True)
class JsonValue(Leaf):
    """One JSON value that matches the schema, or any JSON value if the schema is None. The schema is copied and frozen."""

    schema: JsonSchema | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", frozen(self.schema))


@dataclass(frozen=True, slots=True)
class PythonValue(Leaf):
    """One value in Python or JSON notation: `'a'`, `None`, `{"b": True}`.

    The value must match the schema, unless the schema is None. The schema is copied and frozen.
    """

    schema: JsonSchema | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", frozen(self.schema))


@dataclass(frozen=True, slots=True)
class Quoted(Leaf):
    """A string between two `quote` characters. A backslash escapes the next character."""

    quote: str = '"'


@dataclass(frozen=True, slots=True)
class AnswerPart(Leaf):
    """A part of a Format's answer, between markers. See `answer`."""


_Special = Layout | Until | Peek | Negate | End | Tag | Atomic | Cut | Mark
Refused = _Special | Chars | Optional | Repeat | Ref | JsonValue | PythonValue | Quoted | AnswerPart
"""Node types that some dialect, or a regular expression, can't express. `Repeat` is one of them because it may have a separator."""
Node = Literal | Sequence | Choice | Refused
"""A node of a grammar. Functions that distinguish node types list all of them, so mypy reports each place where a new type is missing."""


def refusal_of(node: Refused, why: str) -> GrammarError:
    """Return the error for a node that isn't allowed here.

    >>> refusal_of(Cut(), "cannot be written in GBNF")
    GrammarError('Cut cannot be written in GBNF')
    """
    return GrammarError(f"{type(node).__name__} {why}")


@checked
@dataclass(frozen=True, slots=True)
class Grammar:
    """The answers allowed in one turn: a root node, and the rules that `Ref`s refer to. The rules are copied and frozen."""

    root: Node
    rules: Mapping[str, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if type(self.rules) is not FrozenDict:  # Only the rules need freezing, since nodes are already frozen.
            object.__setattr__(self, "rules", FrozenDict(self.rules))


EMPTY = Literal("")
"""The empty text."""


def in_sequence(*parts: Node) -> Node:
    """Return the parts in sequence, without empty texts. If only one part is left, it's returned unchanged.

    >>> in_sequence(EMPTY, Ref("a"))
    Ref(rule='a')
    """
    kept = tuple(part for part in parts if part != EMPTY)
    return kept[0] if len(kept) == 1 else Sequence(kept) if kept else EMPTY


def sequence_of(parts: list[Node]) -> Node:
    """Return `parts` as a sequence. Nested sequences are merged, and adjacent literals are joined."""
    merged: list[Node] = []
    for part in parts:
        for item in part.parts if isinstance(part, Sequence) else (part,):
            if not isinstance(item, Literal):
                merged.append(item)
            elif merged and isinstance(last := merged[-1], Literal):
                merged[-1] = Literal(last.text + item.text)
            elif item.text:
                merged.append(item)
    if not merged:
        return EMPTY
    return merged[0] if len(merged) == 1 else Sequence(tuple(merged))


_HOLDERS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(item.name for item in fields(kind) if "Node" in str(item.type))
    for kind in (*globals().values(),)
    if isinstance(kind, type) and issubclass(kind, Node)
}
"""Maps each node type to its fields that may contain nodes."""


def _reader(kind: type) -> Callable[[Any], tuple[Node, ...]]:
    """Return a function that returns the child nodes of a node of this type."""
    first, *more = _HOLDERS[kind]
    if more:
        return lambda node: tuple(below for name in (first, *more) if (below := getattr(node, name)) is not None)
    listed = any(item.name == first and "tuple" in str(item.type) for item in fields(kind))
    return attrgetter(first) if listed else lambda node: (getattr(node, first),)


_BELOW: Mapping[type, Callable[[Any], tuple[Node, ...]]] = {kind: _reader(kind) for kind in _HOLDERS if _HOLDERS[kind]}
"""Functions that return child nodes, one for each node type. They are cached, since every traversal uses them."""


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below `node`."""
    below = _BELOW.get(type(node))
    return below(node) if below else ()


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and all its descendants, parents first. `Ref`s aren't followed."""
    # Uses an explicit stack, since grammars of large schemas exceed Python's recursion limit.
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        if below := _BELOW.get(type(found)):
            waiting += below(found)[::-1]


def references(node: Node) -> list[str]:
    """Return the names of the rules that `node` refers to, in order of occurrence."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if type(here) is Ref:
            found.append(here.rule)
        elif below := _BELOW.get(type(here)):
            waiting += below(here)[::-1]
    return found


def reached(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Return `names`, and all names that can be reached from them by applying `following` repeatedly."""
    found = set(names)
    queue = list(found)
    for name in queue:
        fresh = set(following(name)) - found
        found |= fresh
        queue.extend(fresh)
    return frozenset(found)


def smallest(table: Mapping[str, T], holds: Callable[[T, frozenset[str]], bool]) -> frozenset[str]:
    """Return the smallest set with every name for which `holds` is true. `holds` gets the name's value and the set found so far."""
    # Start with the names that don't depend on others, and repeat until no name is added.
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, value in table.items() if holds(value, found))
        if more == found:
            return found
        found = more


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return `node` with every node in it replaced by the result of `change`, children first. `Ref`s aren't followed.

    >>> rewrite(Optional(Ref("a")), lambda node: Ref("b") if node == Ref("a") else node)
    Optional(node=Ref(rule='b'))
    """
    return change(with_children(node, lambda child: rewrite(child, change)))


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return `node` with each child node replaced by the result of `change`."""
    changed: dict[str, Any] = {}
    for name in _HOLDERS[type(node)]:
        value: Any = getattr(node, name)
        if isinstance(value, tuple):
            changed[name] = tuple(map(change, value))
        elif value is not None:
            changed[name] = change(value)
    return replace(node, **changed) if changed else node


_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
RULE_NAME = re.compile(r"[a-z0-9-]+")
"""Matches rule names that all dialects accept."""


@dataclass(slots=True)
class Rules:
    """A collection of named rules. Each distinct node gets one name, which consists of lower-case letters, digits and `-`."""

    table: dict[str, Node] = field(default_factory=dict)
    _names: dict[Node, list[str]] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)
    _reserved: set[str] = field(default_factory=set)

    def add(self, hint: str, node: Node) -> Ref:
        """Return a reference to the rule for `node`. If there is no such rule, add one with a name derived from `hint`."""
        if isinstance(node, Ref):
            return node
        # Look up the node only once, since hashing it visits all its descendants.
        found = self._names.setdefault(node, [])
        if not found:
            found.append(self.reserve(hint))
            self.table[found[0]] = node
        return Ref(found[0])

    def reserve(self, hint: str) -> str:
        """Return an unused name derived from `hint`. The caller must define a rule with this name."""
        # All dialects allow lower-case letters, digits and hyphens in names: "Get City!" becomes "get-city".
        base = _NOT_IN_NAMES.sub("-", hint.lower()).strip("-")[:40] or "rule"
        name = base
        while name in self._reserved or name in self.table:
            count = self._taken[base] = self._taken.get(base, 1) + 1
            name = f"{base}-{count}"
        self._reserved.add(name)
        return name

    def define(self, name: str, node: Node) -> Ref:
        """Define the rule `name` as `node`, and return a reference to it."""
        self.table[name] = node
        return Ref(name)

    def merge(self, rules: Mapping[str, Node]) -> None:
        """Add `rules` without renaming them."""
        self.table.update(rules)
