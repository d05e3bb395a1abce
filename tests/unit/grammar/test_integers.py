"""Numeric bounds become exactly the numbers between them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from texts import generates

from unrender.grammar.integers import integer_node, multiples, number_node
from unrender.grammar.nodes import Chars, Literal, Ref, Sequence
from unrender.grammar.shapes import Integer, Number

WHOLE = st.integers(-12_000, 12_000)
BOUND = st.none() | WHOLE
DECIMAL = st.decimals(min_value=-120, max_value=120, places=2)


@given(low=BOUND, high=BOUND, value=WHOLE)
def test_whole_numbers_are_exactly_those_within_the_bounds(low, high, value):
    """A number is generated if and only if it lies between the bounds, which belong to the range."""
    assume(low is None or high is None or low <= high)

    assert generates(integer_node(low, high), str(value)) == (
        (low is None or value >= low) and (high is None or value <= high)
    )


@given(low=BOUND, high=BOUND)
def test_edges_are_generated(low, high):
    """Both bounds themselves are generated."""
    assume(low is None or high is None or low <= high)

    edges = [str(edge) for edge in (low, high) if edge is not None]

    assert [edge for edge in edges if not generates(integer_node(low, high), edge)] == []


@pytest.mark.parametrize("text", ["-0", "007", "+1", "", "-", "1.0"])
def test_only_the_plain_spelling_is_generated(text):
    """There is one way to write a whole number."""
    assert not generates(integer_node(None, None), text)


def test_no_number_between_the_bounds_is_an_error():
    """An empty range has no node."""
    with pytest.raises(ValueError, match="no whole number between 3 and 2"):
        integer_node(3, 2)


@given(
    low=st.none() | DECIMAL, high=st.none() | DECIMAL, value=DECIMAL, open_low=st.booleans(), open_high=st.booleans()
)
def test_numbers_are_exactly_those_within_the_bounds(low, high, value, open_low, open_high):
    """A decimal is generated if and only if it lies between the bounds, which belong to the range unless exclusive."""
    assume(low is not None or high is not None)
    assume(low is None or high is None or low < high)
    shape = Number(minimum=low, maximum=high, exclusive_minimum=open_low, exclusive_maximum=open_high)
    above = low is None or (value > low if open_low else value >= low)
    below = high is None or (value < high if open_high else value <= high)

    text = format(value.normalize() if value else Decimal(0), "f")

    assert generates(number_node(shape), text) == (above and below)


@pytest.mark.parametrize("text", ["0", "-3", "2.50", "1e5", "-0.5E-10"])
def test_numbers_without_bounds_are_those_of_json(text):
    """Fractions and exponents may be written."""
    assert generates(number_node(Number()), text)


def test_few_multiples_are_written_out():
    """The multiples within a small range are a choice of literals."""
    found = multiples(Integer(minimum=-7, maximum=12, multiple=5))

    assert found is not None
    assert [text for text in map(str, range(-20, 20)) if generates(found.node, text)] == ["-5", "0", "5", "10"]


def test_many_multiples_are_counted_by_remainders():
    """Without bounds, an automaton over the remainders generates the multiples and nothing else."""
    found = multiples(Integer(multiple=7))
    assert found is not None

    accepted = [value for value in range(200) if _follows(found.node.options, found.rules, str(value))]

    assert accepted == list(range(0, 200, 7))


def _follows(options, rules, text):
    """Walk the right-linear rules of an automaton."""
    for option in options:
        match option:
            case Literal(word) if word == text:
                return True
            case Sequence((Literal(digit), Ref(name))) if text.startswith(digit) and _follows(
                rules[name].options, rules, text[1:]
            ):
                return True
            case Sequence((_, inner)) if _follows(getattr(inner, "options", ()), rules, text):
                return True
    return False


def test_multiples_that_cannot_be_counted_have_no_rule():
    """A large step over a large range is left to whoever reports it."""
    assert multiples(Integer(minimum=0, maximum=10**9, multiple=12_345)) is None


def test_one_digit_is_a_class():
    """A small range is as small as it can be."""
    assert integer_node(1, 3) == Chars((("1", "3"),))
