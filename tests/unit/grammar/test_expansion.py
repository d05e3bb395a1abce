"""Calls are written out for each tool, in every codec."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender import GrammarError, Tool
from unrender.answer.build import calls_in_syntax
from unrender.answer.encode import encode_calls
from unrender.dialects.sample import sample_text
from unrender.format import Arguments, CallSyntax, Codec, Containers, Format, Slot, Strings, Typing, Words
from unrender.grammar import Grammar, Node
from unrender.grammar.expansion import Values, expand
from unrender.nodes import JsonValue, Until, walk

NAME, ARGUMENTS, KEY, VALUE, TYPE, ID, INDEX = (
    Slot.NAME,
    Slot.ARGUMENTS,
    Slot.KEY,
    Slot.VALUE,
    Slot.TYPE,
    Slot.ID,
    Slot.INDEX,
)
TAGGED = ("<p=", KEY, ">", VALUE, "</p>")
TYPES = {"city": {"type": "string"}, "days": {"type": "integer"}, "on": {"type": "boolean"}, "tags": {"type": "array"}}
SAMPLE = {"city": "Rome", "days": 3, "on": True, "tags": [1, "a", None]}
CODECS = {
    "json": Arguments(),
    "python": Arguments(codec=Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON)),
    "raw": Arguments(entry=TAGGED, codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)),
    "raw, python words": Arguments(
        entry=TAGGED,
        codec=Codec(strings=Strings.RAW, words=Words.PYTHON, containers=Containers.PYTHON, typed_by=Typing.SCHEMA),
    ),
    "keyword arguments": Arguments(
        start="(",
        end=")",
        entry=(KEY, "=", VALUE),
        separator=", ",
        codec=Codec(strings=Strings.PYTHON, words=Words.PYTHON, containers=Containers.PYTHON),
    ),
    "quoted, bare": Arguments(
        start="{",
        end="}",
        entry=(KEY, ":", VALUE),
        separator=",",
        codec=Codec(
            strings=Strings.QUOTED,
            string_open="<|",
            string_close="|>",
            words=Words.PYTHON_NULL,
            containers=Containers.BARE,
            item_separator=",",
            key_separator=":",
        ),
    ),
    "typed by attribute": Arguments(
        entry=("<p ", KEY, " ", TYPE, ">", VALUE, "</p>"),
        codec=Codec(
            strings=Strings.RAW,
            typed_by=Typing.ATTRIBUTE,
            types=(("string", "text"), ("number", "num"), ("boolean", "bool"), ("array", "list")),
        ),
    ),
    "nested tags": Arguments(
        entry=("<", KEY, ">", VALUE, "</", KEY, ">"),
        codec=Codec(strings=Strings.RAW, containers=Containers.XML, typed_by=Typing.SCHEMA, item_tag="item"),
    ),
}


def expanded(arguments: Arguments, parameters, function=("<", NAME, ">", ARGUMENTS, "</call>"), values=Values.SPELLED):
    syntax = CallSyntax(function=function, arguments=arguments)
    tools = (Tool(name="f", parameters=parameters),)
    return expand(Grammar(replace(calls_in_syntax(Format(), syntax), tools=tools, maximum=1)), values)


def drawn(arguments: Arguments, parameters, count: int = 40) -> set[str]:
    grammar = expanded(arguments, parameters).grammar
    return {sample_text(grammar, seed) for seed in range(count)}


@pytest.mark.parametrize("codec", CODECS)
def test_a_constant_is_written_as_the_codec_writes_it(codec):
    """With every argument fixed, one text is left: what encoding the arguments gives, white space aside."""
    parameters = {
        "type": "object",
        "properties": {key: {"const": value} for key, value in SAMPLE.items()},
        "required": list(SAMPLE),
    }
    syntax = CallSyntax(function=("<", NAME, ">", ARGUMENTS, "</call>"), arguments=CODECS[codec])
    expected = encode_calls(calls_in_syntax(Format(), syntax), [("f", SAMPLE, "")])

    found = {text.replace(" ", "").replace("'", '"') for text in drawn(CODECS[codec], parameters)}

    assert expected.replace(" ", "").replace("'", '"') in found


@pytest.mark.parametrize("codec", ["raw", "typed by attribute", "nested tags"])
def test_raw_text_runs_up_to_its_marker(codec):
    """A string without quotes is all text before the literal after it."""
    grammar = expanded(CODECS[codec], {"properties": {"city": {"type": "string"}}, "required": ["city"]}).grammar

    stops = [
        node.stops for body in (grammar.root, *grammar.rules.values()) for node in walk(body) if isinstance(node, Until)
    ]

    assert stops in ([("</p>",)], [("</",)])


def test_raw_text_keeps_clear_of_the_marker_without_its_layout():
    """The parser ends a value at the marker even when the line break before it is missing."""
    arguments = Arguments(entry=("<p=", KEY, ">\n", VALUE, "\n</p>\n"), codec=Codec(strings=Strings.RAW))
    grammar = expanded(arguments, {"properties": {"a": {"type": "string"}}, "required": ["a"]}).grammar

    stops = {node.stops for body in grammar.rules.values() for node in walk(body) if isinstance(node, Until)}

    assert stops == {("\n</p>\n", "</p>")}


def test_optional_arguments_may_be_left_out():
    """Required arguments are always there, the others sometimes."""
    texts = drawn(CODECS["raw"], {"properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "required": ["b"]}, 80)

    assert all("<p=b>1</p>" in text for text in texts)
    assert {"<p=a>" in text for text in texts} == {True, False}


def test_arguments_are_in_the_declared_or_the_sorted_order():
    """Templates write the caller's order, or sort it."""
    parameters = {"properties": {"b": {"const": 1}, "a": {"const": 2}, "c": {"const": 3}}, "required": ["a", "b", "c"]}
    entries = {"a": "<p=a>2</p>", "b": "<p=b>1</p>", "c": "<p=c>3</p>"}

    assert drawn(CODECS["raw"], parameters) == {
        f"<f>{''.join(entries[key] for key in order)}</call>" for order in ("bac", "abc")
    }


def test_no_arguments_are_written_as_the_format_says():
    """What stands for no arguments at all is not mixed with any."""
    arguments = Arguments(entry=TAGGED, codec=Codec(strings=Strings.RAW), start="[", end="]", when_empty="-")

    assert drawn(arguments, {"properties": {}}) == {"<f>-</call>"}
    assert drawn(arguments, {"properties": {"a": {"const": 1}}}) == {"<f>-</call>", "<f>[<p=a>1</p>]</call>"}


def test_a_null_that_is_not_written_is_an_absent_argument():
    """Where nulls are left out, a nullable argument is optional."""
    arguments = Arguments(entry=TAGGED, codec=Codec(strings=Strings.RAW, omits_null=True))

    texts = drawn(arguments, {"properties": {"a": {"type": ["boolean", "null"]}}, "required": ["a"]})

    assert texts == {"<f></call>", "<f><p=a>true</p></call>", "<f><p=a>false</p></call>"}


def test_each_type_brings_its_word():
    """Where a word says the value's type, a union is written once for each type."""
    texts = drawn(CODECS["typed by attribute"], {"properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]})

    assert texts == {"<f><p a text>x</p></call>", "<f><p a num>1</p></call>"}


def test_ids_and_counters_are_generated():
    """The slots for an id and an index hold one."""
    texts = drawn_function(("f.", NAME, ":", INDEX, "#", ID, " ", ARGUMENTS))

    assert all(text.startswith("f.f:") and text.split("#")[1].split(" ")[0] for text in texts)


def drawn_function(function) -> set[str]:
    grammar = expanded(Arguments(), {"properties": {}}, function).grammar
    return {sample_text(grammar, seed) for seed in range(10)}


@pytest.mark.parametrize(
    ("arguments", "schema", "keyword"),
    [
        (CODECS["raw"], {"properties": {"a": {"type": "string", "pattern": "^.*$"}}}, "pattern"),
        (CODECS["raw"], {"properties": {"a": {"type": "string", "maxLength": 3}}}, "maxLength"),
        (CODECS["raw"], {"properties": {"a": {"enum": ["x</p>y"]}}}, "enum"),
        (CODECS["nested tags"], {"type": "object"}, "additionalProperties"),
        (CODECS["quoted, bare"], {"properties": {"a": {"type": "string", "maxLength": 3}}}, "maxLength"),
        (CODECS["json"], {"properties": {"a": {"pattern": "^(?=a)"}}}, "pattern"),
        (CODECS["json"], {"properties": {"a": {"pattern": "("}}}, "parameters"),
        (CODECS["json"], {"properties": {"a": {"type": "string", "maxLength": 10_000}}}, "maxLength"),
    ],
)
def test_a_loss_names_the_tool_and_widens_it_alone(arguments, schema, keyword):
    """What a codec or a grammar cannot say is reported, and the call can still be written."""
    found = expanded(arguments, schema)

    assert {(item.tool, item.keyword) for item in found.unsupported} == {("f", keyword)}
    assert sample_text(found.grammar, 1).startswith("<f>")


def test_json_is_handed_over_natively_where_that_is_asked():
    """For engines that read JSON Schema, arguments stay one value with a schema."""
    grammar = expanded(Arguments(), {"properties": {"a": {"const": 1}}}, values=Values.NATIVE).grammar
    nodes: list[Node] = [node for body in grammar.rules.values() for node in walk(body)]

    assert [node.schema["properties"] for node in nodes if isinstance(node, JsonValue)] == [{"a": {"const": 1}}]


def test_tools_without_names_cannot_be_written():
    """Where any name counts as a tool, there is no grammar."""
    call = calls_in_syntax(Format(), CallSyntax(function=(NAME, ARGUMENTS)))

    with pytest.raises(GrammarError, match="needs the tools by name"):
        expand(Grammar(call), Values.SPELLED)
