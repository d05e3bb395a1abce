"""The automaton of all text before the first stop."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unrender.dialects.gbnf import states

STOPS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3, unique=True)


def first_stop(stops, text):
    """Walk the automaton; return the stop that ends it, "" when a blocked one would, None when there is none."""
    found = {state.prefix: state for state in states(tuple(stops), tuple(stops))}
    state = found[""]
    for at, character in enumerate(text):
        finishing, onward = dict(state.finishing), dict(state.onward)
        if character in finishing:
            return text[: at + 1], finishing[character]
        state = found[onward.get(character, "")]
    return text, None


@given(STOPS, st.text("abc", max_size=12))
def test_text_is_cut_at_the_stop_that_is_complete_first(stops, text):
    """The automaton ends where the first stop ends, and names the longest stop there."""
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(stop) for stop in stops)]
    at = min(ends, default=len(text))
    expected = max((stop for stop in stops if text[:at].endswith(stop)), key=len, default=None) if ends else None

    assert first_stop(stops, text) == (text[:at], expected)


def test_a_stop_without_a_branch_is_blocked():
    """The character that would complete it leads nowhere."""
    (start,) = states(("<", ">"), (">",))

    assert (start.blocked, start.finishing) == ("<", ((">", ">"),))


def test_no_stops_make_one_state():
    """Without stops there is only free text."""
    (start,) = states((), ())

    assert (start.finishing, start.onward, start.blocked) == ((), (), "")
