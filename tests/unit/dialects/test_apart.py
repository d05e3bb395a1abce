"""Options that a lexer would confuse are separated, within limits."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from engines import installed, lark_reader
from lexing import confusions_of
from remainders import turn_of

from unrender import ChatTemplate
from unrender.errors import SchemaWarning
from unrender.grammar import choice, optional, sequence

TEMPLATE = Path(__file__).parents[2] / "templates" / "tagged-raw.jinja"
LONGEST = 1_000_000


@pytest.mark.slow
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_a_pattern_is_not_made_deterministic() -> None:
    """`(a|b)*a(a|b){18}` has a quarter of a million deterministic states, but its grammar stays small and correct."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a|b)*a(a|b){18}$"}},
        "required": ["a"],
    }
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": schema}}
    turn = ChatTemplate.from_file(TEMPLATE).prepare(
        [{"role": "user", "content": "Hi"}], tools=[tool], tool_choice="required"
    )

    with pytest.warns(SchemaWarning, match="Lark: too many alternatives to compare"):
        grammar = turn.constraint("llguidance").grammar

    assert len(grammar) < LONGEST
    assert lark_reader(grammar)(turn.sample(0))


def test_many_ways_to_go_on_are_told_apart() -> None:
    """An optional part before a hundred others is compared with all of them."""
    others = choice(*(f"x{number}" for number in range(100)))
    turn = turn_of(sequence(optional("x1y"), others, "y"))

    assert list(confusions_of(turn)) == []
    turn.constraint("llguidance")  # Without a warning about too many options.


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, 150])
def test_more_ways_than_are_compared_are_said(count: int) -> None:
    """If too many arguments may follow each other to be compared, a warning says that Lark may refuse some texts."""
    properties = {f"key{number}": {"type": "string"} for number in range(count)}
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"properties": properties}}}
    turn = ChatTemplate.from_file(TEMPLATE.with_name("call-words.jinja")).prepare(
        [{"role": "user", "content": "Hi"}], tools=[tool]
    )

    with warnings.catch_warnings(record=True, action="always") as warned:
        turn.constraint("llguidance")

    assert [str(item.message).partition(":")[0] for item in warned] == ["Lark"] * (count == 150)


@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_json_content_beside_calls_that_begin_with_a_brace() -> None:
    """The lexer would confuse the `{` of the content with that of `{"name": "`, so both are spelled out."""
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"properties": {}}}}
    schema = {"properties": {"city": {"type": "string"}}, "required": ["city"], "type": "object"}
    turn = ChatTemplate.from_file(TEMPLATE.with_name("json-bare.jinja")).prepare(
        [{"role": "user", "content": "Hi"}],
        tools=[tool],
        response_format={"type": "json_schema", "json_schema": {"name": "place", "schema": schema}},
    )
    accepts = lark_reader(turn.constraint("llguidance").grammar)

    assert [accepts(text) for text in ('{"city": "Rome"}', '{"city" :"R"}', '{"name": "Rome"}')] == [True, True, False]
    assert accepts(turn.sample(0))
