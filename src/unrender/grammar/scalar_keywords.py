"""The keywords of strings, numbers, booleans and null → their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import ceil, floor, lcm

from unrender.errors import GrammarError
from unrender.grammar import shapes
from unrender.grammar.admission import matches
from unrender.grammar.integers import multiples
from unrender.grammar.nodes import Chars, Node, Repeat, Sequence
from unrender.grammar.places import Context, Excluded, Place, Places, bounds_of, size_of
from unrender.grammar.regex import UnsupportedPattern, read_pattern
from unrender.grammar.shapes import Nothing, Shape, Text, union
from unrender.grammar.strings import ANNOTATING_FORMATS, format_node


def read_null(_places: Places, excluded: Excluded, _context: Context) -> Shape:
    """Return the shape of null."""
    return Nothing() if "null" in excluded.values else shapes.Null()


def read_boolean(_places: Places, excluded: Excluded, _context: Context) -> Shape:
    """Return the shape of the booleans that are allowed."""
    kept = [shapes.Constant(word) for word in ("true", "false") if word not in excluded.values]
    return shapes.Boolean() if len(kept) == 2 else union(list[Shape](kept))


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: Decimal | None
    high: Decimal | None
    open_low: bool
    open_high: bool


def _bounds(places: Places) -> _Bounds:
    """Return the tightest numeric bounds; the old boolean `exclusiveMinimum` is understood."""
    lows: list[tuple[Decimal, bool]] = []
    highs: list[tuple[Decimal, bool]] = []
    for sign, edges, inclusive, exclusive in (
        (1, lows, "minimum", "exclusiveMinimum"),
        (-1, highs, "maximum", "exclusiveMaximum"),
    ):
        for place, value in bounds_of(places, inclusive, float):
            edges.append((sign * _decimal(place, value), place.get(exclusive) is True))
        for place, value in bounds_of(places, exclusive, float):
            if not isinstance(value, bool):
                edges.append((sign * _decimal(place, value), True))
    low, open_low = max(lows, default=(None, False))
    high, open_high = max(highs, default=(None, False))
    return _Bounds(low, None if high is None else -high, open_low, open_high)


def _decimal(place: Place, value: float) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise GrammarError(f"{place.path}: expected a number, found {value!r}") from None


def read_integer(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the whole numbers that are allowed."""
    bounds = _bounds(places)
    low = None if bounds.low is None else ceil(bounds.low) + (bounds.open_low and bounds.low % 1 == 0)
    high = None if bounds.high is None else floor(bounds.high) - (bounds.open_high and bounds.high % 1 == 0)
    step = 1
    for place, value in bounds_of(places, "multipleOf", float):
        if value == int(value) and value > 0:
            step = lcm(step, int(value))
        elif (Decimal(1) / _decimal(place, value)) % 1 != 0:
            context.report(place.path, "multipleOf", "only whole steps can be counted")
    if low is not None and high is not None and -(-low // step) * step > high:
        return Nothing()
    _report_values(places, excluded, context, "number")
    shape = shapes.Integer(minimum=low, maximum=high, multiple=step)
    if context.longest is not None and step > 1 and multiples(shape) is None:
        for place, _ in bounds_of(places, "multipleOf", float):
            context.report(place.path, "multipleOf", "large steps, and steps between distant bounds, are not counted")
    return shape


def read_number(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the numbers that are allowed."""
    bounds = _bounds(places)
    limits: list[int] = []
    for place, value in bounds_of(places, "multipleOf", float):
        if value == 1:
            return read_integer(tuple(p.without("type") for p in places), excluded, context)
        step = _decimal(place, value).normalize()
        exponent = step.as_tuple().exponent
        if step.as_tuple().digits == (1,) and isinstance(exponent, int) and exponent < 0:
            limits.append(-exponent)
        else:
            context.report(place.path, "multipleOf", "only steps of 1, 0.1, 0.01 … can be counted")
    low, high = bounds.low, bounds.high
    if low is not None and high is not None and (low > high or (low == high and (bounds.open_low or bounds.open_high))):
        return Nothing()
    _report_values(places, excluded, context, "number")
    return shapes.Number(
        minimum=low,
        maximum=high,
        exclusive_minimum=bounds.open_low,
        exclusive_maximum=bounds.open_high,
        places=min(limits, default=None),
    )


def _report_values(places: Places, excluded: Excluded, context: Context, kind: str) -> None:
    if places and excluded.values - {"null", "true", "false"}:
        context.report(places[0].path, "not", f"single values cannot be excluded from a {kind}")


def read_text(places: Places, excluded: Excluded, context: Context) -> Shape:
    """Return the shape of the strings that are allowed."""
    least, most = size_of(places, "minLength", "maxLength", context)
    if most is not None and least > most:
        return Nothing()
    sources = [(place, keyword, node) for place in places for keyword, node in _text_nodes(place, context)]
    for place, keyword, _ in sources[1:]:
        context.report(place.path, keyword, "another pattern or format holds for the same string")
    shape = Text(minimum=least, maximum=most, excluded=frozenset(excluded.words))
    return _with_pattern(shape, sources[0][2], places, context) if sources else shape


def _text_nodes(place: Place, context: Context) -> Iterable[tuple[str, Node]]:
    pattern, name = place.get("pattern"), place.get("format")
    if pattern is not None:
        try:
            yield "pattern", read_pattern(str(pattern))
        except UnsupportedPattern as reason:
            context.report(place.path, "pattern", f"{reason} cannot be written in a grammar")
        except GrammarError as error:
            raise GrammarError(f"{place.path}/pattern: {error}") from None
    if name is not None and name not in ANNOTATING_FORMATS:
        node = format_node(str(name))
        if node is None:
            context.report(place.path, "format", f"{name!r} is not a known format")
        else:
            yield "format", node


def _with_pattern(shape: Text, pattern: Node, places: Places, context: Context) -> Text:
    """Return the shape with a pattern; lengths are merged into it where it is one repeated class."""
    excluded = shape.excluded
    if excluded:
        context.report(places[0].path, "not", "single values cannot be excluded from a pattern")
    if shape.minimum == 0 and shape.maximum is None:
        return Text(pattern=pattern)
    merged = _bounded(pattern, shape.minimum, shape.maximum)
    if merged is not None:
        return Text(pattern=merged)
    for place in places:
        for keyword in ("minLength", "maxLength"):
            if (place.get(keyword) is not None and not (keyword == "minLength" and not matches(pattern, ""))) or (
                place.get(keyword) is not None and place.get(keyword) > 1
            ):
                context.report(place.path, keyword, "a pattern or format holds for the same string")
    return Text(pattern=pattern)


def _bounded(pattern: Node, minimum: int, maximum: int | None) -> Node | None:
    node = pattern.parts[0] if isinstance(pattern, Sequence) and len(pattern.parts) == 1 else pattern
    if not isinstance(node, Repeat) or not isinstance(node.node, Chars):
        return None
    least = max(node.minimum, minimum)
    ends = [end for end in (node.maximum, maximum) if end is not None]
    most = min(ends, default=None)
    return replace(node, minimum=least, maximum=most) if most is None or least <= most else None
