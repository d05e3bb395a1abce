"""Ten small tasks, and the real tools that they are done with: a calculator, files in a folder, a clock, reminders.

Rules: a tool runs what the judge admits, and nothing else. The judge is jsonschema on the tool's own schema; unrender has no say in
it. What was judged and what came of it is written down, broken calls as well.
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

Folder = Path
Arguments = Mapping[str, Any]


class ToolFailed(Exception):
    """What a tool could not do; its sentence is the result, marked as an error where the API can."""


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
        """The schema that programs hand on, and that the judge goes by."""
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
NUMBER = {"type": "integer", "minimum": -9999, "maximum": 9999}
FILE = {"type": "string", "pattern": "^[a-z]{1,12}\\.txt$"}
KNOWN = ("one.txt", "story.txt", "notes.txt")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
WHEN = {
    "type": "object",
    "properties": {"day": {"enum": list(DAYS)}, "hour": {"type": "integer", "minimum": 0, "maximum": 23}},
    "required": ["day", "hour"],
    "additionalProperties": False,
}
TAGS = {"type": "array", "items": {"enum": ["work", "home", "health"]}, "maxItems": 2, "uniqueItems": True}


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


TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "calculate",
            "Calculate with two numbers.",
            {"operation": {"enum": list(SIGNS)}, "a": NUMBER, "b": NUMBER},
            _calculate,
        ),
        Tool("list_files", "List the files in the folder.", {}, lambda folder, _: "\n".join(names(folder))),
        Tool("read_file", "Read a file of the folder.", {"name": {"enum": list(KNOWN)}}, _read),
        Tool(
            "write_file",
            "Write a text into a file of the folder.",
            {"name": FILE, "text": {"type": "string", "maxLength": 60}},
            _write,
        ),
        Tool(
            "clock",
            "Tell the time, so many hours before or after UTC.",
            {"hours": {"type": "integer", "minimum": -12, "maximum": 14}},
            lambda _, given: f"{datetime.now(UTC) + timedelta(hours=given['hours']):%H:%M}",
        ),
        Tool(
            "remind",
            "Remind the user of something.",
            {"what": {"type": "string", "maxLength": 40}, "when": WHEN, "tags": TAGS},
            _remind,
            optional=("tags",),
        ),
    )
}


def names(folder: Folder) -> list[str]:
    """Return the names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


@dataclass(frozen=True, slots=True)
class Called:
    """A call that reached a tool: what it was given, what is wrong with that, and what came of it."""

    name: str
    arguments: str
    broken: str = ""
    result: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, what may be used, and how to see whether it is done."""

    name: str
    question: str
    tools: Sequence[str]
    done: Callable[[Folder, Sequence[Called], str], bool]
    choice: str = "required"
    """Of the first turn: `auto`, `required`, or a tool's name; later ones are free."""
    always: bool = False
    """The choice is that of every turn: only the bound on turns ends the loop."""
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


STORY = "".join(f"Day {day}: the ship sailed on, and nobody saw land. " for day in range(1, 61)) + "Day 61: land!"
TASKS: Sequence[Task] = (
    Task(name="sum", question="What is 17 plus 25?", tools=["calculate"], done=_result("42")),
    Task(name="zero", question="What is 7 divided by 0?", tools=["calculate"], done=_result("division by zero")),
    Task(
        name="clock",
        question="What time is it two hours after UTC?",
        tools=["clock", "calculate"],
        done=_called("clock", hours=2),
        reasoning=None,
    ),
    Task(
        name="empty",
        question="Which files are there?",
        tools=["list_files", "read_file"],
        choice="list_files",
        done=_result(""),
    ),
    Task(
        name="long",
        question="Read story.txt. On which day did they see land?",
        tools=["read_file"],
        choice="read_file",
        files={"story.txt": STORY},
        done=lambda _, __, said: "61" in said,
    ),
    Task(
        name="write",
        question="Write the text milk into the file shop.txt.",
        tools=list(TOOLS),
        choice="write_file",
        done=lambda folder, *_: "shop.txt" in names(folder) and "milk" in _read(folder, {"name": "shop.txt"}).lower(),
    ),
    Task(
        name="copy",
        question="Copy the file one.txt to two.txt.",
        tools=["read_file", "write_file"],
        always=True,
        files={"one.txt": 'A secret: ünïcödé, "quotes" and a\nline.'},
        done=lambda folder, *_: "two.txt" in names(folder) and "secret" in _read(folder, {"name": "two.txt"}),
    ),
    Task(
        name="parallel",
        question="What is 2 plus 3, and what is 4 times 5? Call calculate twice at once.",
        tools=["calculate", "clock"],
        parallel=True,
        done=lambda _, calls, __: {"5", "20"} <= {one.result for one in calls},
    ),
    Task(
        name="remind",
        question="Remind me of the dentist on Tuesday at 9, and tag it health.",
        tools=["remind", "clock"],
        done=_called("remind", when={"day": "Tuesday", "hour": 9}, tags=["health"]),
        reasoning=None,
    ),
    Task(
        name="greeting",
        question="Say hello in French.",
        tools=["calculate", "list_files"],
        choice="auto",
        done=lambda _, calls, said: not calls and "bonjour" in said.lower(),
        system="You speak French.\n\nTools are for numbers and files only.",
    ),
)


@dataclass(slots=True)
class Desk:
    """Where one task is done: a folder of its own, and the calls that came."""

    task: Task
    folder: Folder
    calls: list[Called] = field(default_factory=list)

    def tools(self) -> list[Tool]:
        """Return the tools that the task offers."""
        return [TOOLS[name] for name in self.task.tools]

    def run(self, name: str, arguments: str) -> str:
        """Judge a call, and run it only when nothing is wrong. Raises `ToolFailed` with the result that says what failed."""
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
    """Return what is wrong with a call by the schema of its tool; nothing for one that may run."""
    tool = next((one for one in offered if one.name == name), None)
    if tool is None:
        return f"no tool {name!r}"
    try:
        given = json.loads(arguments)
    except ValueError as error:
        return f"no JSON: {error}"
    return "; ".join(error.message for error in Draft202012Validator(tool.schema).iter_errors(given))
