"""Options that a lexer would confuse are separated, within limits."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from answers import template_named
from engines import installed, lark_reader
from lexing import confusions_of
from remainders import turn_of

from unrender import Turn
from unrender.errors import SchemaWarning
from unrender.grammar import choice, optional, sequence

LONGEST = 1_000_000


def prepared(template: str, parameters: dict[str, Any], **options: Any) -> Turn:
    """Return the turn of a test template with one tool."""
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}
    return template_named(template).prepare([{"role": "user", "content": "Hi"}], tools=[tool], **options)


@pytest.mark.slow
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_a_pattern_is_not_made_deterministic() -> None:
    """`(a|b)*a(a|b){18}` has a quarter of a million deterministic states, but its grammar stays small and correct."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a|b)*a(a|b){18}$"}},
        "required": ["a"],
    }
    turn = prepared("tagged-raw", schema, tool_choice="required")

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
    turn = prepared("call-words", {"properties": properties})

    with warnings.catch_warnings(record=True, action="always") as warned:
        turn.constraint("llguidance")

    assert [str(item.message).partition(":")[0] for item in warned] == ["Lark"] * (count == 150)


@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_json_content_beside_calls_that_begin_with_a_brace() -> None:
    """The lexer would confuse the `{` of the content with that of `{"name": "`, so both are spelled out."""
    schema = {"properties": {"city": {"type": "string"}}, "required": ["city"], "type": "object"}
    response = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    turn = prepared("json-bare", {"properties": {}}, response_format=response)
    accepts = lark_reader(turn.constraint("llguidance").grammar)

    assert [accepts(text) for text in ('{"city": "Rome"}', '{"city" :"R"}', '{"name": "Rome"}')] == [True, True, False]
    assert accepts(turn.sample(0))
