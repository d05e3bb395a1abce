"""Finds where values are in a text, and how they are nested: the JSON side of call detection."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from unrender.limits import MOST_BRACKETS

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A value and the text[start:end] that writes it."""

    start: int
    end: int
    value: Any


def json_spans(text: str, opener: str, before: int) -> Iterator[Span]:
    """Yield the JSON values that begin with a character of `opener`, left of the position `before`, in order."""
    trials = 0
    for match in re.finditer(f"[{re.escape(opener)}]", text[:before]):
        trials += 1
        if trials > MOST_BRACKETS:
            return
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield Span(start=match.start(), end=end, value=value)


def arguments_span(text: str, arguments: Mapping[str, Any], start: int = 0) -> Span | None:
    """Find where `arguments` is written as one JSON object."""
    key = next(iter(arguments), None)
    at = text.find(key, start) if key else -1
    if at < 0:
        return None
    spans = [span for span in json_spans(text, "{", at) if span.start >= start and span.value == arguments]
    return spans[-1] if spans else None


def literal_span(text: str, arguments: Mapping[str, Any], start: int = 0) -> Span | None:
    """Find where `arguments` is written as a Python dictionary."""
    key = next(iter(arguments), None)
    at = text.find(key, start) if key else -1
    brace = text.rfind("{", start, at) if at >= 0 else -1
    for match in islice(re.finditer(r"\}", text[brace:] if brace >= 0 else ""), MOST_BRACKETS):
        end = brace + match.end()
        if _literal(text[brace:end]) == arguments:
            return Span(start=brace, end=end, value=dict(arguments))
    return None


def _literal(text: str) -> Any:
    """Return the value of a Python literal, or None."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def loads(text: str) -> Any:
    """Return the JSON value of `text`, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def path_to(value: Any, wanted: Any) -> tuple[str, ...] | None:
    """Return the keys that lead to `wanted` in nested objects, or None.

    >>> path_to({"function": {"name": "f"}}, "f")
    ('function', 'name')
    """
    if not isinstance(value, dict):
        return None
    for key, item in value.items():
        if type(item) is type(wanted) and item == wanted:
            return (key,)
        deeper = path_to(item, wanted)
        if deeper is not None:
            return (key, *deeper)
    return None


def holds(value: Any, wanted: Any) -> bool:
    """Return whether `wanted` is a key or a value anywhere in `value`."""
    if type(value) is type(wanted) and value == wanted:
        return True
    if isinstance(value, dict):
        return (
            wanted in value if isinstance(wanted, str) and wanted in value else any(map_holds(value.values(), wanted))
        )
    return isinstance(value, list) and any(map_holds(value, wanted))


def map_holds(values: Any, wanted: Any) -> Iterator[bool]:
    """Yield `holds` for each of `values`."""
    return (holds(value, wanted) for value in values)
