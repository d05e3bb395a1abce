"""Numeric bounds generate exactly the numbers between them."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st
from lines import generates, node_line

from unrender.nodes.patterns import write_pattern
from unrender.schema.integers import integer_node, multiples, number_node
from unrender.schema.shapes import Integer, Number

WHOLE = st.integers(-12_000, 12_000)
BOUND = st.none() | WHOLE
DECIMAL = st.decimals(min_value=-120, max_value=120, places=2)


@given(low=BOUND, high=BOUND, value=WHOLE)
def test_whole_numbers_are_exactly_those_within_the_bounds(low, high, value):
    """An integer is generated if and only if it's within the bounds, which are inclusive."""
    assume(low is None or high is None or low <= high)

    assert generates(integer_node(low, high), str(value)) == (
        (low is None or value >= low) and (high is None or value <= high)
    )


def test_no_number_between_the_bounds_is_an_error():
    """An empty range has no node."""
    with pytest.raises(ValueError, match="no integer between 3 and 2"):
        integer_node(3, 2)


@given(
    low=st.none() | DECIMAL, high=st.none() | DECIMAL, value=DECIMAL, open_low=st.booleans(), open_high=st.booleans()
)
def test_numbers_are_exactly_those_within_the_bounds(low, high, value, open_low, open_high):
    """A decimal is generated if and only if it's within the bounds, which are inclusive unless marked as exclusive."""
    assume(low is not None or high is not None)
    assume(low is None or high is None or low < high)
    shape = Number(minimum=low, maximum=high, exclusive_minimum=open_low, exclusive_maximum=open_high)
    above = low is None or (value > low if open_low else value >= low)
    below = high is None or (value < high if open_high else value <= high)

    text = format(value.normalize() if value else Decimal(0), "f")

    assert generates(number_node(shape), text) == (above and below)


@cases
def test_a_range_is_cut_into_few_blocks(low, high, pattern):
    """A range of integers is divided by length, then by digit. Without a bound, integers have up to 18 digits."""
    assert write_pattern(integer_node(low, high)) == pattern


THOUSANDTHS = [
    (value, text, len(text.partition(".")[2]))
    for value in (Decimal(count) / 1000 for count in range(-3100, 4000))
    for text in [format(value.normalize(), "f") if value else "0"]
]


def number(low, high, open_, places):
    return Number(
        minimum=low and Decimal(low),
        maximum=high and Decimal(high),
        exclusive_minimum="(" in open_,
        exclusive_maximum=")" in open_,
        places=places,
    )


@cases
def test_every_number_between_two_bounds_has_a_spelling_and_no_other_number_has(low, high, open_, places):
    """All numbers with up to three places around the bounds agree with arithmetic. Trailing zeros are allowed."""
    written = re.compile(write_pattern(number_node(number(low, high, open_, places))))
    least, most = low and Decimal(low), high and Decimal(high)
    for value, text, digits in THOUSANDTHS:
        above = least is None or value > least or (value == least and "(" not in open_)
        below = most is None or value < most or (value == most and ")" not in open_)
        fits = places is None or digits <= places
        assert (written.fullmatch(text) is not None) == (above and below and fits), text


@cases
def test_numbers_without_bounds(shape, pattern):
    """The number of digits is limited. Exponents are allowed if places aren't limited. Fractions are never whole."""
    assert write_pattern(number_node(Number(**shape))) == pattern


def test_no_number_between_two_bounds_is_an_error():
    """An empty range has no node."""
    with pytest.raises(ValueError, match="no number between 2 and 1"):
        number_node(number("2", "1", "", None))


@cases
def test_multiples_between_bounds_are_listed_where_they_are_few(low, high, step, expected):
    """Up to 256 multiples are listed. One-sided bounds and large steps aren't supported."""
    found = multiples(Integer(minimum=low, maximum=high, multiple=step))

    assert (found and node_line(found.node)) == expected


def test_as_many_multiples_as_are_listed():
    """256 multiples are still listed."""
    found = multiples(Integer(minimum=0, maximum=767, multiple=3))

    assert node_line(found.node) == " | ".join(f"'{value}'" for value in range(0, 768, 3))
    assert found.rules == {}


NATURAL = (
    "'1' $multiple-of-2-1 | '2' $multiple-of-2-0 | '3' $multiple-of-2-1 | '4' $multiple-of-2-0 | '5' $multiple-of-2-1"
)
NATURAL += " | '6' $multiple-of-2-0 | '7' $multiple-of-2-1 | '8' $multiple-of-2-0 | '9' $multiple-of-2-1"


@cases
def test_multiples_without_bounds_are_counted_digit_by_digit(low, high, expected):
    """Each remainder has a rule. Bounds beyond 18 digits are ignored, and no number starts with zero."""
    found = multiples(Integer(minimum=low, maximum=high, multiple=2))

    assert node_line(found.node).replace("(", "").replace(")", "") == expected.replace("(", "").replace(")", "")
    even = "'0' $multiple-of-2-0 | " + NATURAL
    assert {name: node_line(node) for name, node in found.rules.items()} == {
        "multiple-of-2-0": f"{even} | ''",
        "multiple-of-2-1": even,
    }


def test_the_largest_step_that_is_counted():
    """Steps up to 64 have a rule for each remainder."""
    assert len(multiples(Integer(multiple=64)).rules) == 64


@pytest.mark.parametrize("places", [None, 2])
def test_edges_with_more_digits_than_are_written(places):
    """A bound of twenty digits is as exact as one of eighteen."""
    low, high = Decimal("0.12345678901234567891"), Decimal("2.98765432109876543219")
    written = re.compile(write_pattern(number_node(Number(minimum=low, maximum=high, places=places))))

    inside = ["0.13", "0.2", "1", "1.55", "2", "2.9", "2.98"]
    outside = ["0", "0.1", "0.12", "2.99", "3"]
    assert [text for text in (*inside, *outside) if written.fullmatch(text)] == inside
