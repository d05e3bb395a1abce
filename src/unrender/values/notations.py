"""Defines the notation of each codec, and encodes values. Parsing arguments is the exact inverse of encoding.

`Notation` contains a codec's keywords, quotes and separators for grammars, instructions and exports. `encode_value` encodes values.
Analysis uses `encode_value` to find the codec that reproduces the template's text.

Rules: every `match` on a property of a codec ends in `assert_never`, here and in other modules. If an enum gets a new member, mypy reports
every `match` that doesn't handle the member (see docs/dev/contributing.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Any, assert_never

from unrender.cache import kept
from unrender.format import Codec, Containers, Skeleton, Slot, Strings, Typing, Words
from unrender.json_values import json_type
from unrender.nodes import Chars, Choice
from unrender.nodes import Sequence as InOrder
from unrender.nodes.texts import JSON, JSON_CHARACTER, JSON_SINGLE, PYTHON, PYTHON_DOUBLE, Alphabet, encoded_node
from unrender.values.finder import Finder, end_of
from unrender.values.json_text import may_be_in_word
from unrender.values.scanner import WORD, LiteralStyle
from unrender.values.unmarked_ends import Follow

_JSON_OBJECT = "one JSON object"
_SPECIAL = "<>&"
"""Characters for which a codec with `cdata` puts the string in a CDATA section."""


@dataclass(frozen=True, slots=True)
class Quotes:
    """A pair of quotes, and the alphabet of strings inside them. If the alphabet is None, a string is raw text up to the closing quote."""

    open: str
    close: str
    alphabet: Alphabet | None
    own: bool = False
    """True for format-specific quotes, which escape only the characters that the codec lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Tokens of JSON and of similar notations."""

    name: str
    """Name that distinguishes this lexicon's grammar rules from those of other lexicons."""
    quotes: tuple[Quotes, ...]
    null: str = "null"
    true: str = "true"
    false: str = "false"
    item_separator: str = ","
    key_separator: str = ":"
    flexible: bool = False
    """True if whitespace is allowed around every bracket and separator."""
    bare_keys: bool = False
    keys_like_repr: bool = False
    """True if keys are written in the quotes that Python's `repr` would choose. If JSON is also allowed, keys in other quotes are parsed as
    JSON.
    """


JSON_LEXICON = Lexicon(name="json", quotes=(Quotes('"', '"', JSON),), flexible=True)
PYTHON_LEXICON = Lexicon(
    name="python",
    quotes=(Quotes("'", "'", PYTHON), Quotes('"', '"', PYTHON_DOUBLE)),
    null="None",
    true="True",
    false="False",
    item_separator=", ",
    key_separator=": ",
)
PYTHON_OR_JSON = (
    replace(PYTHON_LEXICON, keys_like_repr=True),
    replace(JSON_LEXICON, name="tojson", flexible=False, item_separator=", ", key_separator=": "),
)
"""The two notations of values that may be Python or JSON. Whitespace isn't flexible, because the notations would then be ambiguous."""
_SINGLE_QUOTES = (Quotes("'", "'", JSON_SINGLE),)


class ExportedNotation(Enum):
    """The notation of a codec's scalar values in an exported format."""

    JSON = auto()
    TEXT = auto()
    """Text up to the value's end marker."""
    CODE = auto()
    """No markers: values are delimited by the codec's own syntax."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A property of a codec that an exported format cannot express."""

    what: str
    """A description of the loss, e.g. `lists and objects are written as tags and returned as text`."""
    concerns: tuple[str, ...] = ()
    """Names of the affected capabilities, as in `unrender.verify`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """The notation of one codec's values."""

    write: Callable[[str], str]
    """Function that encodes a string."""
    unquoted: bool
    """True if strings are unquoted and end at a marker of the format."""
    scalars: Lexicon
    """Tokens of values outside lists and objects, including strings if they are quoted."""
    inside: Lexicon
    """Tokens of lists and objects, and of the values in them. Unused if lists and objects are encoded as tags."""
    object_kind: str
    """Description of the arguments if they are one object, e.g. `one JSON object`."""
    sentences: tuple[str, ...]
    """Sentences about values, for the instructions to the model."""
    exported: ExportedNotation
    is_json: bool
    """True if every value is JSON."""
    losses: tuple[Loss, ...]
    """Properties that exports can't express, in addition to those that `exported` implies."""

    @property
    def verbatim(self) -> Quotes | None:
        """The format-specific quotes around raw strings, or None if the codec has no such quotes."""
        return next((quotes for quotes in self.scalars.quotes if quotes.own), None)


@kept(5_000)
def notation_of(codec: Codec) -> Notation:
    """Return the notation of `codec`.

    >>> print(notation_of(Codec(strings=Strings.PYTHON)).write("it's"))
    "it's"
    """
    write, base, strings, exported = _strings(codec)
    inside, containers, object_kind, lost = _containers(codec)
    true, false, null = _words(codec.words)
    omitted = ("an argument that is null is left out",) if codec.omits_null else ()
    losses = (Loss(what=lost, concerns=("objects", "arrays")),) if lost else ()
    if codec.escapes:
        forms = ", ".join(f"{character!r} as {form!r}" for character, form in codec.escapes)
        omitted = (*omitted, f"in values, {forms}")
        losses = (*losses, Loss(what="escaped characters in values are not unescaped", concerns=("strings",)))
    if codec.strings is Strings.QUOTED and codec.words is not Words.JSON:
        broken = "a null that isn't spelled as in JSON makes a call unreadable"
        losses = (*losses, Loss(what=broken, concerns=("null",)))
    return Notation(
        write=write,
        unquoted=codec.strings.unquoted,
        scalars=replace(base, name=f"{base.name}-{codec.words}", null=null, true=true, false=false),
        inside=inside,
        object_kind=object_kind,
        sentences=(strings, f"{true}, {false} and {null} as words", containers, *omitted),
        exported=exported,
        is_json=(codec.strings, codec.words, codec.containers) == (Strings.JSON, Words.JSON, Containers.JSON),
        losses=(*_typing_losses(codec.typed_by), *losses),
    )


def _strings(codec: Codec) -> tuple[Callable[[str], str], Lexicon, str, ExportedNotation]:
    """Return a function that encodes strings, the tokens of values, a sentence about strings, and the exported notation."""
    opened, closed = codec.string_open, codec.string_close
    match codec.strings:
        case Strings.JSON:
            write = partial(json.dumps, ensure_ascii=codec.ascii_only)
            return write, JSON_LEXICON, "strings in double quotes, as in JSON", ExportedNotation.JSON
        case Strings.PYTHON:
            return repr, PYTHON_LEXICON, "strings in quotes, as in Python", ExportedNotation.CODE
        case Strings.QUOTED:
            said = f"strings between {opened} and {closed}"
            raw = raw_alphabet(codec)
            return lambda text: f"{opened}{raw.written(text)}{closed}", _bare(codec), said, ExportedNotation.CODE
        case Strings.RAW:
            said = "strings as they are, without quotes"
            as_it_is = _in_cdata if codec.cdata else raw_alphabet(codec).written
            return as_it_is, _bare(codec), said, ExportedNotation.TEXT
        case Strings.SINGLE:
            said = "strings in single quotes, escaped as in JSON"
            lexicon = replace(_bare(codec), name="single", null="null", true="true", false="false", bare_keys=False)
            return partial(single_quoted, ascii_only=codec.ascii_only), lexicon, said, ExportedNotation.CODE
        case _:
            assert_never(codec.strings)


def single_quoted(text: str, *, ascii_only: bool) -> str:
    r"""Encode a string as in JSON, but in single quotes.

    >>> print(single_quoted('say "hi", it\'s me', ascii_only=False))
    'say "hi", it\'s me'
    """
    inside = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return "'" + inside.replace('\\"', '"').replace("'", "\\'") + "'"


@kept(1_000)
def raw_alphabet(codec: Codec) -> Alphabet:
    """Return the alphabet of raw text."""
    general = None
    for character, form in codec.escapes:
        # If `"` is escaped as `\"`, the value ends at a quotation mark without a backslash.
        if form == f"\\{character}" and "\\" not in dict(codec.escapes):
            others = Chars(((character, character), ("\\", "\\")), negated=True)
            general = Choice(
                (others, InOrder((Chars((("\\", "\\"),), maximum=None), Chars((("\\", "\\"),), negated=True))))
            )
    return Alphabet(escapes=codec.escapes, general=general)


@kept(1_000)
def escaped_json(codec: Codec) -> Lexicon:
    r"""Return the tokens of JSON text that is escaped again, e.g. `{\"a\": 1}`."""
    raw, escapes = Alphabet(escapes=codec.escapes), {**dict(codec.escapes), **dict(JSON.escapes)}
    alphabet = replace(
        JSON,
        escapes=tuple((character, raw.written(JSON.written(character))) for character in escapes),
        general=encoded_node(JSON_CHARACTER, raw),
        coded=raw.written(JSON.coded),
    )
    quote = raw.written('"')
    return Lexicon(
        name="escaped",
        quotes=(Quotes(quote, quote, alphabet),),
        item_separator=codec.item_separator,
        key_separator=codec.key_separator,
    )


def _in_cdata(text: str) -> str:
    return f"<![CDATA[{text}]]>" if any(character in text for character in _SPECIAL) else text


def _words(words: Words) -> tuple[str, str, str]:
    """Return the keywords for true, false and null."""
    match words:
        case Words.JSON:
            return "true", "false", "null"
        case Words.PYTHON:
            return "True", "False", "None"
        case Words.PYTHON_NULL:
            return "true", "false", "None"
        case _:
            assert_never(words)


def _bare(codec: Codec) -> Lexicon:
    """Return the tokens of objects with unquoted keys."""
    true, false, null = _words(codec.words)
    return Lexicon(
        name="bare",
        quotes=_quotes_inside(codec),
        null=null,
        true=true,
        false=false,
        item_separator=codec.item_separator,
        key_separator=codec.key_separator,
        bare_keys=True,
    )


def _quotes_inside(codec: Codec) -> tuple[Quotes, ...]:
    """Return the quotes of strings inside lists and objects. If other strings are unquoted, return JSON's quotes."""
    match codec.strings:
        case Strings.JSON | Strings.RAW:
            return JSON_LEXICON.quotes
        case Strings.PYTHON:
            return PYTHON_LEXICON.quotes
        case Strings.SINGLE:
            return _SINGLE_QUOTES
        case Strings.QUOTED:
            alphabet = raw_alphabet(codec) if codec.string_close[:1] in dict(codec.escapes) else None
            return (Quotes(codec.string_open, codec.string_close, alphabet, own=True),)
        case _:
            assert_never(codec.strings)


def _containers(codec: Codec) -> tuple[Lexicon, str, str, str]:
    """Return the tokens inside lists and objects, a sentence about them, a description of the arguments, and the loss in exports."""
    match codec.containers:
        case Containers.JSON:
            return JSON_LEXICON, "lists and objects as JSON", _JSON_OBJECT, ""
        case Containers.PYTHON:
            lost = "lists and objects are Python literals, returned as text unless they are valid JSON"
            return PYTHON_LEXICON, "lists and dicts as in Python", "a Python dict", lost
        case Containers.BARE:
            said = "lists and objects as in JSON, but keys without quotes"
            return _bare(codec), said, _JSON_OBJECT, "keys that aren't plain words make a call unreadable"
        case Containers.XML:
            said = f"lists and objects as nested tags, a list's items named {codec.item_tag}"
            return JSON_LEXICON, said, _JSON_OBJECT, "lists and objects are written as tags and returned as text"
        case _:
            assert_never(codec.containers)


def _typing_losses(typing: Typing) -> tuple[Loss, ...]:
    match typing:
        case Typing.SYNTAX:
            return ()
        case Typing.SCHEMA:
            return (Loss(what="values are typed by the tools' schemas, so the parser must be given `tools`"),)
        case Typing.ATTRIBUTE:
            return (Loss(what="types in a call are ignored: values are typed by the tools' schemas, given `tools`"),)
        case _:
            assert_never(typing)


def encode_value(value: Any, codec: Codec, entry: Skeleton = (), *, margin: str = "") -> str:
    """Encode one value.

    `entry` is the skeleton of one argument, and also of lists and objects that are encoded as tags. `margin` is the indentation of the line
    on which pretty-printed JSON starts.

    >>> encode_value(True, Codec(words=Words.PYTHON))
    'True'
    """
    notation = notation_of(codec)
    if isinstance(value, str):
        return notation.write(value)
    if isinstance(value, Mapping | list | tuple):
        text = _encode_container(value, codec, entry, margin)
        whole = codec.escapes and notation.unquoted and codec.containers is not Containers.XML
        return raw_alphabet(codec).written(text) if whole else text
    if value is None:
        return "" if codec.omits_null else notation.scalars.null
    if isinstance(value, bool):
        return notation.scalars.true if value else notation.scalars.false
    return json.dumps(value)


def encode_entry(key: str, value: Any, codec: Codec, entry: Skeleton) -> str:
    """Encode one argument."""
    texts = {
        Slot.KEY: key,
        Slot.VALUE: encode_value(value, codec, entry),
        Slot.TYPE: dict(codec.types).get(json_type(value), ""),
    }
    return "".join(texts.get(part, "") if isinstance(part, Slot) else part for part in entry)


def _encode_container(value: Any, codec: Codec, entry: Skeleton, margin: str) -> str:
    if codec.sorted_keys and isinstance(value, Mapping):
        value = dict(sorted(value.items()))
    match codec.containers:
        case Containers.JSON:
            separators = None if codec.indent else (codec.item_separator, codec.key_separator)
            text = json.dumps(
                value,
                ensure_ascii=codec.ascii_only,
                indent=codec.indent or None,
                separators=separators,
                sort_keys=codec.sorted_keys,
            )
            return text.replace("\n", "\n" + margin)
        case Containers.PYTHON:
            return repr(value)
        case Containers.BARE:
            if not isinstance(value, Mapping):
                return "[" + codec.item_separator.join(encode_value(item, codec) for item in value) + "]"
            items = (f"{key}{codec.key_separator}{encode_value(item, codec)}" for key, item in value.items())
            return "{" + codec.item_separator.join(items) + "}"
        case Containers.XML:
            pairs = value.items() if isinstance(value, Mapping) else ((codec.item_tag, item) for item in value)
            return "".join(encode_entry(key, item, codec, entry) for key, item in pairs)
        case _:
            assert_never(codec.containers)


def literal_style(codec: Codec, suffix: Finder | Follow, *, after_key: str = "", in_code: bool = False) -> LiteralStyle:
    """Return the notation for those values of `codec` that need no end marker.

    `suffix` is the text after the value. If `in_code` is True, the suffix is a comma or a bracket. `after_key` is as in `LiteralStyle`.
    """
    notation = notation_of(codec)
    verbatim = notation.verbatim
    literals = suffix.literals if isinstance(suffix, Finder) else ()
    # A number ends at the first character of the end marker, as in `3</v>`. A letter, as in `e>`, may be part of the number.
    cores = sorted({core for literal in literals if (core := literal.strip())})
    return LiteralStyle(
        stops=tuple(dict.fromkeys(head for core in cores if not may_be_in_word(head := _head_of(core)))),
        ends=tuple(dict.fromkeys(core[0] for core in cores)),
        quote_open=verbatim.open if verbatim else "",
        quote_close=verbatim.close if verbatim else "",
        marks=Finder((verbatim.close, *(form for _, form in codec.escapes))) if verbatim and codec.escapes else None,
        escapes=codec.escapes,
        after_key=after_key,
        bare_keys=notation.inside.bare_keys,
        in_code=in_code and verbatim is not None and len(verbatim.close) == 1,
        glued=in_code,
    )


def _head_of(marker: str) -> str:
    """Return the shortest prefix of `marker` that can't be part of the word before it.

    If the marker starts with a letter, the prefix is the marker's whole first word, because a single letter may continue the word before
    it.
    """
    return marker[: end_of(WORD, marker, 0)] if may_be_in_word(marker[0]) else marker[0]
