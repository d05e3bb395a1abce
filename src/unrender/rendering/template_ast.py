"""Analyzes and rewrites a template's syntax tree before it's compiled.

Variables, constants and attribute names (`Facts`) are determined without rendering. Operations that Jinja doesn't report are replaced by
filters that count their cost. The names of these filters contain a space, so templates can't use them.
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

# Static facts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Static facts about a template."""

    variables: frozenset[str] = frozenset()
    """Variables whose value may come from the caller. See `Template.reads`."""
    own: frozenset[str] = frozenset()
    """Variables that the template sets before it reads them, or that are both set and read only in loops."""
    sets: frozenset[str] = frozenset()
    """All variables that the template sets, including loop variables such as `message`."""
    string_constants: tuple[str, ...] = ()
    """String constants in expressions, in source order, e.g. `</think>`."""
    attribute_names: frozenset[str] = frozenset()
    """Names that are used as attributes, as constant subscripts or in `.get("x")`, e.g. `reasoning_content`."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Constant default values of variables."""


def read_facts(tree: nodes.Template) -> Facts:
    """Return the facts about a template, except its variables, which are only known after code generation."""
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

    Each undeclared variable is a key in `environment.undeclared`. The value is True if each scope that reads the variable is a loop that
    also sets it.
    """

    def enter_frame(self, frame: Frame) -> None:
        """Record the variables of a scope that come from outside the template."""
        super().enter_frame(frame)
        environment: Any = self.environment
        # In `{{ tools }}`, the variable comes from the caller. In `{% set n = 0 %}{{ n }}`, `n` is a local variable.
        outside = (name for action, name in frame.symbols.loads.values() if action == VAR_LOAD_RESOLVE and name)
        for name in {*outside} - environment.globals.keys():
            # A variable that a loop both reads and sets is local: `{% if last %}…{% endif %}{% set last = m %}`.
            is_local = frame.loop_frame and name in frame.symbols.stores
            environment.undeclared[name] = environment.undeclared.get(name, True) and is_local


def _defaults(found: Iterable[nodes.Node]) -> Iterator[tuple[str, Any]]:
    """Yield variables with their default values, as in `x | default(0)` or `x if x is defined else 0`."""
    for node in found:
        match node:
            case nodes.Filter(node=nodes.Name(name=name), name="default" | "d", args=[value, *_]):
                yield from _constant(name, value)
            case nodes.CondExpr(
                test=nodes.Test(node=nodes.Name(name=name), name="defined"), expr2=nodes.Expr() as value
            ):
                yield from _constant(name, value)
            case nodes.If(
                # Matches `{% if x is not defined %}{% set x = 0 %}{% endif %}`.
                test=nodes.Not(node=nodes.Test(node=nodes.Name(name=name), name="defined")),
                body=[*_, nodes.Assign(target=nodes.Name(name=target), node=nodes.Expr() as value)],
            ) if name == target:
                yield from _constant(name, value)


def _constant(name: str, value: nodes.Expr) -> Iterator[tuple[str, Any]]:
    """Yield the name and value if the value is a constant, a negative number, or `{}`."""
    match value:
        case nodes.Const():
            yield name, value.value
        case nodes.Neg(node=nodes.Const(value=int() | float() as number)):
            yield name, -number
        case nodes.Dict(items=[]):
            yield name, {}


def _set_first(tree: nodes.Template) -> Iterator[str]:
    """Yield the variables that the template sets before it reads them. Callers aren't supposed to set these variables."""
    # Macros are visited last, since they're called after the assignments around them. In `{% if x is not defined %}{% set x = 0 %}{% endif
    # %}`, `x` is read first, so callers may set it.
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
                # `'reasoning' in message` usually looks up a key. If `message` is a string, no key is looked up, but the additional name
                # does no harm.
                yield name


def _depth_first(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield a node and all its descendants, parents first. In an assignment, the value comes before the target."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        children = [*found.iter_child_nodes()][::-1]
        waiting += sorted(children, key=lambda child: not _is_set(child))


# Rewriting.

COUNTED, JOINED, WEIGHED, SIZED = "loop counted", "text joined", "operand weighed", "operand sized"
SPREAD, CHECKED = "arguments spread", "large literal checked"
_LARGE = 100
"""Maximum number of items in a literal that is created without checking the clock."""

# For each of the following nodes, the compiler copies or writes all names known so far. A template with 1,000 names in 1,000 branches would
# take minutes to compile.
_SCOPES = (
    *(nodes.AssignBlock, nodes.Block, nodes.CallBlock, nodes.FilterBlock, nodes.For, nodes.FromImport, nodes.If),
    *(nodes.Import, nodes.Include, nodes.Macro, nodes.Scope, nodes.With),
)


def check_size(tree: nodes.Template, limits: Limits) -> None:
    """Raise `Exhausted` if compiling the tree would take too long."""
    found = list(_depth_first(tree))
    size, scopes = len(found), sum(isinstance(node, _SCOPES) for node in found)
    names = {node.name for node in found if isinstance(node, nodes.Name)}
    if size > limits.template_nodes:
        raise Exhausted(f"expected at most {limits.template_nodes} expressions and statements, found {size}")
    if scopes * len(names) > limits.template_scopes:
        raise Exhausted(f"expected fewer branches and names, found {scopes} branches and {len(names)} names")


class Rewriting(NodeTransformer):
    """Rewrites loops, `~`, slices, searches and comparisons of two variables so that filters count their cost."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Rewrite the child nodes, and then the node itself."""
        self.generic_visit(node, *args, **kwargs)
        match node:
            # Jinja doesn't report the iterations of a loop such as `{% for i in range(100000) %}{% endfor %}`, so count them.
            case nodes.For():
                node.iter = _filtered(node.iter, COUNTED)
            case nodes.Concat():
                # Count the parts of `a ~ b ~ c` before they're joined.
                return _filtered(nodes.List(node.nodes, lineno=node.lineno), JOINED)
            case nodes.Compare():
                _rewrite_comparison(node)
            case nodes.Getitem(arg=nodes.Slice()):
                # A slice such as `text[::-1]` may copy the complete text, so count the text's length.
                node.node = _filtered(node.node, SIZED)
            case nodes.Call() | nodes.Filter() | nodes.Test() if node.dyn_args is not None:
                node.dyn_args = _filtered(node.dyn_args, SPREAD)
            case nodes.List() | nodes.Dict() if len(node.items) > _LARGE:
                return _filtered(node, CHECKED)
            case nodes.Const(value=int()):
                # The guards of operators don't measure huge integers such as `{% set n = 999…9 %}`, so measure them here.
                guard_integer(node.value)
            case nodes.Pair() if not _is_constant(node.key):
                # A key such as `pair` in `{pair: 1}` may be large, and is hashed completely.
                node.key = _filtered(node.key, WEIGHED)
        return node


def _rewrite_comparison(node: nodes.Compare) -> None:
    # A comparison with a constant, as in `x == "a"`, is cheap because constants are short, but `x == y` may compare two long lists.
    if not any(_is_constant(side) for side in (node.expr, *(op.expr for op in node.ops))):
        node.expr = _filtered(node.expr, WEIGHED)
        for op in node.ops:
            op.expr = _filtered(op.expr, WEIGHED)
    # A test such as `"</think>" in content` may search all of `content`, so count its length.
    for op in node.ops:
        if op.op in ("in", "notin") and not _is_constant(op.expr):
            op.expr = _filtered(op.expr, SIZED)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    assert isinstance(node, nodes.Expr)
    made = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
    made.set_environment(node.environment)  # type: ignore[arg-type]
    # Set the environment of the new list for `~`, because the compiler needs the environment of every node.
    if isinstance(node, nodes.List) and node.items:
        node.set_environment(node.items[0].environment)  # type: ignore[arg-type]
    return made


def _is_constant(node: nodes.Expr) -> bool:
    if isinstance(node, nodes.List | nodes.Tuple):
        return all(isinstance(item, nodes.Const) for item in node.items)
    return isinstance(node, nodes.Const)
