"""Slots and literals of calls."""

from __future__ import annotations

from unrender.analysis.tokens import Row, find_tokens, make_row, mark_counters, merge
from unrender.format import Slot


def row(text: str) -> Row:
    words = {"alpha": (Slot.NAME, 0), "beta": (Slot.NAME, 1), "X1": (Slot.ARGUMENTS, 0), "X2": (Slot.ARGUMENTS, 1)}
    found = make_row(text, find_tokens(text, words), 2)
    assert found is not None
    return found


def test_row_has_items_and_what_is_around_them():
    """A row keeps what stands before, between and behind its items."""
    found = row("<a>alpha:X1</a><a>beta:X2</a>!")

    assert found.items == ((Slot.NAME, ":", Slot.ARGUMENTS),) * 2
    assert (found.before, found.betweens, found.after) == ("<a>", ("</a><a>",), "</a>!")


def test_interleaved_items_make_no_row():
    """Items that are mixed up, or missing, are not understood."""
    words = {"alpha": (Slot.NAME, 0), "beta": (Slot.NAME, 1)}

    assert make_row("alpha beta alpha", find_tokens("alpha beta alpha", words), 2) is None
    assert make_row("alpha", find_tokens("alpha", words), 2) is None


def test_counters_inside_are_slots():
    """A number that grows by one from item to item counts them."""
    marked, start = mark_counters(row("alpha:0 X1;beta:1 X2;"))

    assert marked.items[0] == (Slot.NAME, ":", Slot.INDEX, " ", Slot.ARGUMENTS)
    assert start == 0


def test_counters_outside_are_marked():
    """A counter may stand before the first slot of an item, even inside a tag."""
    marked, start = mark_counters(row("<c1>alpha X1</c1><c2>beta X2</c2>"))

    assert start == 1
    assert merge([marked.before]) == ("<c", Slot.INDEX, ">")
    assert merge([marked.after]) == ("</c", Slot.INDEX, ">")


def test_equal_numbers_do_not_count():
    """A number that stays the same is a literal."""
    marked, start = mark_counters(row("v2 alpha X1; v2 beta X2;"))

    assert start is None
    assert marked.before == "v2 "


def test_literals_are_merged():
    """Neighbouring literals are one, empty ones none."""
    assert merge(["a", "", "b", Slot.NAME, ""]) == ("ab", Slot.NAME)
