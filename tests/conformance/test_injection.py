"""For templates that ignore tools or drop calls, a whole loop works: tools, call, result, next prompt.

Rules: templates are chosen by their capabilities, never by name; the vendors' are included if available.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from answers import PLAIN, all_template_paths, said_in, template_named
from engines import installed, lark_reader
from properties.invariants import check

from unrender import Message, Turn
from unrender.analysis import Capabilities
from unrender.format import ToolMode
from unrender.format.declared import declared_formats
from unrender.testing import numbered_id

QUESTION = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Will it rain?"}]
CALLS = (("get_weather", {"city": "Paris"}, "c1"), ("get_weather", {"city": "Rome", "days": 2}, "c2"))
NAMED = [item.name for item in declared_formats() if item.format.tools.mode is not ToolMode.NONE]


each_template = pytest.mark.parametrize("name", all_template_paths())


def check_lacks(name: str, capability: str) -> None:
    """Skip a template that has a capability. Checking during collection would analyse all templates."""
    if getattr(template_named(name).capabilities, capability):
        pytest.skip(f"the template {capability.replace('_', ' ')}")


def answer(turn: Turn, capabilities: Capabilities) -> str:
    """Return the model's answer after the prefill: calls, plus text if the history may contain both."""
    calls = CALLS if turn.format.tools.parallel else CALLS[:1]
    drops_one = capabilities.supports_tool_calls and not capabilities.supports_content_with_calls
    text = said_in(turn.format, content="" if drops_one else "Let me look.", calls=calls)
    if text.startswith(turn.prefill):
        return text.removeprefix(turn.prefill)
    closed = turn.format.reasoning.end + turn.format.turn.reasoning_to_content if turn.prefill.strip() else ""
    return closed + text


def read(turn: Turn, text: str) -> Message:
    """Read the answer at several chunkings, which all give the same message."""
    return check(partial(turn.parser, ids=numbered_id), text)


def continued(message: Message) -> list[Any]:
    """Return the conversation with results for the calls."""
    results = [call.result(f"sunny, call {i}") for i, call in enumerate(message.tool_calls)]
    return [*QUESTION, message.to_openai(), *results]


def check_loop(name: str, tool_format: str) -> None:
    turn = template_named(name).prepare(QUESTION, tools=[PLAIN], tool_format=tool_format)
    assert turn.prompt.count(json.dumps(PLAIN)) == 1

    message = read(turn, answer(turn, template_named(name).capabilities))
    found = [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls]
    assert found == [(called, values) for called, values, _ in CALLS[: len(found)]] != []

    again = template_named(name).prepare(continued(message), tools=[PLAIN], tool_format=tool_format)
    assert again.tool_prompt == turn.tool_prompt
    assert again.prompt.count(json.dumps(PLAIN)) == 1
    assert [i for i in range(len(found)) if f"sunny, call {i}" not in again.prompt] == []
    assert all(str(values["city"]) in again.prompt for _, values in found)


@pytest.mark.few(24)
@each_template
def test_a_loop_works_without_tool_support(name: str) -> None:
    """The prompt describes tools once, a call is parsed for any chunking, and the next prompt has call and result."""
    check_lacks(name, "supports_tools")
    check_loop(name, "auto")


@pytest.mark.parametrize("tool_format", NAMED)
def test_a_loop_works_in_every_declared_format(tool_format: str) -> None:
    """The prompt can describe any declared call syntax."""
    check_loop("two-roles", tool_format)


@pytest.mark.few(60)
@each_template
def test_calls_that_a_template_drops_are_kept(name: str) -> None:
    """If a template writes tools but drops calls, the next prompt still shows call and result."""
    check_lacks(name, "supports_tool_calls")
    if not template_named(name).capabilities.supports_tools:
        pytest.skip("tools are put in by us")
    turn = template_named(name).prepare(QUESTION, tools=[PLAIN])
    message = read(turn, answer(turn, template_named(name).capabilities))

    again = template_named(name).prepare(continued(message), tools=[PLAIN]).prompt

    assert turn.tool_prompt is None
    assert [city for city in ("Paris", "sunny, call 0") if city not in again] == []


@each_template
def test_a_written_call_continues_what_was_generated(name: str) -> None:
    """Without a prefill, the next prompt extends this prompt and the answer, as prefix caches require."""
    check_lacks(name, "supports_tool_calls")
    turn = template_named(name).prepare(QUESTION, tools=[PLAIN])
    if turn.prefill or turn.format.reasoning.end or turn.format.content.start:
        pytest.skip("the history differs from what was generated before any call")
    answered = [*QUESTION, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Thanks"}]
    if not template_named(name).prepare(answered).prompt.startswith(template_named(name).prepare(QUESTION).prompt):
        pytest.skip("the template writes a question otherwise once it is answered")
    text = answer(turn, template_named(name).capabilities)

    again = template_named(name).prepare(continued(turn.parse(text)), tools=[PLAIN]).prompt

    assert again.startswith(turn.prompt + text)


@pytest.mark.few(60)
@each_template
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance reads the grammars")
def test_the_injected_syntax_constrains(name: str) -> None:
    """A required call is enforced in the injected syntax, and the parser reads every sample from the grammar."""
    check_lacks(name, "supports_tools")
    turn = template_named(name).prepare(QUESTION, tools=[PLAIN], tool_choice="required")
    accepts = lark_reader(turn.constraint("llguidance").grammar)

    for seed in range(5):
        text = turn.sample(seed)
        assert accepts(text)
        assert turn.parse(text).tool_calls


@each_template
def test_nothing_is_injected_without_need(name: str) -> None:
    """Without tools, and with "none", prompt and format are the template's own."""
    check_lacks(name, "supports_tools")
    plain = template_named(name).prepare(QUESTION)
    opted_out = template_named(name).prepare(QUESTION, tools=[PLAIN], tool_format="none")

    assert (plain.tool_prompt, opted_out.tool_prompt) == (None, None)
    assert "get_weather" not in plain.prompt + opted_out.prompt
    assert plain.format == opted_out.format
