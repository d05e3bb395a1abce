"""Finds keys that come twice in one JSON object: whoever reads it mostly sees the last."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

_KEY = re.compile(r'((?:[^"\\]|\\.)*+)"', re.DOTALL)


def duplicate_key(json_text: str) -> str:
    """Return a key that comes twice in one object of a JSON value; "" for none."""
    if json_text.count(":") < 2:
        return ""
    objects: list[list[tuple[str, Any]]] = []
    try:
        json.loads(json_text, object_pairs_hook=objects.append, parse_int=str)
    except ValueError:
        return ""
    if sum(map(len, objects)) == sum(map(len, map(dict, objects))):
        return ""
    return next(filter(None, (_second(key for key, _ in pairs) for pairs in objects)))


def duplicate_of(keys: str) -> str:
    r"""Return a key that comes twice among `keys`, each as JSON writes it, but without its first quotation mark.

    >>> duplicate_of('city"days"c\\u0069ty"')
    'city'
    """
    if keys.count('"') < 2:
        return ""
    found = _KEY.findall(keys)
    return _second(json.loads(f'"{key}"', strict=False) if "\\" in key else key for key in found)


def _second(keys: Iterable[str]) -> str:
    """Return the first key that has come before, an empty one in quotation marks; "" for none."""
    known: set[str] = set()
    for key in keys:
        if key in known:
            return key or '""'
        known.add(key)
    return ""
