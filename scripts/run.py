"""List the tasks of `tasks.toml`, or run a task in its environment.

python3 scripts/run.py                          list the tasks, with their time and disk space
python3 scripts/run.py TASK [arguments]         set up the environment and run the task; the last command gets the arguments
python3 scripts/run.py --set-up TASK            only set up the environment
python3 scripts/run.py --newest [TASK ...]      run tasks (by default, all) with the newest releases of the tested packages; for a scheduler
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import environment
from environment import ROOT, TABLE, Environment, variables

_NEWEST = "-newest"
"""Suffix of environment folders with the newest releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One entry of the table."""

    what: str
    takes: str
    commands: Sequence[Sequence[str]]
    environment: str = ""
    install: Sequence[Sequence[str]] = ()
    variables: Mapping[str, str] | None = None
    newest: Sequence[str] = ()
    tested: str = ""
    of: str = ""
    """The subject of the tests with the releases in `tested`."""

    def set_up(self, suffix: str = "") -> Environment | None:
        """Install the task's packages, and return its environment. Return None for a task without one."""
        if not self.environment:
            return None
        found = Environment.named(self.environment, suffix)
        found.ready(self.install, self._variables())
        return found

    def run(self, arguments: Sequence[str], environment: Environment | None) -> int:
        """Run the commands until one fails. Return the exit status."""
        for at, command in enumerate(self.commands, start=1):
            program, *words = (word.format(root=ROOT) for word in command)
            given = arguments if at == len(self.commands) else ()
            start = _program(program, environment)
            done = subprocess.run([start, *words, *given], cwd=ROOT, env=self._variables(), check=False)
            if done.returncode:
                return done.returncode
        return 0

    def _variables(self) -> dict[str, str]:
        own = {name: value.format(root=ROOT) for name, value in (self.variables or {}).items()}
        return variables(own)


TASKS: Mapping[str, Task] = {name: Task(**entry) for name, entry in TABLE["tasks"].items()}


def main() -> None:
    """Run the command line, and exit with the task's status."""
    match sys.argv[1:]:
        case []:
            print(listing())
        case ["--newest", *names]:
            results = [newest(name) for name in names or [name for name, task in TASKS.items() if task.newest]]
            sys.exit(any(results))
        case ["--set-up", name]:
            task_named(name).set_up()
        case [name, *arguments]:
            task = task_named(name)
            sys.exit(task.run(arguments, task.set_up()))


def task_named(name: str) -> Task:
    """Return a task by name. Exits with an error message if there's no such task."""
    return TASKS[name] if name in TASKS else sys.exit(f"no task {name!r}; there are {', '.join(TASKS)}")


def listing() -> str:
    """Return the list of tasks for a terminal."""
    wide = max(map(len, TASKS))
    lines = [f"{name:{wide}}  {task.what} ({task.takes})" for name, task in TASKS.items()]
    return "\n".join(["python3 scripts/run.py TASK [arguments]", "", *lines])


def table() -> str:
    """Return the tasks as a Markdown table."""
    rows = ((f"`{name}`", task.what, task.takes) for name, task in TASKS.items())
    return environment.table(("task", "description", "time"), rows)


def newest(name: str) -> int:
    """Run a task with the newest releases, ignoring upper bounds, in a separate environment. Return its exit status."""
    task = task_named(name)
    environment = task.set_up(_NEWEST)
    if environment is None or not task.newest:
        sys.exit(
            f"{name} tests no releases; these do: {', '.join(name for name, task in TASKS.items() if task.newest)}"
        )
    environment.pip(["--upgrade", *task.newest])
    status = task.run((), environment)
    code = "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    packages = [package.partition("[")[0] for package in task.newest if not package.startswith("-")]
    print(f"{name}: {'BROKEN' if status else 'ok'} with", flush=True)
    subprocess.run([environment.program("python"), "-c", code, *packages], check=False)
    return status


def _program(name: str, environment: Environment | None) -> str:
    """Return a command's program from the environment, or from the system."""
    if name == "python3":
        return sys.executable
    own = environment.program(name) if environment else None
    return str(own) if own and own.exists() else name


if __name__ == "__main__":
    main()
