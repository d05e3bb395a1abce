"""A derived text that no Format can contain is replaced by a weaker claim, and reported."""

from __future__ import annotations

import pytest
from cases import beside
from properties.families import TAG_AND_JSON, THINK
from splitting import fed

from unrender import ChatTemplate, Parser
from unrender.format import CallSyntax, Content, ContentMode, Format, Reasoning, ReasoningMode, TurnTexts
from unrender.proof.claims import possible_format
from unrender.types import Request

TOOLS = TAG_AND_JSON.format.tools
CLOSER_ALONE = beside(__file__, "closer-alone.jinja")
"""A template that writes only the closing marker if there is no reasoning."""
NO_HEADER = r"""{%- for m in messages -%}
{%- if m.reasoning_content %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}
{{- m.content }}{% if m.role == 'assistant' %}<end>{% endif %}
{%- endfor -%}"""
LONG_END = (
    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ 'x' * 40000 }}{% endif %}{% endfor %}"
)


def test_a_field_goes_before_its_part() -> None:
    """If one field of a turn is invalid, only that field is dropped."""
    found, given_up = possible_format(Format(), turn=TurnTexts(headers=("<h>",), end="x" * 40_000), reasoning=THINK)

    assert found == Format(turn=TurnTexts(headers=("<h>",)), reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].startswith("turn.end: was given up")


def test_a_part_goes_that_its_field_is_needed_for() -> None:
    """Reasoning without a closing marker is dropped as a whole."""
    blank = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="\n")
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<c>", end="</c>")

    found, given_up = possible_format(Format(tools=TOOLS), reasoning=blank, content=wrapped)

    assert found == Format(tools=TOOLS, content=wrapped)
    assert [said.partition(":")[0] for said in given_up] == ["reasoning.end", "reasoning.end"]


def test_what_depends_on_a_part_goes_with_it() -> None:
    """If calls are dropped, reasoning no longer contains calls."""
    holding = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>", holds_calls=True)

    found, given_up = possible_format(Format(tools=TOOLS, reasoning=holding), tools=CallSyntax())

    assert (found.tools, found.reasoning.holds_calls, found.reasoning.end) == (CallSyntax(), False, "</think>")
    assert len(given_up) == 1


def test_what_no_field_is_to_blame_for_goes_together() -> None:
    """Markers that are too long together are all dropped, since nothing shows which of them is wrong."""
    turn = TurnTexts(headers=tuple(f"<{letter * 900}>" for letter in "abcdefghijklmnopqrs"))

    found, given_up = possible_format(Format(reasoning=THINK), turn=turn)

    assert found == Format(reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].endswith("and everything found with it was given up")


@pytest.mark.slow
@pytest.mark.parametrize("source", [CLOSER_ALONE, NO_HEADER, LONG_END], ids=["closer alone", "no header", "long end"])
def test_every_template_gives_a_format_that_a_parser_reads(source: str) -> None:
    """Analysis raises for no template, and a parser accepts its format."""
    format = ChatTemplate.from_string(source).analysis.format
    parser = Parser(format, Request())

    fed(parser, ["Hi"])

    assert parser.message.content == "Hi"


def test_a_closer_is_never_blank() -> None:
    """A closing marker that is also written alone, for no reasoning, isn't the start of content."""
    reasoning = ChatTemplate.from_string(CLOSER_ALONE).analysis.format.reasoning

    assert (reasoning.start, reasoning.end, reasoning.empty) == ("<think>\n", "\n</think>", "</think>")


def test_what_is_given_up_is_said() -> None:
    """A diagnostic names the field and its limit."""
    analysis = ChatTemplate.from_string(LONG_END).analysis

    assert any("turn.end: was given up" in said and "at most" in said for said in analysis.diagnostics)
