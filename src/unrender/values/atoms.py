"""Reads the parts of values, i.e. words, numbers and escapes of any notation, and writes them as JSON."""

from __future__ import annotations

import re
from json.encoder import encode_basestring

from unrender.limits import MAX_WORD
from unrender.values.finder import end_of

MAY_GO_ON = re.compile(r" {0,4}\Z")
"""At the end of the buffer: what is there may go on."""
_HEX = re.compile(r"[0-9a-fA-F]*")
_WORDS = ("true", "false", "null")
_OTHER_WORDS = {"True": "true", "False": "false", "None": "null", "NaN": "null", "undefined": "null"}
_LOWER = tuple(word.lower() for word in (*_WORDS, *_OTHER_WORDS))
_NUMERIC = re.compile(r"[-+.0-9_eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def escape(text: str) -> str:
    """Return `text` as it is written inside a JSON string."""
    return encode_basestring(text)[1:-1]


def may_be_word(text: str) -> bool:
    """Return whether `text` is a number or a known word, in any case, or could become one."""
    word = text.lower()
    return len(text) <= MAX_WORD and (bool(_NUMERIC.fullmatch(text)) or any(known.startswith(word) for known in _LOWER))


def may_be_in_word(text: str) -> bool:
    """Return whether `text` may be a part of a number or of a known word.

    >>> [may_be_in_word(text) for text in ("al", "-", "-->", "think")]
    [True, True, False, False]
    """
    return bool(_NUMERIC.fullmatch(text)) or any(text.lower() in known for known in _LOWER)


def json_word(word: str, *, strict: bool) -> str:
    """Return a bare word or number as JSON writes it; "" when it is not one.

    With `strict`, only JSON's own words and numbers count.
    """
    if word in _WORDS or _NUMBER.fullmatch(word):
        return word
    if strict:
        return ""
    if word in _OTHER_WORDS:
        return _OTHER_WORDS[word]
    return _tidy_number(word) if _LOOSE_NUMBER.fullmatch(word) else ""


def _tidy_number(word: str) -> str:
    """Write a number that Python or JavaScript would read as JSON does: no plus, no bare point, no leading zeros."""
    value = float(word) if re.search(r"[.eE]", word) else int(word)
    return repr(value) if abs(value) != float("inf") else "null"


_ESCAPES = {'"': '\\"', "'": "'", "\\": "\\\\", "/": "\\/", **{c: f"\\{c}" for c in "bfnrt"}, "\n": ""}


def read_escape(text: str, at: int, final: bool) -> tuple[int, str]:
    """Read the escape at `at`; return its end and its form in JSON.

    The end is `at` when the escape is incomplete.
    """
    if at + 1 >= len(text):
        return (at + 1, "\\\\") if final else (at, "")
    kind = text[at + 1]
    if kind in "ux":
        return _read_code_point(text, at, 4 if kind == "u" else 2, final)
    return at + 2, _ESCAPES.get(kind, "\\\\" + escape(kind))


def _read_code_point(text: str, at: int, size: int, final: bool) -> tuple[int, str]:
    end = end_of(_HEX, text, at + 2, at + 2 + size)
    if end == at + 2 + size:
        return end, "\\u" + text[at + 2 : end].rjust(4, "0")
    if not final and MAY_GO_ON.match(text, end):
        return at, ""
    return at + 2, "\\\\" + text[at + 1]
