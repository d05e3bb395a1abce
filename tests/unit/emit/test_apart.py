"""Options that a lexer would confuse are taken apart as long as that has an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrender import ChatTemplate
from unrender.verify.engines import installed, lark_reader

TEMPLATE = Path(__file__).parents[2] / "templates" / "tagged-raw.jinja"
LONGEST = 1_000_000


@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_a_pattern_is_not_made_deterministic() -> None:
    """`(a|b)*a(a|b){18}` has a quarter of a million states when each is told from all others; the grammar stays small, and right."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a|b)*a(a|b){18}$"}},
        "required": ["a"],
    }
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": schema}}
    turn = ChatTemplate.from_file(TEMPLATE).prepare(
        [{"role": "user", "content": "Hi"}], tools=[tool], tool_choice="required"
    )

    grammar = turn.lark()

    assert len(grammar) < LONGEST
    assert lark_reader(grammar)(turn.sample(0))
