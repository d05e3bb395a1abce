"""The three APIs through their vendors' clients: an answer, streamed or whole, its calls, and the next request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jiter import from_json
from openai.lib.streaming.chat._completions import ChatCompletionStreamState
from serving import HELLO, TOOL, WEATHER, anthropic_of, openai_of

FLAT: Any = {"type": "function", **WEATHER}
BLOCK: Any = {"name": "get_weather", "input_schema": WEATHER["parameters"]}


def chat(application: Any, messages: list[Any], *, stream: bool, **more: Any) -> Any:
    """Return the choice from Chat Completions."""
    create, state = openai_of(application).chat.completions.create, ChatCompletionStreamState()
    asked: Any = {"model": "m", "messages": messages, "tools": [TOOL], **more}
    for chunk in create(stream=True, **asked) if stream else ():
        state.handle_chunk(chunk)
    whole: Any = state.current_completion_snapshot if stream else create(**asked)
    return whole.model_dump(exclude_none=True)["choices"][0]


def responses(application: Any, items: list[Any], *, stream: bool) -> Any:
    """Return the response from Responses."""
    asked: Any = {"model": "m", "input": items, "tools": [FLAT]}
    if not stream:
        return openai_of(application).responses.create(**asked).model_dump(exclude_none=True)
    events = list(openai_of(application).responses.create(stream=True, **asked))
    done = [event for event in events if event.type == "response.output_item.done"]
    assert [event.output_index for event in done] == list(range(len(done)))
    assert events[-1].response.output == [event.item for event in done]
    return events[-1].response.model_dump(exclude_none=True)


def messages(application: Any, messages: list[Any], *, stream: bool) -> Any:
    """Return the message from Messages."""
    api = anthropic_of(application).messages
    asked: Any = {"model": "m", "messages": messages, "tools": [BLOCK], "max_tokens": 200}
    if not stream:
        return api.create(**asked).model_dump(exclude_none=True)
    with api.stream(**asked) as events:
        return events.get_final_message().model_dump(exclude_none=True)


APIS: dict[str, Callable[..., Any]] = {"chat": chat, "responses": responses, "messages": messages}


def both(api: str, application: Any, conversation: list[Any] = HELLO, **more: Any) -> tuple[Any, Any]:
    """Return an SDK's reading of the stream, and the whole answer."""
    streamed, whole = (APIS[api](application, conversation, stream=stream, **more) for stream in (True, False))
    return streamed, whole


def calls_in(api: str, answer: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return the id and the arguments of each call, and whether the arguments are complete.

    Incomplete arguments are read as a lenient agent would.
    """
    if api == "messages":
        blocks = [block for block in answer["content"] if block["type"] == "tool_use"]
        return [(block["id"], block["input"], block["input"] == {"city": "Paris"}) for block in blocks]
    if api == "chat":
        found = [(call["id"], call["function"]["arguments"]) for call in answer["message"].get("tool_calls") or ()]
    else:
        items = [item for item in answer["output"] if item["type"] == "function_call"]
        found = [(item["call_id"], item["arguments"]) for item in items]
    return [(id, so_far(text), is_json(text)) for id, text in found]


def so_far(arguments: str) -> Any:
    """Return the value of incomplete arguments so far."""
    return from_json(arguments.encode() or b"{}", partial_mode=True)


def is_json(text: str) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def continued(api: str, answer: dict[str, Any], result: str) -> list[Any]:
    """Return the messages that a client sends next: the answer as received, and a result for each call."""
    ids = [id for id, _, _ in calls_in(api, answer)]
    if api == "chat":
        return [answer["message"], *({"role": "tool", "tool_call_id": id, "content": result} for id in ids)]
    if api == "responses":
        return [*answer["output"], *({"type": "function_call_output", "call_id": id, "output": result} for id in ids)]
    results = [{"type": "tool_result", "tool_use_id": id, "content": result} for id in ids]
    said = {"role": "assistant", "content": answer["content"] or "."}
    return [said, *([{"role": "user", "content": results}] if results else [])]
