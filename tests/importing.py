"""Imports of the project's modules, which skip a test if a third-party package is missing, and of files outside packages."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def imported(name: str) -> ModuleType:
    """Return the module. Skips the test if the integration's package isn't installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith("unrender.integrations.") or (error.name or "").startswith("unrender"):
            raise
        pytest.skip(f"{error.name} is not installed")


def module_at(path: Path) -> ModuleType:
    """Return the module in a file, whatever other modules have its name."""
    spec = importlib.util.spec_from_file_location(f"at_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
