"""Example values: readable, and allowed by the schema."""

from __future__ import annotations

from cases import cases

from unrender.examples.values import example_value
from unrender.grammar import conforms


@cases
def test_an_example(schema, question, value):
    """Values come from the schema first, then from the question, then from the property's name."""
    assert example_value(schema, question=question) == value


@cases
def test_what_cannot_be_guessed_is_drawn(schema):
    """Every value is one that the schema allows."""
    assert conforms(example_value(schema), schema)
