"""Text that goes straight through, up to what may be the beginning of something else."""

from __future__ import annotations

import pickle

import pytest
from cases import cases

from unrender.values.finder import JSON_STRING, Flow

FLOW = Flow(["</think>", "<a>"], '"', last="\n\n")


@cases
def test_how_much_goes_through(text: str, taken: list[object] | None) -> None:
    """Nothing where a literal is, or one of the characters; what ends a turn matters at the end of a chunk alone."""
    assert FLOW.take(text) == (taken and tuple(taken))
    assert pickle.loads(pickle.dumps(FLOW)).take(text) == FLOW.take(text)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("x0123456789ab", None),
        ("x0123456789abzz", None),
        ("x0123456789a", ("x", 1)),
        ("x0123456789az", ("x0123456789az", 13)),
    ],
)
def test_long_literals_are_looked_at_in_part(text: str, taken: tuple[str, int] | None) -> None:
    """What agrees in twelve characters is left to the instructions."""
    assert Flow(["0123456789abcdef"]).take(text) == taken


def test_nothing_ends_text_without_literals() -> None:
    """All of it goes through."""
    assert (Flow().take("x"), Flow([""]).take("x")) == (("x", 1), ("x", 1))


@pytest.mark.parametrize(
    ("text", "taken"), [("é'< b", ("é'< b", 5)), ("a\\", None), ('a"', None), ("a\n", None), ("\x1f", None)]
)
def test_text_inside_a_json_string(text: str, taken: tuple[str, int] | None) -> None:
    """Up to a quotation mark, a backslash or a control character."""
    assert JSON_STRING.take(text) == taken
