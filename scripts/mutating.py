"""Create mutants of a module: the same module with one change.

Strategy: a mutant of a function replaces the code of the live function. Code outside functions isn't changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import environment

SOURCE = environment.ROOT / "src" / "unrender"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module."""

    module: str
    """The module's name without the package, e.g. `analysis.turn`."""
    function: str
    """The enclosing function, e.g. `Reader.read`."""
    line: int
    change: str
    """The original and the new text."""
    number: int
    """The number of the place in the module."""


Place = tuple[ast.AST, str, int | None, ast.expr | ast.stmt, str]
"""Parent, field, index, replacement, and the name of the enclosing function."""

_OPERATORS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    (ast.Eq, ast.NotEq), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.In, ast.NotIn), (ast.Is, ast.IsNot),
    (ast.Add, ast.Sub), (ast.And, ast.Or),
)  # fmt: skip
_NAMES = (
    ("partition", "rpartition"), ("lstrip", "rstrip"), ("removeprefix", "removesuffix"), ("startswith", "endswith"),
    ("find", "rfind"), ("min", "max"), ("any", "all"), ("common_prefix", "common_suffix"), ("closers_of", "openers_of"),
    ("is_tag", "is_word"),
)  # fmt: skip
_SWAPPED: dict[Any, Any] = {left: right for pair in (*_OPERATORS, *_NAMES) for left, right in (pair, pair[::-1])}


def _changed(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:  # noqa: C901 -- a table, by kind of node
    """Yield replacements for a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            yield ast.Compare(node.left, [_SWAPPED[type(op)]()], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(_SWAPPED[type(node.op)](), node.values)
            for at in range(len(node.values)):
                rest = [*node.values[:at], *node.values[at + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.BinOp() if type(node.op) in _SWAPPED:
            yield ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if " " not in value.strip():
            yield ast.Constant("" if value else "x")
        case ast.Attribute(attr=name) if name in _SWAPPED:
            yield ast.Attribute(node.value, _SWAPPED[name], node.ctx)
        case ast.Name(id=name) if name in _SWAPPED and name in ("min", "max", "any", "all"):
            yield ast.Name(_SWAPPED[name], node.ctx)
        case ast.Slice():
            yield from (_without(node, name) for name in ("lower", "upper", "step") if getattr(node, name))
        case ast.comprehension(ifs=[_, *_]):
            yield ast.comprehension(node.target, node.iter, [], node.is_async)  # type: ignore[misc]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.If():
            yield ast.If(ast.Constant(value=False), node.body, node.orelse)
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def _without(node: ast.Slice, name: str) -> ast.Slice:
    """Return a slice without one of its bounds."""
    bounds = {field: None if field == name else getattr(node, field) for field in ("lower", "upper", "step")}
    return ast.Slice(bounds["lower"], bounds["upper"], bounds["step"])


_SKIPPED = {"annotation", "returns", "decorator_list", "type_ignores", "names"}


def places(tree: ast.Module) -> list[Place]:
    """Return all places in a module that a mutant may change, in order."""
    return list(_places(tree, ""))


def _places(parent: ast.AST, function: str) -> Iterator[Place]:
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{parent.name}".removeprefix(".")
    for field, value in ast.iter_fields(parent):
        if field in _SKIPPED or _is_idle(parent):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for position, child in children:
            if isinstance(child, ast.AST):
                yield from ((parent, field, position, other, function) for other in _changed(child))
                yield from _places(child, function)


def _is_idle(node: ast.AST) -> bool:
    """Return whether a node has no effect on tests: docstrings, imports for types."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return docstring or typing


def mutated(tree: ast.Module, place: Place, name: str) -> CodeType:
    """Compile a module with one place changed, and restore the tree."""
    parent, field, position, other, _ = place
    before = getattr(parent, field) if position is None else getattr(parent, field)[position]
    _put(parent, field, position, other)
    try:
        return compile(ast.fix_missing_locations(tree), name, "exec")
    finally:
        _put(parent, field, position, before)


def _put(parent: ast.AST, field: str, position: int | None, node: ast.AST) -> None:
    if position is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[position] = node


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module's functions."""
    found, tree = [], ast.parse(path.read_text("utf-8"))
    for number, (parent, field, position, other, inner) in enumerate(places(tree)):
        function = outermost(inner, tree)
        if not function:
            continue
        node = getattr(parent, field) if position is None else getattr(parent, field)[position]
        change = f"{_shown(node)} -> {_shown(other)}"
        line = getattr(node, "lineno", getattr(parent, "lineno", 0))
        found.append(Mutant(module=name_of(path), function=function, line=line, change=change, number=number))
    return found


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    if isinstance(node, ast.comprehension):
        return ast.unparse(node).strip()
    return ast.unparse(ast.fix_missing_locations(node))


def name_of(path: Path) -> str:
    """Return a module's name without the package."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def outermost(inner: str, tree: ast.Module) -> str:
    """Return the outermost function of nested functions and classes; empty if there is none."""
    names = inner.split(".")
    body: Any = tree
    for depth, name in enumerate(names, 1):
        body = next((node for node in body.body if getattr(node, "name", None) == name), None)
        if isinstance(body, ast.FunctionDef):
            return ".".join(names[:depth])
        if body is None:
            break
    return ""


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def changed_in_place(module: ModuleType, function: str, code: CodeType) -> bool:
    """Replace the code of a live function; return False if that is impossible or has no effect."""
    found: Any = module
    for name in function.split("."):
        found = vars(found).get(name) if found is not None and hasattr(found, "__dict__") else None
    found = getattr(found, "fget", None) or getattr(found, "__wrapped__", found)
    new = next((item for item in _codes(code) if item.co_qualname == function), None)
    if not isinstance(found, FunctionType) or new is None or new == found.__code__:
        return False
    found.__code__ = new
    return True
