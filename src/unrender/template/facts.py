"""A template's source into what can be known without rendering it: its variables, constants and attribute names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
from jinja2 import meta, nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Static facts about a template; see the properties of `Template` for what each means."""

    variables: frozenset[str]
    string_constants: tuple[str, ...]
    attribute_names: frozenset[str]
    defaults: Mapping[str, Any]


def read_facts(environment: jinja2.Environment, source: str) -> Facts:
    """Read the facts off a source that is known to compile in that environment."""
    tree = environment.parse(source)
    found = list(_depth_first(tree))
    strings, attributes = tuple(_strings(found)), frozenset(_attribute_names(found))
    # Looking for variables folds constant lists, and the strings in them are found no more.
    variables = frozenset(meta.find_undeclared_variables(tree))
    defaults = dict(_defaults(_depth_first(tree)))
    return Facts(variables=variables, string_constants=strings, attribute_names=attributes, defaults=defaults)


def _defaults(found: Iterable[nodes.Node]) -> Iterator[tuple[str, Any]]:
    """Yield what variables are taken for when they are not there: `x | default(0)`, `x if x is defined else 0`, and so on."""
    for node in found:
        match node:
            case nodes.Filter(node=nodes.Name(name=name), name="default" | "d", args=[nodes.Const(value=value), *_]):
                yield name, value
            case nodes.CondExpr(
                test=nodes.Test(node=nodes.Name(name=name), name="defined"), expr2=nodes.Const(value=value)
            ):
                yield name, value
            case nodes.If(
                test=nodes.Not(node=nodes.Test(node=nodes.Name(name=name), name="defined")),
                body=[*_, nodes.Assign(target=nodes.Name(name=target), node=nodes.Const(value=value))],
            ) if name == target:
                yield name, value


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
