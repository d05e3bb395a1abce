"""Nodes: what is below them, what they refer to, and what a run of calls generates."""

from __future__ import annotations

from typing import Any

import pytest

from unrender.format import Arguments, CallSyntax, Slot
from unrender.nodes import (
    MARKS,
    Atomic,
    Call,
    Calls,
    Choice,
    Cut,
    End,
    JsonValue,
    Literal,
    Negate,
    Node,
    Optional,
    Peek,
    Ref,
    Repeat,
    Role,
    Sequence,
    Tag,
    Until,
    children,
    references,
    rewrite,
    walk,
)

A, B, R = Literal("a"), Literal("b"), Ref("r")


@pytest.mark.parametrize(
    ("node", "below"),
    [
        (A, []),
        (Until(("a",)), []),
        (JsonValue({"type": "null"}), []),
        (Sequence((A, B)), [A, B]),
        (Choice((A, B)), [A, B]),
        (Optional(A), [A]),
        (Repeat(A), [A]),
        (Repeat(A, 0, None, B), [A, B]),
        (Peek(A), [A]),
        (Negate(A), [A]),
        (Tag(Role.NAME, A), [A]),
        (Atomic(A), [A]),
        (End(), []),
        (Cut(), []),
        (R, []),
    ],
)
def test_children_are_the_nodes_directly_below(node: Node, below: list[Node]) -> None:
    """A separator counts, a schema does not."""
    assert list(children(node)) == below
    assert list(walk(node)) == [node, *below]
    assert rewrite(node, lambda found: found) == node


def test_nodes_are_walked_in_the_order_of_the_text() -> None:
    """Parents first."""
    inner, repeated = Choice((B, R)), Repeat(R, 0, None, A)
    node = Sequence((A, inner, repeated))

    assert list(walk(node)) == [node, A, inner, B, R, repeated, R, A]
    assert references(Sequence((Ref("x"), Choice((Ref("y"), Ref("x")))))) == ["x", "y", "x"]
    assert references(R) == ["r"]
    assert references(A) == []


def test_children_are_rewritten_first() -> None:
    """What comes of them is what a change is shown."""
    seen = []

    def change(node: Node) -> Node:
        seen.append(node)
        return B if node == A else node

    assert rewrite(Sequence((A, Repeat(A, 1, 2, A))), change) == Sequence((B, Repeat(B, 1, 2, B)))
    assert seen == [A, A, A, Repeat(B, 1, 2, B), Sequence((B, Repeat(B, 1, 2, B)))]


def test_marks_are_noncharacters() -> None:
    """There are 32."""
    assert (len(MARKS), MARKS[0], MARKS[-1]) == (32, "\ufdd0", "\ufdef")


def run(ends_turn: bool = False, maximum: int | None = None, **syntax: Any) -> tuple[str, Call]:
    """Return a run of calls in words, and its call."""
    texts = {
        "call_start": "<c>",
        "call_end": "</c>",
        "section_start": "[",
        "section_end": "]",
        "separator": ",",
        **syntax,
    }
    found = CallSyntax(**texts)
    node = Calls(syntax=found, tools=(), maximum=maximum, ends_turn=ends_turn).generated
    return line(node), next(part for part in walk(node) if isinstance(part, Call))


def line(node: Node) -> str:
    match node:
        case Literal(text):
            return text
        case Call():
            return "call"
        case Sequence(parts):
            return "".join(map(line, parts))
        case Optional(inner):
            return f"({line(inner)})?"
        case Repeat(inner, low, high, separator):
            return f"({line(inner)}){{{low},{high}{'' if separator is None else f' by {line(separator)}'}}}"
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "[(<c>call</c>){1,None by ,}]"),
        ({"maximum": 3}, "[(<c>call</c>){1,3 by ,}]"),
        ({"ends_turn": True}, "[(<c>call</c>){1,None by ,}(])?"),
        ({"ends_turn": True, "section_end": ""}, "[<c>call(</c>,<c>call){0,None}(</c>)?"),
        ({"ends_turn": True, "section_end": "\n"}, "[<c>call(</c>,<c>call){0,None}(</c>\n)?"),
        ({"ends_turn": True, "section_end": "", "maximum": 1}, "[<c>call(</c>,<c>call){0,0}(</c>)?"),
        ({"ends_turn": True, "section_end": "", "maximum": 4}, "[<c>call(</c>,<c>call){0,3}(</c>)?"),
    ],
)
def test_a_run_of_calls_is_generated(arguments: dict[str, Any], expected: str) -> None:
    """Where the last marker ends the turn, it may be left out: engines strip it."""
    assert run(**arguments)[0] == expected


@pytest.mark.parametrize(
    ("syntax", "followed_by"),
    [
        ({}, ("</c>",)),
        ({"call_end": "\n"}, (",<c>", "]")),
        ({"call_end": "", "section_end": " "}, (",<c>",)),
        ({"call_end": "", "separator": "", "call_start": "", "function": ("f:", Slot.NAME)}, ("f:", "]")),
        ({"call_end": "", "separator": "\n", "call_start": "", "function": (Slot.NAME,)}, ("]",)),
        ({"call_end": "", "separator": ";", "call_start": "", "function": ()}, (";", "]")),
    ],
)
def test_what_may_follow_a_call(syntax: dict[str, Any], followed_by: tuple[str, ...]) -> None:
    """Its own end; where it has none, another call or the end of all."""
    call = run(function=syntax.pop("function", (Slot.NAME,)), **syntax)[1]

    assert call.followed_by == followed_by


def test_a_call_is_that_of_its_syntax() -> None:
    """With its skeleton and its arguments."""
    arguments = Arguments(start="(")
    call = run(function=(Slot.INDEX,), arguments=arguments)[1]

    assert (call.function, call.arguments, call.tools) == ((Slot.INDEX,), arguments, ())
