"""The arguments of a call, read in the code that is compiled for their syntax."""

from __future__ import annotations

from dataclasses import replace

import pytest
from properties.invariants import check

from unrender.format import Arguments, CallSyntax, Codec, Containers, Format, Slot, Strings, ToolMode, Typing, Words
from unrender.messages import Request, Tool
from unrender.parsing.parser import Parser

REQUEST = Request(tools=(Tool(name="now"),))
OBJECT = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON, function=("<call>", Slot.NAME, " ", Slot.ARGUMENTS), call_end="</call>"
)
PYTHON = Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON)
RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
ENTRIES = replace(
    OBJECT,
    mode=ToolMode.TAG_WITH_TAGGED,
    arguments=Arguments(entry=("<", Slot.KEY, ">\n", Slot.VALUE, "\n</>"), codec=RAW),
)


def arguments_of(syntax: CallSyntax, text: str) -> list[str]:
    """Return the arguments of all calls that `text` makes, at every chunking."""
    return [call.arguments for call in check(lambda: Parser(Format(tools=syntax), REQUEST), text).tool_calls]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<call>now {"a": true}</call>', ['{"a": true}']),
        ('<call>now ```json\n{"a": 1}\n```</call>', ['{"a": 1}']),
        ("<call>now {a: 1}</call>", ['{"a": 1}']),
    ],
)
def test_one_object(text: str, arguments: list[str]) -> None:
    """White space, a fence and keys without quotes are read."""
    assert arguments_of(OBJECT, text) == arguments


def test_a_call_that_must_be_whole_is_read_strictly() -> None:
    """Its JSON is JSON; an object in another notation is read in that one."""
    whole = replace(OBJECT, whole=True)

    assert arguments_of(whole, '<call>now {"a": true}</call>') == ['{"a": true}']
    assert arguments_of(whole, "<call>now {a: true}</call>") == []
    assert arguments_of(replace(whole, arguments=Arguments(codec=PYTHON)), "<call>now {'a': True}</call>") == [
        '{"a": true}'
    ]


def test_what_stands_for_no_arguments() -> None:
    """A text of its own, or an object all the same."""
    syntax = replace(OBJECT, arguments=Arguments(when_empty="none"))

    assert arguments_of(syntax, "<call>now none</call>") == ["{}"]
    assert arguments_of(syntax, '<call>now {"a": 1}</call>') == ['{"a": 1}']


def test_white_space_beside_a_raw_value_is_taken_exactly() -> None:
    """The line breaks that the format writes are layout, any others belong to the value."""
    assert arguments_of(ENTRIES, "<call>now <a>\n\n x \n\n</></call>") == ['{"a": "\\n x \\n"}']


def test_a_value_ends_at_all_closers_together() -> None:
    """Where the argument's own end is missing, the function's and the call's end it."""
    syntax = replace(ENTRIES, function=("<call>", Slot.NAME, " ", Slot.ARGUMENTS, "</f>"))

    assert arguments_of(syntax, "<call>now <a>\nx</f></call>") == ['{"a": "x"}']
    assert arguments_of(syntax, "<call>now <a>\nx</f>y\n</></f></call>") == ['{"a": "x</f>y"}']
