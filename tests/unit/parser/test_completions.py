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

from unrender import (
    ArgumentsText,
    ChatTemplate,
    ContentText,
    Event,
    Malformed,
    Message,
    MessageFinished,
    Parser,
    ReasoningText,
    RequestError,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
    Turn,
)
from unrender.format import Format
from unrender.openai import Completion, Usage, deltas, finish_reason, message_of
from unrender.types import CallStatus, Request, Tool

COMPLETION = Completion(model="m", id="chatcmpl-1", created=1)
EVENTS = [
    ReasoningText("Hm."),
    ContentText("Wait"),
    ToolCallStarted(0, "abc", "now"),
    ArgumentsText(0, '{"utc": '),
    ArgumentsText(0, "true}"),
    ToolCallFinished(0, "complete"),
]


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


def test_the_role_comes_once_and_first():
    """A stream starts with the role, even if nothing else follows."""
    stream = COMPLETION.choice(1)

    first, last = stream.end(Message())

    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (last["choices"][0]["index"], last["choices"][0]["finish_reason"]) == (1, "stop")


def test_the_role_does_not_come_again():
    """The role is sent once, however often the stream is fed."""
    stream = COMPLETION.choice()
    chunks = [*stream.chunks(EVENTS[:1]), *stream.chunks(EVENTS[1:2]), *stream.end(Message(content="Wait"))]

    assert ["role" in chunk["choices"][0]["delta"] for chunk in chunks] == [True, False, False, False]


def test_a_broken_call_is_named_in_the_stream():
    """Clients that collected the fragments of a broken call learn its status."""
    events = [*EVENTS[:4], ToolCallFinished(0, "truncated")]
    chunks = list(COMPLETION.choice().chunks(events))

    assert chunks[-1]["choices"][0]["delta"] == {
        "tool_calls": [{"index": 0, "function": {"arguments": ""}, "status": "truncated"}]
    }
    ChatCompletionChunk.model_validate(chunks[-1], strict=True)


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

    body = other.body([message_of(EVENTS)])["choices"][0]["message"]
    deltas = [chunk["choices"][0]["delta"] for chunk in other.choice().chunks(EVENTS)]

    assert (body["reasoning"], "reasoning_content" in body) == ("Hm.", False)
    assert deltas[1] == {"reasoning": "Hm."}
    assert COMPLETION.body([message_of(EVENTS)])["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert list(COMPLETION.choice().chunks(EVENTS[:1]))[1]["choices"][0]["delta"] == {"reasoning_content": "Hm."}


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


MIXED = (
    ReasoningText("so"),
    ContentText("a"),
    ToolCallStarted(0, "id0", "f"),
    ArgumentsText(0, '{"x"'),
    ArgumentsText(0, ": 1}"),
    ToolCallFinished(0, "complete"),
    Malformed("x", 3, "y"),
    ToolCallStarted(1, "id1", "g", offered=False),
    ContentText("b"),
    MessageFinished(),
)


def test_events_add_up():
    """Texts are joined in order, an unfinished call is open, and malformed text adds nothing."""
    assert message_of(MIXED) == Message(
        content="ab",
        reasoning="so",
        tool_calls=(
            ToolCall(name="f", arguments_json='{"x": 1}', id="id0"),
            ToolCall(name="g", arguments_json="", id="id1", status="open", offered=False),
        ),
    )


def test_failed_calls_are_those_that_were_given_and_those_that_were_not():
    """Failed calls are in order of failure. A call whose text became content isn't one of the message's calls."""
    waited = ToolCall(name="f", arguments_json="{", id="", status="truncated")
    events: list[Event] = [Malformed("", 0, "x", waited), ContentText("<f>{"), ToolCallStarted(0, "id0", "g")]
    ended = message_of([*events, ToolCallFinished(0, "invalid")])

    given = ToolCall(name="g", arguments_json="", id="id0", status="invalid")
    assert (ended.tool_calls, ended.failed_calls) == ((given,), (waited, given))
    assert message_of(events).failed_calls == (waited,)


def test_each_event_is_one_delta_or_none():
    """Id, type and name are sent once per call, then fragments. Ends and malformed text have no delta."""
    events = [
        ReasoningText("r"),
        ContentText("c"),
        ToolCallStarted(1, "x", "f"),
        ArgumentsText(1, "{}"),
        ToolCallFinished(1, "complete"),
        Malformed("", 0, "y"),
        MessageFinished(),
    ]

    assert list(deltas(events)) == [
        {"reasoning_content": "r"},
        {"content": "c"},
        {"tool_calls": [{"index": 1, "id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
    ]


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
