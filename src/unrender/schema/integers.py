"""Writes numeric bounds as nodes that generate exactly the numbers between them.

Strategy: a range of integers is split by number of digits, and then digit by digit. For example 87 to 345 is 87 to 99 and 100 to 345. The
second part is 1 or 2 followed by any two digits, or 3 followed by 00 to 45. A range of decimals consists of integers with any fraction,
plus the allowed fractions at each end. Multiples are written as an automaton, in which a state is the remainder of the digits so far.
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
"""Maximum number of values that are listed one by one: multiples in a range, or fractions between two integers."""
_BYTES = 150
"""Estimated memory of one node of a range, in bytes."""
_NONZERO = Chars((("1", "9"),))
_MINUS = Optional(Literal("-"))


def integer_node(minimum: int | None, maximum: int | None) -> Node:
    """Return the node of all integers from `minimum` to `maximum`, without `-0` and leading zeros."""
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
    """Return nodes for the numbers from `low` to `high`, split by number of digits."""
    if high is not None and high < low:
        return []
    width = len(str(low))
    if high is None:
        # The number of digits is limited, since a model that may always write another digit might never stop.
        most = max(MAX_INTEGER_DIGITS, width + 1)
        longer = Sequence((_NONZERO, _digits(width if low else 0, most - 1)))
        return [_same_length(str(low), "9" * width) if low else Literal("0"), longer]
    # 7 to 1234 is split into 7 to 9, 10 to 99, 100 to 999 and 1000 to 1234.
    options: list[Node] = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        options.append(_same_length(str(low), str(end)))
        low = end + 1
    return options


def _same_length(low: str, high: str) -> Node:
    """Return the node of the digit strings from `low` to `high`, which have the same length."""
    if low == high:
        return Literal(low)
    if low[0] == high[0]:
        return Sequence((Literal(low[0]), _same_length(low[1:], high[1:])))
    options: list[Node] = []
    first, last = ord(low[0]), ord(high[0])
    width = len(low) - 1
    # The first digit of 234 needs a range of its own, 234 to 299. The first digit of 200 doesn't need one, since 200 to 299 is complete.
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
    """A node for numbers, and the rules that it refers to."""

    node: Node
    rules: dict[str, Node]


def multiples(shape: Integer) -> Numbers | None:
    """Return the multiples of `shape.multiple` within its bounds; None if a grammar can't express them."""
    # Bounds outside the supported number of digits are ignored.
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
    """Return an automaton for multiples of `step`. A state is the remainder of the digits read so far."""
    names = [f"multiple-of-{step}-{remainder}" for remainder in range(step)]
    rules: dict[str, Node] = {}
    for remainder, name in enumerate(names):
        # Another digit turns n into 10 n + d. For multiples of 7: after 15 (remainder 1), a 4 leads to 154 (remainder 0).
        digits = [Sequence((Literal(str(d)), Ref(names[(remainder * 10 + d) % step]))) for d in range(10)]
        rules[name] = Choice((*digits, *([] if remainder else [Literal("")])))
    # Leading zeros and `-0` aren't generated.
    start = any_pattern([Sequence((Literal(str(d)), Ref(names[d % step]))) for d in range(1, 10)])
    options = [Literal("0")] if zero else []
    signed: Node = Sequence((Optional(Literal("-")), start)) if negative else start
    return Numbers(Choice((*options, signed)), rules)


@kept(lambda numbers: _BYTES * sum(1 for node in (numbers.node, *numbers.rules.values()) for _ in walk(node)))
def numeric(shape: Integer | Number) -> Numbers:
    """Return the node of all numbers of a shape, and the rules that it refers to."""
    if isinstance(shape, Number):
        return Numbers(number_node(shape), {})
    counted = multiples(shape) if shape.multiple > 1 else None
    return counted or Numbers(integer_node(shape.minimum, shape.maximum), {})


def number_node(shape: Number) -> Node:
    """Return the node of all numbers within the bounds. If there are bounds, exponents aren't generated."""
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
        # -2.5 to 1 is a minus sign followed by 0 to 2.5, without 0, since `-0` isn't generated.
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
    """Return up to `digits` digits, not all zero. If `most` is the default, a few more are allowed, for a smaller grammar."""
    if most >= MAX_INTEGER_DIGITS:
        return Sequence((Chars((("0", "0"),), minimum=0, maximum=digits - 1), _NONZERO, _digits(0, digits - 1)))
    # For three digits: 1-9 and up to two digits; 0, 1-9 and up to one digit; or 00 and 1-9.
    zeros = [(Literal("0" * count),) if count else () for count in range(digits)]
    return any_pattern([Sequence((*before, _NONZERO, _digits(0, digits - at - 1))) for at, before in enumerate(zeros)])


class _Edge(NamedTuple):
    """One end of a range of absolute values: its integer part, the digits after the decimal point, and whether the end is excluded."""

    whole: int
    digits: str
    open: bool

    @classmethod
    def at(cls, value: Decimal, *, is_open: bool) -> _Edge:
        return cls(int(value), format(value, "f").partition(".")[2].rstrip("0"), is_open)

    @property
    def rest(self) -> _Edge:
        """The edge without its first fractional digit."""
        return self._replace(digits=self.digits[1:])


_ZERO = _Edge(0, "", open=False)


def _magnitudes(low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return nodes for the non-negative numbers from `low` to `high`: at the edges, and between them."""
    if high is not None and high.whole <= low.whole:
        return _with_fractions(low.whole, low, high, shape) if high.whole == low.whole else []
    # 1.25 to 3.5 is 1 with fractions from .25, 2 with any fraction, and 3 with fractions up to .5.
    options = _with_fractions(low.whole, low, None, shape)
    between = _natural(low.whole + 1, None if high is None else high.whole - 1)
    free = Optional(Sequence((Literal("."), any_pattern(_fractions(_ZERO, None, shape)))))
    options += [Sequence((any_pattern(between), free))] if between else []
    return options if high is None else options + _with_fractions(high.whole, _ZERO, high, shape)


def _with_fractions(whole: int, low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return the numbers with this integer part and a fraction between the edges. If `high` is None, the upper edge is 1."""
    tails = _fractions(low, high, shape)
    options = [*_no_digits(low, high), *([Sequence((Literal("."), any_pattern(tails)))] if tails else [])]
    return [Sequence((Literal(str(whole)), any_pattern(options)))] if options else []


def _fractions(low: _Edge, high: _Edge | None, shape: Number) -> list[Node]:
    """Return nodes for the digits after the decimal point, between the edges."""
    most = shape.places or MAX_INTEGER_DIGITS
    if shape.parts is None:
        return _tails(low, high, most, most)
    # Quarters are 25, 5, 75 and no digits, padded with zeros to at most two places. "25" sorts before "5", as in a dictionary.
    all_parts = [format(Decimal(part) / shape.parts, "f").partition(".")[2] for part in range(shape.parts)]
    above = [part for part in all_parts if part > low.digits or (part == low.digits and not low.open)]
    within = [part for part in above if high is None or part < high.digits or (part == high.digits and not high.open)]
    room = [(part or "0", most - len(part or "0")) for part in within]
    zeros = Chars((("0", "0"),), minimum=0)
    return [in_sequence(Literal(part), *([replace(zeros, maximum=more)] if more else [])) for part, more in room]


def _no_digits(low: _Edge, high: _Edge | None) -> list[Node]:
    """Return the empty text if a fraction without digits, which equals 0, is between the edges."""
    within = not low.digits and not low.open and (high is None or high.digits or not high.open)
    return [Literal("")] if within else []


def _tails(low: _Edge, high: _Edge | None, room: int, most: int) -> list[Node]:
    """Return nodes for one to `room` digits after the decimal point, between the edges."""
    if room == 0:
        return []
    if high is not None and not high.digits:
        return [Chars((("0", "0"),), minimum=1, maximum=room)] if _no_digits(low, high) else []
    if high is None and not low.digits:
        return [_not_zero(room, most) if low.open else _digits(1, room)]
    # From .25 to .7: a 2 and digits from 5, a digit from 3 to 6 and any digits, or a 7 and zeros.
    first, last = int(low.digits[:1] or "0"), 10 if high is None else int(high.digits[0])
    if high is not None and first == last:
        return _after(first, low.rest, high.rest, room, most)
    tails = _after(first, low.rest, None, room, most)
    if first + 1 < last:
        tails.append(in_sequence(Chars(((str(first + 1), str(last - 1)),)), _digits(0, room - 1)))
    return tails if high is None else tails + _after(last, _ZERO, high.rest, room, most)


def _after(digit: int, low: _Edge, high: _Edge | None, room: int, most: int) -> list[Node]:
    """Return `digit` and the digits that may follow it, bounded by `low` and `high`."""
    further = [*_no_digits(low, high), *_tails(low, high, room - 1, most)]
    return [in_sequence(Literal(str(digit)), any_pattern(further))] if further else []
