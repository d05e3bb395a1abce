"""Custom tools between text and JSON, and Lark as one regular expression, judged by llguidance, which reads the same Lark."""

from __future__ import annotations

import json
import re
import time

import pytest
from engines import installed, lark_reader
from serving import chunked, corpus

from unrender.gateway.surfaces.lark_pattern import pattern_of
from unrender.gateway.surfaces.tools import InputText, custom_arguments, plain_choice, read_tools

TEXTS = ["", "plain", 'a "b" \\ c\n', "\u0000é😀", "\\u0041", "{}"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("escaped", [True, False])
def test_text_streams_out_of_json(text, escaped):
    """However the JSON is cut, the text comes out, and nothing of it is taken back."""
    arguments = json.dumps({"input": text}, ensure_ascii=escaped)
    for size in range(1, len(arguments) + 1):
        stream = InputText()
        assert "".join(stream.feed(arguments[at : at + size]) for at in range(0, len(arguments), size)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_arguments_and_input_are_inverse(text):
    """What is written for a custom call is read back."""
    assert InputText().feed(custom_arguments(text)) == text


@pytest.mark.parametrize("arguments", ["{}", '{"inputs": "a"}', '{"input": 5}', '{ "x": {"input": "a"}}', "[1]"])
def test_arguments_without_the_text_stay_as_they_are(arguments):
    """Arguments of another shape are not lost, however they are cut."""
    for size in range(1, len(arguments) + 1):
        stream = InputText()
        assert "".join(map(stream.feed, chunked(arguments, size))) == arguments


def test_grammars_become_patterns_where_they_can():
    """A regular expression constrains the input, and so does Lark; Lark that refers to itself is described, and named."""
    tools = [
        {"type": "custom", "name": "flat", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {
            "type": "custom",
            "custom": {
                "name": "deep",
                "format": {"grammar": {"syntax": "lark", "definition": 'start: "(" start? ")"'}},
            },
        },
        {"type": "custom", "name": "plain", "format": {"syntax": "lark", "definition": 'start: "a"~2'}},
    ]

    found = read_tools(tools)

    assert found.custom == {"flat", "deep", "plain"}
    assert found.functions[0]["function"]["parameters"]["properties"]["input"]["pattern"] == "^(?:a+)$"
    assert 'start: "("' in found.functions[1]["function"]["description"]
    assert found.functions[2]["function"]["parameters"]["properties"]["input"]["pattern"] == "^(?:(?:a){2})$"
    assert found.unheeded == ["tools[1].format (described in the prompt, not enforced)"]


def test_custom_tools_may_be_among_the_allowed():
    """A list of allowed tools may name custom tools, nested as in Chat Completions or flat as in Responses."""
    nested = {"type": "custom", "custom": {"name": "run"}}
    flat = {"type": "custom", "name": "run"}
    function = {"type": "function", "function": {"name": "run"}}

    assert plain_choice(nested) == plain_choice(flat) == function
    for choice in (
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [nested]}},
        {"type": "allowed_tools", "mode": "required", "tools": [flat]},
    ):
        assert plain_choice(choice) == {"type": "allowed_tools", "mode": "required", "tools": [function]}
    for other in (None, "auto", 5, {"type": "function", "function": {"name": "f"}}):
        assert plain_choice(other) == other


LARK = corpus("lark")
HUGE = (
    "start: " + "(" * 500 + '"a"' + ")" * 500,
    "start: " + "[" * 50_000,
    "start: a0 a0\n" + "\n".join(f"a{i}: a{i + 1} a{i + 1}" for i in range(40)) + '\na40: "aaaa"',
    "start: " + "a " * 4000 + "\na: " + '"' + "x" * 1000 + '"',
)


@pytest.mark.parametrize("row", [row for row in LARK if row["said"]], ids=lambda row: row["name"])
def test_texts_are_those_of_the_grammar(row):
    """What the grammar says is matched whole, what it does not say is not; llguidance agrees where it is installed."""
    grammar, said, unsaid = row["grammar"], row["said"], row["unsaid"]
    pattern = pattern_of(grammar)
    assert pattern is not None

    assert [text for text in said if not re.search(pattern, text)] == []
    assert [text for text in unsaid if re.fullmatch(pattern.removesuffix("$"), text)] == []
    if installed("llguidance") and row["name"] not in (
        "operators",
        "rules before",
    ):  # It has no `[…]`, and no priorities.
        accepts = lark_reader(grammar)
        assert [accepts(text) for text in (*said, *unsaid)] == [True] * len(said) + [False] * len(unsaid)


@pytest.mark.parametrize("grammar", [*(row["grammar"] for row in LARK if row["said"] is None), *HUGE])
def test_what_no_expression_says_is_left_to_the_description(grammar):
    """Recursion, layout that is skipped, libraries, broken Lark and Lark without end give nothing, at once."""
    started = time.process_time()

    assert pattern_of(grammar) is None
    assert time.process_time() - started < 1
