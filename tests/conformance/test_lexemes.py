"""No lexeme of an emitted Lark grammar is lost to a longer one, for every template: a check on the grammar, not on answers."""

from __future__ import annotations

import pytest
from answers import QUESTION, TOOL_SETS, all_template_paths, template_named
from lexing import confusions_of

from unrender.dialects.remainder import Remainder
from unrender.errors import TemplateError
from unrender.parser.streaming import prefill


@pytest.mark.parametrize("name", all_template_paths())
def test_no_lexeme_is_lost(name):
    """Where several lexemes are allowed, none goes on where another is complete and may be followed so."""
    template = template_named(name)
    try:
        turns = [
            template.prepare(QUESTION, tools=TOOL_SETS[tools], tool_choice=way)
            for tools, way in (("three", "auto"), ("three", "required"), ("optional", "required"))
        ]
    except TemplateError as error:
        pytest.skip(f"the template refuses the tools: {error}")
    begun = [prefill(turn.format, turn.prompt) for turn in turns]
    answers = [
        Remainder(format=turn.format, request=turn.request, begun=text) for turn, text in zip(turns, begun, strict=True)
    ]

    assert [found for answer in answers for found in confusions_of(answer)] == []
