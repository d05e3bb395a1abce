"""Escapes text from outside, so that a terminal shows it, never obeys it, and no reader is deceived.

Rules: a character that a terminal acts on (C0, C1, DEL), that reorders or hides what is beside it (bidi and other format
controls, line separators, fillers without a glyph), or that is half a character is written as its number. All else stays.
"""

from __future__ import annotations

import re

__all__ = ["ascii_json", "printable_json", "printable_line", "printable_lines"]

_UNSEEN = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""All but the line break: what Unicode calls controls, formats, surrogates, separators of lines, or ignorable.

The two selectors that choose between text and emoji stay: they are in ordinary text, and only there.
"""
_IN_A_LINE = re.compile(f"[\n{_UNSEEN}]")
_IN_LINES = re.compile(f"[{_UNSEEN}]")
_NOT_ASCII = re.compile("[\x7f-\U0010ffff]")


def printable_line(text: str) -> str:
    r"""Return the text as one line that a terminal can show.

    >>> print(printable_line("a\x1b[31mb\u202ec\nd"))
    a\x1b[31mb\u202ec\nd
    """
    return _IN_A_LINE.sub(_as_python, text)


def printable_lines(text: str) -> str:
    r"""Return the text with its own line breaks, in lines that a terminal can show.

    >>> print(printable_lines("a\x07\nb"))
    a\x07
    b
    """
    return _IN_LINES.sub(_as_python, text)


def printable_json(json: str) -> str:
    r"""Return JSON with the same meaning that a terminal can show.

    >>> print(printable_json('"caf\u00e9 \u009b \U000e0001"'))
    "café \u009b \udb40\udc01"
    """
    return _IN_LINES.sub(_as_json, json)


def ascii_json(json: str) -> str:
    r"""Return JSON with the same meaning in ASCII, for streams that cannot carry other characters.

    >>> print(ascii_json('"caf\u00e9"'))
    "caf\u00e9"
    """
    return _NOT_ASCII.sub(_as_json, json)


def _as_python(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _as_json(found: re.Match[str]) -> str:
    """Write a character as JSON does, above U+FFFF as two halves."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
