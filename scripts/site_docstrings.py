"""The library's docstrings → Markdown for mkdocstrings: examples, whose `>>>` would be quotations, go into blocks of code."""

from __future__ import annotations

from typing import Any

import site_pages
from griffe import Extension, Object


class Docstrings(Extension):
    """Fences the examples of each docstring as it is read."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite an object's docstring."""
        if obj.docstring:
            obj.docstring.value = site_pages.fenced(obj.docstring.value)
