"""Calls that are a JSON object without a marker before it: what of the object must come first."""

from __future__ import annotations

import pytest
from properties.invariants import check

from unrender.format import CallSyntax, Envelope, Format, Slot, ToolMode
from unrender.messages.wire import Message, Request, Tool
from unrender.parser.streaming import Parser

REQUEST = Request(tools=(Tool(name="now"),))
NAME_FIRST = '{"name": "now", "arguments": {"a": 1}}'
NAME_LAST = '{"arguments": {"a": 1}, "name": "now"}'


def tools(*function: Slot | str) -> CallSyntax:
    envelope = Envelope(name_field=("name",), args_field=("arguments",))
    return CallSyntax(mode=ToolMode.JSON_NATIVE, function=function, envelope=envelope)


ARGUMENTS_FIRST = tools('{"arguments": ', Slot.ARGUMENTS, ', "name": "', Slot.NAME, '"}')
WITH_NAME_FIRST = tools('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")


def read(text: str, syntax: CallSyntax) -> Message:
    return check(lambda: Parser(Format(tools=syntax), REQUEST, ids=lambda *_: "id"), text)


@pytest.mark.parametrize("text", [NAME_FIRST, NAME_LAST, f"So.\n{NAME_LAST}"])
def test_arguments_may_come_first_where_the_format_writes_them_first(text: str) -> None:
    """The object is held until its name is known; then it is a call."""
    (call,) = read(text, ARGUMENTS_FIRST).tool_calls

    assert (call.name, call.arguments) == ("now", '{"a": 1}')


@pytest.mark.parametrize(
    "text", ['{"arguments": {"a": 1}}', '{"arguments": {"a": 1}, "b": 2}', '{"a": 1, "name": "now"}']
)
def test_an_object_that_names_no_tool_stays_content(text: str) -> None:
    """Whatever it began with, not one character is lost."""
    assert read(text, ARGUMENTS_FIRST) == Message(content=text)


def test_elsewhere_the_name_comes_first() -> None:
    """Where the format writes the name first, an object that begins otherwise is an answer in JSON."""
    assert read(NAME_LAST, WITH_NAME_FIRST) == Message(content=NAME_LAST)
    assert len(read(NAME_FIRST, WITH_NAME_FIRST).tool_calls) == 1
