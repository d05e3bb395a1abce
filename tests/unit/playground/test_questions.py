"""Requests of the playground's page. Every response is JSON, and an invalid request returns an error."""

from __future__ import annotations

import importlib
import json
import shlex
from importlib.resources import files

import command_line
import pytest
from cases import cases
from tables import at

from unrender.integrations.rendered import TEMPLATE
from unrender.playground import QUESTIONS, answer

SOURCE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOOL = {
    "type": "function",
    "function": {"name": "find", "parameters": {"type": "object", "properties": {"what": {"type": "string"}}}},
}
TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "Find it"},
]
ASKED = {"source": SOURCE, "messages": TALK, "tools": [TOOL]}
CALL = '<call>{"name": "find", "arguments": {"what": "it"}}</call>'


def asked(question, **fields):
    found = answer(question, {**ASKED, **fields})
    assert json.loads(json.dumps(found)) is not None
    return found


EXAMPLES = json.loads(files("unrender.playground").joinpath("page/examples.json").read_bytes())


@pytest.mark.few(4)
@pytest.mark.parametrize("example", EXAMPLES["examples"], ids=lambda example: example["name"])
def test_an_example_is_parsed_with_its_models_own_format(example):
    """A format in the request replaces the derived one, and the example's template writes answers in it."""
    template = {"source": example["source"], "format": example["format"]}
    request = template | {"messages": EXAMPLES["messages"], "tools": EXAMPLES["tools"]}

    output = answer("sample", request | {"legible": True})["output"]
    message = answer("read", request | {"output": output})["message"]
    assert answer("format", template)["format"] == example["format"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["get_weather"]
    assert answer("explanation", request | {"output": output})["clean"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_an_answer_in_json(question):
    """Every request returns JSON for a valid template."""
    other = {"source": "{{ messages[0].content }}"}

    assert "error" not in asked(question, output=CALL, before=ASKED, after=other)


def test_evidence_has_both_renderings():
    """Evidence has two renderings, split into their common start, their different parts and their common end."""
    found = next(item for item in asked("format")["evidence"] if item["name"] == "R1")
    split = found["split"]

    assert split["prefix"] + split["right"] + split["suffix"] == found["right"]["text"]
    assert split["right"].startswith("<think>")


def test_the_prompt_shows_whose_each_text_is():
    """The response contains the ranges of the texts that the model wrote, of the messages' texts, and of the markers in them."""
    first = asked("prompt")
    ((start, end),) = first["written"]
    attack = first["attack"]

    found = asked("prompt", messages=[{"role": "user", "content": attack}])

    assert first["prompt"][start:end] == "Hello!<|end|>"
    assert first["prompt"][first["history"] :] == "<|assistant|>"

    owners = [(found["prompt"][start:end], role, where) for start, end, role, where in found["owners"]]
    assert (attack, "user", "messages[0].content") in owners
    assert ("find", "tools", "tools[0]") in owners
    markers = [found["prompt"][start:end] for start, end in found["marked"]]
    assert markers[:3] == ["<|end|>", "<|assistant|>", "<|end|>"]


@cases
def test_the_first_sample_shows_all_that_the_template_writes(fields, written):
    """A legible answer has reasoning, content and a call, if the template supports them."""
    assert asked("sample", legible=True, **fields)["output"] == written


def test_random_samples_say_something():
    """The longest of several random answers is returned, so that it isn't empty."""
    assert all(asked("sample", seed=seed)["output"] for seed in range(0, 40, 4))


def engine_lines(name: str) -> list[str]:
    """Return the page's commands for an engine."""
    uses = json.loads(files("unrender.playground").joinpath("page", "uses.json").read_text())
    return next(use["lines"] for use in uses if use["name"] == name)


@pytest.mark.parametrize("engine", ["vLLM", "SGLang"])
def test_the_page_names_the_plug_in_as_it_is_registered(engine):
    """The flags use the plug-in's registered name for the parsers, and the plug-in reads the variable."""
    name = importlib.import_module(f"unrender.integrations.{engine.lower()}").NAME
    command = engine_lines(engine)[-1]

    assert command.startswith(f"{TEMPLATE}=chat_template.jinja ")
    assert command.endswith(f"--tool-call-parser {name} --reasoning-parser {name}")


@pytest.mark.parametrize("name", ["llama-server", "Gateway, without a model"])
def test_the_page_serves_with_commands_that_exist(name):
    """The command line accepts the commands that the page shows."""
    (words,) = [shlex.split(line)[1:] for line in engine_lines(name) if line.startswith("unrender ")]
    app = command_line.COMMANDS
    whole = app.make_context("unrender", list(words), resilient_parsing=True)

    assert app.get_command(whole, "serve").make_context("serve", words[1:], parent=whole)


def test_a_format_is_compared_with_a_template():
    """A format can be compared with a template."""
    kept = asked("format")["format"]
    kept["turn"]["end"] = "<other>"
    found = asked("compare", before={"format": kept}, after={"source": SOURCE})

    assert [(item["path"], item["before"], item["after"]) for item in found["differences"]] == [
        ("turn.end", "<other>", "<|end|>")
    ]


@cases
def test_an_answer_holds(question, fields, found):
    """An answer has these parts, among others."""
    answered = asked(question, **fields)

    assert {path: at(answered, path) for path in found} == found


@cases
def test_what_is_wrong_is_said(question, fields, named):
    """An invalid request returns only an error that names the field."""
    found = asked(question, **fields)

    assert list(found) == ["error"]
    assert named in found["error"]


@pytest.mark.parametrize(
    ("question", "field", "named", "most"),
    [("format", "source", "expected at most", 1_000_000), ("explanation", "output", "expected at most", 100_000)],
)
def test_what_is_too_long_is_said(question, field, named, most):
    """The error for a text that is too long names the limit."""
    found = asked(question, **{field: "x" * (most + 1)})

    assert list(found) == ["error"]
    assert f"{field}: {named} {most} characters" in found["error"]


@cases
def test_a_film_has_a_step_for_each_chunk(monkeypatch, fields, most, size, steps):
    """Chunks have at least one character, a long output has larger chunks, and adjacent chunks of a recorded stream are joined."""
    monkeypatch.setattr("unrender.playground.MAX_PIECES", most)
    shown = asked("read", **fields)

    assert (shown["chunk"], [step["fed"] for step in shown["steps"]]) == (size, steps)
