"""Checks many templates, each in its own process with a time limit.

Rules: one bad file stops nothing; outcomes come in the order of the names. A single template without a time limit is examined in
this process, and what goes wrong with it is raised.
"""

from __future__ import annotations

import logging
import multiprocessing
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

from unrender.cli.inputs import BadInput, Command, decorated, expanded, jobs_option, json_option
from unrender.cli.terminal import (
    UNUSABLE,
    LogHandler,
    ending,
    print_json,
    print_line,
    print_table,
    progress,
    remark_warning,
)
from unrender.outputs import STANDARD_STREAM

T = TypeVar("T")

DEFAULT_SECONDS = 120.0
"""Time limit per template, where there are several."""


def examining_options(command: Command) -> Command:
    """Give a command the options of `examine`, and --json."""
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"Time limit per template.  [default: {DEFAULT_SECONDS:g}, for several]",
    )
    return decorated(command, timeout, jobs_option("Number of parallel jobs."), json_option)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T]):
    """The outcome for one template: a result, or a failure."""

    name: str
    result: T | None
    failure: str = ""
    """Why there is no result; empty when there is one."""
    seconds: float = 0.0


def examine(templates: Sequence[str], ask: Callable[[str], T], *, timeout: float | None, jobs: int) -> list[Outcome[T]]:
    """Return the outcome of `ask` for each template, those of directories included, and show the progress on a terminal.

    `ask` and its results must be picklable. Raises `BadInput` for standard input that would have to be read elsewhere.
    """
    names = [name for template in templates for name in expanded(template)]
    if len(names) == 1 and timeout is None:
        started = time.monotonic()
        with progress(1) as shown:
            shown.say(names[0])
            result = ask(names[0])
        return [Outcome(name=names[0], result=result, seconds=time.monotonic() - started)]
    if STANDARD_STREAM in names:
        raise BadInput("-: standard input can't be combined with other templates or --timeout; name a file instead")
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    found: dict[str, Outcome[T]] = {}
    for name in dict.fromkeys(names):
        waiting.put(name)
    with progress(waiting.qsize()) as shown:
        shown.say(names[0])

        def done(outcome: Outcome[T]) -> None:
            found[outcome.name] = outcome
            shown.advance(outcome.name)

        work = partial(_worked, waiting, ask, timeout or DEFAULT_SECONDS, done)
        # Daemons: an interrupted command ends without waiting for them, and their processes end with it.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(names)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [found[name] for name in names]


def _worked(
    waiting: queue.SimpleQueue[str], ask: Callable[[str], T], timeout: float, done: Callable[[Outcome[T]], None]
) -> None:
    """Examine names until none waits, in a process that is replaced when it has died, or was stopped."""
    worker = _Worker(ask)
    try:
        with suppress(queue.Empty):
            while True:
                outcome = worker.outcome(waiting.get_nowait(), timeout)
                done(outcome)
                if not worker.alive:
                    worker = _Worker(ask)
    finally:
        worker.stop()


def print_outcomes(
    outcomes: Sequence[Outcome[T]], counted: Sequence[str], last: str, cells: Callable[[T], Sequence[str]]
) -> None:
    """Print a line for each template: its name, what is counted, the seconds that it took, and the `last` cell."""
    rows = []
    for it in outcomes:
        missing = [*[""] * len(counted), f"not examined: {it.failure}"]
        *counts, words = missing if it.result is None else cells(it.result)
        rows.append([Path(it.name).name.removesuffix(".jinja"), *counts, f"{it.seconds:.1f}", words])
    print_table(["template", *counted, "seconds", last], rows)
    print_line()


def print_data(outcomes: Sequence[Outcome[T]], data: Callable[[T], Any]) -> None:
    """Print the outcomes as JSON, by template."""
    print_json({it.name: {"error": it.failure} if it.result is None else data(it.result) for it in outcomes})


def exit_code(outcomes: Sequence[Outcome[T]], fails: Callable[[T], bool]) -> int:
    """Return the exit code: 2 when a template was not examined, 1 when a result fails, else 0."""
    results = [it.result for it in outcomes if it.result is not None]
    return UNUSABLE if len(results) < len(outcomes) else int(any(map(fails, results)))


class _Worker(Generic[T]):
    """A process that examines one template after the other."""

    def __init__(self, ask: Callable[[str], T]) -> None:
        context = multiprocessing.get_context("spawn")  # A fork would copy locks that threads hold.
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, ask), daemon=True)
        self._process.start()
        theirs.close()  # With our copy open, a process that dies would leave us waiting: the pipe would never end.
        with suppress(EOFError):  # One that has died by now says so when it is asked.
            self._connection.recv()  # To start takes seconds on a busy machine, and is no template's time.

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def outcome(self, name: str, timeout: float) -> Outcome[T]:
        """Return what comes of a template within so many seconds; the process is stopped when nothing does."""
        started, result, failure = time.monotonic(), None, f"took longer than {timeout:g} s"
        try:
            self._connection.send(name)
            if self._connection.poll(timeout):
                result, failure = self._connection.recv()
            else:
                self.stop()
        except (EOFError, OSError):
            self._process.join()
            failure = f"its process ended with code {self._process.exitcode}"
        return Outcome(name=name, result=result, failure=failure, seconds=time.monotonic() - started)

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()


def _work(connection: Connection, ask: Callable[[str], Any]) -> None:
    """Answer names with results, or with what went wrong, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command line is interrupted, and stops us.
    warnings.showwarning = remark_warning
    logging.getLogger().addHandler(LogHandler(logging.WARNING))
    connection.send("ready")
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        try:
            connection.send((ask(name), ""))
        except Exception as error:  # noqa: BLE001 - one bad file stops nothing
            connection.send((None, ending(error)[1]))
