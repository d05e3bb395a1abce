"""Lists the parts of a value that violate its schema, each with its path.

Rules: a value accepted by `admits` has no violations, and any other value has at least one. Keywords that grammars don't enforce
(`Reading.unsupported`) aren't checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any

from unrender.limits import MAX_LISTED, MAX_SHOWN
from unrender.schema import Reading, shapes
from unrender.schema.admission import Definitions, admits, as_json, kind_of, kinds_of, options_of, shapes_inside
from unrender.schema.shapes import Shape


def problems_of(reading: Reading, value: Any) -> tuple[str, ...]:
    """Return the violations of a schema by `value`, which is JSON data. Each violation starts with a path such as `$.city`.

    >>> from unrender.schema.reader import read_schema
    >>> reading = read_schema({"properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["day"]})
    >>> problems_of(reading, {"city": "Bonn"})
    ("$: expected a property 'day', found none", '$.city: expected one of ["Rome", "Oslo"], found "Bonn"')
    """
    return tuple(islice(_problems(reading.shape, value, "$", reading.definitions), MAX_LISTED))


def _problems(shape: Shape, value: Any, where: str, known: Definitions) -> Iterator[str]:
    # `admits` accepts values that are nested too deeply, so the recursion ends.
    if admits(shape, value, known):
        return
    options = [*options_of(shape, known)]
    alike = [option for option in options if isinstance(option, shapes.Constant) or kind_of(value) in _kinds(option)]
    # If several list or object shapes are allowed, it's unknown which of them was intended, so no details are reported.
    only = alike[0] if len(alike) == 1 else None
    problems: Iterator[str] = iter(())
    if isinstance(only, shapes.Object) and isinstance(value, Mapping):
        problems = _of_object(only, value, where, known)
    elif isinstance(only, shapes.Array) and isinstance(value, list):
        problems = _of_array(only, value, where, known)
    first = next(problems, f"{where}: expected {_expected(alike or options)}, found {_shown(value)}")
    yield first
    yield from problems


def _kinds(option: Shape) -> frozenset[str]:
    kinds = kinds_of(option, {})
    return kinds | {"integer"} if "number" in kinds else kinds


def _of_object(shape: shapes.Object, value: Mapping[str, Any], where: str, known: Definitions) -> Iterator[str]:
    named = {item.name: item for item in shape.properties}
    for item in shape.properties:
        if item.required and item.name not in value:
            yield f"{where}: expected a property {item.name!r}, found none"
    extra = [key for key in value if key not in named]
    yield from _count("further properties", shape.minimum, shape.maximum, len(extra), where)
    for key, inside in value.items():
        place = f"{where}.{key}" if key.isidentifier() else f"{where}[{as_json(key)}]"
        part = shapes_inside(shape, key, known)
        if isinstance(part, shapes.Nothing):
            yield f"{place}: expected one of the properties {[*named]}, found {key!r}"
        else:
            yield from _problems(part, inside, place, known)


def _of_array(shape: shapes.Array, value: Sequence[Any], where: str, known: Definitions) -> Iterator[str]:
    yield from _count("items", shape.minimum, shape.maximum, len(value), where)
    expected = chain(shape.prefix, repeat(shape.items))
    for i, (item, part) in enumerate(zip(value, expected, strict=False)):
        yield from _problems(part, item, f"{where}[{i}]", known)


def _count(what: str, low: int, high: int | None, count: int, where: str) -> Iterator[str]:
    if count < low or (high is not None and count > high):
        yield f"{where}: expected {_between(low, high)} {what}, found {count}"


def _between(low: Any, high: Any) -> str:
    """Return bounds as English text. At most one of the bounds is None.

    >>> _between(1, None), _between(None, 3), _between(1, 3)
    ('at least 1', 'at most 3', 'from 1 to 3')
    """
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None or low == 0 else f"from {low} to {high}"


def _expected(options: Sequence[Shape]) -> str:
    """Return an English description of the expected values."""
    constants = [option.value for option in options if isinstance(option, shapes.Constant)]
    words = [_words(option) for option in options if not isinstance(option, shapes.Constant)]
    if constants:
        words.insert(0, f"one of {_shown(constants)}" if len(constants) > 1 else _shown(constants[0]))
    return " or ".join(dict.fromkeys(words)) or "no value"


def _words(option: Shape) -> str:
    match option:
        case shapes.Text():
            bounded = option.minimum or option.maximum is not None
            length = f" of {_between(option.minimum, option.maximum)} characters" if bounded else ""
            return f"a string{length}{' that matches the pattern' if option.pattern else ''}"
        case shapes.Integer():
            steps = f", a multiple of {option.multiple}" if option.multiple != 1 else ""
            return f"an integer{_bounds(option)}{steps}"
        case shapes.Number():
            return f"a number{_bounds(option)}"
    return _NAMES.get(type(option), "a value")


def _bounds(option: shapes.Integer | shapes.Number) -> str:
    if option.minimum is None and option.maximum is None:
        return ""
    return f" {_between(option.minimum, option.maximum)}"


def _shown(value: Any) -> str:
    text = as_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


_NAMES: Mapping[type[Shape], str] = {
    shapes.Null: "null",
    shapes.Boolean: "true or false",
    shapes.Array: "a list as the schema describes it",
    shapes.Object: "an object as the schema describes it",
}
