"""Tests of call syntax that is derived from an example in the prompt."""

from __future__ import annotations

import time

import pytest
from rendering_rows import template_of

from unrender.analysis.ask import Prober
from unrender.analysis.ask.discovery import discover
from unrender.analysis.completion import find_example

SOURCE = (
    "{%- if tools -%}<|system|>{{ tools | tojson }}\nEXAMPLE<|end|>{%- endif -%}"
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
)


def found(example: str):
    return find_example(discover(Prober(template=template_of(SOURCE.replace("EXAMPLE", example)))))


def test_a_template_that_offers_no_tools_has_no_example():
    """An example in the prompt is ignored if the template doesn't render tools."""
    template = template_of('{"name": <n>, "arguments": <a>}{% for m in messages %}{{ m.content }}{% endfor %}')

    assert find_example(discover(Prober(template=template))) is None


@pytest.mark.parametrize(
    "unit",
    ['{"' + "name" * 20_000, '{"name": "x", "' + "arg" * 20_000, '{"name": ' * 10_000, "{" + " " * 80_000 + '"name"'],
    ids=["a long name", "long arguments", "many beginnings", "space"],
)
def test_a_prompt_that_never_becomes_an_example_takes_no_time(unit):
    """The search for an example reads each possible start once. It used to take ten seconds for 20,000 words."""
    start = time.process_time()

    assert found(unit) is None
    assert time.process_time() - start < 2
