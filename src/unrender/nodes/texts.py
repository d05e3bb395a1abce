"""Converts string constraints to nodes: formats, lengths, excluded words, and escaped characters.

Patterns describe decoded text. `encoded_node` escapes each character as defined by an `Alphabet`, so a pattern is parsed only once for
JSON, Python and raw text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from os.path import commonprefix

from unrender.limits import MAX_EXCLUDED_WORD, MAX_KNOWN_STATES
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Repeat, Sequence, refusal_of, rewrite, walk
from unrender.nodes.patterns import Ranges, any_pattern, complement, holds, read_pattern

_HOUR = r"([01][0-9]|2[0-3])"
_DATE = (
    r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = rf"{_HOUR}:[0-5][0-9]:[0-5][0-9](\.[0-9]{{1,9}})?([Zz]|[+-]{_HOUR}:[0-5][0-9])"
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}"
_HEXTET = r"[0-9A-Fa-f]{1,4}"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = rf"{_LABEL}(\.{_LABEL}){{0,8}}"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PATH_CHAR = r"([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_TAIL = rf"(\?({_PATH_CHAR}|[/?])*)?(#({_PATH_CHAR}|[/?])*)?"
_PATH = rf"{_PATH_CHAR}*(/{_PATH_CHAR}*)*"


_IPV6 = (
    rf"({_HEXTET}:){{7}}{_HEXTET}",
    *(rf"({_HEXTET}(:{_HEXTET}){{0,{left - 1}}})?::({_HEXTET}(:{_HEXTET}){{0,{6 - left}}})?" for left in range(1, 7)),
)
"""IPv6 addresses: the form without `::`, and the forms with `::` at each position."""

FORMATS: Mapping[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[Tt]{_TIME}",
    "duration": r"P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)(T([0-9]+H([0-9]+M([0-9]+S)?)?"
    r"|[0-9]+M([0-9]+S)?|[0-9]+S))?|T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))",
    "uuid": r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": _IPV4,
    "ipv6": "|".join(_IPV6),
    "hostname": _HOSTNAME,
    "email": rf"{_ATOM}(\.{_ATOM})*@{_HOSTNAME}",
    "uri": rf"[A-Za-z][A-Za-z0-9+.-]*:(//{_PATH_CHAR}+)?{_PATH}{_TAIL}",
    "uri-reference": rf"([A-Za-z][A-Za-z0-9+.-]*:)?(//{_PATH_CHAR}+)?{_PATH}{_TAIL}",
    "json-pointer": r"(/([^/~]|~[01])*)*",
}
"""Maps the name of a string format to a regular expression for the complete string (RFC 3339, 4122, 2673, 4291, 1123, 5321, 3986, 6901)."""

ANNOTATING_FORMATS = frozenset({"int32", "int64", "float", "double", "password", "byte", "binary"})
"""OpenAPI formats that annotate a value without restricting its text."""


def format_node(name: str) -> Node | None:
    """Return the node for a string format, or None if the format is unknown."""
    return read_pattern(f"^(?:{FORMATS[name]})$") if name in FORMATS else None


@dataclass(frozen=True)
class Alphabet:
    """The escaping rules for the characters of a string.

    `escapes` maps a character to its written form. A node for any character never generates characters in `forbidden`.
    """

    escapes: tuple[tuple[str, str], ...] = ()
    forbidden: Ranges = ()
    general: Node | None = None
    """Node for any single character in all its escaped and unescaped forms. If None, the node is derived from the other fields."""
    coded: str = ""
    """Format string for a control character's code, e.g. `\\x{:02x}`. If the string is empty, control characters aren't escaped."""
    classes: dict[Chars, Node] = field(init=False, repr=False, compare=False, default_factory=dict)
    """Cache of encoded character classes, since most grammars use the same few classes."""

    @cached_property
    def table(self) -> Mapping[int, str]:
        """Maps the code of each escaped character to its written form."""
        controls = {code: self.coded.format(code) for code in range(_CONTROLS) if self.coded}
        return controls | {ord(character): form for character, form in self.escapes}

    def character(self) -> Node:
        """Return the node of any single character."""
        return self.general or encoded_node(Chars((), negated=True), self)

    def written(self, text: str) -> str:
        """Return `text` with its characters escaped."""
        return text.translate(self.table)


_CONTROLS = 0x20
"""Characters below this code are control characters."""
RAW = Alphabet()
"""The alphabet of unescaped text."""

WORDS = Alphabet(forbidden=complement((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))))
"""The alphabet of names: unescaped letters, digits and `_`."""

_HEX = (("0", "9"), ("A", "F"), ("a", "f"))
_BACKSLASH = Literal("\\")
_JSON_ESCAPES = tuple(zip('"\\\b\f\n\r\t', ('\\"', "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t"), strict=True))
_D, _TWO = Chars((("D", "D"), ("d", "d"))), Chars(_HEX, minimum=2, maximum=2)
_NOT_D = Chars((("0", "9"), ("A", "C"), ("E", "F"), ("a", "c"), ("e", "f")))
_HIGH, _LOW = Chars((("8", "9"), ("A", "B"), ("a", "b"))), Chars((("C", "F"), ("c", "f")))
_CODE_UNIT = Choice(
    (
        Sequence((_NOT_D, Chars(_HEX, minimum=3, maximum=3))),
        Sequence((_D, Chars((("0", "7"),)), _TWO)),
        Sequence((_D, _HIGH, _TWO, Literal("\\u"), _D, _LOW, _TWO)),
    )
)
"""The text after `\\u` for one character. Unpaired surrogates are excluded."""

JSON_CHARACTER = Choice(
    (
        Chars((("\x00", "\x1f"), ('"', '"'), ("\\", "\\"), ("\x7f", "\x7f")), negated=True),
        Sequence(
            (_BACKSLASH, Choice((Chars(tuple((c, c) for c in '"\\bfnrt')), Sequence((Literal("u"), _CODE_UNIT)))))
        ),
    )
)
_JSON_FORBIDDEN = (("\x00", "\x1f"), ("\x7f", "\x7f"))
_JSON_CODED = "\\u{:04x}"
JSON = Alphabet(escapes=_JSON_ESCAPES, forbidden=_JSON_FORBIDDEN, general=JSON_CHARACTER, coded=_JSON_CODED)
"""The alphabet of double-quoted JSON strings."""

JSON_SINGLE = Alphabet(escapes=(("'", "\\'"), *_JSON_ESCAPES[1:]), forbidden=_JSON_FORBIDDEN, coded=_JSON_CODED)
"""The alphabet of single-quoted strings with JSON escapes."""

_PYTHON_ESCAPES = (("'", "\\'"), ("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_PYTHON_FORBIDDEN = (("\x00", "\x1f"), ("\x7f", "\xa0"), ("\xad", "\xad"))
PYTHON = Alphabet(escapes=_PYTHON_ESCAPES, forbidden=_PYTHON_FORBIDDEN, coded="\\x{:02x}")
"""The alphabet of single-quoted strings from `repr()`."""
PYTHON_DOUBLE = replace(PYTHON, escapes=(('"', '\\"'), *_PYTHON_ESCAPES[1:]))
"""The alphabet of double-quoted strings from `repr()`, which uses double quotes for strings that contain a single quote."""


def encoded_node(node: Node, alphabet: Alphabet) -> Node:
    """Return `node`, which generates decoded text, with each character escaped by `alphabet`.

    `Ref`s aren't changed: the caller must encode the rules that they refer to.
    """
    if not alphabet.escapes and not alphabet.forbidden:
        return node
    return rewrite(node, lambda part: _encode(part, alphabet))


def _encode(node: Node, alphabet: Alphabet) -> Node:
    """Return `node` with its own characters escaped. The child nodes are already encoded."""
    match node:
        case Literal(text):
            return Literal(alphabet.written(text))
        case Chars(minimum=1, maximum=1):
            return _encode_class(node, alphabet)
        case Chars(minimum=low, maximum=high):
            # A class can't contain an escape of several characters, so `[a"]{2}` becomes `(a|\"){2}`.
            return Repeat(_encode_class(replace(node, minimum=1, maximum=1), alphabet), low, high)
        case Ref() | Sequence() | Choice() | Optional() | Repeat():
            return node
    raise refusal_of(node, "cannot be written in a string")


def _encode_class(node: Chars, alphabet: Alphabet) -> Node:
    found = alphabet.classes.get(node)
    if found is None:
        found = _written_class(node, alphabet)
        if len(alphabet.classes) < MAX_KNOWN_STATES:
            alphabet.classes[node] = found
    return found


def _written_class(node: Chars, alphabet: Alphabet) -> Node:
    # In JSON, `["-a]` becomes `\"` for the quote, and the unescaped characters from # to a, except the backslash.
    ranges = complement(node.ranges) if node.negated else node.ranges
    escapes = [form for character, form in alphabet.escapes if holds(ranges, character)]
    special = (*((character, character) for character, _ in alphabet.escapes), *alphabet.forbidden)
    plain = complement((*complement(ranges), *special))
    # If a class includes the last code point, it's shorter to exclude its complement.
    outside = plain[-1:] and plain[-1][1] == "\U0010ffff"
    written = Chars(complement(plain), negated=True) if outside else Chars(plain)
    options: list[Node] = [written] if plain else []
    # Two-character escapes share their backslash: `\` followed by one of `"\nrt`.
    by_head = [form[1:] for form in escapes if len(form) == 2 and form[0] == "\\"]
    if by_head:
        options.append(Sequence((_BACKSLASH, Chars(tuple((c, c) for c in by_head)))))
    options += [Literal(form) for form in escapes if len(form) != 2 or form[0] != "\\"]
    return any_pattern(options) if options else Chars(())


def between(character: Node, minimum: int, maximum: int | None) -> Node:
    """Return `minimum` to `maximum` repetitions of `character`."""
    if maximum == 0:
        return Literal("")
    if isinstance(character, Chars) and character.minimum == character.maximum == 1:
        return replace(character, minimum=minimum, maximum=maximum)
    return Repeat(character, minimum, maximum)


_Lengths = tuple[int, int | None]
"""Minimum and maximum number of characters. None means no limit."""


def all_but(
    words: Iterable[str], alphabet: Alphabet, lengths: _Lengths = (0, None), rest: Callable[[int], Node] | None = None
) -> Node:
    """Return a node for all texts of these lengths except `words`. Characters are escaped as `alphabet` specifies.

    `rest` takes a number of characters and returns the node for the text after them. By default, this node is any text of the remaining
    length, and is repeated for each branch. Characters are written only with their usual escapes, since other escapes would allow another
    way to write an excluded word. Words longer than `MAX_EXCLUDED_WORD` aren't excluded. At least one text must remain allowed.
    """
    least, most = lengths
    listed = [word for word in _told_apart(words) if least <= len(word) and (most is None or len(word) <= most)]
    return _AllBut(alphabet, lengths, rest or partial(_any_rest, alphabet, lengths)).node(listed, 0)


def _any_rest(alphabet: Alphabet, lengths: _Lengths, read: int) -> Node:
    """Return a node for the text after the first `read` characters."""
    least, most = lengths
    return between(alphabet.character(), max(least - read, 0), None if most is None else most - read)


def _told_apart(words: Iterable[str]) -> list[str]:
    return sorted({word for word in words if len(word) <= MAX_EXCLUDED_WORD})


def branches(words: Iterable[str]) -> int:
    """Return the number of branches that `all_but` needs for the words: one for each distinct prefix.

    >>> branches(["paris", "park"])
    6
    """
    # The common prefix "par" of "paris" and "park" counts only once.
    listed = _told_apart(words)
    shared = sum(len(commonprefix(pair)) for pair in pairwise(listed))
    return sum(map(len, listed)) - shared


@dataclass(frozen=True, slots=True)
class _AllBut:
    alphabet: Alphabet
    lengths: _Lengths
    rest: Callable[[int], Node]

    def node(self, words: list[str], depth: int) -> Node:
        """Return a node for all texts except `words`, from position `depth` on. All `words` are the same up to that position."""
        if not words:
            return self.rest(depth)
        # For "paris" and "park", the options are the empty text, another first letter and any text, or p and all except "aris" and "ark".
        least, most = self.lengths
        heads: dict[str, list[str]] = {}
        for word in words:
            heads.setdefault(word[depth : depth + 1], []).append(word)
        ended = heads.pop("", None)
        other = encoded_node(Chars(tuple((head, head) for head in heads), negated=True), self.alphabet)
        options: list[Node] = [Sequence((other, self.rest(depth + 1)))]
        # At the maximum length, leave out these branches, which would lead only to the excluded words.
        for head, alike in heads.items() if most is None or depth + 1 < most else ():
            options.append(Sequence((Literal(self.alphabet.written(head)), self.node(alike, depth + 1))))
        if not ended and depth >= least:
            options.append(Literal(""))
        return any_pattern(options)


def cannot_contain(pattern: Node, stop: str) -> bool:
    """Return whether `stop` contains a character that never occurs in texts that match `pattern`."""
    found = list(walk(pattern))
    letters = {letter for node in found if isinstance(node, Literal) for letter in node.text}
    classes = [node for node in found if isinstance(node, Chars)]
    return any(
        character not in letters and not any(holds(node.ranges, character) != node.negated for node in classes)
        for character in stop
    )
