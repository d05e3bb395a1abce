"""Examples of the older system, read with the templates of their models, and its other guarantees.

Rules: the examples are those in its documentation, as a model writes them. If a template's prompt starts reasoning, the
closing marker is added first, as the model would write it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from answers import template_named
from splitting import fed
from tables import table
from vendor import all_vendor_templates

from unrender import Message
from unrender.format import ReasoningMode

T: Any = table("test_function_calls")
PRESENT = {kind: [name for name in names if name in all_vendor_templates()] for kind, names in T["MODELS"].items()}
"""The available templates of each family of models."""
KIMI, R1 = PRESENT["KIMI"], PRESENT["R1"]
EXAMPLES: dict[str, Any] = T["EXAMPLES"]
TOOLS: list[dict[str, Any]] = T["TOOLS"]


def each_of(rows: dict[str, Any]) -> pytest.MarkDecorator:
    """Return the parameters of a test: each row with each template of its family."""
    cases = [(label, name, row) for label, row in rows.items() for name in PRESENT[row["of"]]]
    params = [
        pytest.param(name, row["text"], row.get("calls", []), id=f"{label}, {name}") for label, name, row in cases
    ]
    return pytest.mark.parametrize(("name", "text", "calls"), params)


def read(name: str, text: str) -> Message:
    """Return the message of an answer, the same for every chunking.

    If the prompt starts reasoning, it's closed first.
    """
    turn = template_named(name).prepare([{"role": "user", "content": "What's the weather in Tokyo?"}], tools=TOOLS)
    reasoning = template_named(name).format.reasoning
    opened = turn.prompt.rstrip().endswith(reasoning.start.strip()) and reasoning.mode is not ReasoningMode.NONE
    answer = text if not opened else text.removeprefix(reasoning.start.strip())
    if opened and answer == text:
        answer = reasoning.end + turn.format.turn.reasoning_to_content + text
    found = []
    for chunks in ([answer], list(answer)):
        parser = turn.parser()
        fed(parser, chunks)
        found.append(parser.message)
    assert called(found[0]) == called(found[1])
    assert found[0].content == found[1].content
    return found[0]


def called(message: Message) -> list[list[Any]]:
    calls = message.to_openai().get("tool_calls", [])
    return [[call["function"]["name"], json.loads(call["function"]["arguments"])] for call in calls]


@each_of(EXAMPLES)
def test_an_example_is_read(name, text, calls):
    """The documented call is returned, and no call syntax is left in the content."""
    message = read(name, text)

    assert called(message) == calls
    assert message.content.strip() == ""


@each_of(EXAMPLES)
def test_an_example_after_reasoning_and_content(name, text, calls):
    """Reasoning and content around the call are kept, and the call is the same."""
    if template_named(name).format.reasoning.mode is ReasoningMode.NONE and name not in R1:
        pytest.skip("the template has no reasoning")
    start = template_named(name).format.reasoning.start.strip() or "<think>"
    end = template_named(name).format.reasoning.end.strip() or "</think>"
    message = read(name, f"{start}I look.{end}\n\nLet me check.\n\n{text}")

    assert (message.reasoning.strip(), message.content.strip()) == ("I look.", "Let me check.")
    assert called(message) == calls


@pytest.mark.parametrize("name", KIMI)
def test_the_output_is_openais(name):
    """The id is the model's own, arguments are JSON text, and the type is `function`."""
    message = read(name, "I check." + EXAMPLES["Kimi's tokens"]["text"]).to_openai()

    assert message["content"] == "I check."
    assert message["tool_calls"] == [
        {
            "id": "functions.get_weather:0",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"location": "Tokyo"}'},
        }
    ]


@each_of(T["MALFORMED"])
def test_what_is_malformed_gives_no_calls(name, text, calls):
    """Malformed text gives no calls and no exception, and isn't lost."""
    message = read(name, text)

    assert called(message) == calls == []
    assert message.content.strip()
