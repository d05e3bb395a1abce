"""Text that goes straight through, up to what may be the beginning of something else."""

from __future__ import annotations

import pickle

from cases import cases

from unrender.values.finder import JSON_STRING, Flow

FLOW = Flow(["</think>", "<a>"], '"', last="\n\n")


@cases
def test_how_much_goes_through(text: str, taken: list[object] | None) -> None:
    """Nothing where a literal is, or one of the characters; what ends a turn matters at the end of a chunk alone."""
    assert FLOW.take(text) == (taken and tuple(taken))
    assert pickle.loads(pickle.dumps(FLOW)).take(text) == FLOW.take(text)


@cases
def test_a_flow_takes_what_no_literal_can_change(
    literals: list[str], characters: str, last: str, text: str, taken: list[object] | None
) -> None:
    """Text up to where a literal may begin that is not all there; what agrees in twelve characters is left to the instructions."""
    assert Flow(literals, characters, last).take(text) == (taken and tuple(taken))


def test_nothing_ends_text_without_literals() -> None:
    """All of it goes through."""
    assert (Flow().take("x"), Flow([""]).take("x")) == (("x", 1), ("x", 1))


@cases
def test_text_inside_a_json_string(text: str, taken: list[object] | None) -> None:
    """Up to a quotation mark, a backslash or a control character."""
    assert JSON_STRING.take(text) == (taken and tuple(taken))
