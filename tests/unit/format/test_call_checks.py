"""One call syntax by itself: what could not be written and read back, by the paths of the fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unrender.format import Arguments, CallSyntax, Codec, Envelope, Part, Slot, Strings, ToolMode, Typing
from unrender.format.call_checks import check_tools, is_marked
from unrender.limits import MAX_ENVELOPE_DEPTH, MAX_INDEX

CALLS = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON, call_start="<call>", function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>")
)
BARE = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, "\n", Slot.ARGUMENTS), separator="\n")
OBJECT = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",)),
)
TAGGED = Arguments(
    entry=("<", Slot.KEY, ">", Slot.VALUE, "</>"), codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
)


def refused(tools: CallSyntax, **changes: Any) -> list[str]:
    """Return the paths of what is refused, without `tools.`."""
    return [where.removeprefix("tools.") for where, _ in check_tools(replace(tools, **changes), "tools")]


def test_syntaxes_that_can_be_read_are_allowed() -> None:
    """With and without markers, and none at all."""
    assert [refused(tools) for tools in (CALLS, BARE, OBJECT, CallSyntax())] == [[], [], [], []]


def test_where_there_are_no_calls_nothing_is_said_of_them() -> None:
    """And what is said is not looked at any further."""
    assert refused(CALLS, mode=ToolMode.NONE, index_start=-1) == ["mode"]


@pytest.mark.parametrize(("start", "ok"), [(0, True), (MAX_INDEX, True), (-1, False), (MAX_INDEX + 1, False)])
def test_the_number_of_the_first_call(start: int, ok: bool) -> None:
    """It is bounded."""
    assert refused(CALLS, index_start=start) == ([] if ok else ["index_start"])


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (("<fn=", Slot.NAME, ">", Slot.ARGUMENTS), []),
        (("<fn=", Slot.NAME, Slot.ARGUMENTS), []),
        (("<fn=", Slot.ID, ":", Slot.NAME, ">", Slot.ARGUMENTS), []),
        (("<fn=", Slot.NAME, ">", Slot.ANY, "|", Slot.ARGUMENTS), []),
        (("<fn=", Slot.NAME, ">"), ["function"]),
        (("<fn>", Slot.ARGUMENTS), ["function"]),
        (("<fn=", Slot.ARGUMENTS, ">", Slot.NAME, "|"), ["function"]),
        (("<fn=", Slot.ID, ":", Slot.NAME, ":", Slot.ID, ">", Slot.ARGUMENTS), ["function"]),
        (("<fn=", Slot.KEY, ":", Slot.NAME, ">", Slot.ARGUMENTS), ["function[1]"]),
        (("<fn=", Slot.ID, Slot.NAME, ">", Slot.ARGUMENTS), ["function[2]"]),
        (("<fn=", Slot.NAME, " ", Slot.ID, ">", Slot.ARGUMENTS), ["function[3]"]),
        (("<fn=", Slot.NAME, "with", Slot.ARGUMENTS), ["function[2]"]),
    ],
)
def test_the_parts_of_a_function(function: tuple[Part, ...], found: list[str]) -> None:
    """A name and then arguments, once each, with texts between slots that could not be told apart."""
    assert refused(CALLS, function=function) == found


@pytest.mark.parametrize(
    ("tools", "marked"),
    [
        (CALLS, True),
        (BARE, False),
        (OBJECT, True),
        (replace(BARE, call_start="<call>"), True),
        (replace(BARE, section_start="<calls>"), True),
        (replace(BARE, call_start="\n"), False),
        (replace(BARE, function=("f ", Slot.NAME, " ", Slot.ARGUMENTS)), True),
        (CallSyntax(), False),
    ],
)
def test_whether_a_marker_comes_before_the_name(tools: CallSyntax, marked: bool) -> None:
    """Or a bracket of JSON."""
    assert is_marked(tools) is marked


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS)}, ["function", "function"]),
        ({"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS), "separator": ";"}, ["function"]),
        ({"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS), "call_start": "<call>"}, []),
        ({"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS), "section_start": "<>"}, ["function"]),
        (
            {"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS), "section_start": "<>", "separator": ";"},
            [],
        ),
        (
            {"function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS), "section_start": "<>", "separator": ""},
            ["function"],
        ),
        (
            {
                "function": (Slot.INDEX, ":", Slot.NAME, "\n", Slot.ARGUMENTS),
                "section_start": "<>",
                "separator": "",
                "parallel": False,
            },
            [],
        ),
        ({"arguments": Arguments(when_empty="{}")}, []),
        ({"arguments": Arguments(when_empty='"{}"')}, []),
        ({"arguments": Arguments(when_empty="none")}, ["arguments.when_empty"]),
        ({"arguments": Arguments(when_empty="none"), "call_start": "<call>"}, []),
        ({"arguments": Arguments(when_empty=""), "call_start": "<call>"}, []),
        ({"arguments": Arguments(when_empty=""), "section_start": "<call>", "separator": ""}, ["separator"]),
        ({"arguments": Arguments(when_empty="!"), "section_start": "<call>", "separator": ""}, []),
        (
            {"arguments": Arguments(when_empty=""), "section_start": "<>", "separator": "", "parallel": False},
            [],
        ),
    ],
)
def test_what_shows_a_call(changes: dict[str, Any], found: list[str]) -> None:
    """Its marker, else its name, which comes first; and its arguments, or what is between two calls."""
    assert refused(BARE, **changes) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ["separator"]),
        ({"separator": ";"}, []),
        ({"call_end": ";"}, []),
        ({"call_start": ";"}, []),
        ({"parallel": False}, []),
        ({"arguments": replace(TAGGED, start="(", end=")")}, []),
        ({"arguments": replace(TAGGED, when_empty="()")}, []),
        ({"arguments": replace(TAGGED, when_empty="\n")}, ["separator"]),
    ],
)
def test_a_call_without_arguments_ends_before_the_next(changes: dict[str, Any], found: list[str]) -> None:
    """Where neither has a marker, something is between them."""
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        section_start="<calls>",
        section_end="</calls>",
        function=(Slot.NAME, Slot.ARGUMENTS),
        arguments=TAGGED,
    )

    assert refused(tools, **changes) == found


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((0, 2), []),
        ((0, 4), []),
        ((3, 4), []),
        (None, []),
        ((2, 2), ["id_parts"]),
        ((3, 2), ["id_parts"]),
        ((-1, 2), ["id_parts"]),
        ((0, 7), ["id_parts"]),
        ((0, 6), ["id_parts"]),
    ],
)
def test_the_parts_of_an_id(parts: tuple[int, int] | None, found: list[str]) -> None:
    """They are those of the function before its arguments, one at least."""
    function = ("functions.", Slot.NAME, ":", Slot.INDEX, "<args>", Slot.ARGUMENTS)

    assert refused(CALLS, function=function, id_parts=parts) == found


def test_an_id_has_one_place() -> None:
    """Where it has a slot of its own, it is not made up of others."""
    function = ("<fn=", Slot.NAME, ":", Slot.ID, "<args>", Slot.ARGUMENTS)

    assert refused(CALLS, function=function, id_parts=(0, 2)) == ["id_parts"]
    assert refused(OBJECT, id_parts=(0, 2)) == ["id_parts"]


@pytest.mark.parametrize(
    ("function", "fields", "found"),
    [
        (OBJECT.function, {"name_field": ("name",), "args_field": ("arguments",)}, []),
        (OBJECT.function, {"name_field": ("tool",), "args_field": ("arguments",)}, ["name_field"]),
        (OBJECT.function, {"name_field": ("name",)}, ["args_field"]),
        (OBJECT.function, {"name_field": ("name",), "args_field": ("arguments",), "id_field": ("id",)}, ["id_field"]),
        (OBJECT.function, {"name_field": ("name",), "args_field": ("arguments",), "array_wrapped": True}, ["array_wrapped"]),
        (('{"', Slot.NAME, '": ', Slot.ARGUMENTS, "}"), {}, []),
        (
            ('{"id": "', Slot.ID, '", "f": {"name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}}"),
            {"name_field": ("f", "name"), "args_field": ("f", "with"), "id_field": ("id",)},
            [],
        ),
        (
            ('{"n": ', Slot.INDEX, ', "name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}"),
            {"name_field": ("name",), "args_field": ("with",), "gen_id_field": ("n",)},
            [],
        ),
        (
            ('{"n": "', Slot.INDEX, '", "name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}"),
            {"name_field": ("name",), "args_field": ("with",), "gen_id_field": ("n",)},
            [],
        ),
        (
            ('{"why": "', Slot.ANY, '", "name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}"),
            {"name_field": ("name",), "args_field": ("with",)},
            [],
        ),
    ],
)  # fmt: skip
def test_where_an_object_has_its_fields(function: tuple[Part, ...], fields: dict[str, Any], found: list[str]) -> None:
    """The envelope says what the function shows."""
    assert refused(OBJECT, function=function, envelope=Envelope(**fields)) == [f"envelope.{name}" for name in found]


@pytest.mark.parametrize(
    "function",
    [
        ('{"name": ', Slot.NAME, ', "arguments": ', Slot.ARGUMENTS, "}"),
        ('["', Slot.NAME, '", ', Slot.ARGUMENTS, "]"),
        ('{"name": "', Slot.NAME, '", "name": ', Slot.ARGUMENTS, "}"),
        ('{"": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
        ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS),
        ('{"name": ' * 4000 + '"', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    ],
)
def test_the_parts_make_up_one_object(function: tuple[Part, ...]) -> None:
    """Whose keys are words, each once."""
    assert refused(OBJECT, function=function)[-1] == "function"


def test_only_objects_have_an_envelope() -> None:
    """And all of them have one."""
    assert refused(OBJECT, envelope=None) == ["envelope"]
    assert refused(CALLS, envelope=Envelope()) == ["envelope"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"section_start": "<calls>[", "section_end": "]"}, []),
        ({"section_start": "<calls>[\n", "section_end": "]"}, []),
        ({"call_start": "<call>[", "call_end": "]"}, []),
        ({"section_start": "<calls>", "section_end": "]"}, ["envelope.array_wrapped"]),
    ],
)
def test_a_bracket_opens_a_list_of_calls(changes: dict[str, str], found: list[str]) -> None:
    """Before all of them, or before each."""
    listed = replace(OBJECT.envelope or Envelope(), array_wrapped=True)

    assert refused(OBJECT, envelope=listed, **changes) == found


def test_paths_are_bounded() -> None:
    """A longer one is named, and that the function shows another."""
    for size, found in ((MAX_ENVELOPE_DEPTH, 1), (MAX_ENVELOPE_DEPTH + 1, 2)):
        fields = replace(OBJECT.envelope or Envelope(), name_field=("a",) * size)
        assert refused(OBJECT, envelope=fields) == ["envelope.name_field"] * found
