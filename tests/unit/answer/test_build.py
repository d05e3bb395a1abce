"""Tests of `answer_of`, which builds the tree of an answer from a Format and a Request."""

from __future__ import annotations

from dataclasses import replace

import pytest
from properties.families import COUNTED, FAMILIES, REQUEST, TAGGED, Family

from unrender.answer import Calls
from unrender.answer.build import answer_of, names_matter, offered
from unrender.format import Arguments, CallSyntax, Format, Slot, TurnTexts
from unrender.nodes import walk
from unrender.types import Request


def calls_in(format: Format, request: Request) -> list[Calls]:
    """Return the allowed calls among the parsed parts and in the grammar."""
    answer = answer_of(format, request)
    return [node for node in (*answer.parts, *walk(answer.written)) if isinstance(node, Calls) and not node.forbidden]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_calls_are_read_when_they_are_allowed(family: Family) -> None:
    """With tools, calls are allowed. Without tools, or with `tool_choice="none"`, they aren't."""
    format = family.format

    assert calls_in(format, REQUEST)
    assert calls_in(format, Request()) == []
    assert calls_in(format, Request(tools=REQUEST.tools, tool_choice="none")) == []


def test_a_named_tool_is_the_only_one_offered() -> None:
    """A named tool is the only one offered. If the tools are unknown, they stay unknown."""
    named = Request(tools=REQUEST.tools, tool_choice="named", named_tool="now")

    assert [tool.name for tool in offered(named) or ()] == ["now"]
    assert offered(Request(tools=None)) is None
    assert offered(Request(tools=None, tool_choice="named", named_tool="now")) is None


def test_names_matter_where_a_line_begins_a_call() -> None:
    """Tool names matter if a call is a line without a marker, and its arguments are one object."""
    bare = CallSyntax(function=(Slot.NAME, ":", Slot.ARGUMENTS))
    marked = replace(bare, call_start="<c>", call_end="</c>")
    values = Arguments(start="(", end=")", entry=(Slot.KEY, "=", Slot.VALUE), separator=", ")
    tagged = replace(bare, arguments=values)
    lines, words = TurnTexts(content_to_tools="\n"), TurnTexts(content_to_tools=" ")

    assert names_matter(Format(tools=bare, turn=lines))
    assert names_matter(Format(tools=marked, tolerated=(bare,), turn=lines))
    assert not any(names_matter(Format(tools=syntax, turn=lines)) for syntax in (marked, tagged, CallSyntax()))
    assert not names_matter(Format(tools=bare, turn=words))


def test_the_literals_that_begin_calls() -> None:
    """The outermost opener comes first: section, call, function."""
    assert COUNTED.format.tools.openers[:2] == ["<|calls_begin|>", "<|call_begin|>"]
    assert TAGGED.format.tools.openers == ["<tool_call>\n", "<function="]
