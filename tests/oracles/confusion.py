"""A search for lexemes in lowered rules that a longest-match lexer would lose.

Strategy: the rules are read as the engine reads them, lexeme by lexeme, following all readings of the earlier text in
parallel. A lexeme is lost if another lexeme at the same place continues with a character that may follow the first. Two
paths through the same texts are followed together, as a pair.

Rules: a recursive rule is searched once, since its places are the same at every depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from oracles.lexemes import Ending, Lexeme, Lexemes, alphabet, json_lexeme

from unrender import GrammarError
from unrender.dialects.context_free import Lowered, Stopped
from unrender.grammar import Node
from unrender.nodes import Choice, JsonValue, Literal, Optional, Ref, Repeat, Sequence

MOST_PLACES = 50_000
_END = 0
"""The position at the end of every rule."""


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two lexemes at the same place that a lexer confuses.

    After the text of `lost`, the lexer continues with `kept` if one of `characters` follows.
    """

    lost: Lexeme
    kept: Lexeme
    characters: frozenset[str]


Stack = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """One reading of the text so far: the position in a rule, and the positions where the outer rules continue."""

    position: int
    stack: Stack


@dataclass(frozen=True, slots=True)
class _Step:
    """The item at a position, and the position after it. The item is a lexeme, the entry of a rule, or nothing."""

    lexeme: Lexeme | None
    rule: str | None
    target: int


@dataclass(slots=True)
class _Positions:
    """The rules as positions, numbered as needed."""

    rules: Mapping[str, Node | Stopped]
    terminals: frozenset[str]
    steps: list[list[_Step]] = field(default_factory=lambda: [[]])
    entries: dict[str, int] = field(default_factory=dict)

    def entry(self, rule: str) -> int:
        if rule not in self.entries:
            node = self.rules[rule]
            self.entries[rule] = self.stopped(node) if isinstance(node, Stopped) else self.before(node, _END)
        return self.entries[rule]

    def stopped(self, node: Stopped) -> int:
        but = tuple(text for text, _ in node.exact)
        steps = [self.rule(branch, Ending(node.stops, stop, but)) for stop, branch in node.branches]
        steps += [self.rule(branch, Literal(text)) for text, branch in node.exact]
        if node.at_end:
            steps += [_Step(Ending(node.stops, "", but), None, _END), _Step(None, None, _END)]
        return self.place(*steps)

    def rule(self, branch: Ref, lexeme: Lexeme) -> _Step:
        return _Step(lexeme, None, self.before(branch, _END))

    def place(self, *steps: _Step) -> int:
        self.steps.append(list(steps))
        return len(self.steps) - 1

    def before(self, node: Node, target: int) -> int:
        """Return the position before `node`, which is followed by `target`."""
        match node:
            case Sequence(parts):
                for part in reversed(parts):
                    target = self.before(part, target)
                return target
            case Choice(options):
                return self.place(*(_Step(None, None, self.before(option, target)) for option in options))
            case Optional(inner):
                return self.place(_Step(None, None, self.before(inner, target)), _Step(None, None, target))
            case Repeat(inner, low, high, None):
                return self.repeated(inner, low, high, target)
            case Ref(name) if name not in self.terminals:
                return self.place(_Step(None, name, target))
            case JsonValue():
                return self.place(_Step(json_lexeme(node), None, target))
        return self.place(_Step(node, None, target))

    def repeated(self, node: Node, low: int, high: int | None, target: int) -> int:
        """Return the position before a repetition. A large maximum counts as unlimited."""
        if high is not None and high <= 3:
            for count in range(high, 0, -1):
                before = self.before(node, target)
                target = before if count <= low else self.place(_Step(None, None, before), _Step(None, None, target))
            return target
        loop = self.place()
        again = self.before(node, loop)
        self.steps[loop] += [_Step(None, None, again), _Step(None, None, target)]
        return loop if low == 0 else again


@dataclass(slots=True)
class _Search:
    positions: _Positions
    lexemes: Lexemes
    known: dict[Thread, list[tuple[Lexeme, Thread]]] = field(default_factory=dict)

    def ways(self, thread: Thread) -> list[tuple[Lexeme, Thread]]:
        """Return the lexemes that may follow a thread, each with the next thread."""
        if thread not in self.known:
            self.known[thread] = list(dict.fromkeys(self._ways(thread)))
        return self.known[thread]

    def _ways(self, thread: Thread) -> Iterator[tuple[Lexeme, Thread]]:
        waiting = [thread]
        seen: set[Thread] = set()
        while waiting:
            thread = waiting.pop()
            if thread in seen:
                continue
            seen.add(thread)
            stack = thread.stack
            if thread.position == _END and stack:
                waiting.append(Thread(stack[-1], stack[:-1]))
            for step in reversed(self.positions.steps[thread.position]):
                after = Thread(step.target, stack)
                if step.rule is not None:
                    waiting.append(Thread(self.positions.entry(step.rule), _pushed(stack, step.target)))
                elif step.lexeme is None:
                    waiting.append(after)
                else:
                    if self.lexemes.is_empty(step.lexeme):
                        waiting.append(after)
                    yield step.lexeme, after

    def following(self, thread: Thread) -> frozenset[str]:
        """Return the characters that may follow a thread."""
        return frozenset().union(*(self.lexemes.first(lexeme) for lexeme, _ in self.ways(thread)))

    def confusions(self, root: str) -> Iterator[Confusion]:
        queue = [frozenset((Thread(self.positions.entry(root), ()),))]
        seen = set(queue)
        for place in queue:
            ways = list(dict.fromkeys(way for thread in place for way in self.ways(thread)))
            reached = [frozenset((after,)) for _, after in ways]
            for one, other in combinations(ways, 2):
                if self.lexemes.clash(one[0], other[0]).shared and one[1] != other[1]:
                    reached.append(frozenset((one[1], other[1])))
            for lost, after in ways:
                for kept in dict.fromkeys(lexeme for lexeme, _ in ways):
                    onward = self.lexemes.clash(lost, kept).onward
                    if onward and (characters := onward & self.following(after)):
                        yield Confusion(lost, kept, characters)
            fresh = [place for place in dict.fromkeys(reached) if place not in seen]
            seen.update(fresh)
            queue.extend(fresh)
            if len(queue) > MOST_PLACES:
                raise GrammarError(f"grammar: more than {MOST_PLACES} places to look into")


def confusions(lowered: Lowered, terminals: frozenset[str]) -> Iterator[Confusion]:
    """Yield the lexemes that a lexer would confuse, in order of their places.

    Each rule in `terminals` is one lexeme. Raises `GrammarError` if the rules have more than `MOST_PLACES` places.
    """
    letters = alphabet(lowered.rules.values())
    positions = _Positions(lowered.rules, terminals)
    yield from _Search(positions, Lexemes(lowered.rules, letters)).confusions(lowered.root)


def _pushed(stack: Stack, target: int) -> Stack:
    if target == _END:
        return stack
    return stack[: stack.index(target) + 1] if target in stack else (*stack, target)
