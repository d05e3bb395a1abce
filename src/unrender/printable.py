"""Escapes untrusted text for terminals, so that it can't inject control sequences or mislead readers, and shows objects as pages.

Rules: control characters (C0, C1, DEL) and lone surrogates are escaped. Characters that hide or reorder text are also escaped: bidi and
other format controls, line separators, and invisible fillers. Other characters are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

__all__ = [
    "Line",
    "Page",
    "ascii_json",
    "excerpt_at",
    "lines_of",
    "page_text",
    "printable_json",
    "printable_line",
    "printable_lines",
    "rows_of",
]

_UNSEEN = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Part of a character class: Unicode's control, format, surrogate, line separator and ignorable characters, except the line break.

The variation selectors for text and emoji style aren't included, because ordinary text contains them.
"""
_IN_A_LINE = re.compile(f"[\n{_UNSEEN}]")
_IN_LINES = re.compile(f"[{_UNSEEN}]")
_NOT_ASCII = re.compile("[\x7f-\U0010ffff]")


def printable_line(text: str) -> str:
    r"""Return the text as one printable line.

    >>> print(printable_line("a\x1b[31mb\u202ec\nd"))
    a\x1b[31mb\u202ec\nd
    """
    return _IN_A_LINE.sub(_as_python, text)


def printable_lines(text: str) -> str:
    r"""Return printable text that keeps its line breaks.

    >>> print(printable_lines("a\x07\nb"))
    a\x07
    b
    """
    return _IN_LINES.sub(_as_python, text)


def excerpt_at(text: str, at: int, room: int) -> tuple[str, int]:
    r"""Return an excerpt of about `room` characters around the position `at`, on one line, and the column of that position in the excerpt.

    >>> excerpt_at("One moment.\n<call>", 12, 80)
    ('One moment.↵<call>', 12)
    """
    start = max(min(at - room // 3, len(text) - room + 2), 0)
    before, after = (printable_line(it.replace("\n", "↵")) for it in (text[start:at], text[at : start + room - 1]))
    before = "…" * bool(start) + before[2 - room :]
    return before + after[: max(room - len(before) - 1, 0)] + "…" * (start + room - 1 < len(text)), len(before)


def printable_json(json: str) -> str:
    r"""Return equivalent JSON text that is safe to print in a terminal.

    >>> print(printable_json('"caf\u00e9 \u009b \U000e0001"'))
    "café \u009b \udb40\udc01"
    """
    return _IN_LINES.sub(_as_json, json)


def ascii_json(json: str) -> str:
    r"""Return equivalent JSON in ASCII, for streams that can't encode other characters.

    >>> print(ascii_json('"caf\u00e9"'))
    "caf\u00e9"
    """
    return _NOT_ASCII.sub(_as_json, json)


Line = Sequence[tuple[str, str]]
"""Pieces of text, each with a style: the role of a part of an answer, a colour, "bold", "dim", or "" for none."""
_CSS: Mapping[str, str] = {
    "reasoning": "color:#8250df",
    "content": "color:#2da44e",
    "marker": "color:#808891",
    "name": "color:#0969da;font-weight:bold",
    "argument": "color:#0f8a84",
    "id": "color:#bf8700",
    "malformed": "color:#cf222e",
    "red": "color:#cf222e",
    "green": "color:#2da44e",
    "bold": "font-weight:bold",
    "dim": "color:#808891",
}
"""Styles in a notebook. The colours are readable on light and on dark pages."""


class Page:
    """An object that `print` shows as a page for people, and a notebook with colours."""

    __slots__ = ()

    def _page(self) -> Iterable[Line]:
        raise NotImplementedError

    def __str__(self) -> str:
        return page_text(self._page())

    def _repr_html_(self) -> str:
        shown = "\n".join(
            "".join(
                f'<span style="{_CSS.get(style, "")}">{escape(printable_line(text))}</span>' for text, style in line
            )
            for line in self._page()
        )
        return f'<pre style="white-space:pre-wrap">{shown}</pre>'


def page_text(lines: Iterable[Line]) -> str:
    """Return a page as plain text."""
    return "\n".join("".join(printable_line(text) for text, _ in line) for line in lines)


def lines_of(pieces: Line) -> Iterator[Line]:
    r"""Yield pieces of text that contain line breaks as lines.

    >>> list(lines_of([("a\nb", "dim"), ("c", "")]))
    [[('a', 'dim')], [('b', 'dim'), ('c', '')]]
    """
    line: list[tuple[str, str]] = []
    for text, style in pieces:
        first, *others = text.split("\n")
        line.append((first, style))
        for other in others:
            yield line
            line = [(other, style)]
    yield line


def rows_of(rows: Iterable[tuple[str, str]]) -> Iterator[Line]:
    """Yield labels and texts in two columns."""
    shown = [*rows]
    width = max(len(label) for label, _ in shown)
    for label, text in shown:
        yield [(label.ljust(width + 2), "dim"), (text, "")]


def _as_python(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _as_json(found: re.Match[str]) -> str:
    """Escape a character as in JSON. Characters above U+FFFF become a surrogate pair."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
