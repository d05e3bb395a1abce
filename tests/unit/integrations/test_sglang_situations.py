"""SGLang's own function-call tests on every template: the same situations, in answers of our own.

An answer is the template's own text for a message. SGLang's own parsers with our detectors must return that message.
Optional: it runs if SGLang is installed (`python3 scripts/run.py plugins`).
"""

from __future__ import annotations

import importlib
import json
from functools import cache
from typing import Any

import pytest
import torchless_vision
from answers import QUESTION, all_template_paths, written
from driven import template
from driven_sglang import request_of, streamed, whole
from engines import installed
from splitting import splits
from tables import table

from unrender import UnrenderError
from unrender.format import ToolMode

NEEDED = ("sglang", "torch", "xgrammar")
if not all(map(installed, NEEDED)):
    pytest.skip("sglang is needed", allow_module_level=True)
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

T: Any = table("test_sglang_situations")
TOOLS: Any = T["TOOLS"]
PARIS, ROME = ("get_weather", {"city": "Paris", "days": 3}), ("get_weather", {"city": "Rome"})
TYPES = (
    "set_many",
    {"zip": "02134", "count": 7, "opts": {"on": True, "sizes": [1, -2.5]}, "mode": "it's", "note": "x"},
)
SITUATIONS: Any = {
    name: (content, [tuple(call) for call in calls]) for name, (content, calls) in T["SITUATIONS"].items()
}


@pytest.fixture(scope="module", autouse=True)
def plugin():
    """Load the plug-in as SGLang does, by its entry point."""
    torchless_vision.install()
    importlib.import_module("sglang.srt.plugins").load_plugins()


@cache
def prepared(name):
    """Return a turn in which the template describes the tools."""
    try:
        turn = template(name).prepare(QUESTION, tools=TOOLS, tool_format="none", enable_thinking=False)
    except UnrenderError as error:
        return pytest.skip(f"the template refuses the tools: {error}")
    if turn.format.tools.mode is ToolMode.NONE:
        pytest.skip("the template has no calls")
    return turn


def answer_of(name, content, calls):
    """Return the template's text for a message. Skips the test if the template can't write it."""
    functions = [{"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)} for tool, arguments in calls]
    tool_calls = [
        {"id": f"proof{i:04d}", "type": "function", "function": function} for i, function in enumerate(functions)
    ]
    message = {"content": content} | ({"tool_calls": tool_calls} if calls else {})
    text = written(template(name), prepared(name), message, enable_thinking=False)
    if text is None or any(text.count(tool) < sum(tool == other for other, _ in calls) for tool, _ in calls):
        pytest.skip("the template does not write all of this message after its prompt")
    return text


def given(found):
    """Return text and calls as values. Text includes reasoning, since a prompt may start reasoning."""
    reasoning, content, calls = found
    return (reasoning + content).strip(), [(name, json.loads(arguments or "{}")) for name, arguments in calls]


def skip_without_closers(name):
    """Skip a format whose arguments are lines that only the end of the answer closes."""
    tools = prepared(name).format.tools
    if tools.arguments.entry and not (tools.call_end + tools.section_end).strip():
        pytest.skip("nothing closes a call in this format")


def both(name, text, seed=0):
    """Yield SGLang's reading of an answer, whole and streamed with additional empty chunks."""
    reasons = bool(template(name).format.reasoning.end.strip())
    request = request_of(prepared(name).prompt, TOOLS)
    yield whole(name, request, text, reasons=reasons)
    for chunks in splits(text, seed):
        yield streamed(name, request, ["", *chunks, ""], reasons=reasons)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", all_template_paths())
def test_what_the_template_writes_comes_back(name, situation):
    """Names, values and their types, order and content equal the message, whole and for every chunking."""
    content, calls = SITUATIONS[situation]
    text = answer_of(name, content, calls)

    assert [found for found in map(given, both(name, text)) if found != (content, calls)] == []


@pytest.mark.parametrize("name", all_template_paths())
def test_text_after_a_call_is_not_lost(name):
    """Text after a call is content, and the call is kept."""
    skip_without_closers(name)
    text = answer_of(name, "", [PARIS]) + "\nThat is all."

    for said, calls in map(given, both(name, text)):
        assert calls == [PARIS]
        assert said.endswith("That is all.")


@pytest.mark.parametrize("name", all_template_paths())
def test_a_call_of_no_tool_is_text(name):
    """A call of an unknown tool is text, and none of it is lost."""
    text = answer_of(name, "", [PARIS]).replace("get_weather", "get_nothing")

    for said, calls in map(given, both(name, text)):
        assert calls == []
        assert "get_nothing" in said
        assert "Paris" in said


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", all_template_paths())
def test_a_call_that_is_cut_off_is_never_whole(name, part):
    """If an answer ends too early, its reading has the complete call or none."""
    skip_without_closers(name)
    text = answer_of(name, "", [PARIS])
    request = request_of(prepared(name).prompt, TOOLS)
    found = whole(
        name, request, text[: int(len(text) * part)], reasons=bool(template(name).format.reasoning.end.strip())
    )

    assert given(found)[1] in ([], [PARIS])
