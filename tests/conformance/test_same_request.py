"""The same request works with every template: the prompt contains all of its text, or a note names what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from answers import template_named, template_paths
from vendor import all_vendor_templates

from unrender import RequestError

each_template = pytest.mark.parametrize("name", all_vendor_templates() or template_paths())
SYSTEM, USER, AGAIN = (
    {"role": r, "content": t} for r, t in (("system", "Rule R1"), ("user", "Ask Q1"), ("user", "Ask Q2"))
)
ANSWER, MORE, DEVELOPER = (
    {"role": r, "content": t} for r, t in (("assistant", "Say A1"), ("assistant", "Say A2"), ("developer", "Rule D1"))
)


def call(number: int, arguments: str = '{"word": "zebra"}', **more: Any) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": arguments, **more}
    return {"id": f"call_abcdefghijklmnop{number}", "type": "function", "function": function}


def called(*calls: dict[str, Any], content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(number: int) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"call_abcdefghijklmnop{number}", "content": f"Result {number}"}


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look_up", **function}}


def part(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


WORD = {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}, "required": ["word"]}
TOOLS = [tool(description="Look a word up.", parameters=WORD)]
NAMED = {"type": "function", "function": {"name": "look_up"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {}}}}
IMAGE = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
NULL = {
    "name": None,
    "refusal": None,
    "tool_calls": None,
    "reasoning_content": None,
    "function_call": None,
    "audio": None,
}
NOTHING = (
    "tools",
    "tool_choice",
    "response_format",
    "documents",
    "parallel_tool_calls",
    "reasoning_format",
    "tool_format",
)
THINKING = ("enable_thinking", "thinking", "reasoning_effort", "thinking_budget", "chat_template_kwargs")
REQUESTS: dict[str, dict[str, Any]] = {
    "a question": {},
    "low effort": {"reasoning_effort": "low"},
    "medium effort": {"reasoning_effort": "medium"},
    "no effort": {"reasoning_effort": "none"},
    "thinking off": {"enable_thinking": False},
    "thinking on": {"thinking": True},
    "Anthropic's thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "a budget": {"thinking_budget": 100},
    "all switches": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high", "thinking_budget": 2048},
    "unlike switches": {"enable_thinking": False, "reasoning_effort": "low", "thinking_budget": -1},
    "an engine's variables": {"chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "xhigh"}},
    "a variable of another template": {"keep_every_thought": True},
    "documents": {"documents": [{"title": "Title T1", "text": "Text X1"}]},
    "documents and tools": {"documents": [{"title": "Title T1", "text": "Text X1"}], "tools": TOOLS},
    "tools": {"tools": TOOLS},
    "a call is required": {"tools": TOOLS, "tool_choice": "required"},
    "a call of one tool": {"tools": TOOLS, "tool_choice": NAMED, "parallel_tool_calls": False},
    "no call is allowed": {"tools": TOOLS, "tool_choice": "none"},
    "no tools": {"tools": [], "tool_choice": "auto"},
    "bare tools": {
        "tools": [tool(), {**tool(description=None, parameters=None, strict=None), "function": {"name": "go"}}]
    },
    "JSON": {"response_format": {"type": "json_object"}},
    "JSON or a call": {"response_format": SCHEMA, "tools": TOOLS},
    "nothing by name": dict.fromkeys((*NOTHING, *THINKING)),
    "fields of nothing": {"messages": [{**USER, **NULL}, {**ANSWER, **NULL}, {**AGAIN, **NULL}]},
    "parts": {"messages": [{"role": m["role"], "content": part(m["content"])} for m in (SYSTEM, USER, ANSWER, AGAIN)]},
    "names": {"messages": [{**USER, "name": "ann"}, {**ANSWER, "name": "bot"}, {**AGAIN, "name": "bob"}]},
    "an empty question": {"messages": [SYSTEM, {"role": "user", "content": ""}]},
    "a question of nothing": {"messages": [SYSTEM, {"role": "user", "content": None}]},
    "no question": {"messages": [SYSTEM]},
    "a system": {"messages": [SYSTEM, USER]},
    "a system in the middle": {"messages": [USER, ANSWER, SYSTEM, AGAIN]},
    "a system at the end": {"messages": [USER, ANSWER, AGAIN, SYSTEM]},
    "two systems": {"messages": [SYSTEM, {**SYSTEM, "content": "Rule R2"}, USER]},
    "a developer": {"messages": [DEVELOPER, USER]},
    "a developer and a system": {"messages": [SYSTEM, DEVELOPER, USER]},
    "two questions": {"messages": [USER, AGAIN]},
    "two answers": {"messages": [USER, ANSWER, MORE, AGAIN]},
    "an answer first": {"messages": [ANSWER, USER]},
    "an answer last": {"messages": [USER, ANSWER]},
    "an image": {"messages": [{"role": "user", "content": [*part("Ask Q1"), IMAGE]}]},
    "a result": {"messages": [USER, called(call(1)), result(1)], "tools": TOOLS},
    "results without tools": {"messages": [USER, called(call(1)), result(1), AGAIN]},
    "two results": {"messages": [USER, called(call(1), call(2)), result(1), result(2), AGAIN], "tools": TOOLS},
    "a broken call": {"messages": [USER, called(call(1, '{"word": "zeb')), result(1)], "tools": TOOLS},
    "a result of no call": {"messages": [USER, ANSWER, result(1), AGAIN], "tools": TOOLS},
    "thought, said and called": {
        "messages": [USER, called(call(1), content="Say A1", reasoning_content="Think"), result(1)],
        "tools": TOOLS,
    },
    "all roles anyhow": {
        "messages": [SYSTEM, DEVELOPER, USER, AGAIN, ANSWER, SYSTEM, called(call(1)), result(1), DEVELOPER],
        "tools": TOOLS,
    },
}
REFUSED = {
    "an image": "messages[0].content[1]: the template doesn't support image parts",
    "a question of nothing": "messages[1].content: expected text or a list of parts",
}
"""Expected errors: images for templates that show none, and a malformed message for all."""
NAMED_ALONE = {"documents", "documents and tools", "thought, said and called"}
"""Requests that may lose texts if a warning names each. Few templates support documents, or reasoning and text before a call."""


def texts(content: Any) -> list[str]:
    """Return the texts of a message's content."""
    return [one["text"] for one in content if "text" in one] if isinstance(content, list) else [content or ""]


def unshown(name: str, label: str) -> str:
    """Return the error in a template's prompt for a request; "" if there is none."""
    request = {"messages": [USER], **REQUESTS[label]}
    try:
        turn = template_named(name).prepare(**request)
    except RequestError as error:
        refused = label in REFUSED and str(error).startswith(REFUSED[label])
        return "" if refused else str(error)
    except Exception as error:  # noqa: BLE001 -- which one is what the test is about
        return repr(error)
    said = {f"messages[{i}]": texts(message["content"]) for i, message in enumerate(request["messages"])}
    said |= {f"documents[{i}]": [document["text"]] for i, document in enumerate(request.get("documents") or ())}
    said |= {one["function"]["name"]: [one["function"]["name"]] for one in request.get("tools") or ()}
    lost = [place for place, parts in said.items() if not all(part in turn.prompt for part in parts)]
    noted = [place for place in lost if any(note.startswith(place.partition("[0]")[0]) for note in turn.warnings)]
    if request.get("tool_choice") == "none":
        lost = [place for place in lost if place != "look_up"]
    return "" if lost == noted and (not lost or label in NAMED_ALONE) else f"{lost} {turn.warnings}"


@pytest.mark.few(24)
@pytest.mark.filterwarnings("ignore::unrender.errors.TemplateWarning")
@each_template
def test_the_same_request_suits_every_template(name):
    """Almost fifty requests as applications send them work with every template."""
    assert {label: found for label in REQUESTS if (found := unshown(name, label))} == {}
