"""A parser's arguments and input, grouped by knowledge of special tokens, saved as JSON, and tied to a request."""

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
    """Return a parser with unusual settings that was fed in several ways."""
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
    """Return the part of a state about the parser's arguments and input."""
    return {name: value for name, value in parser.state().items() if name in STATE}


def test_a_state_is_plain_data_and_back() -> None:
    """Text with the same knowledge is one stretch. Any change of the saved data needs a new `STATE_VERSION`."""
    assert kept(fed()) == STATE
    assert kept(Parser._restored(FORMAT, REQUEST, fed().state())) == STATE


def test_a_copy_goes_on_alone() -> None:
    """Text fed to a copy doesn't change the original, and the other way round."""
    made = fed()
    other = made.copy()
    other.feed("?")
    made.feed(".")

    assert [kept(one)["fed"][-1]["text"] for one in (other, made)] == ["!?", "!."]


@pytest.mark.parametrize("name", STATE)
@pytest.mark.parametrize("value", [None, 1, [1], [{"kind": "unknown"}], {"calls": "never"}])
def test_a_field_of_another_type_is_refused(name: str, value: object) -> None:
    """The error names the place and the expected type."""
    saved = fed().state()
    for state in ({**saved, name: value}, {key: item for key, item in saved.items() if key != name}):
        with pytest.raises(StateError, match=rf"^state\.{name}[.a-z_\[\]0-9]*: expected .+, found .+"):
            Parser._restored(FORMAT, REQUEST, state)


@pytest.mark.parametrize("name", POLICY)
def test_words_that_no_policy_has_are_refused(name: str) -> None:
    """The error names the field and its allowed words."""
    expected = rf"state\.policy\.{name}: expected .*'{POLICY[name]}'.*, found 'never'"
    with pytest.raises(StateError, match=expected):
        Parser._restored(FORMAT, REQUEST, {**fed().state(), "policy": {**POLICY, name: "never"}})


def test_a_long_value_is_cut_in_an_error() -> None:
    """An error doesn't quote a whole conversation."""
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
    """A state requires the same format, request and handwritten grammar."""
    state = Parser(FORMAT, REQUEST, grammar=ONE).state()
    if fits:
        assert Parser._restored(format, request_, state, grammar=grammar).state() == state
        return
    with pytest.raises(StateError, match=r"^state\.for: expected "):
        Parser._restored(format, request_, state, grammar=grammar)


def test_where_reasoning_goes_decides_as_well() -> None:
    """A state requires the same `reasoning_format`, which changes how text is read."""
    with pytest.raises(StateError, match=r"^state\.for: expected "):
        Parser._restored(FORMAT, replace(REQUEST, reasoning_format="none"), Parser(FORMAT, REQUEST).state())
