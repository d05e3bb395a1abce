"""How nodes may start: their first characters, whether they may be empty, the rules they enter at once."""

from __future__ import annotations

import pytest

from unrender import nodes
from unrender.errors import GrammarError
from unrender.format import Arguments
from unrender.grammar import combinators as c
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
STARTS = [
    (c.literal("ab"), "[a]"),
    (c.literal(""), "[] or nothing"),
    (c.space(), "[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000] or nothing"),
    (nodes.Layout("ab", True), "[a] or nothing"),
    (nodes.Layout("", True), "[] or nothing"),
    (c.chars("a-c"), "[a-c]"),
    (c.chars("^a-c"), "[\x00-`d-\U0010ffff]"),
    (c.chars("a", 0, None), "[a] or nothing"),
    (c.chars("a", 0, 0), "[] or nothing"),
    (c.chars("a-cx", 2, 5), "[a-cx]"),
    (c.until("x"), "[any] or nothing"),
    (c.sequence(), "[] or nothing"),
    (c.sequence("a", "b"), "[a]"),
    (c.sequence(c.optional("a"), "b"), "[a-b]"),
    (c.sequence(c.optional("a"), c.optional("b")), "[a-b] or nothing"),
    (c.sequence(c.ref("word"), c.ref("maybe")), "[a-c] by word"),
    (c.sequence(c.ref("maybe"), c.ref("word")), "[a-cx] by maybe word"),
    (c.choice("b", "a"), "[a-b]"),
    (c.choice("a", ""), "[a] or nothing"),
    (c.choice(), "[]"),
    (c.choice(c.ref("word"), c.ref("maybe")), "[a-cx] or nothing by maybe word"),
    (c.optional("a"), "[a] or nothing"),
    (c.zero_or_more("a"), "[a] or nothing"),
    (c.one_or_more("a"), "[a]"),
    (c.repeat("a", 0, 0), "[] or nothing"),
    (c.repeat(c.optional("a"), 1, None, ","), "[,a] or nothing"),
    (c.repeat("a", 1, None, ","), "[a]"),
    (c.repeat("a", 0, 2, ","), "[a] or nothing"),
    (c.repeat(c.optional("a"), 2, 2, c.optional(",")), "[,a] or nothing"),
    (c.ref("word"), "[a-c] by word"),
    (c.ref("maybe"), "[x] or nothing by maybe word"),
    (c.peek("a"), "[] or nothing"),
    (c.negate(c.ref("word")), "[] or nothing by word"),
    (c.sequence(c.peek("a"), "b"), "[b]"),
    (c.content("a"), "[a]"),
    (c.atomic(c.ref("maybe")), "[x] or nothing by maybe word"),
    (nodes.Tolerated(nodes.Literal("a")), "[a]"),
    (c.cut(), "[any] or nothing"),
    (c.end(), "[] or nothing"),
    (nodes.Mark("\ufdd0"), "[] or nothing"),
    (c.json_value(), '[\t-\n\r "-0-9[fnt{]'),
    (c.python_value(), "[any]"),
    (c.quoted(), '["]'),
    (c.quoted("'"), "[']"),
]
"""A node and how it may start: characters, `or nothing`, and the rules that it enters."""


def line(start: Start) -> str:
    """Return a start on one line."""
    pairs = ((chr(low), chr(high)) for low, high in start.ranges)
    inside = "any" if start.ranges == ANY_START.ranges else "".join(a if a == b else f"{a}-{b}" for a, b in pairs)
    rules = f" by {' '.join(sorted(start.rules))}" if start.rules else ""
    return f"[{inside}]{' or nothing' if start.empty else ''}{rules}"


@pytest.mark.parametrize(("node", "expected"), STARTS)
def test_each_node_starts_in_its_way(node: nodes.Node, expected: str) -> None:
    """A part counts as long as all before it may be empty; rules are entered where nothing was taken before."""
    assert line(start_of(node, KNOWN)) == expected


@pytest.mark.parametrize(
    "node",
    [
        nodes.Call(function=(), arguments=Arguments(), tools=None),
        c.optional(nodes.Call(function=(), arguments=Arguments(), tools=None)),
    ],
)
def test_a_call_of_a_format_has_no_start(node: nodes.Node) -> None:
    """It is made from a format, and read by itself."""
    with pytest.raises(GrammarError, match="Call is made from a format and is the root of its grammar, or part of one"):
        start_of(node, {})


def test_a_rule_that_is_not_there_is_named() -> None:
    """With those that are."""
    with pytest.raises(GrammarError, match=r"rule 'x' is not defined; defined are \['maybe', 'word'\]"):
        start_of(c.ref("x"), KNOWN)


def test_rules_start_as_what_they_refer_to() -> None:
    """In whatever order they are defined."""
    found = starts_of(
        {"a": c.sequence(c.optional(c.ref("b")), "x"), "b": c.choice(c.ref("c"), "y"), "c": c.literal("z")}
    )

    assert {name: line(start) for name, start in found.items()} == {"a": "[x-z] by b c", "b": "[y-z] by c", "c": "[z]"}


@pytest.mark.parametrize(
    "rules",
    [
        {"a": c.ref("a")},
        {"a": c.sequence(c.optional("x"), c.ref("b")), "b": c.choice("y", c.ref("a"))},
        {"a": c.sequence(c.peek(c.ref("a")), "x")},
    ],
)
def test_left_recursion_is_refused(rules: dict[str, nodes.Node]) -> None:
    """By whatever way a rule enters itself before it takes a character."""
    with pytest.raises(
        GrammarError, match=r"rule 'a' may enter itself before it consumes a character \(left recursion\)"
    ):
        starts_of(rules)


def test_a_recursion_that_takes_a_character_first_is_none() -> None:
    """Brackets may be nested."""
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
    """Not where the node may be empty or start with anything."""
    found = start.pattern()

    assert (found and found.pattern) == pattern


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], ()),
        ([(5, 9), (1, 4), (20, 30)], ((1, 9), (20, 30))),
        ([(1, 9), (3, 4)], ((1, 9),)),
        ([(1, 3), (5, 6)], ((1, 3), (5, 6))),
        ([(1, 5), (3, 9)], ((1, 9),)),
    ],
)
def test_ranges_are_merged(ranges: list[tuple[int, int]], expected: tuple[tuple[int, int], ...]) -> None:
    """Those that touch or overlap become one."""
    assert merged_ranges(ranges) == expected


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ((), ((0, LAST),)),
        (((0, LAST),), ()),
        (((5, 9),), ((0, 4), (10, LAST))),
        (((0, 3), (5, 5)), ((4, 4), (6, LAST))),
        (((1, 1), (2, LAST)), ((0, 0),)),
    ],
)
def test_a_complement_is_what_is_left(ranges: tuple[tuple[int, int], ...], expected: object) -> None:
    """Up to the last code point, 0x10FFFF."""
    assert other_characters(ranges) == expected
    assert LAST == 1114111


def test_ranges_of_a_class() -> None:
    """Merged, and turned round where the class is negated; written as `re` writes them."""
    assert ranges_of(nodes.Chars((("c", "e"), ("a", "b")))) == ((97, 101),)
    assert ranges_of(nodes.Chars((("a", "a"),), negated=True)) == ((0, 96), (98, LAST))
    assert class_of(((97, 98),)) == "[\\U00000061-\\U00000062]"
