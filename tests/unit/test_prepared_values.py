"""`prepare` and `parser` accept nested values up to a limit, or name the place that is too deep."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from unrender import ChatTemplate, RequestError

SOURCE = (
    "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}</call>{% endfor %}"
    "</>{% endfor %}{{ '' if mine is defined }}<assistant>"
)
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate.from_string(SOURCE)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"type": "object"}
    value["properties"] = {"again": value}
    return value


def shared(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value, "b": value}
    return value


def tool(parameters: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}


def asked(arguments: Any) -> dict[str, Any]:
    call = {"type": "function", "id": "1", "function": {"name": "f", "arguments": arguments}}
    return {"messages": [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}, *HELLO]}


HOSTILE: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "deep schema": (lambda: tool(nested(5000)), r"tools\[0\]\.a|tools\[0\]\.function\.parameters\.a"),
    "deep enum": (lambda: tool({"enum": [nested(5000)]}), r"tools\[0\]\.function\.parameters\.enum\[0\]\.a"),
    "cyclic schema": (lambda: tool(cyclic()), r"parameters\.properties\.again"),
    "shared schema": (lambda: tool(shared(60)), "at most 1000000 lists and objects"),
    "number as key": (lambda: tool({"properties": {5: {}}}), r"properties: expected text as keys, found 5"),
    "date in a schema": (lambda: tool({"default": datetime.now(UTC)}), r"default: expected JSON, found datetime"),
    "deep arguments": (lambda: asked(nested(5000)), r"messages\[1\]\.tool_calls\[0\]\.function\.arguments"),
    "cyclic arguments": (lambda: asked(cyclic()), r"messages\[1\]\.tool_calls\[0\]\.function\.arguments"),
    "date in arguments": (lambda: asked({"at": datetime.now(UTC)}), r"arguments\.at: expected JSON, found datetime"),
    "deep content": (
        lambda: {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "more": nested(5000)}]}]},
        r"messages\[0\]\.content\[0\]\.more\.a",
    ),
    "deep response format": (
        lambda: {"response_format": {"type": "json_schema", "json_schema": {"schema": nested(5000)}}},
        r"response_format\.json_schema\.schema\.a",
    ),
    "deep documents": (lambda: {"documents": [nested(5000)]}, "documents: expected at most 500 levels"),
    "cyclic variable": (lambda: {"mine": cyclic()}, "mine: expected at most 500 levels"),
    "shared variable": (lambda: {"mine": shared(60)}, "mine: expected at most 1000000 lists and objects"),
    "variable without a copy": (lambda: {"mine": (x for x in "a")}, "mine: expected a value that can be copied"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.full if name == "shared variable" else ())
        for name, row in HOSTILE.items()
    ],
)
def test_hostile_values_are_an_error_that_names_the_place(template, arguments, place):
    """A value that is nested too deeply, contains itself or isn't JSON raises a `RequestError`."""
    with pytest.raises(RequestError, match=place) as caught:
        template.prepare(**{"messages": HELLO} | arguments())

    assert len(str(caught.value)) < 600


def test_deep_values_are_rendered(template):
    """Values below the limit are rendered: a schema of 200 nested objects has 400 levels."""
    value: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        value = {"type": "object", "properties": {"a": value}}

    turn = template.prepare(HELLO, tools=tool(value)["tools"])

    assert turn.prompt.count("properties") == 200


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000])
def test_arguments_that_are_nested_too_deeply_stay_text(template, text):
    """Arguments as JSON text that is nested too deeply come from a model, so they are rendered as text."""
    assert text in template.prepare(asked(text)["messages"]).prompt.replace("\\", "")


def test_arguments_with_a_long_number_stay_text(template):
    """JSON with a number of 5,000 digits, which Python doesn't convert, is rendered as text."""
    text = f'{{"a": {"9" * 5000}}}'

    turn = template.prepare(asked(text)["messages"])

    assert json.dumps(text)[1:-1] in turn.prompt
