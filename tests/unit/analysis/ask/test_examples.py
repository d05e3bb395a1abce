"""A call syntax out of the prompt's own example."""

from __future__ import annotations

import time

import pytest

from unrender.analysis.additions import find_example
from unrender.analysis.ask.discovery import discover
from unrender.analysis.ask.probes import Prober
from unrender.format import Slot
from unrender.rendering.template import Template

SOURCE = (
    "{%- if tools -%}<|system|>{{ tools | tojson }}\nEXAMPLE<|end|>{%- endif -%}"
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
)


def found(example: str):
    return find_example(discover(Prober(template=Template(SOURCE.replace("EXAMPLE", example)))))


def test_the_markers_around_an_example_are_the_calls():
    """With the white space inside; name and arguments are in the fields of the example."""
    example = found('Return <fn>\n{"name": <function-name>, "arguments": <args-json-object>}\n</fn>.')

    assert (example.tools.call_start, example.tools.call_end) == ("<fn>\n", "\n</fn>")
    assert example.tools.function == ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")
    assert example.text == '<fn>\n{"name": <function-name>, "arguments": <args-json-object>}\n</fn>'


def test_a_list_around_an_example_is_the_section():
    """And one bracket opens it."""
    tools = found('Write <|calls|>[{"tool_name": "...", "tool_input": {"a": "b"}}]<|/calls|>').tools

    assert (tools.section_start, tools.section_end, tools.separator) == ("<|calls|>[", "]<|/calls|>", ", ")
    assert tools.envelope.array_wrapped


def test_without_a_closer_the_example_is_bare():
    """A marker that nothing closes is not a part of it."""
    tools = found('Write <|call|> {"name": function name, "parameters": its arguments}.').tools

    assert (tools.section_start, tools.call_start, tools.call_end) == ("", "", "")


@pytest.mark.parametrize(
    "text",
    [
        "Call tools as you like.",
        'Say {"name": <one>, "arguments": <args>} or <x>{"name": <one>, "arguments": <args>}</x>.',
        'A result is {"status": "ok", "output": "text"}.',
        '{"name": "find_zorvane", "parameters": {"a": 1}}',
    ],
)
def test_no_example_and_several_tell_nothing(text):
    """Nor does an offered tool that looks like a call."""
    assert found(text) is None


def test_a_template_that_offers_no_tools_has_no_example():
    """Whatever its prompt says."""
    template = Template('{"name": <n>, "arguments": <a>}{% for m in messages %}{{ m.content }}{% endfor %}')

    assert find_example(discover(Prober(template=template))) is None


@pytest.mark.parametrize(
    "unit",
    ['{"' + "name" * 20_000, '{"name": "x", "' + "arg" * 20_000, '{"name": ' * 10_000, "{" + " " * 80_000 + '"name"'],
    ids=["a long name", "long arguments", "many beginnings", "space"],
)
def test_a_prompt_that_never_becomes_an_example_takes_no_time(unit):
    """What looks like the beginning of an example is looked at once: twenty thousand words took ten seconds."""
    start = time.process_time()

    assert found(unit) is None
    assert time.process_time() - start < 2
