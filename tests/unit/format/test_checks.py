"""Invariants: a Format that cannot be parsed, written and told apart cannot exist, and the error names the field."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from properties.families import ARRAY, FAMILIES, JSON_WITH_IDS, REQUEST, TAG_AND_JSON, TAGGED

from unrender.errors import FormatError
from unrender.format import Format, TurnTexts
from unrender.limits import MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_TEXT
from unrender.parser.streaming import Parser

SLOT = {name: {"slot": name} for name in ("name", "arguments", "id", "key", "value", "type")}
TAG: dict[str, Any] = TAG_AND_JSON.format.to_dict()["tools"]
RAW: dict[str, Any] = TAGGED.format.to_dict()["tools"]
NATIVE: dict[str, Any] = ARRAY.format.to_dict()["tools"]
IDS: dict[str, Any] = JSON_WITH_IDS.format.to_dict()["tools"]
THINK = {"mode": "tag_based", "start": "<think>", "end": "</think>"}


def tools(base: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {"tools": {**base, **changed}}


def entry(*parts: Any, **codec: Any) -> dict[str, Any]:
    return tools(RAW, arguments={"entry": list(parts), "codec": {**RAW["arguments"]["codec"], **codec}})


def typed(**words: str) -> dict[str, Any]:
    types = [["string", "s"], *([kind, "n"] for kind in ("number", "boolean", "null", "object", "array"))]
    return {"typed_by": "attribute", "types": [[kind, words.get(kind, word)] for kind, word in types]}


TYPED = ("<p ", SLOT["key"], " t=", SLOT["type"], ">", SLOT["value"], "</p>")

OPTION = [" --", SLOT["key"], "=", SLOT["value"]]
UNCLOSED: dict[str, Any] = {
    "call_start": "",
    "call_end": "",
    "section_end": "",
    "separator": "\n",
    "function": ["$ ", SLOT["name"], SLOT["arguments"]],
}

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    # Texts and counts.
    "long marker": ({"turn": {"end": "x" * (MAX_MARKER + 1)}}, "format.turn.end"),
    "many words": (tools(TAG, call_start="a " * MAX_MARKER), "format.tools.call_start"),
    "long layout": ({"turn": {"end": "\n" * (MAX_LAYOUT + 1) + "<e>"}}, "format.turn.end"),
    "nothing but layout": ({"turn": {"content_to_tools": " " * (MAX_LAYOUT + 1)}}, "format.turn.content_to_tools"),
    "surrogate": ({"turn": {"end": "\ud800"}}, "format.turn.end"),
    "end of a text in C": ({"turn": {"end": "<\0>"}}, "format.turn.end: .*U\\+0000 is reserved"),
    "mark of the sampler": ({"turn": {"end": "<\ufdd0>"}}, "format.turn.end"),
    "stand-in of the parser": ({"ignored": ["\U0010f000"]}, r"format.ignored\[0\]"),
    "many headers": ({"turn": {"headers": ["<h>"] * (MAX_ITEMS + 1)}}, "format.turn.headers"),
    "many spellings": ({"spellings": [{"marker": "<t>", "others": ["x"] * 20_000}]}, r"format.spellings\[0\].others"),
    "many markers": ({"preserved_tokens": [f"<t{i}>" for i in range(100_000)]}, "format.preserved_tokens"),
    "much text": ({"ignored": [f"{i}" * 300 for i in range(100, 120)]}, f"format: .* {MAX_TEXT} characters"),
    "long reason": (tools(TAG, why="x" * 10_000), "format.tools.why"),
    # Turn, reasoning, content.
    "blank header": ({"turn": {"headers": [" "]}}, r"format.turn.headers\[0\]"),
    "blank end of turn": ({"turn": {"ends": ["\n"]}}, r"format.turn.ends\[0\]"),
    "blank closer": ({"reasoning": {**THINK, "end": "\n"}}, "format.reasoning.end: expected a marker .* found '.n'"),
    "no closer": ({"reasoning": {**THINK, "end": ""}}, "format.reasoning.end"),
    "no opener": ({"reasoning": {**THINK, "start": ""}}, "format.reasoning.start"),
    "delimiter with opener": ({"reasoning": {**THINK, "mode": "delimiter"}}, "format.reasoning.start"),
    "empty form without closer": ({"reasoning": {**THINK, "empty": "<none>"}}, "format.reasoning.empty"),
    "empty form of one character": (
        {"reasoning": {**THINK, "end": "|", "empty": "|"}},
        "format.reasoning.empty: expected '<think>' first",
    ),
    "prompt that closes with one character": (
        {"reasoning": {**THINK, "end": "|"}, "turn": {"prefill_no_thinking": "|\n"}},
        "format.turn.prefill_no_thinking: expected '<think>' first",
    ),
    "reasoning of no mode": ({"reasoning": {**THINK, "mode": "none"}}, "format.reasoning.mode"),
    "no calls to hold": ({"reasoning": {**THINK, "holds_calls": True}}, "format.reasoning.holds_calls"),
    "blank wrapper": ({"content": {"mode": "always_wrapped", "start": " "}}, "format.content.start"),
    "blank end of wrapper": ({"content": {"mode": "always_wrapped", "start": "<c>", "end": " "}}, "format.content.end"),
    "wrapper of no mode": ({"content": {"start": "<c>"}}, "format.content.mode"),
    "spelling of nothing": ({"spellings": [{"marker": "", "others": ["x"]}]}, r"format.spellings\[0\].marker"),
    "blank spelling": ({"spellings": [{"marker": "<t>", "others": [" "]}]}, r"format.spellings\[0\].others\[0\]"),
    "blank ignored": ({"ignored": [" "]}, r"format.ignored\[0\]"),
    # Skeletons.
    "no function": (tools(TAG, function=[]), "format.tools.function"),
    "no name": (tools(TAG, function=["<f>", SLOT["arguments"]]), "format.tools.function: expected the slot `name`"),
    "no arguments": (tools(TAG, function=["<f>", SLOT["name"]]), "format.tools.function: .*`arguments`"),
    "arguments twice": (tools(TAG, function=["<f>", SLOT["name"], *["(", SLOT["arguments"]] * 2]), "found it 2 times"),
    "arguments first": (tools(TAG, function=["<f>", SLOT["arguments"], "|", SLOT["name"]]), "before `arguments`"),
    "slots that touch": (tools(TAG, function=["<f>", SLOT["id"], SLOT["name"], ">", SLOT["arguments"]]), r"function\[2\]"),
    "key in a function": (tools(TAG, function=["<f>", SLOT["key"], "=", SLOT["value"]]), r"function\[1\]"),
    "two texts": (tools(TAG, function=["<f", ">", SLOT["name"], ">", SLOT["arguments"]]), r"function\[1\]"),
    "empty text": (tools(TAG, function=["", SLOT["name"], ">", SLOT["arguments"]]), r"function\[0\]"),
    "many parts": (tools(TAG, function=["x", SLOT["name"]] * 30 + ["y", SLOT["arguments"]]), "at most 32 parts"),
    "id parts out of range": (tools(TAG, id_parts=[5, -100]), "format.tools.id_parts"),
    "id parts with arguments": (tools(TAG, id_parts=[0, 4]), "format.tools.id_parts"),
    "index out of range": (tools(TAG, index_start=-1), "format.tools.index_start"),
    "calls of no mode": ({"tools": {"call_start": "<t>"}}, "format.tools.mode"),
    # Arguments.
    "arguments in an entry": (entry("<p>", SLOT["arguments"]), r"entry\[1\]"),
    "values around keys": (entry(SLOT["value"], "=", SLOT["key"], ";", SLOT["value"], "=", SLOT["key"]), "arguments.entry"),
    "entry without key": (entry("<p>", SLOT["value"], "</p>"), "arguments.entry: expected the slot `key`"),
    "entry without value": (entry("<p>", SLOT["key"], "</p>"), "arguments.entry: expected the slot `value`"),
    "entry in JSON": (tools(TAG, arguments=RAW["arguments"]), "arguments.entry: expected none in mode `tag_with_json`"),
    "no entry": (tools(RAW, arguments={}), "arguments.entry: expected a skeleton in mode `tag_with_tagged`"),
    "start in JSON": (tools(TAG, arguments={"start": "("}), "arguments.start"),
    "nothing after raw text": (
        tools(RAW, arguments={**RAW["arguments"], "entry": [SLOT["key"], "=", SLOT["value"]]}),
        "arguments.entry: expected a marker after the value",
    ),
    "white space alone around the key of raw text": (
        tools(RAW, arguments={**RAW["arguments"], "entry": ["\n", SLOT["key"], " ", SLOT["value"]]}),
        "arguments.entry: expected a marker before or after the key",
    ),
    "no end and no opener": (
        tools(RAW, arguments={**RAW["arguments"], "start": " ", "entry": OPTION[1:]}, **UNCLOSED),
        "arguments.end: expected a marker that ends the arguments",
    ),
    "an opener that begins the next call": (
        tools(RAW, arguments={**RAW["arguments"], "entry": [" $ ", *OPTION[1:]]}, **UNCLOSED),
        r"arguments.entry\[0\]: expected another beginning than '\$'",
    ),
    "nothing before the next call": (
        tools(
            RAW,
            arguments={**RAW["arguments"], "entry": OPTION, "when_empty": "{}"},
            **{**UNCLOSED, "function": UNCLOSED["function"][1:]},
        ),
        "arguments.entry: expected a marker before a call that follows another",
    ),
    "texts around arguments that are never left out": (tools(TAG, arguments={"start": "("}), "arguments.start"),
    "texts around the arguments of an object": (
        tools(NATIVE, arguments={"start": "(", "when_empty": ""}),
        "arguments.start: expected nothing, since the arguments are in a JSON object",
    ),
    "strings unlike containers": (tools(TAG, arguments={"codec": {"strings": "python"}}), "codec.strings"),
    "quotes without text": (entry(*RAW["arguments"]["entry"], strings="quoted", typed_by="syntax"), "codec.string_open"),
    "text for no quotes": (entry(*RAW["arguments"]["entry"], string_open="<"), "codec.string_open"),
    "raw text typed by syntax": (entry(*RAW["arguments"]["entry"], typed_by="syntax"), "codec.typed_by"),
    "attribute without slot": (entry(*RAW["arguments"]["entry"], **typed()), "arguments.entry: expected the slot `type`"),
    "attribute without words": (entry(*TYPED, typed_by="attribute"), "codec.types"),
    "word with a space": (entry(*TYPED, **typed(string="a b")), r"codec.types\[0\]"),
    "word for two": (entry(*TYPED, **typed(object="s")), r"codec.types\[4\]"),
    "tags without names": (entry("<p>", SLOT["key"], ">", SLOT["value"], "</p>", containers="xml", item_tag="i"), "after the value"),
    "tags without item": (entry("<", SLOT["key"], ">", SLOT["value"], "</", SLOT["key"], ">", containers="xml"), "item_tag"),
    "indent out of range": (tools(TAG, arguments={"codec": {"indent": 10**9}}), "codec.indent"),
    "odd separator": (tools(TAG, arguments={"codec": {"item_separator": ";"}}), "codec.item_separator"),
    # Markers against each other.
    "separator is closer": (tools(TAG, call_end=";", separator="; "), "format.tools.separator"),
    "end of all calls is one call's opener": (
        tools(TAG, section_start="<cs>", call_start="<call>", section_end="<call>"),
        "format.tools.section_end: .*tools.call_start",
    ),
    "end of reasoning begins content": (
        {"reasoning": THINK, "content": {"mode": "always_wrapped", "start": "</think>"}},
        "format.content.start: .*reasoning.end",
    ),
    "equal markers, closed only once": (
        {"reasoning": {**THINK, "start": "~~", "end": "~~", "empty": "~~"}},
        "format.reasoning.empty",
    ),
    "section is call": (tools(TAG, section_start="<c>", call_start="<c>"), "format.tools.call_start"),
    "entry is closer": (tools(RAW, call_end="<parameter="), r"format.tools.arguments.entry\[0\]"),
    "reasoning is content": (
        {"reasoning": THINK, "content": {"mode": "always_wrapped", "start": "<think>"}},
        "format.content.start: .*reasoning.start",
    ),
    "content begins like reasoning": (
        {"reasoning": THINK, "content": {"mode": "always_wrapped", "start": "<think><answer>"}},
        "format.content.start: .*begin.*reasoning.start",
    ),
    "bracket of JSON is closer": (
        tools(NATIVE, section_start="<calls>", section_end="{", envelope={**NATIVE["envelope"], "array_wrapped": False}),
        r"format.tools.section_end: .*function\[0\]",
    ),
    "reasoning is a call": ({"reasoning": THINK, **tools(TAG, call_start="</think>")}, "format.tools.call_start"),
    "opener is ignored": ({"reasoning": THINK, "ignored": ["<think>"]}, r"format.ignored\[0\]"),
    "opener is a header": ({**tools(TAG, call_start="<c>"), "turn": {"headers": ["<c>\n"]}}, r"format.turn.headers\[0\]"),
    "joint of one character": ({"turn": {"content_to_tools": "|"}}, "format.turn.content_to_tools"),
    "joint that is not layout": ({"turn": {"start_to_content": "<x>"}}, "format.turn.start_to_content"),
    "prefill with a marker": (
        {"reasoning": {"mode": "delimiter", "end": "<go>"}, "turn": {"prefill": "Steps<x>"}, "ignored": ["<x>"]},
        "format.turn.prefill",
    ),
    "prefill that begins a call": ({**tools(TAG, call_start="<c>"), "turn": {"prefill": "<h><c>\n"}}, "format.turn.prefill"),
    "prefill that begins calls": (
        {**tools(TAG, section_start="<cs>"), "turn": {"prefill_no_thinking": "<cs>"}},
        "format.turn.prefill_no_thinking",
    ),
    "prefill that does not open reasoning": (
        {"reasoning": {**THINK, "mode": "forced_open"}, "turn": {"prefill": "<plan>"}},
        "format.turn.prefill: expected '<think>' of reasoning.start",
    ),
    "prefill that begins another answer": (
        {"turn": {"headers": ["<bot>\n"], "prefill_no_thinking": "<bot>Well"}},
        r"format.turn.prefill_no_thinking: .*'<bot>' of turn.headers\[0\]",
    ),
    "fence that nothing opens": (tools(TAG, call_end="```<end>"), "format.tools.call_end: .* fence"),
    "word after a word": (tools(TAG, function=["<f>", SLOT["name"], "with", SLOT["arguments"]]), r"function\[2\]"),
    "key right after a name": (
        tools(RAW, function=["<f>", SLOT["name"], SLOT["arguments"], "</f>"], arguments={**RAW["arguments"], "entry": [SLOT["key"], ": ", SLOT["value"], "</p>"]}),
        r"function\[2\]: expected no letter or digit right after `name`",
    ),
    "words after nothing": (tools(TAG, function=["<f>", SLOT["name"], ":", SLOT["arguments"], "|", SLOT["key"]]), "function"),
    "bare keys beside raw strings": (entry("<p>", SLOT["key"], "=", SLOT["value"], "</p>", containers="bare"), "codec.containers"),
    "calls that nothing shows inside reasoning": (
        {"reasoning": {**THINK, "holds_calls": True}, **tools(TAG, function=[SLOT["name"], "<a>", SLOT["arguments"], "</f>"])},
        "format.reasoning.holds_calls",
    ),
    # Envelopes.
    "no envelope": (tools(NATIVE, envelope=None), "format.tools.envelope"),
    "envelope in tags": (tools(TAG, envelope={}), "format.tools.envelope"),
    "no object": (tools(NATIVE, function=['{"name": ', SLOT["name"], ', "arguments": ', SLOT["arguments"], "}"]), "function"),
    "key twice": (tools(NATIVE, function=['{"a": "', SLOT["name"], '", "a": ', SLOT["arguments"], "}"]), "function"),
    "wrong path": (tools(NATIVE, envelope={**NATIVE["envelope"], "name_field": ["tool"]}), "envelope.name_field"),
    "path of no slot": (tools(NATIVE, envelope={**NATIVE["envelope"], "id_field": ["id"]}), "envelope.id_field"),
    "long path": (tools(NATIVE, envelope={**NATIVE["envelope"], "name_field": ["a"] * 100}), "envelope.name_field"),
    "list without bracket": (tools(NATIVE, section_start="<calls>"), "envelope.array_wrapped"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_format_that_breaks_an_invariant_cannot_exist(data: dict[str, Any], message: str) -> None:
    """What could not be read or written is refused, by the path of the field."""
    with pytest.raises(FormatError, match=message) as refused:
        Format.from_dict({"version": 2, **data})

    assert str(refused.value).startswith(refused.value.where + ": ")


def test_the_bases_of_these_cases_can_exist() -> None:
    """What is refused above is refused for what was changed."""
    bases = [*({"tools": base} for base in (TAG, RAW, NATIVE, IDS)), entry(*TYPED, **typed()), {"reasoning": THINK}]

    made = [Format.from_dict({"version": 2, **base}) for base in bases]

    assert [Format.from_dict(format.to_dict()) for format in made] == made


def test_no_way_leads_to_a_format_that_breaks_an_invariant() -> None:
    """A format is checked however it is made: by hand, by replacing a part, from JSON."""
    long = TurnTexts(end="x" * (MAX_MARKER + 1))

    with pytest.raises(FormatError, match="format.turn.end"):
        Format(turn=long)
    with pytest.raises(FormatError, match="format.turn.end"):
        replace(FAMILIES[0].format, turn=long)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"version":' * 50_000 + "1" + "}" * 50_000,
        '{"version": ' + "1" * 5_000 + "}",
        '{"version": 2, "tools": {"index_start": ' + "1" * 5_000 + "}}",
        '{"version": [[[[1]]]]}',
        '{"version": 2, "spellings": [{"marker": "x"}]}',
        '{"version": 2, "tools": {"mode": {"a": []}}}',
    ],
    ids=["deep list", "deep object", "long version", "long number", "list", "missing field", "object for a word"],
)
def test_json_that_is_no_format_is_a_format_error(text: str) -> None:
    """Neither depth nor length nor a missing field of the JSON leads to another error."""
    with pytest.raises(FormatError):
        Format.from_json(text)


@pytest.mark.slow
def test_data_of_any_depth_is_a_format_error() -> None:
    """Found data is shown in a message without reading all of it."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for data in ({"version": deep}, {"version": 2, "turn": deep}, {"version": 2, "tools": {"index_start": 10**5_000}}):
        with pytest.raises(FormatError):
            Format.from_dict(data)


def test_an_end_of_sequence_token_that_is_no_marker_is_left_out() -> None:
    """A tokenizer's token that no Format may hold breaks nothing."""
    format = FAMILIES[0].format

    assert format.ended_by("x" * 40_000) == format
    assert format.ended_by("<eos>").turn.ends == ("<eos>",)


@pytest.mark.slow
def test_the_largest_format_is_read_in_bounded_time() -> None:
    """A format of the largest markers that are allowed makes a parser, and the parser reads."""
    ignored = [f"<{i}" + "x" * (MAX_MARKER - 10) + ">" for i in range(MAX_TEXT // MAX_MARKER)]
    format = Format.from_json(json.dumps({"version": 2, "ignored": ignored}))
    parser = Parser(format, REQUEST)

    parser.feed(ignored[3] + "Hi" + ignored[7])
    parser.finish()

    assert parser.message.content == "Hi"
