"""Tests of custom tools, whose input is text in the API and JSON in the prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving import HELLO, Told, chunked, posted, served
from streams import frames

from unrender.gateway.backends import EngineCapabilities

TEXTS = ["", "plain", 'a "b" \\ c\n', "\u0000é😀", "\\u0041", "{}"]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
RUN = {"type": "custom", "custom": {"name": "run"}}
FLAT: dict[str, Any] = {"type": "custom", "name": "run"}
SIZES = (1, 2, 3, 5, 99)
OTHER: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
}


def called(arguments, size):
    """Return the input of a custom tool's call, which the engine streams in pieces of a given size."""
    text = f'<tool_call>\n{{"name": "run", "arguments": {arguments}}}\n</tool_call>'
    begin = text.index(arguments)
    pieces = [text[:begin], *chunked(arguments, size), text[begin + len(arguments) :]]
    application = served(Told(pieces), tool_calls="streamed")
    answer = posted(application, CHAT, json={"messages": HELLO, "tools": [RUN], "stream": True})
    calls = [call for frame in frames(answer.text) for call in frame["choices"][0]["delta"].get("tool_calls", ())]
    return "".join(call["custom"]["input"] for call in calls)


def asked(path, **request):
    """Return the engine's request."""
    engine = Told("Hi", capabilities=EngineCapabilities(obeys=True))
    answer = posted(served(engine), path, json=request)
    assert answer.status_code == 200
    return engine.jobs[0].turn.request


@pytest.mark.few(4)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("escaped", [True, False])
def test_text_streams_out_of_json(text, escaped):
    """The text is extracted from the JSON, however it is split, and no part is taken back."""
    arguments = json.dumps({"input": text}, ensure_ascii=escaped)
    for size in SIZES:
        assert called(arguments, size) == text


@pytest.mark.parametrize("arguments", ['{"inputs": "a"}', '{"input": 5}', '{ "x": {"input": "a"}}'])
def test_arguments_without_the_text_stay_as_they_are(arguments):
    """Arguments of another shape are passed on unchanged, however they are split."""
    for size in SIZES:
        assert called(arguments, size) == arguments


def test_custom_tools_may_be_among_the_allowed():
    """A tool choice or a list of allowed tools may name custom tools, in the form of either API."""
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [RUN]}}
    flat = {"type": "allowed_tools", "mode": "required", "tools": [FLAT]}
    other = {"type": "function", **OTHER["function"]}
    chat, responses = {"messages": HELLO, "tools": [RUN, OTHER]}, {"input": "Hello", "tools": [FLAT, other]}
    named = [asked(CHAT, **chat, tool_choice=RUN), asked(RESPONSES, **responses, tool_choice=FLAT)]
    allowed = [asked(CHAT, **chat, tool_choice=choice), asked(RESPONSES, **responses, tool_choice=flat)]

    assert [one.named_tool for one in named] == ["run", "run"]
    assert [(one.tool_choice, [tool.name for tool in one.tools]) for one in allowed] == [("required", ["run"])] * 2
