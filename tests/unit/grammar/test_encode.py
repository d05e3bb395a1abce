"""Writing values, calls and answers."""

from __future__ import annotations

import pytest

from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    TurnTexts,
    Typing,
    Words,
)
from unrender.grammar.encode import encode_answer, encode_arguments, encode_call, encode_value, json_type

RAW = {"strings": Strings.RAW, "typed_by": Typing.SCHEMA}
VALUES = ['a"b', 7, -2.5, True, None, ["x", 2, False], {"m": "x", "n": [1]}]


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        (Codec(), ['"a\\"b"', "7", "-2.5", "true", "null", '["x", 2, false]', '{"m": "x", "n": [1]}']),
        (
            Codec(strings=Strings.SINGLE, containers=Containers.SINGLE, item_separator=","),
            ["'a\"b'", "7", "-2.5", "true", "null", "['x',2,false]", "{'m': 'x','n': [1]}"],
        ),
        (
            Codec(**RAW, containers=Containers.JOINED, item_separator=","),
            ['a"b', "7", "-2.5", "true", "null", "x,2,false", '{"m": "x", "n": [1]}'],
        ),
        (Codec(**RAW), ['a"b', "7", "-2.5", "true", "null", '["x", 2, false]', '{"m": "x", "n": [1]}']),
        (
            Codec(**RAW, words=Words.PYTHON, containers=Containers.PYTHON),
            ['a"b', "7", "-2.5", "True", "None", "['x', 2, False]", "{'m': 'x', 'n': [1]}"],
        ),
        (
            Codec(
                strings=Strings.QUOTED,
                string_open="<",
                string_close=">",
                words=Words.PYTHON_NULL,
                containers=Containers.BARE,
                item_separator=",",
                key_separator=":",
            ),
            ['<a"b>', "7", "-2.5", "true", "None", "[<x>,2,false]", "{m:<x>,n:[1]}"],
        ),
    ],
)
def test_values_are_written_as_the_codec_says(codec, expected):
    """Each kind of value has its own spelling in each codec."""
    assert [encode_value(value, Arguments(codec=codec)) for value in VALUES] == expected


def test_json_layout_is_kept():
    """Separators, indentation and escapes belong to the codec; a margin indents all lines but the first."""
    compact = Arguments(codec=Codec(item_separator=",", key_separator=":", ascii_only=True))
    pretty = Arguments(codec=Codec(indent=2))

    assert encode_arguments({"k": "é", "m": 1}, compact) == '{"k":"\\u00e9","m":1}'
    assert encode_arguments({"k": 1}, pretty, margin="  ") == '{\n    "k": 1\n  }'


def test_nested_tags_follow_the_entry():
    """XML containers use the entry's own tags, and the item tag for lists."""
    entry = ("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">")
    codec = Codec(**RAW, containers=Containers.XML, item_tag="item", omits_null=True)
    arguments = Arguments(entry=entry, codec=codec)

    text = encode_arguments({"a": {"b": [1, "x"]}, "gone": None}, arguments)

    assert text == "<a><b><item>1</item><item>x</item></b></a>"


def test_special_strings_stand_in_cdata():
    """Where the codec has CDATA, it is used for special characters alone."""
    arguments = Arguments(codec=Codec(**RAW, cdata=True))

    assert encode_value("a<b", arguments) == "<![CDATA[a<b]]>"
    assert encode_value("ab", arguments) == "ab"


def test_types_are_written():
    """A type slot says the word that the codec has for the value's type."""
    types = (("string", "true"), ("number", "false"))
    arguments = Arguments(
        entry=(Slot.KEY, "|", Slot.TYPE, "|", Slot.VALUE), codec=Codec(strings=Strings.RAW, types=types), separator=";"
    )

    assert encode_arguments({"a": "x", "b": 1}, arguments) == "a|true|x;b|false|1"
    assert [json_type(value) for value in VALUES] == [
        "string",
        "number",
        "number",
        "boolean",
        "null",
        "array",
        "object",
    ]


def test_calls_fill_their_skeleton():
    """Names, ids and counters go where the skeleton has their slots; empty arguments as declared."""
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_JSON,
        function=(Slot.NAME, ":", Slot.INDEX, "#", Slot.ID, Slot.ARGUMENTS),
        index_start=1,
        arguments=Arguments(when_empty="-"),
    )

    assert encode_call("f", {"k": 1}, tools, call_id="c9", index=1) == 'f:2#c9{"k": 1}'
    assert encode_call("f", {}, tools) == "f:1#-"


CALL = (Slot.NAME, ">", Slot.ARGUMENTS)
FORMAT = Format(
    turn=TurnTexts(
        reasoning_to_content="\n",
        reasoning_to_tools="\n\n",
        content_to_tools="|-|",
        start_to_tools="^^",
        tools_to_content="~~",
    ),
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>", empty=""),
    content=Content(mode=ContentMode.ALWAYS_WRAPPED, start="<c>", end="</c>"),
    tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, section_start="[", section_end="]", separator=",", function=CALL),
)
CALLS = [("f", {}, ""), ("g", {}, "")]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"content": "C"}, "<c>C</c>"),
        ({"reasoning": "R", "content": "C"}, "<t>R</t>\n<c>C</c>"),
        ({"calls": CALLS}, "^^[f>{},g>{}]"),
        ({"content": "C", "calls": CALLS}, "<c>C</c>|-|[f>{},g>{}]"),
        ({"reasoning": "R", "calls": CALLS}, "<t>R</t>\n\n[f>{},g>{}]"),
        ({}, ""),
    ],
)
def test_parts_are_joined(parts, expected):
    """The joint between two parts depends on both."""
    assert encode_answer(FORMAT, **parts) == expected


def test_items_are_written_as_arguments_of_one_name():
    """A list is one entry for each of its items; an empty one is not written, and lists in lists are values."""
    arguments = Arguments(
        entry=("<", Slot.KEY, ">", Slot.VALUE, "</>"), separator="|", codec=Codec(**RAW), repeats=True
    )

    assert encode_arguments({"a": ["x", 2, [3]], "b": [], "c": "y"}, arguments) == "<a>x</>|<a>2</>|<a>[3]</>|<c>y</>"
