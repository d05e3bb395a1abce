"""GBNF text, structural tags as trees, and grammars that are EBNF instead."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from remainders import grammar_of, node_of, turn_of

from unrender.dialects.context_free import Stopped
from unrender.dialects.gbnf import automaton, text_pieces, write_rules
from unrender.dialects.structural_tag import SHORT, TagFormat, is_long, reads_exactly
from unrender.grammar import Grammar, Node, chars, literal, ref, schema, sequence, until
from unrender.grammar.expansion import Values, expand
from unrender.nodes import Chars
from unrender.schema import Unsupported
from unrender.schema.weights import Weight

X = ref("x")


def body(node: Node) -> str:
    """Return the body of a rule as text."""
    return write_rules("root", {"root": node}).removeprefix("root ::= ").removesuffix("\n")


@cases
def test_how_a_node_is_written_in_gbnf(node: str, expected: str) -> None:
    """Brackets surround a sequence, a choice or a repetition only inside another node.

    In a class, `^` and `-` come last, so no dialect needs a backslash, and no digit follows a hexadecimal number.
    """
    assert body(node_of(node)) == expected


def test_a_class_of_nothing() -> None:
    """An empty class matches the empty text, and its negation matches any character."""
    assert (body(Chars(())), body(Chars((), negated=True))) == ('""', "[^\\x00]")


@cases
def test_a_text_is_cut_before_digits_after_a_number(text: str, pieces: list[str]) -> None:
    """A character that engines write as a hexadecimal number is separated from digits after it."""
    assert text_pieces(text) == pieces


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (Stopped((), (), at_end=True), ['t ::= [^\\x00] t | ""']),
        (
            Stopped(("<x",), (("<x", X),), at_end=False),
            ['t ::= "<" t-s1 | [^<] t', 't-s1 ::= "x" x | "<" t-s1 | [^<x] t'],
        ),
        (Stopped(("<x",), (), at_end=True), ['t ::= "<" t-s1 | [^<] t | ""', 't-s1 ::= "<" t-s1 | [^<x] t | ""']),
        (Stopped((">", "!"), ((">", X),), at_end=False, exact=(("a>", ref("y")),)), ['t ::= "a>" y | ">" x | [^!>] t']),
    ],
    ids=["no stop", "one stop", "a stop that may not follow", "an exact text"],
)
def test_how_text_is_written(text: Stopped, lines: list[str]) -> None:
    """Each prefix of a stop has a rule. A complete stop is followed by its branch, or isn't allowed."""
    assert write_rules("t", {"t": text}).splitlines() == lines


STOPS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


@given(STOPS, st.text("abc", max_size=12))
def test_text_is_cut_at_the_stop_that_is_complete_first(stops: list[str], text: str) -> None:
    """The automaton stops at the end of the first complete stop, and names the longest stop that ends there."""
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    at = min(ends, default=len(text))
    expected = max((stop for stop in stops if text[:at].endswith(stop)), key=len, default="") if ends else ""
    moves, state, read = automaton(tuple(stops)), "", 0
    while state in moves and read < len(text):
        state = moves[state].get(text[read], "")
        read += 1

    assert (read, "" if state in moves else state) == (at, expected)


@cases
def test_rules_that_end_by_themselves_keep_their_names(rules: dict[str, str], expected: str) -> None:
    """Rules that GBNF supports directly keep their names and their form."""
    assert (
        turn_of(grammar_of({"": "sequence('(', ref('x'), ')')", **rules})).constraint("llama.cpp").grammar == expected
    )


FLAG = schema({"type": "boolean"})


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
    spelled = expand(Grammar(literal("a")), Values.SPELLED)
    lossy = Unsupported(path="#", keyword="format", reason="it is not known")

    assert is_long(replace(spelled, weight=weight)) is expected
    assert not is_long(replace(spelled, weight=weight, unsupported=(lossy,)))


@cases
def test_which_schemas_the_engine_reads_exactly(schema: Any, exact: bool) -> None:
    """The engine supports schemas with only common keywords at every depth, and with plain ASCII constants."""
    assert reads_exactly(schema) is exact
