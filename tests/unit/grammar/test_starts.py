"""Tests of possible starts of nodes: first characters, the empty text, and rules that are entered first."""

from __future__ import annotations

import pytest
from cases import cases
from recipes import ANALYSIS, rows_of
from remainders import grammar_of

from unrender import GrammarError, nodes
from unrender import grammar as c
from unrender.grammar.starts import (
    ANY_START,
    LAST,
    NOTHING,
    Start,
    class_of,
    merged_ranges,
    other_characters,
    ranges_of,
    start_of,
    starts_of,
)

KNOWN = {
    "word": Start(ranges=((97, 99),)),
    "maybe": Start(ranges=((120, 120),), empty=True, rules=frozenset({"word"})),
}
ROWS = [row for row in rows_of(ANALYSIS.with_name("handmade.jsonl")) if "starts" in row]


def line(start: Start) -> str:
    """Return a start on one line."""
    pairs = ((chr(low), chr(high)) for low, high in start.ranges)
    inside = "any" if start.ranges == ANY_START.ranges else "".join(a if a == b else f"{a}-{b}" for a, b in pairs)
    rules = f" by {' '.join(sorted(start.rules))}" if start.rules else ""
    return f"[{inside}]{' or nothing' if start.empty else ''}{rules}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["grammar"])
def test_each_node_starts_in_its_way(row: dict[str, str]) -> None:
    """A part counts if all parts before it may be empty. Rules count if they are entered before any character."""
    node = eval(row["grammar"], {**vars(c), "nodes": nodes})

    assert line(start_of(node, KNOWN)) == row["starts"]


@pytest.mark.parametrize("node", [nodes.AnswerPart(), c.optional(nodes.AnswerPart())])
def test_a_part_of_an_answer_has_no_start(node: nodes.Node) -> None:
    """A part of an answer is built from a format, so it isn't allowed in this grammar."""
    with pytest.raises(GrammarError, match="a part of a Format's answer is not allowed in this grammar"):
        start_of(node, {})


def test_rules_start_as_what_they_refer_to() -> None:
    """The order of the definitions doesn't matter."""
    found = starts_of(
        {"a": c.sequence(c.optional(c.ref("b")), "x"), "b": c.choice(c.ref("c"), "y"), "c": c.literal("z")}
    )

    assert {name: line(start) for name, start in found.items()} == {"a": "[x-z] by b c", "b": "[y-z] by c", "c": "[z]"}


@cases
def test_left_recursion_is_refused(rules: dict[str, str]) -> None:
    """A rule may not enter itself in any way before it consumes a character."""
    with pytest.raises(GrammarError, match=r"rule 'a' may enter itself before it .* character \(left recursion\)"):
        starts_of(grammar_of(rules).rules)


def test_a_recursion_that_takes_a_character_first_is_none() -> None:
    """Nested brackets are allowed."""
    assert line(starts_of({"a": c.sequence("(", c.optional(c.ref("a")), ")")})["a"]) == "[(]"


@pytest.mark.parametrize(
    ("start", "pattern"),
    [
        (Start(ranges=((97, 99), (120, 120))), "[\\U00000061-\\U00000063\\U00000078-\\U00000078]"),
        (Start(ranges=((97, 99),), empty=True), None),
        (Start(), "(?!)"),
        (ANY_START, None),
        (NOTHING, None),
    ],
)
def test_the_next_character_is_matched_where_that_decides(start: Start, pattern: str | None) -> None:
    """The pattern is None if the node may be empty or start with any character."""
    found = start.pattern()

    assert (found and found.pattern) == pattern


def test_ranges_are_merged_and_turned_round() -> None:
    """Adjacent and overlapping ranges are merged, and a class has the syntax of `re`."""
    assert merged_ranges([]) == ()
    assert merged_ranges([(5, 9), (1, 4), (20, 30)]) == ((1, 9), (20, 30))
    assert merged_ranges([(1, 9), (3, 4)]) == ((1, 9),)
    assert merged_ranges([(1, 3), (5, 6)]) == ((1, 3), (5, 6))
    assert other_characters(()) == ((0, LAST),) == ((0, 0x10FFFF),)
    assert other_characters(((0, LAST),)) == ()
    assert other_characters(((0, 3), (5, 5))) == ((4, 4), (6, LAST))
    assert ranges_of(nodes.Chars((("c", "e"), ("a", "b")))) == ((97, 101),)
    assert ranges_of(nodes.Chars((("a", "a"),), negated=True)) == ((0, 96), (98, LAST))
    assert class_of(((97, 98),)) == "[\\U00000061-\\U00000062]"
