"""Makes a Format of derived parts: a part that breaks an invariant gives way to a weaker claim.

Strategy: a Format names the field that is at fault. That field goes back to its default first; when the part still cannot
exist, all of the part does.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, replace
from typing import Any

from unrender.errors import FormatError
from unrender.format import Format

_PLACE = re.compile(r"format\.(\w+)(?:\.(\w+))?")


def possible_format(format: Format, **parts: Any) -> tuple[Format, tuple[str, ...]]:
    """Return `format` with `parts` in it, as far as such a Format can exist, and sentences about what was given up.

    >>> from unrender.format import Reasoning, ReasoningMode
    >>> possible_format(Format(), reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end=" "))[0] == Format()
    True
    """
    given_up: list[str] = []
    tried: set[tuple[str, str]] = set()
    while True:
        try:
            return replace(format, **parts), tuple(given_up)
        except FormatError as error:
            parts = {**{part: getattr(format, part) for part in _parts(error.where)}, **parts}
            weaker = _weaker(parts, error.where, tried)
            if weaker == parts:
                return format, (*given_up, f"{error}, and everything found with it was given up")
            parts = weaker
            given_up.append(f"{error.where.removeprefix('format.')}: was given up: {error}")


def _parts(where: str) -> list[str]:
    found = _PLACE.match(where)
    return [found.group(1)] if found else []


def _weaker(parts: dict[str, Any], where: str, tried: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the parts without the field at `where` or, when that was `tried`, without the part that it belongs to."""
    found = _PLACE.match(where)
    if not found:
        return parts
    part, field = found.groups()
    value = parts[part]
    if field and (part, field) not in tried:
        tried.add((part, field))
        return {**parts, part: replace(value, **{field: _default(type(value), field)})}
    return {**parts, part: _default(Format, part)}


def _default(kind: Any, name: str) -> Any:
    return next(item.default for item in fields(kind) if item.name == name and item.default is not MISSING)
