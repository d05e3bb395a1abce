"""Imports a module of the project; one that extends classes of another package is skipped where that package is not installed."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


def imported(name: str) -> ModuleType:
    """Return the module. Skips the test for an integration whose package is not there."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith("unrender.integrations.") or (error.name or "").startswith("unrender"):
            raise
        pytest.skip(f"{error.name} is not installed")
