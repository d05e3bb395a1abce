"""Arguments, Markdown table rows and JSON files, in the same form for all benchmarks."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

COMMON: Mapping[str, Mapping[str, Any]] = {
    "file": {"nargs": "?", "type": Path, "help": "a GGUF file; by default, the example model"},
    "templates": {"nargs": "*", "type": Path, "help": "template files; by default, all that are available"},
    "families": {"nargs": "*", "metavar": "FAMILY", "help": "families of models; by default, all"},
    "--quick": {"action": "store_true", "help": "measure less"},
    "--show": {"action": "store_true", "help": "print each answer that differs from the known one"},
    "--json": {"type": Path, "metavar": "FILE", "help": "also write the results to a file"},
}
"""Arguments shared by several benchmarks."""


def arguments(doc: str | None, *common: str, **own: Any) -> Namespace:
    """Parse the command line: arguments of `COMMON` by name, and the benchmark's own options.

    A number is an option's default. For other options, `own` has the settings of `add_argument`.
    """
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    for name in common:
        parser.add_argument(name, **COMMON[name])
    for name, value in own.items():
        settings = value if isinstance(value, Mapping) else {"type": type(value), "default": value}
        parser.add_argument(f"--{name}", **settings)
    return parser.parse_args()


def save(path: Path | None, found: Any) -> None:
    """Write results as JSON, if there is a path."""
    if path:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def line(cells: Iterable[object]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"
