r"""Converts regular expressions of JSON Schema to nodes that generate complete texts.

Strategy: a recursive-descent parser for the regular subset of ECMAScript patterns: alternation, groups, classes, `\d \w \s`, quantifiers,
and anchors at the ends of an alternative. A pattern may match anywhere in a string, so any text may precede or follow an unanchored
pattern. Lookarounds, back references, word boundaries and Unicode properties raise `UnsupportedPattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from unrender.cache import kept
from unrender.errors import GrammarError
from unrender.limits import MAX_INTEGER_DIGITS, MAX_KNOWN_STATES, MAX_PARTS, MAX_REPETITIONS, MAX_STATES, MAX_STEPS
from unrender.nodes import Chars, Choice, End, Literal, Mark, Node, Optional, Repeat, Sequence, refusal_of

Ranges = tuple[tuple[str, str], ...]

ANY_TEXT = Repeat(Chars((), negated=True))
"""Any text, including line breaks."""

_DOT = Chars((("\n", "\n"), ("\r", "\r"), ("\u2028", "\u2029")), negated=True)
_DIGITS: Ranges = (("0", "9"),)
_WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE: Ranges = tuple(zip("\t \u00a0\u2000\u2028\u3000\ufeff", "\r \u00a0\u200a\u2029\u3000\ufeff", strict=True))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_HEX = frozenset("0123456789ABCDEFabcdef")
_OTHER_GROUP = re.compile(r"[a-zA-Z]*(-[a-zA-Z]+)?[:)]|[>#]")
"""Matches the start of groups that other dialects have, after `(?`: flags such as `(?i)`, atomic groups and comments."""
_SURROGATES = (0xD800, 0xDFFF)
_END = 0x110000


class UnsupportedPattern(ValueError):
    """A valid regular expression that a grammar can't express."""


@kept(10_000)
def read_pattern(pattern: str) -> Node:
    """Return a node that generates every text that contains a match of `pattern`.

    Raises `UnsupportedPattern` if a grammar can't express the pattern, and `GrammarError` if it isn't a valid regular expression.
    """
    if len(pattern) > MAX_STATES:
        raise UnsupportedPattern(f"a pattern of more than {MAX_STATES} characters")
    reader = _Reader(pattern)
    branches = reader.branches()
    if reader.position < len(pattern):
        raise reader.broken("unbalanced ')'")
    node = any_pattern([_unanchored(branch) for branch in branches])
    if _weight(node) > MAX_STATES:
        raise UnsupportedPattern(f"a pattern that repeats more than {MAX_STATES} characters")
    return node


def _weight(node: Node) -> int:
    """Return the number of characters and classes in `node`, with its repetitions expanded."""
    match node:
        case Literal(text):
            return len(text)
        case Repeat(inner, low, high):
            return _weight(inner) * max(low, high or 1, 1)
        case Sequence(parts) | Choice(parts):
            return sum(_weight(part) for part in parts)
        case Chars():
            return 1
    raise refusal_of(node, "is not part of a regular expression")


def lengths(node: Node) -> tuple[int, int | None]:
    """Return the minimum and maximum length of the texts that a pattern generates. The maximum is None if there is no limit."""
    match node:
        case Literal(text):
            return len(text), len(text)
        case Chars():
            return node.minimum, node.maximum
        case Repeat(inner, low, high):
            least, most = lengths(inner)
            return least * low, 0 if most == 0 else None if most is None or high is None else most * high
        case Sequence(parts) | Choice(parts):
            leasts, ends = zip(*map(lengths, parts), strict=True) if parts else ((0,), (0,))
            over, under = (sum, sum) if isinstance(node, Sequence) else (max, min)
            return under(leasts), None if None in ends else over(ends)
    raise refusal_of(node, "is not part of a regular expression")


def narrowed(node: Node, room: int) -> Node:
    """Return a pattern with repetitions limited to what fits into `room` characters. For `room=3`, `a+b*` becomes `a{1,3}b{0,2}`.

    At least the shortest text must fit. If the result would be too large with its repetitions expanded, the pattern is returned unchanged.
    """
    found = _narrowed(node, room) if room <= MAX_REPETITIONS else node
    return found if _weight(found) <= MAX_STATES else node


def _narrowed(node: Node, room: int) -> Node:
    match node:
        case Sequence(parts):
            spare = room - lengths(node)[0]
            return Sequence(tuple(_narrowed(part, spare + lengths(part)[0]) for part in parts))
        case Choice(options):
            return any_pattern([_narrowed(option, room) for option in options if lengths(option)[0] <= room])
        case Repeat(inner, low, high):
            least = lengths(inner)[0]
            most = room // max(least, 1)
            own = _narrowed(inner, room - least * max(low - 1, 0)) if most else inner
            return Repeat(own, low, max(low, most if high is None else min(high, most)), node.separator)
        case Literal() | Chars():
            return node
    raise refusal_of(node, "is not part of a regular expression")


def any_pattern(options: list[Node]) -> Node:
    """Return a node for a choice of `options`."""
    return options[0] if len(options) == 1 else Choice(tuple(options))


def complement(ranges: Ranges) -> Ranges:
    """Return the ranges of all code points outside `ranges`, except surrogates."""
    result: list[tuple[str, str]] = []
    start = 0
    holes = [(ord(low), ord(high)) for low, high in ranges]
    for low, high in sorted([*holes, _SURROGATES, (_END, _END)]):
        if low > start:
            result.append((chr(start), chr(low - 1)))
        start = max(start, high + 1)
    return tuple(result)


def holds(ranges: Ranges, character: str) -> bool:
    """Return whether `character` is in one of `ranges`."""
    return any(low <= character <= high for low, high in ranges)


def _whole(character: str) -> str:
    """Return `character`. Raises `UnsupportedPattern` for an unpaired surrogate."""
    if _SURROGATES[0] <= ord(character) <= _SURROGATES[1]:
        raise UnsupportedPattern("an unpaired surrogate")
    return character


def _without_halves(low: str, high: str) -> Ranges:
    """Return the range from `low` to `high`. If an end of the range is a surrogate, the range is shortened to exclude surrogates at that
    end.
    """
    # `[\ud900-\ue010]` starts inside the surrogates, so it becomes `[\ue000-\ue010]`.
    first = _SURROGATES[1] + 1 if _SURROGATES[0] <= ord(low) <= _SURROGATES[1] else ord(low)
    last = _SURROGATES[0] - 1 if _SURROGATES[0] <= ord(high) <= _SURROGATES[1] else ord(high)
    # Surrogates in the middle of a range are harmless, since no text contains them.
    return ((chr(first), chr(last)),) if first <= last else ()


_START, _STOP = Mark("^"), End()
"""Placeholders for the two anchors. `_unanchored` removes them."""


def _unanchored(branch: tuple[Node, ...]) -> Node:
    """Return a top-level alternative that allows any text before and after it, except at an anchor."""
    # `^ab` matches `ab` followed by any text. An anchor belongs to only one alternative, so `^a|b$` has one anchor in each.
    if len(branch) == 1 and isinstance(branch[0], Sequence):
        branch = branch[0].parts
    before, after = () if branch[:1] == (_START,) else (ANY_TEXT,), () if branch[-1:] == (_STOP,) else (ANY_TEXT,)
    body = branch[1 - len(before) : len(branch) - 1 + len(after)]
    if _START in body or _STOP in body:
        raise UnsupportedPattern("an anchor inside the pattern")
    return Sequence((*before, *body, *after))


class _Reader:
    """Reads one pattern. `position` is the index of the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.depth = 0

    def broken(self, what: str) -> GrammarError:
        return GrammarError(f"pattern {self.pattern!r:.80}: {what} at character {self.position}")

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def take(self) -> str:
        character = self.peek()
        if not character:
            raise self.broken("expected more, found the end")
        self.position += 1
        return character

    def accept(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def branches(self) -> list[tuple[Node, ...]]:
        branches = [self.branch()]
        while self.accept("|"):
            branches.append(self.branch())
        return branches

    def branch(self) -> tuple[Node, ...]:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self.quantified(self.atom()))
        return tuple(items)

    def quantified(self, item: Node) -> Node:
        bounds = self.quantifier()
        if bounds is None:
            return item
        # A lazy quantifier such as `a+?` matches the same texts as a greedy one. In `^*` and `a**`, there is nothing to repeat.
        self.accept("?")
        if item in (_START, _STOP) or self.quantifier() is not None:
            raise self.broken("expected something to repeat")
        if max(bounds[0], bounds[1] or 0) > MAX_REPETITIONS:
            raise UnsupportedPattern(f"a repetition of more than {MAX_REPETITIONS}")
        return Repeat(item, *bounds)

    def quantifier(self) -> tuple[int, int | None] | None:
        if self.peek() in _QUANTIFIERS:
            return _QUANTIFIERS[self.take()]
        # `a{2}` is a repetition; `a{x}` is four characters.
        start = self.position
        if not self.accept("{"):
            return None
        low = self.number()
        high = self.number() if self.accept(",") else low
        # In ECMAScript, `{,3}` and `{a}` aren't quantifiers but plain text.
        if low is None or not self.accept("}"):
            self.position = start
            return None
        if high is not None and high < low:
            raise self.broken("quantifier out of order")
        return low, high

    def number(self) -> int | None:
        start = self.position
        while self.peek() and self.peek() in "0123456789":
            self.position += 1
        # Python rejects numbers with thousands of digits, which exceed the limits anyway.
        digits = self.pattern[start : self.position].lstrip("0")[: MAX_INTEGER_DIGITS + 1]
        return int(digits or "0") if self.position > start else None

    def atom(self) -> Node:
        character = self.take()
        match character:
            case "^" | "$":
                return _START if character == "^" else _STOP
            case "(":
                return self.group()
            case "[":
                return self.character_class()
            case ".":
                return _DOT
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise self.broken("expected something to repeat")
        return Literal(_whole(character))

    def group(self) -> Node:
        if self.accept("?") and not self.accept(":"):
            if any(self.pattern.startswith(sign, self.position) for sign in ("=", "!", "<=", "<!")):
                raise UnsupportedPattern("a lookaround")
            if _OTHER_GROUP.match(self.pattern, self.position):
                raise UnsupportedPattern("a group of another dialect")
            if not (self.accept("<") or self.accept("P<")) or ">" not in self.pattern[self.position :]:
                raise self.broken("unknown kind of group")
            self.position = self.pattern.index(">", self.position) + 1
        self.depth += 1
        if self.depth > MAX_PARTS:
            raise UnsupportedPattern(f"a group inside {MAX_PARTS} others")
        branches = self.branches()
        self.depth -= 1
        if not self.accept(")"):
            raise self.broken("expected ')'")
        if any(anchor in branch for branch in branches for anchor in (_START, _STOP)):
            raise UnsupportedPattern("an anchor inside a group")
        return any_pattern(list(map(Sequence, branches)))

    def escape(self) -> Node:
        character = self.take()
        if character.lower() in _CLASSES:
            return Chars(_CLASSES[character.lower()], negated=character.isupper())
        return Literal(_whole(self.escaped(character)))

    def escaped(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in ("x", "u"):
            return self.code_point(4 if character == "u" else 2)
        if character.isalnum():
            raise UnsupportedPattern(f"the escape \\{character}")
        return character

    def code_point(self, width: int) -> str:
        if self.accept("{"):
            end = self.pattern.find("}", self.position)
            digits = self.pattern[self.position : max(end, self.position)]
            self.position += len(digits) + 1
        else:
            digits = self.pattern[self.position : self.position + width].rjust(width)
            self.position += width
        if not digits or not _HEX.issuperset(digits) or int(digits, 16) >= _END:
            raise self.broken(f"expected a code point, found {digits.strip()!r}")
        return chr(int(digits, 16))

    def character_class(self) -> Node:
        negated = self.accept("^")
        ranges: list[tuple[str, str]] = []
        while not self.accept("]"):
            ranges.extend(self.class_item())
        kept = tuple(whole for found in ranges for whole in _without_halves(*found))
        if not kept and not negated:
            raise UnsupportedPattern("a class with unpaired surrogates" if ranges else "an empty class")
        return Chars(kept, negated=negated)

    def class_item(self) -> Ranges:
        low = self.class_character()
        if isinstance(low, tuple):
            return low
        # `a-z` is a range, but a hyphen at the end of a class, as in `[a-]`, is a plain character.
        rest = self.pattern[self.position : self.position + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return ((low, low),)
        self.take()
        high = self.class_character()
        # `[a-\d]` isn't a range: it contains a, the hyphen, and the digits.
        if isinstance(high, tuple):
            return ((low, low), ("-", "-"), *high)
        if high < low:
            raise self.broken("range out of order")
        return ((low, high),)

    def class_character(self) -> str | Ranges:
        character = self.take()
        if character != "\\":
            return character
        character = self.take()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return complement(ranges) if character.isupper() else ranges
        return "\b" if character == "b" else self.escaped(character)


def write_pattern(node: Node) -> str:
    """Return the regular expression for `node`, in the common syntax of Python, Rust and ECMAScript.

    Raises `GrammarError` for nodes that aren't regular.
    """
    match node:
        case Literal(text):
            return "".join(_escape(character) for character in text)
        case Chars():
            return _class(node) + bounds_text(node.minimum, node.maximum)
        case Sequence(parts):
            return "".join(_group(part) if isinstance(part, Choice) else write_pattern(part) for part in parts)
        case Choice(options):
            return "|".join(write_pattern(option) for option in options)
        case Optional(inner):
            return _group(inner) + "?"
        case Repeat(inner, low, high, None):
            return _group(inner) + bounds_text(low, high)
    raise refusal_of(node, "has no regular expression")


def _group(node: Node) -> str:
    return f"(?:{write_pattern(node)})"


SHORT_BOUNDS: Mapping[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}


def bounds_text(low: int, high: int | None) -> str:
    """Return the quantifier of a repetition."""
    if (low, high) in SHORT_BOUNDS:
        return SHORT_BOUNDS[(low, high)]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _class(node: Chars) -> str:
    if not node.ranges:
        return "[\\s\\S]" if node.negated else "[^\\s\\S]"
    inside = "".join(_escape(low) if low == high else f"{_escape(low)}-{_escape(high)}" for low, high in node.ranges)
    return f"[{'^' if node.negated else ''}{inside}]"


# Includes the characters of operators such as `&&`, `~~` and `--`, which some dialects support inside a class.
_SPECIAL = frozenset("\\.+*?()|[]{}^$-/&~")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character < " " or character == "\x7f":
        return f"\\x{ord(character):02x}"
    return f"\\{character}" if character in _SPECIAL else character


States = frozenset[int]


def matches(pattern: Node, text: str) -> bool:
    """Return whether `pattern` generates `text`. Also returns True if the decision would take more than `MAX_STEPS` steps.

    Raises `GrammarError` for nodes that aren't regular.
    """
    return _automaton(pattern).accepts(text)


@kept(20_000)
def _automaton(pattern: Node) -> _Automaton:
    automaton = _Automaton()
    automaton.start = automaton.closure([automaton.build(pattern, _ACCEPT)])
    return automaton


_ACCEPT = 0


@dataclass(slots=True)
class _Automaton:
    """A nondeterministic automaton. A state either reads a character (`classes`) or continues without reading one (`free`)."""

    classes: dict[int, tuple[Chars, int]] = field(default_factory=dict)
    free: dict[int, list[int]] = field(default_factory=lambda: {_ACCEPT: []})
    start: States = frozenset()
    known: dict[States, dict[str, States]] = field(default_factory=dict)

    def accepts(self, text: str) -> bool:
        states, work = self.start, 0
        for character in text:
            # Transitions of the deterministic automaton are computed when they are first needed, and only once.
            following = self.known.setdefault(states, {})
            if character not in following:
                work += len(states)
                if work > MAX_STEPS:
                    return True
                following[character] = self.after(states, character)
            states = following[character]
            if not states:
                return False
        # Limit the number of cached transitions, because the automata themselves are cached permanently.
        if len(self.known) > MAX_KNOWN_STATES:
            self.known.clear()
        return _ACCEPT in states

    def after(self, states: States, character: str) -> States:
        read = (self.classes[state] for state in states if state in self.classes)
        return self.closure(target for chars, target in read if holds(chars.ranges, character) != chars.negated)

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
        """Return the first state for `node`, followed by the state `then`."""
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
        raise refusal_of(node, "is not part of a regular expression")

    def repeated(self, node: Node, low: int, high: int | None, then: int) -> int:
        if high is None:
            # The loop's first state either continues, or runs `node` and returns to itself.
            entry = self.state_before([then])
            self.free[entry].append(self.once(node, entry))
        else:
            # `a{0,2}` becomes `(a (a)?)?`, built from the inside. Each iteration may be the last.
            entry = then
            for _ in range(high - low):
                entry = self.state_before([self.once(node, entry), then])
        for _ in range(low):
            entry = self.once(node, entry)
        return entry

    def once(self, node: Node, then: int) -> int:
        if isinstance(node, Chars) and node.minimum == node.maximum == 1:
            return self.reads(node, then)
        return self.build(node, then)

    def reads(self, chars: Chars, then: int) -> int:
        self.classes[state := self.new_state()] = (chars, then)
        return state

    def state_before(self, targets: list[int]) -> int:
        self.free[state := self.new_state()] = targets
        return state

    def new_state(self) -> int:
        # Every state is in exactly one of the two tables.
        return len(self.classes) + len(self.free)
