"""Setup of every test run: Hypothesis profiles, and a clear message if the vendors' data are missing."""

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

# `ci` and `nightly` repeat the same examples, so a failure is due to the change; `hunt` tries new ones.
hypothesis.settings.register_profile("ci", max_examples=10, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("nightly", max_examples=40, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("hunt", max_examples=3000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# All processes and later runs share the analyses of templates. The name of a stored analysis contains the state of all files that affect it,
# so a change of the source starts anew. Tests of the analysis call `analyze`, and tests of the cache choose a folder of their own.
if os.environ.get("UNRENDER_CACHE") != "off":
    os.environ["UNRENDER_CACHE"] = str(Path(__file__).parents[1] / ".cache" / "analyses")

# Collected tests and shared fixtures live on. Scanning them for garbage again and again takes a third of the collection
# time, and almost all the time of each `gc.collect()`. So only objects created by one module's tests are scanned.
gc.disable()


def pytest_collection_finish() -> None:
    """From now on, collect garbage among objects that tests create."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect a module's garbage after its last test, and don't scan the remaining objects again."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the missing external data, since tests that need them are skipped."""
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
    """Leave all but a few cases to the full run if a test asks for it, and mark the expected failures."""
    _leave_to_the_full_run(items)
    _expect_open(items)


def _leave_to_the_full_run(items: list[pytest.Item]) -> None:
    """Mark as `full` the cases beyond `few(n)`. The choice of n cases depends only on their names.

    Cases with a value that no chosen case has come first. So if a test runs on the product of formats and policies, the n cases have all
    policies and as many formats as possible.
    """
    cases: dict[tuple[str, int], list[pytest.Function]] = defaultdict(list)
    for item in items:
        for mark in item.iter_markers("few"):
            assert isinstance(item, pytest.Function)
            cases[item.nodeid.split("[")[0], mark.args[0]].append(item)
    for (_, asked), alike in cases.items():
        met: set[tuple[int, str]] = set()
        unlike, rest = list[pytest.Function](), list[pytest.Function]()
        for item in sorted(alike, key=lambda item: crc32(item.nodeid.encode())):
            values = set(enumerate(item.callspec._idlist))
            (rest if values <= met else unlike).append(item)
            met |= values
        for item in [*unlike, *rest][asked:]:
            item.add_marker(pytest.mark.full)


def _expect_open(items: list[pytest.Item]) -> None:
    """Expect the failures in `conformance/open.toml` and no others. A listed case that passes is a failure."""
    path = Path(__file__).parent / "conformance" / "open.toml"
    listed = {
        f"{test}[{case}]": entry
        for test, entry in tomllib.loads(path.read_text("utf-8")).items()
        for case in entry["cases"]
    }
    for item in items:
        if entry := listed.get(f"{item.path.name}::{item.name}"):
            item.add_marker(pytest.mark.xfail(reason=entry["why"], strict=not entry.get("drawn", False)))
