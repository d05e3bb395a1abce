"""Parses the building blocks of values in any notation: keywords, numbers, escapes, ends of verbatim strings, duplicate keys.

Rules: results are JSON text. A one-character delimiter may occur inside its own string (`'it's'`). A delimiter therefore closes the string
only before text that may follow a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

from unrender.cache import kept
from unrender.limits import MAX_WORD
from unrender.values.finder import end_of

MAY_GO_ON = re.compile(r" {0,4}\Z")
"""Matches if only up to four spaces are left in the buffer. The next chunk may then continue the text before them."""
_HEX = re.compile(r"[0-9a-fA-F]*")
_WORDS = ("true", "false", "null")
_OTHER_WORDS = {"True": "true", "False": "false", "None": "null", "NaN": "null", "undefined": "null"}
_LOWER = tuple(word.lower() for word in (*_WORDS, *_OTHER_WORDS))
_NUMERIC = re.compile(r"[-+.0-9_eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:_[0-9]+)*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def escape(text: str) -> str:
    """Return `text` escaped for a JSON string."""
    return encode_basestring(text)[1:-1]


def may_be_word(text: str) -> bool:
    """Return whether `text` is a number or a keyword (in upper or lower case), or a prefix of one."""
    word = text.lower()
    return len(text) <= MAX_WORD and (bool(_NUMERIC.fullmatch(text)) or any(known.startswith(word) for known in _LOWER))


def may_be_in_word(text: str) -> bool:
    """Return whether `text` may be part of a number or keyword.

    >>> [may_be_in_word(text) for text in ("al", "-", "-->", "think")]
    [True, True, False, False]
    """
    return bool(_NUMERIC.fullmatch(text)) or any(text.lower() in known for known in _LOWER)


def json_word(word: str, *, strict: bool) -> str:
    """Return the JSON text of a bare word or number. Returns "" for any other text.

    If `strict` is True, only JSON's own keywords and numbers are accepted.
    """
    if word in _WORDS or _NUMBER.fullmatch(word):
        return word
    if strict:
        return ""
    if word in _OTHER_WORDS:
        return _OTHER_WORDS[word]
    if not _LOOSE_NUMBER.fullmatch(word):
        return ""
    # Convert numbers that are valid in Python or JavaScript, but not in JSON: `007`, `+5`, `.5`, `1_000` and `+1e999`.
    value = float(word) if re.search(r"[.eE]", word) else int(word)
    return repr(value) if abs(value) != float("inf") else "null"


_ESCAPES = {'"': '\\"', "'": "'", "\\": "\\\\", "/": "\\/", **{c: f"\\{c}" for c in "bfnrt"}, "\n": ""}


def read_escape(text: str, at: int, final: bool) -> tuple[int, str]:
    """Parse the escape sequence at `at`. Returns the end of the sequence, and its JSON form.

    The returned end is `at` if the escape sequence is incomplete.
    """
    if at + 1 >= len(text):
        return (at + 1, "\\\\") if final else (at, "")
    kind = text[at + 1]
    if kind in "ux":
        whole = at + 2 + (4 if kind == "u" else 2)
        end = end_of(_HEX, text, at + 2, whole)
        if end == whole:
            return end, "\\u" + text[at + 2 : end].rjust(4, "0")
        if not final and MAY_GO_ON.match(text, end):
            return at, ""
    return at + 2, _ESCAPES.get(kind, "\\\\" + escape(kind))


_WORD_NAME = r"[^\W\d][\w.\-]{0,63}+"
Following = tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]
"""Patterns for text that may follow a value, for a prefix of such text at the end of the buffer, and for the end of the output."""


@kept(5_000)
def after_argument(names: tuple[str, ...]) -> Following:
    """Return the patterns for text after an argument of a Python-style call.

    A bracket before a quotation mark is part of the argument. `names` contains argument names that are not plain words.
    """
    known = "|".join([*map(re.escape, names), _WORD_NAME])
    cut = (re.escape(name[:size]) + r"\Z" for name in names for size in range(1, len(name)))
    begun = "|".join([rf"(?:{known})\s{{0,64}}+", *cut, r"\)"])
    return (
        re.compile(rf"\s{{0,64}}+(?:,\s{{0,64}}+(?:{known})\s{{0,64}}+=|(?:,\s{{0,64}}+)?\)(?![\"']))"),
        re.compile(rf"\s{{0,64}}+(?:,\s{{0,64}}+(?:{begun})?|\))?\Z"),
        re.compile(r"\s*\Z"),
    )


@kept(1_000)
def after_string(ends: tuple[str, ...], after_key: str) -> Following:
    """Return the patterns for text after any other string, such as a comma or one of `ends`.

    If only whitespace separates arguments, `after_key` is the text after an argument's name, and another argument may follow.
    """
    # `'it'` at the end of the buffer may be followed by `s a dog'` or by a comma.
    blank = rf"\s{{0,{MAX_WORD - 1}}}+"
    following = [rf"{blank}[,:)\]}}]", *(rf"[ \t\n\r]*{re.escape(end)}" for end in ends)]
    begun = [blank]
    if after_key:
        heads = "|".join(re.escape(after_key[:size]) for size in range(len(after_key)))
        following.append(rf"\s{{1,64}}+{_WORD_NAME}{re.escape(after_key)}")
        begun.append(rf"\s{{1,64}}+{_WORD_NAME}(?:{heads})")
    return re.compile("|".join(following)), re.compile(f"(?:{'|'.join(begun)})\\Z"), re.compile(rf"{blank}\Z")


def closing(text: str, at: int, close: str, following: Following, *, final: bool) -> int:
    """Return the position of the character `close` that ends a verbatim string.

    Returns -(n + 1) if the string isn't closed and the text up to position n is final. The character may occur in the string itself. It
    closes the string only before text that may follow a value.
    """
    after, begun, end = following
    found = text.find(close, at)
    while found >= 0:
        # The text `f(a='it', b` may become `f(a='it', b=1` or `f(a='it', b'`. Only the former closes the string before the comma, so wait
        # for more text.
        if not final and begun.match(text, found + 1):
            return -found - 1
        if after.match(text, found + 1) or (final and end.match(text, found + 1)):
            return found
        found = text.find(close, found + 1)
    return -len(text) - 1


_KEY = re.compile(r'([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)


def duplicate_key(json_text: str) -> str:
    """Return a key that occurs twice in one object of a JSON value. Returns "" if all keys are unique."""
    # Most values have fewer than two keys and needn't be parsed.
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
    r"""Return the first key that occurs twice in `keys`, or "" if all keys are unique.

    `keys` is a sequence of JSON strings without their opening quotes.

    >>> duplicate_of('city"days"c\\u0069ty"')
    'city'
    """
    if keys.count('"') < 2:
        return ""
    found = _KEY.findall(keys)
    return _second(json.loads(f'"{key}"', strict=False) if "\\" in key else key for key in found)


def _second(keys: Iterable[str]) -> str:
    """Return the first repeated key, or "" if all keys are unique. A repeated empty key is returned as `""`, in quotation marks."""
    known: set[str] = set()
    for key in keys:
        if key in known:
            return key or '""'
        known.add(key)
    return ""
