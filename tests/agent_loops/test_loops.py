"""Three agent packages do ten tasks each with real tools, a real but very weak model, and our grammars.

`python3 scripts/run.py agents` installs the requirements; without them the tests aren't collected. Whether the model
solves a task is printed at the end, but not asserted. The tests assert three things: no broken call runs, every loop
ends for a known reason, and the gateway accepts the history that programs send back.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from agent_loops.errands import TASKS, TOOLS, Called, Desk, Task, broken
from agent_loops.programs import PROGRAMS, TURNS, Way
from agent_loops.wire import Wire, complaints
from tables import table

REASONS = ("answer", "length", "turns")
Keep = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, example: Path) -> Iterator[str]:
    """Run a gateway as an operator of agents would, and return its address.

    Calls are sent only when they are complete. A program that streams might otherwise run a call that a limit cut off.
    """
    settings = tmp_path_factory.mktemp("gateway") / "gateway.toml"
    engine = f'backend = "gguf"\npath = {str(example)!r}\nthreads = 1'
    settings.write_text(f'port = 0\n[[models]]\nname = "m"\ncalls = "complete"\n{engine}\n', encoding="utf-8")
    command = [sys.executable, "-m", "unrender", "serve", "--config", str(settings)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as gateway:
        assert gateway.stderr
        told = ""
        while not (listens := re.search(r"listening at (\S+)/v1", told)):
            line = gateway.stderr.readline()
            assert line, f"the gateway ended: {told}"
            told += line
        yield listens[1]
        gateway.terminate()


@pytest.fixture
def do(address: str, tmp_path: Path, keep: Keep) -> Callable[[Task, str, Way], tuple[str, list[str]]]:
    """Return a function that has a program do a task. It returns the reason why the loop ended, and any complaints."""

    def done(task: Task, program: str, way: Way) -> tuple[str, list[str]]:
        for name, text in task.files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        desk, wire, start = Desk(task, tmp_path), Wire(address), time.monotonic()
        end = asyncio.run(PROGRAMS[program](desk, wire, way))
        wrong = complaints(wire, desk.calls, turns=TURNS, stream=way.stream)
        loop = {
            "program": program,
            "task": task.name,
            **asdict(way),
            "end": end.reason,
            "said": end.said,
            "solved": task.done(tmp_path, desk.calls, end.said),
            "wrong": wrong,
            "seconds": round(time.monotonic() - start, 1),
            "calls": [asdict(call) for call in desk.calls],
            "exchanges": wire.exchanges,
        }
        keep(loop)
        return end.reason, wrong

    return done


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_loop_ends_and_runs_no_broken_call(do: Any, task: Task, program: str, stream: bool) -> None:
    """Each call that reaches a tool is valid, each history is accepted, ids match, and each loop ends as expected."""
    reason, wrong = do(task, program, Way(stream))

    assert wrong == []
    assert reason in REASONS
    # If every turn must call a tool, only the limit of turns or of tokens ends the loop.
    assert not (task.always and reason == "answer")


CUT = next(task for task in TASKS if task.name == "write")
CUTS = (9, 18, 27)
"""Token limits. The task's call has more than 30 tokens, so each limit cuts it at a different place."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("tokens", CUTS)
def test_call_that_is_cut_off_is_not_run(do: Any, tokens: int, program: str, stream: bool) -> None:
    """A call that a limit cuts off reaches no tool, not even with its complete arguments."""
    assert do(CUT, program, Way(stream, tokens)) == ("length", [])


T: Any = table("test_loops")
BROKEN = T["BROKEN"]


@pytest.mark.parametrize(("name", "arguments", "why"), BROKEN.values(), ids=BROKEN)
def test_judge_names_what_is_broken(name: str, arguments: str, why: str) -> None:
    """The judge detects each kind of broken call."""
    assert why in broken(list(TOOLS.values()), name, arguments)


def _exchange(*messages: dict[str, Any], status: int = 200, answer: str = '{"id": "a"}') -> dict[str, Any]:
    return {"request": {"max_completion_tokens": 1, "messages": messages}, "status": status, "answer": answer}


def _said(*ids: str) -> dict[str, Any]:
    calls = [{"id": id, "function": {"name": "clock", "arguments": '{"hours": 2}'}} for id in ids]
    return {"role": "assistant", "tool_calls": calls}


RAN = Called("clock", '{"hours":2}')
WRONG: dict[str, tuple[dict[str, Any], list[Called], str]] = {
    "no result": (_exchange(_said("a")), [RAN], "but results of"),
    "result of another": (_exchange(_said("a"), {"role": "tool", "tool_call_id": "b"}), [RAN], "but results of"),
    "invented id": (_exchange(_said("x"), {"role": "tool", "tool_call_id": "x"}), [RAN], "no answer gave"),
    "not run": (_exchange(_said("a"), {"role": "tool", "tool_call_id": "a"}), [], "no tool was given"),
    "twice": (_exchange(_said("a", "a"), *[{"role": "tool", "tool_call_id": "a"}] * 2), [RAN, RAN], "one id twice"),
    "refused": (_exchange(status=400), [], "status 400"),
    "streamed": (_exchange(answer="data: {}"), [], "streamed"),
    "broken": (_exchange(), [Called("clock", "{}", "a reason")], "broken call"),
}


@pytest.mark.parametrize(("exchange", "called", "why"), WRONG.values(), ids=WRONG)
def test_judge_names_what_is_wrong(exchange: dict[str, Any], called: list[Called], why: str) -> None:
    """The judge of histories reports each kind of wrong history, with a single complaint."""
    assert [why in one for one in complaints(Wire("", [exchange]), called, turns=4, stream=False)] == [True]
