"""`unrender format diff`: prints the differences between the Formats of two templates or files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from unrender import FormatError
from unrender.cli.inputs import BadInput, InputPath, json_of, json_option, load
from unrender.cli.terminal import NO_STYLE, print_block, print_json
from unrender.explain import differences
from unrender.format import Format


@click.command(short_help="Compare two formats.")
@click.argument("before", metavar="A", type=InputPath())
@click.argument("after", metavar="B", type=InputPath())
@json_option
def diff_command(before: str, after: str, *, as_json: bool) -> None:
    """Compare the formats of A and B, each a template or a file written by `unrender format show`.

    Every part that differs is named as in the Format. The exit code is 1 when anything differs.
    """
    found = differences(_format(before), _format(after))
    if as_json:
        print_json([asdict(difference) for difference in found])
    else:
        for difference in found:
            print_block([(str(difference), NO_STYLE)])
    raise SystemExit(1 if found else 0)


def _format(source: str) -> Format:
    """Return the Format in a file, or that of a template."""
    path = Path(source)
    if path.suffix == ".json" and path.is_file():
        data = json_of(source)
        if _is_format(data):
            try:
                return Format.from_dict(data)
            except FormatError as error:
                raise BadInput(f"{source}: {error}") from error
    return load(source).format


def _is_format(data: Any) -> bool:
    """Tell a Format from the other JSON that a template may be in: only a Format has a version and no template."""
    return isinstance(data, dict) and "version" in data and "chat_template" not in data
