"""Expectations as Python source."""

from __future__ import annotations

from cases import cases

from unrender import Message, ToolCall
from unrender.testing import broken_call, call
from unrender.testing.chat import source_of, source_of_message


def broken(name, arguments, status="truncated"):
    return broken_call(name, arguments, status=status)


def expectation(parts):
    """Return arguments of `expect`. Calls are the arguments of `call` and `broken_call`."""
    calls = {"tool_calls": call, "failed_calls": broken}
    return {name: [calls[name](*one) for one in it] if name in calls else it for name, it in parts.items()}


def message(parts):
    """Return a message. Calls are a name, JSON and a status."""
    calls = {
        name: tuple(
            ToolCall(name=tool, arguments_json=text, id="1", status=status) for tool, text, status in parts[name]
        )
        for name in ("tool_calls", "failed_calls")
        if name in parts
    }
    return Message(**parts | calls)


@cases
def test_expectations_are_compared_with_messages(why, expected, parts, equal):
    """An expectation and a message are equal if their sources are."""
    assert (source_of(**expectation(expected)) == source_of_message(message(parts))) is equal, why


def test_white_space_is_shown():
    """Line breaks are visible."""
    assert source_of(content="Hi\n") == r".expect(content='Hi\n')"


@cases
def test_the_source_makes_the_same_expectation(parts):
    """A printed expectation can be pasted into a test."""

    class Case:
        def expect(self, **expected):
            return expected

    given = expectation(parts)

    assert eval("case" + source_of(**given), {"case": Case(), "call": call, "broken_call": broken_call}) == given
