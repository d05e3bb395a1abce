"""Text that goes straight through, up to what may be the beginning of something else."""

from __future__ import annotations

import pickle

import pytest

from unrender.values.finder import JSON_STRING, Flow

FLOW = Flow(["</think>", "<a>"], '"', last="\n\n")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("ab", ("ab", 2)),
        ("a<", ("a", 1)),
        ("a</th", ("a", 1)),
        ("a<b", ("a<b", 3)),
        ("<a>", None),
        ("z<a>b", None),
        ("</thin", ("", 0)),
        ('a"', None),
        ("x\n", ("x", 1)),
        ("x\ny", ("x\ny", 3)),
        ("x\n\n", ("x", 1)),
        ("x\n\ny", ("x\n\ny", 4)),
    ],
)
def test_how_much_goes_through(text: str, taken: tuple[str, int] | None) -> None:
    """Nothing where a literal is, or one of the characters; what ends a turn matters at the end of a chunk alone."""
    assert FLOW.take(text) == taken
    assert pickle.loads(pickle.dumps(FLOW)).take(text) == taken


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
