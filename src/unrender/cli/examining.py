"""Examines many templates: each in a process of its own, which is stopped when it takes too long.

Rules: one bad file stops nothing; outcomes come in the order of the names. A single template without a time limit is examined in
this process, and what goes wrong with it is raised.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

import click

from unrender.cli.endings import ending
from unrender.cli.inputs import BadInput
from unrender.cli.terminal import LogHandler, Progress, progress, remark_warning
from unrender.files import STANDARD

T = TypeVar("T")

DEFAULT_SECONDS = 120.0
"""What each of several templates may take."""

timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help=f"Give a template up after so long.  [default: {DEFAULT_SECONDS:g}, for several]",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="processors",
    help="How many at a time.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[T]):
    """The outcome for one template: a result, or a failure."""

    name: str
    result: T | None
    failure: str = ""
    """Why there is no result; empty when there is one."""
    seconds: float = 0.0


def examine(names: Sequence[str], ask: Callable[[str], T], *, timeout: float | None, jobs: int) -> list[Outcome[T]]:
    """Return the outcome of `ask` for each name, and show the progress on a terminal.

    `ask` and its results must be picklable. Raises `BadInput` for standard input that would have to be read elsewhere.
    """
    if len(names) == 1 and timeout is None:
        started = time.monotonic()
        with progress(1) as shown:
            shown.say(names[0])
            result = ask(names[0])
        return [Outcome(name=names[0], result=result, seconds=time.monotonic() - started)]
    if STANDARD in names:
        raise BadInput("-: standard input is examined alone, and without --timeout; name a file instead")
    with progress(len(names)) as shown:
        crew = _Crew(ask, timeout=timeout or DEFAULT_SECONDS, jobs=min(jobs, len(names)))
        try:
            found = {outcome.name: outcome for outcome in crew.outcomes(names, shown)}
        finally:
            crew.dismiss()
    return [found[name] for name in names]


class _Crew:
    """Processes that examine one template after the other."""

    def __init__(self, ask: Callable[[str], Any], *, timeout: float, jobs: int) -> None:
        self._ask, self._timeout = ask, timeout
        self._workers = [_Worker(ask) for _ in range(jobs)]

    def outcomes(self, names: Sequence[str], shown: Progress) -> Iterator[Outcome[Any]]:
        """Yield outcomes as they come."""
        waiting = deque(dict.fromkeys(names))
        while waiting or any(worker.busy for worker in self._workers):
            for worker in self._workers:
                if waiting and not worker.busy:
                    worker.take(waiting.popleft(), self._timeout)
            for at, outcome in list(self._ready()):
                if outcome.failure and not self._workers[at].alive:
                    self._workers[at] = _Worker(self._ask)
                shown.advance(outcome.name)
                yield outcome

    def dismiss(self) -> None:
        """Stop all processes."""
        for worker in self._workers:
            worker.stop()

    def _ready(self) -> Iterator[tuple[int, Outcome[Any]]]:
        """Wait until something is done, or has taken too long; yield which worker's, and what it is."""
        busy = {worker.connection: at for at, worker in enumerate(self._workers) if worker.busy}
        first = min(self._workers[at].until for at in busy.values())
        for connection in wait(list(busy), timeout=max(first - time.monotonic(), 0)):
            assert isinstance(connection, Connection)
            yield busy[connection], self._workers[busy.pop(connection)].outcome()
        for at in busy.values():
            if self._workers[at].until <= time.monotonic():
                yield at, self._workers[at].give_up(self._timeout)


class _Worker:
    """A process, and what it works on."""

    def __init__(self, ask: Callable[[str], Any]) -> None:
        context = multiprocessing.get_context("spawn")  # A fork would copy locks that threads hold.
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, ask), daemon=True)
        self._process.start()
        theirs.close()
        self._name: str | None = None
        self._started = self.until = 0.0

    @property
    def busy(self) -> bool:
        return self._name is not None

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def take(self, name: str, timeout: float) -> None:
        """Begin with a template."""
        self._name, self._started = name, time.monotonic()
        self.until = self._started + timeout
        with suppress(OSError):  # Its process has ended; then the pipe ends as well, and `outcome` says so.
            self.connection.send(name)

    def outcome(self) -> Outcome[Any]:
        """Return what came; a process that has ended has failed."""
        try:
            result, failure = self.connection.recv()
        except EOFError:
            self._process.join()
            result, failure = None, f"its process ended with code {self._process.exitcode}"
        return self._done(result, failure)

    def give_up(self, timeout: float) -> Outcome[Any]:
        """Stop the process."""
        self.stop()
        return self._done(None, f"took longer than {timeout:g} s")

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _done(self, result: Any, failure: str) -> Outcome[Any]:
        name, self._name = self._name, None
        assert name is not None
        return Outcome(name=name, result=result, failure=failure, seconds=time.monotonic() - self._started)


def _work(connection: Connection, ask: Callable[[str], Any]) -> None:
    """Answer names with results, or with what went wrong, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The command line is interrupted, and stops us.
    warnings.showwarning = remark_warning
    logging.getLogger().addHandler(LogHandler(logging.WARNING))
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        try:
            connection.send((ask(name), ""))
        except Exception as error:  # noqa: BLE001 - one bad file stops nothing
            connection.send((None, ending(error).text))
