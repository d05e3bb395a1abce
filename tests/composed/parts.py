"""Tables of how chat templates frame turns, write reasoning and write calls, for `composition`.

Strategy: the tables are rows of `tests/corpus/parts.jsonl`; missing fields have defaults. All parts are our own short
versions of common conventions, named after their shape. A text in «» is a Jinja expression; other text is literal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tables import CORPUS, named_rows

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
    """Text around results; empty if they are written like questions."""
    asks: str | None = None
    """The generation prompt if it differs from the text before an answer; "" if there is none."""
    first: str = "«bos_token»"
    space: str = ""
    """Whitespace before content that has no reasoning before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """The text around reasoning."""

    start: str = ""
    end: str = ""
    joint: str = ""
    empty: str = ""
    """The text of an answer without reasoning."""
    prefill: str = ""
    """Text after the generation prompt."""
    prefill_off: str = ""
    """The prefill with thinking turned off; empty if there is no switch."""
    inline: bool = False
    """If true, the template cuts reasoning out of content."""
    last_only: bool = False
    """If true, reasoning of turns before the last question is dropped."""
    unless_calls: bool = False
    says: tuple[str, str] = ("", "")
    """Text around content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The text of calls and around calls."""

    call: str
    start: str = ""
    end: str = ""
    separator: str = ""
    after_content: str = ""
    """Text between content and the first call."""
    ends_with: str | None = None
    """The end of a turn with calls if it differs from that of content."""
    only_first: bool = False


PARTS = CORPUS / "parts.jsonl"


def _parts(kind: str, made: Callable[..., Part]) -> dict[str, Part]:
    """Return the parts of one kind by name. The rows write pairs of texts as lists."""
    return {
        name: made(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in named_rows(PARTS, kind).items()
    }


FRAMES = _parts("frame", Frame)
THOUGHTS = _parts("thoughts", Thoughts)
CALLS = _parts("calls", Calls)
ODDITIES = list(named_rows(PARTS, "oddity"))
