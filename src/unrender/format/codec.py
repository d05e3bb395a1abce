"""Describes how one argument value is written: a codec's choices for strings, words, containers and types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never


class Strings(StrEnum):
    """How a string value is written."""

    JSON = "json"
    """`"a\\"b"`"""
    PYTHON = "python"
    """`repr()`: `'a"b'`"""
    RAW = "raw"
    """As it is, up to the value's end marker."""
    QUOTED = "quoted"
    """Between `string_open` and `string_close`, nothing escaped: `<|"|>a"b<|"|>`."""
    SINGLE = "single"
    """As in JSON, but in single quotes: `'it\\'s'`."""

    @property
    def unquoted(self) -> bool:
        """Whether a string has no quotes around it, so that a marker must end it."""
        match self:
            case Strings.RAW:
                return True
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                return False
            case _:
                assert_never(self)


class Words(StrEnum):
    """How true, false and null are spelled."""

    JSON = "json"
    """`true`, `false`, `null`."""
    PYTHON = "python"
    """`True`, `False`, `None`."""
    PYTHON_NULL = "python_null"
    """`true`, `false`, `None`."""


class Containers(StrEnum):
    """How lists and objects are written."""

    JSON = "json"
    """`{"n": [1, true]}`."""
    PYTHON = "python"
    """`repr()`."""
    BARE = "bare"
    """JSON-like, keys unquoted, scalars as the codec says: `{n:[1,true]}`."""
    XML = "xml"
    """Nested tags in the style of the arguments' own entry, list items named `item_tag`."""


class Typing(StrEnum):
    """How a string is told from a number."""

    SYNTAX = "syntax"
    """The value's own syntax: quotes."""
    SCHEMA = "schema"
    """The tool's schema; the text alone is ambiguous."""
    ATTRIBUTE = "attribute"
    """The entry's TYPE slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """How one argument value is written: as JSON, as raw text, as a Python literal, or between special quotes."""

    strings: Strings = Strings.JSON
    words: Words = Words.JSON
    containers: Containers = Containers.JSON
    typed_by: Typing = Typing.SYNTAX
    string_open: str = ""
    """e.g. `<|"|>`; only for QUOTED."""
    string_close: str = ""
    types: tuple[tuple[str, str], ...] = ()
    """For ATTRIBUTE: JSON type → word, e.g. `("string", "true"), ("number", "false")`."""
    omits_null: bool = False
    """A null argument is not written at all."""
    cdata: bool = False
    """Strings with special characters may be in `<![CDATA[…]]>`."""
    item_separator: str = ", "
    key_separator: str = ": "
    indent: int = 0
    """Spaces per level of pretty-printed JSON; 0 for one line."""
    ascii_only: bool = False
    """Non-ASCII characters are written as `\\uXXXX`."""
    item_tag: str = ""
    """For XML containers: the tag of a list's items, e.g. `item`."""
