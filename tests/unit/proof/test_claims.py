"""A claim that fails is replaced by a weaker one, and a valid claim is kept."""

from __future__ import annotations

import warnings
from dataclasses import replace

import corpus
import pytest
from cases import beside
from rendering_rows import template_of

from unrender import ChatTemplate
from unrender.analysis.ask import CONTENT, Prober, own_answers, shapes
from unrender.analysis.ask.discovery import discover
from unrender.analysis.derivation import witness_of
from unrender.errors import FormatWarning
from unrender.format import Content, ContentMode, Reasoning, ReasoningMode, ToolMode
from unrender.proof import Witness
from unrender.proof.claims import claims_to_read, prove
from unrender.verify import Verdict, verify

GLUED = beside(__file__, "glued.jinja")
"""A template in which only the prompt writes all the arrows before a call."""


def witness(name: str) -> Witness:
    path = corpus.TEMPLATES / f"{name}.jinja"
    return witness_of(discover(Prober(template=template_of(path.read_text(encoding="utf-8")))))


@pytest.fixture
def shown():
    return witness("json-tags")


@pytest.fixture
def format():
    return corpus.derived_format(corpus.TEMPLATES / "json-tags.jinja")


def test_calls_that_are_not_read_are_no_longer_claimed(shown, format):
    """A wrong call syntax is dropped with a message. Reasoning and content are kept."""
    proof = prove(
        shown, replace(format, tools=replace(format.tools, call_start="<call>", call_end="</call>", section_start=""))
    )

    assert proof.format.tools.mode is ToolMode.NONE
    assert (proof.format.reasoning, proof.format.content) == (format.reasoning, format.content)
    assert [text.partition(":")[0] for text in proof.given_up] == ["calls are read"]
    assert proof.misread == ()


def test_reasoning_that_is_not_read_is_no_longer_claimed():
    """Wrong reasoning markers are dropped with a message."""
    format = corpus.derived_format(corpus.TEMPLATES / "wrapped-eos.jinja")
    wrong = Reasoning(mode=ReasoningMode.TAG_BASED, start="<plan>", end="</plan>")
    proof = prove(witness("wrapped-eos"), replace(format, reasoning=wrong))

    assert proof.format.reasoning == Reasoning()
    assert [text.partition(":")[0] for text in proof.given_up] == ["reasoning is read"]


@pytest.mark.parametrize("start", [CONTENT, f"{CONTENT}\n<"])
def test_a_wrong_second_wrapper_goes_alone(shown, format, start):
    """A wrong wrapper for content next to calls is dropped. Calls and other content are read as before."""
    wrong = Content(mode=ContentMode.ALWAYS_WRAPPED, start=start, end="</tool_call>")
    proof = prove(shown, replace(format, content_with_calls=wrong))

    assert proof.format.content_with_calls is None
    assert (proof.format.content, proof.format.tools) == (format.content, format.tools)
    assert len(proof.given_up) == 1


def test_a_wrong_wrapper_goes_alone(shown, format):
    """If a piece of content was mistaken for its wrapper, the wrapper is dropped."""
    wrong = Content(mode=ContentMode.ALWAYS_WRAPPED, start=CONTENT, end="</say>")
    proof = prove(shown, replace(format, content=wrong))

    assert (proof.format.content, proof.format.tools) == (format.content, format.tools)
    assert [text.partition(":")[0] for text in proof.given_up] == ["content is wrapped"]


def test_nothing_is_given_up_where_no_answer_is_read(shown, format):
    """If no answer can be read, calls aren't to blame: they are kept, and each misread answer is listed."""
    turn = replace(format.turn, end="", ends=())
    proof = prove(shown, replace(format, turn=turn))

    assert proof.format.tools == format.tools
    assert {found.cut_out.name for found in proof.misread} == set(own_answers())


def test_single_calls_are_claimed_alone(format):
    """For a format that allows one call, no answer with several calls is claimed."""
    single = replace(format, tools=replace(format.tools, parallel=False))

    assert [
        name for name, said in shapes().values() if claims_to_read(format, said) != claims_to_read(single, said)
    ] == [
        "two calls",
        "three calls",
    ]


def test_what_is_given_up_is_a_warning_and_not_a_refuted_claim():
    """The format claims less and warns once. All remaining claims pass."""
    template = ChatTemplate.from_string(GLUED)

    with pytest.warns(FormatWarning, match="several calls are read"):
        format = template.format
    with warnings.catch_warnings(action="error"):
        assert template.format is format
    report = verify(template, samples=3)

    assert format.tools.mode is not ToolMode.NONE
    assert not format.tools.parallel
    assert [found.capability for found in report.failed if "rammar" not in found.capability] == []
    unclaimed = [found for found in report.findings if found.reason == "not part of the format"]
    assert {(found.capability, found.verdict) for found in unclaimed} == {
        ("parallel tool calls", Verdict.SKIPPED),
        ("identical tool calls", Verdict.SKIPPED),
    }


UNMARKED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<bot>{% if m.reasoning_content %}<{{ m.reasoning_content }}{% endif %}"
    "{{ m.content }}<end>{% else %}<user>{{ m.content }}<end>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)


def test_what_cannot_be_derived_is_said_alike_everywhere():
    """Reasoning without an end isn't part of the format. Analysis, its warning and verification agree on that."""
    template = ChatTemplate.from_string(UNMARKED)

    with pytest.warns(FormatWarning, match="reasoning is read: is not claimed"):
        format = template.format
    verdicts = {found.capability: found.verdict for found in verify(template, samples=3).findings}

    assert format.reasoning == Reasoning()
    assert set(template.analysis.given_up) <= set(template.analysis.diagnostics)
    assert verdicts["reasoning"] is Verdict.SKIPPED
    assert verdicts["content"] is Verdict.PASSED
