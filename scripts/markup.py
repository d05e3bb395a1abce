"""Markdown of generated pages: tables, and text between marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[object], rows: Iterable[Iterable[object]], align: str = "l") -> str:
    r"""Return a Markdown table. `align` has a letter for each column, `l` or `r`; the last one counts for the rest.

    >>> print(table(("name", "size"), [("a|b", 1)], "lr"))
    | name | size |
    |---|--:|
    | a\|b | 1 |
    """
    letters = align.ljust(len(heads), align[-1])
    marks = "|".join({"l": "---", "r": "--:"}[letter] for letter in letters[: len(heads)])
    head, *lines = (f"|{'|'.join(map(_cell, row))}|" for row in (heads, *rows))
    return "\n".join([head, f"|{marks}|", *lines])


def _cell(value: object) -> str:
    text = str(value).replace("|", "\\|")
    return f" {text} " if text else " "


def between(page: str, name: str, text: str) -> str:
    """Return a page with the text between two marks replaced."""
    begin, end = (f"<!-- {name}:{mark} -->" for mark in ("begin", "end"))
    return re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)
