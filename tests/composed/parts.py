"""Tables of the ways in which chat templates frame turns, write reasoning and write calls: parts that `composition` joins.

Strategy: the tables are rows of `tests/corpus/parts.jsonl`; what a row does not say is as usual. All of it is our own short writing of conventions that are common in the field, under names of their shape. A text
between «» is an expression of Jinja; everything else is written as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Part = TypeVar("Part")
JSON = "«f.arguments | tojson»"
NAME = "«f.name»"
ID = "«call.id»"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How turns are written: what is before and after what a role says."""

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
    """How reasoning is written."""

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
    """How calls are written."""

    call: str
    start: str = ""
    end: str = ""
    separator: str = ""
    after_content: str = ""
    """Between content and the first call."""
    ends_with: str | None = None
    """What ends a turn of calls, where it is another than of content."""
    only_first: bool = False


ROWS = Path(__file__).parents[1] / "corpus" / "parts.jsonl"


def _parts(kind: str, made: Callable[..., Part]) -> dict[str, Part]:
    """Return the parts of one kind by name; pairs of texts are lists in the rows."""
    rows = (json.loads(line) for line in ROWS.read_text(encoding="utf-8").split("\n") if line)
    parts = {row.pop(kind): row for row in rows if kind in row}
    return {
        name: made(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in parts.items()
    }


FRAMES = _parts("frame", Frame)
THOUGHTS = _parts("thoughts", Thoughts)
CALLS = _parts("calls", Calls)
