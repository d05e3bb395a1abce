"""A call that is spelled as the format spells it is read at once, to the same end as character by character."""

from __future__ import annotations

import pytest

from unrender.format import CallSyntax, Envelope, Format, Slot, ToolMode
from unrender.machine import envelope
from unrender.machine.envelope import ReadEnvelope
from unrender.machine.events import ArgumentsText
from unrender.machine.ids import numbered_id
from unrender.machine.policy import CallRelease, Policy
from unrender.machine.spelled import spelling_of
from unrender.messages.wire import Request, Tool
from unrender.nodes import Role
from unrender.parser.streaming import Parser

FLAT = ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")
NESTED = ('{"function": {\n "a b": "', Slot.NAME, '", "with": "', Slot.ARGUMENTS, '"}}')
FIELDS = Envelope(name_field=("name",), args_field=("arguments",))
INNER = Envelope(name_field=("function", "a b"), args_field=("function", "with"))


def syntax(function=FLAT, fields=FIELDS):
    return CallSyntax(
        mode=ToolMode.JSON_NATIVE, call_start="<call>", call_end="</call>", function=function, envelope=fields
    )


def read(text, chunks, tools, made=None):
    parser = Parser(Format(tools=made or syntax()), Request(tools=tools), begun="", ids=numbered_id)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    assert sum(span.end - span.start for span in parser.spans) == len(text)
    return parser.message, parser.spans


NAMES = ["now", "no_such", "", "a\\nb", "é"]
WRITTEN = [
    '{"name": "NAME", "arguments": {"a": 1}}',
    '{"name": "NAME", "arguments": "{}"}',
    '{"name": "NAME", "arguments": 3}',
    '{"name": "NAME", "arguments": ',
    '{"name": "NAME", "arguments":  {}}',
    '{"name":"NAME", "arguments": {}}',
    '{"name": 5, "arguments": {}, "x": "NAME"}',
    '{"name": \'NAME\', "arguments": {}}',
    ', "arguments": {"name": NAME',
    '{"name": "NAME", "x": 1, "abcd": 2, "arguments": {"a": 1}}',
]


@pytest.mark.parametrize("offered", [None, "now"])
@pytest.mark.parametrize("written", WRITTEN)
def test_what_is_spelled_so_is_read_as_it_is_character_by_character(written, offered):
    """Message and spans are the same, for known and unknown tools and the longest names, and with white space of its own."""
    tools = None if offered is None else (Tool(name=offered),)
    for name in NAMES:
        call = written.replace("NAME", name)
        for text in (f"Hi <call>{call}</call> so", f"<call>{call}"):
            assert read(text, [text], tools) == read(text, text, tools)


@pytest.mark.parametrize("size", [1197, 1198, 1199])
def test_the_longest_names_are_those_of_single_steps(size):
    """A name that is too long is one at once as well."""
    text = '<call>{"name": "NAME", "arguments": {}}</call>'.replace("NAME", "n" * size)
    assert read(text, [text], None) == read(text, [text[:20], text[20:]], None)


@pytest.mark.parametrize("rest", ['{"a": 1}}}', '{"a": 1}, "input": {}}}', '{"a": 1}', '"{}"}}'])
def test_what_encloses_both_is_closed_after_them(rest):
    """As it is character by character."""
    nested = syntax(
        ('{"function": {"name": "', Slot.NAME, '", "input": ', Slot.ARGUMENTS, "}}"),
        Envelope(name_field=("function", "name"), args_field=("function", "input")),
    )
    text = f'<call>{{"function": {{"name": "now", "input": {rest}</call> so'

    assert read(text, [text], None, nested) == read(text, text, None, nested)


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        ('{"name": "now", "arguments": {"a": ', True),
        ('{"name": "now", "arguments": "{', True),
        ('{"name":"now", "arguments": {', False),
        ('{"name": "now","arguments": {', False),
        ('{"name": "n\\u006fw", "arguments": {', False),
    ],
)
def test_what_is_spelled_so_needs_no_single_steps(text, at_once, monkeypatch):
    """Up to its arguments."""
    monkeypatch.setattr(envelope, "_STEPS", {4: ReadEnvelope._scan})
    parser = Parser(
        Format(tools=syntax()), Request(tools=(Tool(name="now"),)), policy=Policy(calls=CallRelease.WRITTEN)
    )
    if at_once:
        assert any(isinstance(event, ArgumentsText) for event in parser.feed("\\ <call>" + text))
        return
    with pytest.raises(KeyError):
        parser.feed("<call>" + text)


def test_only_what_encloses_both_may_be_before_the_name():
    """Keys in between, and names that are keys, are left to the single steps."""
    spelled = spelling_of(syntax())
    assert spelled is not None
    assert (spelled.before, spelled.after) == ('{"name": ', ', "arguments": ')
    nested = spelling_of(syntax(NESTED, INNER))
    assert nested is not None
    assert (nested.before, nested.after) == ('{"function": {\n "a b": ', ', "with": ')
    assert [size for role, size in nested.pieces_before if role is Role.LAYOUT] == [1, 2, 1]
    others = [
        (('{"', Slot.NAME, '": ', Slot.ARGUMENTS, "}"), Envelope()),
        (('{"id": "', Slot.ID, '", "name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"type": "x", "name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"arguments": ', Slot.ARGUMENTS, ', "name": "', Slot.NAME, '"}'), FIELDS),
        (('{"n": 1, "name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"name": "functions.', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"name": "', Slot.NAME, '.v2", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"name": "', Slot.NAME, '", "n": 1, "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"name": "', Slot.NAME, '", "with": ', Slot.ARGUMENTS, "}"), FIELDS),
        (('{"tool": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"), FIELDS),
    ]
    assert [spelling_of(syntax(function, fields)) for function, fields in others] == [None] * len(others)
    assert spelling_of(syntax(fields=None)) is None
    assert spelling_of(syntax(('{"name": "', Slot.ID, '", "arguments": ', Slot.ARGUMENTS, "}"))) is None
