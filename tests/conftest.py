"""Setup of every test run: Hypothesis profiles, and a clear message when the vendors' data are missing."""

from __future__ import annotations

import gc
import os
import tomllib
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest
from engines import installed
from vendor import missing_data

# `ci` is the same in every run, so that a red build is about the change; `hunt` looks for what nobody thought of.
hypothesis.settings.register_profile("ci", max_examples=40, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("hunt", max_examples=3000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Every test analyses for itself; those about the cache name a folder of their own.
os.environ["UNRENDER_CACHE"] = "off"

# What is collected, and what a module's tests share, stays: to look through it for garbage again and again takes a third of
# collecting, and of each `gc.collect()` nearly all. So garbage is looked for in what one module's tests have made.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, in what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect a module's garbage when its last test is done, and look through the rest no more."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which outside data were missing, since the tests that need them can only be skipped."""
    if not installed("transformers"):
        sentence = "transformers is not installed: use `python3 scripts/run.py transformers`"
        terminalreporter.write_line(f"EXPORTS NOT CHECKED: {sentence}", yellow=True, bold=True)
    elif not installed("trl"):
        sentence = "TRL's files are not installed: use `python3 scripts/run.py transformers`"
        terminalreporter.write_line(f"EXPORTS NOT COMPARED: {sentence}", yellow=True, bold=True)
    for sentence in missing_data():
        terminalreporter.write_line(f"CONFORMANCE NOT CHECKED: {sentence}", yellow=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but a few cases to the full run where a test says so, and expect the failures that are listed."""
    _leave_to_the_full_run(items)
    _expect_open(items)


def _leave_to_the_full_run(items: list[pytest.Item]) -> None:
    """Mark as `full` what `few(n)` leaves out. Which n cases are asked goes by their names alone, without order."""
    cases: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        for mark in item.iter_markers("few"):
            cases[item.nodeid.split("[")[0], mark.args[0]].append(item)
    for (_, asked), alike in cases.items():
        for item in sorted(alike, key=lambda item: crc32(item.nodeid.encode()))[asked:]:
            item.add_marker(pytest.mark.full)


def _expect_open(items: list[pytest.Item]) -> None:
    """Expect the failures that `conformance/open.toml` lists, and no other: a listed case that passes is a failure."""
    path = Path(__file__).parent / "conformance" / "open.toml"
    listed = {
        f"{test}[{case}]": entry
        for test, entry in tomllib.loads(path.read_text("utf-8")).items()
        for case in entry["cases"]
    }
    for item in items:
        if entry := listed.get(f"{item.path.name}::{item.name}"):
            item.add_marker(pytest.mark.xfail(reason=entry["why"], strict=not entry.get("drawn", False)))
