"""Templates in the sandbox: what they may do, what it counts as, and where that ends."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import jinja2
import pytest

from unrender.rendering.cost import CostBudget, Exhausted, Limits
from unrender.rendering.sandbox import Sandbox

NOON = datetime(2024, 5, 17, 12, 0, tzinfo=UTC)


def render(source, *, context=None, **limits):
    allowed = Limits(**{"seconds": 60, **limits})
    sandbox = Sandbox(lambda: NOON, allowed)
    template = sandbox.from_string(source)
    sandbox.budget = CostBudget(allowed)
    return template.render(context or {})


class Record:
    """A value of the caller's."""

    name = "own"
    rows = [1, 2]  # noqa: RUF012 - a list that a template reads

    def __getitem__(self, key):
        return f"item {key}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a{% generation %}b{% endgeneration %}c", "abc"),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("  {% if true %}\na\n  {% endif %}\nb", "a\nb"),
        ("{{ strftime_now('%Y-%m-%d %H') }}", "2024-05-17 12"),
        ("{{ ['b', 'a'] | random }}", "b"),
        ("{{ [] | random }}", ""),
        ("{{ lipsum is defined }}", "False"),
        ("{{ {'a': 'b<é>'} | tojson }}", '{"a": "b<é>"}'),
        ("{{ {'a': 'é'} | tojson(ensure_ascii=true) }}", '{"a": "\\u00e9"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}", '{"a":2,"b":1}'),
        ("{{ {'a': [1]} | tojson(indent=2) }}", '{\n  "a": [\n    1\n  ]\n}'),
        ("{{ [1, 2] | map('string') | tojson }}", '["1", "2"]'),
        ("{{ {'items': 1}['items'] }}", "1"),
        ("{{ {'a': 1}.items() | list }}", "[('a', 1)]"),
        ("{{ {'a': 1}.b }}|{{ {}.a is defined }}", "|False"),
        ("{% set ns = namespace(a=1) %}{{ ns.a }}{{ ns.b }}", "1"),
        ("{{ {'a': 1} | attr('a') }}", ""),
        ("{{ ({'a': 1} | attr('get'))('a') }}", "1"),
        ("{{ 'x'.upper }}", "<method upper>"),
        ("{{ [1] | map('string') }}", "<generator object>"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ '%s' % 'x'.upper }}", "<method upper>"),
        ("{{ 4 is even }}{{ 4 is odd }}{{ 9 is divisibleby(3) }}", "TrueFalseTrue"),
        ("{{ [1] == [1] }}{{ 1 in [1] }}{{ 'a' is eq('b') }}{{ 2 is in([2]) }}", "TrueTrueFalseTrue"),
        ("{{ '-'.join(*[['a', 'b']]) }}", "a-b"),
        ("{{ [3, 1] | sort | first }}{{ [1, 2] | sum }}", "13"),
        ("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(1) ~ m(2) }}", "[1][2]"),
        ("{% for x in [[1, [2]]] recursive %}{% for y in x %}{{ y }}{% endfor %}{% endfor %}", "1[2]"),
    ],
)
def test_templates_do_what_they_do_elsewhere(source, expected):
    """Options, extensions and filters are those of transformers, and nothing depends on chance."""
    assert render(source) == expected


def test_the_attribute_comes_before_the_item():
    """`|attr` takes the attribute alone; a dot takes it first, brackets last."""
    context = {"own": Record()}

    assert render("{{ own | attr('name') }}{{ own.name }}", context=context) == "ownown"
    assert render("{{ own['name'] }}", context=context) == "item name"
    assert render("{{ own.other }}", context=context) == "item other"
    assert render("{{ own | attr('other') }}", context=context) == ""


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x'.__class__.x }}",
        "{{ ''['__class__'].x }}",
        "{{ ('x' | attr('__class__')).x }}",
        "{{ [].__len__.x }}",
        "{{ (5).to_bytes.x }}",
    ],
)
def test_nothing_leads_into_python(source):
    """An attribute that no table lists is not there, in whatever way it is asked for."""
    with pytest.raises(jinja2.exceptions.SecurityError, match="unsafe"):
        render(source)


def test_a_template_raises_with_its_message():
    """`raise_exception` ends the rendering with what the template says."""
    with pytest.raises(jinja2.TemplateError, match="^no 7$"):
        render("{{ raise_exception('no ' ~ 7) }}")


@pytest.mark.parametrize(
    "source", ["{{ 'x' is even }}", "{{ '%9d' is divisibleby(3) }}", "{{ 4 is divisibleby('2') }}"]
)
def test_tests_calculate_with_numbers_only(source):
    """`%` formats a text, which a test must not."""
    with pytest.raises(TypeError, match="expected a number, found str"):
        render(source)


@pytest.mark.parametrize(
    ("source", "limit", "cost"),
    [
        ("{{ 'ab' + 'cd' }}", "characters", 4),
        ("{{ ['ab', 'cd'] | tojson }}", "characters", 36),  # weighed before it is written
        ("{{ [1] | tojson(indent=30) }}", "characters", 35),  # the line with the item, and the end of the list
        ("{{ 'abc' ~ 'de' }}", "characters", 5),
        ("{% macro m() %}abc{% endmacro %}{{ m() }}", "characters", 3),
        ("{{ raise_exception('abc') if false else 'abc' | upper }}", "characters", 3),
        ("{{ '{:9}'.format(1) }}", "characters", 12),
        ("{{ f(*[1, 2, 3]) }}", "items", 3),
        ("{{ range(5) | list }}", "items", 5),
        ("{{ 'a b c'.split() }}", "items", 6),  # as many pieces as characters, and one
        ("{{ [1, 2] | map('string') | list }}", "items", 2),
        ("{{ [1, 2].copy() }}", "items", 2),
    ],
)
def test_results_need_room(source, limit, cost):
    """What a template makes in one go is measured, through whatever way Jinja takes."""
    context = {"f": lambda *args: len(args)}
    render(source, context=context, **{limit: cost})

    with pytest.raises(Exhausted):
        render(source, context=context, **{limit: cost - 1})


@pytest.mark.parametrize(
    "source",
    [
        "{% for x in range(200) %}{% endfor %}",
        "{% for x in range(200) if false %}{% endfor %}",
        "{{ range(200) | map('string') | join }}",
        "{{ range(200) | select('number') | list }}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
        "{{ f(*range(200)) }}",
        "{{ 1 }}" * 200,
        "{{ a[0] }}" * 200,
        "{{ range(200) | list | tojson(indent=1) }}",
    ],
)
def test_rounds_are_counted(source):
    """Each round, call, output and item of a stream is a step."""
    context = {"f": lambda *args: len(args), "a": "x"}
    render(source, context=context, steps=2000)

    with pytest.raises(Exhausted, match="more than 60 steps"):
        render(source, context=context, steps=60)


def test_what_an_opaque_value_holds_is_weighed():
    """Who weighs the owner does not see what its attributes hold."""
    context = {"own": Record()}
    render("{{ own.rows is defined }}", context=context, characters=36)

    with pytest.raises(Exhausted, match="more than 35 characters"):
        render("{{ own.rows is defined }}", context=context, characters=35)


def test_a_large_template_is_not_compiled():
    """The size is checked before code is generated."""
    with pytest.raises(Exhausted, match="expected at most 4 expressions and statements, found 5"):
        render("{{ a + 1 }}", nodes=4)


def test_nothing_is_computed_when_compiling():
    """A constant expression that is a bomb waits for a rendering, which has a budget."""
    Sandbox(lambda: NOON, Limits()).from_string("{{ 10 ** (10 ** 10) }}{{ 'x' * 10 ** 12 }}")


def test_each_thread_has_its_own_budget():
    """A rendering in one thread does not spend what another may."""
    sandbox = Sandbox(lambda: NOON, Limits())
    sandbox.budget = mine = CostBudget(Limits())
    seen = []

    def other():
        seen.append(hasattr(sandbox, "budget"))
        sandbox.budget = CostBudget(Limits())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()

    assert seen == [False]
    assert sandbox.budget is mine
