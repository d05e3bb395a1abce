"""Text on the fast path, up to the possible start of a marker."""

from __future__ import annotations

import pickle

from cases import cases

from unrender.values.finder import JSON_STRING, Flow

FLOW = Flow(["</think>", "<a>"], '"', last="\n\n")


@cases
def test_how_much_goes_through(text: str, taken: list[object] | None) -> None:
    """Text with a literal or one of the characters isn't taken. Ends of turn matter only at the end of a chunk."""
    assert FLOW.take(text) == (taken and tuple(taken))
    assert pickle.loads(pickle.dumps(FLOW)).take(text) == FLOW.take(text)


@cases
def test_a_flow_takes_what_no_literal_can_change(
    literals: list[str], characters: str, last: str, text: str, taken: list[object] | None
) -> None:
    """Text up to a possible literal is taken. After twelve matching characters, the machine's instructions decide."""
    assert Flow(literals, characters, last).take(text) == (taken and tuple(taken))


def test_nothing_ends_text_without_literals() -> None:
    """All text is taken."""
    assert (Flow().take("x"), Flow([""]).take("x")) == (("x", 1), ("x", 1))


@cases
def test_text_inside_a_json_string(text: str, taken: list[object] | None) -> None:
    """Text is taken up to a quotation mark, a backslash or a control character."""
    assert JSON_STRING.take(text) == (taken and tuple(taken))
