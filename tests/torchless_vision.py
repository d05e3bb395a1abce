"""A fake torchvision, since no build fits torch for CPUs. SGLang imports it, but doesn't need it for text."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from enum import Enum
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "torchvision"
_Modes = Enum("_Modes", "NEAREST NEAREST_EXACT BILINEAR BICUBIC BOX HAMMING LANCZOS")


class _Finder:
    """Finds every module of torchvision, and leaves it empty."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == _NAME else None  # type: ignore[arg-type]

    def create_module(self, _spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        module.InterpolationMode, module.__version__, module.__file__ = _Modes, "0.0", __file__
        module.__getattr__ = lambda _: _Nothing


class _Nothing:
    """Replaces any attribute."""


def install() -> None:
    """Make `import torchvision` succeed if it isn't installed."""
    if importlib.util.find_spec(_NAME) is None:
        sys.meta_path.append(_Finder())
