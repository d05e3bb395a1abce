"""The code's own tables → a page: the words of the Format, the parts of an output, the dialects, the parser's instructions and frames.

Rules: a product of the build, never committed. What is said of a word is the docstring below it in the source.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from enum import Enum
from typing import Any

import unrender.machine
from unrender.dialects.remainder import Dialect
from unrender.format import (
    CallIdPosition,
    Containers,
    ContentMode,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    Typing,
    Words,
)
from unrender.machine import policy
from unrender.machine.frames import Frame
from unrender.nodes import Role

FORMAT = (ReasoningMode, ContentMode, ToolMode, CallIdPosition, Slot, Strings, Words, Containers, Typing)
OUTPUT = (Role, Dialect, policy.UnknownTools, policy.CallsInReasoning, policy.UndeclaredReasoning, policy.CallRelease)


def page() -> str:
    """Return the page."""
    return (
        "# Words of the Format\n\nWhat may be in [a Format](api/unrender.format.md), generated from the code's tables.\n\n"
        + "".join(map(enum_table, FORMAT))
        + "## Parts of an output, dialects, policies\n\n"
        + "".join(map(enum_table, OUTPUT))
        + "## The parser's instructions\n\nA grammar is compiled into these; [architecture](../explanation/architecture.md) says why.\n\n"
        + table(("Instruction", "What it does", "Data"), instructions())
        + f"\n## A frame\n\n{inspect.getdoc(Frame)}\n\n"
        + table(("Field", "Meaning"), described(Frame))
    )


def enum_table(kind: type[Enum]) -> str:
    """Return the values of an enum, with what is said of each."""
    said = dict(described(kind))
    rows = [(f"`{member.value}`", said.get(name, "")) for name, member in kind.__members__.items()]
    return f"### {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n{table(('Value', 'Meaning'), rows)}\n"


def instructions() -> Iterator[tuple[str, str, str]]:
    """Yield the machine's instructions: every dataclass of `unrender.machine` that makes a step."""
    for found in pkgutil.walk_packages(unrender.machine.__path__, "unrender.machine."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if (
                inspect.isclass(value)
                and value.__module__ == module.__name__
                and dataclasses.is_dataclass(value)
                and hasattr(value, "step")
            ):
                data = ", ".join(f"`{field.name}`" for field in dataclasses.fields(value))
                yield f"`{name}`", _first_line(value), data


def described(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class with the docstrings that follow them."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    for at, node in enumerate(tree.body):
        names = [
            target.id
            for target in getattr(node, "targets", [getattr(node, "target", None)])
            if isinstance(target, ast.Name)
        ]
        after = tree.body[at + 1 : at + 2]
        said = (
            after[0].value.value
            if after and isinstance(after[0], ast.Expr) and isinstance(after[0].value, ast.Constant)
            else ""
        )
        for name in names:
            yield name, " ".join(str(said).split())


def table(heads: tuple[str, ...], rows: Any) -> str:
    """Return a table in Markdown."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _first_line(value: type[Any]) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
