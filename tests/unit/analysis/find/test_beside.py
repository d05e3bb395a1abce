"""Answers of content and a call in, the wrapper that content has beside calls out."""

from __future__ import annotations

import pytest

from unrender.analysis.ask.answers import Answers
from unrender.analysis.ask.probes import CONTENT, NAMES, REASONING
from unrender.analysis.find.content import find_beside
from unrender.analysis.find.reasoning import ReasoningFinding
from unrender.format import Content, ContentMode, Reasoning, ReasoningMode

NAME = NAMES[0]
ALWAYS = ContentMode.ALWAYS_WRAPPED
ALONE = Content(mode=ALWAYS, start="<final>", end="</final>")
THINK = ReasoningFinding(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"), to_content="\n"
)

SHAPES = {
    "not rendered": ({"mixed": None}, ALONE, None),
    "the call is missing": ({"mixed": f"<say>{CONTENT}"}, ALONE, None),
    "the call comes first": ({"mixed": f"<call>{NAME}</call><say>{CONTENT}</say>"}, ALONE, None),
    "wrapped as it is alone": ({"mixed": f"<final>\n{CONTENT}</final><call>{NAME}"}, ALONE, None),
    "not wrapped": ({"mixed": f"\n{CONTENT}<call>{NAME}"}, ALONE, Content()),
    "not wrapped, as it is alone": ({"mixed": f"{CONTENT}<call>{NAME}"}, Content(), None),
    "closed by its own marker": (
        {"mixed": f"<say>{CONTENT}\n</say>\n<call>{NAME}", "call": f"<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="\n</say>"),
    ),
    "closed by the last opener's marker": (
        {"mixed": f"<a><say>x {CONTENT}</say></a><call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<a><say>x ", end="</say>"),
    ),
    "not closed": (
        {"mixed": f"<say>{CONTENT}<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end=""),
    ),
    "words are not closed": (
        {"mixed": f"Say: {CONTENT}<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="Say: ", end=""),
    ),
    "a marker after the call closes nothing": (
        {"mixed": f"<say>{CONTENT}<call>{NAME}</call></say>"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end=""),
    ),
    "written around nothing as well": (
        {"mixed": f"<say>{CONTENT}</say>\n<call>{NAME}", "call": f"<say></say>\n<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="</say>", wraps_empty=True),
    ),
    "around nothing, closed by something else": (
        {"mixed": f"<say>{CONTENT}<;><call>{NAME}", "call": f"<say><;><do>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="<;>", wraps_empty=True),
    ),
    "around nothing, before a name that comes twice": (
        {"mixed": f"<say>{CONTENT}<;>{NAME}={NAME}", "call": f"<say><;>{NAME}={NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="<;>", wraps_empty=True),
    ),
    "opened around nothing, and not closed": (
        {"mixed": f"<say>{CONTENT}</say><call>{NAME}", "call": f"<say>\n<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="</say>"),
    ),
    "after the empty form of reasoning": (
        {"mixed": f"<think></think>\n<say>{CONTENT}</say><call>{NAME}", "call": f"<think></think>\n<call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="</say>"),
    ),
    "in the place of reasoning": (
        {
            "mixed": f"<think>{CONTENT}</think><call>{NAME}",
            "reasoned_call": f"<think>\n{REASONING}</think><call>{NAME}",
        },
        ALONE,
        None,
    ),
    "in another place than reasoning": (
        {"mixed": f"<say>{CONTENT}</say><call>{NAME}", "reasoned_call": f"<think>{REASONING}</think><call>{NAME}"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="</say>"),
    ),
    "where calls drop reasoning": (
        {"mixed": f"<say>{CONTENT}</say><call>{NAME}", "reasoned_call": "<say>"},
        ALONE,
        Content(mode=ALWAYS, start="<say>", end="</say>"),
    ),
}


@pytest.mark.parametrize(("texts", "alone", "expected"), SHAPES.values(), ids=SHAPES)
def test_wrapper_beside_calls(texts, alone, expected):
    """How content is wrapped before a call, where that is not as it is alone."""
    assert find_beside(Answers(**texts), alone, THINK) == expected
