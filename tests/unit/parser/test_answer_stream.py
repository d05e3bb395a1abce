"""An answer read while it's generated: events and response bodies of its chunks, plain and async."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from unrender import ChatTemplate, RequestError, ToolCall, Turn

SOURCE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    '{% for c in m.tool_calls or [] %}<call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</call>'
    "{% endfor %}<end>{% endfor %}<assistant>"
)
ANSWER = 'One moment.<call>{"name": "rain", "arguments": {"city": "Paris"}}</call><end>'
TOOL = {"name": "rain", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture(scope="module")
def turn() -> Turn:
    """A turn whose answers may call `rain`."""
    return ChatTemplate.from_string(SOURCE).prepare([{"role": "user", "content": "Will it rain?"}], tools=[TOOL])


async def _later(chunks: list[str]) -> AsyncIterator[str]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def _all_later(stream: Any) -> list[Any]:
    async def collected() -> list[Any]:
        return [item async for item in stream]

    return asyncio.run(collected())


def _made(turn: Turn, kind: str, chunks: Any) -> Any:
    def ids(*_: object) -> str:
        return "id"

    return turn.stream(chunks, ids=ids) if kind == "events" else turn.openai_chunks(chunks, model="m", ids=ids)


@pytest.mark.parametrize("kind", ["events", "bodies"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_plain_and_async_chunks_make_the_same(turn: Turn, kind: str, size: int) -> None:
    """A plain and an async iterable of the same chunks give the same events, bodies and message."""
    chunks = [ANSWER[i : i + size] for i in range(0, len(ANSWER), size)]
    plain, later = _made(turn, kind, chunks), _made(turn, kind, _later(chunks))
    made, made_later = list(plain), _all_later(later)
    for body in (*made, *made_later) if kind == "bodies" else ():
        del body["id"], body["created"]
    assert made == made_later
    assert plain.message == later.message == turn.parse(ANSWER, ids=lambda *_: "id")


def test_bodies_add_up_to_the_message(turn: Turn) -> None:
    """The bodies' deltas add up to content and arguments, and the last one has the finish reason."""
    bodies = list(_made(turn, "bodies", list(ANSWER)))
    deltas = [body["choices"][0]["delta"] for body in bodies]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert "".join(delta.get("content", "") for delta in deltas) == "One moment."
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"city": "Paris"}
    assert bodies[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert {body["model"] for body in bodies} == {"m"}


def test_a_chunk_is_read_when_its_events_are_asked_for(turn: Turn) -> None:
    """Chunks are read lazily, the message is the one so far, and a stream ends once."""
    read: list[str] = []

    def chunks() -> Iterator[str]:
        for chunk in ("One ", "moment."):
            read.append(chunk)
            yield chunk

    stream = turn.stream(chunks())
    assert read == []
    next(stream)
    assert read == ["One "]
    assert stream.message.content == "One "
    assert [type(event).__name__ for event in stream] == ["ContentText", "MessageFinished"]
    assert list(stream) == []


@pytest.mark.parametrize(
    ("chunks", "read", "problem"),
    [
        ("text", list, r"chunks: expected an iterable of texts .*, found 'text'; use \[\"text\"\]"),
        (_later(["a"]), list, "chunks: expected an iterable of texts, found async_generator"),
        (["a"], _all_later, "chunks: expected an async iterable of texts, found list"),
        (["a", b"b"], list, r"chunks\[1\]: expected text, found b'b'"),
    ],
)
def test_other_chunks_are_an_error(turn: Turn, chunks: Any, read: Callable[[Any], Any], problem: str) -> None:
    """Chunks that aren't text, and iterables of the wrong kind, raise an error that names the place."""
    with pytest.raises(RequestError, match=problem):
        read(turn.stream(chunks))


@pytest.mark.parametrize(("value", "content"), [("sunny", "sunny"), ({"é": [1]}, '{"é": [1]}'), (None, "null")])
def test_a_result_answers_its_call(turn: Turn, value: Any, content: str) -> None:
    """A result is a tool message with the call's id, and the next turn accepts it."""
    call = turn.parse(ANSWER).tool_calls[0]
    assert call.result(value) == {"role": "tool", "tool_call_id": call.id, "content": content}
    assert f"<tool>{content}<end><assistant>" in turn.next(ANSWER, [call.result(value)]).prompt


def test_a_result_that_is_no_data_is_an_error() -> None:
    """A result that JSON can't represent raises an error that names the tool."""
    with pytest.raises(RequestError, match="value: expected text or JSON data as the result of 'rain'"):
        ToolCall(name="rain", arguments_json="{}", id="1").result(object())
