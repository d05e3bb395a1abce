"""TRL's installed files into pairs: a chat template that it ships, and the response template that it gives to it.

Strategy: which response template a chat template gets is decided by one function of TRL's, which compares texts; it is asked
about every file. The module of that function runs without what it imports from TRL itself, which wants torch.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PACKAGE = "trl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A chat template of TRL's and what its answers are read by."""

    path: Path
    """The chat template."""
    name: str
    """What TRL's source calls the response template."""
    response_template: dict[str, Any]


def installed() -> str:
    """Return the version of the TRL whose files are installed, or "" when there are none."""
    return version(PACKAGE) if importlib.util.find_spec(PACKAGE) else ""


def pairs() -> tuple[Pair, ...]:
    """Return the pairs in the order of the files' names; raises `ModuleNotFoundError` without TRL or transformers."""
    return tuple(_pairs(_folder()))


def _pairs(folder: Path) -> Iterator[Pair]:
    names = _run(folder / "chat_template_utils.py")
    called = {id(value): name for name, value in names.items() if name.endswith("_template")}
    for path in sorted((folder / "chat_templates").glob("*.jinja")):
        tokenizer = SimpleNamespace(chat_template=path.read_text(encoding="utf-8"))
        try:
            names["add_response_schema"](tokenizer)
        except ValueError:
            continue
        given = tokenizer.response_template
        yield Pair(path=path, name=called[id(given)], response_template=given)


def _folder() -> Path:
    # Finding a package does not import it.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModuleNotFoundError("TRL's files are not installed: run `scripts/exports.sh`", name=PACKAGE)
    return Path(found.origin).parent


def _run(path: Path) -> dict[str, Any]:
    """Run a module of TRL's without its relative imports, and return its names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.level)]
    names: dict[str, Any] = {"__file__": str(path), "__name__": path.stem}
    exec(compile(tree, path, "exec"), names)  # noqa: S102 - a pinned package, whose own word on its pairs is asked for
    return names
