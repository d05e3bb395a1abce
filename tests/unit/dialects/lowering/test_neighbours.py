"""Literals beside free text: which of them a lexer can tell from it, and where."""

from __future__ import annotations

import pytest

from unrender.dialects.lowering.leads import Lead
from unrender.dialects.lowering.neighbours import Beside, followers
from unrender.dialects.lowering.stops import Place, Places, Rest
from unrender.limits import MOST_WAYS
from unrender.nodes import Chars, Choice, Layout, Literal, Node, Optional, Ref, Role, Sequence, Tag, Until

A, B, MORE, X = Literal("a"), Literal("b"), Literal("<x>a"), Literal("<x>")
TEXT, DIGIT = Until(("<x>",)), Chars((("0", "9"),))
RULES: dict[str, Node | None] = {"r": Literal("<x>b"), "closed": None}


def rule(name: str) -> Node:
    found = RULES[name]
    assert found is not None
    return found


def beside(*rest: Node, stops: tuple[str, ...] = ("<x>",)) -> Beside:
    """Return free text up to `stops` with `rest` after it."""
    return Beside(stops, (rest,), Places(rule, lambda: None).place(stops, rest), RULES.__getitem__)


def taken(text: str, *rest: Node, after: Rest = (MORE,)) -> tuple[dict[str, list[Rest]], list[Rest]]:
    """Return what becomes of one way to begin."""
    free = beside(*after)
    free.take([Lead(text, rest, 0)])
    return free.exact, free.left


@pytest.mark.parametrize(
    "lead",
    [
        ("\n<x>b",),
        ("\n", Literal("<x>b")),
        ("\n", Layout("<x>"), B),
        ("\n<", Tag(Role.MARKER, Sequence((Literal("x>"), B)))),
        ("\n", Ref("r")),
    ],
    ids=repr,
)
def test_a_text_up_to_a_stop_is_one_lexeme(lead: tuple[str, *tuple[Node, ...]]) -> None:
    """However it is written; after it goes on what follows free text there, and what follows the literal."""
    assert taken(*lead) == ({"\n<x>": [(A,), (B,)]}, [])


def test_each_way_on_is_followed() -> None:
    """Two ways that share their beginning share a lexeme; others have their own."""
    words = Choice((Literal("<x>b"), Literal("!<x>"), Sequence((X, DIGIT))))

    exact, left = taken("\n", words)

    assert exact == {"\n<x>": [(A,), (B,), (DIGIT,)], "\n!<x>": [(A,), ()]}
    assert left == []


def test_what_free_text_says_as_well_is_left_out() -> None:
    """The literal goes on as the text does: up to the stop, as more text, or to the end."""
    assert taken("\n<x>a") == ({}, [])
    assert taken("\n", TEXT, MORE) == ({}, [])
    assert taken("word", after=(Optional(MORE),)) == ({}, [])


def test_what_free_text_does_not_say_is_handed_back() -> None:
    """The end where text must have a stop, text with something else after it, what is not a literal, a closed rule."""
    assert taken("word") == ({}, [(Literal("word"),)])
    assert taken("\n", TEXT, X) == ({}, [(Literal("\n"), TEXT, X)])
    assert taken("\n", Until(("<y>",)), MORE) == ({}, [(Literal("\n"), Until(("<y>",)), MORE)])
    assert taken("\n", DIGIT) == ({}, [(Literal("\n"), DIGIT)])
    assert taken("\n", Ref("closed")) == ({}, [(Literal("\n"), Ref("closed"))])


def test_a_stop_may_begin_before_more_text() -> None:
    """A literal that ends as a stop begins is not text as any other: the stop would be complete in it."""
    assert taken("<", TEXT, MORE) == ({}, [(Literal("<"), TEXT, MORE)])
    assert taken("a<x", TEXT, MORE) == ({}, [(Literal("a<x"), TEXT, MORE)])
    assert taken("<y", TEXT, MORE) == ({}, [])


def test_layout_before_the_stop_may_begin_before_more_text() -> None:
    """A stop that is longer by layout counts as another one only where the bare one is met as well."""
    text = Sequence((Literal("\n<x>a"),))
    bare = Choice((text, MORE))

    assert taken("\n", TEXT, text, after=(text,)) == ({}, [])
    assert taken("\n", TEXT, bare, after=(bare,)) == ({}, [(Literal("\n"), TEXT, bare)])


def test_the_stops_are_those_of_the_text_and_of_what_follows() -> None:
    """Each once, those of the text first."""
    assert beside(Choice((Literal("\n<x>"), X))).all_stops == ("<x>", "\n<x>")


def test_a_way_is_taken_once() -> None:
    """The same way twice adds nothing."""
    free = beside(MORE)

    free.take([Lead("<x>b", (), 0), Lead("<x>b", (), 1)])

    assert free.exact == {"<x>": [(A,), (B,)]}


def test_more_ways_than_are_followed_are_handed_back_whole() -> None:
    """None of them is lost."""
    words = [Literal(f"<x>{at}") for at in range(MOST_WAYS + 44)]

    exact, left = taken("\n", Choice(tuple(words)))

    assert list(exact) == ["\n<x>"]
    assert exact["\n<x>"][:3] == [(A,), (Literal("0"),), (Literal("1"),)]
    assert len(exact["\n<x>"]) - 1 + len(left) == len(words)
    assert left[-1] == (Literal(f"\n<x>{MOST_WAYS + 43}"),)


def test_followers_are_found_in_places_below() -> None:
    """What may follow a stop, flat, in each place once, though places may be in a circle."""
    below = Place(own={"<x>": [(Sequence((A, B)),)]}, found={"<x>": None})
    top = Place(own={"<x>": [(DIGIT,)], "<y>": [(A,)]}, below=[below], found={"<x>": None, "<y>": None})
    below.below.append(top)

    assert followers(top, "<x>") == [(DIGIT,), (Literal("ab"),)]
    assert followers(top, "<y>") == [(A,)]
    assert followers(top, "<z>") == []


def test_followers_are_bounded() -> None:
    """No more places are looked into once there are more than asked for."""
    below = Place(own={"<x>": [(B,)]}, found={"<x>": None})
    top = Place(own={"<x>": [(A,), (DIGIT,)]}, below=[below], found={"<x>": None})

    assert followers(top, "<x>", most=1) == [(A,), (DIGIT,)]
    assert followers(top, "<x>", most=2) == [(A,), (DIGIT,), (B,)]
