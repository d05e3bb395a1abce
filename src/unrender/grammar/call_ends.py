"""Finds the texts at which a raw value ends when it has no end marker of its own.

Rules: what the parser takes for the end of a value is among these texts, or holds one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from unrender.format import Arguments, Slot
from unrender.grammar.nodes import Call
from unrender.grammar.shapes import Object

_MOST_NAMES = 16
"""Arguments whose names raw text is kept free of; where there are more, it is kept free of what begins any argument."""


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
    if not known or not 0 < len(names) <= _MOST_NAMES:
        return (apart,) if apart else ()
    after = arguments.entry[arguments.entry.index(Slot.KEY) + 1]
    return tuple(f"{apart}{name}{'' if isinstance(after, Slot) else after}" for name in names)
