"""Hostile templates quickly end in a clear error."""

from __future__ import annotations

import time

import pytest
from cases import cases
from recipes import rows_of
from rendering_rows import RENDERING, template_of

from unrender import Limits, TemplateError

LONG = "{% set long = 'x' * 5000000 %}"
LINES = "{% for i in range(99999) %}" + "x" * 10_000 + "{% endfor %}"
BOMBS = {
    **{row["why"]: row["source"] for row in rows_of(RENDERING / "bombs.jsonl")},
    # These sources are also long.
    "searched": LONG + "{% if 'ab' in long %}{% endif %}" * 5000,
    "cut": "{% set l = '😀' * 9999999 %}" + "{% set a = l[1:] %}" * 3000,
    "long path of attributes": "{{ ([{}] * 9000) | sort(attribute='" + "a." * 40000 + "a') | length }}",
    "long output": LINES,
    "long output of a block": "{% set x %}" + LINES + "{% endset %}",
}


@pytest.mark.few(18)
@pytest.mark.slow
@pytest.mark.parametrize("source", BOMBS.values(), ids=BOMBS.keys())
def test_bomb_is_an_error_in_time(source):
    """Work, output, memory and time of a rendering are limited, and the error reports the limit."""
    template = template_of(source)
    start = time.thread_time()

    rendering = template.render([])

    assert rendering.text == ""
    assert rendering.error
    assert time.thread_time() - start < 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}", "too deeply"),
        ("{% if a %}" * 3000 + "{% endif %}" * 3000, "too deeply"),
        ("{{ " + "9" * 10_000 + " }}", "template: "),
        ("{{ 0x" + "f" * 100_000 + " }}", "more than 8192 bits"),
        ("{{ " + hex(2**8192) + " }}", "more than 8192 bits"),
    ],
    ids=["parentheses", "blocks", "digits", "hexadecimal digits", "bits"],
)
def test_deep_nesting_and_long_numbers_are_refused(source, message):
    """Such a source is rejected instead of crashing the compiler."""
    template_of("{{ " + hex(2**8192 - 1) + " }}")
    with pytest.raises(TemplateError, match=message):
        template_of(source)


@cases
def test_a_source_that_compiles_slowly_is_refused(source, limits, message):
    """Length, numbers, nodes, and branches times names are limited: the compiler checks all names in each branch."""
    if message is None:
        template_of(source, limits=Limits(**limits))
        return
    with pytest.raises(TemplateError, match=message):
        template_of(source, limits=Limits(**limits))


@cases
def test_no_way_into_python(expression):
    """Attributes that lead to Python's internals are rejected."""
    template = template_of("{% for x in [1] %}{{ " + expression + " }}{% endfor %}")

    rendering = template.render([], given="{0.__class__.__mro__}".format)

    assert rendering.error or rendering.text == ""
    assert "class" not in rendering.text


def test_steps_are_limited_as_asked():
    """A caller may lower the limits, and the error names the one that was reached."""
    source = "{% for i in range(1000) %}{{ i }}{% endfor %}"

    rendering = template_of(source, limits=Limits(rendering_steps=100)).render([])

    assert rendering.exhausted
    assert rendering.error == "the template needs more than 100 steps"
    assert rendering.line == 1
