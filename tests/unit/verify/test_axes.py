"""Answers along each axis."""

from __future__ import annotations

from random import Random

import pytest

from unrender.verify.axes import AXES, NAMES, TOOLS, Answer, call_id, prose

SEEDS = range(30)


def answers(axis):
    return [AXES[axis](Random(seed)) for seed in SEEDS]


@pytest.mark.parametrize(
    ("axis", "content", "reasoning", "calls"),
    [
        ("content", True, False, {0}),
        ("reasoning", True, True, {0}),
        ("tool calls", False, False, {1}),
        ("content and tool calls", True, False, {1}),
        ("reasoning and tool calls", False, True, {1}),
        ("reasoning, content and tool calls", True, True, {1}),
        ("parallel tool calls", False, False, {2, 3}),
        ("identical tool calls", False, False, {2}),
        ("no arguments", False, False, {1}),
        ("strings", False, False, {1}),
        ("strings that look like other types", False, False, {1}),
        ("numbers", False, False, {1}),
        ("booleans", False, False, {1}),
        ("null", False, False, {1}),
        ("objects", False, False, {1}),
        ("arrays", False, False, {1}),
    ],
)
def test_an_axis_has_its_parts(axis, content, reasoning, calls):
    """Each answer of an axis has the parts that its name says, and no others."""
    made = answers(axis)

    assert {bool(answer.content) for answer in made} == {content}
    assert {bool(answer.reasoning) for answer in made} == {reasoning}
    assert {len(answer.calls) for answer in made} == calls


def test_no_axis_is_missing_here():
    """Sixteen axes are tried."""
    assert len(AXES) == 16


@pytest.mark.parametrize(
    ("axis", "kinds"),
    [
        ("no arguments", {}),
        ("strings", {"text": {str}, "note": {str}}),
        ("strings that look like other types", {"text": {str}}),
        ("numbers", {"count": {int}, "ratio": {float}}),
        ("booleans", {"flag": {bool}, "count": {int}}),
        ("null", {"nothing": {type(None)}, "text": {str}}),
        ("objects", {"settings": {dict}}),
        ("arrays", {"items": {list}}),
    ],
)
def test_arguments_have_the_kind_of_their_axis(axis, kinds):
    """Arguments are of the types that the axis is about, each under a name that the tools declare."""
    found = {}
    for answer in answers(axis):
        for key, value in answer.calls[0][1].items():
            found.setdefault(key, set()).add(type(value))

    assert found == kinds
    assert set(kinds) <= set(TOOLS[0]["function"]["parameters"]["properties"])


def test_identical_calls_are_identical():
    """The same call is made twice."""
    assert all(answer.calls[0] == answer.calls[1] for answer in answers("identical tool calls"))


def test_all_tools_are_called():
    """Calls go to every tool, and to no other."""
    assert {answer.calls[0][0] for answer in answers("tool calls")} == set(NAMES)
    assert tuple(tool["function"]["name"] for tool in TOOLS) == NAMES


@pytest.mark.parametrize("seed", SEEDS)
def test_prose_is_trimmed(seed):
    """Templates that trim text lose nothing of it, and no line is empty at the start."""
    text = prose(Random(seed))

    assert text
    assert text == text.strip()


def test_the_same_seed_gives_the_same_answers():
    """What a report says can be seen again."""
    assert answers("objects") == answers("objects")
    assert len({answer.content for answer in answers("content")}) > 20


def test_an_answer_in_openais_form():
    """Arguments are JSON text, ids have nine characters, what is not there is left out."""
    answer = Answer(content="c", reasoning="r", calls=(("f", {"a": "é"}), ("g", {})))

    assert answer.to_openai() == {
        "role": "assistant",
        "content": "c",
        "reasoning_content": "r",
        "tool_calls": [
            {"id": "proof0000", "type": "function", "function": {"name": "f", "arguments": '{"a": "é"}'}},
            {"id": "proof0001", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert Answer().to_openai() == {"role": "assistant", "content": ""}
    assert call_id(12) == "proof0012"
