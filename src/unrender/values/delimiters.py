"""Text with a verbatim string in it in, where the string ends out: its delimiter may be in the text itself.

Rules: a delimiter of one character closes only where a value can end, which is what follows it.
"""

from __future__ import annotations

import re

from unrender.limits import MAX_WORD
from unrender.values.finder import end_of

_SPACE = re.compile(r"[ \t\n\r]*")
_BLANK_REST = re.compile(r"\s*\Z")
_AFTER_QUOTE = re.compile(rf"\s{{0,{MAX_WORD - 1}}}+[,:)\]}}]")
_AFTER_ARGUMENT = re.compile(r"\s{0,64}+(?:,\s{0,64}+[^\W\d][\w.\-]{0,63}+\s{0,64}+=|(?:,\s{0,64}+)?\)(?![\"']))")
"""The same after an argument in code; a bracket before a quotation mark is in the text."""
_BEGUN_AFTER_ARGUMENT = re.compile(r"\s{0,64}+(?:,\s{0,64}+(?:[^\W\d][\w.\-]{0,63}+\s{0,64}+|\))?|\))?\Z")


def closing(text: str, at: int, close: str, ends: tuple[str, ...], *, final: bool) -> int:
    """Return where `close` ends a verbatim string; -(n + 1) when it does not, and text is certain up to n.

    A delimiter of one character may be in the text itself; it closes only where a value can end, or before one of `ends`.
    """
    size = len(text)
    found = text.find(close, at)
    while found >= 0 and len(close) == 1:
        after = end_of(_SPACE, text, found + 1)
        if _AFTER_QUOTE.match(text, found + 1) or text.startswith(ends, after):
            return found
        if found + 1 + MAX_WORD > size and _BLANK_REST.match(text, found + 1):
            return found if final else -found - 1
        found = text.find(close, found + 1)
    if found >= 0:
        return found
    for keep in range(min(len(close) - 1, size - at), 0, -1):
        if close.startswith(text[size - keep :]):
            return -(size - keep) - 1
    return -size - 1


def closing_in_code(text: str, at: int, close: str, *, final: bool) -> int:
    """Return the same as `closing` for an argument in code, whose delimiter has one character."""
    found = text.find(close, at)
    while found >= 0:
        if not final and _BEGUN_AFTER_ARGUMENT.match(text, found + 1):
            return -found - 1
        if _AFTER_ARGUMENT.match(text, found + 1) or (final and _BLANK_REST.match(text, found + 1)):
            return found
        found = text.find(close, found + 1)
    return -len(text) - 1
