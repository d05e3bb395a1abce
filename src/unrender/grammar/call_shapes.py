"""Decides how a call writes shapes: kinds, emptiness, and the nodes that lists share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unrender.format import Arguments, Slot
from unrender.limits import MOST_EXCLUDED_NAMES
from unrender.nodes import Call
from unrender.schema import shapes
from unrender.schema.kinds import kinds_of
from unrender.schema.shapes import Object, Shape, Text

ANY_OBJECT = Object(extra=((Text(), shapes.Anything()),))


def items_of(value: object) -> list[object]:
    """Return the items of a list; none for any other value."""
    return value if isinstance(value, list) else []


def may_be_empty(shape: Object) -> bool:
    """Return whether an empty object has this shape."""
    return shape.minimum == 0 and not any(item.required for item in shape.properties)


_BY_TYPE: dict[str, Shape] = {
    "string": Text(),
    "number": shapes.Number(),
    "boolean": shapes.Boolean(),
    "null": shapes.Null(),
    "array": shapes.Array(),
    "object": ANY_OBJECT,
}


def type_names(shape: Shape, definitions: Mapping[str, Shape]) -> list[str]:
    """Return the types that a shape may have, by their names in formats: an integer is a number."""
    kinds = {"number" if kind == "integer" else kind for kind in kinds_of(shape, definitions)}
    return [kind for kind in _BY_TYPE if kind in kinds]


def of_type(shape: Shape, kind: str) -> Shape:
    """Return the shape of all values of the type `kind` if `shape` allows any value; otherwise return `shape`."""
    return _BY_TYPE[kind] if isinstance(shape, shapes.Anything) else shape


def after_arguments(call: Call) -> tuple[str, ...]:
    """Return the texts that may follow the last argument of a call, without white space around them."""
    function = call.function
    at = function.index(Slot.ARGUMENTS) + 1 if Slot.ARGUMENTS in function else len(function)
    part = function[at] if at < len(function) else ""
    inside = (call.arguments.end, "" if isinstance(part, Slot) else part)
    texts = inside if any(map(str.strip, inside)) else call.followed_by
    return tuple(text.strip() for text in texts if text.strip())


def next_arguments(arguments: Arguments, objects: Iterable[Object]) -> tuple[str, ...]:
    """Return the texts with which another argument may begin.

    They include its name when all names are known from `objects`.
    """
    between = arguments.between if arguments.open_ended else arguments.separator
    apart = between.strip() or between
    objects = list(objects)
    names = dict.fromkeys(item.name for shape in objects for item in shape.properties)
    known = arguments.open_ended and not arguments.in_code and not any(shape.extra for shape in objects)
    if not known or not 0 < len(names) <= MOST_EXCLUDED_NAMES:
        return (apart,) if apart else ()
    after = arguments.entry[arguments.entry.index(Slot.KEY) + 1]
    return tuple(f"{apart}{name}{'' if isinstance(after, Slot) else after}" for name in names)
