"""The pieces of a call syntax's literals, and the code that reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.format import Arguments, CallSyntax, Envelope, Slot, ToolMode
from unrender.machine.compile.literals import (
    closing_tokens,
    ends_apart,
    is_distinctive,
    json_tokens,
    last_slot,
    literal_code,
    markers,
    tokens,
    unsplit,
    what_follows_arguments,
)
from unrender.machine.instructions import Lit, Maybe, MaybeFence, Space

TAGGED = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    section_start="<calls>\n",
    section_end="\n</calls>",
    call_start="<call>\n",
    call_end="\n</call>",
    function=("<f=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</f>"),
    arguments=Arguments(entry=("<p=", Slot.KEY, ">", Slot.VALUE, "</p>\n")),
)
NATIVE = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    section_start="[",
    section_end="]<end>",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True),
)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" \n", []),
        ("<a> <b>\n", ["<a>", "<b>"]),
        ("<a>```json\n", ["<a>", "```json"]),
        ("```<a>", ["```", "<a>"]),
        ('[{"a', ['[{"a']),
    ],
)
def test_pieces_of_text(text: str, pieces: list[str]) -> None:
    """A literal is cut at white space and around Markdown fences, nowhere else."""
    assert tokens(text) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ('<a>[{"k": ', ["<a>", "[", "{", '"k"', ":"]),
        ('}]</a>{"k":', ["}", "]", "</a>", "{", '"k"', ":"]),
        ("<a>{</a>", ["<a>{</a>"]),
        ("]}", ["]", "}"]),
        ("[{", ["[", "{"]),
    ],
)
def test_pieces_around_json(text: str, pieces: list[str]) -> None:
    """JSON that a literal begins or ends with is cut into its brackets and keys; the marker itself is whole."""
    assert json_tokens(text) == pieces


def test_one_piece() -> None:
    """A literal that is not split is stripped, and white space alone is nothing."""
    assert (unsplit(" <a> <b>\n"), unsplit("\n")) == (["<a> <b>"], [])


def test_the_last_slot() -> None:
    """Literals after the last slot do not count; a skeleton of literals has no slot."""
    assert (last_slot(("<", Slot.NAME, ">", Slot.ID, "!")), last_slot(("<",))) == (3, -1)


def test_fences_are_not_markers() -> None:
    """A fence may be missing, with its language or without."""
    assert markers(["<a>", "```json", "```", "x```"]) == ["<a>", "x```"]


@pytest.mark.parametrize(
    ("opener", "distinctive"),
    [("<f=", True), ("a:b", True), ("[[[", False), ("word", False), ("f(", False), ("f((", True), ("((f", True)],
)
def test_distinctive_openers(opener: str, distinctive: bool) -> None:
    """An opener that prose does not contain has words and signs, and three characters at least."""
    assert is_distinctive(opener) is distinctive


def test_closers_in_order() -> None:
    """The function's end, the call's and the run's; in an envelope the object closes itself."""
    assert closing_tokens(TAGGED) == ["</f>", "</call>", "</calls>"]
    assert closing_tokens(NATIVE) == ["]", "<end>"]


def test_what_follows_arguments() -> None:
    """The closers, and what begins the next call: its marker, or else the head of the function."""
    assert what_follows_arguments(TAGGED) == ["</f>", "</call>", "</calls>", "<call>"]
    assert what_follows_arguments(replace(TAGGED, call_start="", call_end="\n")) == ["</f>", "</calls>", "<f="]


def test_an_end_of_turn_is_apart() -> None:
    """Engines strip the token that ends a turn: the closer before it is read without it."""
    syntax = CallSyntax(
        mode=ToolMode.TAG_WITH_JSON, function=("f", Slot.NAME), call_end="</c><|end|>", section_end="<|end|>"
    )

    assert ends_apart(syntax, frozenset({"<|end|>", "nd|>"})).call_end == "</c> <|end|>"
    assert ends_apart(syntax, frozenset({"<|end|>"})).section_end == "<|end|>"
    assert ends_apart(syntax, frozenset({"<|other|>"})) == syntax


def test_layout_after_an_end_of_turn_is_kept() -> None:
    """A closer that goes on with white space has no end of turn to set apart."""
    syntax = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=("f", Slot.NAME), call_end="</c><|end|>\n")

    assert ends_apart(syntax, frozenset({"<|end|>"})).call_end == "</c><|end|>\n"


def test_code_of_a_literal() -> None:
    """White space is free before each piece; a fence, and a list around one call, may be missing."""
    assert literal_code(TAGGED, "<a> ```") == [Space(), Lit("<a>"), Space(), MaybeFence()]
    assert literal_code(NATIVE, "[<a>") == [Space(), Lit("[<a>")]
    assert literal_code(NATIVE, "<a>[") == [Space(), Lit("<a>"), Space(), Maybe("[")]
    assert literal_code(TAGGED, "[") == [Space(), Lit("[")]
