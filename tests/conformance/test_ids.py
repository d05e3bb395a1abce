"""Ids that a model may write: the next prompt takes each of them, in every template that writes ids.

Rules: an answer is drawn from the grammar that engines are given, read, and put into history with results that name its
calls; the template then has to render the next prompt, with those ids where it writes ids at all. A template that takes
ids of nine letters and digits alone is given others in their place. `pytest -m full` draws more answers.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from answers import QUESTION, TOOL_SETS, all_template_paths, template_named

from unrender import Message, TemplateError
from unrender.format import Slot
from unrender.turn import Turn


def asked(name: str) -> Turn | None:
    """Return a turn that has to call; None where the template has no calls, or refuses the tools."""
    try:
        turn = template_named(name).prepare(QUESTION, tools=TOOL_SETS["three"], tool_choice="required")
    except TemplateError:
        return None
    return turn if turn.format.tools.mode != "none" else None


def history(message: Message) -> list[dict[str, Any]]:
    """Return the conversation with the answer and a result for each of its calls."""
    results = [
        {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "A result."}
        for call in message.tool_calls
    ]
    return [*QUESTION, message.to_openai(), *results]


def check_next_prompt(name: str, seed: int) -> None:
    turn = asked(name)
    if turn is None:
        pytest.skip("the template has no calls")
    template = template_named(name)
    text = turn.sample(seed)
    message = turn.parse(text)
    ids = [call.id for call in message.tool_calls]

    following = template.prepare(history(message), tools=TOOL_SETS["three"])
    taken = [id for id in ids if not template.capabilities.requires_short_id or re.fullmatch("[0-9A-Za-z]{9}", id)]
    shown = taken if Slot.ID in turn.format.tools.function else []

    assert ids, text
    assert len(set(ids)) == len(ids), text
    assert following.known_ids == tuple(ids)
    assert [id for id in shown if id not in following.prompt] == [], text


@pytest.mark.parametrize("name", all_template_paths())
def test_the_next_prompt_takes_the_ids_of_an_answer(name):
    """Whatever the grammar lets a model write for an id, the next `prepare` renders."""
    check_next_prompt(name, 0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 20))
@pytest.mark.parametrize("name", all_template_paths())
def test_the_next_prompt_takes_the_ids_of_many_answers(name, seed):
    """The same, for more answers."""
    check_next_prompt(name, seed)
