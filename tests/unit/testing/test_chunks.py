"""Ways to cut a text into chunks."""

from __future__ import annotations

import pytest

from unrender.limits import MAX_PLACES
from unrender.testing import splits
from unrender.testing.chat import halves, pieces, random_pieces


@pytest.mark.parametrize("text", ["", "a", "ab", "one two three", "é😀\n" * 40])
def test_every_split_is_the_whole_text(text):
    """Nothing is lost or repeated by any way of cutting."""
    assert {"".join(chunks) for chunks in splits(text)} == {text}


def test_splits_cut_everywhere():
    """The whole text, single characters and every cut in two are among the splits."""
    found = list(splits("abc"))

    assert [chunks for chunks in (["abc"], ["a", "b", "c"], ["a", "bc"], ["ab", "c"]) if chunks not in found] == []


def test_long_texts_are_cut_at_a_bounded_number_of_places():
    """A long text is cut in two at a limited number of places, including its beginning and near its end."""
    cut = [len(first) for first, _ in halves("x" * 12_345)]

    assert len(cut) <= MAX_PLACES
    assert (cut[0], cut[-1] > 12_300) == (1, True)


def test_random_pieces_are_the_same_each_time():
    """The cuts depend only on text, size and seed."""
    text = "The quick brown fox jumps over the lazy dog."

    assert random_pieces(text, 5) == random_pieces(text, 5)
    assert random_pieces(text, 5) != random_pieces(text, 5, seed=1)
    assert max(map(len, random_pieces(text, 5))) <= 5


def test_pieces_have_one_size():
    """All pieces have the given size, except that the last one may be shorter."""
    assert pieces("abcde", 2) == ["ab", "cd", "e"]
