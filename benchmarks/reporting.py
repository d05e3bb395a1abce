"""Arguments, timing, Markdown tables and JSON files, in the same form for all benchmarks."""

from __future__ import annotations

import json
import statistics
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(ROOT / folder) for folder in ("tests", "scripts")]

import environment  # noqa: E402

COMMON: Mapping[str, Mapping[str, Any]] = {
    "file": {"nargs": "?", "type": Path, "help": "a GGUF file; by default, the example model"},
    "templates": {"nargs": "*", "type": Path, "help": "template files; by default, all that are available"},
    "trainer": {"choices": ("trl", "verl")},
    "--quick": {"action": "store_true", "help": "measure less"},
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


def read(path: Path) -> dict[str, Any]:
    """Return the results in a file; an empty mapping if there is no file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def save(path: Path | None, found: Any) -> None:
    """Write results as JSON, if there is a path."""
    if path:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table(heads: Sequence[object], rows: Iterable[Iterable[object]], left: int = 1) -> Iterator[str]:
    """Yield the lines of a Markdown table. Only the first `left` columns are aligned to the left."""
    yield from environment.table(heads, rows, "l" * left + "r").split("\n")


def progress(text: str) -> None:
    """Print a line on standard error, which keeps the tables apart."""
    print(f"  {text}", file=sys.stderr, flush=True)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def milliseconds(work: Callable[[], object], runs: int) -> float:
    """Return the median processor time of a call, in milliseconds."""
    return statistics.median(1e3 * seconds(work) for _ in range(runs))
