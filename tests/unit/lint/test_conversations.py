"""Ordinary conversations, and a template that writes them down."""

from __future__ import annotations

import pytest
from unit.lint.conftest import changed, sound

from unrender.lint.conversations import (
    ANSWER,
    CITY,
    FIRST,
    RESULT,
    RULES,
    SECOND,
    SYSTEM,
    THOUGHT,
    TOOLS,
    USER,
    calling,
    result,
    with_objects,
)


def test_calls_have_arguments_as_text():
    """As servers return them, each with an id of its own."""
    message = calling(FIRST, SECOND, reasoning_content="r")

    assert message == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "r",
        "tool_calls": [
            {
                "id": "call00000",
                "type": "function",
                "function": {"name": "find_animal", "arguments": '{"city": "NAIROBI"}'},
            },
            {
                "id": "call00001",
                "type": "function",
                "function": {"name": "draw_animal", "arguments": '{"city": "NAIROBI"}'},
            },
        ],
    }


def test_arguments_as_objects():
    """All but the arguments stays, and the message that was given too."""
    message = calling(FIRST)
    (call,) = with_objects(message)["tool_calls"]

    assert call == {"id": "call00000", "type": "function", "function": {"name": FIRST, "arguments": {"city": CITY}}}
    assert message == calling(FIRST)


@pytest.mark.parametrize(("index", "id", "name"), [(0, "call00000", "find_animal"), (1, "call00001", "draw_animal")])
def test_results_belong_to_calls(index, id, name):
    """A result has the id and the name of its call."""
    assert result(index) == {"role": "tool", "tool_call_id": id, "name": name, "content": "GRASSLAND"}


def test_words_are_found_again():
    """Each word is in one place alone."""
    words = [ANSWER, THOUGHT, RULES, RESULT, CITY, FIRST, SECOND]

    assert not [(a, b) for a in words for b in words if a != b and a in b]
    assert [tool["function"]["name"] for tool in TOOLS] == [FIRST, SECOND]


def test_a_prompt_asks_and_a_history_does_not():
    """The three ways to render differ in what is asked, and in the shape of messages."""
    written = "<|user|>Tell me about ZEBRAS.<|end|>"

    assert sound().raw([USER]).text == f"{written}<|assistant|>"
    assert sound().prompt([USER]).text == f"{written}<|assistant|>"
    assert sound().history([USER]).text == written
    assert sound().prompt([SYSTEM, USER], bos_token="<s>").text == (
        f"<s><|system|>Be BRIEF.<|end|>{written}<|assistant|>"
    )


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("{%- if tools %}", "{%- if false %}", {"takes_tools"}),
        ("in message.tool_calls or []", "in []", {"writes_calls"}),
        (
            "if message.reasoning_content %}",
            "if false %}",
            {"writes_reasoning", "writes_reasoning_with_calls"},
        ),
        (
            "if message.reasoning_content %}",
            "if message.reasoning_content and not message.tool_calls %}",
            {"writes_reasoning_with_calls"},
        ),
        (
            "if message.reasoning_content %}",
            "if message.reasoning_content and message.tool_calls %}",
            {"writes_reasoning"},
        ),
        ("{{- bos_token }}", "{{- bos_token }}", set()),
    ],
)
def test_what_a_template_writes(old, new, missing):
    """Tools, calls, reasoning, and reasoning before calls are looked for each by itself."""
    subject = changed((old, new))
    names = ("takes_tools", "writes_calls", "writes_reasoning", "writes_reasoning_with_calls")

    assert {name for name in names if not getattr(subject, name)} == missing
