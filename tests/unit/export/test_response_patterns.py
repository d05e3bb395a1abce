"""Literals and skeletons as patterns."""

from __future__ import annotations

import re

import pytest

from unrender.export.response_calls import any_of, at_most, beside_layout, beside_text, escaped_pattern, skeleton
from unrender.format import Slot


@pytest.mark.parametrize("text", ['<|a|>[x]{"y": (1)}', "a\\b^c$d*e+f?g.h", "line\nbreak\ttab", "]<]a[>["])
def test_an_escaped_text_matches_itself_alone(text: str) -> None:
    """A pattern for a text matches that text, whatever characters it has."""
    assert re.fullmatch(escaped_pattern(text), text)
    assert not re.fullmatch(escaped_pattern(text), text + "x")


def test_the_longest_alternative_is_tried_first() -> None:
    """Of alternatives that begin alike, the longer one is matched."""
    assert re.match(any_of(["ab", "abc", "", "ab"]), "abcd")[0] == "abc"


def test_no_alternatives_are_no_pattern() -> None:
    """Nothing to choose from is an empty pattern."""
    assert any_of([""]) == ""


def test_layout_beside_text_has_a_limit() -> None:
    """White space beside verbatim text is matched up to the marker's own, on either side."""
    assert beside_text("\n</a>\n\n", "</a>") == r"\s{0,1}</a>\s{0,2}"
    assert at_most("") == ""


def test_layout_elsewhere_has_none() -> None:
    """Between literals where no text is, any white space is matched where there is some, and none where there is not."""
    pattern = beside_layout(["</a>\n", "</b>", "</c>"])

    assert re.fullmatch(pattern, "</a></b></c>")
    assert re.fullmatch(pattern, "</a>\n\n </b></c>")
    assert not re.fullmatch(pattern, "</a></b>\n</c>")


def test_a_slot_ends_where_the_next_literal_begins() -> None:
    """A slot holds no character that begins what follows, and no white space if it is a name."""
    pattern = skeleton(("<f=", Slot.NAME, ">"), groups=[Slot.NAME])

    assert re.fullmatch(pattern, "<f=get_weather>")["name"] == "get_weather"
    assert not re.fullmatch(pattern, "<f=a b>")


def test_a_slot_at_the_end_stops_before_what_may_follow() -> None:
    """What follows the skeleton limits its last slot."""
    pattern = skeleton((Slot.NAME,), follows=["<key>", "[end]"], groups=[Slot.NAME])

    assert [re.match(pattern, text)[0] for text in ("f<key>", "f[end]")] == ["f", "f"]


def test_a_slot_that_is_there_twice_holds_the_same_text() -> None:
    """A key that is repeated in the closer must be the same."""
    pattern = skeleton(("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">"), groups=[Slot.KEY, Slot.VALUE])

    assert re.fullmatch(pattern, "<a>1</a>")
    assert not re.fullmatch(pattern, "<a>1</b>")
