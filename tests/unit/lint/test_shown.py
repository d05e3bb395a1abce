"""The place in a rendering that shows what a rule says."""

from __future__ import annotations

import pytest

from unrender.lint.shown import around, excerpt

LONG = "a" * 100 + "X" + "b" * 100


@pytest.mark.parametrize(
    ("text", "start", "end", "shown"),
    [
        ("abc", 1, 2, "abc"),
        (LONG, 100, 101, "…" + "a" * 60 + "X" + "b" * 60 + "…"),
        ("a" * 60 + "X" + "b" * 60, 60, 61, "a" * 60 + "X" + "b" * 60),
        ("a" * 61 + "X" + "b" * 60, 61, 62, "…" + "a" * 60 + "X" + "b" * 60),
        ("a" * 60 + "X" + "b" * 61, 60, 61, "a" * 60 + "X" + "b" * 60 + "…"),
        ("", 0, 0, ""),
    ],
)
def test_sixty_characters_are_shown_on_each_side(text, start, end, shown):
    """An ellipsis says that there is more."""
    assert around(text, start, end) == shown


@pytest.mark.parametrize(
    ("text", "word", "shown"),
    [
        ("X" + "a" * 100 + "X", "X", "…" + "a" * 60 + "X"),  # the last place of two
        (LONG, "X", "…" + "a" * 60 + "X" + "b" * 60 + "…"),
        ("b" * 100, "X", "b" * 60 + "…"),  # a word that is not there: the beginning
    ],
)
def test_an_excerpt_is_around_the_last_place(text, word, shown):
    """Where a word is several times, the last place is the one meant."""
    assert excerpt(text, word) == shown
