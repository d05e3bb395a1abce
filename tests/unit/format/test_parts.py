"""Tests of the parts of a Format, and of properties derived from them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from cases import cases

from unrender.errors import FormatError
from unrender.format import (
    Arguments,
    CallSyntax,
    Containers,
    Envelope,
    Format,
    Reasoning,
    Slot,
    Strings,
    Typing,
    Words,
)
from unrender.format.data import decode

NAME, ARGUMENTS, ID, KEY, VALUE, TYPE = Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.KEY, Slot.VALUE, Slot.TYPE


@cases
def test_what_is_between_two_arguments(arguments: dict[str, Any], between: str) -> None:
    """The text between two arguments includes the text after a value, the separator, and the text before the next key."""
    assert decode(Arguments, arguments, where="").between == between


@cases
def test_values_that_nothing_of_their_own_ends(arguments: dict[str, Any], open_ended: bool) -> None:
    """A value is open-ended if it has no quotes, and only whitespace follows it."""
    assert decode(Arguments, arguments, where="").open_ended is open_ended


MARKED = CallSyntax(
    function=("<f ", NAME, ">", ARGUMENTS, "</f>"),
    arguments=Arguments(entry=("<p ", KEY, "=", TYPE, ">", VALUE, "</p>")),
)
BARE = CallSyntax(function=(NAME, ARGUMENTS), arguments=Arguments(entry=(KEY, VALUE)))


@cases
def test_markers_by_the_names_of_the_field(view: str, marked: str) -> None:
    """A marker is the text next to its slot, or empty if there is none."""
    assert getattr(MARKED, view) == marked
    assert getattr(BARE, view) == ""
    assert getattr(CallSyntax(), view) == ""


@cases
def test_reasoning_that_a_text_closes(markers: dict[str, str], text: str, closed: bool) -> None:
    """Reasoning is closed if the text contains the end marker outside the start marker. An empty end closes nothing."""
    assert Reasoning(**markers).closed_in(text) is closed


@cases
def test_an_end_within_the_start(markers: dict[str, str], expected: bool) -> None:
    """Whitespace around the end marker is ignored, and whitespace alone doesn't count."""
    assert Reasoning(**markers).ends_within_start is expected


@pytest.mark.parametrize(("field", "expected"), [({}, True), ({"name_field": ("name",)}, False)])
def test_a_name_that_is_a_key(field: dict[str, Any], expected: bool) -> None:
    """A call without a field for its name has the name as the key of its arguments."""
    assert Envelope(**field).name_is_key is expected


def test_a_slot_is_no_text():
    """Strings that equal a slot's name are literals, so a format with a string differs from one with the slot."""
    assert Slot.KEY != "key"
    assert (Slot.KEY, "=") != ("key", "=")
    assert ("key", Slot.KEY).count(Slot.KEY) == 1
    assert {Slot.KEY: 1}[Slot.KEY] == 1
    assert pickle.loads(pickle.dumps(Slot.KEY)) is Slot.KEY

    with pytest.raises(FormatError, match="expected the slot `name`"):
        Format(tools=CallSyntax(call_start="<f>", function=("name", Slot.ARGUMENTS)))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Strings, ["json", "python", "raw", "quoted", "single"]),
        (Words, ["json", "python", "python_null"]),
        (Containers, ["json", "python", "bare", "xml"]),
        (Typing, ["syntax", "schema", "attribute"]),
    ],
)
def test_the_words_of_saved_formats_stay(kind: type[Strings], words: list[str]) -> None:
    """Formats are saved with these words, so changing one requires a new version. Only raw strings have no quotes."""
    assert [item.value for item in kind] == words
    assert [item for item in kind if getattr(item, "unquoted", False)] == [item for item in kind if item == "raw"]
