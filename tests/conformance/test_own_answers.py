"""Our own answers are accepted as history by every template and through every API, even if the model broke them off.

Rules: answers are drawn from the template's own grammar and damaged. They return in each API's form, whole and as
clients assemble streams, with a result for every call and a new question.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from answers import PLAIN, QUESTION, all_template_paths, template_named

from unrender import ChatTemplate, ToolCall, Turn
from unrender.errors import TemplateWarning
from unrender.gateway.surfaces import Api, ChoiceOutcome, Head
from unrender.gateway.surfaces.chat import CHAT
from unrender.gateway.surfaces.messages import MESSAGES
from unrender.gateway.surfaces.responses import RESPONSES
from unrender.openai import Usage

GO_ON = "Go on with zebras."
AGAIN = {"role": "user", "content": GO_ON}
FLAT = {**PLAIN["function"], "type": "function"}
NATIVE = {"name": "get_weather", "input_schema": PLAIN["function"]["parameters"]}
ASKED: Mapping[str, dict[str, Any]] = {
    "chat": {"messages": QUESTION, "tools": [PLAIN]},
    "responses": {"input": QUESTION, "tools": [FLAT]},
    "messages": {"messages": QUESTION, "tools": [NATIVE], "max_tokens": 100},
}
BROKEN_ARGUMENTS = (
    *(None, "", " ", "null", "[]", "5", '"5"', "[1]", "now", "{", '{"city": "Par', '{"city": "Paris", "days": 3'),
    *('{"path": "a.txt"; "content": "x"}', '{"city": "Paris"} more', "[" * 100_000, '{"a": ' * 600 + "1" + "}" * 600),
    *(5, 0.5, True, [], [1], {"city": "Paris"}),
)


def answers(turn: Turn) -> Iterator[str]:
    """Yield an answer with calls, damaged in many ways, and answers with almost no text."""
    whole = turn.sample(3)
    yield from ("", "Hm", whole, whole + "\nHm.", whole.replace('"', "'", 1), whole.replace(":", ";"))
    yield from (whole[: len(whole) * part // 8] for part in range(1, 8))


def taken(template: ChatTemplate, messages: Any) -> str:
    """Return the prompt for a conversation. Parts that the template can't show only cause a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TemplateWarning)
        return template.prepare(messages, tools=[PLAIN]).prompt


def as_written(call: ToolCall, index: int) -> dict[str, Any]:
    """Return a call as clients that add up deltas keep it."""
    return call.to_openai() | {"index": index, "status": call.status}


def as_block(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments_json)
    except ValueError:
        arguments = call.arguments_json
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def as_item(call: ToolCall) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments_json}
    return item | {"id": "fc_1", "status": "incomplete"}


def histories(api: Api, body: Mapping[str, Any], calls: tuple[ToolCall, ...]) -> Iterator[dict[str, Any]]:
    """Yield requests that continue after an answer: as returned whole, and with every streamed call."""
    asked, results = dict(ASKED[api.name]), [call.result("A result.") for call in calls]
    if api.name == "chat":
        message = body["choices"][0]["message"]
        streamed = {**message, "tool_calls": [as_written(call, i) for i, call in enumerate(calls)]}
        for said in (message, streamed if calls else message | {"content": None}):
            yield asked | {"messages": [*QUESTION, said, *results, AGAIN]}
    elif api.name == "messages":
        read = [{"type": "tool_result", "tool_use_id": call.id, "content": "A result."} for call in calls]
        blocks = [block for block in body["content"] if block["type"] != "tool_use"]
        for said in (body["content"], [*blocks, *map(as_block, calls)]):
            answered = {"role": "user", "content": [*read, {"type": "text", "text": GO_ON}]}
            yield asked | {"messages": [*QUESTION, {"role": "assistant", "content": said}, answered]}
    else:
        outputs = [{"type": "function_call_output", "call_id": call.id, "output": "A result."} for call in calls]
        items = [item for item in body["output"] if item["type"] != "function_call"]
        for said in (body["output"], [*items, *map(as_item, calls)]):
            yield asked | {"input": [*QUESTION, *said, *outputs, AGAIN]}


@pytest.mark.few(48)
@pytest.mark.parametrize("name", all_template_paths())
def test_an_answer_is_accepted_as_history(name):
    """Whatever the model wrote, the parsed answer is rendered in the next prompt, with the new question."""
    template = template_named(name)
    turn = template.prepare(QUESTION, tools=[PLAIN], tool_choice="required")
    for text in answers(turn):
        message = turn.parse(text)
        results = [call.result("A result.") for call in message.tool_calls]

        assert GO_ON in taken(template, [*QUESTION, message.to_openai(), *results, AGAIN]), text


@pytest.mark.few(24)
@pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES], ids=lambda api: api.name)
@pytest.mark.parametrize("name", all_template_paths())
def test_an_answer_comes_back_through_its_api(name, api):
    """Each API accepts the answers that it returned, and the template renders them."""
    template = template_named(name)
    turn = template.prepare(QUESTION, tools=[PLAIN], tool_choice="required")
    ask = api.read(ASKED[api.name])
    for text in answers(turn):
        parser = turn.parser()
        surface = api.surface(ask, Head(id="answer_1", model="m", created=0))
        surface.begin()
        surface.frames(0, [*parser.feed(text), *parser.finish("length")])
        surface.end(0, ChoiceOutcome(message=parser.message, reason="length"))
        surface.finish(Usage(prompt_tokens=1, completion_tokens=1))

        for request in histories(api, surface.body(), parser.message.tool_calls):
            assert GO_ON in taken(template, list(api.read(request).messages)), text


@pytest.mark.few(20)
@pytest.mark.parametrize("name", all_template_paths())
def test_any_arguments_are_accepted_in_history(name):
    """In OpenAI's API, arguments are any text. Text that isn't an object is rendered as far as the template allows."""
    template = template_named(name)
    for arguments in BROKEN_ARGUMENTS:
        function = {"name": "get_weather", "arguments": arguments}
        call = {"id": "call_1", "type": "function", "status": "invalid", "function": function}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": "call_1", "content": "A result."}

        assert GO_ON in taken(template, [*QUESTION, answer, result, AGAIN]), arguments
