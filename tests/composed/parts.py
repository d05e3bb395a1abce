"""Tables of the ways in which chat templates frame turns, write reasoning and write calls: parts that `composition` joins.

Strategy: the tables are rows of `tests/corpus/parts.jsonl`; what a row does not say is as usual. All of it is our own short writing of conventions that are common in the field, under names of their shape. A text
between «» is an expression of Jinja; everything else is written as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tables import CORPUS, case_rows

Part = TypeVar("Part")
JSON = "«f.arguments | tojson»"
NAME = "«f.name»"
ID = "«call.id»"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The text around each role's message."""

    answer: tuple[str, str]
    question: tuple[str, str]
    system: tuple[str, str] = ("", "\n")
    result: tuple[str, str] = ("", "")
    """Empty: a result is written as a question is."""
    asks: str | None = None
    """The generation prompt, where it is not what is before an answer; "" where there is none."""
    first: str = "«bos_token»"
    space: str = ""
    """Before content alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """The text around reasoning."""

    start: str = ""
    end: str = ""
    joint: str = ""
    empty: str = ""
    """Written where an answer has none."""
    prefill: str = ""
    """After the generation prompt."""
    prefill_off: str = ""
    """The same when thinking is switched off; empty: there is no switch."""
    inline: bool = False
    """Reasoning is cut out of content."""
    last_only: bool = False
    """Reasoning of turns before the last question is dropped."""
    unless_calls: bool = False
    says: tuple[str, str] = ("", "")
    """Around content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The text of calls and around them."""

    call: str
    start: str = ""
    end: str = ""
    separator: str = ""
    after_content: str = ""
    """Between content and the first call."""
    ends_with: str | None = None
    """The end of a turn of calls, where it isn't that of content."""
    only_first: bool = False


ROWS = case_rows(CORPUS / "parts.jsonl")


def _parts(kind: str, made: Callable[..., Part]) -> dict[str, Part]:
    """Return the parts of one kind by name; pairs of texts are lists in the rows."""
    return {
        row[kind]: made(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in row.items() if key != kind}
        )
        for row in ROWS
        if kind in row
    }


FRAMES = _parts("frame", Frame)
THOUGHTS = _parts("thoughts", Thoughts)
CALLS = _parts("calls", Calls)
ODDITIES = [row["oddity"] for row in ROWS if "oddity" in row]
