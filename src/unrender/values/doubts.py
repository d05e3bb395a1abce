"""Detects damaged markers around a value from the value's text.

If a marker is damaged, the value contains adjacent text of the call:

- the end of the opener, at the start of the value
- the start of the closer, at the end of the value
- the start of another argument or call

Values that contain parts of markers by chance are rejected too.

Rules: markers that may occur in prose are ignored. Quoted values are checked with their quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unrender.limits import MAX_BLANK
from unrender.values.unmarked_ends import is_balanced

CDATA_START, CDATA_END = "<![CDATA[", "]]>"
_MARKER = re.compile(r"\w.*\W|\W.*\w", re.DOTALL)
_FIRST_WORD = re.compile(r"\W*\w+\W*")
_LEAST = 3
"""Minimum length of a marker that doesn't occur in prose."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Text that shouldn't occur in the values of a call syntax."""

    heads: tuple[str, ...]
    """Suffixes of the text before a value. A value that starts with such a suffix has a damaged opener."""
    tails: tuple[str, ...]
    """Prefixes of the text after a value. A value that ends with such a prefix has a damaged closer."""
    call: str
    """Start of a call. A value that ends without its closer must not contain the start of a call."""
    closer: str
    """End marker of a value, or its start if the marker contains the argument's name. Text that ends without its closer must not contain
    another closer.
    """
    again: re.Pattern[str] | None
    """Matches a closer that is followed by the first word of a damaged opener."""
    between: str
    """Text between two arguments of a Python-style call. Empty for other notations."""
    equals: str
    """Text between the name and the value of an argument in a Python-style call."""
    quote: str = ""
    """The quotation mark around strings, if the format has no escape for it. In `'it\\'s'`, the model may have escaped the mark or not."""

    @classmethod
    def of(
        cls,
        opener: str,
        before: str,
        after: str,
        call: str,
        *,
        cdata: bool = False,
        nested: bool = False,
        between: str = "",
        equals: str = "",
        quote: str = "",
    ) -> Doubts:
        """Return an instance for the values of arguments that start with `opener`. `before` and `after` are the markers around a value.

        `nested` is True if lists and objects are encoded as tags of the same kind.
        """
        before, after = before.strip()[-MAX_BLANK:], after.strip()[:MAX_BLANK]
        heads = (before[at:] for at in range(len(before)) if not before[at].isalnum())
        tails = (after[:size] for size in range(1, len(after)) if not after[size - 1].isalnum())
        block = (CDATA_START, CDATA_END) if cdata else ("", "")
        found = _telling((*tails, block[1]))
        again = None if nested else _again(opener.strip(), after)
        if nested and found:  # Match a complete closer that follows a prefix of itself.
            again = re.compile(rf"(?:{'|'.join(map(re.escape, found))})\s{{0,{MAX_BLANK}}}{re.escape(after)}")
        return cls(_telling((*heads, block[0])), found, call, after, again, between, equals, quote)

    def excluded(self, *, closed: bool) -> tuple[str, ...]:
        """Return strings that no generated value contains, because `raised` may take them for other markers.

        `closed` is True if values end with their own closers.
        """
        # The start of a closer comes before its end. So if the closer ends like an opener, the value ends at the closer's start.
        texts = [*self.tails, *self.heads, *([self.call] if self.call and not closed else ())]
        return tuple(text for text in texts if text not in (CDATA_START, CDATA_END))  # Templates write CDATA sections.

    def raised(self, text: str, *, closed: bool, textual: bool, missing: Iterable[str], tools: Iterable[str]) -> bool:
        """Return whether the value `text` contains other markers or parts of markers.

        `closed` is True if the value ends with its own closer, and `textual` if it may be a string. `missing` contains the arguments that
        may still follow, and `tools` the names of tools.
        """
        text = text.strip("\n")
        if text.startswith(self.heads) or text.endswith(self.tails):
            return True
        if (not closed and self.call and self.call in text) or (self.again and self.again.search(text)):
            return True
        if not closed and textual and self.closer and self.closer in text:
            return True
        if self.quote and text.startswith(self.quote) and f"\\{self.quote}" in text[:-1]:
            return True
        if not self.between:
            return False
        # A value such as `'Paris, note='Zed'` lacks a quotation mark and therefore contains the start of the next argument.
        # In `f(x, note='Zed')`, the argument is that of a call inside the value.
        starts = (text.find(self.between + name + self.equals) for name in missing)
        if self.equals in text and any(at >= 0 and not leaves_open(text[:at]) for at in starts):
            return True
        # In `3, =Zed`, the name of the next argument is missing.
        if not text.startswith(("'", '"')) and self._unnamed.search(text):
            return True
        # In `Zed), get_timezone=CET`, the bracket after `get_time` is missing.
        if self._argument.search(text) and not is_balanced(text):
            return True
        # A value such as `x, f(a=1` lacks the closer of its call and therefore contains the start of another call.
        begun = (text.find(f"{self.between}{tool}(") for tool in tools)
        return any(at >= 0 and leaves_open(text[at:]) for at in begun)

    @property
    def _argument(self) -> re.Pattern[str]:
        """Matches the start of an argument with any name."""
        return re.compile(
            rf"{re.escape(self.between.strip())}\s{{0,{MAX_BLANK}}}[^\W\d][\w.-]*{re.escape(self.equals)}"
        )

    @property
    def _unnamed(self) -> re.Pattern[str]:
        """Matches an argument without its name."""
        return re.compile(rf"{re.escape(self.between.strip())}\s{{0,{MAX_BLANK}}}{re.escape(self.equals)}(?!=)")

    def leads_on(self, text: str, after: str, missing: Iterable[str]) -> bool:
        """Return whether `text`, a value in a Python-style call, contains the end of its call. `after`, the text after the value, then
        starts the next call without its bracket.
        """
        closed = text.endswith(")") and text.count(")") > text.count("(")
        known = (self.between + name for name in missing)
        return bool(self.between) and closed and after.startswith(self.between) and not after.startswith(tuple(known))


def _again(opener: str, closer: str) -> re.Pattern[str] | None:
    """Return a pattern for a closer followed by a damaged opener, e.g. `<|close|>a<|sep|> <|open|> a`."""
    head = _FIRST_WORD.match(opener)
    if head is None or head.group() == opener or not _telling((head.group(),)) or not _telling((closer,)):
        return None
    rest = re.escape(opener[head.end() :])
    return re.compile(rf"{re.escape(closer)}\s{{0,{MAX_BLANK}}}{re.escape(head.group())}(?!\w|{rest})")


def _telling(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(text for text in texts if len(text) >= _LEAST and (_MARKER.search(text) or text == CDATA_END))


def leaves_open(text: str) -> bool:
    """Return whether `text` contains more opening than closing parentheses.

    >>> leaves_open("if (a")
    True
    """
    return text.count("(") > text.count(")")
