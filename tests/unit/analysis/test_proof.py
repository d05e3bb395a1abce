"""Writing probes again from a format."""

from __future__ import annotations

from dataclasses import replace

import golden_formats
import pytest

from unrender.analysis.answers import render_answers
from unrender.analysis.asked import render_turns
from unrender.analysis.discovery import discover
from unrender.analysis.probes import Prober
from unrender.analysis.proof import calls_are_refuted, find_doubts
from unrender.analysis.turn import find_frame
from unrender.format import Format
from unrender.template.rendering import Template


@pytest.fixture
def proof():
    path = golden_formats.TEMPLATES / "json-tags.jinja"
    prober = discover(Prober(template=Template(path.read_text(encoding="utf-8"))))
    frame = find_frame(render_turns(prober))
    return render_answers(prober, frame), frame, golden_formats.derived(path)


def doubts(proof, format: Format):
    answers, frame, _ = proof
    return find_doubts(answers, frame, format)


def test_right_format_leaves_no_doubt(proof):
    """Every probe comes out as the template renders it."""
    assert doubts(proof, proof[2]) == ()


def test_white_space_is_no_doubt(proof):
    """Layout may differ from shape to shape."""
    format = proof[2]

    assert doubts(proof, replace(format, turn=replace(format.turn, content_to_tools=" \n\n"))) == ()


def test_wrong_marker_is_a_doubt(proof):
    """A marker that the template does not write shows in all shapes that have it, with both texts."""
    format = proof[2]
    wrong = replace(format, tools=replace(format.tools, call_start="<call>"))

    found = doubts(proof, wrong)

    assert "one call" in {doubt.shape for doubt in found}
    assert "<tool_call>" in found[0].rendered
    assert "<call>" in found[0].rebuilt
    assert calls_are_refuted(found, wrong)
    assert not calls_are_refuted((), wrong)
