"""Planted faults that the report must name, and healthy servers that it must not blame: rows of `servers.jsonl`.

A row has fields of `Server`. Those that change a text are lists of changes: a name of `CHANGES` or a method of `str`, with its arguments.
`writes` and `fails` apply to answers for which all conditions of `when` hold, `writes` only to each `every`th answer.
`late` is a server that answers every nth request with the answer to the one before. `cause` is the first cause in the report.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from probe_templates import TAGS, fenced, probed, rewritten
from probed_server import REFUSED
from serving import TEMPLATES
from tables import case_rows

from unrender import ChatTemplate
from unrender.probe.causes import FINDERS, table
from unrender.probe.tasks import Task

ROWS = case_rows(Path(__file__).with_name("servers.jsonl"))
FAULTS, HEALTHY = ([row for row in ROWS if (row["cause"] is None) == healthy] for healthy in (False, True))

OTHERS = (
    "bracket-id",
    "json-array",
    "named-tags",
    "python-calls",
    "tagged-raw",
    "channels",
    "forced-open",
    "closed-turns",
)
"""Test templates with other syntaxes."""


def tagged(calls: Sequence[str]) -> str:
    """Return calls with a tag for each argument."""
    written = []
    for call in map(json.loads, calls):
        values = {name: it if isinstance(it, str) else json.dumps(it) for name, it in call["arguments"].items()}
        inside = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
        written.append(f"<tool_call>\n<function={call['name']}>\n{inside}</function>\n</tool_call>")
    return "\n".join(written)


def without_accents(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


CHANGES: Mapping[str, Callable[..., str]] = {
    "sub": lambda text, pattern, new: re.sub(pattern, new, text, flags=re.DOTALL),
    "say": lambda _, other: other,
    "begin": lambda text, before: before + text,
    "add": lambda text, after: text + after,
    "end": lambda text, size: text[-size:],
    "as JSON": lambda text: json.dumps({"answer": text}),
    "as HTML": html.escape,
    "from HTML": html.unescape,
    "in another encoding": lambda text, *how: text.encode().decode(*how),
    "without accents": without_accents,
    "calls in fences": rewritten(fenced),
    "calls in tags": rewritten(tagged),
    "calls in a list": rewritten(lambda calls: f"[TOOL_CALLS][{', '.join(calls)}]"),
}
OF_ANSWERS: Mapping[str, Callable[[str, Task, int], str]] = {
    "the question": lambda _, task, __: f"What? {task.messages[0]['content']}",
    "its number": lambda text, _, number: f"{text} {number}",
}
WHEN: Mapping[str, Callable[[Task, int], bool]] = {
    "free": lambda task, _: task.name == "free",
    "a task": lambda task, _: task.name != "free",
    "a call": lambda task, _: bool(task.wanted),
    "no call": lambda task, _: not task.wanted,
    "several calls": lambda task, _: task.wish == "several",
    "result": lambda task, _: task.wish == "result",
    "many tools": lambda task, _: task.count > 5,
    "odd": lambda _, number: number % 2 == 1,
}


def with_objects(response: Any) -> Any:
    """Return a response whose calls have arguments as an object instead of text."""
    return json.loads(re.sub(r'(?<="arguments": )"(.*?})"', lambda text: json.loads(text[0]), json.dumps(response)))


def joined(frames: Sequence[Any], size: int) -> list[Any]:
    """Return the events of a stream in which each event has several tokens."""
    made = []
    for at in range(0, len(frames), size):
        some = frames[at : at + size]
        if "content" in some[0]:
            made.append({**some[0], "content": "".join(frame["content"] for frame in some)})
        else:
            text = "".join(frame["choices"][0]["text"] for frame in some)
            made.append({"choices": [{**some[0]["choices"][0], "text": text}]})
    return made


OF_DATA: Mapping[str, Callable[..., Any]] = {
    "first message": lambda body: {**body, "messages": body["messages"][:1]},
    "no messages of": lambda body, role: {**body, "messages": [it for it in body["messages"] if it["role"] != role]},
    "reversed tools": lambda body: {**body, "tools": body.get("tools", [])[::-1]},
    "no variables": lambda body: {**body, "chat_template_kwargs": {}},
    "none": lambda _: (),
    "the first": lambda calls: calls[:1],
    "texts as arguments": lambda calls: [
        (name, {key: str(value) for key, value in given.items()}, id) for name, given, id in calls
    ],
    "no ids": lambda calls: [(name, given, "") for name, given, _ in calls],
    "other names": lambda calls: [(f"functions.{name}", given, id) for name, given, id in calls],
    "refusal": lambda _, words: REFUSED | {"error": {"message": words}},
    "objects as arguments": with_objects,
    "doubled": lambda frames: [frame for frame in frames for _ in range(2)],
    "joined": joined,
}
"""Changes of requests, calls, responses and the events of a stream."""


def changed(text: str, changes: Sequence[Sequence[Any]]) -> str:
    """Return a text after changes."""
    for name, *values in changes:
        text = CHANGES[name](text, *values) if name in CHANGES else getattr(text, name)(*values)
    return text


def late(number: int) -> Callable[[str, Task, int], str]:
    """Return a server that answers every nth request with the answer to the one before."""
    answers = ["I can say that."]

    def writes(text: str, *_: object) -> str:
        answers.append(text)
        return answers[-1] if len(answers) % number else answers[-2]

    return writes


def server(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a server."""

    def holds(task: Task, number: int) -> bool:
        return number % row.get("every", 1) == 0 and all(WHEN[name](task, number) for name in row.get("when", ()))

    def writes(text: str, task: Task, number: int) -> str:
        if not holds(task, number):
            return text
        (name, *_), *_ = row["writes"]
        return OF_ANSWERS[name](text, task, number) if name in OF_ANSWERS else changed(text, row["writes"])

    found: dict[str, Any] = {}
    for field, value in row.items():
        match field:
            case "writes":
                found["writes"] = writes
            case "late":
                found["writes"] = late(value)
            case "fails":
                found["fails"] = lambda _, task: row["fails"] * holds(task, 0)
            case "template" | "own_template":
                source = changed(TAGS, value)
                found[field] = ChatTemplate.from_string(source, bos_token="<s>", eos_token="<|im_end|>")
            case "renders" | "reads" | "sends" | "bound":
                found[field] = lambda text, changes=value: changed(text, changes)
            case "asks" | "parses" | "responds" | "frames":
                found[field] = lambda given, how=OF_DATA[value[0]], more=tuple(value[1:]): how(given, *more)
            case _ if field not in ("cause", "when", "every"):
                found[field] = value
    return found


@pytest.mark.few(7)
@pytest.mark.parametrize("row", [pytest.param(row, id=f"{at}-{row['cause']}") for at, row in enumerate(FAULTS)])
def test_planted_faults_are_named(row: Mapping[str, Any]) -> None:
    """The first cause of the report is the planted fault, with its evidence."""
    report = probed(**server(row))

    assert [cause.name for cause in report.causes][:1] == [row["cause"]]
    assert not report.ok


@pytest.mark.few(2)
@pytest.mark.parametrize("row", HEALTHY, ids="-".join)
def test_healthy_servers_are_not_blamed(row: Mapping[str, Any]) -> None:
    """A healthy server of any kind has no causes, whatever information it lacks."""
    assert [(cause.name, cause.evidence) for cause in probed(**server(row)).causes] == []


@pytest.mark.full
@pytest.mark.parametrize("name", OTHERS)
def test_other_templates_are_not_blamed(name: str) -> None:
    """A healthy server has no causes, whatever syntax its template has."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")

    assert [(cause.name, cause.evidence) for cause in probed(template).causes] == []


def test_every_cause_is_planted() -> None:
    """Each row of the table has a function and a planted fault."""
    names = [entry["name"] for entry in table()]

    assert list(FINDERS) == names
    assert {row["cause"] for row in FAULTS} == set(names)
