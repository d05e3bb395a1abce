"""JSON Schema keywords × dialects into a reference page: which are enforced, with an example that tests try on the engines.

`tests/conformance/test_keywords.py` holds every line of `KEYWORDS` to what it says, engine by engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import environment

from unrender.dialects.structural_tag import reads_exactly
from unrender.grammar.expansion import Values, expand
from unrender.grammar.spelling import schema_grammar
from unrender.nodes import Grammar, JsonValue
from unrender.schema.reader import Unsupported, read_schema
from unrender.schema.references import bundled
from unrender.schema.writer import Unwritable, write_schema

PAGE = environment.ROOT / "docs" / "reference" / "json-schema.md"
SUITE = "\n## The official test suite\n"
"""What the other section begins with."""

OPENING = """# JSON Schema in grammars

Written by `scripts/schema_table.py`; do not edit.
Every line is tried on the engines that read the dialects.

`✓` means exact: what the schema admits can be written, and nothing else.
`wider` means that the keyword is not enforced there.
The tool is still constrained by everything else; a `SchemaWarning` names tool, path and keyword.

Three things hold everywhere.
Properties stand in the order in which the schema declares them, and optional ones may be left out.
An object that declares `properties` is closed unless it has `additionalProperties`.
A keyword implies its type: `properties` an object, `minLength` a string.

| keyword | example | GBNF | Lark | structural tag | why not |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Keyword:
    """A keyword, a schema that shows it, JSON texts that obey the schema, and some that do not."""

    name: str
    schema: Any
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def _one(name: str, schema: Any, right: str, wrong: str) -> Keyword:
    return Keyword(name, schema, tuple(right.split("  ")), tuple(wrong.split("  ")) if wrong else ())


_A, _B = {"type": "integer"}, {"type": "string"}
_TREE = {"properties": {"of": {"items": {"$ref": "#/$defs/tree"}}}, "required": ["of"]}
_DYNAMIC = {
    "$id": "texts",
    "$ref": "list",
    "$defs": {
        "item": {"$dynamicAnchor": "item", "type": "string"},
        "list": {
            "$id": "list",
            "items": {"$dynamicRef": "#item"},
            "$defs": {"any": {"$dynamicAnchor": "item"}},
        },
    },
}
KEYWORDS: tuple[Keyword, ...] = (
    _one("type", {"type": "integer"}, "0  -12", '"0"  1.5  01'),
    _one("type, a list", {"type": ["string", "null"]}, '""  null', "0  {}"),
    _one("nullable", {"type": "string", "nullable": True}, '"a"  null', "0"),
    _one("true, false", {"properties": {"a": True, "b": False}}, '{}  {"a": [1]}', '{"b": 1}'),
    _one("enum", {"enum": ["red", None, 42, ["a"]]}, '"red"  null  42  ["a"]', '"blue"  4  ["b"]'),
    _one("const", {"const": {"a": "ü"}}, '{"a": "ü"}', '{}  {"a": "u"}'),
    _one("minimum, maximum", {"type": "integer", "minimum": -12, "maximum": 207}, "-12  0  207", "-13  208  012"),
    _one(
        "exclusiveMinimum, exclusiveMaximum",
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        "1  9",
        "0  10",
    ),
    _one(
        "bounds of numbers",
        {"type": "number", "minimum": -0.5, "maximum": 2.25},
        "-0.5  0  2.25  1.999",
        "-0.6  2.26  3",
    ),
    _one("multipleOf", {"type": "integer", "multipleOf": 5}, "0  5  -15  100", "1  12"),
    _one(
        "multipleOf, distant bounds",
        {"type": "integer", "multipleOf": 7, "minimum": 3, "maximum": 99_999},
        "7  700",
        "",
    ),
    _one("multipleOf 0.1, 0.01 …", {"type": "number", "multipleOf": 0.01}, "1  0.25  -3.1", "0.125"),
    _one("multipleOf, other fractions", {"type": "number", "multipleOf": 0.25}, "0.5  1", ""),
    _one("minLength, maxLength", {"type": "string", "minLength": 2, "maxLength": 3}, '"ab"  "日本語"', '"a"  "abcd"'),
    _one("maxLength above 1000", {"type": "string", "maxLength": 1001}, '"a"', ""),
    _one("pattern", {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"}, '"AB-1"  "XY-007"', '"A-1"  "AB-"'),
    _one("pattern, not anchored", {"type": "string", "pattern": "a+b"}, '"ab"  "xaaby"', '"a"  "ba"'),
    _one("pattern with lookaround", {"type": "string", "pattern": "^(?=a).$"}, '"a"', ""),
    _one("pattern with a length", {"type": "string", "pattern": "^a.*b$", "maxLength": 3}, '"ab"', ""),
    _one(
        "format: date, time, date-time", {"type": "string", "format": "date"}, '"2024-02-28"', '"2024-02-31"  "today"'
    ),
    _one("format: uuid", {"type": "string", "format": "uuid"}, '"12345678-1234-1234-1234-1234567890ab"', '"1234"'),
    _one("format: ipv4, ipv6", {"type": "string", "format": "ipv6"}, '"::1"  "2001:db8::7"', '"1.2.3.4"'),
    _one("format: email, hostname", {"type": "string", "format": "email"}, '"a.b@example.org"', '"a@"'),
    _one(
        "format: uri, uri-reference, json-pointer", {"type": "string", "format": "uri"}, '"https://a.b/c?d#e"', '"a b"'
    ),
    _one("format: duration", {"type": "string", "format": "duration"}, '"P3DT4H"', '"3 days"'),
    _one("format, any other", {"type": "string", "format": "isbn"}, '"a"', ""),
    _one("items", {"type": "array", "items": _A}, "[]  [1, 2]", '["a"]'),
    _one("prefixItems", {"prefixItems": [_A, _B], "items": False}, '[]  [1]  [1, "a"]', '["a"]  [1, "a", 2]'),
    _one("items as a list", {"items": [_A], "additionalItems": _B}, '[1]  [1, "a"]', '["a"]  [1, 2]'),
    _one(
        "minItems, maxItems",
        {"type": "array", "items": _A, "minItems": 1, "maxItems": 2},
        "[1]  [1, 2]",
        "[]  [1, 2, 3]",
    ),
    _one("uniqueItems", {"type": "array", "items": _A, "uniqueItems": True}, "[1, 2]", ""),
    _one(
        "uniqueItems of few values",
        {"type": "array", "items": {"enum": ["a", "b", None]}, "uniqueItems": True},
        '[]  ["b", "a"]  [null, "a", "b"]',
        '["a", "a"]  ["b", null, "b"]',
    ),
    _one(
        "contains, minContains, maxContains",
        {"type": "array", "items": _A, "contains": {"minimum": 7}, "minContains": 2, "maxContains": 3},
        "[7, 8]  [1, 9, 2, 7, 3, 8, 4]",
        "[]  [7]  [1, 7, 2]  [7, 7, 7, 7]",
    ),
    _one("contains what cannot be negated", {"items": _B, "contains": {"pattern": "^a"}}, '["b", "ab"]', ""),
    _one(
        "properties, required",
        {"properties": {"a": _A, "b": _B}, "required": ["b"]},
        '{"b": ""}  {"a": 1, "b": ""}',
        '{"a": 1}  {"b": 1}',
    ),
    _one(
        "additionalProperties: false",
        {"properties": {"a": _A}, "additionalProperties": False},
        '{}  {"a": 1}',
        '{"b": 1}',
    ),
    _one(
        "additionalProperties: a schema",
        {"properties": {"a": _A}, "additionalProperties": _B},
        '{"a": 1, "c": ""}',
        '{"c": 1}  {"a": ""}',
    ),
    _one(
        "patternProperties",
        {"patternProperties": {"^x-": _A}, "additionalProperties": False},
        '{}  {"x-a": 1}',
        '{"a": 1}  {"x-a": ""}',
    ),
    _one(
        "propertyNames",
        {"type": "object", "propertyNames": {"pattern": "^[a-z]$"}, "additionalProperties": _A},
        '{"a": 1}',
        '{"aa": 1}',
    ),
    _one(
        "maxProperties of a map", {"additionalProperties": _A, "maxProperties": 1}, '{}  {"a": 1}', '{"a": 1, "b": 2}'
    ),
    _one("minProperties, one", {"additionalProperties": _A, "minProperties": 1}, '{"a": 1}', "{}"),
    _one("minProperties with optional ones", {"properties": {"a": _A, "b": _B}, "minProperties": 1}, '{"a": 1}', ""),
    _one("anyOf", {"anyOf": [_A, {"type": "string", "maxLength": 1}]}, '1  "a"', '"ab"  null'),
    _one(
        "oneOf, told apart",
        {"oneOf": [{"properties": {"k": {"const": k}}, "required": ["k"]} for k in "ab"]},
        '{"k": "a"}',
        '{"k": "c"}',
    ),
    _one(
        "oneOf, overlapping scalars",
        {"oneOf": [{"type": "number"}, {"type": "integer"}, {"enum": ["a", "b"]}, {"const": "b"}]},
        '1.5  "a"',
        '1  -20  "b"',
    ),
    _one(
        "oneOf, overlapping objects", {"oneOf": [{"properties": {"a": _A}}, {"properties": {"b": _B}}]}, '{"a": 1}', ""
    ),
    _one(
        "allOf",
        {"allOf": [{"properties": {"a": _A}}, {"properties": {"b": _B}, "required": ["a", "b"]}]},
        '{"a": 1, "b": ""}',
        '{"a": 1}',
    ),
    _one("not: types, values", {"type": ["string", "null"], "not": {"type": "null"}}, '"a"', "null"),
    _one(
        "not: strings, numbers",
        {"items": {"type": ["string", "number"], "not": {"enum": ["ab", 7, 0.5]}}},
        '["a", "abc"]  [70, 0.25, 7.5]',
        '["ab"]  [7]  [0.5]',
    ),
    _one("not, anything else", {"type": "string", "not": {"pattern": "^a"}}, '"b"', ""),
    _one(
        "$ref, $defs, recursion",
        {"$ref": "#/$defs/tree", "$defs": {"tree": _TREE}},
        '{"of": [{"of": []}]}',
        '{"of": [1]}  {}',
    ),
    _one(
        "$ref to a document handed in",
        bundled({"items": {"$ref": "https://example.com/a.json"}}, {"https://example.com/a.json": _A}),
        "[1]",
        '["a"]  [{}]',
    ),
    _one("$dynamicRef", _DYNAMIC, '["a"]', "[1]"),
    _one("$ref to another document", {"$ref": "https://example.com/a.json"}, "1  {}", ""),
    _one(
        "not: bounds, required, properties",
        {"properties": {"a": _A, "b": {"type": "integer", "not": {"minimum": 3}}}, "not": {"required": ["a"]}},
        '{}  {"b": 2}',
        '{"a": 1}  {"b": 3}',
    ),
    _one(
        "if, then, else",
        {
            "properties": {"kind": {"enum": ["a", "b"]}, "a": _A},
            "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
            "then": {"required": ["a"]},
        },
        '{"kind": "a", "a": 1}  {"kind": "b"}  {}',
        '{"kind": "a"}  {"kind": "c"}',
    ),
    _one(
        "if that cannot be negated", {"type": "string", "if": {"pattern": "a"}, "then": {"minLength": 3}}, '"abc"', ""
    ),
    _one(
        "dependentRequired, dependentSchemas",
        {"properties": {"a": _A, "b": _B}, "dependentRequired": {"a": ["b"]}},
        '{"b": ""}  {"a": 1, "b": ""}',
        '{"a": 1}',
    ),
    _one("unevaluatedProperties: false", {"type": "object", "unevaluatedProperties": False}, "{}", '{"a": 1}'),
    _one(
        "unevaluatedItems",
        {"allOf": [{"prefixItems": [_A]}], "unevaluatedItems": False},
        "[]  [1]",
        '[1, 2]  ["a"]',
    ),
    _one(
        "title, description, default …", {"title": "T", "description": "D", "default": 1, "type": "integer"}, "2", '"a"'
    ),
)


def main() -> None:
    """Write the page to where it is published; the section of the test suite is left as it is."""
    _, heading, rest = PAGE.read_text(encoding="utf-8").partition(SUITE)
    PAGE.write_text(text() + heading + rest, encoding="utf-8")


def text() -> str:
    """Return the page up to the section that `schema_suite` writes."""
    return OPENING + "".join(_rows())


def losses(keyword: Keyword, values: Values) -> tuple[Unsupported, ...]:
    """Return what of the example is not enforced where JSON values are handed over as `values`."""
    return expand(Grammar(JsonValue(keyword.schema)), values).unsupported


def _read_natively(keyword: Keyword) -> bool:
    try:
        return reads_exactly(write_schema(read_schema(keyword.schema)))
    except Unwritable:
        return False


def _rows() -> Iterator[str]:
    for keyword in KEYWORDS:
        gbnf, native = losses(keyword, Values.SPELLED), losses(keyword, Values.NATIVE)
        exact = _read_natively(keyword)
        spelled = schema_grammar(keyword.schema).unsupported
        verdicts = ["wider" if lost else "✓" for lost in (gbnf, native, native if exact else spelled)]
        reasons = "; ".join(dict.fromkeys(item.reason for item in (*gbnf, *native)))
        example = json.dumps(keyword.schema, ensure_ascii=False).replace("|", "\\|")
        yield f"| {' | '.join([keyword.name, f'`{example}`', *verdicts, reasons])} |\n"


if __name__ == "__main__":
    main()
