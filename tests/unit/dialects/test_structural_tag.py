"""Tests of structural tags: nodes as a tree, and grammars that are EBNF instead."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from remainders import node_of, turn_of

from unrender.dialects.structural_tag import SHORT, TagFormat, is_long, reads_exactly
from unrender.grammar import (
    Grammar,
    chars,
    literal,
    schema,
    sequence,
    until,
)
from unrender.grammar.expansion import Values, expand
from unrender.schema import Unsupported
from unrender.schema.weights import Weight

A, FLAG = literal("a"), schema({"type": "boolean"})


@cases
def test_how_a_node_is_written_as_a_tag(node: str, tag: TagFormat) -> None:
    """A node uses the engine's own elements if possible. A regular node is EBNF, with the rules that it needs.

    A schema that the engine would widen is EBNF, too. With a non-ASCII character, a negated class is written as its
    complement, because xgrammar 0.2.7 misreads `[^é]`.
    """
    rules = {"x": sequence("x", chars("0-9")), "word": literal("w")}
    written = json.loads(turn_of(Grammar(node_of(node), rules)).constraint("xgrammar").grammar)

    assert written == {"type": "structural_tag", "format": tag}


def test_a_stop_within_a_longer_one_is_ebnf() -> None:
    """A tag would end at the shorter stop even as part of the longer one, where nothing may follow."""
    written = json.loads(turn_of(sequence(until(">f", ">>f"), ">f", FLAG)).constraint("xgrammar").grammar)

    first, second = written["format"]["elements"]
    assert (first["type"], second["type"]) == ("grammar", "json_schema")
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
