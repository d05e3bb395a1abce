"""Messages about values that don't fit a schema."""

from __future__ import annotations

from cases import cases

from unrender import ChatTemplate, ToolCall, Turn
from unrender.format import Format


def turn_with(parameters):
    return ChatTemplate.from_string("", format=Format()).prepare_rendered(
        tools=[{"name": "f", "parameters": parameters}]
    )


def said(turn: Turn, arguments, name="f"):
    tool = turn.request.tool(name)
    return ToolCall(name=name, arguments_json=arguments, id="1", offered=tool is not None, tool=tool).problems()


@cases
def test_problems(schema, arguments, problems):
    """Each problem has its place, the expected value, and the value found. Invalid JSON is a problem, too."""
    assert list(said(turn_with(schema), arguments)) == problems


def test_problems_are_bounded():
    """The number of problems for a long list of wrong values is limited."""
    turn = turn_with({"properties": {"a": {"items": {"type": "null"}}}})

    assert len(said(turn, '{"a": [' + "0, " * 999 + "0]}")) == 100


def test_a_call_of_another_tool_is_a_problem():
    """A call of an unknown tool is a problem, since its schema is unknown."""
    assert said(turn_with({}), "{}", "g") == ("expected the name of an offered tool, found 'g'",)
