"""Writes numeric bounds as nodes that generate exactly the numbers between them.

Strategy: a range of whole numbers is cut where the number of digits changes, and then digit by digit. 87 to 345 is
87 to 99 and 100 to 345. The second part is 1 or 2 before two free digits, then 3 before 00 to 45.
A range of decimal numbers is whole numbers with free fractions, and at each end the fractions that reach the bound.
Multiples are an automaton: its states are the remainders of the digits so far.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from unrender.cache import kept
from unrender.limits import MAX_BREAKS, MAX_INTEGER_DIGITS
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Sequence, in_sequence, walk
from unrender.nodes.patterns import any_pattern
from unrender.schema.shapes import Integer, Number

ENUMERABLE = 256
"""A range with at most this many multiples is written out, and so are the fractions between two whole numbers."""
_BYTES = 150
"""Bytes that a node of a range takes."""
_NONZERO = Chars((("1", "9"),))
_MINUS = Optional(Literal("-"))


def integer_node(minimum: int | None, maximum: int | None) -> Node:
    """Return the node of all whole numbers from `minimum` to `maximum`, without `-0` and leading zeros."""
    options: list[Node] = []
    if maximum is None or maximum >= 0:
        options.extend(_natural(max(minimum or 0, 0), maximum))
    if minimum is None or minimum < 0:
        low = 1 if maximum is None else max(-maximum, 1)
        negative = _natural(low, None if minimum is None else -minimum)
        options.extend([Sequence((Literal("-"), any_pattern(negative)))] if negative else [])
    if not options:
        raise ValueError(f"no integer between {minimum} and {maximum}")
    return any_pattern(options)


def _natural(low: int, high: int | None) -> list[Node]:
    """Return nodes for the numbers from `low` to `high`, cut by the number of digits."""
    if high is not None and high < low:
        return []
    width = len(str(low))
    if high is None:
        # A model that is free to write digits may never stop.
        most = max(MAX_INTEGER_DIGITS, width + 1)
        longer = Sequence((_NONZERO, _digits(width if low else 0, most - 1)))
        return [_same_length(str(low), "9" * width) if low else Literal("0"), longer]
    # 7 to 1234: 7 to 9, 10 to 99, 100 to 999, 1000 to 1234.
    options: list[Node] = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        options.append(_same_length(str(low), str(end)))
        low = end + 1
    return options


def _same_length(low: str, high: str) -> Node:
    """Return the node of the digit strings from `low` to `high`, which are equally long."""
    if low == high:
        return Literal(low)
    if low[0] == high[0]:
        return Sequence((Literal(low[0]), _same_length(low[1:], high[1:])))
    options: list[Node] = []
    first, last = ord(low[0]), ord(high[0])
    width = len(low) - 1
    # The first digit of 234 has a block of its own, 234 to 299; that of 200 begins a free one, 200 to 299.
    if low[1:].strip("0"):
        options.append(Sequence((Literal(low[0]), _same_length(low[1:], "9" * width))))
        first += 1
    partial = bool(high[1:].strip("9"))
    last -= partial
    if first <= last:
        options.append(in_sequence(Chars(((chr(first), chr(last)),)), _digits(width, width)))
    if partial:
        options.append(Sequence((Literal(high[0]), _same_length("0" * width, high[1:]))))
    return any_pattern(options)


def _digits(minimum: int, maximum: int | None) -> Node:
    return Chars((("0", "9"),), minimum=minimum, maximum=maximum) if maximum != 0 else Literal("")


_WHOLE = Choice((Literal("0"), Sequence((_NONZERO, _digits(0, MAX_INTEGER_DIGITS - 1)))))


class Numbers(NamedTuple):
    """The node of some numbers, and the rules it refers to."""

    node: Node
    rules: dict[str, Node]


def multiples(shape: Integer) -> Numbers | None:
    """Return the multiples of `shape.multiple` within its bounds; None when a grammar cannot express them."""
    # A bound that no number of so many digits reaches bounds nothing.
    step, most = shape.multiple, 10**MAX_INTEGER_DIGITS - 1
    low = None if shape.minimum is not None and shape.minimum <= -most else shape.minimum
    high = None if shape.maximum is not None and shape.maximum >= most else shape.maximum
    if low is not None and high is not None and (high - low) // step < ENUMERABLE:
        values = range(-(-low // step) * step, high + 1, step)
        return Numbers(any_pattern([Literal(str(value)) for value in values]), {}) if values else None
    if step > MAX_BREAKS or high is not None or low not in (None, 0, 1):
        return None
    return _remainders(step, zero=low != 1, negative=low is None)


def _remainders(step: int, *, zero: bool, negative: bool) -> Numbers:
    """Return the automaton whose states are the remainders of the digits read so far."""
    names = [f"multiple-of-{step}-{remainder}" for remainder in range(step)]
    rules: dict[str, Node] = {}
    for remainder, name in enumerate(names):
        # A digit more makes n into 10 n + d: for multiples of 7, after 15 (remainder 1), a 4 leads to 154 (remainder 0).
        digits = [Sequence((Literal(str(d)), Ref(names[(remainder * 10 + d) % step]))) for d in range(10)]
        rules[name] = Choice((*digits, *([] if remainder else [Literal("")])))
    # No number begins with a zero, except zero itself, and `-0` is not written.
    start = any_pattern([Sequence((Literal(str(d)), Ref(names[d % step]))) for d in range(1, 10)])
    options = [Literal("0")] if zero else []
    signed: Node = Sequence((Optional(Literal("-")), start)) if negative else start
    return Numbers(Choice((*options, signed)), rules)


@kept(lambda numbers: _BYTES * sum(1 for node in (numbers.node, *numbers.rules.values()) for _ in walk(node)))
def numeric(shape: Integer | Number) -> Numbers:
    """Return the node of all numbers of a shape, and the rules it refers to."""
    if isinstance(shape, Number):
        return Numbers(number_node(shape), {})
    counted = multiples(shape) if shape.multiple > 1 else None
    return counted or Numbers(integer_node(shape.minimum, shape.maximum), {})


def number_node(shape: Number) -> Node:
    """Return the node of all numbers that obey the bounds. With bounds, it has no exponents."""
    if shape.fractional:
        return Sequence((_MINUS, _WHOLE, Literal("."), any_pattern(_fractions(_ZERO._replace(open=True), None, shape))))
    if shape.minimum is None and shape.maximum is None:
        return _free_number(shape)
    low, high, zero = shape.minimum, shape.maximum, Decimal(0)
    options: list[Node] = []
    if high is None or high >= 0:
        start = _Edge.at(max(low or zero, zero), is_open=shape.exclusive_minimum and (low or zero) >= 0)
        end = None if high is None else _Edge.at(high, is_open=shape.exclusive_maximum)
        options += _magnitudes(start, end, shape)
    if low is None or low < 0:
        # -2.5 to 1 has a minus before 0 to 2.5, without 0: `-0` is not written.
        above = zero if high is None else max(-high, zero)
        start = _Edge.at(above, is_open=above == 0 or shape.exclusive_maximum)
        end = None if low is None else _Edge.at(-low, is_open=shape.exclusive_minimum)
        options += [Sequence((Literal("-"), option)) for option in _magnitudes(start, end, shape)]
    if not options:
        raise ValueError(f"no number between {low} and {high}")
    return any_pattern(options)


def _free_number(shape: Number) -> Node:
    fraction = Optional(Sequence((Literal("."), any_pattern(_fractions(_ZERO, None, shape)))))
    exponent = Optional(
        Sequence((Chars((("E", "E"), ("e", "e"))), Optional(Chars((("+", "+"), ("-", "-")))), _digits(1, 2)))
    )
    parts = (_MINUS, _WHOLE, fraction)
    return Sequence(parts if shape.places else (*parts, exponent))


def _not_zero(digits: int, most: int) -> Node:
    """Return up to `digits` digits that are not all zero; a few more where no schema asks for the `most` there may be."""
    if most >= MAX_INTEGER_DIGITS:
        return Sequence((Chars((("0", "0"),), minimum=0, maximum=digits - 1), _NONZERO, _digits(0, digits - 1)))
    # Of three digits: 1-9 and two more, a zero and 1-9 and one more, two zeros and 1-9.
    zeros = [(Literal("0" * count),) if count else () for count in range(digits)]
    return any_pattern([Sequence((*before, _NONZERO, _digits(0, digits - at - 1))) for at, before in enumerate(zeros)])


class _Edge(NamedTuple):
    """One end of a range of magnitudes: its whole part, the digits after the point, and whether it is left out."""

    whole: int
    digits: str
    open: bool

    @classmethod
    def at(cls, value: Decimal, *, is_open: bool) -> _Edge:
        return cls(int(value), format(value, "f").partition(".")[2].rstrip("0"), is_open)

    @property
    def rest(self) -> _Edge:
        """The edge after its first digit."""
        return self._replace(digits=self.digits[1:])


_ZERO = _Edge(0, "", open=False)


def _magnitudes(low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return nodes for the numbers from `low` to `high`, neither negative: at the edges, and strictly between them."""
    if high is not None and high.whole <= low.whole:
        return _with_fractions(low.whole, low, high, shape) if high.whole == low.whole else []
    # 1.25 to 3.5 is 1 and the fractions from .25 on, 2 and any fraction, and 3 and the fractions up to .5.
    options = _with_fractions(low.whole, low, None, shape)
    between = _natural(low.whole + 1, None if high is None else high.whole - 1)
    free = Optional(Sequence((Literal("."), any_pattern(_fractions(_ZERO, None, shape)))))
    options += [Sequence((any_pattern(between), free))] if between else []
    return options if high is None else options + _with_fractions(high.whole, _ZERO, high, shape)


def _with_fractions(whole: int, low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return the numbers with this whole part whose fraction is between the edges; None: below 1."""
    tails = _fractions(low, high, shape)
    options = [*_no_digits(low, high), *([Sequence((Literal("."), any_pattern(tails)))] if tails else [])]
    return [Sequence((Literal(str(whole)), any_pattern(options)))] if options else []


def _fractions(low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return nodes for the digits after the point, between the edges."""
    most = shape.places or MAX_INTEGER_DIGITS
    if shape.parts is None:
        return _tails(low, high, most, most)
    # Quarters are 25, 5, 75 and nothing, all with zeros up to two places. "25" comes before "5", as in a dictionary.
    all_parts = [format(Decimal(part) / shape.parts, "f").partition(".")[2] for part in range(shape.parts)]
    above = [part for part in all_parts if part > low.digits or (part == low.digits and not low.open)]
    within = [part for part in above if high is None or part < high.digits or (part == high.digits and not high.open)]
    room = [(part or "0", most - len(part or "0")) for part in within]
    zeros = Chars((("0", "0"),), minimum=0)
    return [in_sequence(Literal(part), *([replace(zeros, maximum=more)] if more else [])) for part, more in room]


def _no_digits(low: _Edge, high: _Edge | None) -> list[Node]:
    """Return the empty text if no digit, which is as good as zeros, is between the edges."""
    within = not low.digits and not low.open and (high is None or high.digits or not high.open)
    return [Literal("")] if within else []


def _tails(low: _Edge, high: _Edge | None, room: int, most: int) -> list[Node]:
    """Return nodes for one to `room` digits after the point, between the edges."""
    if room == 0:
        return []
    if high is not None and not high.digits:
        return [Chars((("0", "0"),), minimum=1, maximum=room)] if _no_digits(low, high) else []
    if high is None and not low.digits:
        return [_not_zero(room, most) if low.open else _digits(1, room)]
    # From .25 to .7: a 2 and digits from 5 on, one of 3 to 6 and any digits, or a 7 and nothing but zeros.
    first, last = int(low.digits[:1] or "0"), 10 if high is None else int(high.digits[0])
    if high is not None and first == last:
        return _after(first, low.rest, high.rest, room, most)
    tails = _after(first, low.rest, None, room, most)
    if first + 1 < last:
        tails.append(in_sequence(Chars(((str(first + 1), str(last - 1)),)), _digits(0, room - 1)))
    return tails if high is None else tails + _after(last, _ZERO, high.rest, room, most)


def _after(digit: int, low: _Edge, high: _Edge | None, room: int, most: int) -> list[Node]:
    """Return `digit` and what may follow it, where the edges are those of the digits after it."""
    further = [*_no_digits(low, high), *_tails(low, high, room - 1, most)]
    return [in_sequence(Literal(str(digit)), any_pattern(further))] if further else []
