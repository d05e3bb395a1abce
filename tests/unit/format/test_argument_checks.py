"""How arguments are written: entries and codecs that could not be read back, by the paths of the fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Envelope,
    Part,
    Slot,
    Strings,
    ToolMode,
    Typing,
    Words,
)
from unrender.format.call_checks import check_arguments
from unrender.limits import MAX_INDENT

RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
TYPES = (("string", "s"), *((kind, "o") for kind in ("number", "boolean", "null", "object", "array")))
TAGGED = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    call_start="<call>",
    call_end="</call>",
    function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>"),
    arguments=Arguments(entry=("<", Slot.KEY, ">", Slot.VALUE, "</>"), codec=RAW),
)
ONE = replace(TAGGED, mode=ToolMode.TAG_WITH_JSON, arguments=Arguments())


def refused(tools: CallSyntax = TAGGED, codec: Codec | None = None, **arguments: Any) -> list[str]:
    """Return the paths of what is refused, with other arguments, or another codec."""
    made = replace(tools.arguments, **arguments)
    made = made if codec is None else replace(made, codec=codec)
    return [
        where.removeprefix("arguments.") for where, _ in check_arguments(replace(tools, arguments=made), "arguments")
    ]


def test_what_can_be_read_is_allowed() -> None:
    """Arguments one by one, and all in one object."""
    assert (refused(), refused(ONE)) == ([], [])
    assert refused(ONE, entry=TAGGED.arguments.entry) == ["entry"]
    assert refused(replace(TAGGED, mode=ToolMode.TAG_WITH_JSON)) == ["entry"]
    assert refused(entry=()) == ["entry"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"start": "("}, ["start"]),
        ({"end": ")"}, ["end"]),
        ({"separator": ","}, ["separator"]),
        ({"start": "(", "end": ")", "when_empty": ""}, []),
        ({"separator": ",", "when_empty": ""}, ["separator"]),
        ({"codec": Codec(strings=Strings.PYTHON, containers=Containers.PYTHON)}, []),
        ({"codec": Codec(strings=Strings.PYTHON)}, ["codec.strings"]),
        ({"codec": Codec(strings=Strings.JSON, containers=Containers.BARE)}, ["codec.strings"]),
    ],
)
def test_arguments_that_are_one_object(arguments: dict[str, Any], found: list[str]) -> None:
    """They have one notation, and texts around them only where they can be left out."""
    assert refused(ONE, **arguments) == found


def test_nothing_is_around_arguments_inside_an_object() -> None:
    """The call itself is the object."""
    native = replace(ONE, mode=ToolMode.JSON_NATIVE, envelope=Envelope())

    assert refused(native, start="(", when_empty="") == ["start"]
    assert refused(native, end=")", when_empty="") == ["start"]
    assert refused(native, when_empty="") == []


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        (("<", Slot.KEY, "=", Slot.VALUE, ">"), []),
        (("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">"), []),
        (("<", Slot.VALUE, ">"), ["entry"]),
        (("<", Slot.KEY, "|", Slot.KEY, "|", Slot.KEY, ">", Slot.VALUE, "</>"), ["entry"]),
        (("<", Slot.VALUE, "=", Slot.KEY, ">"), ["entry"]),
        (("<", Slot.KEY, ">"), ["entry"]),
        (("<", Slot.NAME, "|", Slot.KEY, "=", Slot.VALUE, ">"), ["entry[1]"]),
        (("<", Slot.KEY, Slot.VALUE, ">"), ["entry[2]"]),
        (("<", Slot.KEY, "is", Slot.VALUE, ">"), ["entry[2]"]),
        (("<", Slot.KEY, " ", Slot.TYPE, ">", Slot.VALUE, "</>"), ["entry"]),
        (("</call>", Slot.KEY, ">", Slot.VALUE, "</>"), ["entry[0]"]),
        (("</fn> ", Slot.KEY, ">", Slot.VALUE, "</>"), ["entry[0]"]),
    ],
)
def test_the_parts_of_an_entry(entry: tuple[Part, ...], found: list[str]) -> None:
    """A key and then its value, told apart from each other and from what ends the arguments."""
    assert refused(entry=entry) == found


def test_a_type_comes_before_the_value() -> None:
    """Where, and only where, an attribute says it."""
    codec = replace(RAW, typed_by=Typing.ATTRIBUTE, types=TYPES)

    assert refused(codec=codec, entry=("<", Slot.KEY, " t=", Slot.TYPE, ">", Slot.VALUE, "</>")) == []
    assert refused(codec=codec, entry=("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.TYPE, ">")) == ["entry"]
    assert refused(codec=codec) == ["entry"]


@pytest.mark.parametrize(
    ("codec", "twice", "found"),
    [
        (RAW, True, []),
        (replace(RAW, cdata=True), True, ["entry"]),
        (replace(RAW, cdata=True), False, []),
        (Codec(), True, []),
        (replace(RAW, containers=Containers.XML, item_tag="i"), True, []),
        (replace(RAW, containers=Containers.XML, item_tag="i"), False, ["entry"]),
    ],
)
def test_a_key_after_its_value(codec: Codec, twice: bool, found: list[str]) -> None:
    """It closes tags, and ends what is as it is."""
    entry = ("<", Slot.KEY, ">", Slot.VALUE, *(("</", Slot.KEY, ">") if twice else ("</>",)))

    assert refused(codec=codec, entry=entry) == found


OPEN = replace(TAGGED, call_end="", function=("$ ", Slot.NAME, Slot.ARGUMENTS), separator="\n")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"entry": (" --", Slot.KEY, "=", Slot.VALUE)}, []),
        ({"entry": (Slot.KEY, "=", Slot.VALUE), "separator": "\n"}, []),
        ({"entry": (Slot.KEY, "=", Slot.VALUE), "separator": ", "}, ["end"]),
        ({"entry": (Slot.KEY, "=", Slot.VALUE), "separator": ", ", "end": ";"}, []),
        ({"entry": ("\n", Slot.KEY, "=", Slot.VALUE)}, []),
        ({"entry": (Slot.KEY, "=", Slot.VALUE, "</>")}, ["end"]),
        ({"entry": ("<call> ", Slot.KEY, "=", Slot.VALUE)}, ["entry[0]"]),
        ({"entry": ("$ ", Slot.KEY, "=", Slot.VALUE)}, ["entry[0]"]),
    ],
)
def test_where_arguments_end_that_no_marker_ends(arguments: dict[str, Any], found: list[str]) -> None:
    """Where no other argument begins: each begins with a text, or on a line of its own."""
    assert refused(OPEN, **arguments) == found


def test_what_separates_arguments_does_not_end_them() -> None:
    """The nearest marker after them begins otherwise."""
    code = {"entry": (Slot.KEY, "=", Slot.VALUE), "start": "(", "end": "; )"}

    assert refused(**code, separator="; ") == ["separator"]
    assert refused(**code, separator=", ") == []
    assert refused(**{**code, "end": ""}, separator="</fn") == ["separator"]
    assert refused(**{**code, "end": ""}, separator="</call") == []


def test_a_raw_value_ends_where_the_next_argument_begins() -> None:
    """So something shows that beginning."""
    assert refused(entry=(Slot.KEY, "=", Slot.VALUE)) == ["entry"]
    assert refused(entry=(Slot.KEY, "=", Slot.VALUE), separator="\n") == []
    assert refused(entry=(Slot.KEY, " ", Slot.VALUE), separator="\n") == ["entry"]
    assert refused(entry=(Slot.KEY, " ", Slot.VALUE), separator=", ") == []
    alone = replace(OPEN, call_start="", section_start="<calls>", function=(Slot.NAME, Slot.ARGUMENTS))
    assert refused(alone, entry=(" --", Slot.KEY, "=", Slot.VALUE)) == ["entry"]
    assert refused(replace(alone, parallel=False), entry=(" --", Slot.KEY, "=", Slot.VALUE)) == []
    assert refused(replace(alone, separator=";"), entry=(" --", Slot.KEY, "=", Slot.VALUE)) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"string_open": "<"}, ["string_open"]),
        ({"string_close": "<"}, ["string_close"]),
        ({"string_open": " "}, ["string_open"]),
        ({"typed_by": Typing.SYNTAX}, ["typed_by"]),
        ({"indent": 0}, []),
        ({"indent": MAX_INDENT}, []),
        ({"indent": MAX_INDENT + 1}, ["indent"]),
        ({"indent": -1}, ["indent"]),
        ({"item_separator": " , "}, []),
        ({"item_separator": ";"}, ["item_separator"]),
        ({"key_separator": ":"}, []),
        ({"key_separator": "="}, ["key_separator"]),
        ({"item_tag": "i"}, ["item_tag"]),
        ({"containers": Containers.BARE}, ["containers"]),
        ({"cdata": True}, []),
        ({"words": Words.PYTHON}, []),
        ({"types": TYPES}, ["types"]),
    ],
)
def test_a_codec_of_raw_text(changes: dict[str, Any], found: list[str]) -> None:
    """What it says is what can be read."""
    assert refused(codec=replace(RAW, **changes)) == [f"codec.{name}" for name in found]


@pytest.mark.parametrize(
    ("codec", "found"),
    [
        (Codec(strings=Strings.QUOTED, string_open="<|", string_close="|>"), []),
        (Codec(strings=Strings.QUOTED, string_open="<|"), ["string_close"]),
        (Codec(strings=Strings.QUOTED, string_open=" ", string_close="|>"), ["string_open"]),
        (Codec(typed_by=Typing.SCHEMA), ["typed_by"]),
        (Codec(containers=Containers.BARE), []),
        (Codec(cdata=True), ["cdata"]),
    ],
)
def test_a_codec_of_strings_in_quotes(codec: Codec, found: list[str]) -> None:
    """Their quotation marks type them."""
    assert refused(codec=codec) == [f"codec.{name}" for name in found]


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (TYPES, []),
        ((), ["types"]),
        (TYPES[:-1], ["types"]),
        ((*TYPES, ("array", "o")), ["types"]),
        ((("string", "a b"), *TYPES[1:]), ["types[0]"]),
        ((("string", ""), *TYPES[1:]), ["types[0]"]),
        ((*TYPES[:-1], ("array", "s")), ["types[5]"]),
        ((*TYPES[:-1], ("array", "x>")), ["types[5]"]),
    ],
)
def test_the_words_of_types(types: tuple[tuple[str, str], ...], found: list[str]) -> None:
    """One for each type, which is not the one of strings, and ends where a word does."""
    codec = replace(RAW, typed_by=Typing.ATTRIBUTE, types=types)
    entry = ("<", Slot.KEY, " t=", Slot.TYPE, ">", Slot.VALUE, "</>")

    assert refused(codec=codec, entry=entry) == [f"codec.{name}" for name in found]
