"""Compiles a template's source into code that can't access Python internals or exceed its budget.

Strategy: Jinja's sandbox is configured as in transformers, with an additional `CostBudget`. Every loop iteration, call, filter, operator
and output counts against the budget. Jinja provides hooks for most operations. For other operations, the syntax tree is rewritten before
code is generated (see `Rewriting`).

Rules:
- Templates may change lists and dicts (`ids.append(…)`), since each rendering gets its own copies.
- Nothing is computed at compile time. The value of a constant expression may be huge, and only renderings have a budget.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import replace
from datetime import datetime
from types import BuiltinMethodType, MethodType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes, pass_context, pass_environment
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from unrender.limits import Limits
from unrender.rendering import cost_guards, template_ast
from unrender.rendering.cost import CostBudget
from unrender.rendering.cost_guards import Operands
from unrender.rendering.printing import is_opaque, plain, variables_of

_COMPARING_TESTS = ("==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt", "lessthan", "<=", "le", "in", "filter", "lower", "test", "upper")  # fmt: skip
_CALCULATING_TESTS = ("divisibleby", "even", "odd")
_CONTAINERS = (list, tuple, dict)
_DICT_ATTRIBUTES = frozenset(dir(dict))


class Sandbox(SandboxedEnvironment):
    """The Jinja environment of one template. The budget is separate for each thread."""

    code_generator_class = template_ast.VariableFinder
    intercepted_binops = frozenset({"+", "-", "*", "**", "%"})

    def __init__(self, clock: Callable[[], datetime], limits: Limits) -> None:
        # Turn off `optimized`, because Jinja would otherwise compute `{{ "a" * 10 ** 9 }}` at compile time, without a budget.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, loopcontrols],
            finalize=_finalize,
            optimized=False,
            cache_size=0,
        )
        self.facts: template_ast.Facts = template_ast.Facts()
        self.undeclared: dict[str, bool] = {}
        self._thread = threading.local()
        self._limits = limits
        # The order matters: `tojson` gets a guard like any other filter. The filters that `template_ast` inserts don't need a guard.
        self.filters |= {"attr": _attribute, "random": _first, "tojson": _tojson}
        self.filters = {name: _budgeted_filter(name, function) for name, function in self.filters.items()}
        self.filters |= _REWRITTEN
        self.tests |= {name: _guarded_test(self.tests[name], _weighed) for name in _COMPARING_TESTS}
        self.tests |= {name: _guarded_test(self.tests[name], cost_guards.guard_numeric) for name in _CALCULATING_TESTS}
        del self.globals["lipsum"]  # Remove `lipsum`, because it generates random text.
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_with(clock)

    @property
    def budget(self) -> CostBudget:
        """The budget of the current thread's rendering."""
        budget: CostBudget = self._thread.budget
        return budget

    @budget.setter
    def budget(self, budget: CostBudget) -> None:
        self._thread.budget = budget

    def concat(self, parts: Iterable[str]) -> str:
        """Join the parts of the output of a macro or block."""
        texts = list(parts)
        self.budget.text(sum(map(len, texts)))
        return "".join(texts)

    def printable(self, value: Any) -> Any:
        """Return `value` in printable form, without memory addresses. Raises `Exhausted` if `value` is too large."""
        if isinstance(value, str | int | float):
            return value
        self.budget.weigh(value)
        return plain(value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute `left operator right` if the budget allows it."""
        self.budget.step()
        cost_guards.guard_operator(self.budget, operator, left, right)
        if operator == "%" and isinstance(left, str):
            right = self.printable(right)
        return super().call_binop(context, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`, or the attribute `argument`."""
        self.budget.step()
        if isinstance(argument, tuple):
            self.budget.weigh(argument)
        return self._found(obj, super().getitem(obj, argument))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the attribute of `obj` with this name, or `obj[attribute]` if there is no such attribute."""
        # As usual in Jinja, `message.items` is a method of the dict. But `message.role` can only be an item.
        if type(obj) is dict and attribute not in _DICT_ATTRIBUTES:  # Fast path for most lookups.
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if type(obj) is Namespace:
            variables = variables_of(obj)
            return variables[attribute] if attribute in variables else self.undefined(obj=obj, name=attribute)
        return self._found(obj, super().getattr(obj, attribute))

    def _found(self, owner: Any, value: Any) -> Any:
        """Return an attribute of an opaque value, and measure it if it's a container. Attributes aren't included in the weight of an opaque
        value.
        """
        if isinstance(value, _CONTAINERS) and is_opaque(owner):
            self.budget.weigh(value)
        return value

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may use the attribute `attr`."""
        return super().is_safe_attribute(obj, attr, value) and cost_guards.is_listed(obj, attr)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a replacement for the methods `format` and `format_map` of strings. Returns None for other values."""
        return cost_guards.Formatting(self, value) if cost_guards.is_format_method(value) else None

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063 -- as Jinja
        """Call `__obj` if the budget allows it."""
        budget = __self.budget
        budget.step()
        # Use Jinja's formatter, because `"{0.__class__}".format(x)` would escape the sandbox.
        __obj = __self.wrap_str_format(__obj) or __obj
        # The call `{{ loop(item.children) }}` is also a loop, with one iteration per child.
        if isinstance(__obj, LoopContext):
            args = tuple(_Counted(arg, budget) for arg in args)
        elif isinstance(__obj, BuiltinMethodType | MethodType):
            args = tuple(_listed(arg, budget) for arg in args)
            cost_guards.guard_method(budget, __obj.__name__, Operands(__obj.__self__, args, kwargs))
            # Make the arguments printable, since `", ".join([f])` would print the memory address of `f`.
            if isinstance(__obj.__self__, str):
                args = tuple(map(__self.printable, args))
            budget.check()
        # `dict(o)` hashes keys that the template chooses, and hashes may collide: all multiples of 2 ** 61 - 1 have the same hash.
        elif __obj is dict or __obj is Namespace:
            args = tuple(_listed(arg, budget) for arg in args)
            cost_guards.guard_keys(budget, Operands(None, args, kwargs))
        result = super().call(__context, __obj, *args, **kwargs)
        cost_guards.guard_result(budget, result)
        return result

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        template_ast.check_size(source, self._limits)
        # Read the facts before rewriting, because rewriting adds filters. Only the variables are determined later, when code is generated.
        facts = template_ast.read_facts(source)
        code = super()._generate(template_ast.Rewriting().visit(source), *args, **kwargs)
        local = (name for name, is_local in self.undeclared.items() if is_local)
        self.facts = replace(facts, variables=frozenset(self.undeclared), own=facts.own.union(local))
        return code


class _Generation(Extension):
    """The tag `{% generation %}…{% endgeneration %}`, which marks assistant text for training. Only the content of the tag is rendered."""

    tags = {"generation"}  # noqa: RUF012 -- as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        lineno = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=lineno)


class _Counted:
    """An iterable that counts each item as a step. Unlike a generator, it has a length, which loops need."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Any, budget: CostBudget) -> None:
        self._items = items
        self._budget = budget

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        step = self._budget.step
        for item in self._items:
            step()
            yield item


class _Stream:
    """The result of a lazy filter: an iterator that counts each item as a step."""

    __slots__ = ("_budget", "_items")

    def __init__(self, items: Iterator[Any], budget: CostBudget) -> None:
        self._items = items
        self._budget = budget

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._budget.step()
        return next(self._items)

    def __repr__(self) -> str:
        return "<generator object>"


@pass_environment
def _counted(environment: Sandbox, items: Any) -> _Counted:
    return _Counted(items, environment.budget)


@pass_environment
def _joined(environment: Sandbox, items: list[Any]) -> str:
    environment.budget.step()
    return environment.concat([str(environment.printable(item)) for item in items])


@pass_environment
def _weighed(environment: Sandbox, value: Any) -> Any:
    if isinstance(value, _CONTAINERS):
        environment.budget.weigh(value)
    return value


@pass_environment
def _sized(environment: Sandbox, value: Any) -> Any:
    """Count the cost of searching or slicing `value`, and return `value`."""
    environment.budget.read(len(value) if isinstance(value, str | list | tuple) else 0)
    return value


@pass_environment
def _spread(environment: Sandbox, items: Any) -> list[Any]:
    """Return the arguments that `*items` passes to a call, and count their cost."""
    budget = environment.budget
    # A known length, as in `f(*range(10 ** 9))`, is counted before the arguments are created.
    if isinstance(items, Sized):
        budget.items(len(items))
    return list(_Counted(items, budget))


@pass_environment
def _checked(environment: Sandbox, value: Any) -> Any:
    environment.budget.check()
    return value


_REWRITTEN = {
    template_ast.COUNTED: _counted,
    template_ast.JOINED: _joined,
    template_ast.WEIGHED: _weighed,
    template_ast.SIZED: _sized,
    template_ast.SPREAD: _spread,
    template_ast.CHECKED: _checked,
}


@pass_context
def _finalize(context: Context, value: Any) -> Any:
    """Count an output, and return it in printable form. The parameter `context` keeps Jinja from computing constants at compile time."""
    environment = context.environment
    assert isinstance(environment, Sandbox)
    environment.budget.step()
    return environment.printable(value)


def _listed(value: Any, budget: CostBudget) -> Any:
    return list(_Counted(value, budget)) if isinstance(value, Iterator) else value


def _budgeted_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that runs the guard before the filter and counts the filter's result.

    Jinja passes the context or environment to filters that request it.
    """
    wanted = getattr(getattr(function, "jinja_pass_arg", None), "name", "")

    @pass_context
    def budgeted(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        environment = context.environment
        assert isinstance(environment, Sandbox)
        budget, show = environment.budget, environment.printable
        budget.step()
        budget.check()
        # Convert the result of a lazy filter to a list, because it has no length. For example, convert the result of `map` in `messages |
        # map(…) | sort`.
        if name in cost_guards.LISTING_FILTERS:
            value = _listed(value, budget)
        if name in cost_guards.WRITING_FILTERS:
            value, args = show(value), tuple(map(show, args))
            kwargs = {key: show(item) for key, item in kwargs.items()}
        if guard := cost_guards.FILTERS.get(name):
            guard(budget, Operands(value, args, kwargs))
        first = {"context": context, "eval_context": context.eval_ctx, "environment": environment}.get(wanted)
        result = function(*([first] if wanted else []), value, *args, **kwargs)
        if isinstance(result, Iterator):
            return _Stream(result, budget)
        cost_guards.guard_result(budget, result)
        return result

    return budgeted


def _guarded_test(function: Any, guard: Callable[[Sandbox, Any], Any]) -> Callable[..., bool]:
    passes = hasattr(function, "jinja_pass_arg")

    @pass_environment
    def guarded(environment: Sandbox, *values: Any) -> bool:
        for value in values:
            guard(environment, value)
        return bool(function(*([environment] if passes else []), *values))

    return guarded


@pass_environment
def _attribute(environment: Sandbox, value: Any, name: Any) -> Any:
    """Return an attribute, as in `value | attr(name)`. Items are never returned."""
    name = str(environment.printable(name))
    if not hasattr(value, name):
        return environment.undefined(obj=value, name=name)
    return environment.getattr(value, name)


@pass_environment
def _first(environment: Sandbox, items: Any) -> Any:
    """Return the first item. A random item would make the prompt different each time."""
    return items[0] if items else environment.undefined("No random item, sequence was empty.")


@pass_environment
def _tojson(
    environment: Sandbox,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Encode JSON as transformers does: without HTML escaping, and with non-ASCII characters unchanged.

    The results of `map` and `select` are encoded as lists, as in other engines, because Python's encoder would reject them.
    """
    budget = environment.budget
    value = _listed(value, budget)
    size = budget.weigh(value)
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    # A separator may be long and is repeated for each item: `x | tojson(separators=(long, ":"))`.
    if separators is not None:
        budget.text(size + size * budget.weigh(separators))
    if indent is None:
        return encoder.encode(value)
    # Each level adds more spaces, e.g. with `indent=9999`. The text is therefore counted while it's encoded.
    budget.text(max(0, indent) if isinstance(indent, int) else len(indent))
    return environment.concat(_counted_text(encoder.iterencode(value), budget))


def _counted_text(parts: Iterable[str], budget: CostBudget) -> Iterator[str]:
    for part in parts:
        budget.step()
        budget.text(len(part))
        yield part


@pass_environment
def _raise_exception(environment: Sandbox, message: Any) -> NoReturn:
    raise jinja2.TemplateError(environment.concat([str(environment.printable(message))]))


def _strftime_with(clock: Callable[[], datetime]) -> Callable[[str], str]:
    def strftime_now(format: str) -> str:
        cost_guards.guard_date_format(format)
        return clock().strftime(format)

    return strftime_now
