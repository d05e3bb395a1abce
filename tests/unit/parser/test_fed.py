"""What a parser of a grammar made by hand was fed: kept by what was known of special tokens, and read again."""

from __future__ import annotations

from unrender.machine.saved import Saved
from unrender.parser.fed import Fed


def fed() -> Fed:
    made = Fed(begun="<t>", continued=True, known_ids=("a", "b"))
    for text, special in (("x", None), ("y", None), ("<s>", True), ("z", False), ("!", None)):
        made.add(text, special)
    return made


def test_text_is_kept_in_stretches() -> None:
    """A stretch goes on while what is known of its text stays the same."""
    assert list(fed()) == [(None, "xy"), (True, "<s>"), (False, "z"), (None, "!")]


def test_a_record_is_plain_data_and_back() -> None:
    """Nothing is lost."""
    state = fed().state()
    assert state == {
        "begun": "<t>",
        "continued": True,
        "known_ids": ["a", "b"],
        "fed": [
            {"kind": "unknown", "text": "xy"},
            {"kind": "special", "text": "<s>"},
            {"kind": "ordinary", "text": "z"},
            {"kind": "unknown", "text": "!"},
        ],
    }
    again = Fed.restore(Saved(state))

    assert again.state() == state
    assert again.known_ids == ("a", "b")


def test_a_copy_goes_on_alone() -> None:
    """What is added to it does not show in the original."""
    made = fed()
    other = made.copy()
    other.add("?", None)

    assert list(other)[-1] == (None, "!?")
    assert list(made)[-1] == (None, "!")
    assert (other.begun, other.continued, other.known_ids) == ("<t>", True, ("a", "b"))
