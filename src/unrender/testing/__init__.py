"""A pytest fixture to test chat templates and their answers.

The extra `testing` installs the fixture `chat`, which needs no import. A test passes a template, a request, an output, and the expected
message to the fixture. If the actual message differs from the expected one, an `AssertionError` shows it. Start with `chat`, which compares
messages and splits outputs. `plugin` is the pytest plug-in.

Rules: an expected message is checked at every split of the output, with lenient and strict parsers, and with the grammars of installed
engine libraries. Names are imported on first use, so that the plug-in doesn't slow down pytest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrender.machine import numbered_id
    from unrender.testing.chat import Chat, broken_call, call, splits

__all__ = ["Chat", "broken_call", "call", "numbered_id", "splits"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "unrender.machine" if name == "numbered_id" else "unrender.testing.chat"
    return getattr(importlib.import_module(home), name)
