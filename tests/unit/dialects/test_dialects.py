"""Tests of GBNF, Lark and structural tags, as text and in the engines. The rows of `cases.jsonl` are written with combinators."""

from __future__ import annotations

import json
import re

import pytest
from cases import case_rows, cases
from engines import converted_reader, gbnf_reader, installed, lark_reader, tag_reader
from remainders import DIALECTS, grammar_of, node_of, turn_of, written

from unrender import GrammarError
from unrender.grammar import Grammar, optional, ref, schema, sequence, until

LLGUIDANCE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
XGRAMMAR = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
READERS = [
    pytest.param("lark", lark_reader, id="lark", marks=LLGUIDANCE),
    pytest.param("gbnf", converted_reader, id="gbnf-llguidance", marks=LLGUIDANCE),
    pytest.param("gbnf", gbnf_reader, id="gbnf-xgrammar", marks=XGRAMMAR),
    pytest.param("structural_tag", tag_reader, id="structural-tag", marks=XGRAMMAR),
]
FOR_A_LEXER = {
    "rounds that start like the text after them",
    "a literal next to text",
    "a repetition next to text that starts with its separator",
}
"""Cases that only Lark splits for a lexer. Engines of GBNF have no lexer, but llguidance's converter creates one."""


@pytest.mark.engine
@pytest.mark.parametrize(("dialect", "read"), READERS)
@cases
def test_a_grammar_is_read_as_it_was_meant(why, grammar, right, wrong, dialect, read):
    """The engine accepts exactly the texts of the grammar."""
    if read is converted_reader and why in FOR_A_LEXER:
        pytest.skip("the converter loses lexemes")
    accepts = read(written(grammar_of(grammar), dialect))

    verdicts = {text: accepts(text) for text in (*right, *wrong)}

    assert verdicts == {**dict.fromkeys(right, True), **dict.fromkeys(wrong, False)}


def test_gbnf_defines_every_rule_that_it_uses_and_uses_every_rule(request):
    """Every rule is defined exactly once, and is reachable."""
    grammars = [row["grammar"] for row in case_rows(request.path.with_name("cases.jsonl")) if "grammar" in row]
    for grammar in grammars:
        lines = turn_of(grammar_of(grammar)).constraint("llama.cpp").grammar.splitlines()
        defined = [line.split(" ::= ")[0] for line in lines]
        bodies = [re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', "", line.split(" ::= ", 1)[1]) for line in lines]
        used = {word for body in bodies for word in re.findall(r"[a-z][a-z0-9-]*", body)}

        assert defined[0] == "root"
        assert len(defined) == len(set(defined))
        assert used | {"root"} == set(defined)


def test_lark_hands_schemas_over():
    """A JSON value is written as `%json` with its resolved schema, and with the whitespace of the other dialects."""
    text = turn_of(schema({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}})).constraint("llguidance").grammar

    handed = json.loads(text.partition("%json ")[2])
    assert handed.pop("x-guidance")["whitespace_pattern"] == "[ \\t\\n\\r]{1,32}"
    assert handed == {"type": "boolean"}


def test_a_structural_tag_of_a_recursive_grammar_is_ebnf():
    """A recursive grammar isn't a tree, so it becomes one EBNF grammar."""
    again = sequence("<call>", until("<call>"), optional(ref("again")))
    written = json.loads(
        turn_of(Grammar(sequence(until("<call>"), ref("again")), {"again": again})).constraint("xgrammar").grammar
    )

    assert written["format"]["type"] == "grammar"
    assert written["format"]["grammar"].startswith("root ::= ")


@pytest.mark.parametrize("dialect", DIALECTS)
@cases
def test_what_no_rule_can_say_is_refused_by_name(root, message, dialect):
    """A lookahead that literals don't decide, text without an end and a missing rule are errors."""
    with pytest.raises(GrammarError, match=message):
        written(node_of(root), dialect)
