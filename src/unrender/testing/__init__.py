"""A test kit for those who rely on a template: the pytest fixture `chat`, and its parts.

The fixture is there as soon as the package is installed with the extra `testing`; it needs no import.
In: a template, a request, an output, and what it must mean. Out: an `AssertionError` that shows what it means instead. Open `chat`
first, which compares messages and cuts outputs; `plugin` is what pytest loads.

Rules: an expectation is checked at every split, leniently and strictly, and against the grammars of the engines that are there.
Names are imported when they are first used, so that pytest, which loads the plugin in every run, starts as fast as before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrender.machine.ids import numbered_id
    from unrender.testing.chat import Chat, broken_call, call, splits

__all__ = ["Chat", "broken_call", "call", "numbered_id", "splits"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "unrender.machine.ids" if name == "numbered_id" else "unrender.testing.chat"
    return getattr(importlib.import_module(home), name)
