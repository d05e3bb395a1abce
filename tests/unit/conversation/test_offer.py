"""Tests of earlier calls and results as text."""

from __future__ import annotations

import copy

import pytest
from cases import cases
from message_rows import plain

from unrender import Format
from unrender.conversation import concede
from unrender.conversation.messages import conversation_of

FORMAT = Format.named("tool-call-json")
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}
TOLD = '<tool_response name="f">\n42\n</tool_response>'


def write_calls(messages, format):
    return plain(concede.write_calls(conversation_of(messages), format))


def write_results(messages):
    return plain(concede.write_results(conversation_of(messages)))


def assistant(content, *calls):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


@cases
def test_calls_come_after_content(content, expected):
    """A call in the format's syntax follows the message's content."""
    assert write_calls([assistant(content, CALL)], FORMAT) == [{"role": "assistant", "content": expected}]


def test_several_calls_are_one_run():
    """Calls of one message are joined in the format's syntax. Their arguments may be text or a mapping."""
    other = {"function": {"name": "g", "arguments": {"b": "x"}}}

    (message,) = write_calls([assistant("", CALL, other)], Format.named("tool-call-json-list"))

    assert message["content"] == (
        '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {"b": "x"}}]'
    )


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_not_lost(arguments):
    """Arguments that can't be parsed stay in the text."""
    call = {"function": {"name": "f", "arguments": arguments}}

    (message,) = write_calls([assistant("", call)], Format.named("kimi-xml"))

    assert arguments in message["content"]


def test_other_fields_and_messages_stay():
    """Reasoning and messages without calls are unchanged, and the caller's messages aren't modified."""
    given = [{"role": "user", "content": "?"}, assistant("", CALL) | {"reasoning_content": "so"}]
    before = copy.deepcopy(given)

    written = write_calls(given, FORMAT)

    assert (written[0], written[1]["reasoning_content"]) == (given[0], "so")
    assert given == before


def test_results_are_named_after_their_call():
    """A result has the name of its function, either its own or that of its call."""
    named = RESULT | {"name": "own"}

    assert write_results([assistant("", CALL), RESULT])[1:] == [{"role": "user", "content": TOLD}]
    assert 'name="own"' in write_results([assistant("", CALL), named])[1]["content"]


def test_results_and_what_the_user_adds_are_one_message():
    """Results and the user's next message are merged, because a template may refuse two user messages in a row."""
    question = {"role": "user", "content": "And?"}

    (_, message) = write_results([assistant("", CALL, CALL), RESULT, RESULT, question])

    assert message == {"role": "user", "content": f"{TOLD}\n{TOLD}\nAnd?"}


def test_messages_of_the_user_stay_apart_elsewhere():
    """User messages are merged only with results."""
    given = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]

    assert write_results(given) == given


def test_parts_of_a_result_stay_parts():
    """A result with other parts keeps them between the tags."""
    picture = {"type": "image", "url": "x"}

    (message,) = write_results([{"role": "tool", "name": "f", "content": [picture]}])

    assert message["content"][1] == picture
    assert [part["text"] for part in message["content"][::2]] == ['<tool_response name="f">\n', "\n</tool_response>"]


def test_a_format_without_calls_writes_none():
    """A format without a call syntax writes no calls."""
    assert write_calls([assistant("Hm.", CALL)], Format())[0]["content"].startswith("Hm.")
