"""Writes every limit of the library into its reference page, a table for each subject."""

from __future__ import annotations

from itertools import groupby

import environment

from unrender.limits import LIMITS, Limit

PAGE = environment.ROOT / "docs" / "reference" / "limits.md"
OPENING = """# Limits

Written by `scripts/limits_table.py`; do not edit.

Whatever a template, a request or a model sends, the work and the memory that it takes are bounded. These are all bounds, by their
names in `unrender.limits`. A caller may set those of a rendering, of an analysis and of a grammar: they are the defaults of
`unrender.bounds`, which [security](../explanation/security.md) explains. The others are the same for everybody.
"""


def main() -> None:
    """Write the page to where it is published."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page."""
    tables = (_table(subject, list(limits)) for subject, limits in groupby(LIMITS, lambda limit: limit.subject))
    return "\n".join([OPENING, *tables])


def _table(subject: str, limits: list[Limit]) -> str:
    rows = "".join(
        f"| `{limit.name}` | {limit.default:,} {limit.unit}".rstrip() + f" | {limit.reason} |\n" for limit in limits
    )
    return f"## {subject}\n\n| name | limit | what, and why |\n|---|--:|---|\n{rows}"


if __name__ == "__main__":
    main()
