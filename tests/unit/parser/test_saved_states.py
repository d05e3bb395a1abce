"""A parser's arguments and input: kept by the knowledge of special tokens, saved as JSON, and bound to a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.families import REQUEST, TOOLS

from unrender import Parser, Policy
from unrender.errors import StateError
from unrender.format import Format, TurnTexts
from unrender.grammar import Grammar, content, literal, rest
from unrender.types import Request

FORMAT = Format(turn=TurnTexts(end="<end>"))
ONE, OTHER = Grammar(content(rest())), Grammar(literal("a"))
POLICY = {
    "unknown_tools": "call",
    "calls_in_reasoning": "ignore",
    "tool_calls": "streamed",
    "failed_calls": "call",
    "undeclared_reasoning": "content",
    "repair": "none",
}
STATE: dict[str, Any] = {
    "prefill": "t",
    "is_continuation": True,
    "known_ids": ["a", "b"],
    "policy": POLICY,
    "skips_reasoning": False,
    "special_tokens": ["<s>"],
    "strict": False,
    "fed": [
        {"kind": "unknown", "text": "xy"},
        {"kind": "special", "text": "<s>"},
        {"kind": "ordinary", "text": "z"},
        {"kind": "unknown", "text": "!"},
    ],
}


def fed() -> Parser:
    """Return a parser that is not made as usual, and was fed in several ways."""
    parser = Parser(
        FORMAT,
        REQUEST,
        prefill="t",
        is_continuation=True,
        known_ids=("a", "b"),
        policy=Policy(**POLICY),
        special_tokens=("<s>",),
    )
    for text, special in (("x", None), ("y", None), ("<s>", True), ("z", False), ("!", None)):
        parser.feed(text, special=special)
    return parser


def kept(parser: Parser) -> dict[str, Any]:
    """Return what a state says of how the parser was made and fed."""
    return {name: value for name, value in parser.state().items() if name in STATE}


def test_a_state_is_plain_data_and_back() -> None:
    """A stretch goes on while what is known of its text stays the same; what is in a state changes with `STATE_VERSION` alone."""
    assert kept(fed()) == STATE
    assert kept(Parser._restored(FORMAT, REQUEST, fed().state())) == STATE


def test_a_copy_goes_on_alone() -> None:
    """Text added to a copy doesn't show in the original, nor the other way round."""
    made = fed()
    other = made.copy()
    other.feed("?")
    made.feed(".")

    assert [kept(one)["fed"][-1]["text"] for one in (other, made)] == ["!?", "!."]


@pytest.mark.parametrize("name", STATE)
@pytest.mark.parametrize("value", [None, 1, [1], [{"kind": "unknown"}], {"calls": "never"}])
def test_a_field_of_another_type_is_refused(name: str, value: object) -> None:
    """The error says where, and what was expected."""
    saved = fed().state()
    for state in ({**saved, name: value}, {key: item for key, item in saved.items() if key != name}):
        with pytest.raises(StateError, match=rf"^state\.{name}[.a-z_\[\]0-9]*: expected .+, found .+"):
            Parser._restored(FORMAT, REQUEST, state)


@pytest.mark.parametrize("name", POLICY)
def test_words_that_no_policy_has_are_refused(name: str) -> None:
    """The error names the field and what it may say."""
    expected = rf"state\.policy\.{name}: expected .*'{POLICY[name]}'.*, found 'never'"
    with pytest.raises(StateError, match=expected):
        Parser._restored(FORMAT, REQUEST, {**fed().state(), "policy": {**POLICY, name: "never"}})


def test_a_long_value_is_cut_in_an_error() -> None:
    """Nobody wants a whole conversation in a log."""
    with pytest.raises(StateError) as raised:
        Parser._restored(FORMAT, REQUEST, {**fed().state(), "prefill": ["x" * 1_000]})

    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    ("format", "request_", "grammar", "fits"),
    [
        (FORMAT, REQUEST, Grammar(content(rest())), True),
        (FORMAT, REQUEST, OTHER, False),
        (FORMAT, REQUEST, None, False),
        (Format(), REQUEST, ONE, False),
        (FORMAT, Request(), ONE, False),
        (FORMAT, replace(REQUEST, tools=None), ONE, False),
        (FORMAT, replace(REQUEST, tools=TOOLS[:1]), ONE, False),
        (FORMAT, replace(REQUEST, tool_choice="none"), ONE, False),
        (FORMAT, replace(REQUEST, parallel_tool_calls=False), ONE, False),
    ],
)
def test_a_state_belongs_to_what_decides_how_text_is_read(
    format: Format, request_: Request, grammar: Grammar | None, fits: bool
) -> None:
    """Format, request, and the grammar that was made by hand."""
    state = Parser(FORMAT, REQUEST, grammar=ONE).state()
    if fits:
        assert Parser._restored(format, request_, state, grammar=grammar).state() == state
        return
    with pytest.raises(StateError, match=r"^state\.for: expected "):
        Parser._restored(format, request_, state, grammar=grammar)


def test_where_reasoning_goes_decides_as_well() -> None:
    """With it left in content, text is read otherwise."""
    with pytest.raises(StateError, match=r"^state\.for: expected "):
        Parser._restored(FORMAT, replace(REQUEST, reasoning_format="none"), Parser(FORMAT, REQUEST).state())
