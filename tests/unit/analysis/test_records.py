"""Records of the analysis: what is not named when one is made says nothing, and so claims nothing."""

from __future__ import annotations

from dataclasses import MISSING, fields

import pytest

from unrender.analysis.ask.answers import Answers, Continuations, Turns, Variants, WrittenCall
from unrender.analysis.find.argument_syntax import ArgumentsFinding
from unrender.analysis.find.call_syntax import ToolsFinding
from unrender.analysis.find.codecs import CodecFinding
from unrender.analysis.find.content import Tails
from unrender.analysis.find.reasoning import Openings, ReasoningFinding, ReasoningRecord
from unrender.analysis.find.split import Solution
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.analysis.prove.claims import Proof
from unrender.analysis.prove.readback import Said
from unrender.analysis.result import Analysis, Evidence, Shown
from unrender.rendering.capabilities import Capabilities, ReasoningPlace

RECORDS = [
    Analysis,
    Answers,
    ArgumentsFinding,
    Continuations,
    CodecFinding,
    Evidence,
    TurnFrame,
    Openings,
    Proof,
    ReasoningFinding,
    Said,
    ReasoningRecord,
    Shown,
    Solution,
    Tails,
    ToolsFinding,
    Turns,
    Variants,
    WrittenCall,
]


def test_a_template_of_which_nothing_is_known_can_nothing():
    """Nothing is supported, and nothing is required but content that is text."""
    unknown = Capabilities()
    named = {item.name for item in fields(unknown) if getattr(unknown, item.name)}

    assert named == {"requires_nonnull_content", "reasoning_place", "tools_variable"}
    assert (unknown.reasoning_place, unknown.tools_variable) == (ReasoningPlace.NOWHERE, "tools")


@pytest.mark.parametrize("record", RECORDS)
def test_what_is_not_named_is_nothing(record):
    """Every default is an empty text, an empty collection, False or None."""
    defaults = [item.default for item in fields(record) if item.default is not MISSING]
    made = [item.default_factory() for item in fields(record) if item.default_factory is not MISSING]

    assert not any([*defaults, *made])
