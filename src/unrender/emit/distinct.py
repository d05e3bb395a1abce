"""Tells whether a drawn text has an object with one key twice: no grammar can forbid that, and no reader can mean it.

Rules: the notation is not known, so that everything in braces counts; where that is no object, nothing is lost but a draw.
"""

from __future__ import annotations

import re
from itertools import islice

_PIECE = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{}\[\],:]|[^"'{}\[\],:]+|.""", re.DOTALL)
_MOST = 200
"""Braces of one text that are looked at."""
_LONGEST = 5_000
"""Pieces of one object that are looked at."""


def repeats_a_key(text: str) -> bool:
    """Return whether some object in `text` has a key twice.

    >>> [repeats_a_key(text) for text in ('{"a": {"b": 1}, "b": 2}', '[{a: 1, "b": ",", a: 2}]')]
    [False, True]
    """
    starts = [i for i, character in enumerate(text) if character == "{"][:_MOST]
    return any(_repeats(text, start) for start in starts)


def _repeats(text: str, start: int) -> bool:
    keys: set[str] = set()
    depth, key = 0, ""
    for found in islice(_PIECE.finditer(text, start), _LONGEST):
        piece = found.group()
        if piece in ("{", "["):
            depth += 1
        elif piece in ("}", "]"):
            depth -= 1
        if depth == 0:
            break
        if depth == 1 and piece == ":":
            if key in keys:
                return True
            keys.add(key)
        key = "" if piece in (",", "{", ":") else key + piece.strip("\"' \t\r\n")
    return False
