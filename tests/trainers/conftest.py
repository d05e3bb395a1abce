"""Tests with trainers' own packages. Missing packages are skipped; `python3 scripts/run.py trainers` installs them."""

from __future__ import annotations

import sys
import typing

from engines import installed

_NEEDED = {
    "test_any_template.py": ("renderers", "transformers"),
    "test_renderers.py": ("renderers", "transformers"),
    "test_verl.py": ("verl", "ray", "transformers"),
    "test_skyrl.py": ("skyrl", "torch", "transformers"),
    "test_trl.py": ("trl", "torch", "transformers"),
    "test_smollm2.py": ("renderers",),
}
collect_ignore = [name for name, packages in _NEEDED.items() if not all(map(installed, packages))]

if sys.version_info < (3, 12) and not collect_ignore:
    # SkyRL passes Python's own TypedDict to pydantic, which accepts it only from Python 3.12 on.
    import typing_extensions

    typing.TypedDict = typing_extensions.TypedDict
