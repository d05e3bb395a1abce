"""Small tasks for a model, each with the calls that answer it: by number of tools, with one call and several, after a result, and without calls.

The tasks and tools are in `tasks.json`. A call's argument has a list of accepted values, and text is compared without its case. Further
tools, which no task needs, fill a request up to its number of tools. Requests with as many tools begin alike, so that an engine reads the
tools once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from unrender.messages import ToolCall

COUNTS = (1, 5, 20, 60)
"""Numbers of tools that are offered."""
Wish = Literal["one", "several", "result", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A conversation, the offered tools, and the calls that answer it."""

    name: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    wanted: Sequence[Mapping[str, Any]] = ()
    variables: Mapping[str, Any]

    @property
    def count(self) -> int:
        """Number of tools."""
        return len(self.tools)

    @property
    def wish(self) -> Wish:
        """Kind of answer that the task needs: "one" call, "several" calls, text after a "result", or "none"."""
        if len(self.messages) > 1:
            return "result"
        return ("none", "one")[len(self.wanted)] if len(self.wanted) < 2 else "several"

    def right(self, calls: Sequence[ToolCall]) -> bool:
        """Return whether these are the wanted calls, in any order."""
        left = list(calls)
        for wanted in self.wanted:
            found = next((call for call in left if _fits(call, wanted)), None)
            if found is None:
                return False
            left.remove(found)
        return not left


def _fits(call: ToolCall, wanted: Mapping[str, Any]) -> bool:
    given, accepted = call.arguments, wanted["arguments"]
    if call.name != wanted["name"] or given is None or not accepted.keys() <= given.keys():
        return False
    return all(_folded(given[name]) in map(_folded, values) for name, values in accepted.items())


def _folded(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False).casefold()


def tasks_with(count: int, variables: Mapping[str, Any] | None = None) -> Iterator[Task]:
    """Yield the tasks with `count` tools. With one tool, only the tasks that need no other tool."""
    data = _data()
    for entry in data["tasks"]:
        if count > 1 or entry.get("few"):
            yield Task(
                name=entry["name"],
                messages=_messages(entry),
                tools=_tools()[:count],
                wanted=entry["calls"],
                variables=variables or {},
            )


def _messages(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = [{"role": "user", "content": entry["ask"]}]
    if (called := entry.get("called")) is None:
        return asked
    function = {"name": called["name"], "arguments": json.dumps(called["arguments"])}
    call = {"id": "call000001", "type": "function", "function": function}
    return [
        *asked,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": entry["result"]},
    ]


@cache
def _tools() -> tuple[Mapping[str, Any], ...]:
    data = _data()
    more = [
        {
            "name": f"{verb}_{noun}",
            "description": f"{verb.capitalize()} a {noun}.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        }
        for noun in data["nouns"]
        for verb in data["verbs"]
    ]
    return tuple({"type": "function", "function": function} for function in (*data["tools"], *more))


@cache
def _data() -> Any:
    return json.loads(files(__package__).joinpath("tasks.json").read_text(encoding="utf-8"))
