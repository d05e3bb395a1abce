"""Calls written out for one tool: nodes and rules, on one line each, in every codec."""

from __future__ import annotations

from typing import Any

import pytest
from lines import grammar_lines, shape_line

from unrender.format import Arguments, Codec, Containers, Slot, Strings, Typing, Words
from unrender.grammar.call_rules import after_arguments, items_of, may_be_empty, next_arguments, of_type, type_names
from unrender.grammar.expansion import Values, expand
from unrender.messages.wire import Tool
from unrender.nodes import Call, Grammar
from unrender.schema.shapes import (
    Anything,
    Array,
    Boolean,
    Constant,
    Integer,
    Null,
    Object,
    Property,
    Reference,
    Text,
    Union,
)

NAME, ARGUMENTS, KEY, VALUE, TYPE, ID, INDEX = (
    Slot.NAME,
    Slot.ARGUMENTS,
    Slot.KEY,
    Slot.VALUE,
    Slot.TYPE,
    Slot.ID,
    Slot.INDEX,
)
TAGS = ("<", KEY, ">", VALUE, "</>")
RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
XML = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA, containers=Containers.XML, item_tag="item")
PYTHON = Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON)
BARE = Codec(strings=Strings.QUOTED, string_open="<|", string_close="|>", containers=Containers.BARE)
SINGLE = Codec(strings=Strings.SINGLE)
ATTRIBUTE = Codec(
    strings=Strings.RAW,
    typed_by=Typing.ATTRIBUTE,
    types=(("string", "text"), ("number", "num"), ("boolean", "num")),
)
TYPED = ("<", KEY, " ", TYPE, ">", VALUE, "</>")
EQUALS = (KEY, "=", VALUE)
SEVEN, STRING, NULL = {"const": 7}, {"type": "string"}, {"type": "null"}


def tagged(codec=RAW, **more):
    return Arguments(entry=TAGS, codec=codec, **more)


def needs(**properties):
    """Return parameters that are all required, but those whose names end in `_`."""
    required = [name for name in properties if not name.endswith("_")]
    own = {name.rstrip("_"): schema for name, schema in properties.items()}
    return {"type": "object", "properties": own, "required": required, "additionalProperties": False}


def lists(items=None, **more):
    return {"type": "array", **({} if items is None else {"items": items}), **more}


def written(arguments, parameters, function=(NAME, ":", ARGUMENTS), followed_by=()):
    """Return the rules of a call, those of any JSON value left out, and what is not enforced."""
    tool = Tool(name="f", parameters=parameters)
    call = Call(function=function, arguments=arguments, tools=(tool,), followed_by=followed_by)
    found = expand(Grammar(call), Values.SPELLED)
    shared = ("json-", "python-", "single-", "bare-", "object-extra")
    lines = grammar_lines(found.grammar, without=lambda name: name.startswith(shared))
    assert lines.pop("") == "$call-f"
    return lines, [f"{item.path} {item.keyword}: {item.reason}" for item in found.unsupported]


WRITTEN: list[Any] = [
    (
        tagged(when_empty="{}"),
        needs(a_=SEVEN),
        {
            "args-f-a": "'<' 'a' '>' argument:('7') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '' | '{}')",
        },
        [],
    ),
    (
        Arguments(when_empty="{}", codec=PYTHON),
        needs(a_=SEVEN),
        {
            "args-f-a": "(\"'a'\" | '\"a\"') ': ' '7'",
            "args-f": "'{' '' [$args-f-a ''] '}'",
            "call-f": "name:('f') ':' argument:($args-f | '{}')",
        },
        [],
    ),
    (
        Arguments(codec=BARE),
        needs(a={"type": "string", "maxLength": 3}),
        {
            "string": "'<|' text[|>] '|>'",
            "args-f-a": "'a' ': ' $string",
            "args-f": "'{' '' $args-f-a '' '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        ["# maxLength: an unescaped string ends at its quote, whatever comes before it"],
    ),
    (
        Arguments(),
        needs(a=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space $args-f-a $json-space '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        [],
    ),
    (
        Arguments(),
        {"type": "object"},
        {
            "args-f": "'{' $json-space [($object-extra){1, by $json-comma} $json-space] '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        [],
    ),
    (
        Arguments(start="(", end=")"),
        needs(a=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space $args-f-a $json-space '}'",
            "call-f": "name:('f') ':' argument:('(' $args-f ')')",
        },
        [],
    ),
    (
        Arguments(start="(", when_empty="()"),
        needs(a_=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space [$args-f-a $json-space] '}'",
            "call-f": "name:('f') ':' argument:('(' $args-f '' | '()')",
        },
        [],
    ),
    (
        Arguments(when_empty="{}"),
        needs(a_=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space [$args-f-a $json-space] '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        [],
    ),
    (
        Arguments(when_empty="{}", start="("),
        needs(a_=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space [$args-f-a $json-space] '}'",
            "call-f": "name:('f') ':' argument:('(' $args-f '' | '{}')",
        },
        [],
    ),
    (
        Arguments(when_empty="none"),
        needs(a=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space $args-f-a $json-space '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        [],
    ),
    (
        Arguments(when_empty="none"),
        needs(a_=SEVEN),
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space [$args-f-a $json-space] '}'",
            "call-f": "name:('f') ':' argument:($args-f | 'none')",
        },
        [],
    ),
    (
        Arguments(codec=PYTHON),
        needs(a={"const": "it"}),
        {
            "args-f-a": "(\"'a'\" | '\"a\"') ': ' (\"'it'\" | '\"it\"')",
            "args-f": "'{' '' $args-f-a '' '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        [],
    ),
    (
        tagged(SINGLE),
        needs(a={"const": "it"}),
        {
            "args-f-a": "'<' 'a' '>' argument:(\"'it'\") '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        Arguments(),
        {"anyOf": [needs(a=SEVEN), needs(b=SEVEN), {"type": "string"}]},
        {
            "args-f-a": "'\"a\"' $json-colon '7'",
            "args-f": "'{' $json-space $args-f-a $json-space '}'",
            "args-f-b": "'\"b\"' $json-colon '7'",
            "args-f-2": "'{' $json-space $args-f-b $json-space '}'",
            "call-f": "name:('f') ':' argument:($args-f | $args-f-2)",
        },
        [],
    ),
    (
        Arguments(),
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {
            "args-f": "'{' $json-space [($object-extra){1, by $json-comma} $json-space] '}'",
            "call-f": "name:('f') ':' argument:($args-f)",
        },
        ["# parameters: #/properties/a/pattern: pattern '(': expected ')' at character 1"],
    ),
    (tagged(), needs(), {"call-f": "name:('f') ':' argument:('' '' '')"}, []),
    (tagged(start="[", end="]"), needs(), {"call-f": "name:('f') ':' argument:('[' '' ']')"}, []),
    (tagged(start="[", end="]", when_empty="-"), needs(), {"call-f": "name:('f') ':' argument:('-')"}, []),
    (
        tagged(start="[", end="]", when_empty="-"),
        needs(a_=SEVEN),
        {"args-f-a": "'<' 'a' '>' argument:('7') '</>'", "call-f": "name:('f') ':' argument:('[' $args-f-a ']' | '-')"},
        [],
    ),
    (
        tagged(start="[", end="]", when_empty="-"),
        needs(a=SEVEN),
        {"args-f-a": "'<' 'a' '>' argument:('7') '</>'", "call-f": "name:('f') ':' argument:('[' $args-f-a ']')"},
        [],
    ),
    (
        tagged(start="[", end="]"),
        needs(a_=SEVEN),
        {"args-f-a": "'<' 'a' '>' argument:('7') '</>'", "call-f": "name:('f') ':' argument:('[' [$args-f-a] ']')"},
        [],
    ),
    (
        tagged(separator=";"),
        needs(a=SEVEN, b_=SEVEN, c=SEVEN),
        {
            "args-f-a": "'<' 'a' '>' argument:('7') '</>'",
            "args-f-b": "'<' 'b' '>' argument:('7') '</>'",
            "args-f-c": "'<' 'c' '>' argument:('7') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a [';' $args-f-b] ';' $args-f-c '')",
        },
        [],
    ),
    (
        tagged(separator=";"),
        needs(b=SEVEN, a=SEVEN),
        {
            "args-f-b": "'<' 'b' '>' argument:('7') '</>'",
            "args-f-a": "'<' 'a' '>' argument:('7') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-b ';' $args-f-a '' | '' $args-f-a ';' $args-f-b '')",
        },
        [],
    ),
    (
        tagged(),
        needs(a=STRING),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        needs(a={}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        needs(a={"type": ["string", "null"]}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        needs(a={"type": ["integer", "null"]}),
        {
            "args-f-a": "'<' 'a' '>' argument:($bare-json-integer | 'null') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(),
        needs(a={"enum": ["x", "y</>", None]}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        ["#/properties/a enum: the value 'y</>' contains the marker that ends it"],
    ),
    (
        tagged(),
        needs(a={"enum": ["x", "y", "x"]}),
        {"args-f-a": "'<' 'a' '>' argument:('x' | 'y') '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        needs(a={"pattern": "^[a-z]+$"}),
        {"args-f-a": "'<' 'a' '>' argument:(([a-z]){1,}) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        needs(a={"pattern": "^[a-z<>/]+$"}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        ["#/properties/a pattern: raw text ends at its marker, whatever comes before it"],
    ),
    (
        tagged(),
        needs(a={"type": "string", "minLength": 1, "maxLength": 3}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [
            "#/properties/a minLength: raw text ends at its marker, whatever comes before it",
            "#/properties/a maxLength: raw text ends at its marker, whatever comes before it",
        ],
    ),
    (
        tagged(),
        needs(a={"type": "string", "not": {"const": "x"}}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        ["#/properties/a not: raw text ends at its marker, whatever comes before it"],
    ),
    (
        tagged(),
        needs(a=lists(SEVEN)),
        {
            "args-f-a": "'[' $json-space [('7'){1, by $json-comma} $json-space] ']'",
            "args-f-a-2": "'<' 'a' '>' argument:($args-f-a) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a-2 '')",
        },
        [],
    ),
    (
        tagged(),
        needs(a={"const": [1]}, b={"const": {"k": 1}}),
        {
            "args-f-a": "'<' 'a' '>' argument:('[' $json-space '1' $json-space ']') '</>'",
            "args-f-b": "'<' 'b' '>' argument:('{' $json-space '\"k\"' $json-colon '1' $json-space '}') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '' $args-f-b '')",
        },
        [],
    ),
    (
        tagged(PYTHON),
        needs(a=lists(SEVEN), b={"type": "object", "properties": {"k": SEVEN}}),
        {
            "args-f-a": "'[' '' [('7'){1, by ', '} ''] ']'",
            "args-f-b-k": "\"'k'\" ': ' '7'",
            "args-f-b": "'{' '' [$args-f-b-k ''] '}'",
            "args-f-b-k-2": "'\"k\"' $json-colon '7'",
            "args-f-b-2": "'{' $json-space [$args-f-b-k-2 $json-space] '}'",
            "args-f-a-2": "'<' 'a' '>' argument:($args-f-a) '</>'",
            "args-f-b-3": "'<' 'b' '>' argument:($args-f-b | $args-f-b-2) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a-2 '' $args-f-b-3 '')",
        },
        [],
    ),
    (
        tagged(BARE),
        needs(a=lists(STRING), b={"type": "string", "maxLength": 3}),
        {
            "args-f-a": "'[' '' [($bare-string){1, by ', '} ''] ']'",
            "string": "'<|' text[|>] '|>'",
            "args-f-a-2": "'<' 'a' '>' argument:($args-f-a) '</>'",
            "args-f-b": "'<' 'b' '>' argument:($string) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a-2 '' $args-f-b '')",
        },
        ["#/properties/b maxLength: an unescaped string ends at its quote, whatever comes before it"],
    ),
    (
        Arguments(entry=TYPED, codec=ATTRIBUTE),
        needs(a={"type": ["string", "integer", "boolean", "null"]}),
        {
            "args-f-a": "'<' 'a' ' ' 'text' '>' argument:(text[</>]) '</>' | '<' 'a' ' ' 'num' '>' argument:($bare-json-integer | $bare-json-boolean) '</>' | '<' 'a' ' ' 'null' '>' argument:('null') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        Arguments(entry=TYPED, codec=ATTRIBUTE),
        needs(a={}),
        {
            "args-f-a": "'[' $json-space [($json-value){1, by $json-comma} $json-space] ']'",
            "args-f-a-2": "'{' $json-space [($object-extra){1, by $json-comma} $json-space] '}'",
            "args-f-a-3": "'<' 'a' ' ' 'text' '>' argument:(text[</>]) '</>' | '<' 'a' ' ' 'num' '>' argument:($bare-json-number | $bare-json-boolean) '</>' | '<' 'a' ' ' 'null' '>' argument:('null') '</>' | '<' 'a' ' ' 'array' '>' argument:($args-f-a) '</>' | '<' 'a' ' ' 'object' '>' argument:($args-f-a-2) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a-3 '')",
        },
        [],
    ),
    (
        Arguments(entry=TYPED, codec=RAW),
        needs(a=SEVEN),
        {"args-f-a": "'<' 'a' ' ' '' '>' argument:('7') '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        Arguments(entry=("<", KEY, ">", VALUE, "</", KEY, ">"), codec=RAW),
        needs(a=STRING),
        {
            "args-f-a": "'<' 'a' '>' argument:(text[</]) '</' 'a' '>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        Arguments(entry=("<", KEY, ">\n", VALUE, "\n</>\n"), codec=RAW),
        needs(a=STRING),
        {
            "args-f-a": "'<' 'a' '>\\n' argument:(text[\n</>\n </>]) '\\n</>\\n'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        Arguments(entry=EQUALS, separator=", ", end=")", codec=RAW),
        needs(a=STRING, b_=STRING),
        {
            "args-f-a": "'a' '=' argument:(text[, )])",
            "args-f-b": "'b' '=' argument:(text[, )])",
            "call-f": "name:('f') ':' argument:('' $args-f-a [', ' $args-f-b] ')')",
        },
        [],
    ),
    (
        Arguments(entry=EQUALS, separator=", ", codec=RAW),
        needs(a=STRING),
        {"args-f-a": "'a' '=' argument:(text[,a=])", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(Codec(strings=Strings.RAW, omits_null=True)),
        needs(a={"type": ["boolean", "null"]}, b=NULL, c={"const": None}, d=SEVEN),
        {
            "args-f-a": "'<' 'a' '>' argument:($bare-json-boolean) '</>'",
            "args-f-d": "'<' 'd' '>' argument:('7') '</>'",
            "args-f-more": "'' $args-f-d",
            "call-f": "name:('f') ':' argument:('' ($args-f-a $args-f-more | $args-f-d) '')",
        },
        [],
    ),
    (
        tagged(Codec(strings=Strings.RAW, omits_null=True)),
        needs(a={"type": ["integer", "string"]}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(),
        {"type": "object", "additionalProperties": {"const": 1}},
        {
            "args-f-extra": "'<' [0-9A-Z_a-z] [0-9A-Z_a-z]* '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('' [($args-f-extra){1, by ''}] '')",
        },
        [],
    ),
    (
        tagged(),
        {
            "type": "object",
            "properties": {"a": SEVEN},
            "additionalProperties": {"const": 1},
            "required": ["a"],
            "minProperties": 2,
            "maxProperties": 3,
        },
        {
            "args-f-a": "'<' 'a' '>' argument:('7') '</>'",
            "args-f-extra": "'<' ([0-9A-Z_b-z] [0-9A-Z_a-z]* | 'a' [0-9A-Z_a-z] [0-9A-Z_a-z]*) '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a ('' $args-f-extra){1,2} '')",
        },
        [],
    ),
    (
        tagged(separator=";"),
        {"type": "object", "properties": {"a": SEVEN}, "additionalProperties": {"const": 1}},
        {
            "args-f-a": "'<' 'a' '>' argument:('7') '</>'",
            "args-f-extra": "'<' ([0-9A-Z_b-z] [0-9A-Z_a-z]* | 'a' [0-9A-Z_a-z] [0-9A-Z_a-z]*) '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('' [$args-f-a (';' $args-f-extra){0,} | ($args-f-extra){1, by ';'}] '')",
        },
        [],
    ),
    (
        tagged(when_empty="-"),
        {"type": "object", "additionalProperties": {"const": 1}, "minProperties": 1},
        {
            "args-f-extra": "'<' [0-9A-Z_a-z] [0-9A-Z_a-z]* '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('' ($args-f-extra){1, by ''} '')",
        },
        [],
    ),
    (
        tagged(start="[", end="]"),
        {"type": "object", "additionalProperties": {"const": 1}, "minProperties": 1},
        {
            "args-f-extra": "'<' [0-9A-Z_a-z] [0-9A-Z_a-z]* '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('[' ($args-f-extra){1, by ''} ']')",
        },
        [],
    ),
    (
        tagged(start="[", end="]"),
        {"type": "object", "additionalProperties": {"const": 1}},
        {
            "args-f-extra": "'<' [0-9A-Z_a-z] [0-9A-Z_a-z]* '>' argument:('1') '</>'",
            "call-f": "name:('f') ':' argument:('[' [($args-f-extra){1, by ''}] ']')",
        },
        [],
    ),
    (
        Arguments(entry=("<", KEY, ">", VALUE, "</", KEY, ">"), codec=RAW),
        {"type": "object", "additionalProperties": {"const": 1}},
        {"call-f": "name:('f') ':' argument:('' '' '')"},
        ["# additionalProperties: the argument's name is written twice, and may be anything"],
    ),
    (
        tagged(XML),
        needs(a=needs(k=SEVEN, l_=NULL)),
        {
            "args-f-a-k": "'<' 'k' '>' argument:('7') '</>'",
            "args-f-a-l": "'<' 'l' '>' argument:('null') '</>'",
            "args-f-a": "'<' 'a' '>' argument:($args-f-a-k ['' $args-f-a-l]) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a=needs(k_=SEVEN)),
        {
            "args-f-a-k": "'<' 'k' '>' argument:('7') '</>'",
            "args-f-a": "'<' 'a' '>' argument:([$args-f-a-k]) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a=needs()),
        {"args-f-a": "'<' 'a' '>' argument:('') '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(XML),
        needs(a={"type": "object"}),
        {"args-f-a": "'<' 'a' '>' argument:('') '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        ["#/properties/a additionalProperties: tags are named twice, and may be anything"],
    ),
    (
        tagged(XML),
        needs(a=lists({"const": 1})),
        {
            "args-f-a-item": "'<' 'item' '>' argument:('1') '</>'",
            "args-f-a": "'<' 'a' '>' argument:(($args-f-a-item){0,}) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a=lists({"const": 1}, minItems=2, maxItems=3)),
        {
            "args-f-a-item": "'<' 'item' '>' argument:('1') '</>'",
            "args-f-a": "'<' 'a' '>' argument:(($args-f-a-item){2,3}) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a=lists(False, prefixItems=[SEVEN, NULL])),
        {
            "args-f-a-item": "'<' 'item' '>' argument:('7') '</>'",
            "args-f-a-item-2": "'<' 'item' '>' argument:('null') '</>'",
            "args-f-a": "'<' 'a' '>' argument:($args-f-a-item $args-f-a-item-2) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a=lists({"const": 1}, prefixItems=[NULL], minItems=2, maxItems=4)),
        {
            "args-f-a-item": "'<' 'item' '>' argument:('null') '</>'",
            "args-f-a-item-2": "'<' 'item' '>' argument:('1') '</>'",
            "args-f-a": "'<' 'a' '>' argument:($args-f-a-item ($args-f-a-item-2){1,3}) '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a={"const": {"k": [1, {"l": "x"}]}}, b={"const": []}),
        {
            "args-f-a-k-item": "'<' 'item' '>' argument:('1') '</>'",
            "args-f-a-k-item-l": "'<' 'l' '>' argument:('x') '</>'",
            "args-f-a-k-item-2": "'<' 'item' '>' argument:($args-f-a-k-item-l) '</>'",
            "args-f-a-k": "'<' 'k' '>' argument:($args-f-a-k-item $args-f-a-k-item-2) '</>'",
            "args-f-a": "'<' 'a' '>' argument:($args-f-a-k) '</>'",
            "args-f-b": "'<' 'b' '>' argument:() '</>'",
            "call-f": "name:('f') ':' argument:('' $args-f-a '' $args-f-b '')",
        },
        [],
    ),
    (
        tagged(XML),
        needs(a={}),
        {"args-f-a": "'<' 'a' '>' argument:(text[</>]) '</>'", "call-f": "name:('f') ':' argument:('' $args-f-a '')"},
        [],
    ),
    (
        tagged(XML),
        {"$ref": "#/$defs/t", "$defs": {"t": needs(k_={"$ref": "#/$defs/t"}, l=lists({"$ref": "#/$defs/t"}))}},
        {
            "args-f-k-k-l-item-l": "'<' 'l' '>' argument:(($args-f-k-k-l-item){0,}) '</>'",
            "args-f-k-k-l-item-more": "'' $args-f-k-k-l-item-l",
            "args-f-k-k-l-item": "'<' 'item' '>' argument:($args-f-k-k $args-f-k-k-l-item-more | $args-f-k-k-l-item-l) '</>'",
            "args-f-k-k": "'<' 'k' '>' argument:($args-f-k-k $args-f-k-k-l-item-more | $args-f-k-k-l-item-l) '</>'",
            "args-f-k": "'<' 'k' '>' argument:($args-f-k-k $args-f-k-k-l-item-more | $args-f-k-k-l-item-l) '</>'",
            "call-f": "name:('f') ':' argument:('' ($args-f-k $args-f-k-k-l-item-more | $args-f-k-k-l-item-l) '')",
        },
        [],
    ),
]
"""How arguments are written, the tool's parameters, the rules, and what is not enforced."""


@pytest.mark.parametrize(("arguments", "parameters", "lines", "losses"), WRITTEN)
def test_a_call_is_written_out(arguments, parameters, lines, losses):
    """Entries, lists, nothing at all: each as the codec has it; what it cannot say is reported."""
    assert written(arguments, parameters) == (lines, losses)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ((NAME, ARGUMENTS), "name:('f') argument:($args-f)"),
        (("<", ID, ">", NAME), "'<' id:([0-9A-Z_a-z]{1,64}) '>' name:('f')"),
        ((INDEX, ":", Slot.ANY, NAME), "('0' | [1-9] [0-9]{0,3}) ':' '' name:('f')"),
        ((), ""),
    ],
)
def test_a_skeleton_is_filled(function, line):
    """Names, ids and counters are generated; what says nothing is left out."""
    assert written(Arguments(), needs(a=SEVEN), function)[0]["call-f"] == line


@pytest.mark.parametrize(
    ("arguments", "function", "followed_by", "ends"),
    [
        (Arguments(end=")"), (NAME, ARGUMENTS, "</f>"), ("</c>",), (")", "</f>")),
        (Arguments(end="\n"), (NAME, ARGUMENTS, " </f> "), ("</c>",), ("</f>",)),
        (Arguments(), (NAME, ARGUMENTS, "\n"), ("\n</c>", " "), ("</c>",)),
        (Arguments(), (NAME, ARGUMENTS, ID), ("</c>", "<c>"), ("</c>", "<c>")),
        (Arguments(), (NAME, ARGUMENTS), (), ()),
        (Arguments(end="!"), (NAME,), ("x",), ("!",)),
        (Arguments(), (NAME,), ("x",), ("x",)),
    ],
)
def test_what_may_follow_the_last_argument(arguments, function, followed_by, ends):
    """What ends the arguments and the function; where both are layout alone, what follows the call."""
    call = Call(function=function, arguments=arguments, tools=None, followed_by=followed_by)

    assert after_arguments(call) == ends


def shape_of(*names, extra=()):
    return Object(properties=tuple(Property(name, Null()) for name in names), extra=extra)


OPEN = Arguments(entry=EQUALS, codec=RAW, separator="\n; ")
ANY_KEY = ((Text(), Null()),)


@pytest.mark.parametrize(
    ("arguments", "objects", "texts"),
    [
        (OPEN, [shape_of("a", "b")], (";a=", ";b=")),
        (OPEN, [shape_of("a"), shape_of("a", "c")], (";a=", ";c=")),
        (OPEN, [shape_of("a", extra=ANY_KEY)], (";",)),
        (OPEN, [shape_of("a"), shape_of(extra=ANY_KEY)], (";",)),
        (OPEN, [shape_of()], (";",)),
        (OPEN, [shape_of(*map(str, range(16)))], tuple(f";{name}=" for name in range(16))),
        (OPEN, [shape_of(*map(str, range(17)))], (";",)),
        (Arguments(entry=EQUALS, codec=RAW, separator="\n"), [shape_of("a")], ("\na=",)),
        (Arguments(entry=EQUALS, codec=RAW), [shape_of("a")], ("a=",)),
        (Arguments(entry=EQUALS, codec=RAW), [shape_of()], ()),
        (Arguments(entry=(KEY, VALUE), codec=RAW, separator=";"), [shape_of("a")], (";a",)),
        (Arguments(entry=("<", KEY, ">", VALUE), codec=RAW, separator=";"), [shape_of("a")], (";<a>",)),
        (Arguments(entry=EQUALS, separator=";"), [shape_of("a")], (";",)),
        (Arguments(entry=EQUALS, codec=RAW, separator=";", end=")"), [shape_of("a")], (";",)),
        (tagged(separator=";"), [shape_of("a")], (";",)),
        (tagged(), [shape_of("a")], ()),
    ],
)
def test_what_begins_another_argument(arguments, objects, texts):
    """Where nothing closes a value: what is between two, with the names that may come, if these are known and few."""
    assert next_arguments(arguments, objects) == texts


MANY = Array(items=Null())


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        (Integer(), ["number"]),
        (Union((Constant("1"), Text(), Null(), Boolean())), ["string", "number", "boolean", "null"]),
        (Union((Object(), Array())), ["array", "object"]),
        (Anything(), ["string", "number", "boolean", "null", "array", "object"]),
        (Reference("r"), ["array"]),
    ],
)
def test_types_are_named_as_formats_do(shape, names):
    """In one order; an integer is a number."""
    assert type_names(shape, {"r": MANY}) == names


def test_any_value_of_a_type():
    """Anything becomes all values of the type; a shape that says more stays."""
    kinds = ("string", "number", "boolean", "null", "array", "object")

    assert [shape_line(of_type(Anything(), kind)) for kind in kinds] == [
        "string",
        "number",
        "boolean",
        "null",
        "[any*]",
        "{(string): any}",
    ]
    assert of_type(Null(), "string") == Null()


def test_small_pieces_of_calls():
    """Items of what is not a list, and objects that may be empty."""
    must = Object(properties=(Property("a", Null(), True),))

    assert (items_of([1]), items_of({"a": 1}), items_of("ab")) == ([1], [], [])
    assert [may_be_empty(shape) for shape in (Object(), must, Object(extra=ANY_KEY, minimum=1), shape_of("a"))] == [
        True,
        False,
        False,
        True,
    ]
