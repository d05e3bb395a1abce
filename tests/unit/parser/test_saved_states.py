"""How a parser was made and what it was fed: kept by what was known of special tokens, saved as JSON, and bound to a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.families import REQUEST, TOOLS

from unrender import Policy, Request, StateError, ToolChoice
from unrender.format import Format, TurnTexts
from unrender.grammar import Grammar, content, literal, rest
from unrender.parser.saved_states import Saved, Transcript, identity

FORMAT = Format(turn=TurnTexts(end="<end>"))
ONE, OTHER = Grammar(content(rest())), Grammar(literal("a"))
POLICY = {
    "unknown_tools": "call",
    "calls_in_reasoning": "ignore",
    "calls": "written",
    "failed_calls": "call",
    "undeclared_reasoning": "content",
    "repair": "none",
}
STATE: dict[str, Any] = {
    "begun": "<t>",
    "continued": True,
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


def transcript() -> Transcript:
    made = Transcript(
        begun="<t>",
        continued=True,
        known_ids=("a", "b"),
        policy=Policy(
            unknown_tools="call",
            calls_in_reasoning="ignore",
            calls="written",
            undeclared_reasoning="content",
            failed_calls="call",
            repair="none",
        ),
        skips_reasoning=False,
        special_tokens=("<s>",),
        strict=False,
    )
    for text, special in (("x", None), ("y", None), ("<s>", True), ("z", False), ("!", None)):
        made.add(text, special)
    return made


def test_text_is_kept_in_stretches() -> None:
    """A stretch goes on while what is known of its text stays the same."""
    assert list(transcript()) == [(None, "xy"), (True, "<s>"), (False, "z"), (None, "!")]


def test_a_transcript_is_plain_data_and_back() -> None:
    """Other processes read it: what is in it changes with `STATE_VERSION` alone."""
    assert transcript().state() == STATE
    again = Transcript.restore(Saved(STATE))
    assert (again.state(), again.policy) == (STATE, transcript().policy)


def test_a_copy_goes_on_alone() -> None:
    """What is added to it does not show in the original, nor the other way round."""
    made = transcript()
    other = made.copy()
    other.add("?", None)
    made.add(".", None)

    assert list(other)[-1] == (None, "!?")
    assert list(made)[-1] == (None, "!.")
    assert replace(other, stretches=[]) == replace(made, stretches=[])


@pytest.mark.parametrize("name", STATE)
@pytest.mark.parametrize("value", [None, 1, [1], [{"kind": "unknown"}], {"calls": "never"}])
def test_a_field_of_another_type_is_refused(name: str, value: object) -> None:
    """The error says where, and what was expected."""
    for state in ({**STATE, name: value}, {key: item for key, item in STATE.items() if key != name}):
        with pytest.raises(StateError, match=rf"^state\.{name}[.a-z_\[\]0-9]*: expected .+, found .+"):
            Transcript.restore(Saved(state))


@pytest.mark.parametrize("name", POLICY)
def test_words_that_no_policy_has_are_refused(name: str) -> None:
    """The error names the field and what it may say."""
    state = {**STATE, "policy": {**POLICY, name: "never"}}

    with pytest.raises(
        StateError, match=rf"state\.policy\.{name}: expected one of [\w, ]+, {POLICY[name]}, found 'never'"
    ):
        Transcript.restore(Saved(state))


def test_a_long_value_is_cut_in_an_error() -> None:
    """Nobody wants a whole conversation in a log."""
    with pytest.raises(StateError) as raised:
        Transcript.restore(Saved({**STATE, "begun": ["x" * 1_000]}))

    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    ("format", "request_", "grammar", "fits"),
    [
        (FORMAT, REQUEST, ONE, True),
        (FORMAT, REQUEST, Grammar(content(rest())), True),
        (FORMAT, REQUEST, OTHER, False),
        (FORMAT, REQUEST, None, False),
        (Format(), REQUEST, ONE, False),
        (FORMAT, Request(), ONE, False),
        (FORMAT, replace(REQUEST, tools=None), ONE, False),
        (FORMAT, replace(REQUEST, tools=TOOLS[:1]), ONE, False),
        (FORMAT, replace(REQUEST, tool_choice=ToolChoice.NONE), ONE, False),
        (FORMAT, replace(REQUEST, parallel_tool_calls=False), ONE, False),
        (FORMAT, replace(REQUEST, reasoning_format="none"), ONE, False),
    ],
)
def test_everything_that_decides_how_text_is_read_has_a_part_in_the_identity(
    format: Format, request_: Request, grammar: Grammar | None, fits: bool
) -> None:
    """Format, request, and the grammar that was made by hand."""
    assert (identity(format, request_, grammar) == identity(FORMAT, REQUEST, ONE)) is fits
