"""Takes the files that a command line names, as a whole: what is written must be none of what is read.

Rules: every argument and option that names a file is an `InputPath` or an `OutputPath`; `-` is standard input there, and standard
output here. Standard input can be read by one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from unrender.files import STANDARD, is_same_file

_READ, _WRITTEN = "unrender.read", "unrender.written"
_TEMPLATE_FILES = (".jinja", ".json", ".gguf")
"""What is read of a folder."""


class InputPath(click.Path):
    """A file or a folder that is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Fails when it is written as well, or is standard input a second time."""
        path = super().convert(value, param, ctx)
        if ctx is not None:
            if path == STANDARD and STANDARD in ctx.meta.get(_READ, ()):
                self.fail("standard input (-) can be read once only", param, ctx)
            _keep_apart(ctx, _READ, str(path))
        return path


class OutputPath(click.Path):
    """A file that is made anew."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Fails when it is read as well."""
        path = super().convert(value, param, ctx)
        if ctx is not None:
            _keep_apart(ctx, _WRITTEN, str(path))
        return path


def claim_standard_input() -> None:
    """Say that the command itself reads standard input. Raises a usage error when an argument has taken it."""
    if STANDARD in click.get_current_context().meta.get(_READ, ()):
        raise click.UsageError("this command reads standard input itself, so no argument can be -")


def _keep_apart(context: click.Context, kind: str, path: str) -> None:
    context.meta.setdefault(kind, []).append(path)
    for output in context.meta.get(_WRITTEN, ()):
        for source in context.meta.get(_READ, ()):
            if any(is_same_file(output, found) for found in _files(source)):
                raise click.UsageError(
                    f"{output}: this file would be written, and {source} is read; name another output"
                )


def _files(source: str) -> Iterator[str]:
    """Yield the files that are read: of a folder, those that can hold a template."""
    path = Path(source)
    if source == STANDARD or not path.is_dir():
        yield source
        return
    yield from (str(file) for file in path.iterdir() if file.suffix in _TEMPLATE_FILES)
