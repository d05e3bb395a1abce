"""Converts unquoted values to JSON text as they stream: raw text up to its end marker, values in Python-style calls, and nested tags.

Strategy: text that can only be a string is escaped and released immediately. Lists and objects are parsed as literals. If the type depends
on the text (`7`, `true`, `None`), the text is held back. It's released at the end marker, or once it can no longer be a number or a
keyword.

Models that generate Python-style calls quote strings, but some raw strings also start with a quotation mark. A value counts as quoted only
if the call can continue after the closing quote. Otherwise, the quotes are part of the raw text.

In tags named after the argument, text streams if the schema requires a string. Other values are held until the argument's own closing tag.
If lists and objects are nested tags, held values are parsed as trees. If all elements are list items, they form a list, and otherwise an
object. Text without elements is a single value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from unrender.limits import MAX_PARSED_DEPTH, MAX_SLOW_TEXT
from unrender.schema.shapes import Shape
from unrender.values import DONE, FAILED, MORE, Scanner, Status, Taker
from unrender.values.coercion import STRING, ArgumentTypes, coerce
from unrender.values.finder import ESCAPED, SPACE, Finder, end_of
from unrender.values.json_text import duplicate_key, escape, may_be_word
from unrender.values.marked_ends import Kind, ValueEnd, ValueMark, ValueMarks
from unrender.values.scanner import LiteralScanner, LiteralStyle
from unrender.values.unmarked_ends import Brackets, Follow

_TEXTUAL = frozenset(("string", "null", "boolean", "integer", "number"))
_LOOSE = LiteralStyle()
_STRUCTURED = frozenset(("object", "array"))
_PUNCTUATION = frozenset('[]{},:"')


@dataclass(slots=True, eq=False)
class RawScanner(Scanner):
    """Reads verbatim text as a value of one of `types`, up to an end marker that is not consumed."""

    finder: Finder | Follow
    types: frozenset[str]
    escapes: Mapping[str, str] = field(default_factory=dict)
    """Maps escaped forms to characters, e.g. `&lt;` to `<`. The finder also matches these forms."""
    doubt: ValueMarks | None = None
    """Marks that may end the value in addition to the end marker. None if only the end marker can end the value."""
    patient: bool = False
    """True if a value without an end marker may contain text that looks like its end."""
    torn: int | None = None
    keeps: bool = False
    """True if the value contains markers of arguments."""
    is_string: bool = field(init=False)
    """True once the value can only be a string."""
    begun: bool = False
    """True once the opening quote of the value's JSON text has been returned."""
    held: list[str] = field(default_factory=list)
    """Pieces of the value that are held back until it can only be a string."""
    head: str = ""
    """The held text without surrounding whitespace. Inner whitespace may be shortened."""
    blank: bool = False
    """True if the held text ends in whitespace."""
    literal: LiteralScanner | None = None
    broken: bool = False
    """True if the value should be a list or an object, but its text is damaged."""
    brackets: Brackets | None = field(init=False)
    """The brackets of a value in code. None for other values."""
    ends: int = 0
    """Number of possible ends inside the value."""
    after: list[str] = field(default_factory=list)
    """Pieces of text since the first possible end."""
    size: int = 0
    """Number of characters since the first possible end. After `MAX_SLOW_TEXT` characters, they aren't held back any more."""

    def __post_init__(self) -> None:
        self.finder = self.doubt.ends.finder if self.doubt else self.finder
        self.is_string = self.types == STRING
        self.brackets = Brackets() if self.patient and isinstance(self.finder, Follow) and self.finder.in_code else None

    @property
    def _wants_container(self) -> bool:
        """True if the schema allows a list or an object, but not a string."""
        return "string" not in self.types and not self.types.isdisjoint(_STRUCTURED)

    @property
    def flow(self) -> Taker | None:
        """Fast path for the text of a string. The fast path stops at characters that may end the string or must be escaped in JSON."""
        if not self.begun or not isinstance(self.finder, Finder) or (self.doubt and self.doubt.marks):
            return None
        return self.finder.flow(ESCAPED)

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        if self.literal or self._is_structured(text, start):
            return self._scan_literal(text, start, final=final)
        if self.doubt is not None:
            return self._scan_marks(self.doubt, text, start, final=final)
        if isinstance(self.finder, Follow):
            return self._scan_unmarked(self.finder, text, start, final=final)
        said: list[str] = []
        end, literal = self.finder.search(text, start, final=final)
        while literal in self.escapes:
            said += self.take(text[start:end]), self.take(self.escapes[literal])
            start = end + len(literal)
            end, literal = self.finder.search(text, start, final=final)
        if literal:
            return self._done(end, *said, self.take(text[start:end]))
        # Text that may be the start of the end marker stays in the buffer.
        return end, "".join((*said, self.take(text[start:end]))), MORE

    def _scan_unmarked(self, follow: Follow, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Read a value that has no end marker. The value fails if another call starts inside it.

        The value ends at the first possible end after which the calls may go on (`Follow.may_follow`). In code, no bracket may be open
        there, as in `f(x, limit=5), limit=3`. Without such an end, its only possible end counts, as in `sad :()]`. Several ones are
        ambiguous, and so is a closing bracket after a possible end.
        """
        begins = follow.begins
        said: list[str] = []
        while True:
            cut, mark = follow.search(text, start, final=final)
            call, begun = begins.find(text, start, cut + begins.longest)
            if begun and call < cut:
                self.unclear = True
                return call, "".join((*said, self._pass_code(text[start:call]))), FAILED
            counts = follow.may_follow(text, cut, mark, final=final) if mark and self.patient else bool(mark)
            if not mark and not final:
                cut = min(cut, begins.undecided_from(text, start))
            said.append(self._pass_code(text[start:cut]))
            brackets = self.brackets
            if counts and (brackets is None or brackets.balanced or (brackets.closed and not self.ends)):
                return self._done(cut, *said, *map(self.take, self.after))
            if counts is None or not mark or cut == len(text):
                break
            self.ends += 1
            said.append(self._pass_code(text[cut : cut + 1]))
            start = cut + 1
        if self.size > MAX_SLOW_TEXT:  # The possible ends are text.
            said += map(self.take, self.after)
            self.after.clear()
        if not (final and self.ends) or self.size > MAX_SLOW_TEXT:
            return cut, "".join(said), MORE
        self.unclear = self.ends > 1
        end = cut - self.behind
        return (end, "".join(said), FAILED) if self.unclear else self._done(end, *said)

    def _pass_code(self, text: str) -> str:
        """Return `text` as part of the value, or hold it if it follows a possible end."""
        if self.brackets:
            self.brackets.passed(text)
        if not self.ends:
            return self.take(text)
        self.after.append(text)
        self.size += len(text)
        return ""

    def _scan_marks(self, doubt: ValueMarks, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        finder = doubt.ends.finder
        said: list[str] = []
        while True:
            cut, literal = finder.search(text, start, final=final, whole=True)
            said.append(self._pass(doubt, text[start:cut]))
            if literal in self.escapes:
                start = cut + len(literal)
                said.append(self._pass(doubt, text[cut:start], self.escapes[literal]))
                continue
            mark = doubt.ends.mark(text, cut, literal, first=not doubt.tail, final=final) if literal else None
            if mark is None and not (final and not literal):
                return cut, "".join(said), MORE
            verdict = self._verdict(doubt, mark)
            if verdict is not None:
                return self._end(doubt, verdict, cut, said)
            if mark is None:
                said += map(self.take, doubt.held)
                return cut, "".join(said), MORE
            said.append(self._pass(doubt, text[cut : mark.end]))
            start = mark.end

    def _verdict(self, doubt: ValueMarks, mark: ValueMark | None) -> ValueEnd | None:
        """Return the end of the value, or None while the end is uncertain. `mark` is None at the end of the output."""
        if mark is None:
            return doubt.ended()
        if mark.kind is Kind.TEXT:
            return None
        if mark.kind in (Kind.CLOSED, Kind.BROKEN, Kind.NESTED) and self._nested:
            mark = replace(mark, kind=Kind.MENTIONED)
        return doubt.met(mark)

    @property
    def _nested(self) -> bool:
        """True if the next closer belongs to an element inside the value."""
        return False

    def _pass(self, doubt: ValueMarks, text: str, meaning: str | None = None) -> str:
        """Return `text` as part of the value, or hold it if it follows a mark. `meaning` is the unescaped `text` if it differs."""
        doubt.passed(text)
        said = text if meaning is None else meaning
        if not doubt.marks:
            return self.take(said)
        doubt.held.append(said)
        return ""

    def _end(self, doubt: ValueMarks, verdict: ValueEnd, here: int, said: list[str]) -> tuple[int, str, Status]:
        mark = verdict.mark
        self.keeps = not verdict.failed and doubt.keeps(mark)
        if mark is None:
            return self._done(here, *said, *map(self.take, doubt.held))
        # If the value seems to contain another call, the held text isn't parsed again.
        end = here - doubt.size + mark.at
        self.unclear = verdict.unclear
        if verdict.failed:
            return here if doubt.begun and not verdict.unclear else end, "".join(said), FAILED
        said += map(self.take, doubt.held[: mark.pieces])
        if mark.kind in (Kind.OPENED, Kind.ENDED):
            self.torn = mark.torn
        return self._done(end, *said)

    def _done(self, end: int, *said: str) -> tuple[int, str, Status]:
        """Return the result of `scan` for a value that ends at `end`."""
        value = self._finish()
        self.broken = value[:1] == '"' and self._is_damaged()
        return (end, "".join(said), FAILED) if self.broken else (end, "".join((*said, value)), DONE)

    def _is_damaged(self) -> bool:
        """Return whether the value was read as a string, but looks like a damaged list or object."""
        text = "".join(self.held).strip()
        return self._wants_container and (text.startswith(("{", "[")) or text.endswith(("}", "]")))

    def passed(self, text: str) -> None:
        if self.doubt is not None:
            self.doubt.passed(text)
        if self.brackets:
            self.brackets.passed(text)

    @property
    def wanted(self) -> str:
        if self.broken:
            return "a list or an object"
        if self.ends:
            return "the end of the value"
        return repr(self.doubt.ends.closers[0]) if self.doubt else "a JSON value"

    @property
    def behind(self) -> int:
        return self.doubt.size if self.doubt else self.size * (self.size <= MAX_SLOW_TEXT)

    def _is_structured(self, text: str, start: int) -> bool:
        passed = self.held or self.begun or (self.doubt and self.doubt.held)
        if passed or self.escapes or text[start : start + 1] not in ("{", "["):
            return False
        # `{` starts an object only if the schema doesn't allow strings, because code in a string may also start with `{`.
        if self.types <= _STRUCTURED or not self._wants_container:
            return bool(self.types) and self._wants_container
        # Parse the value as a literal if it may contain the end marker, e.g. `]` in `[[1], 2]]`.
        finder = self.finder
        return isinstance(finder, Finder) and any(_PUNCTUATION.issuperset(end.strip()) for end in finder.literals)

    def _scan_literal(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        if self.literal is None:
            self.literal = LiteralScanner(_LOOSE)
        result = self.literal.scan(text, start, final=final)
        self.duplicate = self.literal.duplicate
        return result

    def take(self, piece: str) -> str:
        """Return JSON text for a piece of the value, or "" to hold the piece back. The piece must not contain the value's end."""
        if not self.is_string:
            self._hold(piece)
            if self._may_be_other():
                return ""
            # The value can only be a string, e.g. because ` apples` follows the held `4`, so release all held text.
            self.is_string = True
            piece = "".join(self.held)
        quote = "" if self.begun else '"'
        self.begun = True
        return quote + escape(piece)

    def _hold(self, piece: str) -> None:
        if not piece:
            return
        self.held.append(piece)
        if self.head[:1] in ("{", "[") or self._wants_container:
            return
        # `4` followed by ` 2` is `4 2`, which is not a number. To detect such text, a single space between the digits is enough.
        core = piece.strip()
        apart = bool(core and self.head) and (self.blank or piece[0].isspace())
        self.head += " " + core if apart else core
        self.blank = piece[-1].isspace()

    def _may_be_other(self) -> bool:
        if self.head[:1] in ("{", "["):
            # If the schema allows strings but neither lists nor objects, `{a}` is a string.
            return not ("string" in self.types and self.types <= _TEXTUAL)
        # Hold text that may be a damaged object: in `"a": 1}`, the opening bracket is missing.
        return self._wants_container or may_be_word(self.head)

    def _finish(self) -> str:
        if self.is_string:
            return '"'
        value = coerce("".join(self.held), self.types)
        self.duplicate = duplicate_key(value)
        return value


@dataclass(slots=True, eq=False, kw_only=True)
class CodeValueScanner(RawScanner):
    """Reads one value in a Python-style call, up to an end that is not consumed.

    The value is parsed as a quoted string if possible, and as raw text otherwise. `following` finds the text after a quoted string, which
    may start an undeclared argument.
    """

    finder: Follow
    following: Follow
    string: LiteralScanner = field(default_factory=partial(LiteralScanner, LiteralStyle()))
    quoted: list[str] = field(default_factory=list)
    """Pieces of the quoted string as the model generated them."""
    length: int = 0
    """Length of the quoted string."""
    said: list[str] = field(default_factory=list)
    """Pieces of the quoted string, as JSON text."""
    closed: bool = False
    """True once the closing quote has been read."""
    settled: bool = False
    """True once the value can only be raw text."""

    @property
    def behind(self) -> int:
        return super(CodeValueScanner, self).behind if self.settled else self.length

    @property
    def wanted(self) -> str:
        return "the end of the value" if self.closed else "a JSON value"

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        if self.settled:
            return RawScanner.scan(self, text, start, final=final)
        if not self.closed:
            end, said, status = self.string.scan(text, start, final=final)
            # Keep the string in quoted and in raw form until the text after the closing quote decides.
            self.quoted.append(text[start:end])
            self.length += end - start
            self.said.append(said)
            if status is not DONE:
                return self._decide_without_end(text, end, status) if final else (end, "", status)
            start, self.closed = end, True
        return self._decide_after_quotation(text, start, final=final)

    def _decide_after_quotation(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Decide from the text after the closing quote whether the value is quoted.

        The value of `"a", b=1` is quoted. The value `"a" and "b"` is raw text that contains quotes.
        """
        end, mark = self.following.search(text, start, final=final)
        if not text[start:end].strip():
            follows = self.following.may_follow(text, end, mark, final=final) if mark else final or None
            if follows is None:
                return start, "", MORE
            return start, "".join(self.said), DONE if follows else FAILED
        quotation = "".join(self.quoted)
        mark = self.finder.decided(quotation, 0)[1]
        # In `'tis late), f(x='b)` and `'tis late, y=don't`, the second quote belongs to another value, so the value ends before that quote.
        if mark and (text[start].isalnum() or self.finder.opens_value(quotation[:-1])):
            return self._read_again(text, start, final=final)
        # In `"a), f(x=b" and "c"`, the value may end at the bracket or at the last quote. An ambiguous value fails.
        if mark and self.finder.closes_arguments(mark):
            return start, "".join(self.said), FAILED
        self.settled = True
        self.passed(quotation)
        said = self.take(quotation)
        end, rest, status = RawScanner.scan(self, text, start, final=final)
        return end, said + rest, status

    def _decide_without_end(self, text: str, end: int, status: Status) -> tuple[int, str, Status]:
        """Parse a value whose quoted string is never closed. The value is raw text if all calls end inside the string."""
        quotation = "".join(self.quoted)
        at, mark = self.finder.decided(quotation, 0)
        if mark and self.finder.ends_calls(quotation, at):
            return self._read_again(text, end, final=True)
        return end, "".join(self.said), status

    def _read_again(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Parse the quoted string again as raw text, including its opening quote."""
        self.settled = True
        end, said, status = RawScanner.scan(self, "".join(self.quoted) + text[start:], 0, final=final)
        return start - self.length + end, said, status


# Tags.


@dataclass(frozen=True, slots=True)
class TagStyle:
    """Syntax of tags. An element consists of `open` + name + `end`, its content, and `close` + name + `end`."""

    open: str
    """Start of an opening tag, e.g. `<`."""
    close: str
    """Start of a closing tag, e.g. `</`."""
    end: str
    """End of a tag, e.g. `>`."""
    item: str
    """Tag name of list items. Empty if lists and objects are not encoded as tags."""
    space: str = ""
    """Whitespace before the closing tag that is not part of the value."""


@dataclass(slots=True, eq=False, kw_only=True)
class XmlScanner(RawScanner):
    """Reads the text inside the tag of the argument `key`, up to its closing tag."""

    style: TagStyle
    key: str
    tree: ArgumentTypes

    @property
    def _nested(self) -> bool:
        return not self.is_string and self.doubt is not None and self.doubt.depth > 0

    def _is_damaged(self) -> bool:
        # If lists and objects are encoded as tags, a damaged value is recognized by leftover tags.
        if not self.style.item:
            return RawScanner._is_damaged(self)
        text = "".join(self.held)
        return self._wants_container and (self.style.open in text or self.style.close in text)

    def _end(self, doubt: ValueMarks, verdict: ValueEnd, here: int, said: list[str]) -> tuple[int, str, Status]:
        result = RawScanner._end(self, doubt, verdict, here, said)
        # The tags of a list or an object aren't text.
        self.keeps = self.keeps and self.is_string
        return result

    def take(self, piece: str) -> str:
        if self.is_string:
            return RawScanner.take(self, piece)
        self.held.append(piece)
        return ""

    def _finish(self) -> str:
        if self.is_string:
            return '"'
        value = read_tree("".join(self.held), self.style, self.tree, self.tree.schema(self.key))
        self.duplicate = duplicate_key(value)
        return value


def read_tree(text: str, style: TagStyle, types: ArgumentTypes, schema: Shape | None, depth: int = 0) -> str:
    """Return the JSON text for `text`, the content of an element."""
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
    allowed = types.types_of(schema)
    # An empty element, e.g. `<tags></tags>`, is an empty list or object if the schema allows one but no string.
    if not text.strip() and "string" not in allowed and not allowed.isdisjoint(_STRUCTURED):
        return "[]" if "array" in allowed else "{}"
    return coerce(text, allowed)


def _kind(names: list[str], style: TagStyle, types: ArgumentTypes, schema: Shape | None) -> str:
    """Return "array" or "object" for elements with the given names, or "" for text.

    Several items form a list, because the keys of an object are unique. If tags look like HTML and the schema allows a string, elements are
    text. However, a list of items and an object with known keys take precedence if the schema allows them.
    """
    if not names:
        return ""
    allowed = types.types_of(schema)
    # If the schema allows a string, `<b>bold</b>` may be HTML.
    may_be_text = style.open == "<" and "string" in allowed
    items = all(name == style.item for name in names)
    if items and ("array" in allowed or not allowed or (len(names) > 1 and not may_be_text)):
        return "array"
    known = len(set(names)) == len(names) and all(types.inner(schema, name) is not None for name in names)
    if may_be_text and not ("object" in allowed and known):
        return ""
    return "array" if items and "object" not in allowed else "object"


def _elements(text: str, style: TagStyle) -> list[tuple[str, str]]:
    """Return the name and content of each top-level element. Returns an empty list if `text` contains anything else."""
    opener = re.compile(re.escape(style.open) + r"([^<>/]+)" + re.escape(style.end))
    elements: list[tuple[str, str]] = []
    at = 0
    while (at := end_of(SPACE, text, at)) < len(text):
        found = opener.match(text, at)
        end = _matching(text, style, found.group(1), found.end()) if found else -1
        # If there is text outside the elements, such as the `a` in `a <b>c</b>`, nothing is an element.
        if not found or end < 0:
            return []
        elements.append((found.group(1), text[found.end() : end]))
        at = end + len(style.close) + len(found.group(1)) + len(style.end)
    return elements


def _matching(text: str, style: TagStyle, name: str, at: int) -> int:
    """Return the start of the tag that closes `name`, or -1 if the tag is missing. `at` is the end of the opening tag."""
    opener, closer = style.open + name + style.end, style.close + name + style.end
    depth = 1
    while (found := text.find(closer, at)) >= 0:
        # In `<a><a></a></a>`, the first closing tag belongs to the inner element, so count the opening tags before each closing tag.
        depth += text.count(opener, at, found) - 1
        if depth == 0:
            return found
        at = found + len(closer)
    return -1
