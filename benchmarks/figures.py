"""Measure the figures in the docs in one run, and write the tables and the plot of "Benchmarks".

python3 scripts/run.py figures                 measures everything (90 minutes, 5 GB), then writes tables and the plot
python3 scripts/run.py figures streaming peers measures these only
python3 scripts/run.py figures --tables        measures nothing, and writes tables and the plot from `benchmarks/results`

Strategy: each step is a benchmark in an environment of `scripts/tasks.toml`, and writes one file to
`benchmarks/results`. BFCL takes many hours, so it's no step: `bfcl.py --json` writes its file. A table on a page is
computed from these files and is between `<!-- figures:NAME -->` and `<!-- figures:end -->`. A test compares the pages
with it. Before each step, the share of the processors that other processes use is measured and reported on the page.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reporting import ROOT, read, save
from result_tables import QUIET, TABLES, Found

import run as tasks  # isort: skip - `reporting` sets the path

RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *(ROOT / "docs" / "explanation" / name for name in ("performance.md", "why.md")))
_PATIENCE = 60
"""Maximum seconds to wait until other programs are quiet."""
_BLOCK = re.compile(r"(<!-- figures:(\w+) -->(\n?)).*?(<!-- figures:end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Step:
    """A benchmark, and the task whose environment it needs."""

    task: str
    script: str
    arguments: Sequence[str] = ()
    packages: Sequence[str] = ()
    """Other packages whose versions are reported."""


_TEMPLATE = str(ROOT / "tests/templates/call-ends-turn.jinja")
STEPS: Mapping[str, Step] = {
    "streaming": Step("figures", "streaming.py"),
    "request": Step("engines", "request.py", (_TEMPLATE,), ("llguidance", "xgrammar")),
    "suite": Step("canitoolcall", "tool_call_suite.py", (), ("canitoolcall",)),
    "suite_ids": Step("canitoolcall", "tool_call_suite.py", ("--special",)),
    "drift": Step("drift", "drift.py", (), ("vllm", "sglang")),
    "coverage": Step("peers", "parser_coverage.py"),
    "peers": Step("peers", "peers.py", (), ("transformers",)),
    "next_turn": Step("figures", "next_turn.py"),
    "gateway": Step("figures", "gateway.py"),
    "real": Step("figures", "real.py", ("--rounds", "5"), ("xllamacpp",)),
    "healing": Step("figures", "healing.py", ("--tasks", "98")),
    "grammar_worth": Step("figures", "grammar_worth.py", ("--tasks", "84")),
}


def main() -> None:
    """Measure the named steps, by default all, and write the pages."""
    names = sys.argv[1:]
    if unknown := set(names) - {*STEPS, "--tables"}:
        sys.exit(f"{', '.join(sorted(unknown))}: unknown; expected --tables or some of {', '.join(STEPS)}")
    for name in [] if "--tables" in names else names or STEPS:
        measure(name)
    found = results()
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "drawings.py")], check=True)


def measure(name: str) -> None:
    """Run a step, and store its versions and the load before it in `run.json`."""
    step = STEPS[name]
    python = _program(step.task, "python")
    litellm = ["--litellm", _program("clients-more", "litellm")] if name == "gateway" else []
    busy = others()
    print(f"== {name} (others use {busy:.0%} of the processors)", flush=True)
    output = ["--json", str(RESULTS / f"{name}.json")]
    subprocess.run(
        [python, str(ROOT / "benchmarks" / step.script), *step.arguments, *litellm, *output], cwd=ROOT, check=True
    )
    kept = read(RESULTS / "run.json") or {"busy": {}, "dates": {}, "versions": {}}
    kept["machine"] = f"{os.cpu_count()} cores of {_processor()}, CPython {platform.python_version()}"
    kept["busy"][name] = round(busy, 3)
    kept["dates"][name] = datetime.now(UTC).date().isoformat()
    kept["versions"] |= {package: _version(python, package) for package in step.packages}
    if litellm:
        kept["versions"]["litellm"] = _version(str(Path(litellm[1]).with_name("python")), "litellm")
    save(RESULTS / "run.json", kept)


def others() -> float:
    """Return the share of the processors in use, after waiting until it's low."""
    until = time.monotonic() + _PATIENCE
    while (share := _in_use()) > QUIET and time.monotonic() < until:
        pass
    return share


def _in_use() -> float:
    """Return the share of two seconds in which the processors weren't idle (`/proc/stat`, Linux)."""
    before = _ticks()
    time.sleep(2)
    spent = [late - early for early, late in zip(before, _ticks(), strict=True)]
    return 1 - (spent[3] + spent[4]) / sum(spent)


def _ticks() -> list[int]:
    return [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]]


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return found[1] if (found := re.search(r"model name\s*: (.*)", text)) else platform.machine()


def _version(python: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _program(task: str, program: str) -> str:
    environment = tasks.task_named(task).set_up()
    assert environment is not None
    return str(environment.program(program))


def results() -> dict[str, Found]:
    """Return the contents of `benchmarks/results`, by name."""
    return {path.stem: read(path) for path in sorted(RESULTS.glob("*.json"))}


def written(text: str, found: Mapping[str, Found]) -> str:
    """Return a page with its tables written from results."""

    def block(match: re.Match[str]) -> str:
        return match[1] + "\n".join(TABLES[match[2]](found)) + match[3] + match[4]

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    main()
