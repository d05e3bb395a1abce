"""Slots and literals of calls."""

from __future__ import annotations

import pytest

from unrender.analysis.find.skeletons import COUNTER, Row, Token, find_tokens, joined_skeleton, make_row, mark_counters
from unrender.format import Slot


def row(text: str) -> Row:
    words = {"alpha": (Slot.NAME, 0), "beta": (Slot.NAME, 1), "X1": (Slot.ARGUMENTS, 0), "X2": (Slot.ARGUMENTS, 1)}
    found = make_row(text, find_tokens(text, words), 2)
    assert found is not None
    return found


def test_row_has_items_and_what_is_around_them():
    """A row keeps what is before, between and after its items."""
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
    """A counter may be before the first slot of an item, even inside a tag."""
    marked, start = mark_counters(row("<c1>alpha X1</c1><c2>beta X2</c2>"))

    assert start == 1
    assert joined_skeleton([marked.before]) == ("<c", Slot.INDEX, ">")
    assert joined_skeleton([marked.after]) == ("</c", Slot.INDEX, ">")


def test_equal_numbers_do_not_count():
    """A number that stays the same is a literal."""
    marked, start = mark_counters(row("v2 alpha X1; v2 beta X2;"))

    assert start is None
    assert marked.before == "v2 "


def test_literals_are_merged():
    """Neighbouring literals are one, empty ones none."""
    assert joined_skeleton(["a", "", "b", Slot.NAME, ""]) == ("ab", Slot.NAME)


def at(start, end, slot, owner):
    return Token(start=start, end=end, slot=slot, owner=owner)


NAME, ARGS, INDEX, C = Slot.NAME, Slot.ARGUMENTS, Slot.INDEX, COUNTER


def test_words_are_found_outside_of_what_is_covered():
    """The longest word wins, covered places are left alone, and all tokens come in order."""
    assert find_tokens("ab abc b", {"ab": (NAME, 0), "abc": (ARGS, 1)}) == [at(0, 2, NAME, 0), at(3, 6, ARGS, 1)]
    assert find_tokens("ab ab", {"ab": (NAME, 0)}, [at(0, 2, ARGS, 1)]) == [at(0, 2, ARGS, 1), at(3, 5, NAME, 0)]
    assert find_tokens("ab", {"ab": (NAME, 0)}, [at(2, 3, ARGS, 1)]) == [at(0, 2, NAME, 0), at(2, 3, ARGS, 1)]
    assert find_tokens("x", {}, [at(3, 4, ARGS, 0), at(1, 2, ARGS, 0)]) == [at(1, 2, ARGS, 0), at(3, 4, ARGS, 0)]


def test_rows_need_every_item_in_its_place():
    """Items that touch make a row; a missing one, or one inside another, makes none."""
    two = [at(2, 3, NAME, 0), at(4, 5, ARGS, 0), at(6, 7, NAME, 1), at(8, 9, ARGS, 1)]
    inside = [at(0, 1, NAME, 0), at(1, 2, NAME, 1), at(2, 3, ARGS, 0), at(3, 4, ARGS, 1)]

    assert make_row("p-a.b,c.d;q", two, 2) == Row(
        before="p-", items=((NAME, ".", ARGS),) * 2, betweens=(",",), after=";q"
    )
    assert make_row("p-a.b,c.d;q", two, 3) is None
    assert make_row("abcd", inside, 2) is None
    assert make_row("ab", [at(0, 1, NAME, 0), at(1, 2, NAME, 1)], 2) == Row(
        before="", items=((NAME,), (NAME,)), betweens=("",), after=""
    )


def test_a_row_ends_at_its_neighbours():
    """What belongs to nobody is before and after the row, and is not in it."""
    tokens = [at(1, 2, NAME, -1), at(3, 4, ARGS, 0), at(5, 6, NAME, 7)]

    crowd = [at(0, 1, NAME, -1), *tokens, at(6, 7, NAME, 8)]
    touching = [at(0, 1, NAME, -1), at(1, 2, ARGS, 0), at(2, 3, NAME, 7)]

    assert make_row("x1-y+2z", tokens, 1) == Row(before="-", items=((ARGS,),), betweens=(), after="+")
    assert make_row("x1-y+2z", crowd, 1) == Row(before="-", items=((ARGS,),), betweens=(), after="+")
    assert make_row("xyz", touching, 1) == Row(before="", items=((ARGS,),), betweens=(), after="")


def counted(before, items, betweens, after):
    row, first = mark_counters(Row(before=before, items=tuple(items), betweens=tuple(betweens), after=after))
    return row.before, row.items, row.betweens, row.after, first


ONE = (NAME,)


def test_numbers_in_other_scripts_count_nothing():
    """Digits that are not a decimal number, as in `x²`, are text like any other."""
    texts = Row(before="²", items=((Slot.NAME,), (Slot.NAME,)), betweens=("³",), after="")

    assert mark_counters(texts) == (texts, None)


COUNTERS = {
    "in markers on both sides": (
        ("<0>", [ONE] * 2, ["</0>\n<1>"], "</1>"),
        (f"<{C}>", (ONE, ONE), (f"</{C}>\n<{C}>",), f"</{C}>", 0),
    ),
    "one item counts nothing": (("x1 ", [ONE], [], ""), ("x1 ", (ONE,), (), "", None)),
    "inside the items": (
        ("7:", [(NAME, "#1", ARGS), (NAME, "#2", ARGS)], [" 9:"], ""),
        ("7:", ((NAME, "#", INDEX, ARGS),) * 2, (" 9:",), "", 1),
    ),
    "words that differ end the search": (
        ("1b2a", [ONE] * 2, ["2c3a"], ""),
        (f"1b{C}a", (ONE, ONE), (f"2c{C}a",), "", 2),
    ),
    "three in a row": (("1", [ONE] * 3, ["2", "3"], ""), (C, (ONE,) * 3, (C, C), "", 1)),
    "a gap": (("1", [ONE] * 3, ["2", "4"], ""), ("1", (ONE,) * 3, ("2", "4"), "", None)),
    "a word between numbers": (("1", [ONE] * 3, ["x", "2"], ""), ("1", (ONE,) * 3, ("x", "2"), "", None)),
    "backwards": (("2", [ONE] * 2, ["1"], ""), ("2", (ONE,) * 2, ("1",), "", None)),
    "numbers of two digits": (("10.", [ONE] * 2, ["11."], ""), (f"{C}.", (ONE,) * 2, (f"{C}.",), "", 10)),
    "after each": (("", [ONE] * 2, ["1,"], "2,"), ("", (ONE,) * 2, (f"{C},",), f"{C},", 1)),
    "twice in an item": (
        ("", [(NAME, "1-1"), (NAME, "2-2")], [""], ""),
        ("", ((NAME, INDEX, "-", INDEX),) * 2, ("",), "", 1),
    ),
    "beside a number that does not count": (
        ("", [("1-5", NAME), ("2-5", NAME)], [""], ""),
        ("", ((INDEX, "-5", NAME),) * 2, ("",), "", 1),
    ),
    "the smallest number is the first": (
        ("5", [(NAME, "0"), (NAME, "1")], ["6"], ""),
        (C, ((NAME, INDEX),) * 2, (C,), "", 0),
    ),
    "items of other lengths": (
        ("a", [(NAME, "1", ARGS), (NAME, "2")], ["b"], "c"),
        ("a", ((NAME, "1", ARGS), (NAME, "2")), ("b",), "c", None),
    ),
    "literals of other lengths": (
        ("", [(NAME, "1"), (NAME, "2x")], [""], ""),
        ("", ((NAME, "1"), (NAME, "2x")), ("",), "", None),
    ),
}


@pytest.mark.parametrize(("row", "expected"), COUNTERS.values(), ids=COUNTERS)
def test_numbers_that_grow_by_one_are_counters(row, expected):
    """Before, inside and after the items, wherever the texts agree but for such numbers."""
    assert counted(*row) == expected


def test_merging_joins_literals_and_parts_counters():
    """Neighbours are joined, empty ones dropped, and a counter inside a literal becomes a slot."""
    assert joined_skeleton(["a", "b", NAME, "", "c", "", "d"]) == ("ab", NAME, "cd")
    assert joined_skeleton([f"x{C}y", NAME]) == ("x", INDEX, "y", NAME)
    assert joined_skeleton([C, "a"]) == (INDEX, "a")
    assert joined_skeleton([]) == ()
