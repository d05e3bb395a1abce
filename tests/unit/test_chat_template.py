"""The main class: conversations to prompts, answers to messages, and mistakes to errors that name the place."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from turn_rows import SOURCES

from unrender import ChatTemplate, Format, RequestError, TemplateError

SOURCE = SOURCES["thoughts and calls"]
"""Reasoning before content, calls as JSON in tags, the switch `enable_thinking`, no system role."""
USER = {"role": "user", "content": "Hello"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = '<call>{"name": "weather", "arguments": {"city": "Rome"}}</call>'


@pytest.fixture(scope="module")
def template():
    return ChatTemplate.from_string(SOURCE, eos_token="</s>")


def test_format_does_not_depend_on_tokens(template):
    """The end-of-sequence token is part of the turn, not of the format."""
    assert template.format == ChatTemplate.from_string(SOURCE, eos_token="<eos>").format


def test_grammars(template):
    """A turn's grammar in every dialect starts after the prefill."""
    begun = {"role": "assistant", "reasoning_content": "I", "content": ""}
    turn = template.prepare([USER, begun], tools=[TOOL], continue_final_message="reasoning")

    assert turn.constraint("llama.cpp").grammar.startswith("root ::= ")
    assert "<call>" in turn.constraint("llama.cpp").grammar
    assert "<think>" not in turn.constraint("llama.cpp").grammar.splitlines()[0]
    assert "start: " in turn.constraint("llguidance").grammar
    assert json.loads(turn.constraint("xgrammar").grammar)["type"] == "structural_tag"


def test_given_format_wins():
    """A format passed by the caller replaces the derived one."""
    given = Format()

    template = ChatTemplate.from_string(SOURCE, format=given)

    assert template.format is given
    assert template.prepare([USER], tools=[TOOL]).parse(CALL).content == CALL


def test_file_with_tokens(tmp_path):
    """A file is loaded with the tokens passed by the caller."""
    (tmp_path / "t.jinja").write_text("{{ bos_token }}{{ eos_token }}")

    template = ChatTemplate.from_file(tmp_path / "t.jinja", bos_token="<s>", eos_token="</s>")

    assert template.prepare([USER]).prompt == "<s></s>"


def test_analysis_is_shared(template):
    """A template with the same source isn't analysed again."""
    assert ChatTemplate.from_string(SOURCE, eos_token="</s>").analysis is template.analysis


@pytest.mark.slow
def test_hostile_template_is_analysed_in_time():
    """Analysis of a hostile template ends in seconds, although it tries many renderings."""
    source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}"
    start = time.thread_time()

    template = ChatTemplate.from_string(source)

    assert template.format.tools == Format().tools
    assert time.thread_time() - start < 5
    with pytest.raises(TemplateError, match=r"the template (writes|needs) more than"):
        template.prepare([USER])


def now(utc: bool) -> str:
    """Return the time."""
    return str(utc)


def test_a_function_is_a_tool():
    """A Python function is rendered and called like a tool in OpenAI's form."""
    template = ChatTemplate.from_file(Path(__file__).parent.parent / "templates" / "json-tags.jinja")
    plain = {
        "type": "function",
        "function": {
            "name": "now",
            "description": "Return the time.",
            "parameters": {
                "additionalProperties": False,
                "properties": {"utc": {"type": "boolean"}},
                "required": ["utc"],
                "type": "object",
            },
        },
    }
    messages = [{"role": "user", "content": "What time is it?"}]

    turn = template.prepare(messages, tools=[now])

    assert turn.prompt == template.prepare(messages, tools=[plain]).prompt
    assert [call.name for call in turn.parse(turn.sample(1)).tool_calls] in ([], ["now"])
    assert template.prepare_rendered(tools=[now]).parser().message.content == ""


def test_a_grammar_and_a_format_are_no_texts():
    """The error for a grammar or a format passed as text explains what to pass."""
    with pytest.raises(RequestError, match=r"grammar: expected a Grammar, found 'start: x'; use .* unrender\.grammar"):
        ChatTemplate.from_string("x", grammar="start: x")
    with pytest.raises(RequestError, match=r"format: expected a Format, found 'chatml'; use template\.format"):
        ChatTemplate.from_string("x", format="chatml")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"role": "tool", "content": {"at": object()}}, r"messages\[1\]\.content\.at: expected JSON, found object"),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {1}}}]},
            r"messages\[1\]\.tool_calls\[0\]\.function\.arguments: expected JSON, found set",
        ),
    ],
)
def test_a_value_that_is_not_json_is_an_error_with_its_place(template, message, error):
    """Results and arguments are JSON."""
    with pytest.raises(RequestError, match=error):
        template.prepare([USER, message])
