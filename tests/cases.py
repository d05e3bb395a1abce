"""Test cases in `cases.jsonl` files: `test` is the test's name without `test_`, other fields are its arguments.

A reason in `why` is the name of a case. Only tests that have this parameter get it.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from tables import case_rows

__all__ = ["beside", "case_rows", "cases", "thinned"]
Test = Callable[..., None]


def cases(test: Test) -> Test:
    """Run a test once for each of its rows, which all have the same fields."""
    rows = case_rows(Path(test.__code__.co_filename).with_name("cases.jsonl"))
    own = [{key: value for key, value in row.items() if key != "test"} for row in rows if _names(row, test)]
    keys = [key for key in own[0] if key != "why" or "why" in signature(test).parameters]
    values = [[row[key] for key in keys] for row in own]
    names = [str(row.get("why", row[keys[0]]))[:40] or "empty" for row in own]
    return pytest.mark.parametrize(keys, values, ids=names)(test)


def thinned(step: int) -> pytest.MarkDecorator:
    """Return a parameter `step` for a test that takes every nth item of a list. In the full run, the test also takes all items."""
    return pytest.mark.parametrize("step", [step, pytest.param(1, marks=pytest.mark.full)])


def _names(row: dict[str, Any], test: Test) -> bool:
    return test.__name__ == f"test_{row['test']}"


def beside(test_file: str, name: str) -> str:
    """Return the text of a file next to a test."""
    return Path(test_file).with_name(name).read_text(encoding="utf-8")
