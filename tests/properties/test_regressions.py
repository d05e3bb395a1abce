"""What fuzzing and hunting have found once holds for ever: `fuzz/regressions/`, one input a file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"


def target() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_parse", FUZZ / "parse.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted((FUZZ / "regressions").iterdir()), ids=lambda path: path.name)
def test_a_regression_stays_fixed(path: Path) -> None:
    """An input that broke a promise once keeps all of them."""
    target().one_input(path.read_bytes())


def test_the_seeds_hold() -> None:
    """The inputs that fuzzing starts from keep every promise."""
    module = target()

    for data in module.seeds().values():
        module.one_input(data)
