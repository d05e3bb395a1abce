"""What templates may do with built-in values: listed with its cost, or refused."""

from __future__ import annotations

import pytest

from unrender.rendering.template import Template

WORKING = {
    "'a b  c'.split()": "['a', 'b', 'c']",
    "'a,b,c'.split(',', 1)": "['a', 'b,c']",
    "'a,b'.rsplit(sep=',')": "['a', 'b']",
    "'a\\nb'.splitlines()": "['a', 'b']",
    "'<think>x</think>y'.rpartition('</think>')": "('<think>x', '</think>', 'y')",
    "' x '.strip() ~ 'xax'.strip('x')": "xa",
    "'é'.encode('utf-8').decode('UTF_8')": "é",
    "'é'.encode('ascii', 'replace')": "b'?'",
    "'{:>4}|{a!r}|{b[0].c}'.format(1, a='x', b=[{'c': 2}])": "   1|'x'|2",
    "'{a:{w}}'.format_map({'a': 'x', 'w': 3})": "x  ",
    "('{}' | attr('format'))(1)": "1",
    "('{}' | safe).format('<')": "&lt;",
    "'%-5d|%s|%(a)s' % {'a': 1} if false else '%-5d|%5.2f|%%' % (1, 2.5)": "1    | 2.50|%",
    "{'a': 1}.get('b', 2) ~ {'a': 1}.items() | list": "2[('a', 1)]",
    "[3, 1, 2] | sort": "[1, 2, 3]",
    "[1, 2].index(2) ~ (1, 2).count(1) ~ [1, 2].pop()": "112",
    "2.5 | round(-1) ~ 2.345 | round(2) ~ 2.1 | round(0, 'ceil')": "0.02.353.0",
    "4 is even ~ 3 is divisibleby(3)": "TrueTrue",
    "(5).bit_length() ~ (2.0).is_integer()": "3True",
    "[{'a': {'b': 1}}] | map(attribute='a.b') | join": "1",
    "dict(a=1) ~ dict([['a', 1]]) ~ namespace(a=1).a": "{'a': 1}{'a': 1}1",
    "['b', 'a'] | random": "b",
    "messages | map(attribute='a') | first": "hi",
}


@pytest.mark.parametrize(("expression", "expected"), WORKING.items())
def test_ordinary_methods_work(expression, expected):
    """What templates do every day gives what Python gives."""
    rendering = Template("{{ " + expression + " }}").render([{"a": "hi"}])

    assert rendering.error is None
    assert rendering.text == expected


REFUSED = [
    "'x'.encode('rot13')",
    "'x'.encode().decode('unicode_escape')",
    "'x'.encode('utf-8', 'xmlcharrefreplace')",
    "'x'.encode().fromhex('41')",
    "{}.fromkeys([1])",
    "(5).to_bytes(4, 'big')",
    "(5).from_bytes('x'.encode(), 'big')",
    "{}.keys().isdisjoint([1])",
    "[1].sort(key=messages.append)",
    "dict.mro()",
    "messages.append.real()",
]


@pytest.mark.parametrize("expression", REFUSED)
def test_other_methods_do_not_exist(expression):
    """What no table lists is refused: nobody has thought about its cost."""
    rendering = Template("{{ " + expression + " }}").render([])

    assert rendering.error
    assert not rendering.exhausted


def test_error_of_a_template_has_bounded_length():
    """A template may fail with any text; what is kept of it is short."""
    rendering = Template("{{ raise_exception('x' * 9000000) }}").render([])

    assert rendering.error is not None
    assert len(rendering.error) < 3000
