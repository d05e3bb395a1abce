"""Fields of a question, each checked."""

from __future__ import annotations

import pytest

from unrender.errors import FormatError, TemplateError
from unrender.format import Format
from unrender.limits import LONGEST_PLAYGROUND_TEXT
from unrender.playground.asked import (
    BadQuestion,
    choices,
    conversation,
    field,
    format_of,
    settings,
    template_of,
    turn_of,
)

HELLO = [{"role": "user", "content": "Hello"}]
SOURCE = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"


@pytest.mark.parametrize(
    ("value", "kind", "default", "found"),
    [
        ("a", str, "", "a"),
        ("", str, "b", ""),
        (None, str, "b", "b"),
        (7, int, 1, 7),
        (0, int, 1, 0),
        (False, bool, True, False),
        ([1], list, [], [1]),
        ({"a": 1}, dict, {}, {"a": 1}),
        ("x" * LONGEST_PLAYGROUND_TEXT, str, "", "x" * LONGEST_PLAYGROUND_TEXT),
    ],
    ids=str,
)
def test_a_field_has_its_value(value, kind, default, found):
    """What is sent is taken, even if it is empty; null is taken for nothing."""
    assert field({"a": value}, "a", kind, default) == found


def test_a_field_that_is_left_out():
    """It has its default."""
    assert field({}, "a", int, 7) == 7


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (7, str, "a: expected a text, found 7"),
        ("7", int, "a: expected a whole number, found '7'"),
        (True, int, "a: expected a whole number, found True"),
        (1.5, int, "a: expected a whole number, found 1.5"),
        (1, bool, "a: expected true or false, found 1"),
        ({}, list, "a: expected a list, found {}"),
        ([], dict, r"a: expected an object, found \[\]"),
        ("x" * (LONGEST_PLAYGROUND_TEXT + 1), str, "a: expected at most 1000000 characters, found 1000001"),
        (["x" * 200], str, r"a: expected a text, found \['x{78}$"),
    ],
    ids=["number", "text", "true", "half", "one", "object", "list", "long", "quoted"],
)
def test_a_field_of_another_kind(value, kind, message):
    """The field is named, and what was found there, shortened."""
    with pytest.raises(BadQuestion, match=message):
        field({"a": value}, "a", kind, kind())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, {"tools": None}),
        ({"tools": []}, {"tools": None}),
        ({"tools": [1]}, {"tools": [1]}),
        ({"thinking": "on"}, {"tools": None, "enable_thinking": True}),
        ({"thinking": "off"}, {"tools": None, "enable_thinking": False}),
        ({"thinking": ""}, {"tools": None}),
    ],
)
def test_settings(data, expected):
    """No tools are none; the switch sets the template's variable, or leaves it alone."""
    assert settings(data) == expected


def test_a_switch_has_three_positions():
    """Any other is refused."""
    with pytest.raises(BadQuestion, match="^thinking: expected one of '', 'on', 'off', found 'yes'$"):
        settings({"thinking": "yes"})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, {"parallel_tool_calls": True}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"tool_choice": None}, {"parallel_tool_calls": True}),
        ({"tool_choice": "none"}, {"parallel_tool_calls": True, "tool_choice": "none"}),
        ({"response_format": {"a": 1}}, {"parallel_tool_calls": True, "response_format": {"a": 1}}),
    ],
)
def test_choices(data, expected):
    """What is not chosen is left to `prepare`."""
    assert choices(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [({}, HELLO), ({"messages": []}, HELLO), ({"messages": [{"role": "x"}]}, [{"role": "x"}])]
)
def test_a_conversation_has_a_question(data, expected):
    """An empty one is a single question."""
    assert conversation(data) == expected


def test_a_template_has_its_tokens():
    """Source and tokens are the template's, and the same question has the same template."""
    data = {"source": SOURCE, "bos_token": "<s>", "eos_token": "</s>"}
    template, turn = turn_of(data)

    assert turn.prompt == "<s>Hello</s>"
    assert template_of(data) is template
    assert template_of({**data, "eos_token": ""}) is not template


@pytest.mark.parametrize("name", ["source", "bos_token", "eos_token"])
def test_a_template_is_text(name):
    """Each of its texts is checked."""
    with pytest.raises(BadQuestion, match=f"^{name}: expected a text, found 7$"):
        template_of({"source": SOURCE, name: 7})


def test_a_broken_template():
    """What is wrong with it is the library's to say."""
    with pytest.raises(TemplateError, match="unexpected 'end of template'"):
        template_of({"source": "{% if"})


def test_a_format_is_given_or_derived():
    """A format that is given is taken without a template."""
    assert format_of({"format": Format().to_dict()}) == Format()
    assert format_of({"format": {}, "source": SOURCE}) == template_of({"source": SOURCE}).format
    with pytest.raises(FormatError):
        format_of({"format": {"nothing": 1}})
