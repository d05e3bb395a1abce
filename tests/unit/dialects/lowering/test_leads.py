"""Options that begin alike are taken apart after what they share."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from unrender.dialects.lowering.leads import Beginnings, Group, Lead, Mixture
from unrender.dialects.lowering.stops import Rest
from unrender.limits import MOST_WAYS
from unrender.nodes import (
    Chars,
    Choice,
    Layout,
    Literal,
    Mark,
    Node,
    Optional,
    Ref,
    Role,
    Sequence,
    Tag,
    Tolerated,
    Until,
)

A, B, C, R, Z = Literal("a"), Literal("b"), Literal("c"), Ref("r"), Literal("z")
AB = Literal("ab")
TEXT, OTHER_TEXT, X = Until(("<x>",)), Until(("<y>",)), Literal("<x>")
DIGIT = Chars((("0", "9"),))
WORDS = tuple(Literal(f"<{at}>") for at in range(MOST_WAYS + 1))
RULES: Mapping[str, Node | None] = {
    "r": Choice((A, Sequence((B, C)))),
    "a": A,
    "closed": None,
    "again": Choice((A, Ref("again"))),
}
BEGINNINGS = Beginnings(RULES.__getitem__)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ((AB, R), [Lead("ab", (R,), 7)]),
        ((Layout("\n"), A), [Lead("\n", (A,), 7)]),
        ((Literal(""), Layout(""), Mark("\ufdd0"), A, B), [Lead("a", (B,), 7)]),
        ((), [Lead("", (), 7)]),
        ((TEXT, X), [Lead("", (TEXT, X), 7)]),
        ((DIGIT, A), [Lead("", (DIGIT, A), 7)]),
        ((Choice((A, Tolerated(C), B)), C), [Lead("a", (C,), 7), Lead("b", (C,), 7)]),
        ((Optional(A), B), [Lead("a", (B,), 7), Lead("b", (), 7)]),
        ((Tag(Role.NAME, Sequence((A, B))), C), [Lead("a", (B, C), 7)]),
        ((R, Z), [Lead("a", (Z,), 7, "r"), Lead("b", (C, Z), 7, "r")]),
        ((Ref("closed"), Z), [Lead("", (Ref("closed"), Z), 7)]),
        ((Ref("again"),), [Lead("a", (), 7, "again")]),
        ((Choice((A, A)),), [Lead("a", (), 7)]),
        ((Choice(WORDS[:2]),), [Lead("<0>", (), 7), Lead("<1>", (), 7)]),
    ],
    ids=repr,
)
def test_the_ways_in_which_an_option_begins(option: Rest, expected: list[Lead]) -> None:
    """Each with its first literal, what follows it, and the rule that it is in; free text and closed rules without text."""
    assert BEGINNINGS.leads(option, 7) == expected


def test_an_option_with_too_many_ways_is_not_looked_into() -> None:
    """As many as allowed are returned, one more is none."""
    assert len(BEGINNINGS.leads((Choice(WORDS[:MOST_WAYS]),), 0)) == MOST_WAYS
    assert BEGINNINGS.leads((Choice(WORDS),), 0) == []


def test_a_lead_knows_what_is_left_of_it() -> None:
    """After some of its text, or after all; a rule tells it from others, or else what follows."""
    lead = Lead("ab", (R,), 0)

    assert lead.after(1) == (B, R)
    assert lead.after(2) == (R,)
    assert lead.origin == (R,)
    assert Lead("ab", (R,), 0, "rule").origin == "rule"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([(A,), (B,)], None),
        ([(TEXT, X), (A, B)], Mixture(("<x>",), ((X,),), (Lead("a", (B,), 1),))),
        ([(A, B), (TEXT, X)], Mixture(("<x>",), ((X,),), (Lead("a", (B,), 0),))),
        ([(TEXT, X), (TEXT, Z), (TEXT, X)], Mixture(("<x>",), ((X,), (Z,)), ())),
        ([(Optional(A), TEXT, X)], Mixture(("<x>",), ((X,),), (Lead("a", (TEXT, X), 0),))),
        ([(TEXT, X), (DIGIT,), ()], Mixture(("<x>",), ((X,),), (Lead("", (DIGIT,), 1), Lead("", (), 2)))),
        ([(TEXT, X), (OTHER_TEXT, X)], None),
        ([(TEXT, X), (Choice(WORDS),)], None),
    ],
    ids=["words", "text first", "text last", "texts alike", "inside", "no words", "other stops", "too many"],
)
def test_free_text_and_what_is_beside_it(options: list[Rest], expected: Mixture | None) -> None:
    """Texts up to the same stops are one, with each thing that follows once; texts up to other stops do not mix."""
    assert BEGINNINGS.mixture(options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([(A,), (B,)], [Group("", ((A,),)), Group("", ((B,),))]),
        ([(A,), (AB, C)], [Group("a", ((), (B, C)))]),
        ([(AB, C), (Z,), (A,)], [Group("", ((Z,),)), Group("a", ((), (B, C)))]),
        ([(A, B), (A, C)], [Group("a", ((B,), (C,)))]),
        ([(Choice((A, Z)), B), (AB,)], [Group("a", ((B,), (B,))), Group("", ((Z, B),))]),
        ([(Ref("a"), B), (Ref("a"), C)], [Group("", ((Ref("a"), B),)), Group("", ((Ref("a"), C),))]),
        ([(Ref("a"), B), (A, C)], [Group("a", ((B,), (C,)))]),
        ([(A,), (AB,), (DIGIT,)], [Group("", ((A,),)), Group("", ((AB,),)), Group("", ((DIGIT,),))]),
        ([(A,), (AB,), ()], [Group("", ((),)), Group("a", ((), (B,)))]),
    ],
    ids=["apart", "longer", "sorted", "same word", "other ways", "same rule", "two places", "no word", "nothing"],
)
def test_options_that_begin_alike_are_grouped(options: list[Rest], expected: list[Group]) -> None:
    """What they share is once before what is left of each; others stay whole, and all do beside what has no text."""
    assert BEGINNINGS.groups(options) == expected
