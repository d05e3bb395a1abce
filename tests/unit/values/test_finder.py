"""Finder: the first of several literals, in text that arrives in pieces."""

from __future__ import annotations

import pickle
import tracemalloc
from random import Random

import pytest

from unrender.values.finder import Finder

MARKS = Finder(("<tool>", "<tool_call>", "\n</x>", "</x>"))
GUARDED = Finder((">>>all", ">>>"), guarded=(">>>all",))


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("a <tool> b", 0, (2, "<tool>")),
        ("a <tool_call> <tool>", 0, (2, "<tool_call>")),
        ("a\n</x>", 0, (1, "\n</x>")),
        ("<tool> <tool>", 1, (7, "<tool>")),
        ("nothing", 0, (-1, "")),
    ],
)
def test_the_first_and_longest_literal_is_found(text: str, start: int, expected: tuple[int, str]) -> None:
    """Of literals that begin at one place the longest counts; the search begins at `start`."""
    assert MARKS.find(text, start) == expected


def test_a_search_may_have_an_end() -> None:
    """A literal that reaches beyond the end is not found."""
    assert MARKS.find("ab</x>", 0, 6) == (2, "</x>")
    assert MARKS.find("ab</x>", 0, 5) == (-1, "")


@pytest.mark.parametrize(
    ("text", "place"), [("abc", 3), ("abc<", 3), ("abc<tool", 3), ("a<b</", 3), ("a\n", 1), ("", 0)]
)
def test_a_tail_that_may_become_a_literal_is_undecided(text: str, place: int) -> None:
    """Text is certain up to where a literal could begin that is not all there."""
    assert MARKS.undecided_from(text, 0) == place


def test_a_literal_may_grow_into_a_longer_one() -> None:
    """What is a literal, or none yet, may be the beginning of a longer one."""
    assert MARKS.may_grow("<tool", 0)
    assert not MARKS.may_grow("<tool>", 0)
    assert GUARDED.may_grow(">>>", 0)


def test_a_guarded_literal_is_a_word() -> None:
    """A guarded literal does not match at the beginning of a longer word, and waits to be sure."""
    assert GUARDED.find(">>>all you", 0) == (0, ">>>all")
    assert GUARDED.find(">>>allocate", 0) == (0, ">>>")
    assert GUARDED.undecided_from("x>>>all", 0) == 1


def test_where_nothing_is_text_is_certain_up_to_what_may_begin() -> None:
    """As far as no literal can have begun."""
    assert [MARKS.decided(text, 0) for text in ("", "abc", "abc<")] == [(0, ""), (3, ""), (3, "")]
    assert MARKS.decided("abc", 2) == (3, "")


def test_only_what_a_longer_literal_begins_with_may_grow() -> None:
    """Whatever other literals there are, before and after it."""
    finder = Finder(("<a", "<ab", "<b", "b"))

    assert [finder.may_grow(text, 0) for text in ("<", "<a", "<ab", "<b", "b", "c", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
    ]


def test_the_literal_at_a_place() -> None:
    """`at` looks at one place only."""
    assert [MARKS.at("x</x>", place) for place in (0, 1)] == ["", "</x>"]


def test_absence_is_certain_without_a_first_character() -> None:
    """Text in which no literal can even begin is told apart from the rest."""
    assert MARKS.absent("plain text", 0)
    assert not MARKS.absent("a < b", 0)
    assert MARKS.absent("a < b", 3)


def test_nothing_is_found_of_no_literals() -> None:
    """A finder without literals finds nothing and holds nothing back."""
    assert Finder(()).find("<", 0) == (-1, "")
    assert Finder(()).undecided_from("<", 0) == 1


def test_a_finder_pickles() -> None:
    """A finder that went through pickle finds the same."""
    copy = pickle.loads(pickle.dumps(GUARDED))

    assert copy.find(">>>allocate", 0) == (0, ">>>")


def test_a_literal_is_decided_when_none_can_begin_before_it() -> None:
    """A literal inside the beginning of a longer one waits for the longer one."""
    finder = Finder(("<|tool", "function<|tool_sep|>"))

    assert finder.decided("a function<|tool_s", 0) == (2, "")
    assert finder.decided("a function<|tool_x", 0) == (10, "<|tool")
    assert finder.decided("a function<|tool_sep|>", 0) == (2, "function<|tool_sep|>")


def test_a_literal_is_decided_whole_when_none_longer_can_begin_with_it() -> None:
    """Where a literal begins may be certain before its end is."""
    finder = Finder(("<|im", "<|im_end|>"))

    assert finder.decided("a <|im", 0) == (2, "<|im")
    assert finder.decided("a <|im", 0, whole=True) == (2, "")
    assert finder.decided("a <|im x", 0, whole=True) == (2, "<|im")


def test_a_long_literal_costs_its_length() -> None:
    """A finder keeps no copy of each beginning of a literal."""
    tracemalloc.start()
    finder = Finder(("x" * 10_000,))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert finder.undecided_from("x" * 9_000, 0) == 0
    assert kept < 5_000_000


def test_long_text_is_searched_to_the_same_end() -> None:
    """In long text the literals that begin alike after white space are found as in short text: the first, and the longest there."""
    dice = Random(5)
    for _ in range(300):
        spaces, rests = (
            dice.choices(["", "", "\n", "\n\n", " "], k=4),
            dice.choices(["<", "<a", "<ab", "<<", "<a\n", "[b"], k=4),
        )
        literals = [space + rest for space, rest in zip(spaces, rests, strict=True)][: dice.randint(1, 4)]
        finder = Finder(literals, guarded=literals[:1] * dice.randint(0, 1))
        text = "".join(dice.choices("<ab\n [", k=80))
        start, end = dice.randint(0, 4), dice.choice([70, 80, 1000])
        found = finder.pattern.search(text, start, end)
        assert finder.find(text, start, end) == ((found.start(), found.group()) if found else (-1, ""))
