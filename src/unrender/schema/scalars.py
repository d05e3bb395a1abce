"""Reads the keywords of strings, numbers, booleans and null into their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import ceil, floor, gcd, lcm

from unrender.errors import GrammarError
from unrender.limits import MAX_EXCLUDED_WORD, MAX_PARTS, MAX_SCHEMA_DIGITS, MAX_STATES
from unrender.nodes import Chars, Node, Repeat, Sequence
from unrender.nodes.patterns import UnsupportedPattern, lengths, narrowed, read_pattern
from unrender.nodes.texts import ANNOTATING_FORMATS, format_node
from unrender.schema.admission import within_bounds
from unrender.schema.integers import ENUMERABLE, multiples
from unrender.schema.places import (
    Excluded,
    KeywordContext,
    Place,
    Places,
    bounds_of,
    pointer,
    size_of,
    value_in_words,
    wrong,
)
from unrender.schema.shapes import Boolean, Constant, Integer, Nothing, Null, Number, Shape, Text, union


def read_null(_places: Places, excluded: Excluded, _context: KeywordContext) -> Shape:
    """Return the shape of null; `Nothing` if null is excluded."""
    return Nothing() if "null" in excluded.values else Null()


def read_boolean(_places: Places, excluded: Excluded, _context: KeywordContext) -> Shape:
    """Return the shape of the allowed booleans."""
    kept = [Constant(word) for word in ("true", "false") if word not in excluded.values]
    return Boolean() if len(kept) == 2 else union(list[Shape](kept))


_HUGE = 10**MAX_SCHEMA_DIGITS


def _bounds(places: Places, context: KeywordContext) -> Number:
    """Return the most restrictive bounds. Supports boolean `exclusiveMinimum` (draft 4)."""
    # "More than 3" is more restrictive than "3 or more". True sorts after False, so the flag is inverted for upper bounds.
    low, open_low = max(_edges(places, "minimum", -1, context), default=(None, False))
    highs = [(edge, not is_open) for edge, is_open in _edges(places, "maximum", 1, context)]
    high, closed_high = min(highs, default=(None, True))
    return Number(minimum=low, maximum=high, exclusive_minimum=open_low, exclusive_maximum=not closed_high)


def _is_empty(shape: Number) -> bool:
    """Return True if no number is within the bounds."""
    if shape.minimum is None or shape.maximum is None:
        return False
    is_open = shape.exclusive_minimum or shape.exclusive_maximum
    return shape.minimum > shape.maximum or (shape.minimum == shape.maximum and is_open)


def _edges(places: Places, inclusive: str, outward: int, context: KeywordContext) -> Iterable[tuple[Decimal, bool]]:
    """Yield the lower or the upper bounds, each with True if it's exclusive. `outward` is 1 for upper bounds and -1 for lower bounds."""
    exclusive = f"exclusive{inclusive.capitalize()}"
    numeric = tuple(place for place in places if not isinstance(place.get(exclusive), bool))
    for keyword, found in ((inclusive, bounds_of(places, inclusive)), (exclusive, bounds_of(numeric, exclusive))):
        for place, value in found:
            # In draft 4, an exclusive bound is written as `{"minimum": 3, "exclusiveMinimum": true}`.
            if abs(value) < _HUGE:
                yield Decimal(str(value)), keyword == exclusive or place.get(exclusive) is True
            elif (value > 0) == (outward > 0):
                context.report(place.path, keyword, f"numbers of more than {MAX_SCHEMA_DIGITS} digits are not compared")
            else:
                raise GrammarError(
                    f"{pointer(place.path)}/{keyword}: expected a number of at most {MAX_SCHEMA_DIGITS} digits, found {value_in_words(value)}"
                )


def read_integer(places: Places, excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the allowed integers."""
    bounds = _bounds(places, context)
    # Integers above 2.5 start at 3. An exclusive integer bound is changed by one: more than 3 becomes at least 4.
    bottom, top = bounds.minimum, bounds.maximum
    low = None if bottom is None else ceil(bottom) + (bounds.exclusive_minimum and ceil(bottom) == bottom)
    high = None if top is None else floor(top) - (bounds.exclusive_maximum and floor(top) == top)
    step = 1
    for place, value in _steps(places):
        # An integer is a multiple of p/q (in lowest terms) if it's a multiple of p.
        whole = lcm(step, value.numerator)
        if whole <= MAX_STATES:
            step = whole
        else:
            context.report(place.path, "multipleOf", f"multiples of more than {MAX_STATES} are not supported")
    if low is not None and high is not None and -(-low // step) * step > high:
        return Nothing()
    values = [int(value) for value in _forbidden(places, excluded, context) if value == int(value)]
    pieces = _around(Integer(minimum=low, maximum=high, multiple=step), values)
    uncounted = context.longest is not None and step > 1 and any(multiples(piece) is None for piece in pieces)
    for place, _ in _steps(places) if uncounted else ():
        context.report(
            place.path, "multipleOf", "large multiples, and multiples within a large range, are not supported"
        )
    return union(list[Shape](pieces))


def _around(shape: Integer, values: list[int]) -> list[Integer]:
    """Return the integers of `shape` except `values`, as a list of ranges."""
    if not values:
        return [shape]
    # For example, 1 to 9 without 4 is 1 to 3 and 5 to 9.
    pieces: list[Integer] = []
    low, step = shape.minimum, shape.multiple
    most = shape.maximum
    inside = [value for value in values if (low is None or value >= low) and (most is None or value <= most)]
    for value in (*inside, None):
        high = most if value is None else value - 1
        if low is None or high is None or -(-low // step) * step <= high:
            pieces.append(replace(shape, minimum=low, maximum=high))
        low = None if value is None else value + 1
    return pieces


def _steps(places: Places) -> list[tuple[Place, Fraction]]:
    found = bounds_of(places, "multipleOf")
    for place, value in found:
        if value <= 0:
            raise wrong(f"{place.path}/multipleOf", "a positive number", value)
    return [(place, Fraction(str(value))) for place, value in found]


def read_number(places: Places, excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the allowed numbers."""
    steps = _steps(places)
    # A multiple of an integer is an integer.
    if any(step.denominator == 1 for _, step in steps):
        return read_integer(places, excluded, context)
    parts = 0
    for place, step in steps:
        # Numbers that are multiples of both 1/4 and 1/10 are multiples of 1/2.
        finer = gcd(parts, step.denominator)
        if step.numerator == 1 and (finer <= ENUMERABLE or step.denominator == 10 ** _digits(finer)):
            parts = finer
        else:
            context.report(
                place.path, "multipleOf", "the only supported fractions are 0.1, 0.01 … and others that divide 1"
            )
    if parts == 1:
        return read_integer(places, excluded, context)
    shape = _bounds(places, context)
    shape = _in_parts(shape, parts) if parts else shape
    if "integer" in excluded.types:
        if shape.minimum is shape.maximum is None and not excluded.values:
            return replace(shape, fractional=True)
        context.report(places[0].path, "not", "integers cannot be excluded from a bounded number")
    pieces = _beside(shape, _forbidden(places, excluded, context))
    counted = [_in_parts(piece, parts) for piece in pieces] if parts else pieces
    return union([piece for piece in counted if not _is_empty(piece)])


def _digits(parts: int) -> int:
    """Return the number of decimal places that multiples of `1 / parts` need."""
    return next(digits for digits in count() if 10**digits % parts == 0)


def _in_parts(shape: Number, parts: int) -> Number:
    """Return the multiples of `1 / parts` within the bounds. Each bound is moved inwards to an allowed number."""
    # With two decimal places, numbers above 0.125 start at 0.13, and numbers above 0.5 start at 0.51.
    places = _digits(parts)
    low, high = (None if bound is None else Fraction(bound) * parts for bound in (shape.minimum, shape.maximum))
    first = None if low is None else floor(low) + 1 if shape.exclusive_minimum else ceil(low)
    last = None if high is None else ceil(high) - 1 if shape.exclusive_maximum else floor(high)
    bottom, top = (None if count is None else _decimal(count, parts, places) for count in (first, last))
    uneven = None if parts == 10**places else parts
    return Number(minimum=bottom, maximum=top, places=places, parts=uneven, fractional=shape.fractional)


def _decimal(count: int, parts: int, places: int) -> Decimal:
    # With one decimal place, 5 halves are 25 tenths, and 4 halves are the integer 2.
    return Decimal(f"{count * 10**places // parts}e-{places}") if count % parts else Decimal(count // parts)


def _beside(shape: Number, values: list[Decimal]) -> list[Number]:
    """Return the numbers of `shape` except `values`, as a list of ranges."""
    # For example, 0 to 1 without 0.5 consists of two ranges: from 0 to below 0.5, and from above 0.5 to 1.
    pieces: list[Number] = []
    for value in values:
        if within_bounds(shape, value):
            pieces.append(replace(shape, maximum=value, exclusive_maximum=True))
            shape = replace(shape, minimum=value, exclusive_minimum=True)
    return [*pieces, shape]


def _forbidden(places: Places, excluded: Excluded, context: KeywordContext) -> list[Decimal]:
    """Return the single numbers that `not` excludes, sorted."""
    texts = [text for text in excluded.values if text[0] in "-0123456789"]
    if len(texts) > MAX_PARTS or any(len(text) > MAX_SCHEMA_DIGITS for text in texts):
        context.report(
            places[0].path,
            "not",
            f"at most {MAX_PARTS} numbers can be excluded, with at most {MAX_SCHEMA_DIGITS} characters each",
        )
        return []
    return sorted(map(Decimal, texts))


def read_text(places: Places, excluded: Excluded, context: KeywordContext) -> Shape:
    """Return the shape of the allowed strings."""
    least, most = size_of(places, "minLength", "maxLength", context)
    if most is not None and (least > most or (most == 0 and "" in excluded.words)):
        return Nothing()
    for place in places if any(len(word) > MAX_EXCLUDED_WORD for word in excluded.words) else ():
        context.report(place.path, "not", f"strings of more than {MAX_EXCLUDED_WORD} characters cannot be excluded")
    sources = [(place, keyword, node) for place in places for keyword, node in _text_nodes(place, context)]
    for place, keyword, _ in sources[1:]:
        context.report(place.path, keyword, "only one pattern or format per string is supported")
    words = frozenset(word for word in excluded.words if least <= len(word) and (most is None or len(word) <= most))
    shape = Text(minimum=least, maximum=most, excluded=words)
    return _with_pattern(shape, sources[0][2], places, context) if sources else shape


def _text_nodes(place: Place, context: KeywordContext) -> Iterable[tuple[str, Node]]:
    pattern, name = place.get("pattern"), place.get("format")
    if pattern is not None and not isinstance(pattern, str):
        raise wrong(f"{place.path}/pattern", "a string", pattern)
    if pattern is not None:
        try:
            yield "pattern", read_pattern(pattern)
        except UnsupportedPattern as reason:
            context.report(place.path, "pattern", f"{reason} cannot be written in a grammar")
        except GrammarError as error:
            raise GrammarError(f"{pointer(place.path)}/pattern: {error}") from None
    if name is not None and not (isinstance(name, str) and name in ANNOTATING_FORMATS):
        node = format_node(name) if isinstance(name, str) else None
        if node is None:
            context.report(place.path, "format", f"{value_in_words(name)} is not a known format")
        else:
            yield "format", node


def _with_pattern(shape: Text, pattern: Node, places: Places, context: KeywordContext) -> Text:
    """Return `shape` with a pattern. Its length limits are merged into the pattern if that is possible."""
    excluded = shape.excluded
    if excluded:
        context.report(places[0].path, "not", "single values cannot be excluded from a pattern")
    if shape.minimum == 0 and shape.maximum is None:
        return Text(pattern=pattern)
    merged = _bounded(pattern, shape.minimum, shape.maximum)
    if merged is not None:
        return Text(pattern=merged)
    # The combination of a pattern and a length has no small grammar. So for `^a*b*$` with `maxLength: 9`, each letter may repeat nine
    # times. The result accepts longer strings, but their length is bounded.
    if shape.maximum is not None and lengths(pattern)[0] <= shape.maximum:
        pattern = narrowed(pattern, shape.maximum)
    least, most = lengths(pattern)
    for place in places:
        for keyword in ("minLength", "maxLength"):
            said = place.get(keyword)
            if said is not None and (said > least if keyword == "minLength" else most is None or most > said):
                context.report(place.path, keyword, "not supported together with this pattern or format")
    return Text(pattern=pattern)


def _bounded(pattern: Node, minimum: int, maximum: int | None) -> Node | None:
    # `^[a-z]+$` with `maxLength: 5` becomes `[a-z]{1,5}`. Lengths can't be merged into other patterns.
    node = pattern.parts[0] if isinstance(pattern, Sequence) and len(pattern.parts) == 1 else pattern
    if not isinstance(node, Repeat) or not isinstance(node.node, Chars):
        return None
    least = max(node.minimum, minimum)
    ends = [end for end in (node.maximum, maximum) if end is not None]
    most = min(ends, default=None)
    return replace(node, minimum=least, maximum=most) if most is None or least <= most else None
