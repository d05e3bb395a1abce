"""Expectations: compared exactly, and written as Python."""

from __future__ import annotations

import pytest

from unrender import Message, ToolCall
from unrender.testing import broken_call, call
from unrender.testing.chat import Expectation


def message(**parts):
    return Expectation.of(Message(**parts))


def tool_call(name, arguments, status="complete"):
    return ToolCall(name=name, arguments_json=arguments, id="1", status=status)


def test_equal_expectations_do_not_differ():
    """Values count, not the order or the layout of arguments."""
    expected = Expectation(content="Hi", tool_calls=[call("f", a=1, b="x")])

    found = message(content="Hi", tool_calls=(tool_call("f", '{ "b":"x",  "a":1}'),))

    assert expected.differences(found) == []


@pytest.mark.parametrize(
    ("wanted", "value"), [*((2, value) for value in ("1", "1.0", "true", '"1"', "[1]", "null")), (1, "true")]
)
def test_types_of_arguments_count(wanted, value):
    """A number is neither its text nor true, also where Python takes them for equal."""
    expected = Expectation(tool_calls=[call("f", a=wanted)])

    assert expected.differences(message(tool_calls=(tool_call("f", '{"a": ' + value + "}"),)))


def test_the_difference_shows_white_space():
    """Expected and found are below each other, with line breaks visible."""
    lines = Expectation(content="Hi\n").differences(message(content="Hi"))

    assert lines[0] == "content"
    assert "  - 'Hi\\n'" in lines
    assert "  + 'Hi'" in lines


def test_a_broken_call_is_compared_as_text():
    """A call that was cut off keeps its text, and is not a complete call."""
    found = message(failed_calls=(tool_call("f", '{"a": "b', "truncated"),))

    assert Expectation(failed_calls=[broken_call("f", '{"a": "b')]).differences(found) == []
    assert Expectation(tool_calls=[call("f", a="b")]).differences(found)


@pytest.mark.parametrize(
    "expectation",
    [
        Expectation(content="only content"),
        Expectation(),
        Expectation(reasoning="a\nb", content="it's", tool_calls=[call("f", city="Paris", days=[1, None, True])]),
        Expectation(tool_calls=[call("f", {"not-a-name": 1}), call("h")], failed_calls=[broken_call("g", '{"a')]),
        Expectation(failed_calls=[broken_call("g", "{]", status="invalid")]),
    ],
)
def test_the_source_makes_the_same_expectation(expectation):
    """A printed expectation can be pasted into a test and then means the same."""

    class Case:
        def expect(self, **expected):
            return Expectation(**expected)

    made = eval("case" + expectation.source(), {"case": Case(), "call": call, "broken_call": broken_call})

    assert made.differences(expectation) == []
