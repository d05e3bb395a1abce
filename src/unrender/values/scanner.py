"""Converts argument values of any codec to JSON text as they stream.

Strategy: a scanner is a small automaton that can suspend at any character. A scanner gets the buffer and a position, and consumes as much
text as possible. The result is the new position, the JSON text of the consumed part, and the status. Undecided text, such as half an escape
or an incomplete word, stays in the buffer. Undecided text is never longer than a few characters. `json_fast_path` passes well-formed JSON
through unchanged. This module parses broken, truncated and non-JSON text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache, partial

from unrender.cache import kept
from unrender.limits import MAX_PARSED_DEPTH, MAX_WORD
from unrender.values import DONE, FAILED, MORE, Scanner, Status
from unrender.values.finder import JSON_STRING, Finder, end_of
from unrender.values.json_fast_path import (
    COLON,
    END,
    FIRST_ITEM,
    FIRST_KEY,
    ITEM,
    KEY,
    KEY_STRING,
    LEVELS,
    NEXT,
    STRING,
    VALUE,
    well_formed,
)
from unrender.values.json_text import (
    MAY_GO_ON,
    after_argument,
    after_string,
    closing,
    duplicate_of,
    escape,
    json_word,
    may_be_word,
    read_escape,
)

_REPEATED = 24
"""Maximum length of cached chunks, which are a few tokens long and often recur in the same place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralStyle:
    """Notations that a `LiteralScanner` accepts in addition to JSON."""

    strict: bool = False
    """True if only JSON is allowed."""
    quote_open: str = ""
    """Opening quote of verbatim strings, e.g. `<|"|>`. Verbatim strings inside lists and objects require `bare_keys`."""
    quote_close: str = ""
    marks: Finder | None = None
    """Finds `quote_close` and the escaped forms of characters. None if no characters are escaped."""
    escapes: tuple[tuple[str, str], ...] = ()
    """Characters that are escaped in verbatim strings, with their escaped forms."""
    bare_keys: bool = False
    """True if keys may be unquoted."""
    loose_keys: bool = False
    """True if keys of JSON objects may be unquoted, as in JavaScript."""
    stops: tuple[str, ...] = ()
    """Text that ends a number or a word, e.g. the `|` in `k=3|`, or the `-->` in `3-->`."""
    ends: tuple[str, ...] = ()
    """First characters of text that may follow the value. A one-character delimiter closes a string only before one of these characters."""
    after_key: str = ""
    """Text between the name and the value of an argument. Empty if more than whitespace separates arguments."""
    in_code: bool = False
    """True for an argument of a Python-style call, which is followed by `)`, or by a comma, a name and `=`."""
    names: tuple[str, ...] = ()
    """Argument names in Python-style calls that are not plain words."""
    glued: bool = False
    """True if the next argument's name may immediately follow a number or a word, as in `f(a=3b=4)`."""


_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\"\\\x00-\x1f]*")}
WORD = re.compile(r"[^\s,:\[\]{}()\"'<`]*")
_GLUED = re.compile(r"(?:-?[0-9]+(?:\.[0-9]+)?(?>(?:[eE][-+]?[0-9]++)?)|true|false|null|True|False|None)(?=[^\W\d])")
"""Matches a number or a keyword that is followed by a letter. If the letter may start an exponent, as in `3e`, `_word` waits for more text.
"""
_BARE_KEY = re.compile(r"[^\s,:=\[\]{}()\"']*(?: {1,4}[^\s,:=\[\]{}()\"']+)*")


@dataclass(slots=True, eq=False)
class LiteralScanner(Scanner):
    """Reads one JSON value and returns its JSON text. If `style.strict` is False, Python literals and other notations are accepted too."""

    style: LiteralStyle
    state: int = VALUE
    stack: str = ""
    """Open brackets."""
    quote: str = ""
    comma: str = ""
    """A comma and the space after it, held until the next item. Trailing commas are dropped."""
    keys: str = ""
    """The keys of the outermost object as JSON text, without their opening quotes."""

    @property
    def flow(self) -> LiteralScanner | None:
        """Fast path for well-formed JSON, up to the end of the value."""
        return self if self._may_be_json() else None

    def take(self, text: str) -> tuple[str, int] | None:
        """Consume well-formed JSON that doesn't end the value. The result is the same as that of `scan`.

        Returns None if `text` contains anything else.
        """
        if self.state == STRING and (found := JSON_STRING.take(text)):
            return found
        # Cache only short chunks such as `, `, which recur often.
        read = (_taken if len(text) <= _REPEATED else _taken.__wrapped__)(text, self.state, self.stack, self.comma)
        if read is None:
            return None
        taken, used, self.state, self.stack, self.comma, keys = read
        self.quote = '"'
        if keys:
            self.keys += keys
        return taken, used

    @property
    def untouched(self) -> bool:
        """True until a value starts."""
        return self.state == VALUE and not self.stack

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        pieces: list[str] = []
        at, before, status = start, -1, MORE
        while before < at < len(text) and status is MORE:
            before = at
            # The regexes of `json_fast_path` parse plain JSON. All other text is parsed character by character, with the same result.
            if self._may_be_json() and (end := self._well_formed(text, at, pieces)) > at:
                at = end  # Consumes `{"a": [1, 2], ` in one step. The code below continues with `b: 3}`.
            elif self.state in (STRING, KEY_STRING):
                # Collect only the keys of the outermost object, because only these are the call's arguments.
                size = len(pieces) if self.state == KEY_STRING and len(self.stack) == 1 else -1
                at, status = self._string(text, at, pieces, final)
                self.keys += "".join(pieces[size:]) if size >= 0 else ""
            else:
                at = self._space(text, at, pieces)
                if at < len(text):
                    at, status = _STEPS[self.state](self, text, at, pieces, final)
            if self.state == END:
                status, self.duplicate = DONE, duplicate_of(self.keys)
        return at, "".join(pieces), status

    def _may_be_json(self) -> bool:
        if self.style.bare_keys:
            return False
        if self.state in (STRING, KEY_STRING):
            return self.quote == '"' and self.style.quote_open != '"'
        # Outside brackets, `_word` parses the value, because more digits may follow `12`.
        return 0 < len(self.stack) <= MAX_PARSED_DEPTH - LEVELS

    def _well_formed(self, text: str, start: int, pieces: list[str]) -> int:
        """Consume valid JSON, and return it unchanged. Invalid or incomplete text is left to the caller."""
        said, at, self.state, self.stack, self.comma, keys = well_formed(
            text, start, self.state, self.stack, self.comma, MAX_PARSED_DEPTH - LEVELS
        )
        if at > start:
            pieces.append(said)
            self.keys, self.quote = self.keys + keys, '"'
        return at

    def _space(self, text: str, at: int, pieces: list[str]) -> int:
        end = end_of(_SPACE, text, at)
        if end > at and self.comma:
            self.comma += text[at:end]
        # Drop whitespace before the value, but keep whitespace inside brackets.
        elif end > at and self.stack:
            pieces.append(text[at:end])
        return end

    def _value(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        char = text[at]
        style = self.style
        if char in "{[":
            if len(self.stack) >= MAX_PARSED_DEPTH:
                return at, FAILED
            self._flush_comma(pieces)
            self.stack += char
            self.state = FIRST_KEY if char == "{" else FIRST_ITEM
            pieces.append(char)
            return at + 1, MORE
        # The text may start with the format's own quote, e.g. `<|"|>`. If the quote is incomplete (`<|"`), wait for the rest.
        verbatim = style.quote_open and (style.bare_keys or not self.stack)
        if verbatim and style.quote_open.startswith(text[at : at + len(style.quote_open)]):
            size = len(style.quote_open)
            if len(text) - at < size:
                return at, FAILED if final else MORE
            return self._open_string(style.quote_open, at, pieces)
        if char == '"' or (char == "'" and not style.strict):
            return self._open_string(char, at, pieces)
        return self._word(text, at, pieces, final)

    def _open_string(self, quote: str, at: int, pieces: list[str]) -> tuple[int, Status]:
        self._flush_comma(pieces)
        self.quote, self.state = quote, KEY_STRING if self.state in (FIRST_KEY, KEY) else STRING
        pieces.append('"')
        return at + len(quote), MORE

    def _word(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        end = end_of(WORD, text, at)
        # Outside brackets, a marker of the format ends a word, e.g. the `|` of `k=3|`.
        if self.style.stops and not self.stack:
            # After `3ENDC`, `ENDCALL` may follow, so the marker `C` doesn't end the word yet.
            if end == len(text) and not final and self._may_stop(text[at:end]):
                return at, MORE
            end = min((found for stop in self.style.stops if (found := text.find(stop, at, end)) >= 0), default=end)
        if self.style.glued and not self.stack and (whole := _GLUED.match(text, at, end)):
            end = whole.end()
            if not final and len(text) - end <= 2 and text[end:].rstrip("+-") in ("e", "E"):
                return at, MORE
        word = text[at:end]
        if end - at > MAX_WORD or end == at:
            return at, FAILED
        # `tr` may become `true`, and `3--` may be a 3 before `-->`, so wait for more text.
        if end == len(text) and not final:
            return at, MORE if may_be_word(word) or self._may_stop(word) else FAILED
        written = json_word(word, strict=self.style.strict)
        if not written:
            return at, FAILED
        if written == "null" and word not in ("null", "None"):
            self.lost = self.lost or word
        self._flush_comma(pieces)
        pieces.append(written)
        return end, self._after_value()

    def _may_stop(self, word: str) -> bool:
        """Return whether `word` ends with the start of a stop, so that the value may be complete."""
        begun = (stop[:size] for stop in self.style.stops for size in range(1, len(stop)))
        return any(word.endswith(head) and may_be_word(word.removesuffix(head)) for head in begun)

    def _flush_comma(self, pieces: list[str]) -> None:
        pieces.append(self.comma)
        self.comma = ""

    def _after_value(self) -> Status:
        self.state = NEXT if self.stack else END
        return MORE

    def _item_or_end(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        if text[at] == "]" and self._may_end(FIRST_ITEM):
            return self._close("]", at, pieces)
        return self._value(text, at, pieces, final)

    def _may_end(self, first: int) -> bool:
        """Return whether a closing bracket is allowed. If `style.strict` is False, a closing bracket may follow a comma."""
        return self.state == first or not self.style.strict

    def _key(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        char = text[at]
        if char == "}" and self._may_end(FIRST_KEY):
            return self._close("}", at, pieces)
        if char == '"' or (char == "'" and not self.style.strict):
            return self._open_string(char, at, pieces)
        quote = self.style.quote_open
        if quote and text.startswith(quote, at):
            return self._open_string(quote, at, pieces)
        # `<|` may become `<|"|>`, which starts a key, so wait for more text.
        if quote and not final and quote.startswith(text[at : at + len(quote)]):
            return at, MORE
        unquoted = self.style.bare_keys or self.style.loose_keys
        return self._bare_key(text, at, pieces, final) if unquoted else (at, FAILED)

    def _bare_key(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        end = end_of(_BARE_KEY, text, at)
        if end == at or end - at > MAX_WORD:
            return at, FAILED
        # `first` may become `first name`, which is a single key, so wait for more text.
        if not final and MAY_GO_ON.match(text, end):
            return at, MORE
        self._flush_comma(pieces)
        key = f'{escape(text[at:end])}"'
        self.keys += key if len(self.stack) == 1 else ""
        pieces.append('"' + key)
        self.state = COLON
        return end, MORE

    def _colon(self, text: str, at: int, pieces: list[str], _final: bool) -> tuple[int, Status]:
        if text[at] != ":":
            return at, FAILED
        self.state = VALUE
        # Write a space after the colon: `{city:1}` becomes `{"city": 1}`. JSON keeps its own whitespace.
        pieces.append(": " if self.style.bare_keys else ":")
        return at + 1, MORE

    def _next(self, text: str, at: int, pieces: list[str], _final: bool) -> tuple[int, Status]:
        char = text[at]
        # Hold the comma until the next item: `[1, ]` becomes `[1]`.
        if char == ",":
            self.comma = char
            self.state = KEY if self.stack[-1] == "{" else ITEM
            return at + 1, MORE
        if char == ("}" if self.stack[-1] == "{" else "]"):
            return self._close(char, at, pieces)
        return at, FAILED

    def _close(self, char: str, at: int, pieces: list[str]) -> tuple[int, Status]:
        self.comma = ""
        self.stack = self.stack[:-1]
        pieces.append(char)
        return at + 1, self._after_value()

    def _string(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        # The quote `'` may delimit verbatim strings, which have no escapes. Inside `{…}`, the quote `'` delimits JSON or Python strings
        # instead.
        is_nested = bool(self.stack) and not self.style.bare_keys
        if self.quote in _PLAIN and (self.quote != self.style.quote_open or is_nested):
            return self._escaped_string(text, at, pieces, final)
        return self._verbatim_string(text, at, pieces, final)

    def _escaped_string(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        plain = _PLAIN[self.quote]
        while True:
            end = end_of(plain, text, at)
            pieces.append(text[at:end])
            if end == len(text):
                return end, MORE
            char = text[end]
            if char == self.quote:
                return self._end_string(end + 1, pieces)
            if char == "\\":
                at, decoded = read_escape(text, end, final)
                if at == end:
                    return at, MORE
                pieces.append(decoded)
            elif self.style.strict:
                return end, FAILED
            else:  # Escape a line break or the other kind of quote, because JSON requires it.
                pieces.append(escape(char))
                at = end + 1

    def _verbatim_string(self, text: str, at: int, pieces: list[str], final: bool) -> tuple[int, Status]:
        style, close = self.style, self.style.quote_close
        marks = style.marks or (_delimiter(close) if len(close) > 1 else None)
        if marks is not None:
            characters = {form: character for character, form in style.escapes}
            # The second quote in `'it''s'` may be the end or the first half of an escape, so wait for more text.
            find = partial(marks.search, final=final, whole=True)
            end, literal = find(text, at)
            while literal in characters:
                pieces.append(escape(text[at:end] + characters[literal]))
                at = end + len(literal)
                end, literal = find(text, at)
            end = end if literal else -end - 1
        elif style.in_code and not self.stack:
            end = closing(text, at, close, after_argument(style.names), final=final)
        else:
            following = after_string((), "") if self.stack else after_string(style.ends, style.after_key)
            end = closing(text, at, close, following, final=final)
        if end >= 0:
            pieces.append(escape(text[at:end]))
            return self._end_string(end + len(close), pieces)
        cut = len(text) if final else -end - 1
        pieces.append(escape(text[at:cut]))
        return cut, MORE

    def _end_string(self, at: int, pieces: list[str]) -> tuple[int, Status]:
        pieces.append('"')
        if self.state == KEY_STRING:
            self.state = COLON
            return at, MORE
        return at, self._after_value()


@kept(1_000)
def _delimiter(close: str) -> Finder:
    return Finder((close,))


_STEPS = {
    VALUE: LiteralScanner._value,
    FIRST_ITEM: LiteralScanner._item_or_end,
    ITEM: LiteralScanner._item_or_end,
    FIRST_KEY: LiteralScanner._key,
    KEY: LiteralScanner._key,
    COLON: LiteralScanner._colon,
    NEXT: LiteralScanner._next,
}


# The shared cache isn't used here: it's for request data rather than model output, and a lookup takes as long as parsing such short text.
@lru_cache(maxsize=4096)
def _taken(text: str, state: int, stack: str, comma: str) -> tuple[str, int, int, str, str, str] | None:
    """Return the JSON form of `text`, the length of the consumed text, and the new state, brackets, comma and keys.

    Results are cached, because models often repeat short pieces of text in the same places.
    """
    taken, at, state, stack, comma, keys = well_formed(text, 0, state, stack, comma, MAX_PARSED_DEPTH - LEVELS)
    if state == END:
        return None
    if at < len(text) and state not in (STRING, KEY_STRING):
        end = end_of(_SPACE, text, at)
        taken, comma = (taken, comma + text[at:end]) if comma else (taken + text[at:end], comma)
        at = end
    # The rest is either the start of a word, e.g. `tru`, or not JSON. If the rest isn't JSON, the machine parses all of `text`.
    begun = at == len(text) or (state in (VALUE, FIRST_ITEM, ITEM) and may_be_word(text[at:]))
    return (taken, at, state, stack, comma, keys) if begun else None


# JSON objects inside JSON strings.

_UNESCAPED = re.compile(r'[^"\\]*')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_LONGEST_ESCAPE = len(r"\ud83c\udf0d")


@dataclass(slots=True, eq=False)
class QuotedScanner(Scanner):
    r"""Reads a JSON string that contains a JSON object, and returns the object. An empty string is returned as `{}`.

    The content (`{\"city\": …`) is decoded piece by piece and parsed by an inner scanner. Undecided text stays in the buffer. The position
    of an error in the output is therefore exact for every chunking. There is no fast path, because every character may be half of an
    escape.
    """

    inner: LiteralScanner
    opened: bool = False
    done: bool = False
    """True once the value is complete, so that only whitespace may follow."""

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        at = start if self.opened else start + 1
        self.opened = True
        # Decode the buffer again for each chunk. The buffer is short, because text that the inner scanner has consumed is removed.
        inside = _Inside(text, at, final=final)
        # `_Inside` stops decoding at an unescaped quotation mark, which ends the string.
        ended = text.startswith('"', inside.end)
        used, result = 0, ""
        head = inside.decoded.lstrip()
        # If the string doesn't start with `{`, as in `"hello"`, it can't contain an object.
        if self.inner.untouched and head and not head.startswith("{"):
            return inside.place(len(inside.decoded) - len(head)), "", Status.FAILED
        if not self.done:
            used, result, status = self.inner.scan(inside.decoded, 0, final=final or ended)
            if ended and self.inner.untouched and used == len(inside.decoded):
                return inside.end + 1, "{}", Status.DONE
            if status is not Status.DONE:
                return inside.place(used), result, Status.FAILED if ended else status
            self.done, self.duplicate, self.lost = True, self.inner.duplicate, self.inner.lost
        # Only whitespace is allowed between the object and the closing quote, so `"{} x"` fails.
        rest = inside.decoded[used:].lstrip()
        if rest:
            return inside.place(len(inside.decoded) - len(rest)), result, Status.FAILED
        return (inside.end + 1, result, Status.DONE) if ended else (inside.end, result, Status.MORE)


class _Inside:
    """The content of a JSON string in the buffer, decoded, with the position of each piece."""

    __slots__ = ("decoded", "end", "starts")

    def __init__(self, text: str, at: int, *, final: bool) -> None:
        pieces: list[str] = []
        self.starts: list[tuple[int, int]] = []
        size = 0
        while at < len(text) and text[at] != '"':
            end, piece = _piece(text, at, final=final)
            if end == at:
                break
            self.starts.append((size, at))
            pieces.append(piece)
            size += len(piece)
            at = end
        self.decoded = "".join(pieces)
        self.end = at

    def place(self, index: int) -> int:
        """Return the position in the text for the decoded character at `index`."""
        if index >= len(self.decoded):
            return self.end
        size, at = next((size, at) for size, at in reversed(self.starts) if size <= index)
        # A piece of several characters has no escapes, so decoding didn't change its length.
        return at + index - size


def _piece(text: str, at: int, *, final: bool) -> tuple[int, str]:
    """Decode plain text or one escape. Returns the end of the decoded part, and the decoded text.

    The end is `at` if the escape is incomplete.
    """
    end = end_of(_UNESCAPED, text, at)
    if end > at:
        return end, text[at:end]
    if len(text) - at < _LONGEST_ESCAPE and not final and not _certain(text, at):
        return at, ""
    found = _ESCAPE.match(text, at)
    if not found:
        return at + 1, "\\"
    try:
        return found.end(), str(json.loads(f'"{found.group()}"', strict=False))
    except json.JSONDecodeError:
        return at + 1, "\\"


def _certain(text: str, at: int) -> bool:
    """Return whether an escape is complete, regardless of the following text."""
    kind = text[at + 1 : at + 2]
    if kind != "u":
        return bool(kind)
    # `\u00e9` is complete, but `\ud83c` may be the first half of a surrogate pair.
    surrogate = text[at + 2 : at + 3] in ("d", "D", "")
    return not surrogate and len(text) - at >= len(r"\u0000")
