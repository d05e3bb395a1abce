"""All three APIs on the same answers, right and broken: what streams adds up to the whole, and both to the message."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from jiter import from_json
from serving import TOOL, WEATHER, chunked, template

from unrender import CallRelease, CallStatus, Message, Policy, Usage
from unrender.gateway import Piece
from unrender.gateway.answers.choice import Choice
from unrender.gateway.surfaces.ask import Ask
from unrender.gateway.surfaces.chat import CHAT
from unrender.gateway.surfaces.messages import MESSAGES
from unrender.gateway.surfaces.responses import RESPONSES
from unrender.gateway.surfaces.surface import Head
from unrender.parser.message import MessageFold

HELLO = [{"role": "user", "content": "Hello"}]
FORMATS = ("json-tags", "tagged-key", "python-calls", "channels", "bracket-id", "forced-open", "answer-wrapped", "")
INSERTED = ("\ud800", "}", '"', "<", "</think>", "\n\ndata: x\n\n", "\0")


def answers(turn, seed):
    """Yield a right answer, and ones that are cut, littered and shuffled."""
    dice = random.Random(seed)
    text = turn.sample(seed)
    first, last = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
    yield text
    yield text[:first]
    yield text[:first] + dice.choice(INSERTED) + text[first:]
    yield text[:first] + text[last:] + text[first:last]


def events(data: bytes) -> list[dict[str, Any]]:
    """Return the JSON of all frames, each of which has one line of data."""
    frames = [frame for frame in data.decode().split("\n\n") if frame and not frame.startswith(":")]
    lines = [[line for line in frame.split("\n") if line.startswith("data: ")] for frame in frames]
    return [json.loads(line[6:]) for (line,) in lines if line != "data: [DONE]"]


def streamed(surface, turn, text, release=CallRelease.COMPLETE, *, size=3):
    """Return the events of an answer, and the message that it means."""
    choice = Choice(turn, policy=Policy(calls=release))
    data = surface.begin()
    for piece in chunked(text, size):
        data += surface.frames(0, choice.feed(Piece(piece)))
    data += surface.frames(0, choice.finish()) + surface.end(0, choice.outcome)
    data += surface.finish(Usage(prompt_tokens=1, completion_tokens=1))
    return events(data), choice.outcome.message


def check_chat(found, whole, message: Message):
    deltas = [event["choices"][0]["delta"] for event in found]
    calls: list[dict[str, Any]] = []
    for call in (call for delta in deltas for call in delta.get("tool_calls", ())):
        index, function = call.pop("index"), call.pop("function")
        if "id" in call:
            calls.append({"function": {"name": function["name"], "arguments": ""}})
        calls[index]["function"]["arguments"] += function["arguments"]
        calls[index] |= call
    assert "".join(delta.get("content") or "" for delta in deltas) == message.content
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == message.reasoning
    assert calls == whole["choices"][0]["message"].get("tool_calls", []) == message.to_openai().get("tool_calls", [])
    assert (whole["choices"][0]["message"]["content"] or "") == message.content


def check_messages(found, whole, message: Message):
    opened = [event["index"] for event in found if event["type"] == "content_block_start"]
    closed = [event["index"] for event in found if event["type"] == "content_block_stop"]
    assert opened == closed == list(range(len(opened)))
    texts = {
        kind: [block[kind] for block in whole["content"] if block["type"] == kind] for kind in ("text", "thinking")
    }
    assert ("".join(texts["text"]), "".join(texts["thinking"])) == (message.content, message.reasoning)
    calls = [(block["id"], block["input"]) for block in whole["content"] if block["type"] == "tool_use"]
    assert calls == [(call.id, so_far(call.arguments)) for call in message.tool_calls]


def check_responses(found, whole, message: Message):
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert found[-1]["response"] == whole
    texts = [part["text"] for item in whole["output"] if item["type"] == "message" for part in item["content"]]
    assert "".join(texts) == message.content
    calls = [item for item in whole["output"] if item["type"] == "function_call"]
    found = [(item["call_id"], item["arguments"], item["status"] == "completed") for item in calls]
    whole_calls = [(call.id, call.arguments, call.status is CallStatus.COMPLETE) for call in message.tool_calls]
    assert found == whole_calls


def so_far(arguments: str) -> Any:
    """Return what Anthropic's SDK makes of the arguments that have come so far."""
    return from_json(arguments.encode(), partial_mode=True) if arguments else {}


CHECKS = {"chat": (CHAT, check_chat), "messages": (MESSAGES, check_messages), "responses": (RESPONSES, check_responses)}


@pytest.mark.slow
@pytest.mark.parametrize(("api", "check"), CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("release", list(CallRelease), ids=str)
@pytest.mark.parametrize("name", FORMATS)
def test_stream_whole_and_message_agree(api, check, name, release):
    """Whatever the model writes, stream, whole answer and message say the same, and every frame is valid."""
    turn = template(name).prepare(HELLO, tools=[TOOL])
    ask = Ask(echo={"sealed": False})
    for seed in range(4):
        for text in answers(turn, seed):
            surface = api.surface(ask, Head(id="resp_1", model="m", created=0))
            found, message = streamed(surface, turn, text, release)
            check(found, surface.body(), message)


@pytest.mark.parametrize("stop", [(), ("zebra",)])
@pytest.mark.parametrize("release", list(CallRelease), ids=str)
@pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES], ids=lambda api: api.name)
def test_an_answer_goes_on_inside_a_call(api, release, stop):
    """An answer that is continued inside a call's arguments gives the whole call, its name included, and nothing else."""
    tool = {"type": "function", "function": WEATHER}
    begun = 'Hm.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'
    message = {"role": "assistant", "content": begun}
    turn = template("json-tags").prepare([*HELLO, message], tools=[tool], continue_final_message=True)
    choice = Choice(turn, stop, policy=Policy(calls=release))

    events = [*choice.feed(Piece(text='is"}}\n</tool_call><|end|>')), *choice.finish()]

    (call,) = choice.outcome.message.tool_calls
    fold = MessageFold()
    fold.add(events)
    assert fold.message == choice.outcome.message
    assert (call.name, call.arguments, call.status) == ("get_weather", '{"city": "Paris"}', "complete")
    surface = api.surface(Ask(tools=(tool,)), Head(id="a", model="m", created=0))
    assert b"get_weather" in surface.begin() + surface.frames(0, events)
