"""Converts shapes to JSON Schema, with only the keywords that all engines' schema readers interpret in the same way.

The result accepts the same values as unrender's own grammar: references are resolved, branches merged, types explicit, and objects closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from unrender.limits import MAX_INTEGER_DIGITS
from unrender.nodes.patterns import write_pattern
from unrender.schema import Reading, shapes
from unrender.schema.shapes import Object, Shape, Text

_LARGEST = 10**MAX_INTEGER_DIGITS - 1


class Unwritable(ValueError):
    """Raised for shapes that engines' own JSON Schema readers don't support."""


def write_schema(reading: Reading) -> dict[str, Any]:
    """Return a self-contained JSON Schema for a reading. Recursive parts are in `$defs`.

    Raises `Unwritable` for shapes that engines' own readers don't support. Examples are `contains`, strings with excluded values,
    non-integers, fractional steps, and an exclusive bound together with another bound.
    """
    schema = shape_schema(reading.shape)
    definitions = {name: shape_schema(shape) for name, shape in reading.definitions.items()}
    return {**schema, "$defs": definitions} if definitions else schema


def is_writable(reading: Reading) -> bool:
    """Return whether `write_schema` supports a reading."""
    try:
        write_schema(reading)
    except Unwritable:
        return False
    return True


def shape_schema(shape: Shape) -> dict[str, Any]:
    """Return the JSON Schema of one shape. A `Reference` refers to `$defs`."""
    match shape:
        case shapes.Anything():
            return {}
        case shapes.Null():
            return {"type": "null"}
        case shapes.Boolean():
            return {"type": "boolean"}
        case shapes.Constant(text):
            return {"const": json.loads(text)}
        case shapes.Union(options):
            return _union(options)
        case shapes.Reference(name):
            return {"$ref": f"#/$defs/{name}"}
        case shapes.Integer():
            return _integer(shape)
        case shapes.Number():
            return _number(shape)
        case shapes.Text():
            return _text(shape)
        case shapes.Array():
            return _array(shape)
        case shapes.Object():
            return _object(shape)
    raise ValueError("no value has this shape")


def _union(options: tuple[Shape, ...]) -> dict[str, Any]:
    constants = [option for option in options if isinstance(option, shapes.Constant)]
    if len(constants) == len(options):
        return {"enum": [json.loads(option.json) for option in constants]}
    return {"anyOf": [shape_schema(option) for option in options]}


def _integer(shape: shapes.Integer) -> dict[str, Any]:
    if shape.multiple != 1:  # Multiples aren't limited to a number of digits, because their grammar is an automaton.
        return {"type": "integer", **_stated(minimum=shape.minimum, maximum=shape.maximum, multipleOf=shape.multiple)}
    low = -_LARGEST if shape.minimum is None else max(shape.minimum, -_LARGEST)
    high = _LARGEST if shape.maximum is None else min(shape.maximum, _LARGEST)
    return {"type": "integer", "minimum": low, "maximum": max(low, high)}


def _number(shape: shapes.Number) -> dict[str, Any]:
    if shape.fractional:
        raise Unwritable("a number that isn't an integer")
    if shape.parts is not None:
        raise Unwritable("fractional steps")  # llguidance requires two digits for quarters, so it rejects 0.5
    bounded = shape.minimum is not None and shape.maximum is not None
    if bounded and (shape.exclusive_minimum or shape.exclusive_maximum):
        raise Unwritable(
            "an exclusive bound together with another bound"
        )  # llguidance accepts 1 for "more than 1 and less than 1.5"
    low = "exclusiveMinimum" if shape.exclusive_minimum else "minimum"
    high = "exclusiveMaximum" if shape.exclusive_maximum else "maximum"
    step = None if shape.places is None else float(Decimal(1).scaleb(-shape.places))
    bounds = {low: _plain(shape.minimum), high: _plain(shape.maximum)}
    return {"type": "number", **_stated(**bounds, multipleOf=step)}


def _plain(value: Decimal | None) -> float | None:
    return None if value is None else int(value) if value == value.to_integral_value() else float(value)


def _stated(**keywords: Any) -> dict[str, Any]:
    """Return the keywords whose values aren't None."""
    return {keyword: value for keyword, value in keywords.items() if value is not None}


def _text(shape: Text) -> dict[str, Any]:
    if shape.excluded:
        raise Unwritable("a string that is not one of some words")
    pattern = None if shape.pattern is None else f"^(?:{write_pattern(shape.pattern)})$"
    lengths = {"minLength": shape.minimum or None, "maxLength": shape.maximum}
    return {"type": "string", **_stated(**lengths, pattern=pattern)}


def _array(shape: shapes.Array) -> dict[str, Any]:
    if shape.contained:
        raise Unwritable("a list that contains items")
    items = False if isinstance(shape.items, shapes.Nothing) else shape_schema(shape.items)
    prefix = [shape_schema(item) for item in shape.prefix] or None
    sizes = {"minItems": shape.minimum or None, "maxItems": shape.maximum}
    return {"type": "array", "items": items, **_stated(prefixItems=prefix, **sizes)}


def _object(shape: Object) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {item.name: shape_schema(item.shape) for item in shape.properties} | _impossible(shape),
        "required": [item.name for item in shape.properties if item.required],
        "additionalProperties": False,
    }
    return {**schema, **_extra(shape)} if shape.extra else schema


def _impossible(shape: Object) -> dict[str, Any]:
    """Return a property with the schema `false` for each undeclared key that must not occur."""
    declared = {item.name for item in shape.properties}
    # "Any key except a and b" is written as `{"a": false, "b": false}` with `additionalProperties`.
    names = (name for keys, _ in shape.extra if keys.pattern is None for name in sorted(keys.excluded))
    return {name: False for name in names if name not in declared}


def _extra(shape: Object) -> Mapping[str, Any]:
    schema: dict[str, Any] = {}
    for keys, value in shape.extra:
        if keys.pattern is not None:
            schema.setdefault("patternProperties", {})[_text(keys)["pattern"]] = shape_schema(value)
        elif keys.minimum or keys.maximum is not None:
            # A pattern can't be used here, because it would also apply to the excluded names, whose values have a different schema.
            if keys.excluded:
                raise Unwritable("keys of some lengths that are not some words")
            # Engines don't support `propertyNames`. Keys of two to four characters match `^[\s\S]{2,4}$`.
            pattern = f"^[\\s\\S]{{{keys.minimum},{'' if keys.maximum is None else keys.maximum}}}$"
            schema.setdefault("patternProperties", {})[pattern] = shape_schema(value)
        else:
            schema["additionalProperties"] = shape_schema(value)
    # The minimum of a shape counts only extra keys, but `minProperties` counts all keys.
    required = sum(item.required for item in shape.properties)
    if shape.minimum:
        schema["minProperties"] = required + shape.minimum
    if shape.maximum is not None:
        schema["maxProperties"] = required + shape.maximum
    return schema
