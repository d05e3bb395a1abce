"""What an explanation holds, as text and as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.explain.diagnosis import Explanation, Hint, Nearest, Stop
from unrender.format import Format
from unrender.messages.wire import CallStatus, Message, ToolCall
from unrender.nodes import Role
from unrender.parser.streaming import Span

STOP = Stop(begun=1, position=3, expected="a name", found="x y")
HINT = Hint(name="truncated", text="it ends", fix="Allow more")
PLAIN = Explanation(
    output="Hi<e>",
    format=Format(),
    message=Message(content="Hi"),
    spans=(Span(Role.CONTENT, 0, 2), Span(Role.MARKER, 2, 5)),
    events=(),
)


@pytest.mark.parametrize(
    ("stop", "line"),
    [
        (STOP, "at character 3: expected a name, found 'x y'"),
        (replace(STOP, found=""), "at character 3: expected a name, found the end of the output"),
        (replace(STOP, found="\n"), "at character 3: expected a name, found '\\n'"),
    ],
)
def test_a_stop_is_a_line(stop, line):
    """The place, what could have been there, and what was."""
    assert str(stop) == line


@pytest.mark.parametrize(
    ("fix", "text"), [("Allow more", "it ends. Allow more."), ("Was it meant?", "it ends. Was it meant?")]
)
def test_a_hint_is_two_sentences(fix, text):
    """What is seen, and what to do about it; a question keeps its mark."""
    assert str(replace(HINT, fix=fix)) == text


def calling(status):
    calls = (ToolCall(id="i", name="f", arguments="{}", status=status),)
    return Message(tool_calls=calls) if status is CallStatus.COMPLETE else Message(dead_calls=calls)


@pytest.mark.parametrize(
    ("changes", "clean"),
    [
        ({}, True),
        ({"stops": (STOP,)}, False),
        ({"hints": (HINT,)}, False),
        ({"tolerances": ("a space",)}, True),
        ({"message": calling(CallStatus.COMPLETE)}, True),
        ({"message": calling(CallStatus.TRUNCATED)}, False),
        ({"message": calling(CallStatus.INVALID)}, False),
    ],
)
def test_what_is_clean(changes, clean):
    """Nothing stopped the reading, every call is whole, and nothing is to be hinted at; tolerance is not a fault."""
    assert replace(PLAIN, **changes).clean is clean


def test_an_explanation_is_data():
    """Everything but format and events is in the data, each span with its text."""
    explanation = replace(
        PLAIN,
        message=replace(calling(CallStatus.COMPLETE), content="Hi"),
        stops=(STOP,),
        tolerances=("a space",),
        nearest=Nearest(name="bare", why="common", calls=("f({})",)),
        hints=(HINT,),
        expected=("the end",),
    )

    assert explanation.to_dict() == {
        "clean": False,
        "message": {
            "role": "assistant",
            "content": "Hi",
            "tool_calls": [{"id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        "spans": [
            {"role": "content", "start": 0, "end": 2, "text": "Hi"},
            {"role": "marker", "start": 2, "end": 5, "text": "<e>"},
        ],
        "calls": [{"name": "f", "status": "complete", "arguments": "{}", "id": "i"}],
        "stops": [{"begun": 1, "position": 3, "expected": "a name", "found": "x y"}],
        "tolerances": ["a space"],
        "nearest": {"name": "bare", "why": "common", "calls": ["f({})"]},
        "hints": [{"name": "truncated", "text": "it ends", "fix": "Allow more"}],
        "expected": ["the end"],
    }


def test_nothing_near_is_null():
    """Where no other syntax reads more, there is none in the data."""
    assert PLAIN.to_dict()["nearest"] is None
