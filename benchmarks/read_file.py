"""The needs of `unrender batch read` for a large file: answers a second, and memory from the first tenth of the input to the last.

python benchmarks/read_file.py [--gigabytes 5] [--jobs 2] [--folder DIR]      (5 GB take twice that on the disk, and a quarter of an hour)

Strategy: writes JSONL of answers of 500 characters, most without a call, runs the command on it as users do, and adds up every
half second what the processes hold that other processes do not (`Pss` of `/proc/PID/smaps_rollup`). What counts is the
highest sum of each tenth of the output: memory is flat when the last is not above the second. The first is start-up.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from batch import json_call, plain

TEMPLATE = Path(__file__).resolve().parent.parent / "tests" / "templates" / "json-tags.jinja"
TOOLS = [{"type": "function", "function": {"name": f"tool_{at}", "parameters": {"type": "object"}}} for at in range(10)]
TENTHS = 10
BAR = 1.05
"""The highest memory of the last tenth, over that of the second."""
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def write(path: Path, size: int) -> int:
    """Write answers until the file has so many bytes; return how many there are."""
    block = "".join(json.dumps({"id": at, "text": (plain, plain, json_call)[at % 3](at)}) + "\n" for at in range(9_999))
    repeats = max(size // len(block), 1)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(repeats):
            file.write(block)
    return repeats * 9_999


def family(pid: int) -> Iterator[int]:
    """Yield a process and those that it has started."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return
    for child in children.split():
        yield from family(int(child))


def held(pid: int) -> int:
    """Return the kB that a process and its children hold."""
    total = 0
    for member in family(pid):
        try:
            found = _PSS.search(Path(f"/proc/{member}/smaps_rollup").read_text())
        except OSError:
            continue  # It has ended in between.
        total += int(found[1]) if found else 0
    return total


def watched(process: subprocess.Popen[str], output: Path, expected: int) -> list[int]:
    """Return the highest memory in kB of each tenth of the output, until the process ends."""
    highest = [0] * TENTHS
    while process.poll() is None:
        done = output.stat().st_size / expected if output.exists() else 0
        tenth = min(int(done * TENTHS), TENTHS - 1)
        highest[tenth] = max(highest[tenth], held(process.pid))
        time.sleep(0.5)
    return highest


def measured(folder: Path, size: int, jobs: int) -> tuple[int, float, list[int]]:
    """Return how many answers were read, in how many seconds, and the highest memory of each tenth."""
    answers, tools, output = folder / "answers.jsonl", folder / "tools.json", folder / "messages.jsonl"
    tools.write_text(json.dumps(TOOLS))
    rows = write(answers, size)
    command = [sys.executable, "-m", "unrender", "batch", "read", str(TEMPLATE), str(answers), "-o", str(output)]
    start = time.perf_counter()
    with subprocess.Popen([*command, "--tools", str(tools), "--jobs", str(jobs), "--keep", "id"], text=True) as process:
        # What has been written so far; a row's message is about as long as its answer.
        highest = watched(process, output.with_name(f"{output.name}.part"), answers.stat().st_size)
    if process.returncode:
        raise SystemExit(f"unrender batch read ended with {process.returncode}")
    return rows, time.perf_counter() - start, highest


def main() -> None:
    """Print rate and memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the files are written, and deleted afterwards")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        rows, seconds, highest = measured(Path(folder), int(arguments.gigabytes * 1e9), arguments.jobs)
    print(f"{rows:,} answers in {seconds:,.0f} s: {rows / seconds:,.0f} a second")
    print("MB in each tenth of the output: " + " ".join(f"{kilobytes / 1024:.0f}" for kilobytes in highest))
    reached = [kilobytes for kilobytes in highest if kilobytes]
    print(f"last tenth over second: {reached[-1] / reached[min(1, len(reached) - 1)]:.2f} (bar {BAR})")


if __name__ == "__main__":
    main()
