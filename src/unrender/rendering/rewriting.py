"""Rewrites a template's tree so that operations which Jinja does not report go through filters that count their cost.

Rules: the filters have names that hold a blank, so that no template can call them, and none is missed by accident.
"""

from __future__ import annotations

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from unrender.rendering.cost import Exhausted, Limits
from unrender.rendering.growth import guard_integer

COUNTED, JOINED, WEIGHED, SIZED = "loop counted", "text joined", "operand weighed", "operand sized"
SPREAD, CHECKED = "arguments spread", "large literal checked"
_LARGE = 100
"""Items of a literal that are worth a look at the clock."""


# What makes the compiler copy or write out the names that it knows.
_SCOPES = (
    *(nodes.AssignBlock, nodes.Block, nodes.CallBlock, nodes.FilterBlock, nodes.For, nodes.FromImport, nodes.If),
    *(nodes.Import, nodes.Include, nodes.Macro, nodes.Scope, nodes.With),
)


def check_size(tree: nodes.Template, limits: Limits) -> None:
    """Raise `Exhausted` when compiling the tree would take long."""
    waiting: list[nodes.Node] = [tree]
    names: set[str] = set()
    size = scopes = 0
    while waiting:
        node = waiting.pop()
        size += 1
        scopes += isinstance(node, _SCOPES)
        if isinstance(node, nodes.Name):
            names.add(node.name)
        waiting.extend(node.iter_child_nodes())
    if size > limits.nodes:
        raise Exhausted(f"expected at most {limits.nodes} expressions and statements, found {size}")
    if scopes * len(names) > limits.scopes:
        raise Exhausted(f"expected fewer branches and names, found {scopes} branches and {len(names)} names")


class Rewriting(NodeTransformer):
    """Rewrites loops, `~`, slices, searches and comparisons of two variables into filters that count their cost."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        node.iter = _filtered(node.iter, COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), JOINED)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if not any(_is_constant(side) for side in (node.expr, *(op.expr for op in node.ops))):
            node.expr = _filtered(node.expr, WEIGHED)
            for op in node.ops:
                op.expr = _filtered(op.expr, WEIGHED)
        for op in node.ops:
            if op.op in ("in", "notin") and not _is_constant(op.expr):
                op.expr = _filtered(op.expr, SIZED)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filtered(node.node, SIZED)
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802 -- as Jinja
        return self._spread(node)

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802 -- as Jinja
        return self._spread(node)

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802 -- as Jinja
        return self._spread(node)

    def _spread(self, node: nodes.Call | nodes.Filter | nodes.Test) -> nodes.Node:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = _filtered(node.dyn_args, SPREAD)
        return node

    def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        return _filtered(node, CHECKED) if len(node.items) > _LARGE else node

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        return _filtered(node, CHECKED) if len(node.items) > _LARGE else node

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 -- as Jinja
        if isinstance(node.value, int):
            guard_integer(node.value)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if not _is_constant(node.key):
            node.key = _filtered(node.key, WEIGHED)
        return node


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    assert isinstance(node, nodes.Expr)
    made = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
    made.set_environment(node.environment)  # type: ignore[arg-type]
    if isinstance(node, nodes.List) and node.items:
        node.set_environment(node.items[0].environment)  # type: ignore[arg-type]
    return made


def _is_constant(node: nodes.Expr) -> bool:
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)
