"""Reads lists without brackets as they stream, up to the value's end marker, as JSON text.

Strategy: only the schema says that `a,b` is a list. Where it wants a list and no string, the text is held until its end,
then it is JSON if the schema admits that, else it is split at each separator; an item that may be a list or an object may
hold the separator inside its brackets.
"""

from __future__ import annotations

import json

from unrender.values.coercion import STRING, Kinds, coerce, item_types, read_literal
from unrender.values.finder import Finder
from unrender.values.raw import RawScanner
from unrender.values.scanner import DONE, LiteralScanner, LiteralStyle
from unrender.values.unmarked_ends import Follow

_NESTED = frozenset(("array", "object"))


class JoinedScanner(RawScanner):
    """Reads a list, written as items with `separator` between them, up to an end marker."""

    __slots__ = ("separator",)

    def __init__(self, finder: Finder | Follow, types: frozenset[str], separator: str) -> None:
        super().__init__(finder, types)
        self.separator: str = separator

    def _new(self) -> RawScanner:
        return JoinedScanner(self.finder, self.types, self.separator)

    def _is_structured(self, _text: str, _start: int) -> bool:
        return False

    def _may_be_other(self) -> bool:
        return True

    def _coerced(self, text: str) -> str:
        kind, value = read_literal(text)
        if kind in self.types and (not isinstance(self.types, Kinds) or self.types.admits(json.loads(value))):
            return value
        return read_items(text, self.separator, item_types(self.types))


def is_list(types: frozenset[str]) -> bool:
    """Return whether text that is not JSON is a list, if it is a value of one of `types`."""
    return "array" in types and "string" not in types


def read_items(text: str, separator: str, types: frozenset[str]) -> str:
    """Return the JSON text of a list whose items are written with `separator` between them.

    Each item is a value of one of `types`.
    """
    if not text:
        return "[]"
    nested = types != STRING and (not types or bool(types & _NESTED))
    items, at = [], 0
    while at <= len(text):
        end = _nested_end(text, at, separator.strip()) if nested and text[at : at + 1] in ("[", "{") else -1
        # Brackets that are not closed are text, and looked for no more: each look may go through all of the text.
        nested = nested and (end >= 0 or text[at : at + 1] not in ("[", "{"))
        end = end if end >= 0 else text.find(separator.strip(), at)
        end = end if end >= 0 else len(text)
        items.append(coerce(text[at:end], types))
        at = end + len(separator if text.startswith(separator, end) else separator.strip())
    return f"[{', '.join(items)}]"


def _nested_end(text: str, at: int, separator: str) -> int:
    """Return where the list or object at `at` ends, if a separator or nothing follows; else -1."""
    end, _, status = LiteralScanner(LiteralStyle()).scan(text, at, final=True)
    return end if status is DONE and (end == len(text) or text.startswith(separator, end)) else -1
