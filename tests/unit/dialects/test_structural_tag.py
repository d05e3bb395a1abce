"""Tests of structural tags: nodes as a tree, and grammars that are EBNF instead."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from remainders import turn_of

from unrender.dialects.structural_tag import SHORT, TagFormat, is_long, reads_exactly
from unrender.grammar import (
    Grammar,
    Node,
    chars,
    choice,
    json_value,
    literal,
    optional,
    ref,
    repeat,
    schema,
    sequence,
    until,
)
from unrender.grammar.expansion import Values, expand
from unrender.schema import Unsupported
from unrender.schema.weights import Weight

A, B, X, DIGIT = literal("a"), literal("b"), ref("x"), chars("0-9")
FLAG = schema({"type": "boolean"})
JSON = {"type": "json_schema", "json_schema": {"type": "boolean"}, "max_whitespace_cnt": 32}


def word(text: str) -> TagFormat:
    return {"type": "const_string", "value": text}


def ebnf(text: str) -> TagFormat:
    return {"type": "grammar", "grammar": text}


def in_sequence(*elements: TagFormat) -> TagFormat:
    return {"type": "sequence", "elements": list(elements)}


def text_up_to(*stops: str, end: str) -> TagFormat:
    return {"type": "tag", "begin": "", "content": {"type": "any_text", "excludes": list(stops)}, "end": end}


@pytest.mark.parametrize(
    ("node", "tag"),
    [
        (A, word("a")),
        (literal("Québec"), in_sequence(word("Qué"), word("bec"))),
        (FLAG, JSON),
        (json_value(), {**JSON, "json_schema": {}}),
        (sequence(A, FLAG, B), in_sequence(word("a"), JSON, word("b"))),
        (choice(A, sequence(B, FLAG)), {"type": "or", "elements": [word("a"), in_sequence(word("b"), JSON)]}),
        (sequence(A, optional(FLAG)), in_sequence(word("a"), {"type": "optional", "content": JSON})),
        (repeat(FLAG, 1, None), {"type": "repeat", "min": 1, "max": -1, "content": JSON}),
        (repeat(FLAG, 0, 3), {"type": "repeat", "min": 0, "max": 3, "content": JSON}),
        (sequence(A, DIGIT, FLAG), in_sequence(word("a"), ebnf("root ::= [0-9]\n"), JSON)),
        (sequence(X, FLAG), in_sequence(ebnf('root ::= x\nx ::= "x" [0-9]\n'), JSON)),
        (sequence(ref("word"), FLAG), in_sequence(word("w"), JSON)),
        (sequence(until("<x>"), "<x>", FLAG), in_sequence(text_up_to("<x>", end="<x>"), JSON)),
        (until("<x>"), {"type": "any_text", "excludes": ["<x>"]}),
        # With a non-ASCII character, a negated class is written as its complement, because xgrammar 0.2.7 misreads `[^é]`.
        (
            until("ée"),
            ebnf(
                'root ::= "é" root-s1 | [\\x01-,.-\\]_-èê-\ud7ff\ue000-\U0010ffff^-] root | ""\n'
                'root-s1 ::= "é" root-s1 | [\\x01-,.-\\]_-df-èê-\ud7ff\ue000-\U0010ffff^-] root | ""\n'
            ),
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else repr(value),
)
def test_how_a_node_is_written(node: Node, tag: TagFormat) -> None:
    """A node uses the engine's own elements if possible. A regular node is EBNF, with the rules that it needs."""
    written = json.loads(
        turn_of(Grammar(node, {"x": sequence("x", DIGIT), "word": literal("w")})).constraint("xgrammar").grammar
    )

    assert written == {"type": "structural_tag", "format": tag}


def test_text_up_to_several_stops_is_a_choice() -> None:
    """Each stop becomes an alternative with the text that may follow it."""
    branches = choice(sequence("<x>", FLAG), "<y>b")

    assert json.loads(turn_of(sequence(until("<x>", "<y>"), branches)).constraint("xgrammar").grammar)["format"] == {
        "type": "or",
        "elements": [
            in_sequence(text_up_to("<x>", "<y>", end="<x>"), JSON),
            in_sequence(text_up_to("<x>", "<y>", end="<y>"), word("b")),
        ],
    }


def test_a_stop_within_a_longer_one_is_ebnf() -> None:
    """A tag would end at the shorter stop even as part of the longer one, where nothing may follow."""
    written = json.loads(turn_of(sequence(until(">f", ">>f"), ">f", FLAG)).constraint("xgrammar").grammar)

    first, second = written["format"]["elements"]
    assert (first["type"], second) == ("grammar", JSON)
    assert first["grammar"].startswith("root ::= ")


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (Weight(parts=0, characters=SHORT // 2), False),
        (Weight(parts=0, characters=SHORT // 2 + 1), True),
        (Weight(parts=4, characters=SHORT // 2 - 100), False),
        (Weight(parts=5, characters=SHORT // 2 - 100), True),
    ],
)
def test_which_tools_are_too_long_for_a_tree(weight: Weight, expected: bool) -> None:
    """A call is in a tree twice, and a part takes 25 characters besides names. A tree is never too long if EBNF would lose a keyword."""
    spelled = expand(Grammar(A), Values.SPELLED)
    lossy = Unsupported(path="#", keyword="format", reason="it is not known")

    assert is_long(replace(spelled, weight=weight)) is expected
    assert not is_long(replace(spelled, weight=weight, unsupported=(lossy,)))


@cases
def test_which_schemas_the_engine_reads_exactly(schema: Any, exact: bool) -> None:
    """The engine supports schemas with only common keywords at every depth, and with plain ASCII constants."""
    assert reads_exactly(schema) is exact


def test_a_schema_that_the_engine_widens_is_spelled_out() -> None:
    """A schema that the engine would widen is written as EBNF."""
    written = json.loads(turn_of(schema({"enum": ["é"]})).constraint("xgrammar").grammar)

    assert written["format"] == ebnf('root ::= "\\"é\\""\n')
