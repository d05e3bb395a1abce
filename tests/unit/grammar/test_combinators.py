"""Combinators: each is one node, and a text stands for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from unrender import GrammarError, nodes
from unrender import grammar as c
from unrender.grammar import Node, Role
from unrender.nodes import Chars, Literal, Repeat, Tag, Until

A, B = Literal("a"), Literal("b")
MADE: list[tuple[Callable[[], Node], Node]] = [
    (lambda: c.literal("a"), A),
    (lambda: c.sequence("a", B), nodes.Sequence((A, B))),
    (lambda: c.choice("a", B), nodes.Choice((A, B))),
    (lambda: c.optional("a"), nodes.Optional(A)),
    (lambda: c.repeat("a"), Repeat(A, 0, None, None)),
    (lambda: c.repeat("a", 1, 3, "b"), Repeat(A, 1, 3, B)),
    (lambda: c.zero_or_more("a"), Repeat(A, 0, None, None)),
    (lambda: c.zero_or_more("a", "b"), Repeat(A, 0, None, B)),
    (lambda: c.one_or_more("a"), Repeat(A, 1, None, None)),
    (lambda: c.one_or_more("a", "b"), Repeat(A, 1, None, B)),
    (lambda: c.until("a", "b"), Until(("a", "b"))),
    (c.until, Until()),
    (c.rest, Until()),
    (c.space, nodes.Layout("")),
    (lambda: c.space("\n"), nodes.Layout("\n")),
    (lambda: c.peek("a"), nodes.Peek(A)),
    (lambda: c.negate("a"), nodes.Negate(A)),
    (c.end, nodes.End()),
    (c.json_value, nodes.JsonValue()),
    (lambda: c.schema({"type": "null"}), nodes.JsonValue({"type": "null"})),
    (c.python_value, nodes.PythonValue()),
    (c.quoted, nodes.Quoted('"')),
    (lambda: c.quoted("'"), nodes.Quoted("'")),
    (lambda: c.ref("r"), nodes.Ref("r")),
    (lambda: c.atomic("a"), nodes.Atomic(A)),
    (c.cut, nodes.Cut()),
    (lambda: c.tag(Role.MARKER, "a"), Tag(Role.MARKER, A)),
    (lambda: c.reasoning("a"), Tag(Role.REASONING, A)),
    (lambda: c.content("a"), Tag(Role.CONTENT, A)),
    (lambda: c.tool_call("a"), Tag(Role.CALL, A)),
    (lambda: c.name("a"), Tag(Role.NAME, A)),
    (lambda: c.call_id("a"), Tag(Role.ID, A)),
    (lambda: c.arguments("a"), Tag(Role.ARGUMENT, A)),
    (lambda: c.argument("a", "=", "b"), nodes.Sequence((Tag(Role.KEY, A), Literal("="), Tag(Role.VALUE, B)))),
]
CLASSES: list[tuple[Callable[[], Node], Node]] = [
    (lambda: c.chars("a"), Chars((("a", "a"),))),
    (lambda: c.chars("a-z_"), Chars((("a", "z"), ("_", "_")))),
    (lambda: c.chars("^a-z", 0, None), Chars((("a", "z"),), negated=True, minimum=0, maximum=None)),
    (lambda: c.chars("a^"), Chars((("a", "a"), ("^", "^")))),
    (lambda: c.chars("-a"), Chars((("-", "-"), ("a", "a")))),
    (lambda: c.chars("a-"), Chars((("a", "a"), ("-", "-")))),
    (lambda: c.chars("a\\-z"), Chars((("a", "a"), ("-", "-"), ("z", "z")))),
    (lambda: c.chars("\\^"), Chars((("^", "^"),))),
    (lambda: c.chars("\\\\"), Chars((("\\", "\\"),))),
    (lambda: c.chars("a-a"), Chars((("a", "a"),))),
    (lambda: c.chars("a-cx-z", 2, 5), Chars((("a", "c"), ("x", "z")), minimum=2, maximum=5)),
    (lambda: c.chars("\n"), Chars((("\n", "\n"),))),
]


@pytest.mark.parametrize(("make", "node"), [*MADE, *CLASSES])
def test_a_combinator_is_one_node(make: Callable[[], Node], node: Node) -> None:
    """Bounds and separators are those that were asked for."""
    assert make() == node


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: c.sequence("a", 5), "expected a node or a text, found int"),
        (lambda: c.repeat("a", -1), "expected 0 <= minimum <= maximum, found -1 and None"),
        (lambda: c.repeat("a", 2, 1), "expected 0 <= minimum <= maximum, found 2 and 1"),
        (lambda: c.chars("a", 2, 1), "expected 0 <= minimum <= maximum, found 2 and 1"),
        (lambda: c.chars("z-a"), "chars: the range z-a runs backwards"),
        (lambda: c.chars(""), "chars: expected at least one character, found ''"),
        (lambda: c.chars("^"), "chars: expected at least one character, found '^'"),
        (lambda: c.until("a", ""), "until: expected stops of at least one character, found an empty one"),
        (lambda: c.quoted("`"), "quoted: expected \" or ', found '`'"),
    ],
)
def test_a_mistake_is_named(make: Any, message: str) -> None:
    """What was expected, and what was found."""
    with pytest.raises(GrammarError) as caught:
        make()

    assert str(caught.value) == message


def test_bounds_may_be_zero() -> None:
    """A repetition of nothing is none."""
    assert c.repeat("a", 0, 0) == Repeat(A, 0, 0)
    assert c.repeat("a", 2, 2) == Repeat(A, 2, 2)
