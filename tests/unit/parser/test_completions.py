"""Messages, deltas and bodies of Chat Completions, made of events, and an answer read while it is generated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from cases import cases
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from turn_rows import SOURCES

from unrender import (
    ChatTemplate,
    ContentText,
    Event,
    Message,
    Parser,
    ReasoningText,
    RequestError,
    ToolCall,
    Turn,
    machine,
)
from unrender.format import Format
from unrender.openai import Completion, Usage, deltas, finish_reason, message_of
from unrender.types import CallStatus, Request, Tool

COMPLETION = Completion(model="m", id="chatcmpl-1", created=1)
CALL = "[ToolCallStarted(0, 'abc', 'now'), ArgumentsText(0, '{\"utc\": '), ArgumentsText(0, 'true}'), ToolCallFinished(0, 'complete')]"


def events_of(text: str) -> list[Event]:
    """Return the events of a row, which are written as code."""
    found: list[Event] = eval(text, dict(vars(machine)))
    return found


EVENTS = [ReasoningText("Hm."), ContentText("Wait"), *events_of(CALL)]


def call(status: CallStatus) -> ToolCall:
    return ToolCall(name="now", arguments_json="{", id="abc", status=status)


@cases
def test_the_finish_reason_follows_the_calls(statuses, reason, expected):
    """Only a call to execute gives `tool_calls`, and `length` is kept."""
    assert finish_reason(Message(tool_calls=tuple(call(status) for status in statuses)), reason) == expected


def test_a_stream_is_one_of_openais():
    """Every chunk is valid, and OpenAI's own accumulator gives the message."""
    stream = COMPLETION.choice()
    chunks = [
        *stream.chunks(EVENTS),
        *stream.end(message_of(EVENTS)),
        COMPLETION.usage_chunk(Usage(prompt_tokens=3, completion_tokens=4)),
    ]
    state = ChatCompletionStreamState()

    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True))

    whole = state.get_final_completion()
    [choice] = whole.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Wait"
    assert choice.message.tool_calls is not None
    assert choice.message.tool_calls[0].function.arguments == '{"utc": true}'
    assert whole.usage == CompletionUsage(prompt_tokens=3, completion_tokens=4, total_tokens=7)


@cases
def test_a_stream_is_as_the_row_says(why, given, index, fed, ended, sent):
    """Each chunk is one of OpenAI's, with the index of its choice. The role is sent once and first. A list has the deltas and the finish reason."""
    stream = Completion(model="m", **given).choice(index)
    chunks = [chunk for events in fed for chunk in stream.chunks(events_of(events))]
    chunks += [] if ended is None else stream.end(Message(**ended))

    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
    choices = [chunk["choices"][0] for chunk in chunks]
    assert {choice["index"] for choice in choices} == {index}
    assert [choice["delta"] for choice in choices] + [choices[-1]["finish_reason"]] == sent


@cases
def test_events_add_up(why, events, message, sent):
    """The message of events has all texts in order, and calls with their statuses. Each event is one delta or none."""
    assert repr(message_of(events_of(events))) == message
    assert list(deltas(events_of(events))) == sent


def test_a_completion_is_one_of_openais():
    """The body has one choice per message, null content for calls without content, and the usage."""
    usage = Usage(prompt_tokens=3, completion_tokens=4, reasoning_tokens=2, cached_tokens=1)
    messages = [message_of(EVENTS), Message(tool_calls=(call("complete"),)), Message(content="Hi")]

    body = ChatCompletion.model_validate(
        COMPLETION.body(messages, reasons=["stop", "stop", "length"], usage=usage), strict=True
    )

    assert [choice.finish_reason for choice in body.choices] == ["tool_calls", "tool_calls", "length"]
    assert body.choices[1].message.content is None
    assert body.usage is not None
    assert body.usage.completion_tokens_details is not None
    assert body.usage.completion_tokens_details.reasoning_tokens == 2
    assert body.usage.prompt_tokens_details is not None
    assert body.usage.prompt_tokens_details.cached_tokens == 1


def test_reasoning_goes_by_the_name_that_was_chosen():
    """Either name of the reasoning field can be used, in chunks and in bodies."""
    other = Completion(model="m", reasoning_field="reasoning")

    for completion, name in ((COMPLETION, "reasoning_content"), (other, "reasoning")):
        body: dict[str, Any] = {**completion.body([message_of(EVENTS)])["choices"][0]["message"]}
        deltas = [chunk["choices"][0]["delta"] for chunk in completion.choice().chunks(EVENTS)]
        assert (body[name], deltas[1]) == ("Hm.", {name: "Hm."})
        assert not {"reasoning", "reasoning_content"} & body.keys() - {name}


def test_content_is_null_beside_calls_alone():
    """An empty answer has empty content, and text next to a call is kept."""
    done = call("complete")
    messages = [Message(), Message(content="Hi", tool_calls=(done,)), Message(tool_calls=(done,))]
    body = COMPLETION.body(messages)

    assert [choice["message"]["content"] for choice in body["choices"]] == ["", "Hi", None]
    assert (body["usage"], [choice["index"] for choice in body["choices"]]) == (None, [0, 1, 2])


def test_ids_are_new_for_each_completion():
    """Two completions have different ids, and the creation time."""
    one, two = Completion(model="m"), Completion(model="m")

    assert one.id != two.id
    assert one.created > 1_700_000_000


def test_a_half_written_call_is_not_fit_to_be_executed():
    """In mid-stream, a message contains only complete calls."""
    parser = Parser(Format(), Request(tools=(Tool(name="now"),)))
    parser.feed("Hi")

    assert parser.message.to_openai() == {"role": "assistant", "content": "Hi"}
    assert "tool_calls" not in Message(tool_calls=(call("open"),)).to_openai()


ANSWER = 'One moment.<call>{"name": "rain", "arguments": {"city": "Paris"}}</call><end>'
TOOL = {"name": "rain", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture(scope="module")
def turn() -> Turn:
    """A turn whose answers may call `rain`."""
    return ChatTemplate.from_string(SOURCES["calls"]).prepare(
        [{"role": "user", "content": "Will it rain?"}], tools=[TOOL]
    )


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
