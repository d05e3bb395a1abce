"""Text between arguments and between calls: separators in pieces, and names at the end of an entry."""

from __future__ import annotations

from dataclasses import replace

import pytest
from splitting import fed

from unrender import Parser
from unrender.errors import FormatError
from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Format,
    Slot,
    Strings,
    Typing,
)
from unrender.types import Request, Tool

ARGUMENTS = Arguments(
    entry=("<key>", Slot.KEY, "<val>", Slot.VALUE, "</val>"), codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
)
TAGGED = CallSyntax(function=("<call>", Slot.NAME, Slot.ARGUMENTS), arguments=ARGUMENTS)


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
    """Without a marker, a call must start with its name, mark its arguments, and have text before the next name.

    The separator of arguments must differ from their end.
    """
    with pytest.raises(FormatError) as refused:
        Format(tools=replace(TAGGED, function=function, arguments=arguments))

    assert refused.value.where == field


def test_a_name_after_the_value_closes_no_tag():
    """In `+a 1 -a+b so -b`, an entry ends in the argument's name, so there is no later text to search for."""
    entry = ("+", Slot.KEY, " ", Slot.VALUE, " -", Slot.KEY)
    codec = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
    function = ("<f>", Slot.NAME, " ", Slot.ARGUMENTS, "</f>")
    tools = replace(TAGGED, function=function, arguments=Arguments(entry=entry, codec=codec))
    parser = Parser(Format(tools=tools), Request(tools=(Tool(name="go"),)))
    fed(parser, ["<f>go +a 1 -a+b so -b</f>"])
    [call] = parser.message.tool_calls

    assert (call.name, call.arguments_json) == ("go", '{"a": 1, "b": "so"}')
