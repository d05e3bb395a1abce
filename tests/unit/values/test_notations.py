"""What is known of a codec, whatever its axes."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from unrender.format import Codec, Containers, Strings, Typing, Words
from unrender.values.notations import ExportedNotation, Lexicon, Notation, Quotes, notation_of, single_quoted

OF_STRINGS = {
    Strings.QUOTED: {"string_open": "<|", "string_close": "|>"},
}
CODECS = [
    Codec(
        strings=strings,
        words=words,
        containers=containers,
        typed_by=Typing.SCHEMA if strings.unquoted else Typing.SYNTAX,
        item_tag="item",
        **OF_STRINGS.get(strings, {}),
    )
    for strings, words, containers in product(Strings, Words, Containers)
]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: f"{codec.strings}-{codec.words}-{codec.containers}")
def test_every_axis_has_words_and_a_sentence(codec):
    """Strings, words and containers are each told in one sentence that no other member shares."""
    notation = notation_of(codec)
    strings, words, containers = notation.sentences

    others = [notation_of(other).sentences for other in CODECS]
    assert all((strings, words, containers))
    assert len({other[0] for other in others}) == len(Strings)
    assert len({other[1] for other in others}) == len(Words)
    assert len({other[2] for other in others}) == len(Containers)


@pytest.mark.parametrize("strings", Strings)
def test_a_string_ends_at_its_quotes_or_has_none(strings):
    """What is written for a string begins and ends with the quotes that the grammar writes, or has none."""
    [codec] = [c for c in CODECS if c.strings is strings and c.words is Words.JSON and c.containers is Containers.JSON]
    notation = notation_of(codec)
    quotes = {(quotes.open, quotes.close) for quotes in notation.scalars.quotes}
    written = notation.write("x")

    assert (written == "x") == notation.unquoted
    assert notation.unquoted or any(written == f"{opened}x{closed}" for opened, closed in quotes)


def test_json_is_known_as_json():
    """Only where strings, words and containers are JSON can arguments be handed on as they are."""
    assert [codec for codec in CODECS if notation_of(codec).is_json] == [Codec(item_tag="item")]


def test_losses_name_what_they_cost():
    """An export can say for each loss which capability it costs, as verification names it."""
    concerns = {concern for codec in CODECS for loss in notation_of(codec).losses for concern in loss.concerns}

    assert concerns == {"objects", "arrays", "null"}


BASE: dict[str, Any] = {
    "string_open": "<|",
    "string_close": "|>",
    "item_tag": "item",
    "item_separator": ";",
    "key_separator": "=",
}
OF_EACH_STRING: list[Any] = [
    (
        Strings.JSON,
        ['"a\\"b\'"', '"é<&"', '""'],
        ExportedNotation.JSON,
        ("json-json", [('"', '"')], "null", "true", "false", ",", ":", True, False),
        "strings in double quotes, as in JSON",
    ),
    (
        Strings.PYTHON,
        ["'a\"b\\''", "'é<&'", "''"],
        ExportedNotation.CODE,
        ("python-json", [("'", "'"), ('"', '"')], "null", "true", "false", ", ", ": ", False, False),
        "strings in quotes, as in Python",
    ),
    (
        Strings.RAW,
        ["a\"b'", "é<&", ""],
        ExportedNotation.TEXT,
        ("bare-json", [('"', '"')], "null", "true", "false", ";", "=", False, True),
        "strings as they are, without quotes",
    ),
    (
        Strings.QUOTED,
        ["<|a\"b'|>", "<|é<&|>", "<||>"],
        ExportedNotation.CODE,
        ("bare-json", [("<|", "|>")], "null", "true", "false", ";", "=", False, True),
        "strings between <| and |>",
    ),
    (
        Strings.SINGLE,
        ["'a\"b\\''", "'é<&'", "''"],
        ExportedNotation.CODE,
        ("single-json", [("'", "'")], "null", "true", "false", ";", "=", False, False),
        "strings in single quotes, escaped as in JSON",
    ),
]
"""A way to write strings, how three are written, what exports read, the tokens of scalars, and what a model is told."""
OF_EACH_WORD: list[Any] = [
    (Words.JSON, ("json-json", "true", "false", "null"), "true, false and null as words"),
    (Words.PYTHON, ("json-python", "True", "False", "None"), "True, False and None as words"),
    (Words.PYTHON_NULL, ("json-python_null", "true", "false", "None"), "true, false and None as words"),
]
OF_EACH_CONTAINER: list[Any] = [
    (
        Containers.JSON,
        ("json", [('"', '"')], "null", "true", "false", ",", ":", True, False),
        "one JSON object",
        "lists and objects as JSON",
        [],
    ),
    (
        Containers.PYTHON,
        ("python", [("'", "'"), ('"', '"')], "None", "True", "False", ", ", ": ", False, False),
        "a Python dict",
        "lists and dicts as in Python",
        [("lists and objects are Python literals: those that are no JSON come as text", "objects", "arrays")],
    ),
    (
        Containers.BARE,
        ("bare", [('"', '"')], "null", "true", "false", ";", "=", False, True),
        "one JSON object",
        "lists and objects as in JSON, but keys without quotes",
        [("keys that are not words break the reading of a call", "objects", "arrays")],
    ),
    (
        Containers.XML,
        ("json", [('"', '"')], "null", "true", "false", ",", ":", True, False),
        "one JSON object",
        "lists and objects as nested tags, a list's items named item",
        [("lists and objects are written as tags: they come as text", "objects", "arrays")],
    ),
]
"""A way to write lists and objects, its tokens, what objects are called, what a model is told, and what exports lose."""
LOST: list[Any] = [
    (Codec(), []),
    (
        Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA),
        [("values are typed by the tools' schemas, so the parser must be given `tools`",)],
    ),
    (
        Codec(strings=Strings.RAW, typed_by=Typing.ATTRIBUTE),
        [("types written beside values are not read: the tools' schemas type them, given `tools`",)],
    ),
    (
        Codec(strings=Strings.QUOTED, string_open="<", string_close=">", words=Words.PYTHON),
        [("a null that is not spelled as in JSON breaks the reading of a call", "null")],
    ),
    (Codec(strings=Strings.QUOTED, string_open="<", string_close=">"), []),
    (Codec(words=Words.PYTHON), []),
]
BARE_INSIDE: list[Any] = [
    (Strings.JSON, ("bare", [('"', '"')], "None", "True", "False", ";", "=", False, True)),
    (Strings.PYTHON, ("bare", [("'", "'"), ('"', '"')], "None", "True", "False", ";", "=", False, True)),
    (Strings.RAW, ("bare", [('"', '"')], "None", "True", "False", ";", "=", False, True)),
    (Strings.QUOTED, ("bare", [("<|", "|>")], "None", "True", "False", ";", "=", False, True)),
    (Strings.SINGLE, ("bare", [("'", "'")], "None", "True", "False", ";", "=", False, True)),
]


def tokens(lexicon: Lexicon) -> tuple[object, ...]:
    quotes = [(found.open, found.close) for found in lexicon.quotes]
    separators = lexicon.item_separator, lexicon.key_separator
    words = lexicon.null, lexicon.true, lexicon.false
    return (lexicon.name, quotes, *words, *separators, lexicon.flexible, lexicon.bare_keys)


def lost(notation: Notation) -> list[tuple[str, ...]]:
    return [(loss.what, *loss.concerns) for loss in notation.losses]


@pytest.mark.parametrize(("strings", "written", "exported", "scalars", "sentence"), OF_EACH_STRING)
def test_each_way_to_write_strings(strings, written, exported, scalars, sentence):
    """Text, tokens and sentence, one literal for each."""
    notation = notation_of(Codec(strings=strings, **BASE))

    assert [notation.write(text) for text in ("a\"b'", "é<&", "")] == written
    assert (notation.exported, tokens(notation.scalars), notation.sentences[0]) == (exported, scalars, sentence)
    assert notation.verbatim == (Quotes("<|", "|>", None, own=True) if strings is Strings.QUOTED else None)


@pytest.mark.parametrize(("words", "said", "sentence"), OF_EACH_WORD)
def test_each_way_to_write_words(words, said, sentence):
    """The words are those of scalars; lists and objects in JSON keep JSON's."""
    notation = notation_of(Codec(words=words))
    found = notation.scalars

    assert (found.name, found.true, found.false, found.null, notation.sentences[1]) == (*said, sentence)
    assert notation.is_json == (words is Words.JSON)
    assert notation.inside.null == "null"


@pytest.mark.parametrize(("containers", "inside", "kind", "sentence", "losses"), OF_EACH_CONTAINER)
def test_each_way_to_write_lists_and_objects(containers, inside, kind, sentence, losses):
    """Tokens, name, sentence and losses, one literal for each."""
    notation = notation_of(Codec(containers=containers, **BASE))

    assert (tokens(notation.inside), notation.object_kind, notation.sentences[2]) == (inside, kind, sentence)
    assert lost(notation) == losses


@pytest.mark.parametrize(("codec", "losses"), LOST)
def test_types_and_words_that_exports_lose(codec, losses):
    """Where schemas type values, and where a null is not JSON's between quotes of the format."""
    assert lost(notation_of(codec)) == losses


@pytest.mark.parametrize(("strings", "inside"), BARE_INSIDE)
def test_strings_in_bare_dictionaries(strings, inside):
    """They have the quotes of strings outside, and JSON's where those have none."""
    notation = notation_of(Codec(strings=strings, containers=Containers.BARE, words=Words.PYTHON, **BASE))

    assert tokens(notation.inside) == inside


def test_letters_may_be_written_in_ascii():
    """In JSON's strings and in single-quoted ones."""
    assert notation_of(Codec(ascii_only=True)).write("é") == '"\\u00e9"'
    assert notation_of(Codec(strings=Strings.SINGLE, ascii_only=True)).write("é'") == "'\\u00e9\\''"
    assert single_quoted('"é\n', ascii_only=False) == "'\"é\\n'"


def test_what_is_left_out_is_told():
    """An argument that is null may not be an argument."""
    assert notation_of(Codec(omits_null=True)).sentences[3:] == ("an argument that is null is left out",)
    assert notation_of(Codec()).sentences[3:] == ()


def test_characters_that_need_cdata():
    """Any of three."""
    write = notation_of(Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA, cdata=True)).write

    assert [write(text) for text in ("a<", ">", "&", "a")] == [
        "<![CDATA[a<]]>",
        "<![CDATA[>]]>",
        "<![CDATA[&]]>",
        "a",
    ]
