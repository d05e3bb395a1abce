"""The public names: complete, unique, and light to import."""

from __future__ import annotations

import collections
import pkgutil
import subprocess
import sys

import pytest
from importing import imported

import unrender

MODULES = ["unrender", *(module.name for module in pkgutil.walk_packages(unrender.__path__, "unrender."))]


@pytest.mark.parametrize("name", MODULES)
def test_every_exported_name_is_there(name: str) -> None:
    """Each name in a module's `__all__` can be imported from it, and is listed once."""
    module = imported(name)
    exported = getattr(module, "__all__", [])

    assert [item for item in exported if not hasattr(module, item)] == []
    assert [item for item, times in collections.Counter(exported).items() if times > 1] == []


@pytest.mark.parametrize("heavy", ["jinja2", "click", "huggingface_hub", "importlib.metadata"])
def test_import_is_light(heavy: str) -> None:
    """`import unrender` loads neither Jinja nor an extra before it's needed."""
    code = f"import sys, unrender; sys.exit({heavy!r} in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
