"""Conflicts between lexemes: prefixes of other lexemes, and texts that two lexemes share.

Strategy: a lexeme is read character by character, nodes by derivatives and free text by the automaton of its stops.
Characters that no lexeme distinguishes are equivalent, so a few dozen represent all.

Rules: the result is exact up to `MOST_STATES` pairs of states. Two lexemes beyond this limit count as confused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from unrender.dialects.context_free import Stopped
from unrender.dialects.gbnf import automaton
from unrender.dialects.stops import Rest, unfoldings
from unrender.grammar import Node
from unrender.nodes import Chars, JsonValue, Literal, Ref, walk

MOST_STATES = 20_000


@dataclass(frozen=True, slots=True)
class Ending:
    """The text up to and including `stop`, which is the first of `stops` to occur, except for the texts in `but`.

    If `stop` is "", it's any non-empty text without one of `stops`.
    """

    stops: tuple[str, ...]
    stop: str
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value that the engine reads by its own schema.

    Only its possible first characters are known.
    """

    first: frozenset[str]


Lexeme = Node | Ending | Json


@dataclass(frozen=True, slots=True)
class Read:
    """A position in free text.

    `prefix` is the part of a stop that was just read. `text` is the whole text while it may still be an exception.
    """

    prefix: str
    text: str | None
    begun: bool = False


Reading = frozenset[Rest] | Read


@dataclass(frozen=True, slots=True)
class Clash:
    """A conflict of two lexemes at the same place.

    `onward`: the characters that continue the second lexeme after a text of the first. `shared`: whether some text
    matches both.
    """

    onward: frozenset[str]
    shared: bool


@dataclass(slots=True)
class Lexemes:
    """The lexemes of one grammar, with the `rules` they refer to."""

    rules: Mapping[str, Node | Stopped]
    alphabet: tuple[str, ...]
    _clashes: dict[tuple[Lexeme, Lexeme], Clash] = field(default_factory=dict)
    _steps: dict[tuple[Lexeme, Reading], dict[str, Reading]] = field(default_factory=dict)

    def first(self, lexeme: Lexeme) -> frozenset[str]:
        """Return the possible first characters of `lexeme`."""
        if isinstance(lexeme, Json):
            return lexeme.first
        return frozenset(self.steps(lexeme, self.start(lexeme)))

    def clash(self, one: Lexeme, other: Lexeme) -> Clash:
        """Return the effect of `other` on `one` at the same place."""
        if (one, other) not in self._clashes:
            json = isinstance(one, Json) or isinstance(other, Json)
            self._clashes[one, other] = self._beside_json(one, other) if json else self._compared(one, other)
        return self._clashes[one, other]

    def is_empty(self, lexeme: Lexeme) -> bool:
        """Return whether a lexeme can match the empty text."""
        return not isinstance(lexeme, Json) and self.accepts(lexeme, self.start(lexeme))

    def start(self, lexeme: Lexeme) -> Reading:
        """Return the state before the first character."""
        if isinstance(lexeme, Ending):
            return Read("", "" if lexeme.but else None)
        assert not isinstance(lexeme, Json)
        return self._opened([(lexeme,)])

    def accepts(self, lexeme: Lexeme, reading: Reading) -> bool:
        """Return whether the text read so far is a whole lexeme."""
        if isinstance(reading, Read):
            assert isinstance(lexeme, Ending)
            whole = reading.prefix == lexeme.stop if lexeme.stop else reading.begun
            return whole and reading.text not in lexeme.but
        return () in reading

    def steps(self, lexeme: Lexeme, reading: Reading) -> Mapping[str, Reading]:
        """Return the next state for each character."""
        key = (lexeme, reading)
        if key not in self._steps:
            assert isinstance(reading, frozenset) or isinstance(lexeme, Ending)
            found = self._text_steps(lexeme, reading) if isinstance(reading, Read) else self._node_steps(reading)
            self._steps[key] = dict(found)
        return self._steps[key]

    def _text_steps(self, lexeme: Lexeme, reading: Read) -> Iterator[tuple[str, Reading]]:
        assert isinstance(lexeme, Ending)
        if lexeme.stop and reading.prefix == lexeme.stop:
            return
        moves = automaton(lexeme.stops)[reading.prefix]
        for character in self.alphabet:
            target = moves.get(character, "")
            if target in lexeme.stops and target != lexeme.stop:
                continue
            text = None if reading.text is None else reading.text + character
            kept = text if text is not None and any(other.startswith(text) for other in lexeme.but) else None
            yield character, Read(target, kept, begun=True)

    def _node_steps(self, reading: frozenset[Rest]) -> Iterator[tuple[str, Reading]]:
        opened: dict[tuple[Rest, ...], Reading] = {}  # Most characters lead to the same state.
        for character in self.alphabet:
            rests = tuple(rest for way in reading if way for rest in _after(way, character))
            if rests and rests not in opened:
                opened[rests] = self._opened([*rests])
            if rests:
                yield character, opened[rests]

    def _opened(self, rests: list[Rest]) -> frozenset[Rest]:
        """Return the possible continuations, each of which starts with characters or is at its end."""
        found: set[Rest] = set()
        seen: set[Rest] = set()
        while rests:
            rest = rests.pop()
            if rest in seen:
                continue
            seen.add(rest)
            head = rest[0] if rest else None
            match head:
                case None:
                    found.add(rest)
                case Literal(""):
                    rests.append(rest[1:])
                case Literal():
                    found.add(rest)
                case Chars():
                    found.add(rest)
                    if head.minimum == 0:
                        rests.append(rest[1:])
                case Ref(name):
                    node = self.rules[name]
                    assert not isinstance(node, Stopped)
                    rests.append((node, *rest[1:]))
                case _:
                    rests.extend(unfoldings(head, rest[1:]) or ())
        return frozenset(found)

    def _compared(self, one: Lexeme, other: Lexeme) -> Clash:
        """Read both lexemes in parallel."""
        onward: set[str] = set()
        shared = False
        pairs = [(self.start(one), self.start(other))]
        seen = set(pairs)
        for mine, others in pairs:
            further = self.steps(other, others)
            if self.accepts(one, mine) and len(seen) > 1:  # An empty text isn't a lexeme.
                onward.update(further)
                shared |= self.accepts(other, others)
            reached = [(left, further[c]) for c, left in self.steps(one, mine).items() if c in further]
            pairs.extend(pair for pair in dict.fromkeys(reached) if pair not in seen)
            seen.update(reached)
            if len(seen) > MOST_STATES:
                return Clash(frozenset(self.alphabet), shared=True)
        return Clash(frozenset(onward), shared)

    def _beside_json(self, one: Lexeme, other: Lexeme) -> Clash:
        """Compare with a JSON value. Only its first characters are known, and that numbers have no end of their own."""
        if one == other:
            number = self.first(one) & frozenset(_DIGITS)
            return Clash(frozenset(_IN_NUMBERS) if number else frozenset(), shared=True)
        alike = bool(self.first(one) & self.first(other))
        return Clash(frozenset(self.alphabet) if alike else frozenset(), alike)


def alphabet(lexemes: Iterable[Node | Stopped]) -> tuple[str, ...]:
    """Return characters that represent all others: each one named in a lexeme, and one from each range between them."""
    edges = {0, *map(ord, _JSON)}
    for node in lexemes:
        for below in () if isinstance(node, Stopped) else walk(node):
            if isinstance(below, Chars):
                edges.update(point for low, high in below.ranges for point in (ord(low), ord(high) + 1))
            elif isinstance(below, Literal):
                edges.update(map(ord, below.text))
        if isinstance(node, Stopped):
            edges.update(ord(character) for stop in node.stops for character in stop)
    marks = sorted({edge for point in edges for edge in (point, point + 1)})
    return tuple(chr(point) for point in marks if point < 0x110000)


_DIGITS = "-0123456789"
_IN_NUMBERS = "0123456789.eE+-"
_JSON = _IN_NUMBERS + '{["tfn'
_FIRST_OF_JSON = {"object": "{", "array": "[", "string": '"', "boolean": "tf", "null": "n"}


def json_lexeme(node: JsonValue) -> Json:
    """Return a JSON value as the lexer sees it."""
    kinds = node.schema.get("type") if isinstance(node.schema, Mapping) else None
    named = [kinds] if isinstance(kinds, str) else kinds or (*_FIRST_OF_JSON, "number")
    return Json(frozenset("".join(_FIRST_OF_JSON.get(kind, _DIGITS) for kind in named)))


def _after(rest: Rest, character: str) -> Iterator[Rest]:
    """Yield what remains of `rest` after one character."""
    match rest[0]:
        case Literal(text) if text[0] == character:
            yield (Literal(text[1:]), *rest[1:]) if len(text) > 1 else rest[1:]
        case Chars() as chars if _holds(chars, character):
            most = None if chars.maximum is None else chars.maximum - 1
            left = replace(chars, minimum=max(chars.minimum - 1, 0), maximum=most)
            yield rest[1:] if most == 0 else (left, *rest[1:])


def _holds(chars: Chars, character: str) -> bool:
    return any(low <= character <= high for low, high in chars.ranges) != chars.negated
