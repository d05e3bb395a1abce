"""Writing values, calls and answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.answer import encode
from unrender.answer.build import calls_in_syntax
from unrender.answer.encode import encode_answer
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
    TurnTexts,
    Typing,
    Words,
)
from unrender.messages.wire import json_type
from unrender.values.notations import encode_value


def encode_arguments(values, arguments, margin=""):
    syntax = CallSyntax(function=(Slot.NAME, Slot.ARGUMENTS), arguments=arguments)
    return encode.encode_arguments(values, calls_in_syntax(Format(), syntax).arguments, margin=margin)


def encode_calls(calls, tools, first=0):
    return encode.encode_calls(calls_in_syntax(Format(), tools), calls, first=first)


RAW = {"strings": Strings.RAW, "typed_by": Typing.SCHEMA}
VALUES = ['a"b', 7, -2.5, True, None, ["x", 2, False], {"m": "x", "n": [1]}]


@pytest.mark.parametrize(
    ("codec", "expected"),
    [
        (Codec(), ['"a\\"b"', "7", "-2.5", "true", "null", '["x", 2, false]', '{"m": "x", "n": [1]}']),
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
    assert [encode_value(value, codec) for value in VALUES] == expected


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
    codec = Codec(**RAW, cdata=True)

    assert encode_value("a<b", codec) == "<![CDATA[a<b]]>"
    assert encode_value("ab", codec) == "ab"


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
        function=(Slot.NAME, ":", Slot.INDEX, "#", Slot.ID, Slot.ARGUMENTS),
        index_start=1,
        arguments=Arguments(when_empty="-"),
    )

    assert encode_calls([("f", {"k": 1}, "c9")], tools, first=1) == 'f:2#c9{"k": 1}'
    assert encode_calls([("f", {}, "")], tools) == "f:1#-"


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
    tools=CallSyntax(section_start="[", section_end="]", separator=",", function=CALL),
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


WRAPPED_WITH_REASONING = replace(FORMAT, content=replace(FORMAT.content, mode=ContentMode.WRAPPED_WITH_REASONING))
FIRST = replace(FORMAT, turn=replace(FORMAT.turn, tools_first=True, start_to_content=" "))
HOLDS = replace(FORMAT, reasoning=replace(FORMAT.reasoning, holds_calls=True))
EMPTY_BLOCK = replace(FORMAT, reasoning=replace(FORMAT.reasoning, empty="<t></t>"))
WRAPS_EMPTY = replace(FORMAT, content=replace(FORMAT.content, wraps_empty=True))
OTHER_WRAPPER = replace(FORMAT, content_with_calls=Content(mode=ContentMode.ALWAYS_WRAPPED, start="(", end=")"))


@pytest.mark.parametrize(
    ("fmt", "parts", "expected"),
    [
        (FIRST, {"content": "C", "calls": CALLS}, "^^[f>{},g>{}]~~<c>C</c>"),
        (FIRST, {"calls": CALLS}, "^^[f>{},g>{}]"),
        (FIRST, {"reasoning": "R", "calls": CALLS}, "<t>R</t>\n\n[f>{},g>{}]"),
        (FIRST, {"content": "C"}, " <c>C</c>"),
        (FIRST, {}, ""),
        (HOLDS, {"reasoning": "R", "calls": CALLS}, "<t>R\n\n[f>{},g>{}]"),
        (HOLDS, {"reasoning": "R", "content": "C", "calls": CALLS}, "<t>R</t>\n<c>C</c>|-|[f>{},g>{}]"),
        (HOLDS, {"reasoning": "R", "content": "C"}, "<t>R</t>\n<c>C</c>"),
        (HOLDS, {"reasoning": "R"}, "<t>R</t>"),
        (
            replace(HOLDS, turn=FIRST.turn),
            {"reasoning": "R", "content": "C", "calls": CALLS},
            "<t>R\n\n[f>{},g>{}]~~<c>C</c>",
        ),
        (EMPTY_BLOCK, {"content": "C"}, "<t></t>\n<c>C</c>"),
        (EMPTY_BLOCK, {"calls": CALLS}, "<t></t>\n\n[f>{},g>{}]"),
        (EMPTY_BLOCK, {"reasoning": "R", "content": "C"}, "<t>R</t>\n<c>C</c>"),
        (EMPTY_BLOCK, {}, "<t></t>"),
        (WRAPS_EMPTY, {}, "<c></c>"),
        (WRAPS_EMPTY, {"calls": CALLS}, "<c></c>|-|[f>{},g>{}]"),
        (WRAPPED_WITH_REASONING, {"content": "C"}, "C"),
        (WRAPPED_WITH_REASONING, {"reasoning": "R", "content": "C"}, "<t>R</t>\n<c>C</c>"),
        (OTHER_WRAPPER, {"content": "C", "calls": CALLS}, "(C)|-|[f>{},g>{}]"),
        (OTHER_WRAPPER, {"content": "C"}, "<c>C</c>"),
    ],
)
def test_an_answer_is_put_together_as_the_format_says(fmt, parts, expected):
    """Calls first or last, inside of reasoning or after it, an empty block, an empty wrapper, another wrapper."""
    assert encode_answer(fmt, **parts) == expected


TAGS = ("<", Slot.KEY, ">", Slot.VALUE, "</>")


@pytest.mark.parametrize(
    ("values", "arguments", "expected"),
    [
        ({}, Arguments(), "{}"),
        ({}, Arguments(when_empty=""), ""),
        ({}, Arguments(start="(", end=")", when_empty="-"), "-"),
        ({}, Arguments(start="(", end=")"), "({})"),
        ({"a": 1}, Arguments(start="(", end=")", when_empty="-"), '({"a": 1})'),
        ({"a": 1, "b": None}, Arguments(entry=TAGS, separator=";", start="[", end="]"), "[<a>1</>;<b>null</>]"),
        ({"a": 1, "b": None}, Arguments(entry=TAGS, separator=";", codec=Codec(omits_null=True)), "<a>1</>"),
        ({"a": [None]}, Arguments(entry=TAGS, codec=Codec(omits_null=True)), "<a>[null]</>"),
        ({"a": (1, 2)}, Arguments(entry=TAGS), "<a>[1, 2]</>"),
        ({"a": 1}, Arguments(entry=("<", Slot.KEY, Slot.TYPE, Slot.NAME, ">", Slot.VALUE)), "<a>1"),
        ({"a": {"b": 1}}, Arguments(codec=Codec(indent=1)), '{\n "a": {\n  "b": 1\n }\n}'),
    ],
)
def test_arguments_are_written_as_the_format_says(values, arguments, expected):
    """None at all, one object, a string of it, or one entry for each."""
    assert encode_arguments(values, arguments) == expected


BARE = Codec(strings=Strings.QUOTED, string_open="<", string_close=">", containers=Containers.BARE, item_separator="; ")


@pytest.mark.parametrize(
    ("value", "codec", "expected"),
    [
        ({"a": [1, {"b": "x"}], "c": ()}, BARE, "{a: [1; {b: <x>}]; c: []}"),
        ([1, "é"], Codec(ascii_only=True, item_separator=","), '[1,"\\u00e9"]'),
        ([1, "é"], Codec(ascii_only=True, indent=1), '[\n 1,\n "\\u00e9"\n]'),
        ([None, True], Codec(words=Words.PYTHON, containers=Containers.PYTHON), "[None, True]"),
        (None, Codec(omits_null=True), ""),
        (1.0, Codec(), "1.0"),
    ],
)
def test_lists_and_objects_are_written_all_the_way_down(value, codec, expected):
    """What is inside is written as the notation of lists and objects says."""
    assert encode_value(value, codec) == expected


def test_pretty_json_is_indented_as_its_line_is():
    """The margin is the blanks at the beginning of the line in which the arguments begin."""
    arguments = Arguments(codec=Codec(indent=2))
    tools = CallSyntax(function=(Slot.NAME, "\n  x: ", Slot.ANY, Slot.ARGUMENTS), arguments=arguments)

    assert encode_calls([("f", {"a": 1}, "")], tools) == 'f\n  x: {\n    "a": 1\n  }'
    deeper = replace(tools, function=("\n y\n\n  x", Slot.ARGUMENTS))
    assert encode_calls([("f", {"a": 1}, "")], deeper) == '\n y\n\n  x{\n    "a": 1\n  }'


def test_calls_are_counted_from_the_first():
    """What is around each call, between two, and around all of them; none at all is nothing."""
    tools = CallSyntax(
        section_start="[",
        section_end="]",
        call_start="<",
        call_end=">",
        separator=",",
        function=(Slot.INDEX, Slot.NAME, Slot.ID),
        index_start=1,
    )

    assert encode_calls([("f", {}, "a"), ("g", {}, "b")], tools) == "[<1fa>,<2gb>]"
    assert encode_calls([("f", {}, "a")], tools, first=3) == "[<4fa>]"
    assert encode_calls([], tools) == ""


def test_types_are_named_as_in_json():
    """Numbers of both kinds, and whatever is no other is a list."""
    assert [json_type(value) for value in (1, 1.5, True, "a", None, {}, [], ())] == [
        "number",
        "number",
        "boolean",
        "string",
        "null",
        "object",
        "array",
        "array",
    ]
