"""The content of values, and their text if Python would print an address."""

from __future__ import annotations

import pytest
from cases import cases
from jinja2.utils import Namespace

from unrender.rendering.printing import plain, variables_of, without_addresses


class Thing:
    """An opaque object with a text of its own."""

    def __str__(self):
        return "a thing at 0x7F00"

    def method(self):
        """Do nothing."""


def generator():
    yield 1


@pytest.mark.parametrize(
    "value", [["a", {"b": (1, None)}], {"a": [1]}, "text", 7, Namespace(x=1), {1}, {}.keys(), range(2), None]
)
def test_data_stay_themselves(value):
    """Values without opaque parts aren't copied."""
    assert plain(value) is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (object(), "<object object>"),
        ("x".upper, "<method upper>"),
        (Thing().method, "<method method>"),
        (str.upper, "<method upper>"),
        (generator, "<callable>"),
        (int, "<callable>"),
        (generator(), "<generator object generator>"),
        ([object()], "[<object object>]"),
        ((1, object()), "(1, <object object>)"),
        ({"a": [object()]}, "{'a': [<object object>]}"),
        ({generator: 1}, "{<callable>: 1}"),
        (Namespace(x=len), "<Namespace {'x': <method len>}>"),
        ({"a": len}.values(), "dict_values([<method len>])"),
        ({len}, "set([<method len>])"),
    ],
)
def test_opaque_values_print_without_an_address(value, expected):
    """Opaque values are printed as their kind at any depth, and methods as their name."""
    assert str(plain(value)) == expected


def test_text_and_representation_are_two():
    """An object's own text is used, but inside a list its representation."""
    assert str(plain(Thing())) == "a thing"
    assert repr(plain(Thing())).startswith("<")
    assert " at 0x" not in repr(plain(Thing()))


@cases
def test_addresses(text, expected):
    """Only Python's memory addresses are removed."""
    assert without_addresses(text) == expected


def test_variables_of_a_namespace():
    """A namespace returns the variables that the template set."""
    namespace = Namespace(a=1)
    namespace["b"] = 2

    assert variables_of(namespace) == {"a": 1, "b": 2}
