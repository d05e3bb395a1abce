"""Writes a counterexample as a diff: the parts of two messages, or the places of two texts, that differ."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator, Mapping
from typing import Any

from unrender.verify.report import Counterexample

_AROUND = 30
"""Characters of what two texts have in common that are shown beside what they have not."""
_PARTS = ("reasoning_content", "content", "tool_calls", "dead_calls")


def diff(example: Counterexample) -> Iterator[str]:
    """Yield the lines of a diff: `-` for what should have come back, `+` for what did.

    >>> example = Counterexample(answer="<a>x", expected='{"content": "x"}', found='{"content": "<a>x"}', chunking="whole")
    >>> list(diff(example))
    ['- content: "x"', '+ content: "<a>x"']
    """
    expected, found = _message(example.expected), _message(example.found)
    if expected is None or found is None:
        yield from map("".join, zip("-+", (f" {text}" for text in _narrowed(example)), strict=True))
        return
    for part in _PARTS:
        pair = [_comparable(part, message.get(part)) for message in (expected, found)]
        if pair[0] != pair[1]:
            yield from (
                f"{sign} {part}: {json.dumps(it, ensure_ascii=False)}" for sign, it in zip("-+", pair, strict=True)
            )


def _message(text: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _comparable(part: str, value: Any) -> Any:
    """Leave out what is not compared: the ids of calls, made up where the format has none."""
    return [call["function"] for call in value or ()] if part == "tool_calls" else value or ""


def _narrowed(example: Counterexample) -> Iterator[str]:
    """Yield both texts, quoted, from shortly before to shortly after what differs."""
    a, b = example.expected, example.found
    start = len(os.path.commonprefix([a, b]))
    end = len(os.path.commonprefix([a[start:][::-1], b[start:][::-1]]))
    for text in (a, b):
        left, right = max(start - _AROUND, 0), min(len(text) - end + _AROUND, len(text))
        before, after = "…" if left else "", "…" if right < len(text) else ""
        yield before + repr(text[left:right]) + after
