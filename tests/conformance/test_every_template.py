"""Properties of every template: ours, the vendors', and those that no package contains.

Answers are read back and accepted by the grammars of every dialect. Parsed answers fit the next prompt. No argument is
lost silently, and no lexeme is lost to a longer one. `pytest -m full` checks some templates more thoroughly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import pytest
from answers import (
    ANSWERS,
    BEFORE,
    QUESTION,
    TOOL_SETS,
    all_template_paths,
    own_words,
    refused,
    template_named,
    template_paths,
)
from answers import lost as unread
from kept_arguments import calls, lost, misread, mutated
from lexing import confusions_of
from tables import table

from unrender import ChatTemplate, Message, Parser, TemplateError, Turn
from unrender.format import Slot
from unrender.parser.prompt_tail import read_prefill
from unrender.training import assistant_mask

each_template = pytest.mark.parametrize("name", all_template_paths())
T: Any = table("test_every_template")
LOSSY: dict[str, Any] = T["LOSSY"]
"""Templates with answers that can't be read back: the shapes of these answers, and the reason."""


@pytest.mark.few(24)
@each_template
def test_what_a_template_writes_is_read_back(name):
    """Each answer is parsed as intended, whole and by character, except for the losses in `LOSSY`."""
    found = unread(template_named(name))

    expected = LOSSY[name]["shapes"] if name in LOSSY else []
    assert {label.partition(",")[0] for label in found} == {*expected}, found


UNWRITTEN: dict[str, str] = T["UNWRITTEN"]
"""Templates with renderings that the grammars don't accept, with the reason."""
FEW = ["content", "calls", "no arguments", "all"]


@pytest.mark.few(40)
@pytest.mark.engine
@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.full)])
@each_template
def test_what_the_template_writes_is_accepted(name: str, everywhere: bool) -> None:
    """Grammars accept a few shapes after a question; for templates that no package contains, all shapes.

    In the full run, they accept all shapes after all turns.
    """
    shapes = {shape: ANSWERS[shape] for shape in (FEW if name in template_paths() and not everywhere else ANSWERS)}
    turns = BEFORE if everywhere else {"first": BEFORE["first"]}

    found = refused(own_words(template_named(name), turns=turns, shapes=shapes))

    assert bool(found) == (name in UNWRITTEN), found


@pytest.mark.few(8)
@each_template
def test_no_lexeme_is_lost(name):
    """No lexeme continues with text that may follow a complete lexeme at the same place."""
    template = template_named(name)
    try:
        turns = [
            template.prepare(QUESTION, tools=TOOL_SETS[tools], tool_choice=way)
            for tools, way in (("three", "auto"), ("optional", "required"))
        ]
    except TemplateError as error:
        pytest.skip(f"the template refuses the tools: {error}")
    begun = [replace(turn, prefill=read_prefill(turn.format, turn.prompt)) for turn in turns]

    assert [found for turn in begun for found in confusions_of(turn)] == []


CALLS = 3
"""Number of calls with random values for each template."""


@pytest.mark.few(16)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@each_template
def test_arguments_are_kept(name: str) -> None:
    """A call is parsed as intended. If text is almost a call, no word is lost without an event."""
    chat, rng = template_named(name), random.Random(name)
    written = list(calls(chat, rng, CALLS)) if chat.format.tools.function else []

    assert [found for call in written if (found := misread(chat, call, rng))] == []
    assert [
        (how, found) for call in written for how, text in mutated(call, rng) if (found := lost(chat, call, text, rng))
    ] == []


def calling(name: str) -> Turn | None:
    """Return a turn that must call a tool; None if the template has no calls or rejects the tools."""
    try:
        turn = template_named(name).prepare(QUESTION, tools=TOOL_SETS["three"], tool_choice="required")
    except TemplateError:
        return None
    return turn if turn.format.tools.mode != "none" else None


def history(message: Message) -> list[Any]:
    """Return the conversation with the answer and a result for each of its calls."""
    return [*QUESTION, message.to_openai(), *(call.result("A result.") for call in message.tool_calls)]


@pytest.mark.few(80)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.full)], ids=str)
@each_template
def test_the_next_prompt_takes_the_ids_of_an_answer(name, seeds):
    """Whatever id a grammar lets a model write, the next `prepare` renders it."""
    turn, template = calling(name), template_named(name)
    if turn is None:
        pytest.skip("the template has no calls")
    for text in map(turn.sample, seeds):
        message = turn.parse(text)
        ids = [call.id for call in message.tool_calls]

        following = template.prepare(history(message), tools=TOOL_SETS["three"])
        taken = [id for id in ids if not template.capabilities.requires_short_id or re.fullmatch("[0-9A-Za-z]{9}", id)]
        shown = taken if Slot.ID in turn.format.tools.function else []

        assert ids, text
        assert len(set(ids)) == len(ids), text
        assert following.known_ids == tuple(ids)
        assert [id for id in shown if id not in following.prompt] == [], text


TOOL: dict[str, Any] = T["TOOL"]
RESULT: dict[str, Any] = T["RESULT"]
SHORT: dict[str, dict[str, Any]] = T["SHORT"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def refusal(template: ChatTemplate, *answers: str) -> str:
    """Return why a template rejects a history of these answers and their replies; "" if it accepts it."""
    turns = []
    for number, answer in enumerate(answers):
        calls = [{**call, "id": f"call{number:05d}"} for call in SHORT[answer].get("tool_calls", ())]
        turns.append({"role": "assistant", **SHORT[answer], **({"tool_calls": calls} if calls else {})})
        turns.append({**RESULT, "tool_call_id": f"call{number:05d}"} if calls else user("And then?"))
    try:
        template.prepare([user("What now?"), *turns], tools=[TOOL])
    except TemplateError as error:
        return str(error)
    return ""


@pytest.mark.few(40)
@each_template
def test_unlike_answers_go_together(name):
    """If a template accepts two answers separately, it accepts them together."""
    template = template_named(name)
    taken = [answer for answer in SHORT if not refusal(template, answer, answer)]
    refused = {pair: why for pair in permutations(taken, 2) if (why := refusal(template, *pair))}

    assert refused == {}
    assert taken


BARE = {"type": "function", "function": {"name": "look_up"}}


@pytest.mark.few(60)
@each_template
def test_a_mask_refuses_nothing_that_is_rendered(name: str) -> None:
    """A mask covers the model's answers and call but no result, even if the tool has no description."""
    template = template_named(name)
    try:
        template.prepare(T["MASKED"], tools=[BARE])
    except TemplateError as error:
        pytest.skip(f"the template refuses the conversation: {error}")

    mask = assistant_mask(template, T["MASKED"], tools=[BARE])

    first, call, last = (mask.text[part.start : part.end] for part in mask.written)
    assert ("First." in first, "zebra" in call, "Last." in last) == (True, "zebra" in mask.text, True)
    assert not any(word in said for said in (first, call, last) for word in ("A result.", "Two?", "Three?"))


def asked(template: ChatTemplate, conversation: list[dict[str, Any]]) -> Iterator[tuple[Turn, list[Any] | None]]:
    """Yield the turns for the conversation, with and without tools, for every thinking setting."""
    for thinking, tools in product((None, True, False), (None, [TOOL])):
        switch = {} if thinking is None else {"enable_thinking": thinking}
        with suppress(TemplateError):
            yield template.prepare(conversation, tools=tools, **switch), tools


def read(parser: Parser) -> Message:
    parser.finish()
    return parser.message


@pytest.mark.few(16)
@each_template
def test_nothing_of_an_earlier_turn_reaches_the_answer(name):
    """An empty answer contains only text from the generation prompt, whether the prefill is given or detected."""
    template = template_named(name)
    for label, conversation in T["CONVERSATIONS"].items():
        for turn, tools in asked(template, conversation):
            known = read(turn.parser())
            searched = read(template.prepare_rendered(turn.prompt, tools=tools).parser())

            assert searched == known, label
            assert (known.content, known.tool_calls) == ("", ()), label
            assert known.reasoning.strip() in ("", turn.format.turn.prefill.strip()), label
