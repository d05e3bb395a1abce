"""Describes the notation of a codec: words, quotes, escapes and separators, for code, instructions and exports.

What is known of how a codec writes values is known here, and nowhere else; the code that walks through values asks.

Rules: each axis of a codec is read by one `match` that ends in `assert_never`, here and wherever else code depends on the
axis: mypy lists the places that a new member needs (docs/dev/extending.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import assert_never

from unrender.cache import kept
from unrender.format import Codec, Containers, Strings, Typing, Words
from unrender.nodes.texts import JSON, JSON_SINGLE, PYTHON, PYTHON_DOUBLE, Alphabet

_SPECIAL = "<>&"
"""Characters for which a codec with `cdata` wraps a string."""


@dataclass(frozen=True, slots=True)
class Quotes:
    """A pair of quotes, and the alphabet of the text between them; None means raw text up to the closing quote."""

    open: str
    close: str
    alphabet: Alphabet | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The tokens of JSON and of notations like it."""

    name: str
    """Tells the rules of this lexicon from those of others."""
    quotes: tuple[Quotes, ...]
    null: str = "null"
    true: str = "true"
    false: str = "false"
    item_separator: str = ","
    key_separator: str = ":"
    flexible: bool = False
    """White space may be around every bracket and separator."""
    bare_keys: bool = False
    keys_like_repr: bool = False
    """Keys have the quotes that `repr` gives them: where JSON is allowed as well, the other ones are JSON's."""


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
PYTHON_BESIDE_JSON = replace(PYTHON_LEXICON, keys_like_repr=True)
_SINGLE_QUOTES = (Quotes("'", "'", JSON_SINGLE),)


class Exported(Enum):
    """How an exported format can describe a codec's scalar values."""

    JSON = auto()
    TEXT = auto()
    """Everything up to the value's end marker."""
    CODE = auto()
    """Nothing: only the codec's own syntax says where a value ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A property of a codec that an exported format cannot describe."""

    what: str
    """In a sentence, e.g. `lists and objects are written as tags: they come as text`."""
    concerns: tuple[str, ...] = ()
    """The capabilities that it may cost, named as `unrender.verify` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How one codec writes values."""

    write: Callable[[str], str]
    """A string → the text that is written for it."""
    unquoted: bool
    """Strings have no quotes: they end at a marker of the format."""
    scalars: Lexicon
    """The tokens of values outside of lists and objects; strings only where they have quotes."""
    inside: Lexicon
    """The tokens of lists and objects, and of the values in them; means nothing where they are tags."""
    object_kind: str
    """What arguments are called that are one object, e.g. `one JSON object`."""
    sentences: tuple[str, ...]
    """What a model is told of values, one fact each."""
    exported: Exported
    is_json: bool
    """Every value is JSON."""
    losses: tuple[Loss, ...]
    """What exports lose, in addition to what `exported` says."""

    @property
    def verbatim(self) -> Quotes | None:
        """The quotes between which strings are raw; None if strings have no such quotes."""
        return next((quotes for quotes in self.scalars.quotes if quotes.alphabet is None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strings:
    write: Callable[[str], str]
    lexicon: Lexicon
    said: str
    exported: Exported


@dataclass(frozen=True, slots=True, kw_only=True)
class _Containers:
    lexicon: Lexicon
    said: str
    object_kind: str = "one JSON object"
    losses: tuple[Loss, ...] = ()


@kept(5_000)
def notation_of(codec: Codec) -> Notation:
    """Return the notation of `codec`.

    >>> print(notation_of(Codec(strings=Strings.PYTHON)).write("it's"))
    "it's"
    """
    strings, words, containers = _strings(codec), _words(codec.words), _containers(codec)
    true, false, null = words
    base = strings.lexicon
    omitted = ("an argument that is null is left out",) if codec.omits_null else ()
    return Notation(
        write=strings.write,
        unquoted=codec.strings.unquoted,
        scalars=replace(base, name=f"{base.name}-{codec.words}", null=null, true=true, false=false),
        inside=containers.lexicon,
        object_kind=containers.object_kind,
        sentences=(strings.said, f"{true}, {false} and {null} as words", containers.said, *omitted),
        exported=strings.exported,
        is_json=(codec.strings, codec.words, codec.containers) == (Strings.JSON, Words.JSON, Containers.JSON),
        losses=(*_typing_losses(codec.typed_by), *containers.losses, *_word_losses(codec)),
    )


def _strings(codec: Codec) -> _Strings:
    match codec.strings:
        case Strings.JSON:
            return _Strings(
                write=partial(json.dumps, ensure_ascii=codec.ascii_only),
                lexicon=JSON_LEXICON,
                said="strings in double quotes, as in JSON",
                exported=Exported.JSON,
            )
        case Strings.PYTHON:
            return _Strings(
                write=repr, lexicon=PYTHON_LEXICON, said="strings in quotes, as in Python", exported=Exported.CODE
            )
        case Strings.QUOTED:
            return _between(codec)
        case Strings.RAW:
            return _Strings(
                write=_in_cdata if codec.cdata else str,
                lexicon=_bare(codec),
                said="strings as they are, without quotes",
                exported=Exported.TEXT,
            )
        case Strings.SINGLE:
            return _Strings(
                write=partial(single_quoted, ascii_only=codec.ascii_only),
                lexicon=_single(codec),
                said="strings in single quotes, escaped as in JSON",
                exported=Exported.CODE,
            )
        case _:
            assert_never(codec.strings)


def _between(codec: Codec) -> _Strings:
    opened, closed = codec.string_open, codec.string_close
    return _Strings(
        write=lambda text: f"{opened}{text}{closed}",
        lexicon=_bare(codec),
        said=f"strings between {opened} and {closed}",
        exported=Exported.CODE,
    )


def single_quoted(text: str, *, ascii_only: bool) -> str:
    r"""Return a string as JSON writes it, but in single quotes.

    >>> print(single_quoted('say "hi", it\'s me', ascii_only=False))
    'say "hi", it\'s me'
    """
    inside = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    return "'" + inside.replace('\\"', '"').replace("'", "\\'") + "'"


def _in_cdata(text: str) -> str:
    return f"<![CDATA[{text}]]>" if any(character in text for character in _SPECIAL) else text


def _words(words: Words) -> tuple[str, str, str]:
    """Return true, false and null."""
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
    """Return the tokens of dictionaries whose keys have no quotes."""
    true, false, null = _words(codec.words)
    return Lexicon(
        name="bare",
        quotes=_quotes(codec),
        null=null,
        true=true,
        false=false,
        item_separator=codec.item_separator,
        key_separator=codec.key_separator,
        bare_keys=True,
    )


def _quotes(codec: Codec) -> tuple[Quotes, ...]:
    """Return the quotes of strings; JSON's where those outside of lists and objects have none."""
    match codec.strings:
        case Strings.JSON | Strings.RAW:
            return JSON_LEXICON.quotes
        case Strings.PYTHON:
            return PYTHON_LEXICON.quotes
        case Strings.SINGLE:
            return _SINGLE_QUOTES
        case Strings.QUOTED:
            return (Quotes(codec.string_open, codec.string_close, None),)
        case _:
            assert_never(codec.strings)


def _single(codec: Codec) -> Lexicon:
    """Return the tokens of dictionaries in single quotes with JSON's words."""
    return Lexicon(
        name="single",
        quotes=_SINGLE_QUOTES,
        item_separator=codec.item_separator,
        key_separator=codec.key_separator,
    )


def _containers(codec: Codec) -> _Containers:
    match codec.containers:
        case Containers.JSON:
            return _Containers(lexicon=JSON_LEXICON, said="lists and objects as JSON")
        case Containers.PYTHON:
            return _Containers(
                lexicon=PYTHON_LEXICON,
                said="lists and dicts as in Python",
                object_kind="a Python dict",
                losses=_lost("lists and objects are Python literals: those that are no JSON come as text"),
            )
        case Containers.BARE:
            return _Containers(
                lexicon=_bare(codec),
                said="lists and objects as in JSON, but keys without quotes",
                losses=_lost("keys that are not words break the reading of a call"),
            )
        case Containers.XML:
            return _Containers(
                lexicon=JSON_LEXICON,
                said=f"lists and objects as nested tags, a list's items named {codec.item_tag}",
                losses=_lost("lists and objects are written as tags: they come as text"),
            )
        case _:
            assert_never(codec.containers)


def _lost(what: str) -> tuple[Loss, ...]:
    """Return what an export loses of lists and objects."""
    return (Loss(what=what, concerns=("objects", "arrays")),)


def _typing_losses(typing: Typing) -> tuple[Loss, ...]:
    match typing:
        case Typing.SYNTAX:
            return ()
        case Typing.SCHEMA:
            return (Loss(what="values are typed by the tools' schemas, so the parser must be given `tools`"),)
        case Typing.ATTRIBUTE:
            lost = "types written beside values are not read: the tools' schemas type them, given `tools`"
            return (Loss(what=lost),)
        case _:
            assert_never(typing)


def _word_losses(codec: Codec) -> tuple[Loss, ...]:
    if codec.strings is not Strings.QUOTED or codec.words is Words.JSON:
        return ()
    return (Loss(what="a null that is not spelled as in JSON breaks the reading of a call", concerns=("null",)),)
