"""Calls as a field of a response template: what its patterns open, capture and close, and what no field can read."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from unrender.errors import ExportError
from unrender.export.response_calls import between_calls, calls_field, calls_opener
from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Content,
    ContentMode,
    Envelope,
    Format,
    Slot,
    Spelling,
    Strings,
    ToolMode,
    TurnTexts,
    Typing,
    Words,
)

TURN = TurnTexts(headers=("<bot>",), end="<end>\n")
OBJECT = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    call_start="<call>\n",
    call_end="\n</call>",
    separator="\n",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",)),
)
LIST = replace(
    OBJECT,
    section_start="<calls>[",
    section_end="]</calls>",
    call_start="",
    call_end="",
    separator=", ",
    envelope=Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True),
)
NAMED = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON, call_start="<fn=", function=(Slot.NAME, ">", Slot.ARGUMENTS), call_end="</fn>"
)
TAGGED = replace(
    NAMED,
    mode=ToolMode.TAG_WITH_TAGGED,
    arguments=Arguments(
        entry=("<arg=", Slot.KEY, ">\n", Slot.VALUE, "\n</arg>"),
        codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA),
    ),
)


def field(tools: CallSyntax, **fields: Any) -> dict[str, Any]:
    return calls_field(Format(turn=TURN, tools=tools, **fields))


def opened(made: dict[str, Any], text: str) -> str | None:
    """Return what is left of a text that opens a call; None where it opens none."""
    found = re.match(made["open_pattern"], text)
    return text[found.end() :] if found else None


def test_an_object_is_read_as_json() -> None:
    """It may have its keys in any order, but begins with the first one, and has arguments."""
    made = field(OBJECT)

    assert {name: made[name] for name in ("repeats", "content", "transform")} == {
        "repeats": True,
        "content": "json",
        "transform": {
            "type": "function",
            "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
        },
    }
    assert opened(made, ' \n<call> {"name": "f", "arguments": {}}') == '{"name": "f", "arguments": {}}'
    assert opened(made, '<call>{"name": "f"}') is None
    assert opened(made, '<call>{"arguments": {}, "name": "f"}') is None
    assert opened(made, '{"name": "f", "arguments": {}}') is None
    assert [bool(re.search(made["close_pattern"], text)) for text in ("}\n</call> ", "} </call>", "x</call>")] == [
        True,
        True,
        False,
    ]


def test_ids_and_deeper_fields_are_taken_from_their_places() -> None:
    """An id has a place in the transform where the format writes one."""
    fields = Envelope(name_field=("f", "name"), args_field=("f", "with"), id_field=("id",))
    function = ('{"id": "', Slot.ID, '", "f": {"name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}}")
    made = field(replace(OBJECT, function=function, envelope=fields))

    assert made["transform"] == {
        "type": "function",
        "id": "{content.id}",
        "function": {"name": "{content.f.name}", "arguments": "{content.f.with}"},
    }


def test_a_list_of_calls_is_one_field() -> None:
    """Each of its elements is a call; the list ends with its bracket and what is after it."""
    made = field(LIST)

    assert {name: made[name] for name in ("content", "transform_each", "transform")} == {
        "content": "json",
        "transform_each": True,
        "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}},
    }
    assert "repeats" not in made
    assert opened(made, '<calls> [{"name": "f"') == ' [{"name": "f"'
    assert opened(made, "<calls> {") is None
    assert [bool(re.search(made["close_pattern"], text)) for text in ("]</calls>", "] </calls>", "</calls>")] == [
        True,
        True,
        False,
    ]


def test_a_list_without_a_marker_begins_as_calls_do() -> None:
    """And ends with the turn, or with the output where only a bracket is after it."""
    bare = field(replace(LIST, section_start="[", section_end="]"))

    assert opened(bare, '[{"name": "f", "arguments": {}}]') == '[{"name": "f", "arguments": {}}]'
    assert opened(bare, '["name"]') is None
    assert re.search(bare["close_pattern"], "] <end>\n")
    assert not re.search(bare["close_pattern"], "] and <end>")


def test_a_name_is_captured_before_its_arguments() -> None:
    """It ends before the first character of what follows it; an object ends after its brace."""
    made = field(NAMED)
    found = re.match(made["open_pattern"], "<fn=f.g-1>{")

    assert found
    assert found["name"] == "f.g-1"
    assert made["transform"] == {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
    assert (made["content"], made["repeats"]) == ("json", True)
    assert [bool(re.search(made["close_pattern"], text)) for text in ("} </fn>", "x</fn>")] == [True, False]
    assert not re.match(made["open_pattern"], "<fn=two words>{")


def test_an_id_is_captured_beside_the_name() -> None:
    """In a slot of its own, or made up of several parts."""
    own = field(replace(NAMED, function=(Slot.NAME, " id=", Slot.ID, ">", Slot.ARGUMENTS)))
    parts = ("functions.", Slot.NAME, ":", Slot.INDEX, ">", Slot.ARGUMENTS)
    made_up = field(replace(NAMED, function=parts, id_parts=(0, 4)))
    found = [
        re.match(made["open_pattern"], text)
        for made, text in ((own, "<fn=f id=a1>{"), (made_up, "<fn=functions.f:3>{"))
    ]

    assert [match and match.groupdict() for match in found] == [
        {"name": "f", "id": "a1"},
        {"name": "f", "id": "functions.f:3"},
    ]
    assert own["transform"]["id"] == made_up["transform"]["id"] == "{id}"


def test_arguments_in_tags_are_read_one_by_one() -> None:
    """With the layout that the format writes around a value, and no more."""
    made = field(TAGGED)
    pattern = made["content_args"]["tag_pattern"]
    found = re.search(pattern, "<arg=city>\n\n Rome \n\n</arg>", re.DOTALL)

    assert made["content"] == "xml-inline"
    assert made["content_args"]["value_parser"] == {"name": "text", "args": {"strip": False}}
    assert found
    assert (found["key"], found["value"]) == ("city", "\n Rome \n")
    json = field(replace(TAGGED, arguments=replace(TAGGED.arguments, codec=Codec())))
    assert json["content_args"]["value_parser"] == {"name": "json", "args": {"allow_non_json": True}}


def test_a_key_that_comes_again_is_the_same() -> None:
    """And CDATA around a value is not a part of it."""
    entry = ("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">")
    twice = field(replace(TAGGED, arguments=replace(TAGGED.arguments, entry=entry)))
    cdata = field(
        replace(TAGGED, arguments=replace(TAGGED.arguments, codec=replace(TAGGED.arguments.codec, cdata=True)))
    )
    found = re.search(twice["content_args"]["tag_pattern"], "<a>x</b></a>", re.DOTALL)
    inside = re.search(cdata["content_args"]["tag_pattern"], "<arg=a>\n<![CDATA[x<y]]>\n</arg>", re.DOTALL)

    assert found
    assert (found["key"], found["value"]) == ("a", "x</b>")
    assert inside
    assert inside["value"] == "x<y"


def test_keys_without_quotes_are_read_as_json() -> None:
    """Where the format's own strings are named to the parser of JSON."""
    codec = Codec(
        strings=Strings.QUOTED, words=Words.PYTHON, containers=Containers.BARE, string_open="<|", string_close="|>"
    )
    arguments = Arguments(start="{", end="}", entry=(Slot.KEY, ":", Slot.VALUE), separator=",", codec=codec)
    made = field(replace(TAGGED, function=(Slot.NAME, Slot.ARGUMENTS), arguments=arguments))

    assert made["content"] == "json"
    assert made["content_args"] == {"unquoted_keys": True, "string_delims": [["<|", "|>"]]}


def test_a_call_without_an_end_of_its_own_ends_before_the_next() -> None:
    """Or with all calls, with what separates them, or with the turn."""
    made = field(replace(NAMED, call_end="", section_start="<calls>", section_end="</calls>", separator=";;;"))
    single = field(replace(NAMED, call_end="", parallel=False))
    texts = ("} </calls>", "} ;;;", "} <fn=", "} <end>", "} x")

    assert [bool(re.search(made["close_pattern"], text)) for text in texts] == [True, True, True, True, False]
    assert [bool(re.search(single["close_pattern"], text)) for text in texts] == [False, False, False, True, False]


def test_the_marker_of_all_calls_may_be_missing_or_spelled_otherwise() -> None:
    """Where each call has its own; content that begins alike is not one."""
    sectioned = replace(NAMED, section_start="<calls>", section_end="</calls>")
    made = field(sectioned, spellings=(Spelling(marker="<calls>", others=("<tools>",)),))
    wrapped = field(
        replace(NAMED, call_start="", function=(">>>", Slot.NAME, "\n", Slot.ARGUMENTS)),
        content=Content(mode=ContentMode.ALWAYS_WRAPPED, start=">>>all\n"),
    )

    assert [opened(made, text) for text in ("<calls>\n<fn=f>{", "<tools><fn=f>{", "<fn=f>{", "<calls>{")] == [
        "{",
        "{",
        "{",
        None,
    ]
    assert (opened(wrapped, ">>>f\n{"), opened(wrapped, ">>>all\n{")) == ("{", None)


@pytest.mark.parametrize(
    ("tools", "fields", "reason"),
    [
        (
            replace(OBJECT, function=('{"', Slot.NAME, '": ', Slot.ARGUMENTS, "}"), envelope=Envelope()),
            {},
            "the function's name is a key of the JSON",
        ),
        (
            replace(OBJECT, arguments=Arguments(codec=Codec(strings=Strings.PYTHON, containers=Containers.PYTHON))),
            {},
            "the arguments are not JSON, though the text around them is",
        ),
        (
            replace(
                OBJECT,
                function=('{"the name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
                envelope=Envelope(name_field=("the name",), args_field=("arguments",)),
            ),
            {},
            "a transform cannot name the JSON key 'the name'",
        ),
        (replace(LIST, call_start="<call>"), {}, "the list of calls has more than JSON in it"),
        (replace(LIST, section_end="</calls>"), {}, "the list of calls has more than JSON in it"),
        (replace(OBJECT, call_start="", call_end=""), {}, "there is no marker between two calls"),
        (
            replace(NAMED, call_start="", call_end="", separator="\n", function=(Slot.NAME, "\n", Slot.ARGUMENTS)),
            {},
            "nothing but its name tells a call from text",
        ),
        (replace(NAMED, call_start="$ "), {}, "nothing but its name tells a call from text"),
        (
            replace(NAMED, arguments=Arguments(codec=Codec(strings=Strings.PYTHON, containers=Containers.PYTHON))),
            {},
            "the arguments are .+, not JSON",
        ),
        (
            replace(TAGGED, arguments=Arguments(start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE), separator=", ")),
            {},
            "they are written as code",
        ),
        (
            replace(TAGGED, arguments=Arguments(entry=("\n", Slot.KEY, "=", Slot.VALUE, "\n"))),
            {},
            "there is only white space between two arguments",
        ),
    ],
)
def test_what_no_field_can_read_is_refused(tools: CallSyntax, fields: dict[str, Any], reason: str) -> None:
    """The error says why."""
    with pytest.raises(ExportError, match=f"tool calls: {reason}"):
        field(tools, **fields)


def test_content_after_calls_without_an_end_is_refused() -> None:
    """Nothing shows where it begins."""
    turn = replace(TURN, tools_first=True, tools_to_content="|||")

    with pytest.raises(ExportError, match="content follows them, and no marker of their own ends them"):
        calls_field(Format(turn=turn, tools=replace(NAMED, call_end="")))
    assert calls_field(Format(turn=replace(turn, tools_to_content=""), tools=replace(NAMED, call_end="")))
    assert calls_field(Format(turn=turn, tools=NAMED))


def test_what_is_between_calls_belongs_to_none() -> None:
    """Ends of sections and separators; text of two characters is common elsewhere."""
    sectioned = replace(NAMED, section_start="<calls>", section_end="</calls>", separator=" ;;; ")

    assert between_calls(Format(tools=sectioned)) == [r"\s*</calls>\s*", r"\s*;;;\s*"]
    assert between_calls(Format(tools=LIST)) == []
    assert between_calls(Format(tools=NAMED)) == []
    with pytest.raises(ExportError, match="';;' between calls cannot be told from text"):
        between_calls(Format(tools=replace(sectioned, separator=";;")))


def test_another_field_ends_where_a_call_begins() -> None:
    """It needs no name."""
    format = Format(turn=TURN, tools=NAMED)

    assert "?P<" not in calls_opener(format)
    assert re.match(calls_opener(format), "<fn=now>{")
    with pytest.raises(ExportError):
        calls_opener(Format(tools=replace(NAMED, call_start="$ ")))
