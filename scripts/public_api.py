"""What users may rely on → docs/reference/api.txt, a line for each public name, and the site's pages of them.

python scripts/public_api.py

Public are the modules of `MODULES`: what is in a module's `__all__` or, in a module without one, what is defined there and has no
underscore; and of their classes the members without one. A line that goes is a change that needs a deprecation (docs/reference/versioning.md).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import environment

PAGE = environment.ROOT / "docs" / "reference" / "api.txt"
MODULES = (
    "unrender",
    "unrender.format",
    "unrender.formats",
    "unrender.grammar",
    "unrender.bounds",
    "unrender.verify",
    "unrender.lint",
    "unrender.explain",
    "unrender.injection",
    "unrender.analysis",
    "unrender.testing",
    "unrender.batch",
    "unrender.playground",
    "unrender.gateway",
    "unrender.integrations.llama_cpp",
    "unrender.integrations.mlx_lm",
    "unrender.integrations.tokens",
    "unrender.integrations.transformers",
    "unrender.integrations.trl",
)


def main() -> None:
    """Write the list."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the list: every public name, with its members, sorted within its module."""
    return "".join(f"{line}\n" for module in MODULES for line in sorted(set(_lines(module))))


def pages() -> dict[str, str]:
    """Return the site's page of each module, by its path; mkdocstrings fills it from the docstrings."""
    return {page_of(module): _page(module) for module in MODULES}


def page_of(module: str) -> str:
    """Return the path of a module's page on the site."""
    return f"reference/api/{module}.md"


def names(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _lines(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in names(module):
        yield f"{name}.{public}"
        for member in _members(getattr(module, public)):
            yield f"{name}.{public}.{member}"


def _members(value: Any) -> Iterator[str]:
    """Yield the public members that a class of ours has: methods, properties, fields, and those of an enum."""
    if not inspect.isclass(value):
        return
    for owner in value.__mro__:
        if owner.__module__.startswith("unrender"):
            yield from (name for name in vars(owner) if not name.startswith("_"))
    if is_dataclass(value):
        yield from (field.name for field in fields(value) if not field.name.startswith("_"))


def _page(name: str) -> str:
    shown = "\n".join(f"        - {public}" for public in names(importlib.import_module(name)))
    return f"# {name}\n\n::: {name}\n    options:\n      members:\n{shown}\n"


if __name__ == "__main__":
    main()
