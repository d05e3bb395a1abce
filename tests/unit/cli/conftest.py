"""A template, a tool and an answer on disk, and a way to run the command line on them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import command_line
import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line in a folder with `chat_template.jinja` and `tools.json`."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).with_name("first"), tmp_path, dirs_exist_ok=True)
    return command_line.run


@pytest.fixture
def commands() -> dict[str, click.Command]:
    """Return every command by its full name, including commands in groups, e.g. `format show`."""
    return dict(_leaves(command_line.COMMANDS, ""))


def _leaves(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _leaves(command, f"{before}{name} ")
        elif command:
            yield f"{before}{name}", command
