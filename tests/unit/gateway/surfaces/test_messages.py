"""Tests of Messages with Anthropic's own client and strict validation."""

from __future__ import annotations

import json

import anthropic
import pytest
import serving
from serving import CALL, HELLO, WEATHER, Told, anthropic_of, chunked, posted, served, template

from unrender.gateway.backends import OutputPiece
from unrender.gateway.gateway import GatewayLimits
from unrender.openai import Usage

TOOL = {"name": "get_weather", "input_schema": WEATHER["parameters"]}
ANSWER = f"<think>\nRain?\n</think>\nI'll look.\n{CALL}<|end|>"


def said(message):
    """Return the blocks without their ids, which are random."""
    return [
        (block.type, getattr(block, "text", None) or getattr(block, "thinking", None) or (block.name, block.input))
        for block in message.content
    ]


def both(engine, **request):
    """Return the whole message, and the one that the stream adds up to."""
    return serving.both(anthropic_of(served(engine)).messages, **{"max_tokens": 1000, "messages": HELLO} | request)


def asked(engine, **request):
    return posted(served(engine), "/v1/messages", json={"max_tokens": 9, "messages": HELLO} | request)


def test_blocks_follow_each_other():
    """Thinking, text and a call are blocks in this order. Thinking is signed, and the stop reason is `tool_use`."""
    whole, streamed = both(Told(chunked(ANSWER, 5)), tools=[TOOL])

    expected = [("thinking", "Rain?"), ("text", "I'll look."), ("tool_use", ("get_weather", {"city": "Paris"}))]
    assert said(whole) == said(streamed) == expected
    assert whole.content[0].signature == streamed.content[0].signature != ""
    assert whole.stop_reason == streamed.stop_reason == "tool_use"


def test_reasons_and_usage():
    """A stop sequence is named, the limit is `max_tokens`, and cached tokens are counted separately."""
    cut = Told(["Hi STOP", OutputPiece("", 0, "stop")])
    counted = Told(["Hi", OutputPiece("", 0, "length", Usage(prompt_tokens=9, completion_tokens=4, cached_tokens=5))])

    stopped, _ = both(cut, stop_sequences=["STOP"])
    limited, streamed = both(counted)

    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "STOP")
    assert limited.stop_reason == streamed.stop_reason == "max_tokens"
    for usage in (limited.usage, streamed.usage):
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (4, 5, 4)


def test_prefilled_answer_is_gone_on_with():
    """An answer continues the assistant's last message, and contains only the new text."""
    engine = Told(" blue.<|end|>")
    messages = [*HELLO, {"role": "assistant", "content": "The sky is"}]

    whole, streamed = both(engine, messages=messages)

    assert said(whole) == said(streamed) == [("text", " blue.")]
    assert engine.jobs[0].turn.prompt.endswith("The sky is")


def test_thinking_is_switched():
    """`thinking` sets the template's switch. An unsupported budget causes a warning."""

    def begun(**thinking):
        engine = Told("Hi")
        answer = asked(engine, thinking=thinking, max_tokens=2000)
        return engine.jobs[0].turn.prefill, answer.json().get("warnings", [])

    off, _ = begun(type="disabled")
    on, warnings = begun(type="enabled", budget_tokens=1024)
    assert off == "<think>\n\n</think>\n"
    assert on == ""
    assert warnings == ["thinking_budget: not supported by the template; thinking is on"]


def test_tokens_are_counted():
    """`count_tokens` returns the engine's count for the rendered prompt."""
    counted = anthropic_of(served(Told("Hi"))).messages.count_tokens(model="m", messages=HELLO)

    assert counted.input_tokens == len(template().prepare(HELLO).prompt.split())


def test_client_raises_its_own_errors():
    """Anthropic's client raises its own exception for a gateway that is full."""
    client = anthropic_of(served(Told("Hi"), limits=GatewayLimits(max_streams=0)))

    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(model="m", max_tokens=5, messages=HELLO)

    assert caught.value.status_code == 529
    assert json.loads(caught.value.response.text)["error"]["type"] == "overloaded_error"


def test_stream_begins_with_the_cost_of_the_prompt():
    """The first event has the engine's count of the prompt's tokens. `metadata` isn't reported as ignored."""
    engine = Told("Hi")

    answer = asked(engine, stream=True, metadata={"user_id": "u"})
    start = json.loads(answer.text.partition("data: ")[2].partition("\n")[0])

    assert start["message"]["usage"]["input_tokens"] == len(engine.jobs[0].turn.prompt.split()) > 0
    assert "x-unrender-warnings" not in answer.headers
