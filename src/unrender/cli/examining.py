"""Checks many templates, each in a separate process with a time limit.

Rules: the other templates are checked even if one file is invalid. Results are in the order of the names. A single template without a time
limit is checked in the current process, and errors are raised.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

from unrender.cli.inputs import STANDARD_STREAM, BadInput, Command, decorated, expanded, json_option
from unrender.cli.terminal import (
    UNUSABLE,
    LogHandler,
    exit_of,
    print_json,
    print_line,
    print_table,
    progress,
    remark_warning,
)

T = TypeVar("T")

DEFAULT_SECONDS = 120.0
"""Time limit for each template if several are checked."""


def examining_options(command: Command) -> Command:
    """Add the options of `examine` and --json to a command."""
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"Time limit per template.  [default: {DEFAULT_SECONDS:g}, for several]",
    )
    jobs = click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=os.cpu_count() or 1,
        show_default="processors",
        help="Number of parallel jobs.",
    )
    return decorated(command, timeout, jobs, json_option)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined(Generic[T]):
    """The outcome for one template, either a result or a failure."""

    name: str
    result: T | None
    failure: str = ""
    """The reason why there is no result. Empty if there is a result."""
    seconds: float = 0.0


def examine(
    templates: Sequence[str], ask: Callable[[str], T], *, timeout: float | None, jobs: int
) -> list[Examined[T]]:
    """Call `ask` for each template, including those in directories, and return the outcomes. A progress bar is shown on a terminal.

    `ask` and its results must be picklable. Raises `BadInput` if another process would have to read standard input.
    """
    names = [name for template in templates for name in expanded(template)]
    if len(names) == 1 and timeout is None:
        started = time.monotonic()
        result = ask(names[0])
        return [Examined(name=names[0], result=result, seconds=time.monotonic() - started)]
    if STANDARD_STREAM in names:
        raise BadInput("-: standard input can't be combined with other templates or --timeout; name a file instead")
    idle: queue.SimpleQueue[_Worker[T]] = queue.SimpleQueue()
    for _ in range(min(jobs, len(names))):
        idle.put(_Worker(ask))

    def outcome(name: str) -> Examined[T]:
        worker = idle.get()
        try:
            return worker.outcome(name, timeout or DEFAULT_SECONDS)
        finally:
            idle.put(worker if worker.alive else _Worker(ask))

    once = list(dict.fromkeys(names))
    found: dict[str, Examined[T]] = {}
    with ThreadPoolExecutor(jobs) as pool, progress("Checking") as told:
        for it in pool.map(outcome, once):
            found[it.name] = it
            told(len(found), len(once))
    return [found[name] for name in names]


def print_outcomes(
    outcomes: Sequence[Examined[T]], counted: Sequence[str], last: str, cells: Callable[[T], Sequence[str]]
) -> None:
    """Print a row for each template, with its name, the counts, the duration, and the `last` cell."""
    rows = []
    for it in outcomes:
        missing = [*[""] * len(counted), f"not examined: {it.failure}"]
        *counts, words = missing if it.result is None else cells(it.result)
        rows.append([Path(it.name).name.removesuffix(".jinja"), *counts, f"{it.seconds:.1f}", words])
    print_table(["template", *counted, "seconds", last], rows)
    print_line()


def print_data(outcomes: Sequence[Examined[T]], data: Callable[[T], Any]) -> None:
    """Print the outcomes as a JSON object with the templates as keys."""
    print_json({it.name: {"error": it.failure} if it.result is None else data(it.result) for it in outcomes})


def exit_code(outcomes: Sequence[Examined[T]], fails: Callable[[T], bool]) -> int:
    """Return the exit code: 2 if a template couldn't be checked, 1 if a check failed, and 0 otherwise."""
    results = [it.result for it in outcomes if it.result is not None]
    return UNUSABLE if len(results) < len(outcomes) else int(any(map(fails, results)))


class _Worker(Generic[T]):
    """A process that checks one template after another."""

    def __init__(self, ask: Callable[[str], T]) -> None:
        # Don't fork, because a forked process would inherit locks held by other threads.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, ask), daemon=True)
        self._process.start()
        # Close our copy of the worker's end of the pipe. Otherwise, reading from the pipe would block forever after the worker dies.
        theirs.close()
        self._started = False

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def outcome(self, name: str, timeout: float) -> Examined[T]:
        """Return the outcome for a template. If the check takes more than `timeout` seconds, the process is stopped."""
        if not self._started:  # Starting the process may take seconds, which shouldn't count towards the time limit.
            with suppress(EOFError):  # Ignore a process that has already died, because this is reported below.
                self._started = self._connection.recv()
        started, result, failure = time.monotonic(), None, f"took longer than {timeout:g} s"
        try:
            self._connection.send(name)
            if self._connection.poll(timeout):
                result, failure = self._connection.recv()
            else:
                self._process.kill()
                self._process.join()
        except (EOFError, OSError):
            self._process.join()
            failure = f"its process ended with code {self._process.exitcode}"
        return Examined(name=name, result=result, failure=failure, seconds=time.monotonic() - started)


def _work(connection: Connection, ask: Callable[[str], Any]) -> None:
    """Check each template whose name is received, and send back its result or error, until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Exit without a traceback. The main process reports the interrupt.
    warnings.showwarning = remark_warning
    logging.getLogger().addHandler(LogHandler(logging.WARNING))
    connection.send(True)
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        try:
            connection.send((ask(name), ""))
        except Exception as error:  # noqa: BLE001 - a bad file must not stop the others
            connection.send((None, exit_of(error)[1]))
