"""What Jinja calls nobody back for goes through a filter that counts."""

from __future__ import annotations

import pytest
from jinja2 import Environment, nodes

from unrender.rendering.cost import Exhausted, Limits
from unrender.rendering.tree import (
    CHECKED,
    COUNTED,
    JOINED,
    SIZED,
    SPREAD,
    WEIGHED,
    Rewriting,
    check_size,
)

OURS = {CHECKED, COUNTED, JOINED, SIZED, SPREAD, WEIGHED}


def rewritten(source):
    return Rewriting().visit(Environment().parse(source))


def filtered(source):
    """Return our filters in the rewritten tree, each with the kind of node that it is given."""
    found = rewritten(source).find_all(nodes.Filter)
    return sorted((node.name, type(node.node).__name__) for node in found if node.name in OURS)


MANY = ", ".join(map(str, range(101)))
PAIRS = ", ".join(f"{number}: 0" for number in range(101))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for a in b %}{% endfor %}", [(COUNTED, "Name")]),
        ("{% for a in b.c %}{% for d in a %}{% endfor %}{% endfor %}", [(COUNTED, "Getattr"), (COUNTED, "Name")]),
        ("{{ a ~ b ~ 'c' }}", [(JOINED, "List")]),
        ("{{ a == b }}", [(WEIGHED, "Name"), (WEIGHED, "Name")]),
        ("{{ a < b < c }}", [(WEIGHED, "Name")] * 3),
        ("{{ a == 'b' }}", []),
        ("{{ 'a' == b }}", []),
        ("{{ a == ['b', 1] }}", []),
        ("{{ a == (b, 1) }}", [(WEIGHED, "Name"), (WEIGHED, "Tuple")]),
        ("{{ 'a' in b }}", [(SIZED, "Name")]),
        ("{{ 'a' not in b }}", [(SIZED, "Name")]),
        ("{{ a in 'bc' }}", []),
        ("{{ a in ['b', 'c'] }}", []),
        ("{{ a in b }}", [(SIZED, "Filter"), (WEIGHED, "Name"), (WEIGHED, "Name")]),
        ("{{ a[1:] }}", [(SIZED, "Name")]),
        ("{{ a[1] }}", []),
        ("{{ a(*b) }}", [(SPREAD, "Name")]),
        ("{{ a | join(*b) }}", [(SPREAD, "Name")]),
        ("{{ a is eq(*b) }}", [(SPREAD, "Name")]),
        ("{{ a(b) }}", []),
        ("{{ {a: 1} }}", [(WEIGHED, "Name")]),
        ("{{ {'a': b} }}", []),
        (f"{{{{ [{MANY}] }}}}", [(CHECKED, "List")]),
        (f"{{{{ [{MANY.removesuffix(', 100')}] }}}}", []),
        (f"{{{{ {{{PAIRS}}} }}}}", [(CHECKED, "Dict")]),
        (f"{{{{ {{{PAIRS.removesuffix(', 100: 0')}}} }}}}", []),
        ("{% if a ~ b %}{{ c[:d ~ e] }}{% endif %}", [(SIZED, "Name"), (JOINED, "List"), (JOINED, "List")]),
    ],
)
def test_what_can_be_expensive_is_filtered(source, expected):
    """Loops, joins, searches, slices and spread arguments are led through a filter; constants are not."""
    assert filtered(source) == expected


def test_no_template_can_name_the_filters():
    """Their names hold a blank, so that none is missed by accident."""
    assert all(" " in name for name in OURS)
    assert len(OURS) == 6


def test_integers_in_the_source_are_short():
    """A number that is written out may be as long as one that is computed."""
    rewritten("{{ " + hex(2**8192 - 1) + " }}")

    with pytest.raises(Exhausted, match="more than 8192 bits"):
        rewritten("{{ " + hex(2**8192) + " }}")


@pytest.mark.parametrize(
    ("source", "nodes"),
    [
        ("text", 3),  # the template, an output, its data
        ("{{ a }}", 3),
        ("{{ a + 1 }}", 5),
        ("{% for a in b %}{% endfor %}", 4),
    ],
)
def test_a_template_has_so_many_nodes(source, nodes):
    """The limit is the largest number of expressions and statements."""
    tree = Environment().parse(source)
    check_size(tree, Limits(nodes=nodes))

    with pytest.raises(Exhausted, match=f"expected at most {nodes - 1} expressions and statements, found {nodes}"):
        check_size(tree, Limits(nodes=nodes - 1))


@pytest.mark.parametrize(
    ("source", "branches", "names"),
    [
        ("{% if a %}{{ b }}{% endif %}{% if a %}{{ c }}{% endif %}", 2, 3),
        ("{% for a in b %}{% if a %}{% endif %}{% endfor %}", 2, 2),
        ("{% macro m(a) %}{{ b }}{% endmacro %}", 1, 2),
        ("{% with a = 1 %}{{ a }}{% endwith %}", 1, 1),
        ("{% set a %}{{ b }}{% endset %}", 1, 2),
        ("{% filter upper %}{{ b }}{% endfilter %}", 1, 1),
        ("{% call a() %}{% endcall %}", 1, 1),
    ],
)
def test_branches_times_names_are_few(source, branches, names):
    """For each scope, Jinja's compiler looks at all names: their product is limited."""
    tree = Environment().parse(source)
    check_size(tree, Limits(scopes=branches * names))

    with pytest.raises(Exhausted, match=f"found {branches} branches and {names} names"):
        check_size(tree, Limits(scopes=branches * names - 1))
