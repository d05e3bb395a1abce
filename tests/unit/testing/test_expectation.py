"""Expectations as Python source."""

from __future__ import annotations

import pytest

from unrender import Message, ToolCall
from unrender.testing import broken_call, call
from unrender.testing.chat import source_of, source_of_message


def message(**parts):
    return source_of_message(Message(**parts))


def tool_call(name, arguments, status="complete"):
    return ToolCall(name=name, arguments_json=arguments, id="1", status=status)


def test_equal_expectations_do_not_differ():
    """The order and the layout of arguments are ignored."""
    expected = source_of(content="Hi", tool_calls=[call("f", a=1, b={"d": 1, "c": 2})])

    assert expected == message(content="Hi", tool_calls=(tool_call("f", '{ "b":{"c": 2, "d": 1},  "a":1}'),))


@pytest.mark.parametrize(
    ("wanted", "value"), [*((2, value) for value in ("1", "1.0", "true", '"1"', "[1]", "null")), (1, "true")]
)
def test_types_of_arguments_count(wanted, value):
    """Types of arguments are compared, even if Python treats the values as equal."""
    expected = source_of(tool_calls=[call("f", a=wanted)])

    assert expected != message(tool_calls=(tool_call("f", '{"a": ' + value + "}"),))


def test_white_space_counts():
    """Line breaks are visible, and are compared."""
    assert source_of(content="Hi\n") == r".expect(content='Hi\n')" != message(content="Hi")


def test_a_broken_call_is_compared_as_text():
    """A failed call is compared as text, and differs from a complete call."""
    found = message(failed_calls=(tool_call("f", '{"a": "b', "truncated"),))

    assert source_of(failed_calls=[broken_call("f", '{"a": "b')]) == found
    assert source_of(tool_calls=[call("f", a="b")]) != found


@pytest.mark.parametrize(
    "expectation",
    [
        {"content": "only content"},
        {},
        {"reasoning": "a\nb", "content": "it's", "tool_calls": [call("f", city="Paris", days=[1, None, True])]},
        {"tool_calls": [call("f", {"not-a-name": 1}), call("h")], "failed_calls": [broken_call("g", '{"a')]},
        {"tool_calls": [call("f", {"class": 1})]},
        {"failed_calls": [broken_call("g", "{]", status="invalid")]},
    ],
)
def test_the_source_makes_the_same_expectation(expectation):
    """A printed expectation can be pasted into a test."""

    class Case:
        def expect(self, **expected):
            return expected

    made = eval("case" + source_of(**expectation), {"case": Case(), "call": call, "broken_call": broken_call})

    assert made == expectation
