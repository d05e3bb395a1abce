"""Writes numeric bounds as nodes that generate exactly the numbers between them.

Strategy: a range of whole numbers is cut where the number of digits changes, and then digit by digit. 87 to 345 is
87 to 99 and 100 to 345. The second part is 1 or 2 before two free digits, then 3 before 00 to 45.
A range of decimal numbers is whole numbers with free fractions, and at each end the fractions that reach the bound.
Multiples are an automaton: its states are the remainders of the digits so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from unrender.limits import LARGEST_MODULUS, MAX_INTEGER_DIGITS
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Sequence
from unrender.nodes.patterns import any_pattern
from unrender.schema.shapes import Integer, Number

_ENUMERABLE = 256
"""A range with at most this many multiples is written out."""
_NONZERO = Chars((("1", "9"),))


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
        raise ValueError(f"no whole number between {minimum} and {maximum}")
    return any_pattern(options)


def _natural(low: int, high: int | None) -> list[Node]:
    """Return nodes for the numbers from `low` to `high`, cut by the number of digits."""
    if high is not None and high < low:
        return []
    if high is None:
        return _unbounded(low)
    options: list[Node] = []
    while low <= high:
        end = min(high, 10 ** len(str(low)) - 1)
        options.append(_same_length(str(low), str(end)))
        low = end + 1
    return options


def _unbounded(low: int) -> list[Node]:
    most = max(MAX_INTEGER_DIGITS, len(str(low)) + 1)
    if low == 0:
        return [Literal("0"), Sequence((_NONZERO, _digits(0, most - 1)))]
    width = len(str(low))
    same = _same_length(str(low), "9" * width)
    return [same, Sequence((_NONZERO, _digits(width, most - 1)))]


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
        options.append(_sequence(Chars(((chr(first), chr(last)),)), _digits(width, width)))
    if partial:
        options.append(Sequence((Literal(high[0]), _same_length("0" * width, high[1:]))))
    return any_pattern(options)


def _digits(minimum: int, maximum: int | None) -> Node:
    return Chars((("0", "9"),), minimum=minimum, maximum=maximum) if maximum != 0 else Literal("")


def _sequence(first: Node, second: Node) -> Node:
    return first if second == Literal("") else Sequence((first, second))


@dataclass(frozen=True, slots=True)
class MultipleRules:
    """A node and the rules it refers to."""

    node: Node
    rules: dict[str, Node]


def multiples(shape: Integer) -> MultipleRules | None:
    """Return the multiples of `shape.multiple` within its bounds; None when a grammar cannot express them."""
    step, most = shape.multiple, 10**MAX_INTEGER_DIGITS - 1
    low = None if shape.minimum is not None and shape.minimum <= -most else shape.minimum
    high = None if shape.maximum is not None and shape.maximum >= most else shape.maximum
    if low is not None and high is not None and (high - low) // step < _ENUMERABLE:
        values = range(-(-low // step) * step, high + 1, step)
        return MultipleRules(any_pattern([Literal(str(value)) for value in values]), {}) if values else None
    if step > LARGEST_MODULUS or high is not None or low not in (None, 0, 1):
        return None
    return _remainders(step, zero=low != 1, negative=low is None)


def _remainders(step: int, *, zero: bool, negative: bool) -> MultipleRules:
    """Return the automaton whose states are the remainders of the digits read so far."""
    names = [f"multiple-of-{step}-{remainder}" for remainder in range(step)]
    rules = {name: _continued(step, remainder, names) for remainder, name in enumerate(names)}
    start = any_pattern([Sequence((Literal(str(d)), Ref(names[d % step]))) for d in range(1, 10)])
    options = [Literal("0")] if zero else []
    signed: Node = Sequence((Optional(Literal("-")), start)) if negative else start
    return MultipleRules(Choice((*options, signed)), rules)


def _continued(step: int, remainder: int, names: list[str]) -> Node:
    # A digit more makes n into 10 n + d: for multiples of 7, after 15 (remainder 1), a 4 leads to 154 (remainder 0).
    digits = [Sequence((Literal(str(d)), Ref(names[(remainder * 10 + d) % step]))) for d in range(10)]
    return Choice((*digits, *([Literal("")] if remainder == 0 else [])))


def numeric(shape: Integer | Number) -> MultipleRules:
    """Return the node of all numbers of a shape, and the rules it refers to."""
    if isinstance(shape, Number):
        return MultipleRules(number_node(shape), {})
    counted = multiples(shape) if shape.multiple > 1 else None
    return counted or MultipleRules(integer_node(shape.minimum, shape.maximum), {})


def number_node(shape: Number) -> Node:
    """Return the node of all numbers that obey the bounds. With bounds, it has no exponents."""
    if shape.fractional:
        return _fractional(shape.places or MAX_INTEGER_DIGITS)
    if shape.minimum is None and shape.maximum is None:
        return _free_number(shape.places)
    options: list[Node] = []
    zero = Decimal(0)
    if shape.maximum is None or shape.maximum >= 0:
        options += _magnitudes(
            _Edge(max(shape.minimum or zero, zero), open=shape.exclusive_minimum and (shape.minimum or zero) >= 0),
            None if shape.maximum is None else _Edge(shape.maximum, open=shape.exclusive_maximum),
            shape.places,
        )
    if shape.minimum is None or shape.minimum < 0:
        above = zero if shape.maximum is None else max(-shape.maximum, zero)
        low = _Edge(above, open=above == 0 or shape.exclusive_maximum)
        high = None if shape.minimum is None else _Edge(-shape.minimum, open=shape.exclusive_minimum)
        options += [Sequence((Literal("-"), option)) for option in _magnitudes(low, high, shape.places)]
    if not options:
        raise ValueError(f"no number between {shape.minimum} and {shape.maximum}")
    return any_pattern(options)


def _free_number(places: int | None) -> Node:
    whole = Choice((Literal("0"), Sequence((_NONZERO, _digits(0, MAX_INTEGER_DIGITS - 1)))))
    fraction = Optional(Sequence((Literal("."), _digits(1, places or MAX_INTEGER_DIGITS))))
    exponent = Optional(
        Sequence((Chars((("E", "E"), ("e", "e"))), Optional(Chars((("+", "+"), ("-", "-")))), _digits(1, 2)))
    )
    parts = (Optional(Literal("-")), whole, fraction)
    return Sequence(parts if places else (*parts, exponent))


def _fractional(places: int) -> Node:
    """Return the node of the numbers that are not whole: some digit after the point is not zero."""
    whole = Choice((Literal("0"), Sequence((_NONZERO, _digits(0, MAX_INTEGER_DIGITS - 1)))))
    return Sequence((Optional(Literal("-")), whole, Literal("."), _not_zero(places, places)))


def _not_zero(digits: int, most: int) -> Node:
    """Return up to `digits` digits that are not all zero; a few more where no schema asks for the `most` there may be."""
    if most >= MAX_INTEGER_DIGITS:
        return Sequence((Chars((("0", "0"),), minimum=0, maximum=digits - 1), _NONZERO, _digits(0, digits - 1)))
    zeros = [(Literal("0" * count),) if count else () for count in range(digits)]
    return any_pattern([Sequence((*before, _NONZERO, _digits(0, digits - at - 1))) for at, before in enumerate(zeros)])


@dataclass(frozen=True, slots=True)
class _Edge:
    """One end of a range of magnitudes."""

    value: Decimal
    open: bool

    @property
    def whole(self) -> int:
        return int(self.value)

    @property
    def fraction(self) -> str:
        """The digits after the point, without trailing zeros."""
        _, _, digits = format(self.value, "f").partition(".")
        return digits.rstrip("0")


def _magnitudes(low: _Edge, high: _Edge | None, places: int | None) -> list[Node]:
    """Return nodes for the numbers from `low` to `high`, neither negative: at the edges, and strictly between them."""
    if high is not None and (high.value < low.value or (high.value == low.value and (low.open or high.open))):
        return []
    most = places or MAX_INTEGER_DIGITS
    if high is not None and high.whole == low.whole:
        tail = _fraction_between(low, high, most)
        return [Sequence((Literal(str(low.whole)), tail))] if tail is not None else []
    first = _fraction_above(low, most)
    options: list[Node] = [] if first is None else [Sequence((Literal(str(low.whole)), first))]
    between = _natural(low.whole + 1, None if high is None else high.whole - 1)
    free = Optional(Sequence((Literal("."), _digits(1, most))))
    options += [Sequence((any_pattern(between), free))] if between else []
    last = None if high is None else _fraction_below(high, most)
    if high is not None and last is not None:
        options.append(Sequence((Literal(str(high.whole)), last)))
    return options


def _fraction_above(edge: _Edge, most: int) -> Node | None:
    """Return the fractions at or above the edge's own, from the point on."""
    digits = edge.fraction
    options: list[Node] = [Literal("")] if not digits and not edge.open else []
    # Above .25: a larger digit at some place, .3 to .9 or .26 to .29, and then any digits.
    tails = [
        Sequence((Literal(digits[:at]), Chars(((chr(ord(digit) + 1), "9"),)), _digits(0, most - at - 1)))
        for at, digit in enumerate(digits)
        if digit != "9" and at < most
    ]
    further = most - len(digits)
    if not edge.open and digits:
        tails.append(_sequence_of(digits, 0, further))
    elif further > 0:
        tails.append(Sequence((Literal(digits), _not_zero(further, most) if edge.open else _digits(1, further))))
    options += [Sequence((Literal("."), any_pattern([*tails])))] if tails else []
    return any_pattern(options) if options else None


def _sequence_of(digits: str, minimum: int, maximum: int) -> Sequence:
    return Sequence((Literal(digits), _digits(minimum, max(maximum, 0))))


def _fraction_below(edge: _Edge, most: int) -> Node | None:
    """Return the fractions that are no greater than the edge's own, point included; None where there is none."""
    digits = edge.fraction
    options: list[Node] = [Literal("")] if digits or not edge.open else []
    # Below .25: a smaller digit at some place, .0 to .1 or .20 to .24, or fewer digits, .2.
    tails: list[Node] = [
        Sequence((Literal(digits[:at]), Chars((("0", chr(ord(digit) - 1)),)), _digits(0, most - at - 1)))
        for at, digit in enumerate(digits)
        if digit != "0" and at < most
    ]
    tails += [Literal(digits[:at]) for at in range(1, len(digits))]
    if not edge.open:
        room = most - len(digits)
        zeros = Chars((("0", "0"),), minimum=0 if digits else 1, maximum=room) if room > 0 else Literal("")
        tails.append(_sequence(Literal(digits), zeros))
    options += [Sequence((Literal("."), any_pattern(tails)))] if tails else []
    return any_pattern(options) if options else None


def _fraction_between(low: _Edge, high: _Edge, most: int) -> Node | None:
    """Return the fractions from one edge to the other, both of the same whole number."""
    # Both fractions are cut to one width and compared as whole numbers: .2 to .75 is 20 to 75, and then any digits.
    width = min(max(len(low.fraction), len(high.fraction), 1), most)
    first = int(low.fraction.ljust(width, "0")[:width])
    last = int(high.fraction.ljust(width, "0")[:width])
    tails = [tail for short in range(1, width) for tail in _short_fractions(first, last, low, high, width, short)]
    free = _digits(0, most - width)
    if first + 1 <= last - 1:
        tails.append(_sequence(_padded(first + 1, last - 1, width), free))
    if first < last:
        tails += _at_first(str(first).rjust(width, "0"), most, low)
    if not high.open and (first < last or not low.open):
        tails.append(_padded(last, last, width))
    options: list[Node] = [Literal("")] if first == 0 and not low.open and (last > 0 or not high.open) else []
    options += [Sequence((Literal("."), any_pattern(tails)))] if tails else []
    return any_pattern(options) if options else None


def _short_fractions(first: int, last: int, low: _Edge, high: _Edge, width: int, short: int) -> list[Node]:
    """Return the fractions of only `short` digits."""
    unit = 10 ** (width - short)
    start = -(-(first + low.open) // unit)
    end = (last - high.open) // unit
    return [_padded(start, end, short)] if start <= end else []


def _at_first(digits: str, most: int, low: _Edge) -> list[Node]:
    """Return the fractions that begin with the lower edge's own digits."""
    further = most - len(digits)
    if not low.open:
        return [_sequence_of(digits, 0, further)]
    return [Sequence((Literal(digits), _not_zero(further, most)))] if further > 0 else []


def _padded(first: int, last: int, width: int) -> Node:
    return _same_length(str(first).rjust(width, "0"), str(last).rjust(width, "0"))
