"""Example answers, and their values."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from cases import cases
from serving import template as served_template

from unrender import ChatTemplate
from unrender.examples import example_answer
from unrender.examples.values import example_value
from unrender.grammar import conforms

TEMPLATES = Path(__file__).parents[2] / "templates"
FAMILIES = sorted(path.name for path in TEMPLATES.glob("*.jinja"))
WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
        "required": ["city", "days"],
    },
}
NOW = {"name": "now", "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}
TOOLS = [WEATHER, NOW]


def own_template():
    """Return the template that a gateway uses without a model."""
    return ChatTemplate.from_string(files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8"))


def asked(text, *called, template=None, seed=0, **how):
    """Return the message of an example answer to a question, after calls with their results."""
    messages = [{"role": "user", "content": text}]
    for i, name in enumerate(called):
        call = {"id": f"call{i:05}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": '{"degrees": 20}'})
    turn = (template or served_template()).prepare(messages, **how)
    return turn.parse(example_answer(turn, messages, seed))


def calls(message):
    return [(call.name, call.arguments) for call in message.tool_calls]


@cases
def test_what_is_asked_for_is_called_once(text, how, expected):
    """Each tool that the question names is called, or the best match. Without a call, the answer has content."""
    message = asked(text, **how)

    assert list(map(list, calls(message))) == expected
    assert bool(message.content) == (not expected)


def test_after_a_result_comes_content():
    """The content states the result. Other requested tools are called first."""
    answered = asked("The weather in Rome?", "get_weather", tools=TOOLS)
    half = asked("Call now and get_weather", "now", tools=TOOLS)

    assert "get_weather returned degrees 20." in answered.content
    assert (calls(answered), [name for name, _ in calls(half)]) == ([], ["get_weather"])


def test_content_follows_a_schema():
    """With a schema, content is JSON with readable values."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    message = asked(
        "Where is it?", response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    )

    assert json.loads(message.content) == {"city": "Paris"}


def test_reasoning_is_there_when_thinking_is_on():
    """Reasoning is a short sentence, and is empty if thinking is off."""
    assert asked("Hello", thinking=True).reasoning == "This question is easy, so I can answer at once."
    assert asked("Hello", thinking=False).reasoning == ""


def test_the_same_request_gets_the_same_answer():
    """The seed varies the wording."""
    answers = [asked("Hello", seed=seed).content for seed in range(12)]

    assert answers == [asked("Hello", seed=seed).content for seed in range(12)]
    assert len(set(answers)) == 3


def test_half_a_character():
    """A lone surrogate in the prompt isn't repeated in the answer."""
    text = example_answer(
        served_template().prepare_rendered("Hello \ud800"), [{"role": "user", "content": "Hello \ud800"}]
    )

    assert text.encode()


@pytest.mark.few(16)
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_of_formats(name):
    """The answer has the template's own format, and is parsed correctly."""
    template = ChatTemplate.from_file(TEMPLATES / name)
    said = asked("Hello", template=template)

    assert "No model is running" in said.content or "no model is running" in said.content
    if template.format.tools is not None:
        called = asked("The weather in Rome for 5 days?", template=template, tools=TOOLS)
        assert calls(called) == [("get_weather", {"city": "Rome", "days": 5})]
        assert not called.content.strip()


@cases
def test_an_example(schema, question, value):
    """Values come from the schema first, then from the question, then from the property's name."""
    assert example_value(schema, question=question) == value


@cases
def test_what_cannot_be_guessed_is_drawn(schema):
    """Every value is one that the schema allows."""
    assert conforms(example_value(schema), schema)
