"""The size of grammars for any tools and of options that a lexer would confuse, which are separated within limits."""

from __future__ import annotations

import gc
import json
import warnings
from dataclasses import replace
from typing import Any

import pytest
from answers import template_named
from engines import gbnf, installed, lark, lark_reader, structural_tag
from lexing import confusions_of, remainder_of
from properties.families import BARE_KEYS, JSON_ENVELOPE, PYTHON_CALLS, RAW_BY_SCHEMA, TAGGED
from remainders import turn_of

from unrender import GrammarError, Limits, Turn
from unrender.errors import SchemaWarning
from unrender.format import CallSyntax, Codec, Containers, Format, Strings, TurnTexts, Typing, Words
from unrender.grammar import Node, Role, chars, choice, literal, optional, repeat, sequence, tag
from unrender.types import Request, Tool

THINKING = JSON_ENVELOPE.format
JSON = THINKING.tools
_CODE = PYTHON_CALLS.format.tools
PYTHONIC = replace(_CODE, section_start="[", section_end="]", arguments=replace(_CODE.arguments, codec=RAW_BY_SCHEMA))
SYNTAXES = pytest.mark.parametrize(
    "syntax", [TAGGED.format.tools, PYTHONIC, BARE_KEYS.format.tools, JSON], ids=["tagged", "pythonic", "bare", "json"]
)
DIALECTS = pytest.mark.parametrize("write", [gbnf, lark, structural_tag], ids=lambda write: write.__name__)
PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
    "tags": {"type": "array", "items": {"type": "string"}},
    "place": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
    "exact": {"type": "boolean"},
}


def answer(syntax: CallSyntax, *tools: Tool) -> Turn:
    """Return the turn of a format with reasoning, content and these calls."""
    return Turn(prompt="", format=replace(THINKING, tools=syntax), request=Request(tools=tools))


def ordinary(count: int) -> list[Tool]:
    """Return tools with six arguments each, half of them required in every other tool."""
    return [
        Tool(
            name=f"tool_{number}",
            parameters={
                "type": "object",
                "properties": {f"{name}_{number}": schema for name, schema in PROPERTIES.items()},
                "required": [f"city_{number}", f"days_{number}"] if number % 2 else [],
            },
        )
        for number in range(count)
    ]


@DIALECTS
@SYNTAXES
def test_a_written_grammar_leaves_no_garbage(syntax, write):
    """Writing a grammar leaves no reference cycles, so its objects are freed without the garbage collector."""
    write(answer(syntax, *ordinary(2)))
    asked = answer(syntax, *ordinary(3))  # A grammar that was written before would be cached.
    gc.freeze()  # Existing objects aren't examined.
    gc.disable()
    try:
        write(asked)
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.slow
@SYNTAXES
def test_no_dialect_is_much_longer_than_another(syntax):
    """A structural tag can't share rules, so it uses EBNF where a tree would repeat itself."""
    asked = answer(syntax, *ordinary(25))
    plain = len(asked.constraint("llama.cpp").grammar)

    lengths = {
        "lark": len(asked.constraint("llguidance").grammar),
        "structural tag": len(asked.constraint("xgrammar").grammar),
    }

    assert {dialect: length for dialect, length in lengths.items() if length > 4 * plain} == {}


def test_a_short_structural_tag_is_a_tree():
    """A short structural tag uses the engine's own elements."""
    written = json.loads(answer(JSON, *ordinary(1)).constraint("xgrammar").grammar)

    assert written["format"]["type"] == "or"


@pytest.mark.few(4)
@pytest.mark.slow
@SYNTAXES
@DIALECTS
def test_length_is_linear_in_the_tools(syntax, write):
    """Twice as many tools need about twice as many characters."""
    once, twice = (len(json.dumps(write(answer(syntax, *ordinary(count))))) for count in (20, 40))

    assert twice < 2.3 * once


UNCOMPARED = "Lark: too many alternatives to compare"
"""Prefix of the warning that Lark may refuse some texts. Schemas are exact nevertheless."""


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unrender.errors.SchemaWarning")
@SYNTAXES
@DIALECTS
@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
def test_length_is_linear_in_the_properties(syntax, write, required):
    """Twice as many arguments need about twice as many characters, even if all are optional."""

    def tool(count: int) -> Tool:
        properties = {f"p{number}": {"type": "string"} for number in range(1000, 1000 + count)}
        return Tool(name="f", parameters={"properties": properties, "required": list(properties) if required else []})

    once, twice = (len(json.dumps(write(answer(syntax, tool(count))))) for count in (50, 100))

    assert twice < 2.3 * once


def test_a_list_in_a_call_without_marks_is_drawn():
    """A call that begins with a bracket can be sampled next to a long header. It used to be split endlessly."""
    codec = Codec(strings=Strings.RAW, words=Words.PYTHON, containers=Containers.PYTHON, typed_by=Typing.SCHEMA)
    syntax = replace(PYTHONIC, arguments=replace(PYTHONIC.arguments, codec=codec))
    tool = Tool(name="f", parameters={"properties": {"a": {"type": "array"}}})
    plain = Format(turn=TurnTexts(headers=("<|start_of_the_answer|>",), end="<|end|>"), tools=syntax)

    turn = Turn(prompt="", format=plain, request=Request(tools=(tool,)))

    drawn = [turn.sample(seed) for seed in range(30)]

    assert any("[f(a=[" in text for text in drawn)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    return schema


WRITES = pytest.mark.parametrize(
    "write",
    [gbnf, lark, structural_tag, lambda asked: asked.sample(1)],
    ids=["gbnf", "lark", "structural_tag", "sample"],
)
LARGE = {
    "values": {"e": {"enum": [f"value number {number}" for number in range(4_000)]}},
    "arguments": {f"p{number}": {"type": "string"} for number in range(1000)},
    "lists": {f"p{number}": {"type": "array"} for number in range(200)},
}


@pytest.mark.few(8)
@pytest.mark.slow
@SYNTAXES
@WRITES
@pytest.mark.parametrize("kind", LARGE)
def test_large_schemas_are_written_exactly(syntax, write, kind):
    """Thousands of values or a thousand arguments are within the limits."""
    with warnings.catch_warnings(action="error", category=SchemaWarning):
        warnings.filterwarnings("ignore", UNCOMPARED, SchemaWarning)
        assert write(answer(syntax, Tool(name="f", parameters={"properties": LARGE[kind]})))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unrender.errors.SchemaWarning")
@SYNTAXES
@WRITES
def test_only_what_is_too_deep_takes_any_value(syntax, write):
    """Only the schema that is too deep accepts any value, and its tool and path are reported."""
    deep = Tool(name="deep", parameters={"properties": {"a": nested(200), "b": {"enum": ["only"]}}, "required": ["b"]})
    asked = answer(syntax, deep, *ordinary(1))

    assert write(asked)
    assert {(item.tool, item.path[:14]) for item in remainder_of(asked).unsupported} == {("deep", "#/properties/a")}
    assert "only" in asked.constraint("llama.cpp").grammar


def test_what_is_shared_without_end_is_counted_as_it_would_be_written():
    """Thirty definitions that each use the next one twice count as a billion parts, as if written out."""
    twice = {
        f"d{at}": {"properties": {"x": {"$ref": f"#/$defs/d{at + 1}"}, "y": {"$ref": f"#/$defs/d{at + 1}"}}}
        for at in range(30)
    }
    parameters = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**twice, "d30": {"type": "string"}}}
    asked = answer(TAGGED.format.tools, Tool(name="f", parameters=parameters))

    with pytest.warns(SchemaWarning, match=r"tool 'f': #/properties/a: parameters is not enforced: it has \d+ parts"):
        asked.constraint("llguidance")


def test_steps_are_bounded():
    """A grammar that takes more steps than the limit is an error, not a hang."""
    asked = replace(answer(PYTHONIC, *ordinary(9)), limits=Limits(grammar_steps=50))

    with pytest.raises(GrammarError, match="more than 50 steps"):
        asked.constraint("llama.cpp")


def test_a_text_that_must_be_too_long_is_not_drawn():
    """A grammar that requires a longer text than a sample may have is an error."""
    with pytest.raises(GrammarError, match="sample: 1000000000 repetitions"):
        turn_of(chars("a-z", 10**9, 10**9)).sample(1)


@pytest.mark.few(8)
@WRITES
@pytest.mark.parametrize(
    "around",
    [
        optional,
        lambda node: sequence("b", node),
        lambda node: choice("b", node),
        lambda node: repeat(node, 0, 2, ","),
        lambda node: tag(Role.CONTENT, node),
    ],
)
def test_what_is_nested_too_deep_is_an_error(around, write):
    """A handmade grammar that is nested too deeply is a `GrammarError`, never a `RecursionError`."""
    node: Node = literal("a")
    for _ in range(5_000):
        node = around(node)

    with pytest.raises(GrammarError, match="nested too deep"):
        write(turn_of(node))


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
