"""Decides whether a pattern generates a text, in time linear in the text.

Strategy: Thompson's construction, simulated with a cache of the sets of states that were met. Python's `re` backtracks,
and both the pattern and the text come from strangers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from unrender.errors import GrammarError
from unrender.grammar.nodes import Chars, Choice, Literal, Node, Optional, Repeat, Sequence

MAX_WORK = 2_000_000
"""Steps between states for one text; a text that needs more counts as matched."""
_MAX_CACHED = 1_000

States = frozenset[int]


def matches(pattern: Node, text: str) -> bool:
    """Return whether `pattern` generates `text`; True when that takes more than `MAX_WORK` steps to decide.

    Raises `GrammarError` for a node that is not regular.
    """
    return _automaton(pattern).accepts(text)


@lru_cache(maxsize=256)
def _automaton(pattern: Node) -> _Automaton:
    automaton = _Automaton()
    automaton.start = automaton.closure([automaton.build(pattern, _ACCEPT)])
    return automaton


_ACCEPT = 0


@dataclass(slots=True)
class _Automaton:
    """States are numbers: a state either reads a character (`classes`) or leads on without one (`free`)."""

    classes: dict[int, tuple[Chars, int]] = field(default_factory=dict)
    free: dict[int, list[int]] = field(default_factory=lambda: {_ACCEPT: []})
    start: States = frozenset()
    known: dict[States, dict[str, States]] = field(default_factory=dict)

    def accepts(self, text: str) -> bool:
        states, work = self.start, 0
        for character in text:
            following = self.known.setdefault(states, {})
            if character not in following:
                work += len(states)
                if work > MAX_WORK:
                    return True
                following[character] = self.after(states, character)
            states = following[character]
            if not states:
                return False
        if len(self.known) > _MAX_CACHED:
            self.known.clear()
        return _ACCEPT in states

    def after(self, states: States, character: str) -> States:
        read = (self.classes[state] for state in states if state in self.classes)
        return self.closure(target for chars, target in read if _holds(chars, character))

    def closure(self, states: Iterable[int]) -> States:
        found: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state not in found:
                found.add(state)
                todo += self.free.get(state, ())
        return frozenset(state for state in found if state in self.classes or state == _ACCEPT)

    def build(self, node: Node, then: int) -> int:
        """Return the state from which `node` leads to the state `then`."""
        match node:
            case Literal(text):
                for character in reversed(text):
                    then = self.reads(Chars(((character, character),)), then)
                return then
            case Chars(minimum=low, maximum=high):
                return self.repeated(Chars(node.ranges, node.negated), low, high, then)
            case Sequence(parts):
                for part in reversed(parts):
                    then = self.build(part, then)
                return then
            case Choice(options):
                return self.state_before([self.build(option, then) for option in options])
            case Optional(inner):
                return self.state_before([self.build(inner, then), then])
            case Repeat(inner, low, high, None):
                return self.repeated(inner, low, high, then)
        raise GrammarError(f"{type(node).__name__} is not part of a regular expression")

    def repeated(self, node: Node, low: int, high: int | None, then: int) -> int:
        if high is None:
            entry = self.state_before([then])
            self.free[entry].append(self.once(node, entry))
        else:
            entry = then
            for _ in range(high - low):
                entry = self.state_before([self.once(node, entry), then])
        for _ in range(low):
            entry = self.once(node, entry)
        return entry

    def once(self, node: Node, then: int) -> int:
        return self.reads(node, then) if isinstance(node, Chars) and _is_single(node) else self.build(node, then)

    def reads(self, chars: Chars, then: int) -> int:
        self.classes[state := self.new_state()] = (chars, then)
        return state

    def state_before(self, targets: list[int]) -> int:
        self.free[state := self.new_state()] = targets
        return state

    def new_state(self) -> int:
        return len(self.classes) + len(self.free)


def _is_single(chars: Chars) -> bool:
    return chars.minimum == chars.maximum == 1


def _holds(chars: Chars, character: str) -> bool:
    return any(low <= character <= high for low, high in chars.ranges) != chars.negated
