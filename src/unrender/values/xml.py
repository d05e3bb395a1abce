"""Reads values in tags that bear the argument's name, as JSON text.

Strategy: where the schema says string, text streams. Anything else is held until the argument's own closing tag. Where
lists and objects are nested tags, the text is then read as a tree: elements that are all items are a list, others an
object. Where they are not, the text is one value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from unrender.limits import MAX_PARSED_DEPTH
from unrender.schema.shapes import Shape
from unrender.values.atoms import duplicate_key, escape
from unrender.values.coercion import STRING, ArgumentTypes, coerce
from unrender.values.finder import Finder, end_of
from unrender.values.scanner import Status

_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class TagStyle:
    """How the tags are written: `open` + name + `end` … `close` + name + `end`."""

    open: str
    """e.g. `<`."""
    close: str
    """e.g. `</`."""
    end: str
    """e.g. `>`."""
    item: str
    """The name of a list's items; empty where lists and objects are not written as tags."""
    space: str = ""
    """Layout before the closing tag, which is not part of the value."""


class XmlScanner:
    """Reads the inside of the tag of the argument `key`, up to its closing tag."""

    __slots__ = ("begun", "closers", "depth", "duplicate", "finder", "held", "key", "style", "types")

    def __init__(self, style: TagStyle, key: str, types: ArgumentTypes) -> None:
        self.style: TagStyle = style
        self.key: str = key
        self.types: ArgumentTypes = types
        closer = style.close + key + style.end
        self.closers: tuple[str, ...] = tuple(style.space[at:] + closer for at in range(len(style.space) + 1))
        # The argument's own name may come again inside it: its tags are counted.
        self.finder: Finder = Finder((*self.closers, style.open + key + style.end))
        self.depth: int = 0
        self.held: list[str] = []
        self.begun: bool = False
        self.duplicate: str = ""
        """A key that comes twice in one object of the whole value."""

    def copy(self) -> XmlScanner:
        """Return an independent scanner in the same state."""
        other = XmlScanner(self.style, self.key, self.types)
        other.depth, other.held, other.begun = self.depth, list(self.held), self.begun
        return other

    @property
    def flow(self) -> None:
        """None: the text of a tag has no fast path."""

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read as much of `text` from `start` on as can be decided. With `final`, no more text will come."""
        at = start
        streams = self.types.types(self.key) == STRING
        out = ""
        while True:
            found, literal = (self.finder.find if final else self.finder.decided)(text, at)
            if not literal:
                cut = len(text) if final else found
                return cut, out + self._take(text[at:cut], streams), Status.MORE
            closes = literal in self.closers
            if closes and (streams or self.depth == 0):
                return found, out + self._take(text[at:found], streams) + self._finish(streams), Status.DONE
            self.depth += -1 if closes else 1
            end = found + len(literal)
            out += self._take(text[at:end], streams)
            at = end

    def _take(self, piece: str, streams: bool) -> str:
        if not streams:
            self.held.append(piece)
            return ""
        quote = "" if self.begun else '"'
        self.begun = True
        return quote + escape(piece)

    def _finish(self, streams: bool) -> str:
        if streams:
            return '"'
        value = read_tree("".join(self.held), self.style, self.types, self.types.schema(self.key))
        self.duplicate = duplicate_key(value)
        return value


def read_tree(text: str, style: TagStyle, types: ArgumentTypes, schema: Shape | None, depth: int = 0) -> str:
    """Return the inside of an element as JSON text."""
    elements = _elements(text, style) if style.item and depth < MAX_PARSED_DEPTH // 8 else []
    match _kind([name for name, _ in elements], style, types, schema):
        case "array":
            inner = types.inner(schema, None)
            return "[" + ", ".join(read_tree(body, style, types, inner, depth + 1) for _, body in elements) + "]"
        case "object":
            pairs = [
                f"{json.dumps(name, ensure_ascii=False)}: "
                + read_tree(body, style, types, types.inner(schema, name), depth + 1)
                for name, body in elements
            ]
            return "{" + ", ".join(pairs) + "}"
    return _leaf(text, types.types_of(schema))


def _kind(names: list[str], style: TagStyle, types: ArgumentTypes, schema: Shape | None) -> str:
    """Return the JSON type of elements with these names; "" for text.

    Several items are a list: an object could hold one of them. Where tags are like anybody's markup, and the schema allows
    a string, elements are text unless it allows a list of items as well, or an object that has them.
    """
    if not names:
        return ""
    allowed = types.types_of(schema)
    # `<b>bold</b>` may be HTML that somebody wants to send.
    may_be_text = style.open == "<" and "string" in allowed
    items = all(name == style.item for name in names)
    if items and ("array" in allowed or not allowed or (len(names) > 1 and not may_be_text)):
        return "array"
    known = len(set(names)) == len(names) and all(types.inner(schema, name) is not None for name in names)
    if may_be_text and not ("object" in allowed and known):
        return ""
    return "array" if items and "object" not in allowed else "object"


def _leaf(text: str, types: frozenset[str]) -> str:
    if not text.strip() and types and "string" not in types:
        return "[]" if "array" in types else "{}" if "object" in types else coerce(text, types)
    return coerce(text, types)


def _elements(text: str, style: TagStyle) -> list[tuple[str, str]]:
    """Split `text` into its top elements (name, inside); empty when it is not made of elements alone."""
    opener = re.compile(re.escape(style.open) + r"([^<>/]+)" + re.escape(style.end))
    elements: list[tuple[str, str]] = []
    at = 0
    while (at := end_of(_SPACE, text, at)) < len(text):
        found = opener.match(text, at)
        end = _matching(text, style, found.group(1), found.end()) if found else -1
        if not found or end < 0:
            return []
        elements.append((found.group(1), text[found.end() : end]))
        at = end + len(style.close) + len(found.group(1)) + len(style.end)
    return elements


def _matching(text: str, style: TagStyle, name: str, at: int) -> int:
    """Return where the closing tag of `name` begins whose opening tag ends at `at`; -1 when there is none."""
    opener, closer = style.open + name + style.end, style.close + name + style.end
    depth = 1
    while (found := text.find(closer, at)) >= 0:
        depth += text.count(opener, at, found) - 1
        if depth == 0:
            return found
        at = found + len(closer)
    return -1
