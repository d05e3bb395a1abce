"""Written values in, the codec that writes them out: every codec is found again from what it writes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from unrender.analysis.ask.probes import VALUES
from unrender.analysis.find.codecs import find_json_codec, find_value_codec
from unrender.format import Arguments, Codec, Containers, Slot, Strings, Typing, Words
from unrender.values.notations import encode_arguments, encode_value

ENTRY = ("<", Slot.KEY, ">", Slot.VALUE)
SEPARATORS = ((", ", ": "), (",", ":"), (",", ": "), (", ", ":"))
RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)

OBJECTS = [
    *(
        Codec(item_separator=item, key_separator=key, ascii_only=only)
        for item, key in SEPARATORS
        for only in (True, False)
    ),
    *(Codec(indent=indent, ascii_only=only) for indent in (1, 2, 3, 4, 8) for only in (True, False)),
    Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON),
]


@pytest.mark.parametrize("margin", ["", "    "])
@pytest.mark.parametrize("codec", OBJECTS, ids=range(len(OBJECTS)))
def test_layout_of_an_object_is_found_again(codec, margin):
    """All arguments as one object: what each layout writes is understood as that layout."""
    text = encode_arguments(VALUES, Arguments(codec=codec), margin=margin)

    assert find_json_codec(text, VALUES, margin).codec == codec


def test_long_texts_are_shown_in_part():
    """A sentence about what is not explained has the beginning of the texts, and not all of them."""
    text = "x" * 2_000
    layout = find_json_codec(text, {"a": 1}, "")
    value = find_value_codec({"pkeyak": text}, Arguments(entry=ENTRY), {"pkeyak": text + "y"})

    assert all(len(sentence) < 700 for sentence in layout.unexplained)
    assert [sentence.partition("written as")[2].count("x") < 500 for sentence in value.unexplained] == [True]


def test_unknown_layout_is_reported():
    """A layout that nobody knows is the default, with a sentence that shows it."""
    found = find_json_codec('{"a" :1}', {"a": 1}, "")

    assert found.codec == Codec()
    assert found.unexplained == ("the arguments '{\"a\" :1}' are written in no known layout",)


VALUE_CODECS = [
    Codec(),
    Codec(ascii_only=True),
    Codec(item_separator=",", key_separator=":"),
    Codec(item_separator=",", key_separator=": "),
    Codec(item_separator=", ", key_separator=":"),
    Codec(indent=2),
    Codec(indent=8),
    Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON),
    Codec(strings=Strings.PYTHON, words=Words.JSON, containers=Containers.JSON),
    Codec(ascii_only=True, words=Words.PYTHON, containers=Containers.PYTHON),
    RAW,
    replace(RAW, words=Words.PYTHON),
    replace(RAW, words=Words.PYTHON, containers=Containers.PYTHON),
    replace(RAW, ascii_only=True),
    replace(RAW, containers=Containers.BARE),
    replace(RAW, containers=Containers.XML, item_tag="item"),
    replace(RAW, cdata=True),
    Codec(strings=Strings.QUOTED, string_open="<|", string_close="|>", containers=Containers.BARE, item_separator=","),
    Codec(strings=Strings.QUOTED, string_open="<|", string_close="|>"),
]


def written_by(codec, values=VALUES):
    return {key: encode_value(value, Arguments(codec=codec, entry=ENTRY)) for key, value in values.items()}


@pytest.mark.parametrize("codec", VALUE_CODECS, ids=range(len(VALUE_CODECS)))
def test_codec_is_found_again(codec):
    """What each codec writes for values of every kind is understood as that codec, and explained wholly."""
    known = Arguments(entry=ENTRY, codec=Codec(string_open=codec.string_open, string_close=codec.string_close))

    found = find_value_codec(written_by(codec), known, VALUES)

    assert written_by(found.codec) == written_by(codec)
    assert (found.codec.strings, found.codec.words, found.codec.typed_by) == (
        codec.strings,
        codec.words,
        codec.typed_by,
    )
    assert (found.codec.containers, found.codec.ascii_only) == (codec.containers, codec.ascii_only)
    assert found.unexplained == ()


def test_types_that_are_written_stay():
    """Where an attribute names the type, strings are plain, and the schema is not asked."""
    codec = replace(RAW, typed_by=Typing.ATTRIBUTE, types=(("string", "str"), ("number", "num")))

    quoted = find_value_codec(written_by(Codec()), Arguments(entry=ENTRY, codec=codec), VALUES)

    assert find_value_codec(written_by(codec), Arguments(entry=ENTRY, codec=codec), VALUES).codec == codec
    assert (quoted.codec.strings, quoted.codec.typed_by) == (Strings.RAW, Typing.ATTRIBUTE)
    assert len(quoted.unexplained) == sum(isinstance(value, str) for value in VALUES.values())


def test_null_that_is_not_written_is_omitted():
    """A codec omits null when the probe had one and the text has none."""
    written = written_by(RAW)
    del written["pkeyap"]
    without = {key: value for key, value in VALUES.items() if value is not None}

    assert find_value_codec(written, Arguments(entry=ENTRY), VALUES).codec.omits_null
    assert not find_value_codec(written_by(RAW), Arguments(entry=ENTRY), VALUES).codec.omits_null
    assert not find_value_codec(written, Arguments(entry=ENTRY), without).codec.omits_null


def test_quotes_that_are_none_are_forgotten():
    """Strings that turn out to be JSON leave nothing of the quotes that were seen before them."""
    found = find_value_codec(written_by(Codec()), Arguments(entry=ENTRY, codec=Codec(string_open='"')), VALUES)

    assert found.codec == Codec()


def test_most_values_decide():
    """One value that is written otherwise is reported with both texts; the codec is that of the others."""
    written = written_by(RAW) | {"pkeyad": "its"}

    found = find_value_codec(written, Arguments(entry=ENTRY), VALUES)

    assert found.codec == RAW
    assert found.unexplained == ("the value \"it's\" is written as 'its', the codec says \"it's\"",)


def test_only_what_is_seen_counts():
    """Values that the template did not write say nothing."""
    seen = {"pkeyaa": "valdrixo", "pkeyak": "7"}

    assert find_value_codec(seen, Arguments(entry=ENTRY), VALUES).codec == replace(RAW, omits_null=True)


def test_words_may_be_all_that_is_seen():
    """Null alone tells how words are written."""
    assert find_value_codec({"pkeyap": "None"}, Arguments(entry=ENTRY), VALUES).codec.words is Words.PYTHON


def test_items_of_a_list_may_be_tags():
    """The tag nearest to the first item is the items' own, with all characters that a tag may have."""
    values = {"pkeyaa": "valdrixo", "pkeyaq": ["valdrixo", 2, False]}
    written = {"pkeyaa": "valdrixo", "pkeyaq": "<list-item_1>valdrixo<list-item_1>2<list-item_1>false"}

    found = find_value_codec(written, Arguments(entry=ENTRY), values)

    equal = find_value_codec(
        {"pkeyaa": "valdrixo", "pkeyaq": "<p=item>valdrixo<p=item>2<p=item>false"},
        Arguments(entry=("<p=", Slot.KEY, ">", Slot.VALUE)),
        values,
    )

    assert (found.codec.containers, found.codec.item_tag) == (Containers.XML, "list-item_1")
    assert (equal.codec.containers, equal.codec.item_tag) == (Containers.XML, "item")


def items_in(value):
    """Yield a value, and all values inside it."""
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from items_in(item)


def test_values_tell_codecs_apart():
    """The probe has every kind of value that JSON has, and text that looks like other kinds."""
    kinds = {type(value) for value in VALUES.values()}
    texts = [value for value in VALUES.values() if isinstance(value, str)]
    containers = [value for value in VALUES.values() if isinstance(value, list | dict)]
    inside = [item for value in containers for item in items_in(value)]

    assert kinds == {str, int, float, bool, type(None), list, dict}
    assert kinds - {float} <= {type(item) for item in inside}
    assert all(any(item is word for item in VALUES.values()) for word in (True, False, None))
    assert all(any(item is word for value in containers for item in items_in(value)) for word in (True, False, None))
    assert all(key.isalpha() for value in inside if isinstance(value, dict) for key in value)
    assert "" in texts
    assert VALUES["pkeyaa"] == VALUES["pkeyaq"][0] == VALUES["pkeyar"]["ma"] == "valdrixo"
    assert any(text.isdigit() and text != str(int(text)) for text in texts)
    assert all(any(mark in text for text in texts) for mark in "\"'\\\n<>&漢")
    assert VALUES["pkeyas"][0] != VALUES["pkeyas"][1]
    assert list(VALUES) == sorted(VALUES)
    assert any(isinstance(value, str) and json.loads(value) is True for value in VALUES.values() if value == "true")
