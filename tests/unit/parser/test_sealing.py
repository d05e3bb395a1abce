"""What a saved parser is for: its format, its request, and the grammar that was made by hand, if there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.families import REQUEST, TOOLS

from unrender.errors import StateError
from unrender.format import Format, TurnTexts
from unrender.grammar import Grammar, content, literal, rest
from unrender.messages.wire import Request, ToolChoice
from unrender.parser.sealing import body_digest, opened, sealed

FORMAT = Format(turn=TurnTexts(end="<end>"))
ONE, OTHER = Grammar(content(rest())), Grammar(literal("a"))


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
def test_a_state_fits_what_it_was_taken_for(
    format: Format, request_: Request, grammar: Grammar | None, fits: bool
) -> None:
    """Everything that decides how text is read."""
    state = sealed({"a": 1}, FORMAT, REQUEST, ONE)

    if fits:
        assert opened(state, format, request_, grammar).number("a") == 1
    else:
        with pytest.raises(
            StateError, match=r"state\.for: expected [0-9a-f]{32}, the digest of this format and request"
        ):
            opened(state, format, request_, grammar)


def test_a_state_without_a_grammar() -> None:
    """It is another one."""
    state = sealed({"a": 1}, FORMAT, REQUEST, None)

    assert opened(state, FORMAT, REQUEST, None).number("a") == 1
    with pytest.raises(StateError):
        opened(state, FORMAT, REQUEST, ONE)


def test_the_digest_is_of_all_but_itself() -> None:
    """In whatever order the fields come."""
    state = sealed({"a": 1, "b": "\ud800"}, FORMAT, REQUEST, None)
    backwards: dict[str, Any] = dict(reversed(state.items()))

    assert (state["version"], state["digest"]) == (3, body_digest(state))
    assert body_digest(backwards) == state["digest"]
    assert body_digest({**state, "a": 2}) != state["digest"]
