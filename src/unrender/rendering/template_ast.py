"""Reads a template's syntax tree, and rewrites it before it is compiled.

What is read needs no rendering: variables, constants and attribute names (`Facts`). What is rewritten are the operations that
Jinja does not report: they go through filters that count their cost. These filters have names with a blank, so that
no template can call them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.idtracking import VAR_LOAD_RESOLVE
from jinja2.visitor import NodeTransformer

from unrender.json_values import frozen
from unrender.limits import Limits
from unrender.rendering.cost import Exhausted
from unrender.rendering.cost_guards import guard_integer

# What the source shows.


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Static facts about a template."""

    variables: frozenset[str] = frozenset()
    """Names whose value may come from outside; see `Template.reads`."""
    own: frozenset[str] = frozenset()
    """Names that the template sets before it reads them, or reads only in a loop that sets them."""
    sets: frozenset[str] = frozenset()
    """Names that the template sets anywhere, e.g. `message` in a loop over all."""
    string_constants: tuple[str, ...] = ()
    """String constants in the template's expressions, in order of the source, e.g. `</think>`."""
    attribute_names: frozenset[str] = frozenset()
    """Names used as attributes, constant subscripts or in `.get("x")`, e.g. `reasoning_content`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of variables, as far as the source states them as constants."""


def read_facts(tree: nodes.Template) -> Facts:
    """Read the facts off a template's tree, except its variables.

    The variables are only known when code is generated.
    """
    found = list(_depth_first(tree))
    return Facts(
        string_constants=tuple(
            node.value for node in found if isinstance(node, nodes.Const) and isinstance(node.value, str)
        ),
        attribute_names=frozenset(_attribute_names(found)),
        own=frozenset(_set_first(tree)),
        sets=frozenset(node.name for node in found if isinstance(node, nodes.Name) and _is_set(node)),
        defaults=frozen(dict(_defaults(found))),
    )


class VariableFinder(CodeGenerator):
    """Generates a template's code, and finds its undeclared variables.

    Names that the template reads and does not set are added to the environment's `undeclared`, with whether each place
    that reads one is a loop that sets it as well.
    """

    def enter_frame(self, frame: Frame) -> None:
        """Record the names that a scope takes from outside the template."""
        super().enter_frame(frame)
        environment: Any = self.environment
        # `{{ tools }}` is looked up outside; of `{% set n = 0 %}{{ n }}` the name is known inside.
        outside = (name for action, name in frame.symbols.loads.values() if action == VAR_LOAD_RESOLVE and name)
        for name in {*outside} - environment.globals.keys():
            # `{% for m in messages %}{% if last %}…{% endif %}{% set last = m %}{% endfor %}`: what a loop sets is its own.
            is_local = frame.loop_frame and name in frame.symbols.stores
            environment.undeclared[name] = environment.undeclared.get(name, True) and is_local


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
                # `{% if x is not defined %}{% set x = 0 %}{% endif %}`
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


def _set_first(tree: nodes.Template) -> Iterator[str]:
    """Yield the names that the template sets before it reads them, which no caller is meant to set."""
    # `{% if x is not defined %}{% set x = 0 %}{% endif %}` reads first. A macro is called after all that is set around it.
    ordered = nodes.Template(sorted(tree.body, key=lambda node: isinstance(node, nodes.Macro)))
    names = [node for node in _depth_first(ordered) if isinstance(node, nodes.Name)]
    first = {name.name: name for name in reversed(names)}
    yield from filter(lambda name: _is_set(first[name]), first)


def _is_set(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.ctx != "load"


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
    """Yield a node and all below it, each before what is inside it, and names that are set after what they are set to."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        children = [*found.iter_child_nodes()][::-1]
        waiting += sorted(children, key=lambda child: not _is_set(child))


# What the sandbox changes.

COUNTED, JOINED, WEIGHED, SIZED = "loop counted", "text joined", "operand weighed", "operand sized"
SPREAD, CHECKED = "arguments spread", "large literal checked"
_LARGE = 100
"""Items of a literal that are worth a look at the clock."""

# What makes the compiler copy or write out the names that it knows: 1,000 names in 1,000 branches take it minutes.
_SCOPES = (
    *(nodes.AssignBlock, nodes.Block, nodes.CallBlock, nodes.FilterBlock, nodes.For, nodes.FromImport, nodes.If),
    *(nodes.Import, nodes.Include, nodes.Macro, nodes.Scope, nodes.With),
)


def check_size(tree: nodes.Template, limits: Limits) -> None:
    """Raise `Exhausted` when compiling the tree would take long."""
    found = list(_depth_first(tree))
    size, scopes = len(found), sum(isinstance(node, _SCOPES) for node in found)
    names = {node.name for node in found if isinstance(node, nodes.Name)}
    if size > limits.template_nodes:
        raise Exhausted(f"expected at most {limits.template_nodes} expressions and statements, found {size}")
    if scopes * len(names) > limits.template_scopes:
        raise Exhausted(f"expected fewer branches and names, found {scopes} branches and {len(names)} names")


class Rewriting(NodeTransformer):
    """Rewrites loops, `~`, slices, searches and comparisons of two variables into filters that count their cost."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Rewrite the children of a node, and then the node itself."""
        self.generic_visit(node, *args, **kwargs)
        match node:
            # `{% for i in range(100000) %}{% endfor %}` calls nothing that Jinja would report.
            case nodes.For():
                node.iter = _filtered(node.iter, COUNTED)
            case nodes.Concat():
                # `a ~ b ~ c` becomes one text: its parts are counted before they are joined.
                return _filtered(nodes.List(node.nodes, lineno=node.lineno), JOINED)
            case nodes.Compare():
                _rewrite_comparison(node)
            case nodes.Getitem(arg=nodes.Slice()):
                # `text[::-1]` copies all of the text.
                node.node = _filtered(node.node, SIZED)
            case nodes.Call() | nodes.Filter() | nodes.Test() if node.dyn_args is not None:
                node.dyn_args = _filtered(node.dyn_args, SPREAD)
            case nodes.List() | nodes.Dict() if len(node.items) > _LARGE:
                return _filtered(node, CHECKED)
            case nodes.Const(value=int()):
                # `{% set n = 999…9 %}`: nothing calculates a literal, so no guard of an operator would measure it.
                guard_integer(node.value)
            case nodes.Pair() if not _is_constant(node.key):
                # `{pair: 1}` hashes all of the pair.
                node.key = _filtered(node.key, WEIGHED)
        return node


def _rewrite_comparison(node: nodes.Compare) -> None:
    # `x == "a"` stops at the first letter that differs, and a constant is short; `x == y` may compare two long lists.
    if not any(_is_constant(side) for side in (node.expr, *(op.expr for op in node.ops))):
        node.expr = _filtered(node.expr, WEIGHED)
        for op in node.ops:
            op.expr = _filtered(op.expr, WEIGHED)
    # `"</think>" in content` reads all of the content.
    for op in node.ops:
        if op.op in ("in", "notin") and not _is_constant(op.expr):
            op.expr = _filtered(op.expr, SIZED)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    assert isinstance(node, nodes.Expr)
    made = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
    made.set_environment(node.environment)  # type: ignore[arg-type]
    # The list of a `~` was made just now, and the compiler asks every node for its environment.
    if isinstance(node, nodes.List) and node.items:
        node.set_environment(node.items[0].environment)  # type: ignore[arg-type]
    return made


def _is_constant(node: nodes.Expr) -> bool:
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)
