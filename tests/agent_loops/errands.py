"""Ten small tasks and the real tools for them: a calculator, files in a folder, a clock, reminders.

Rules: a tool runs only if the judge accepts the call. The judge is jsonschema on the tool's own schema, independent of
unrender. Every call is recorded with the verdict and its result, including broken calls.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from tables import named_rows

Folder = Path
Arguments = Mapping[str, Any]


class ToolFailed(Exception):
    """Raised when a tool fails. The message is the result, marked as an error where the API supports that."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with the schema of its arguments."""

    name: str
    what: str
    properties: Mapping[str, Any]
    do: Callable[[Folder, Arguments], str]
    optional: Sequence[str] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The schema that programs send and that the judge applies."""
        required = [name for name in self.properties if name not in self.optional]
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": required,
            "additionalProperties": False,
        }


SIGNS: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}


def _calculate(_: Folder, given: Arguments) -> str:
    try:
        return f"{SIGNS[given['operation']](given['a'], given['b']):g}"
    except ZeroDivisionError as error:
        raise ToolFailed("division by zero") from error


def _read(folder: Folder, given: Arguments) -> str:
    try:
        return folder.joinpath(given["name"]).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ToolFailed(f"no file {given['name']!r}") from error


def _write(folder: Folder, given: Arguments) -> str:
    (folder / given["name"]).write_text(given["text"], encoding="utf-8")
    return ""


def _remind(folder: Folder, given: Arguments) -> str:
    with (folder / "reminders.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(given) + "\n")
    return json.dumps({"kept": True, "tags": given.get("tags", [])})


_ROWS = Path(__file__).with_name("tasks.jsonl")
_DO: Mapping[str, Callable[[Folder, Arguments], str]] = {
    "calculate": _calculate,
    "list_files": lambda folder, _: "\n".join(names(folder)),
    "read_file": _read,
    "write_file": _write,
    "clock": lambda _, given: f"{datetime.now(UTC) + timedelta(hours=given['hours']):%H:%M}",
    "remind": _remind,
}
TOOLS: Mapping[str, Tool] = {
    name: Tool(name=name, do=_DO[name], **row) for name, row in named_rows(_ROWS, "tool").items()
}


def names(folder: Folder) -> list[str]:
    """Return the names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


@dataclass(frozen=True, slots=True)
class Called:
    """A call that reached a tool: its arguments, the judge's complaint, and its result."""

    name: str
    arguments: str
    broken: str = ""
    result: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, the tools for it, and a check that the task is done."""

    name: str
    question: str
    tools: Sequence[str]
    done: Callable[[Folder, Sequence[Called], str], bool]
    choice: str = "required"
    """The tool choice of the first turn: `auto`, `required`, or a tool's name. Later turns are free."""
    always: bool = False
    """If true, the choice applies to every turn, and only the limit of turns ends the loop."""
    parallel: bool = False
    reasoning: str | None = "none"
    system: str = "You are a helpful assistant. Use the tools, and answer briefly."
    files: Mapping[str, str] = field(default_factory=dict)


def _result(*wanted: str) -> Callable[[Folder, Sequence[Called], str], bool]:
    return lambda _, calls, __: [one.result for one in calls] == list(wanted)


def _called(name: str, **wanted: Any) -> Callable[[Folder, Sequence[Called], str], bool]:
    def done(_: Folder, calls: Sequence[Called], __: str) -> bool:
        return any(one.name == name and wanted.items() <= json.loads(one.arguments).items() for one in calls)

    return done


_DONE: Mapping[str, Callable[[Folder, Sequence[Called], str], bool]] = {
    "sum": _result("42"),
    "zero": _result("division by zero"),
    "clock": _called("clock", hours=2),
    "empty": _result(""),
    "long": lambda _, __, said: "61" in said,
    "write": lambda folder, *_: "shop.txt" in names(folder) and "milk" in _read(folder, {"name": "shop.txt"}).lower(),
    "copy": lambda folder, *_: "two.txt" in names(folder) and "secret" in _read(folder, {"name": "two.txt"}),
    "parallel": lambda _, calls, __: {"5", "20"} <= {one.result for one in calls},
    "remind": _called("remind", when={"day": "Tuesday", "hour": 9}, tags=["health"]),
    "greeting": lambda _, calls, said: not calls and "bonjour" in said.lower(),
}
TASKS: Sequence[Task] = [Task(name=name, done=_DONE[name], **row) for name, row in named_rows(_ROWS, "task").items()]


@dataclass(slots=True)
class Desk:
    """The workplace of one task: its own folder and the calls it received."""

    task: Task
    folder: Folder
    calls: list[Called] = field(default_factory=list)

    def tools(self) -> list[Tool]:
        """Return the task's tools."""
        return [TOOLS[name] for name in self.task.tools]

    def run(self, name: str, arguments: str) -> str:
        """Judge a call, and run it only if it is valid. Raises `ToolFailed` with the error as the result."""
        wrong = broken(self.tools(), name, arguments)
        if wrong:
            self.calls.append(Called(name, arguments, wrong))
            raise ToolFailed(f"broken call: {wrong}")
        try:
            result = TOOLS[name].do(self.folder, json.loads(arguments))
        except ToolFailed as error:
            self.calls.append(Called(name, arguments, result=str(error), failed=True))
            raise
        self.calls.append(Called(name, arguments, result=result))
        return result


def broken(offered: Sequence[Tool], name: str, arguments: str) -> str:
    """Return the violations of the tool's schema, or an empty string if the call may run."""
    tool = next((one for one in offered if one.name == name), None)
    if tool is None:
        return f"no tool {name!r}"
    try:
        given = json.loads(arguments)
    except ValueError as error:
        return f"no JSON: {error}"
    return "; ".join(error.message for error in Draft202012Validator(tool.schema).iter_errors(given))
