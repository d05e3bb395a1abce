"""Schemas mean the same everywhere: typed values are valid, and nothing is silently wider than the schema."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.families import RAW_BY_SCHEMA
from splitting import fed
from vendor import vendor_cases

from unrender import GrammarError, Parser
from unrender.format import Arguments, CallSyntax, Format, Slot
from unrender.grammar import conforms, unsupported_keywords
from unrender.types import Request, Tool

END = "</v>"
TEXTS = ["7", "7.5", "7.0", "-3", "12", "true", "True", "none", "null", "abc", "", "007", "[1]", '["a", 7]', "{}"]
TEXTS += ['{"a": 7}', '{"b": "x"}', '"abc"', "a b", "1e3"]
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 7, 12, -3, 7.5, "", "a", "7", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
SCALARS = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(lambda t: {"type": t}),
    st.lists(st.sampled_from(["string", "integer", "number", "null"]), min_size=1).map(lambda types: {"type": types}),
    st.fixed_dictionaries(
        {"type": st.just("integer")}, optional={"minimum": st.integers(-5, 9), "multipleOf": st.integers(1, 4)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("number")}, optional={"exclusiveMaximum": st.integers(0, 9), "multipleOf": st.just(0.5)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 3), "maxLength": st.integers(0, 4)}
    ),
    st.sampled_from(["^[0-9]+$", "a", "^(abc)?$"]).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.lists(st.sampled_from(["7", 7, 7.0, None, True, "abc", [1], {"a": 7}]), min_size=1).map(lambda v: {"enum": v}),
    st.sampled_from(["a", "b"]).map(lambda name: {"$ref": f"#/$defs/{name}"}),
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas composed of others."""
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    required = st.lists(st.sampled_from("abc"), unique=True, max_size=2)
    objects = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": named,
            "required": required,
            "additionalProperties": st.booleans() | inner,
            "propertyNames": st.just({"enum": ["a", "b"]}),
            "dependentRequired": st.just({"a": ["b"]}),
            "dependentSchemas": st.just({"b": {"required": ["c"]}}),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 2),
        },
    )
    lists = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
            "uniqueItems": st.booleans(),
            "contains": st.booleans() | inner,
        },
    )
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        objects,
        lists,
        *(st.fixed_dictionaries({word: several}) for word in ("anyOf", "oneOf", "allOf")),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], "not": pair[1]}),
        st.tuples(inner, inner, inner).map(lambda trio: {"if": trio[0], "then": trio[1], "else": trio[2]}),
        st.tuples(objects, several, st.booleans()).map(
            lambda parts: {**parts[0], "anyOf": parts[1], "unevaluatedProperties": parts[2]}
        ),
        st.tuples(lists, several).map(lambda parts: {**parts[0], "allOf": parts[1], "unevaluatedItems": False}),
    )


BODIES = st.recursive(SCALARS, grown, max_leaves=5)
SCHEMAS = st.builds(lambda body, a, b: {**body, "$defs": {"a": a, "b": b}}, BODIES, BODIES, SCALARS)


def obeys(schema: Any, value: Any) -> bool:
    """Return jsonschema's verdict; True if the schema is infinitely recursive."""
    try:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
    except RecursionError:
        return True


def readings(text: str) -> list[Any]:
    """Return the possible values of a raw text."""
    words = {"true": True, "false": False, "null": None, "none": None}
    found = [words[text.lower()]] if text.lower() in words else []
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        value = json.loads(text) if text[:1] != "'" else ast.literal_eval(text)
        found += [] if isinstance(value, str) else [value]
    return [*found, text]


CALLS = CallSyntax(
    call_start="<call>",
    call_end="</call>",
    function=("<", Slot.NAME, ">", Slot.ARGUMENTS),
    arguments=Arguments(entry=("<p=", Slot.KEY, ">", Slot.VALUE, END), codec=RAW_BY_SCHEMA),
)


def typed(text: str, parameters: Any, *, at_once: bool = True) -> Any:
    """Return the value of a raw text as the argument `x` of a tool with these parameters."""
    parser = Parser(Format(tools=CALLS), Request(tools=(Tool(name="f", parameters=parameters),)))
    output = f"<call><f><p=x>{text}{END}</call>"
    fed(parser, [output] if at_once else list(output))
    [call] = parser.message.tool_calls
    return json.loads(call.arguments_json)["x"]


@settings(max_examples=150)
@given(SCHEMAS, VALUES)
def test_nothing_is_wider_than_the_schema_in_silence(schema: Any, value: Any) -> None:
    """If a shape accepts a value that jsonschema rejects, a keyword is reported as unsupported."""
    try:
        silent = not unsupported_keywords(schema)
    except GrammarError as error:
        assert "no value can satisfy it" in str(error)  # noqa: PT017 - the property is about both ways
        return

    if silent and conforms(value, schema):
        assert obeys(schema, value)


@settings(max_examples=150)
@given(SCHEMAS, st.sampled_from(TEXTS) | st.text(max_size=4))
def test_a_raw_value_is_admitted_whenever_some_reading_of_it_is(schema: Any, text: str) -> None:
    """If some reading of a text fits the schema, the chosen one does, as long as all keywords are supported."""
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/x"}},
        "$defs": {**schema["$defs"], "x": schema},
    }
    try:
        if unsupported_keywords(parameters):
            return
    except GrammarError:
        return
    whole = {"$ref": "#/$defs/x", "$defs": parameters["$defs"]}
    assert obeys(whole, typed(text, parameters)) or not any(obeys(whole, found) for found in readings(text))


@given(SCHEMAS, st.sampled_from(TEXTS) | st.text(max_size=4))
def test_a_streamed_value_is_the_one_read_whole(schema: Any, text: str) -> None:
    """A streamed value equals the value of the whole text."""
    parameters = {"properties": {"x": schema}, **schema}

    assert typed(text, parameters, at_once=False) == typed(text, parameters)


@pytest.mark.parametrize(
    "case", [case for case in vendor_cases("schemas") if "schema" in case], ids=lambda case: case["id"]
)
def test_recorded_schemas_type_their_own_values(case: dict[str, Any]) -> None:
    """If a recorded schema accepts a reading of a raw text, the text is typed as a valid value."""
    schema = case["schema"]
    try:
        unsupported_keywords(schema)
    except GrammarError:
        return
    parameters = {"properties": {"x": schema}, **_roots(schema)}
    for text in (*case["accept"], *case["reject"], *TEXTS):
        if END not in text and any(conforms(found, schema) for found in readings(text)):
            assert conforms(typed(text, parameters), schema), text


def _roots(schema: Any) -> dict[str, Any]:
    return {word: schema[word] for word in ("$defs", "definitions") if isinstance(schema, dict) and word in schema}
