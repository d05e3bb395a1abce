"""Tests of a format's picture: a row of markers and slots, each with its field."""

from __future__ import annotations

from operator import attrgetter

import pytest
from vendor import vendor_templates

from unrender import ChatTemplate
from unrender.format import Format, Reasoning, ReasoningMode, TurnTexts
from unrender.format.picture import pictures

PATHS = sorted(vendor_templates().values(), key=lambda path: path.stem)


def test_an_answer_is_its_markers_and_slots_in_order():
    """Empty markers are left out, and each piece names its field."""
    made = Format(
        turn=TurnTexts(end="<end>", reasoning_to_content="\n"),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>"),
    )
    (row,) = pictures(made)

    assert [(piece.text, piece.role, piece.field) for piece in row] == [
        ("<r>", "marker", "reasoning.start"),
        ("reasoning", "reasoning", "reasoning"),
        ("</r>", "marker", "reasoning.end"),
        ("\n", "marker", "turn.reasoning_to_content"),
        ("content", "content", "content"),
        ("<end>", "marker", "turn.end"),
    ]


def test_calls_end_as_they_were_seen_to_end():
    """If a turn ends differently after calls, so does the picture of a call."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
        "{{ c.function.arguments | tojson }}</call>{% endfor %}{{ '<wait>' if m.tool_calls else '<end>' }}{% endfor %}"
    )
    template = ChatTemplate.from_string(source, cache=False)
    (row,) = template.analysis._pictures()

    assert (row[-1].text, row[-1].field) == ("<wait>", "turn.ends")


@pytest.mark.parametrize("path", PATHS[::6], ids=lambda path: path.stem)
def test_every_part_names_a_field_of_the_format(path):
    """For any template, the fields in a picture exist and contain the marker."""
    template = ChatTemplate.from_file(path)
    rows = template.analysis._pictures()

    assert rows
    for piece in (piece for row in rows for piece in row if piece.role == "marker"):
        held = attrgetter(piece.field)(template.format)
        assert piece.text in (held if isinstance(held, tuple) else (held,))
