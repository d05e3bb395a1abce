"""Where one argument, or one call, ends and the next begins: separators in pieces, names that nothing follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from properties.families import PYTHON_CALLS
from properties.invariants import check

from unrender.errors import FormatError
from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    Typing,
)
from unrender.messages.wire import Message, Request, Tool
from unrender.parser.streaming import Parser

REQUEST = Request(tools=(Tool(name="now"), Tool(name="nowhere")))
ARGUMENTS = Arguments(
    entry=("<key>", Slot.KEY, "<val>", Slot.VALUE, "</val>"), codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
)
TAGGED = CallSyntax(mode=ToolMode.TAG_WITH_TAGGED, function=("<call>", Slot.NAME, Slot.ARGUMENTS), arguments=ARGUMENTS)


def read(text: str, tools: CallSyntax, reasoning: Reasoning | None = None) -> Message:
    format = Format(tools=tools, reasoning=reasoning or Reasoning())
    return check(lambda: Parser(format, REQUEST), text)


def calls(text: str, tools: CallSyntax) -> list[tuple[str, str, str]]:
    return [(call.name, call.arguments, str(call.status)) for call in read(text, tools).tool_calls]


def test_a_separator_of_several_characters_may_come_in_pieces() -> None:
    """Between two arguments its first characters are waited for, not refused."""
    tools = replace(TAGGED, call_end="</call>", arguments=replace(ARGUMENTS, separator="\n|and|\n"))

    found = calls("<call>now<key>a<val>1</val>\n|and|\n<key>b<val>2</val></call>", tools)

    assert found == [("now", '{"a": 1, "b": 2}', "complete")]


def test_a_call_that_nothing_ends_is_ended_by_the_next() -> None:
    """The first literal of a call ends the arguments of the call before it, whether it has any or none."""
    tools = replace(TAGGED, section_start="<calls>", section_end="</calls>")

    text = "<calls><call>now<key>a<val>1</val><call>nowhere<call>now<key>b<val>x</val></calls>"
    found = calls(text, tools)

    assert found == [("now", '{"a": 1}', "complete"), ("nowhere", "{}", "complete"), ("now", '{"b": "x"}', "complete")]


def test_a_name_ends_where_a_call_without_arguments_is_closed() -> None:
    """The end of the calls is right after the name."""
    tools = replace(TAGGED, section_start="<calls>", section_end="end.")

    assert calls("<calls><call>nowend.", tools) == [("now", "{}", "complete")]


def test_a_closer_that_begins_like_the_opener_is_not_the_opener_again() -> None:
    """Models repeat an opener that the prompt has written; an empty thought closes at once."""
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think", end="<think/>")

    assert read("<think<think/>Hi", CallSyntax(), reasoning) == Message(content="Hi")
    assert read("<think<think So.<think/>Hi", CallSyntax(), reasoning).content == "Hi"


@pytest.mark.parametrize(
    ("function", "arguments", "field"),
    [
        ((Slot.INDEX, ":", Slot.NAME, Slot.ARGUMENTS), ARGUMENTS, "format.tools.function"),
        ((Slot.NAME, Slot.ARGUMENTS), Arguments(when_empty=""), "format.tools.arguments.when_empty"),
        ((Slot.NAME, Slot.ARGUMENTS), ARGUMENTS, "format.tools.separator"),
        (
            ("<f>", Slot.NAME, Slot.ARGUMENTS, "|end"),
            replace(ARGUMENTS, separator="\n|\n"),
            "format.tools.arguments.separator",
        ),
    ],
)
def test_calls_that_nothing_shows_are_refused(
    function: tuple[Slot | str, ...], arguments: Arguments, field: str
) -> None:
    """Without a marker a call begins with its name, has arguments to see, and something before the next name.

    What is between two arguments does not look like what ends them.
    """
    with pytest.raises(FormatError) as refused:
        Format(tools=replace(TAGGED, function=function, arguments=arguments))

    assert refused.value.where == field


@pytest.mark.parametrize("rest", ["'b'})]<|call_end|>", "now()]<|call_end|>"])
def test_a_separator_after_a_dead_call_is_content_as_the_call_is(rest: str) -> None:
    """Content is what was written, byte for byte, from the broken call up to what is a call again."""
    broken = "<|call_start|>[now(tags={'a', "

    message = check(lambda: Parser(PYTHON_CALLS.format, REQUEST), broken + rest)

    assert message.content == (broken if "now" in rest else broken + rest)
