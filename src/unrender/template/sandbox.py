"""A template's source into compiled code that can neither reach into Python nor outgrow its budget.

Strategy: Jinja's sandbox, set up as transformers does for chat templates, plus a `Budget` that every loop round, call,
filter, operator and output counts against. Jinja calls back for most of these; for the rest (`for`, `~`, slices, comparisons of
two variables) the tree is rewritten before code is generated, so that they pass through filters that no template names.

Rules:
- Lists and dicts may be changed (`ids.append(…)`): a rendering owns all values it sees, see rendering.py.
- Nothing is computed at compile time: a constant expression may be a bomb, and only a rendering has a budget.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context, pass_environment
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from unrender.template.budget import Budget, Exhausted
from unrender.template.growth import (
    FILTERS,
    Asked,
    guard_filter,
    guard_integer,
    guard_method,
    guard_operator,
    guard_result,
)

# No template can name these: they hold a blank.
_COUNTED, _JOINED, _WEIGHED, _SIZED = "loop counted", "text joined", "operand weighed", "operand sized"
_COMPARING_TESTS = ("==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt", "lessthan", "<=", "le", "in")  # fmt: skip
_CONTAINERS = (list, tuple, dict)
_LONG_NUMBER = re.compile(r"\d{4}")


class Sandbox(SandboxedEnvironment):
    """The environment of one template; renderings in several threads have a budget each."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            finalize=_finalize,
            optimized=False,
            cache_size=0,
        )
        self._thread = threading.local()
        self.filters["tojson"] = _tojson
        self.filters = {name: _budgeted_filter(name, function) for name, function in self.filters.items()}
        self.filters |= {_COUNTED: _counted, _JOINED: _joined, _WEIGHED: _weighed, _SIZED: _sized}
        self.tests |= {name: _budgeted_test(self.tests[name]) for name in _COMPARING_TESTS}
        del self.globals["lipsum"]  # random text: two renderings would differ
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_with(clock)

    @property
    def budget(self) -> Budget:
        """The budget of the rendering that runs in this thread."""
        budget: Budget = self._thread.budget
        return budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._thread.budget = budget

    def concat(self, parts: Iterable[str]) -> str:
        """Join the output of a macro or block."""
        texts = list(parts)
        self.budget.text(sum(map(len, texts)))
        return "".join(texts)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute `left operator right` when there is room for the result."""
        self.budget.step()
        guard_operator(self.budget, operator, left, right)
        return super().call_binop(context, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]` or, failing that, the attribute."""
        if isinstance(argument, tuple):
            self.budget.weigh(argument)
        return super().getitem(obj, argument)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063 -- as Jinja
        """Call what a template calls when there is room for the result."""
        budget = __self.budget
        budget.step()
        if isinstance(__obj, LoopContext):
            args = tuple(_Counted(arg, budget) for arg in args)
        owner = getattr(__obj, "__self__", None)
        if owner is not None and isinstance(__obj, BuiltinMethodType | MethodType):
            args = tuple(_listed(arg, budget) for arg in args)
            guard_method(budget, __obj.__name__, Asked(owner, args, kwargs))
            budget.check()
        elif getattr(__obj, "__name__", "") in ("format", "format_map"):
            # Jinja's own wrapper of `str.format`, made when the attribute was read.
            guard_method(budget, __obj.__name__, Asked(__obj.__wrapped__.__self__, args, kwargs))
        result = super().call(__context, __obj, *args, **kwargs)
        guard_result(budget, result)
        return result

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(_Budgeting().visit(source), *args, **kwargs)


class _Generation(Extension):
    """`{% generation %}…{% endgeneration %}`: marks assistant text for training, renders as what is inside."""

    tags = {"generation"}  # noqa: RUF012 -- as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        lineno = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=lineno)


class _Budgeting(NodeTransformer):
    """Lead loops, `~`, slices, searches and comparisons of two variables through filters that know the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        node.iter = _filtered(node.iter, _COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), _JOINED)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if not any(_is_constant(side) for side in (node.expr, *(op.expr for op in node.ops))):
            node.expr = _filtered(node.expr, _WEIGHED)
            for op in node.ops:
                op.expr = _filtered(op.expr, _WEIGHED)
        for op in node.ops:
            if op.op in ("in", "notin") and not _is_constant(op.expr):
                op.expr = _filtered(op.expr, _SIZED)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filtered(node.node, _SIZED)
        return node

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 -- as Jinja
        if isinstance(node.value, int):
            guard_integer(node.value)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:  # noqa: N802 -- as Jinja
        self.generic_visit(node)
        if not _is_constant(node.key):
            node.key = _filtered(node.key, _WEIGHED)
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


class _Counted:
    """An iterable whose every item is a step."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Any, budget: Budget) -> None:
        self._items = items
        self._budget = budget

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        step = self._budget.step
        for item in self._items:
            step()
            yield item


@pass_environment
def _counted(environment: Sandbox, items: Any) -> _Counted:
    return _Counted(items, environment.budget)


@pass_environment
def _joined(environment: Sandbox, items: list[Any]) -> str:
    environment.budget.step()
    for item in items:
        if isinstance(item, _CONTAINERS):
            environment.budget.weigh(item)
    return environment.concat(map(str, items))


@pass_environment
def _weighed(environment: Sandbox, value: Any) -> Any:
    if isinstance(value, _CONTAINERS):
        environment.budget.weigh(value)
    return value


@pass_environment
def _sized(environment: Sandbox, value: Any) -> Any:
    """Count what is about to be searched or cut."""
    environment.budget.read(len(value) if isinstance(value, str) else 0)
    return value


@pass_context
def _finalize(context: Context, value: Any) -> Any:
    """Count an output. (Asking for the context keeps Jinja from computing constants at compile time.)"""
    environment = context.environment
    assert isinstance(environment, Sandbox)
    environment.budget.step()
    if not isinstance(value, str):
        environment.budget.weigh(value)
    return value


def _listed(value: Any, budget: Budget) -> Any:
    return list(_Counted(value, budget)) if isinstance(value, Iterator) else value


def _budgeted_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the filter with its guard before it and its result counted.

    Jinja passes the context or environment first where the filter asks for it; ours is found through either.
    """
    passes = hasattr(function, "jinja_pass_arg")

    @pass_context
    def budgeted(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        environment = context.environment
        assert isinstance(environment, Sandbox)
        budget = environment.budget
        budget.step()
        budget.check()
        if name in FILTERS:
            value = _listed(value, budget)
        guard_filter(budget, name, Asked(value, args, kwargs))
        result = function(*(_passed(function, context) if passes else ()), value, *args, **kwargs)
        guard_result(budget, result)
        return result

    return budgeted


def _passed(function: Any, context: Context) -> tuple[Any, ...]:
    kind = function.jinja_pass_arg.name
    return ({"context": context, "eval_context": context.eval_ctx, "environment": context.environment}[kind],)


def _budgeted_test(function: Any) -> Callable[..., bool]:
    @pass_environment
    def budgeted(environment: Sandbox, *values: Any) -> bool:
        return bool(function(*(_weighed(environment, value) for value in values)))

    return budgeted


@pass_environment
def _tojson(
    environment: Sandbox,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON as transformers does: nothing escaped for HTML, non-ASCII characters as they are.

    What `map` and `select` return counts as a list, which Python's encoder refuses and other engines take.
    """
    budget = environment.budget
    value = _listed(value, budget)
    size = budget.weigh(value)
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    if separators is not None:
        budget.text(size + size * budget.weigh(separators))
    if indent is None:
        return encoder.encode(value)
    budget.text(indent if isinstance(indent, int) else len(indent))
    return environment.concat(_counted_text(encoder.iterencode(value), budget))


def _counted_text(parts: Iterable[str], budget: Budget) -> Iterator[str]:
    for part in parts:
        budget.step()
        budget.text(len(part))
        yield part


@pass_environment
def _raise_exception(environment: Sandbox, message: Any) -> NoReturn:
    raise jinja2.TemplateError(environment.concat(map(str, [_weighed(environment, message)])))


def _strftime_with(clock: Callable[[], datetime]) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        # `%1000000d` pads, where the C library can.
        if len(format) > 1000 or _LONG_NUMBER.search(format):
            raise Exhausted("strftime_now: expected a format of at most 1000 characters without large widths")
        return clock().strftime(format)

    return strftime_now
