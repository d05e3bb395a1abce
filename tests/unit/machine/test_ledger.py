"""Text that is consumed: its role, its event, and white space that waits for more content."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import machine_at, taken

from unrender.machine.events import ContentText, ReasoningText
from unrender.machine.interpreter import Machine
from unrender.nodes import Role


def at_rest(text: str = "", **fields: Any) -> Machine:
    """Return a machine without a way back."""
    machine = machine_at(text, **fields)
    machine.frames.clear()
    return machine


def test_white_space_that_waits_is_not_final() -> None:
    """Nor is what comes after it: when it turns out to be content, or the output ends, its role is known."""
    machine = at_rest("A\n<c>", answered=True)
    machine.text(Role.CONTENT, 1)
    machine.carry(2)
    machine.take(Role.MARKER, 5)

    assert (machine.final_end, machine.final_spans()) == (1, [(Role.CONTENT, 1)])
    machine.final = True
    assert machine.final_end == 5
    machine.final = False
    machine.bring()
    assert machine.final_spans() == [(Role.CONTENT, 1), (Role.CONTENT, 2), (Role.MARKER, 5)]


def test_no_text_is_no_event_and_no_span() -> None:
    """And nothing is read backwards."""
    machine = at_rest("abc")
    machine.text(Role.CONTENT, 2)
    machine.text(Role.REASONING, 2)
    machine.text(Role.CONTENT, 1)

    assert (machine.at, machine.events, taken(machine)) == (2, [ContentText("ab")], "content 'ab'")


def test_text_that_is_taken_has_a_role_and_no_event() -> None:
    """Nothing is taken twice."""
    machine = at_rest("abc")
    machine.take(Role.MARKER, 1)
    machine.take(Role.MARKER, 2)
    machine.take(Role.LAYOUT, 2)
    machine.take(Role.LAYOUT, 1)

    assert (machine.at, taken(machine), machine.events) == (2, "marker 'ab'", [])


def test_text_is_an_event() -> None:
    """Reasoning or content; where there is none, there is no event."""
    machine = at_rest("abcd")
    machine.text(Role.REASONING, 1)
    machine.text(Role.CONTENT, 1)
    machine.text(Role.CONTENT, 3)

    assert machine.events == [ReasoningText("a"), ContentText("bc")]
    assert taken(machine) == "reasoning 'a', content 'bc'"


def test_text_that_the_prompt_has_given_is_not_content() -> None:
    """What a generation prompt has written is before position 0; the rest of the same text is the model's."""
    given, continued, thought = (at_rest("abcd", begun=2, given=given) for given in (True, False, True))
    given.text(Role.CONTENT, 1)
    given.text(Role.CONTENT, 4)
    continued.text(Role.CONTENT, 4)
    thought.text(Role.REASONING, 4)

    assert given.events == [ContentText("cd")]
    assert given.at == 4
    assert continued.events == [ContentText("abcd")]
    assert thought.events == [ReasoningText("abcd")]


def test_roles_may_be_read_as_others() -> None:
    """Reasoning is content where the request wants it so."""
    machine = at_rest("ab", roles={Role.REASONING: Role.CONTENT})
    machine.text(Role.REASONING, 2)

    assert machine.events == [ContentText("ab")]
    assert taken(machine) == "content 'ab'"


def test_white_space_between_calls_waits_for_more_content() -> None:
    """When content follows, it is content; until then, and when nothing does, it is layout."""
    machine = at_rest("A\n\n \nB", answered=True)
    machine.text(Role.CONTENT, 1)
    machine.carry(2)
    machine.take(Role.MARKER, 3)
    machine.carry(3)
    machine.carry(4)
    assert taken(machine) == "content 'A', layout '\\n', marker '\\n', layout ' '"
    machine.take(Role.LAYOUT, 5)
    machine.text(Role.CONTENT, 6)

    assert [event.text for event in machine.events if isinstance(event, ContentText)] == ["A", "\n ", "B"]
    assert taken(machine).startswith("content 'A', content '\\n', marker '\\n', content ' ', layout '\\n', content 'B'")
    assert (machine.carried, machine.carried_spans) == ([], [])


def test_reasoning_does_not_bring_white_space_along() -> None:
    """It waits for content."""
    machine = at_rest("\nab", answered=True)
    machine.carry(1)
    machine.text(Role.REASONING, 2)
    assert machine.events == [ReasoningText("a")]
    machine.text(Role.CONTENT, 3)

    assert machine.events == [ReasoningText("a"), ContentText("\n"), ContentText("b")]


@pytest.mark.parametrize("fields", [{"answered": False}, {"answered": True, "ways": 1}])
def test_white_space_is_layout_before_content_and_in_attempts(fields: dict[str, Any]) -> None:
    """What may be taken back does not wait."""
    ways = fields.pop("ways", 0)
    machine = machine_at(" x", **fields)
    del machine.frames[ways:]
    machine.carry(1)

    assert (taken(machine), machine.carried) == ("layout ' '", [])
