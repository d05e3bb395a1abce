"""The arguments of a call, read in the code that is compiled for their syntax."""

from __future__ import annotations

from dataclasses import replace

import pytest
from properties.invariants import check

from unrender.format import Arguments, CallSyntax, Codec, Containers, Format, Slot, Strings, ToolMode, Typing, Words
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser

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


def test_arguments_that_are_left_out_are_known_by_what_they_begin_with() -> None:
    """Where nothing stands for none, the beginning of the first one shows that there are some."""
    syntax = replace(ENTRIES, arguments=replace(ENTRIES.arguments, when_empty=""))

    assert arguments_of(syntax, "<call>now <a>\n1\n</></call><call>now </call>") == ['{"a": 1}', "{}"]
    whole = replace(OBJECT, arguments=Arguments(when_empty=""))
    assert arguments_of(whole, '<call>now {"a": 1}</call><call>now </call>') == ['{"a": 1}', "{}"]


def test_white_space_beside_a_raw_value_is_taken_exactly() -> None:
    """The line breaks that the format writes are layout, any others belong to the value."""
    assert arguments_of(ENTRIES, "<call>now <a>\n\n x \n\n</></call>") == ['{"a": "\\n x \\n"}']


def test_white_space_before_a_slot_is_flexible() -> None:
    """Where the format writes some: as much of it as a model likes."""
    types = (("string", "s"), *((kind, "o") for kind in ("number", "boolean", "null", "object", "array")))
    codec = Codec(strings=Strings.RAW, typed_by=Typing.ATTRIBUTE, types=types)
    entry = ("<", Slot.KEY, " is a ", Slot.TYPE, ">", Slot.VALUE, "</>")
    syntax = replace(ENTRIES, arguments=Arguments(entry=entry, codec=codec))

    for text in ("<a is a s>1</>", "<a is  a   s>1</>", "<a\nis a\ns>1</>"):
        assert arguments_of(syntax, f"<call>now {text}</call>") == ['{"a": "1"}']


def test_a_name_after_the_value_is_in_what_ends_it() -> None:
    """Another closing tag is text of a raw value; items and fields in tags are read, whatever notation strings have."""
    raw = replace(
        OBJECT,
        mode=ToolMode.TAG_WITH_TAGGED,
        arguments=Arguments(entry=("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">"), codec=RAW),
    )
    tags = Codec(containers=Containers.XML, item_tag="i")

    assert arguments_of(raw, "<call>now <a>x</b>y</a></call>") == ['{"a": "x</b>y"}']
    assert arguments_of(
        replace(raw, arguments=replace(raw.arguments, codec=tags)), "<call>now <a><i>1</i></a></call>"
    ) == ['{"a": [1]}']


def test_layout_before_a_tag_that_closes_is_not_in_the_value() -> None:
    """As much of it as the format writes."""
    entry = ("<", Slot.KEY, ">\n", Slot.VALUE, "\n</", Slot.KEY, ">")
    syntax = replace(ENTRIES, arguments=Arguments(entry=entry, codec=RAW))

    assert arguments_of(syntax, "<call>now <a>\nx\n</a></call>") == ['{"a": "x"}']
    assert arguments_of(syntax, "<call>now <a>\nx\n\n</a></call>") == ['{"a": "x\\n"}']
    assert arguments_of(syntax, "<call>now <a>\nx</a></call>") == ['{"a": "x"}']


def test_a_value_ends_at_all_closers_together() -> None:
    """Where the argument's own end is missing, the function's and the call's end it."""
    syntax = replace(ENTRIES, function=("<call>", Slot.NAME, " ", Slot.ARGUMENTS, "</f>"))

    assert arguments_of(syntax, "<call>now <a>\nx</f></call>") == ['{"a": "x"}']
    assert arguments_of(syntax, "<call>now <a>\nx</f>y\n</></f></call>") == ['{"a": "x</f>y"}']
