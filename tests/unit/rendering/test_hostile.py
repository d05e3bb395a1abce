"""Hostile templates end in a clear error, soon."""

from __future__ import annotations

import time

import pytest

from unrender.errors import TemplateError
from unrender.rendering.cost import Limits
from unrender.rendering.template import Template

HUGE = 10**9
NEST = "{% for i in range(9999) %}" * 4 + "." + "{% endfor %}" * 4
KNOT = "{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
TWO_KNOTS = KNOT + KNOT.replace("ns", "other")
TUPLES = "{% set a = namespace(x=(1,)) %}{% for i in range(60) %}{% set a.x = (a.x, a.x) %}{% endfor %}"
DICTS = TUPLES.replace("(a.x, a.x)", "{'a': a.x, 'b': a.x}")
DEEP = (
    "{% set a = namespace(x=1) %}{% for i in range(20000) %}{% set a.x = (((((((((a.x,),),),),),),),),) %}{% endfor %}"
)
# Multiples of 2 ** 61 - 1 have the same hash.
COLLIDING = "{% set o = [] %}{% for i in range(20000) %}{% set _ = o.append((i * (2 ** 61 - 1), 1)) %}{% endfor %}"
LONG = "{% set long = 'x' * 5000000 %}"

BOMBS = {
    "nested loops": NEST,
    "loops in a macro": "{% macro m() %}" + NEST + "{% endmacro %}{{ m() }}",
    "silent loops": NEST.replace(".", ""),
    "filtered loops": "{% for i in range(9999) if i < 0 %}{% endfor %}" + NEST,
    "doubling recursion": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursive loop": "{% for x in [1, 2] recursive %}{% if loop.depth < 60 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}",
    "range": "{% for i in range(10 ** 12) %}{% endfor %}",
    "ranges as lists": "{% for i in range(99999) %}{% set x = range(99999) | list %}{% endfor %}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "power tower": "{% set ns = namespace(x=9) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "multiplied text": f"{{{{ 'x' * {HUGE} }}}}",
    "text multiplied from the right": f"{{{{ {HUGE} * 'x' }}}}",
    "multiplied list": f"{{{{ ([0] * {HUGE}) | length }}}}",
    "multiplied bytes": f"{{{{ ('x'.encode() * {HUGE}) | length }}}}",
    "doubled text": "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "added text": "{% set ns = namespace(x='x') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "added lists": "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "extended list": "{% set x = [1] %}{% for i in range(99) %}{{ x.extend(x) }}{% endfor %}",
    "text kept in a list": LONG
    + "{% set x = [] %}{% for i in range(9999) %}{% set _ = x.append(long ~ i) %}{% endfor %}",
    "knot printed": KNOT + "{{ ns.x }}",
    "knot as JSON": KNOT + "{{ ns.x | tojson }}",
    "knot as text": KNOT + "{{ (ns.x | string) | length }}",
    "knot joined": KNOT + "{{ 'a' ~ ns.x }}",
    "knot joined with itself": KNOT + "{{ ns.x | join }}",
    "knot in upper case": KNOT + "{{ ns.x | upper }}",
    "knot formatted": KNOT + "{{ '%s' % (ns.x,) }}",
    "knot formatted in braces": KNOT + "{{ '{}'.format(ns.x) }}",
    "knots compared": TWO_KNOTS + "{{ ns.x == other.x }}",
    "knots tested": TWO_KNOTS + "{{ ns.x is eq(other.x) }}",
    "knot looked up": TWO_KNOTS + "{{ [ns.x].index(other.x) }}",
    "knot as a key": KNOT.replace("[ns.x, ns.x]", "(ns.x, ns.x)").replace("['a']", "('a',)") + "{{ {ns.x: 1} }}",
    "knot as an index": KNOT.replace("[ns.x, ns.x]", "(ns.x, ns.x)").replace("['a']", "('a',)") + "{{ {}[ns.x] }}",
    "knot raised": KNOT + "{{ raise_exception(ns.x) }}",
    "namespace knot": "{% set a = namespace(x='a') %}" + "{% set a = namespace(x=a, y=a) %}" * 60 + "{{ a }}",
    "list in itself": "{% set x = [] %}{% set _ = x.append(x) %}{{ x | tojson }}",
    "padded by %": f"{{{{ '%{HUGE}d' % 1 }}}}",
    "padded by % with a star": f"{{{{ '%*d' % ({HUGE}, 1) }}}}",
    "precise to many digits": f"{{{{ '%.{HUGE}f' % 1 }}}}",
    "padded by the format filter": f"{{{{ '%{HUGE}d' | format(1) }}}}",
    "padded by format": f"{{{{ '{{:{HUGE}}}'.format(1) }}}}",
    "padded by format, width as an argument": f"{{{{ '{{:{{}}}}'.format(1, {HUGE}) }}}}",
    "padded by format_map": f"{{{{ '{{a:{HUGE}}}'.format_map({{'a': 1}}) }}}}",
    "repeated by format": LONG + "{{ ('{0}' * 1000).format(long) }}",
    "repeated by %": LONG + "{{ ('%(a)s' * 1000) % {'a': long} }}",
    "centred": f"{{{{ 'x' | center({HUGE}) }}}}",
    "centred by a method": f"{{{{ 'x'.center({HUGE}) }}}}",
    "justified": f"{{{{ 'x'.ljust(width={HUGE}) if false else 'x'.ljust({HUGE}) }}}}",
    "filled with zeros": f"{{{{ 'x'.zfill({HUGE}) }}}}",
    "indented": f"{{{{ '\\n' | indent({HUGE}, true, true) }}}}",
    "lines indented": "{{ ('\\n' * 100000) | indent(100000, blank=true) }}",
    "tabs expanded": "{{ ('\\t' * 100000).expandtabs(100000) }}",
    "bytes of an integer": f"{{{{ (1).to_bytes({HUGE}, 'big') }}}}",
    "replaced": "{{ ('x' * 100000) | replace('x', 'y' * 100000) }}",
    "replaced by a method": "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
    "everything between replaced": "{{ ('x' * 100000) | replace('', 'y' * 100000) }}",
    "joined": "{{ range(99999) | join('y' * 100000) }}",
    "joined by a method": "{{ ('y' * 100000).join(['x'] * 99999) }}",
    "joined lazily": LONG + "{{ ([{'a': long}] * 9999) | map(attribute='a') | join }}",
    "translated": LONG + "{{ ('a' * 10000).translate({97: long}) }}",
    "batched": f"{{{{ [1] | batch({HUGE}, 0) | list }}}}",
    "sliced": f"{{{{ [1] | slice({HUGE}) | list }}}}",
    "JSON indented": f"{{{{ [1] | tojson(indent={HUGE}) }}}}",
    "JSON separated": "{{ ([1] * 10000) | tojson(separators=['x' * 100000, ':']) }}",
    "wrapped": "{{ ('x ' * 1000000) | wordwrap(2) }}",
    "summed lists": "{{ ([[1] * 1000] * 100000) | sum(start=[]) | length }}",
    "long integer": "{{ (('1' * 9000000) | int(base=2)) // 3 }}",
    "long integer from bytes": "{{ (1).from_bytes('x'.encode() * 9000000, 'big') // 3 }}",
    "searched": LONG + "{% if 'ab' in long %}{% endif %}" * 5000,
    "cut": "{% set l = '😀' * 9999999 %}" + "{% set a = l[1:] %}" * 3000,
    "padded time": f"{{{{ strftime_now('%{HUGE}d') }}}}",
    "tuples got": TUPLES + "{{ {}.get(a.x) }}",
    "tuples set": TUPLES + "{{ {}.setdefault(a.x, 1) }}",
    "tuples popped": TUPLES + "{{ {'b': 1}.pop(a.x, 1) }}",
    "tuples updated": TUPLES + "{{ {}.update([[a.x, 1]]) }}",
    "tuples in a dict": TUPLES + "{{ dict([[a.x, 1]]) }}",
    "tuples in a namespace": TUPLES + "{{ namespace([[a.x, 1]]) }}",
    "tuples in small letters": TUPLES + "{{ a.x is lower }}",
    "tuples as a filter": TUPLES + "{{ a.x is filter }}",
    "tuples in a cycler": TUPLES
    + TUPLES.replace("a", "b")
    + "{{ [cycler(a.x), cycler(b.x)] | sort(attribute='items') }}",
    "tuples sorted in place": TUPLES + "{% set x = [a.x, a.x] %}{{ x.sort() }}{{ x | length }}",
    "values printed": DICTS + "{{ a.x.values() }}",
    "items as text": DICTS + "{{ (a.x.items() | string) | length }}",
    "deep values hashed": DEEP + "{{ {}.get(a.x) }}",
    "deep values printed": DEEP + "{{ a.x }}",
    "colliding keys": COLLIDING + "{{ dict(o) | length }}",
    "colliding keys updated": COLLIDING + "{{ {}.update(o) }}",
    "colliding keys from a list": COLLIDING + "{{ {}.fromkeys(o | map('first') | list) | length }}",
    "colliding keys once": COLLIDING + "{{ (o + o) | map('first') | unique | list | length }}",
    "rounded": "{{ 1 | round(-3000000) }}",
    "rounded up": "{{ 1 | round(3000000, 'ceil') }}",
    "text rounded": "{{ 'x' | round(9, 'ceil') }}",
    "text even": f"{{{{ '%{HUGE}d' is even }}}}",
    "text divisible": f"{{{{ '%{HUGE}d' is divisibleby(3) }}}}",
    "width from a text": f"{{{{ '{{0:{{1}}}}'.format(1, '{HUGE}') }}}}",
    "width from a dict": f"{{{{ '{{0:{{1[w]}}}}'.format(1, {{'w': '{HUGE}'}}) }}}}",
    "width of markup": f"{{{{ ('{{0:{{1}}}}' | safe).format(1, '{HUGE}') }}}}",
    "width of a name in parentheses": f"{{{{ '%((a)){HUGE}d' % {{'(a)': 1}} }}}}",
    "width of a long name": f"{{{{ ('%(' ~ 'a' * 300 ~ '){HUGE}d') % {{'a' * 300: 1}} }}}}",
    "encoded slowly": "{{ ('é' * 400000).encode('idna') }}",
    "decoded slowly": "{{ ('a' * 400000).encode().decode('punycode') }}",
    "errors named": "{{ ('é' * 9000000).encode('ascii', 'namereplace') | length }}",
    "stripped": "{{ ('a' * 9000000).strip('b' * 9000000 ~ 'a') | length }}",
    "searched backwards": "{{ ('a' * 5000000).rfind('b' ~ 'a' * 2500000) }}",
    "text as a list": "{{ ('é' * 9999999) | list | length }}",
    "text sorted": "{{ ('é' * 9999999) | sort | length }}",
    "words": "{{ ('ab ' * 3000000).split() | length }}",
    "pieces": "{{ ('ab,' * 3000000).split(',') | length }}",
    "lines": "{{ ('ab\\n' * 3000000).splitlines() | length }}",
    "text as arguments": "{{ cycler(*('é' * 9999999)).pos }}",
    "text in a URL": "{{ ('é' * 9999999) | urlencode | length }}",
    "lists kept": "{% set k = [] %}{% for i in range(9999) %}{% set _ = k.append([1] * 200000) %}{% endfor %}",
    "long path of attributes": "{{ ([{}] * 9000) | sort(attribute='" + "a." * 40000 + "a') | length }}",
    "sum of integers": "{% set n = namespace(x=2 ** 8000) %}{% for i in range(999) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "long output": "{% for i in range(99999) %}" + "x" * 10_000 + "{% endfor %}",
    "long output of a block": "{% set x %}{% for i in range(99999) %}" + "x" * 10_000 + "{% endfor %}{% endset %}",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", BOMBS.values(), ids=BOMBS.keys())
def test_bomb_is_an_error_in_time(source):
    """Work, output, memory and time of a rendering are bounded, and the error says that a limit was met."""
    template = Template(source)
    start = time.thread_time()

    rendering = template.render([])

    assert rendering.text == ""
    assert rendering.error
    assert time.thread_time() - start < 3


@pytest.mark.parametrize(
    "source",
    ["{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", "{% if a %}" * 3000 + "{% endif %}" * 3000],
    ids=["parentheses", "blocks"],
)
def test_deep_nesting_is_refused(source):
    """A source that is nested too deeply for a compiler is refused, not a crash."""
    with pytest.raises(TemplateError, match="too deeply"):
        Template(source)


def test_long_source_is_refused():
    """The size of the source is bounded, since compiling takes time."""
    with pytest.raises(TemplateError, match="expected at most 100 characters, found 101"):
        Template("x" * 101, limits=Limits(source=100))


def test_huge_number_is_refused():
    """A number that Python does not read, or not well calculate with, is an error of the template."""
    with pytest.raises(TemplateError):
        Template("{{ " + "9" * 10_000 + " }}")
    with pytest.raises(TemplateError, match="more than 8192 bits"):
        Template("{{ 0x" + "f" * 100_000 + " }}")


ESCAPES = [
    "''.__class__.__mro__",
    "''['__class__'].__mro__",
    "(''|attr('__class__')).__mro__",
    "raise_exception.__globals__['jinja2']",
    "namespace.__init__.__globals__['x']",
    "cycler.__init__.__globals__.os",
    "self.__init__.__globals__['x']",
    "'{0.__class__.__mro__}'.format('').x.y",
    "'{a.__class__.__mro__}'.format_map({'a': 1}).x.y",
    "strftime_now.__closure__[0]",
    "range.__self__.x",
    "messages.append.__self__.__class__.x",
    "loop.__class__.x",
    "[1]|map(attribute='__class__.__mro__')|first|first",
    "('{0.__class__.__mro__}'|attr('format'))(1)",
    "('{a.__class__.__mro__}'|attr('format_map'))({'a': 1})",
    "(['{0.__class__.__mro__}']|map('attr', 'format')|first)(1)",
    "(['{0.__class__.__mro__}']|map(attribute='format')|first)(1)",
    "('{0.__class__.__mro__}'|safe|attr('format'))(1)",
    "'{0.__class__.__mro__}'['format'](1)",
    "given(1)",
    "[1].sort(key=given) or ''",
    "[given]|map('attr', '__self__')|first",
    "dict.mro",
    "messages.append.__func__",
]


@pytest.mark.parametrize("expression", ESCAPES)
def test_no_way_into_python(expression):
    """Attributes that lead from values to Python's insides are refused."""
    template = Template("{% for x in [1] %}{{ " + expression + " }}{% endfor %}")

    rendering = template.render([], given="{0.__class__.__mro__}".format)

    assert rendering.error or rendering.text == ""
    assert "class" not in rendering.text


def test_steps_are_limited_as_asked():
    """A caller may allow less work, and is told which limit was met."""
    source = "{% for i in range(1000) %}{{ i }}{% endfor %}"

    rendering = Template(source, limits=Limits(steps=100)).render([])

    assert rendering.exhausted
    assert rendering.error == "the template needs more than 100 steps"
    assert rendering.line == 1
