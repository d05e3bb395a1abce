"""The value of a grammar for a very small model: tasks with known answers, with and without a grammar.

python benchmarks/grammar_worth.py [FILE.gguf] [--tasks 200] [--json FILE]

Strategy: the tasks are drawn from tables, the same in each run, in seven categories of common function-calling
leaderboards. The gateway requests the same answers from the same model (by default the example model), once with
grammars and once without (`--constrain never`), and with the same prompts. llama.cpp's own chat endpoint gets the same
requests, and renders its own prompts. An answer is valid if all its calls are complete calls of available tools with
valid arguments, and if it has a required call. Then its functions and arguments are compared with the known ones,
ignoring the order of calls and the case of text. Tokens are averages per answer.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reporting import arguments, progress
from result_tables import finish
from served import Said, Server, ask, gateway, llama_cpp

from unrender.gateway.config import example_model
from unrender.grammar import conforms

CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Berlin", "Madrid", "Dublin", "Vienna")
PEOPLE = ("Ada", "Tom", "Mia", "Leo", "Zoe", "Max", "Eva", "Sam", "Ida", "Ben")
UNITS, ROOMS, COLOURS = ("celsius", "fahrenheit"), ("kitchen", "bedroom", "garage"), ("red", "green", "blue", "white")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
TITLES = ("review", "lunch", "call", "workshop")
CHORES = (
    "Write a short poem about rain.",
    "Say hello in French.",
    "Why is the sky blue?",
    "Name three fruits.",
    "Tell me a joke.",
)
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
MODES: Mapping[str, Callable[[ExitStack, Path], Server]] = {
    "with a grammar": gateway,
    "without": lambda stack, path: gateway(stack, path, "--constrain", "never"),
    "llama.cpp's own": llama_cpp,
}
"""Servers that are compared."""
ATTEMPT = {"temperature": 0, "seed": 1, "max_tokens": 120}
"""Request parameters. With a seed, the gateway generates no answer twice."""

Call = tuple[str, Mapping[str, Any]]


def closed(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of an object with only these properties."""
    required = [one for one in properties if one not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def tool(name: str, what: str, properties: Mapping[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return a tool with only these properties."""
    return {
        "type": "function",
        "function": {"name": name, "description": what, "parameters": closed(properties, optional)},
    }


WEATHER = tool("get_weather", "Tell the weather in a city.", {"city": TEXT, "unit": {"enum": UNITS}})
LIGHT = tool("set_light", "Set the light of a room.", {"room": {"enum": ROOMS}, "colour": {"enum": COLOURS}})
ADD = tool("add", "Add two numbers.", {"a": WHOLE, "b": WHOLE})
MAIL = tool("send_mail", "Send a mail to a person.", {"to": TEXT})
WHEN = closed({"day": {"enum": DAYS}, "hour": WHOLE})
EVENT = tool("plan_event", "Plan an event.", {"title": TEXT, "when": WHEN})
SEATS = {"name": TEXT, "people": WHOLE, "outside": {"type": "boolean"}, "note": TEXT}
TABLE = tool("book_table", "Book a table in a restaurant.", SEATS, optional=("outside", "note"))


@dataclass(frozen=True, slots=True)
class Task:
    """A question, the available tools, and the calls that answer it; none if no tool fits."""

    question: str
    tools: Sequence[Mapping[str, Any]]
    answer: Sequence[Call] = ()


def _simple(draw: random.Random) -> Task:
    city, unit = draw.choice(CITIES), draw.choice(UNITS)
    return Task(f"What is the weather in {city} in {unit}?", [WEATHER], [("get_weather", {"city": city, "unit": unit})])


def _multiple(draw: random.Random) -> Task:
    offered = [WEATHER, LIGHT, ADD, MAIL]
    draw.shuffle(offered)
    a, b, person = draw.randint(2, 99), draw.randint(2, 99), draw.choice(PEOPLE)
    add = Task(f"What is {a} plus {b}?", offered, [("add", {"a": a, "b": b})])
    return draw.choice([add, Task(f"Send a mail to {person}.", offered, [("send_mail", {"to": person})])])


def _parallel(draw: random.Random) -> Task:
    both = draw.sample(PEOPLE, 2)
    question = "Send a mail to {} and a mail to {}.".format(*both)
    return Task(question, [MAIL], [("send_mail", {"to": person}) for person in both])


def _irrelevant(draw: random.Random) -> Task:
    return Task(draw.choice(CHORES), [draw.choice([WEATHER, LIGHT, ADD, MAIL])])


def _nested(draw: random.Random) -> Task:
    title, day, hour = draw.choice(TITLES), draw.choice(DAYS), draw.randint(8, 18)
    arguments = {"title": title, "when": {"day": day, "hour": hour}}
    return Task(f"Plan a {title} on {day} at {hour} o'clock.", [EVENT], [("plan_event", arguments)])


def _enums(draw: random.Random) -> Task:
    room, colour = draw.choice(ROOMS), draw.choice(COLOURS)
    return Task(f"Make the light in the {room} {colour}.", [LIGHT], [("set_light", {"room": room, "colour": colour})])


def _missing(draw: random.Random) -> Task:
    name, people = draw.choice(PEOPLE), draw.randint(2, 9)
    question = f"Book a table for {people} people. My name is {name}."
    return Task(question, [TABLE], [("book_table", {"name": name, "people": people})])


CATEGORIES: Mapping[str, Callable[[random.Random], Task]] = {
    "simple": _simple,
    "multiple": _multiple,
    "parallel": _parallel,
    "irrelevant": _irrelevant,
    "nested arguments": _nested,
    "enums": _enums,
    "missing parameters": _missing,
}


@dataclass(slots=True)
class Tally:
    """Results of tasks in one mode."""

    tasks: int = 0
    valid: int = 0
    function: int = 0
    arguments: int = 0
    tokens: int = 0

    def judge(self, task: Task, written: Sequence[tuple[str, str]]) -> None:
        """Count an answer; `written` are its calls, with names and arguments as text."""
        calls = list(_called(written, task))
        valid = None not in calls and bool(calls or not task.answer)
        known, found = sorted(map(_plain, task.answer)), sorted(_plain(call) for call in calls if call)
        functions = valid and [name for name, _ in found] == [name for name, _ in known]
        self.tasks += 1
        self.valid += valid
        self.function += functions
        self.arguments += functions and found == known

    def shares(self) -> dict[str, int]:
        """Return valid answers, right functions and right arguments in percent, and the tokens of an answer."""
        shares = {name: round(100 * getattr(self, name) / self.tasks) for name in ("valid", "function", "arguments")}
        return {**shares, "tokens": round(self.tokens / self.tasks)}


def main() -> None:
    """Print a table."""
    given = arguments(__doc__, "file", "--json", tasks=200)
    draw, names = random.Random(25), list(CATEGORIES)
    tasks = {name: [CATEGORIES[name](draw) for _ in range(i, given.tasks, len(names))] for i, name in enumerate(names)}
    found = {name: {mode: Tally() for mode in MODES} for name in (*tasks, "all")}
    with ExitStack() as stack:
        path = given.file or example_model()
        servers = {mode: start(stack, path) for mode, start in MODES.items()}
        for server in servers.values():
            ask(server, {**ATTEMPT, "messages": [{"role": "user", "content": "Hello"}]})  # The first answer warms up.
        for name, listed in tasks.items():
            # The modes take turns, so that other load on the machine affects all of them equally.
            for task in listed:
                for mode, server in servers.items():
                    said = _ask(server, task, parallel=name == "parallel")
                    for tally in (found[name][mode], found["all"][mode]):
                        tally.tokens += said.tokens
                        tally.judge(task, said.calls)
            progress(f"{name}: { ({mode: tally.shares() for mode, tally in found[name].items()}) }")
    rows = [
        {"category": name, "mode": mode, **tally.shares()} for name, of in found.items() for mode, tally in of.items()
    ]
    finish(given, "grammar_worth", {"rows": rows}, "worth")


def _ask(server: Server, task: Task, *, parallel: bool) -> Said:
    choice = "required" if task.answer else "auto"
    messages = [{"role": "user", "content": task.question}]
    more = {"messages": messages, "tools": task.tools, "tool_choice": choice, "parallel_tool_calls": parallel}
    return ask(server, {**ATTEMPT, **more})


def _called(calls: Sequence[tuple[str, str]], task: Task) -> Iterator[Call | None]:
    """Yield calls, with None for one that is cut off or whose tool is unknown."""
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in task.tools}
    for name, text in calls:
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        yield (name, arguments) if name in schemas and conforms(arguments, schemas[name]) else None


def _plain(call: Call) -> tuple[str, str]:
    """Return the parts of a call that are compared."""
    return call[0], json.dumps(call[1], sort_keys=True).casefold()


if __name__ == "__main__":
    main()
