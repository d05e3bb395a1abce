"""Combinators: each is one node, and a text stands for itself."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.errors import GrammarError
from unrender.grammar import combinators as c
from unrender.grammar import nodes
from unrender.grammar.nodes import Chars, Literal, Node, Repeat, Role, Tag, Until

A, B = Literal("a"), Literal("b")
MADE: list[tuple[Node, Node]] = [
    (c.literal("a"), A),
    (c.sequence("a", B), nodes.Sequence((A, B))),
    (c.choice("a", B), nodes.Choice((A, B))),
    (c.optional("a"), nodes.Optional(A)),
    (c.repeat("a"), Repeat(A, 0, None, None)),
    (c.repeat("a", 1, 3, "b"), Repeat(A, 1, 3, B)),
    (c.zero_or_more("a"), Repeat(A, 0, None, None)),
    (c.zero_or_more("a", "b"), Repeat(A, 0, None, B)),
    (c.one_or_more("a"), Repeat(A, 1, None, None)),
    (c.one_or_more("a", "b"), Repeat(A, 1, None, B)),
    (c.until("a", "b"), Until(("a", "b"))),
    (c.until(), Until()),
    (c.rest(), Until()),
    (c.space(), nodes.Layout("")),
    (c.space("\n"), nodes.Layout("\n")),
    (c.peek("a"), nodes.Peek(A)),
    (c.negate("a"), nodes.Negate(A)),
    (c.end(), nodes.End()),
    (c.json_value(), nodes.JsonValue()),
    (c.schema({"type": "null"}), nodes.JsonValue({"type": "null"})),
    (c.python_value(), nodes.PythonValue()),
    (c.quoted(), nodes.Quoted('"')),
    (c.quoted("'"), nodes.Quoted("'")),
    (c.ref("r"), nodes.Ref("r")),
    (c.atomic("a"), nodes.Atomic(A)),
    (c.cut(), nodes.Cut()),
    (c.tag(Role.MARKER, "a"), Tag(Role.MARKER, A)),
    (c.reasoning("a"), Tag(Role.REASONING, A)),
    (c.content("a"), Tag(Role.CONTENT, A)),
    (c.tool_call("a"), Tag(Role.CALL, A)),
    (c.name("a"), Tag(Role.NAME, A)),
    (c.call_id("a"), Tag(Role.ID, A)),
    (c.arguments("a"), Tag(Role.ARGUMENT, A)),
    (c.argument("a", "=", "b"), nodes.Sequence((Tag(Role.KEY, A), Literal("="), Tag(Role.VALUE, B)))),
]
CLASSES: list[tuple[Node, Node]] = [
    (c.chars("a"), Chars((("a", "a"),))),
    (c.chars("a-z_"), Chars((("a", "z"), ("_", "_")))),
    (c.chars("^a-z", 0, None), Chars((("a", "z"),), negated=True, minimum=0, maximum=None)),
    (c.chars("a^"), Chars((("a", "a"), ("^", "^")))),
    (c.chars("-a"), Chars((("-", "-"), ("a", "a")))),
    (c.chars("a-"), Chars((("a", "a"), ("-", "-")))),
    (c.chars("a\\-z"), Chars((("a", "a"), ("-", "-"), ("z", "z")))),
    (c.chars("\\^"), Chars((("^", "^"),))),
    (c.chars("\\\\"), Chars((("\\", "\\"),))),
    (c.chars("a-a"), Chars((("a", "a"),))),
    (c.chars("a-cx-z", 2, 5), Chars((("a", "c"), ("x", "z")), minimum=2, maximum=5)),
    (c.chars("\n"), Chars((("\n", "\n"),))),
]


@pytest.mark.parametrize(("made", "node"), [*MADE, *CLASSES])
def test_a_combinator_is_one_node(made: Node, node: Node) -> None:
    """Bounds and separators are those that were asked for."""
    assert made == node


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
