"""Finds what a template's source shows without a rendering: variables, constants and attribute names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.idtracking import VAR_LOAD_RESOLVE

from unrender.freezing import frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Static facts about a template; see the properties of `Template` for what each means."""

    variables: frozenset[str] = frozenset()
    string_constants: tuple[str, ...] = ()
    attribute_names: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)


def read_facts(tree: nodes.Template) -> Facts:
    """Read the facts off a template's tree, except its variables.

    The variables are only known when code is generated.
    """
    found = list(_depth_first(tree))
    return Facts(
        string_constants=tuple(_strings(found)),
        attribute_names=frozenset(_attribute_names(found)),
        defaults=frozen(dict(_defaults(found))),
    )


class VariableFinder(CodeGenerator):
    """Generates a template's code, and finds its undeclared variables.

    Names that the template reads and does not set are added to the environment's `undeclared`.
    """

    def enter_frame(self, frame: Frame) -> None:
        """Record the names that a scope takes from outside the template."""
        super().enter_frame(frame)
        environment: Any = self.environment
        outside = (name for action, name in frame.symbols.loads.values() if action == VAR_LOAD_RESOLVE and name)
        environment.undeclared.update(name for name in outside if name not in environment.globals)


def _defaults(found: Iterable[nodes.Node]) -> Iterator[tuple[str, Any]]:
    """Yield what variables are taken for when they are not there: `x | default(0)`, `x if x is defined else 0`, and so on."""
    for node in found:
        match node:
            case nodes.Filter(node=nodes.Name(name=name), name="default" | "d", args=[value, *_]):
                yield from _constant(name, value)
            case nodes.CondExpr(
                test=nodes.Test(node=nodes.Name(name=name), name="defined"), expr2=nodes.Expr() as value
            ):
                yield from _constant(name, value)
            case nodes.If(
                test=nodes.Not(node=nodes.Test(node=nodes.Name(name=name), name="defined")),
                body=[*_, nodes.Assign(target=nodes.Name(name=target), node=nodes.Expr() as value)],
            ) if name == target:
                yield from _constant(name, value)


def _constant(name: str, value: nodes.Expr) -> Iterator[tuple[str, Any]]:
    """Yield the name with its value where that is written out: as a constant, as a negative number, or as `{}`."""
    match value:
        case nodes.Const():
            yield name, value.value
        case nodes.Neg(node=nodes.Const(value=int() | float() as number)):
            yield name, -number
        case nodes.Dict(items=[]):
            yield name, {}


def _strings(found: Iterable[nodes.Node]) -> Iterator[str]:
    for node in found:
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            yield node.value


def _attribute_names(found: Iterable[nodes.Node]) -> Iterator[str]:
    for node in found:
        match node:
            case nodes.Getattr(attr=name):
                yield name
            case nodes.Getitem(arg=nodes.Const(value=str(name))):
                yield name
            case nodes.Call(node=nodes.Getattr(attr="get"), args=[nodes.Const(value=str(name)), *_]):
                yield name
            case nodes.Compare(expr=nodes.Const(value=str(name)), ops=[nodes.Operand(op="in" | "notin")]):
                # `'reasoning' in message` asks for a key; that it may ask for a piece of text does no harm.
                yield name


def _depth_first(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield a node and all below it, each before what is inside it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += [*found.iter_child_nodes()][::-1]
