"""Schemas mean the same everywhere: what is typed is admitted, and nothing is wider than the schema in silence."""

from __future__ import annotations

import json
import warnings
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vendor import vendor_cases

from unrender import GrammarError, Tool
from unrender.schema.admission import admits
from unrender.schema.reader import read_schema
from unrender.values.coercion import ArgumentTypes, coerce, read_literal
from unrender.values.finder import Finder
from unrender.values.raw import RawScanner

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
    """Return schemas that are made of others."""
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
    """Return jsonschema's verdict; True when the schema refers to itself without end."""
    try:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
    except RecursionError:
        return True


def readings(text: str) -> list[Any]:
    """Return what a raw text can be read as."""
    kind, value = read_literal(text)
    words = {"true": True, "false": False, "null": None, "none": None}
    found = [json.loads(value)] if kind not in ("", "string") else []
    return [*found, *([words[text.lower()]] if text.lower() in words else []), text]


@settings(max_examples=150)
@given(SCHEMAS, VALUES)
def test_nothing_is_wider_than_the_schema_in_silence(schema: Any, value: Any) -> None:
    """A value that a shape admits and jsonschema refuses comes with a report."""
    try:
        reading = read_schema(schema)
    except GrammarError as error:
        assert "no value can satisfy it" in str(error)  # noqa: PT017 - the property is about both ways
        return

    if not reading.unsupported and admits(reading.shape, value, reading.definitions):
        assert obeys(schema, value)


@settings(max_examples=150)
@given(SCHEMAS, st.sampled_from(TEXTS) | st.text(max_size=4))
def test_a_raw_value_is_admitted_whenever_some_reading_of_it_is(schema: Any, text: str) -> None:
    """The reading that is taken obeys the schema if one of them does, where all of the schema is enforced."""
    parameters = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/x"}},
        "$defs": {**schema["$defs"], "x": schema},
    }
    types = ArgumentTypes(Tool(name="f", parameters=parameters)).types("x")
    value = json.loads(coerce(text, types))

    try:
        if read_schema(parameters).unsupported:
            return
    except GrammarError:
        return
    whole = {"$ref": "#/$defs/x", "$defs": parameters["$defs"]}
    assert obeys(whole, value) or not any(obeys(whole, found) for found in readings(text))


@given(SCHEMAS, st.sampled_from(TEXTS) | st.text(max_size=4))
def test_a_streamed_value_is_the_one_read_whole(schema: Any, text: str) -> None:
    """The scanner gives what the whole text is, though it releases what is certain."""
    types = ArgumentTypes(Tool(name="f", parameters={"properties": {"x": schema}, **schema})).types("x")
    scanner = RawScanner(Finder((END,)), types)
    out, at = "", 0
    for end in range(1, len(text + END) + 1):
        taken, piece, _ = scanner.scan((text + END)[:end], at, final=False)
        out, at = out + piece, taken

    assert json.loads(out) == json.loads(coerce(text, types))


@pytest.mark.parametrize(
    "case", [case for case in vendor_cases("schemas") if "schema" in case], ids=lambda case: case["id"]
)
def test_recorded_schemas_type_their_own_values(case: dict[str, Any]) -> None:
    """What a recorded schema accepts as JSON is a value of the type that its raw text is read as."""
    schema = case["schema"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reading = read_schema(schema)
        except GrammarError:
            return
    types = ArgumentTypes(Tool(name="f", parameters={"properties": {"x": schema}, **_roots(schema)})).types("x")
    for text in (*case["accept"], *case["reject"], *TEXTS):
        if any(admits(reading.shape, found, reading.definitions) for found in readings(text)):
            assert admits(reading.shape, json.loads(coerce(text, types)), reading.definitions), text


def _roots(schema: Any) -> dict[str, Any]:
    return {word: schema[word] for word in ("$defs", "definitions") if isinstance(schema, dict) and word in schema}
