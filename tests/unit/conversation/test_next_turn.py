"""Tests of the turn after an answer: described tools, changed requests, images, notes, invalid arguments and long chains."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import pytest

from unrender import ChatTemplate, Policy, RequestError
from unrender.errors import ExtendError, TemplateWarning
from unrender.turn import ParsedAnswer

PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"properties": {"city": {"type": "string"}}}}}
ASK, AGAIN = {"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}


def chat(source=PLAIN):
    return ChatTemplate.from_string(source, bos_token="<s>", eos_token="</s>")


def test_a_thousand_turns_hold_one_prompt_and_can_be_copied():
    """A turn keeps its messages, but no earlier prompts."""
    turn = chat().prepare([ASK])
    turn.next("Hi!", [AGAIN])
    tracemalloc.start()
    for number in range(1000):
        turn = turn.next(f"answer {number} ", [{"role": "user", "content": "x" * 200}])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert held < 8 * len(turn.prompt)  # Earlier prompts would be 500 times as much.
    for other in (pickle.loads(pickle.dumps(turn)), copy.deepcopy(turn)):
        assert other == turn
        assert other.next("Hi!", [AGAIN]).prompt == turn.next("Hi!", [AGAIN]).prompt


def test_many_new_messages_are_told_apart_in_time():
    """The cost isn't quadratic in the number of messages."""
    turn = chat().prepare([ASK])
    new = turn.next("Hi!", [{"role": "user", "content": f"b{i}"} for i in range(1000)])

    assert [piece.text for piece in new.appended if piece.body] == [f"b{i}" for i in range(1000)]


def test_a_clock_that_goes_on_rewrites_nothing():
    """A template that renders the time only appends, although no two of its renderings are equal."""
    assert chat("[{{ strftime_now('%S.%f') }}]" + PLAIN).continuation.append_only


TAGS = chat(
    "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "<call>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}</call>{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
CALLED = '<call>{"name": "now", "arguments": {"city": "Rome"}}</call>'


def test_results_of_failed_and_unknown_calls_go_by_their_ids():
    """If the policy returns failed and unknown calls as calls, each has its own result."""
    turn, policy = TAGS.prepare([ASK], tools=[TOOL]), Policy(unknown_tools="call", failed_calls="apart")
    answer = CALLED + CALLED.replace("now", "then") + CALLED.replace('"Rome"', "Rome") + "<end>"
    parser = turn.parser(policy=policy)
    parser.finish(text=answer)
    calls = (*parser.message.tool_calls, *parser.message.failed_calls)
    results = [call.result(f"{call.name} {call.status}") for call in calls]

    new = turn.next(ParsedAnswer(parser=parser), results)

    assert [(call.name, call.offered, call.status) for call in calls] == [
        ("now", True, "complete"),
        ("then", False, "complete"),
        ("now", True, "invalid"),
    ]
    assert [piece.text for piece in new.appended if piece.body] == ["now complete", "then complete", "now invalid"]
    assert new.known_ids == tuple(call.id for call in calls)
    with pytest.raises(ExtendError, match="expected at most 3 results"):
        turn.next(answer, [*results, results[0]], policy=policy)


def test_a_result_needs_the_id_of_a_call():
    """After a parsed answer, an id that no call has is an error. After a text, whose ids may be the engine's, it's a warning."""
    turn = TAGS.prepare([ASK], tools=[TOOL])
    parser = turn.parser(ids=lambda at, name: f"{name}-{at}")
    parser.finish(text=CALLED)
    wrong = {"role": "tool", "tool_call_id": "now-1", "content": "noon"}

    with pytest.raises(RequestError) as error:
        turn.next(ParsedAnswer(parser=parser), [wrong])
    with pytest.warns(TemplateWarning, match=r"messages\[0\]\.tool_call_id: no call has the id 'now-1'"):
        new = turn.next(CALLED, [wrong])

    expected = "messages[0].tool_call_id: expected one of the ids of the answer's calls, ['now-0'], found 'now-1'"
    assert str(error.value) == expected + "; did you mean 'now-0'?"
    assert new.prompt == turn.next(ParsedAnswer(parser=parser), [{**wrong, "tool_call_id": "now-0"}]).prompt
