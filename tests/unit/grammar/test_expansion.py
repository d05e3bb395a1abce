"""Rules of calls for each tool, in every codec, and of schemas.

Each row of `tests/corpus/calls.jsonl` has arguments, parameters, rules and losses. Each rule is one line (`lines`). Rules of arbitrary JSON
values are omitted.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from itertools import islice
from typing import Any

import jsonschema
import pytest
from cases import cases
from lines import grammar_lines
from properties.families import FAMILIES, Family
from recipes import ANALYSIS, rows_of
from remainders import node_of, turn_of, written

from unrender import GrammarError, Turn, nodes
from unrender import grammar as c
from unrender.answer.build import calls_in_syntax
from unrender.errors import SchemaWarning
from unrender.format import Arguments, CallSyntax, Format, Skeleton, Slot
from unrender.format.data import decode
from unrender.grammar import Grammar, Node, Role
from unrender.grammar.expansion import Values, expand
from unrender.nodes import Literal, Optional, Ref, Repeat, Rules, Sequence
from unrender.types import Request, Tool

SAMPLE = {"city": "Rome", "days": 3, "exact": True, "tags": ["a", "b c"]}
PARAMETERS = {
    "type": "object",
    "properties": {key: {"const": value} for key, value in SAMPLE.items()},
    "required": list(SAMPLE),
}


@pytest.mark.few(6)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_constant_is_written_as_the_codec_writes_it(family: Family) -> None:
    """If every argument is constant, each generated text is parsed to exactly these values."""
    tools = (Tool(name="now", parameters=PARAMETERS),)
    request = Request(tools=tools, tool_choice="required", parallel_tool_calls=False)
    turn = Turn(prompt="", format=family.format, request=request, prefill="")

    for seed in range(20):
        [call] = turn.parse(turn.sample(seed)).tool_calls
        assert (call.name, json.loads(call.arguments_json)) == ("now", SAMPLE)


SHARED = ("json-", "python-", "single-", "bare-", "object-extra")
USUAL = [{"slot": "name"}, ":", {"slot": "arguments"}]


@pytest.mark.parametrize("row", rows_of(ANALYSIS.with_name("calls.jsonl")), ids=lambda row: row["why"])
def test_a_call_is_written_out(row):
    """Entries, lists, missing arguments and the ends of values follow the codec. Unsupported keywords are reported."""
    syntax = CallSyntax(
        function=decode(Skeleton, row.get("function", USUAL), where=""),
        arguments=decode(Arguments, row["arguments"], where=""),
        **row.get("syntax", {}),
    )
    calls = replace(calls_in_syntax(Format(), syntax), tools=(Tool(name="f", parameters=row["parameters"]),))
    found = expand(Grammar(calls), Values.SPELLED)
    lines = grammar_lines(found.grammar, without=lambda name: name.startswith(SHARED))

    assert {name: line for name, line in lines.items() if name} == row["rules"]
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in found.unsupported] == row.get("lost", [])


def run(ends_turn: bool = False, maximum: int | None = None, **syntax: Any) -> str:
    """Return a run of calls as text."""
    texts = {
        "call_start": "<c>",
        "call_end": "</c>",
        "section_start": "[",
        "section_end": "]",
        "separator": ",",
        **syntax,
    }
    found = CallSyntax(function=(Slot.NAME, Slot.ARGUMENTS), **texts)
    calls = calls_in_syntax(Format(), found)
    calls = replace(calls, tools=(Tool(name="f"),), maximum=maximum, ends_turn=ends_turn)
    return line(expand(Grammar(calls), Values.SPELLED).grammar.root)


def line(node: Node) -> str:
    match node:
        case Literal(text):
            return text
        case Ref():
            return "call"
        case Sequence(parts):
            return "".join(map(line, parts))
        case Optional(inner):
            return f"({line(inner)})?"
        case Repeat(inner, low, high, separator):
            return f"({line(inner)}){{{low},{high}{'' if separator is None else f' by {line(separator)}'}}}"
    raise AssertionError(node)


@cases
def test_a_run_of_calls_is_generated(arguments: dict[str, Any], expected: str) -> None:
    """If the last marker ends the turn, it is optional, because engines strip it."""
    assert run(**arguments) == expected


def test_no_name_of_a_rule_is_given_twice() -> None:
    """A rule name that ends in a number isn't reused for a rule that would get the same number."""
    rules = Rules()

    names = [rules.reserve(hint) for hint in ("a", "a-2", "a", "A!", "a-2", "")]

    assert names == ["a", "a-2", "a-3", "a-4", "a-2-2", "rule"]


NAN, INFINITY = float("nan"), float("inf")


def nested(depth: int, wrap: Any, leaf: Any = True) -> Any:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    return schema


BRANCHES = [{"anyOf": [{"properties": {f"p{i}{j}": {}}} for j in range(4)]} for i in range(10)]
WIDER = {
    "branches multiplied": ({"allOf": BRANCHES}, "anyOf"),
    "branches of lengths": ({"allOf": [{"anyOf": [{"minLength": j} for j in range(4)]} for _ in range(10)]}, "anyOf"),
    "a surrogate": ({"pattern": "[\ud800-\udfff]"}, "pattern"),
    "a surrogate alone": ({"pattern": "\ud800"}, "pattern"),
    "a deep value": ({"enum": [nested(200, lambda value: [value])]}, "enum"),
    "deep objects": (nested(200, lambda schema: {"properties": {"a": schema}}), "schema"),
    "deep lists": (nested(5000, lambda schema: {"type": "array", "items": schema}), "schema"),
    "deep choices": (nested(5000, lambda schema: {"anyOf": [{"type": "null"}, schema]}), "schema"),
    "a cycle of Python objects": (cyclic(), "schema"),
    "a long bound": ({"type": "integer", "maximum": 10**400}, "maximum"),
    "a long fraction": ({"type": "number", "minimum": -(10**400)}, "minimum"),
    "a long forbidden word": ({"type": "string", "not": {"const": "a" * 5000}}, "not"),
}
NO_SCHEMA = {
    "a number as key": ({"enum": [{1: 2}]}, "#/enum: expected JSON, found {1: 2}"),
    "enum NaN": ({"enum": [NAN]}, "#/enum: expected JSON, found nan"),
    "const Infinity": ({"const": INFINITY}, "#/const: expected JSON, found inf"),
    "patternProperties 5": ({"patternProperties": {5: {}}}, "#/patternProperties: expected names that are strings"),
    "dependentRequired 5": ({"dependentRequired": {5: ["b"]}}, "#/dependentRequired: expected names that are strings"),
    "minLength NaN": ({"minLength": NAN}, "#/minLength: expected a whole number"),
    "maxLength Infinity": ({"maxLength": INFINITY}, "#/maxLength: expected a whole number"),
    "minimum NaN": ({"type": "number", "minimum": NAN}, "#/minimum: expected a number"),
    "minimum Infinity": ({"type": "integer", "minimum": INFINITY}, "#/minimum: expected a number, found inf"),
    "key 5": ({"properties": {5: {}}}, "#/properties: expected names that are strings, found 5"),
    "5000 digits": ({"$ref": "#/anyOf/" + "1" * 5000, "anyOf": [{}]}, "has no target"),
    "a number of 5000 digits": ({"const": 10**5000}, "#/const: expected JSON"),
    "a number as type": ({"type": 10**5000}, "#/type: expected one of"),
    "a set": ({"enum": [{1}]}, "#/enum: expected JSON"),
    "a high bound below": ({"type": "integer", "minimum": 10**5000}, "#/minimum: expected a number"),
}


def written_with_losses(schema: Any) -> list[str]:
    """Return the warnings about keywords that aren't enforced."""
    with warnings.catch_warnings(record=True, action="always") as lost:
        turn_of(c.schema(schema)).constraint("llama.cpp")
    assert {item.category for item in lost} <= {SchemaWarning}
    return [str(item.message) for item in lost]


@pytest.mark.parametrize(("schema", "keyword"), WIDER.values(), ids=WIDER)
def test_what_is_over_a_budget_is_wider_and_reported(schema: Any, keyword: str) -> None:
    """A part that exceeds a limit accepts any value, and the warning names the keyword."""
    assert any(f": {keyword} is not enforced" in lost for lost in written_with_losses(schema))


@pytest.mark.parametrize(("schema", "message"), NO_SCHEMA.values(), ids=NO_SCHEMA)
def test_what_is_no_schema_is_named_with_its_place(schema: Any, message: str) -> None:
    """An invalid keyword value is a `GrammarError` that names the path."""
    with pytest.raises(GrammarError) as caught:
        written_with_losses(schema)

    assert message in str(caught.value)


@pytest.mark.parametrize("dialect", ["gbnf", "lark"])
def test_many_values_are_written(dialect: str) -> None:
    """All ten thousand values of an enum are written, and the grammar's size is linear."""
    few, many = (len(written(c.schema({"enum": [f"v{i}" for i in range(count)]}), dialect)) for count in (5000, 10_000))

    assert many < 2.5 * few


def size(**properties: object) -> int:
    """Return the size of an object's GBNF in characters."""
    return len(turn_of(c.schema({"type": "object", "properties": properties})).constraint("llama.cpp").grammar)


@cases
def test_what_is_generated_obeys_the_schema(schema: object) -> None:
    """Every generated text is valid JSON for the schema."""
    for text in islice(turn_of(c.schema(schema))._samples(), 60):
        jsonschema.validate(json.loads(text), schema)

    assert c.unsupported_keywords(schema) == ()


def test_equal_parts_share_a_rule() -> None:
    """A repeated schema is written once."""
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}

    assert size(**{f"p{n}": point for n in range(20)}) - size(p0=point) < 20 * 150


def test_white_space_between_tokens_is_bounded() -> None:
    """A model can't generate endless whitespace."""
    assert "{0,32}" in turn_of(c.schema({"type": "array"})).constraint("llama.cpp").grammar


@cases
def test_a_combinator_is_one_node(made: str, node: str) -> None:
    """Bounds and separators are passed on to the node."""
    assert node_of(made) == eval(node, vars(nodes) | {"Role": Role})


@cases
def test_a_mistake_is_named(made: str, message: str) -> None:
    """The error names the expected value and the value found."""
    with pytest.raises(GrammarError) as caught:
        node_of(made)

    assert str(caught.value) == message
