"""Fields of a call's JSON object that the format does not know: arguments, a loss that is reported, or nothing."""

from __future__ import annotations

import pytest
from splitting import fed, splits

from unrender.format import CallSyntax, Envelope, Format, Slot, ToolMode
from unrender.machine.envelope import known_fields
from unrender.machine.events import Malformed
from unrender.machine.ids import numbered_id
from unrender.messages.wire import CallStatus, Message, Request, Tool
from unrender.parser.streaming import Parser

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "type": {"type": "string"}}}
TOOLS = (Tool(name="now", parameters=CITY),)
FLAT = Envelope(name_field=("name",), args_field=("arguments",))
FUNCTION = ('{"kind": {"a": 1}, "name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")


def syntax(*, whole: bool = False) -> CallSyntax:
    return CallSyntax(
        mode=ToolMode.JSON_NATIVE,
        call_start="<call>",
        call_end="</call>",
        function=FUNCTION,
        envelope=FLAT,
        whole=whole,
        why="a test" if whole else "",
    )


def read(fields: str, *, tools: tuple[Tool, ...] | None = TOOLS, whole: bool = False) -> tuple[Message, list[str]]:
    """Return the message, and what was reported as `text: expected`; the same at every chunking."""
    text = f"Hi<call>{{{fields}}}</call>"
    readings = []
    for chunks in [[text], *splits(text)]:
        parser = Parser(Format(tools=syntax(whole=whole)), Request(tools=tools), begun="", ids=numbered_id)
        events = fed(parser, chunks)
        found = [(event.text, event.position, event.expected) for event in events if isinstance(event, Malformed)]
        readings.append((parser.message, found))
    assert all(reading == readings[0] for reading in readings)
    message, found = readings[0]
    return message, [f"{text}: {expected}" for text, _, expected in found]


@pytest.mark.parametrize(
    ("fields", "arguments", "reported"),
    [
        ('"name": "now", "args": {"city": "Rome"}', '{"city": "Rome"}', ["args: 'arguments'"]),
        ('"input": {"city": "Rome"}, "name": "now"', '{"city": "Rome"}', ["input: 'arguments'"]),
        ('"name": "now", "argumnts": "{\\"city\\": \\"Rome\\"}"', '{"city": "Rome"}', ["argumnts: 'arguments'"]),
        ('"name": "now", "arguments": null, "args": {"city": "Rome"}', '{"city": "Rome"}', ["args: 'arguments'"]),
        ('"name": "now", "args": {"a": 1, "a": 2}', '{"a": 1, "a": 2}', ["args: 'arguments'", "a: another argument"]),
        ('"name": "now", "args": {"a": 1}, "why": 1', '{"a": 1}', ["args: 'arguments'", "why: another field"]),
        ('"args": {"city": "Rome"}, "name": "now", "arguments": {}', "{}", ["args: another field"]),
        ('"name": "now", "arguments": {}, "args": "{\\"city\\": \\"Rome\\"}"', "{}", ["args: another field"]),
        ('"name": "now", "arguments": {}, "city": "Rome"', "{}", ["city: another field"]),
        ('"name": "now", "arguments": {}, "why": [1], "type": "function"', "{}", ["why: another field"]),
        ('"id": 7, "name": "now", "index": 0, "kind": {"a": 1}', "{}", []),
    ],
)
def test_what_is_read_beside_the_name(fields: str, arguments: str, reported: list[str]) -> None:
    """Arguments under another name are taken where there are none; beside them, all is reported but metadata."""
    message, found = read(fields)

    assert (message.content, [(call.status, call.arguments) for call in message.tool_calls], found) == (
        "Hi",
        [(CallStatus.COMPLETE, arguments)],
        reported,
    )


@pytest.mark.parametrize(
    "fields",
    [
        '"name": "now", "args": {"a": 1}, "input": {"b": 2}',
        '"name": "now", "args": {"a": 1}, "args": {"b": 2}',
        '"name": "now", "city": "Rome"',
        '"name": "now", "city": {"city": "Rome"}',
        '"name": "now", "type": "Rome"',
        '"name": "now", "args": {"a": 1}, "city": "Rome"',
        '"name": "now", "ctiy": "Rome"',
        '"name": "now", "args": ["Rome"]',
        '"name": "now", "arguments": 5',
        '"name": "now", "arguments": ["Rome"]',
        '"name": "now", "arguments": "Rome"',
        '"name": "now", "arguments": \'Rome\'',
        '"name": "now", "arguments": nullify',
    ],
)
def test_what_cannot_be_read_for_sure(fields: str) -> None:
    """The call is dead, and all of its text is content."""
    message, found = read(fields)

    assert [call.status for call in message.dead_calls] == [CallStatus.INVALID]
    assert message.content == f"Hi<call>{{{fields}}}</call>"
    assert found


def test_a_call_that_counts_only_when_well_formed_has_no_other_fields() -> None:
    """Where the format wants a call to be whole, another name for its arguments makes it text."""
    message, _ = read('"name": "now", "args": {"city": "Rome"}', whole=True)

    assert (message.tool_calls, message.content) == ((), 'Hi<call>{"name": "now", "args": {"city": "Rome"}}</call>')


def test_any_field_may_be_an_argument_of_a_tool_that_nobody_knows() -> None:
    """Without tools no schema says what it is; one object is the arguments."""
    flat, _ = read('"name": "any", "city": "Rome"', tools=None)
    taken, found = read('"name": "any", "city": {"a": 1}', tools=None)

    assert [call.status for call in flat.dead_calls] == [CallStatus.INVALID]
    assert [(call.arguments, found) for call in taken.tool_calls] == [('{"a": 1}', ["city: 'arguments'"])]


def test_the_fields_that_a_format_writes_are_known() -> None:
    """Those of name and arguments are not among them: elsewhere they are fields like any other."""
    assert known_fields(syntax(), FLAT) == {"kind", "a"}
