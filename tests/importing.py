"""Imports of the project's modules that skip a test if a module's third-party package is missing."""

from __future__ import annotations

import importlib
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
