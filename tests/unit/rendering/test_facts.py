"""What is read off a template's source without rendering it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from jinja2 import Environment

from unrender.rendering.cost import Limits
from unrender.rendering.sandbox import Sandbox
from unrender.rendering.tree import read_facts


def facts(source):
    return read_facts(Environment().parse(source))


def variables(source):
    sandbox = Sandbox(lambda: datetime(2024, 5, 17, tzinfo=UTC), Limits())
    sandbox.from_string(source)
    return sandbox.facts.variables


@pytest.mark.parametrize(
    ("source", "defaults"),
    [
        ("{{ x | default(3) }}", {"x": 3}),
        ("{{ x | d('a', true) }}", {"x": "a"}),
        ("{{ x | default }}", {}),
        ("{{ x | upper }}", {}),
        ("{{ x.y | default(3) }}", {}),
        ("{{ x if x is defined else false }}", {"x": False}),
        ("{{ y if x is defined else none }}", {"x": None}),
        ("{{ x if x is string else false }}", {}),
        ("{{ x if x is defined }}", {}),
        ("{% if x is not defined %}{% set x = 'a' %}{% endif %}", {"x": "a"}),
        ("{% if x is not defined %}{% set y = 1 %}{% set x = 2 %}{% endif %}", {"x": 2}),
        ("{% if x is not defined %}{% set y = 1 %}{% endif %}", {}),
        ("{% if x is defined %}{% set x = 1 %}{% endif %}", {}),
        ("{% if x is not none %}{% set x = 1 %}{% endif %}", {}),
        ("{{ x | default(-2.5) }}", {"x": -2.5}),
        ("{{ x | default({}) }}", {"x": {}}),
        ("{{ x | default({'a': 1}) }}", {}),
        ("{{ x | default(y) }}", {}),
        ("{{ x | default(1) }}{{ x | default(2) }}{{ y | default(3) }}", {"x": 2, "y": 3}),
    ],
)
def test_defaults(source, defaults):
    """What a variable is taken for when it is not there is known where it is written out."""
    assert facts(source).defaults == defaults


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("{{ x.a }}", {"a"}),
        ("{{ x['a'] }}", {"a"}),
        ("{{ x[0] }}{{ x[a] }}", set()),
        ("{{ x.get('a') }}", {"get", "a"}),
        ("{{ x.get('a', 'b') }}", {"get", "a"}),
        ("{{ x.pop('a') }}", {"pop"}),
        ("{{ x.get(a) }}", {"get"}),
        ("{{ 'a' in x }}", {"a"}),
        ("{{ 'a' not in x }}", {"a"}),
        ("{{ 'a' == x }}", set()),
        ("{{ x in 'a' }}", set()),
        ("{% for a in b.c %}{{ a.d.e }}{% endfor %}", {"c", "d", "e"}),
    ],
)
def test_attribute_names(source, names):
    """A name counts however a template asks for it: with a dot, in brackets, by `get`, with `in`."""
    assert facts(source).attribute_names == names


def test_string_constants_are_in_the_order_of_the_source():
    """Each text in an expression is there, as often as it is written; numbers and data outside are not."""
    source = "data{{ 'b' }}{% if x == 'a' %}{{ 'b' ~ 1 }}{% endif %}{{ f('c', k='d') }}"

    assert facts(source).string_constants == ("b", "a", "b", "c", "d")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ a }}{{ b.c }}", {"a", "b"}),
        ("{% set a = b %}{{ a }}", {"b"}),
        ("{% for a in b %}{{ a }}{{ loop.index }}{% endfor %}", {"b"}),
        ("{% if a is defined %}{% endif %}", {"a"}),
        ("{% macro m(a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", {"b"}),
        ("{{ range(1) }}{{ raise_exception('x') }}{{ namespace() }}", set()),
        ("{% if c %}{% set a = 1 %}{% endif %}{{ a }}", {"a", "c"}),
        ("text", set()),
    ],
)
def test_variables(source, expected):
    """The names that a template reads and does not set, without those that every template has."""
    assert variables(source) == expected
