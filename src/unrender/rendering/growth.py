"""Guards the operators, filters, tests and format strings of a template: measures their cost before they are carried out.

Rules:
- A guard measures before the work is done. It raises `Exhausted` where that is too much, and `TypeError` where the operation
  has no meaning that a template could want. It never changes a value.
- What is not in a table here costs and returns no more than it was given.
- `%` is scanned as Python scans it, and all widths and precisions are added up before. `str.format` is carried out by
  Jinja's sandboxed formatter, which asks here before it writes a field: by then nested fields are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from types import BuiltinMethodType, MappingProxyType, MethodType
from typing import Any

from jinja2.sandbox import SandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from unrender.limits import (
    LONGEST_INTEGER,
    LONGEST_SLOW_LIST,
    LONGEST_SLOW_TEXT,
    MOST_ODD_KEYS,
    MOST_ROUNDED_DIGITS,
    MOST_TEXT_COMPARISONS,
)
from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.printing import plain

TEXT = (str, bytes, bytearray)

_INTEGER_ERROR = f"the template makes an integer of more than {LONGEST_INTEGER} bits"


@dataclass(frozen=True, slots=True)
class Operands:
    """The value that a filter or a method works on, and its arguments."""

    value: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> list[Any]:
        """All arguments."""
        return [*self.args, *self.kwargs.values()]

    @property
    def text(self) -> str | bytes | bytearray:
        """The value as text."""
        return self.value if isinstance(self.value, TEXT) else str(self.value)

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return the argument at this position or with this name."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


Guard = Callable[[CostBudget, Operands], None]


def guard_operator(budget: CostBudget, operator: str, left: Any, right: Any) -> None:
    """Count the result of `left operator right`, before it is computed; the operator is one of `+ - * ** %`."""
    if isinstance(left, int) and isinstance(right, int):
        _guard_integers(operator, left, right)
    elif operator == "+":
        _guard_sum(budget, left, right)
    elif operator == "%" and isinstance(left, TEXT):
        guard_percent(budget, Operands(left, (right,)))
    elif operator == "*":
        for value, times in ((left, right), (right, left)):
            if isinstance(times, int):
                _guard_repeat(budget, value, times)


def guard_filter(budget: CostBudget, name: str, asked: Operands) -> None:
    """Count the result of the filter `name`, before it is computed."""
    guard = FILTERS.get(name)
    if guard is not None:
        guard(budget, asked)


def guard_result(budget: CostBudget, result: Any) -> None:
    """Count the result of a filter or a call."""
    if isinstance(result, TEXT):
        budget.text(len(result))
    elif isinstance(result, list | tuple):
        budget.items(len(result))
    elif isinstance(result, int):
        guard_integer(result)


def guard_integer(value: int) -> None:
    """Refuse an integer that is so long that calculating with it takes time."""
    if value.bit_length() > LONGEST_INTEGER:
        raise Exhausted(_INTEGER_ERROR)


def guard_keys(budget: CostBudget, asked: Operands) -> None:
    """Guard `dict(…)`, `namespace(…)` and `update`, which turn their arguments into keys and values."""
    odd = 0
    for items in asked.given:
        budget.weigh(items)
        if not isinstance(items, Mapping) and isinstance(items, Iterable):
            odd += sum(not isinstance(pair[0], str) for pair in items if isinstance(pair, list | tuple) and pair)
        elif isinstance(items, Mapping):
            odd += sum(not isinstance(key, str) for key in items)
    if odd > MOST_ODD_KEYS:
        raise Exhausted(f"the template hashes more than {MOST_ODD_KEYS} keys that are not text at once")


def guard_comparisons(text: str | bytes | bytearray, part: Any) -> None:
    """Refuse to search a long text for a long part."""
    if isinstance(part, TEXT) and len(text) * len(part) > MOST_TEXT_COMPARISONS:
        raise Exhausted(f"the template compares more than {MOST_TEXT_COMPARISONS} characters at once")


def guard_padding(budget: CostBudget, asked: Operands) -> None:
    """Guard `center`, `indent`, `expandtabs`, where each line or tab may be padded."""
    widths = (item if isinstance(item, int) else len(item) for item in asked.given if isinstance(item, int | str))
    text = asked.text
    budget.text(len(text) + (1 + count_of(text, "\n") + count_of(text, "\t")) * max([0, *widths]))


def guard_replace(budget: CostBudget, asked: Operands) -> None:
    """Guard `replace`, the filter and the method."""
    # Text grows most where a short piece is replaced: `"aaaa" | replace("a", x * 1000)`.
    old, new, *_ = (*asked.given, "", "")
    budget.text(len(asked.text) + count_of(asked.text, old) * budget.weigh(new))


def guard_join(budget: CostBudget, asked: Operands) -> None:
    """Guard the filter `join`: the value holds the items, and the argument is the separator."""
    count = len(asked.value) if isinstance(asked.value, Sized) else 0
    budget.items(count)
    budget.text(budget.weigh(asked.value) + count * budget.weigh(asked.given))


def guard_percent(budget: CostBudget, asked: Operands) -> None:
    """Guard `%`: each field may print all arguments, padded to the widths in the text."""
    text = asked.value if isinstance(asked.value, str) else bytes(asked.value).decode("latin-1")
    # In `"%*d" % (9999999, 1)` the width is an argument. Which one is not worked out: all integers count for each `*`.
    from_arguments = sum(abs(item) for item in _flat(asked.given) if isinstance(item, int))
    widths = sum(from_arguments if width is None else width for width in percent_widths(text))
    budget.text(len(text) + widths + text.count("%") * budget.weigh(asked.given))


def guard_slow_text(budget: CostBudget, asked: Operands) -> None:
    """Guard filters and methods that take microseconds for each character."""
    size = budget.weigh(asked.value)
    if size > LONGEST_SLOW_TEXT:
        raise Exhausted(f"the template searches a text of more than {LONGEST_SLOW_TEXT} characters")
    budget.text(size * (1 + sum(len(item) for item in asked.given if isinstance(item, str))))


def guard_numeric(value: Any) -> None:
    """Refuse to calculate with a text: `%` would format it, and `*` would repeat it."""
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, found {type(value).__name__}")


def guard_slow_list(budget: CostBudget, asked: Operands) -> None:
    """Guard filters and methods that sort or compare items."""
    _guard_items(budget, asked)
    if budget.weigh(asked.value) > LONGEST_SLOW_LIST:
        raise Exhausted(f"the template compares more than {LONGEST_SLOW_LIST} characters of list items")


def count_of(text: str | bytes | bytearray, part: Any) -> int:
    """Return how often `part` occurs; the upper bound if the two are of different types."""
    if isinstance(text, str) and isinstance(part, str):
        return text.count(part)
    if isinstance(text, bytes | bytearray) and isinstance(part, bytes | bytearray):
        return text.count(part)
    return len(text) + 1


def _guard_integers(operator: str, left: int, right: int) -> None:
    bits, more = left.bit_length(), right.bit_length()
    # The length of a product or a power is known before it is calculated: `2 ** 10` has at most 2 * 10 bits.
    made = {"**": bits * right, "*": bits + more}.get(operator, 1 + max(bits, more))
    if made > LONGEST_INTEGER:
        raise Exhausted(_INTEGER_ERROR)


def _guard_sum(budget: CostBudget, left: Any, right: Any) -> None:
    if isinstance(left, TEXT) and isinstance(right, TEXT):
        budget.text(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        budget.items(len(left) + len(right))


def _guard_repeat(budget: CostBudget, value: Any, times: int) -> None:
    if isinstance(value, TEXT):
        budget.text(max(0, len(value) * times))
    elif isinstance(value, list | tuple):
        budget.items(max(0, len(value) * times))


def _guard_text(budget: CostBudget, asked: Operands) -> None:
    budget.read(budget.weigh(asked.value))


def _guard_items(budget: CostBudget, asked: Operands) -> None:
    """Guard what walks over items in one go, or splits the name of an attribute."""
    if isinstance(asked.value, Sized):
        budget.items(len(asked.value))
    if any(isinstance(item, str) and len(item) > LONGEST_SLOW_TEXT for item in asked.given):
        raise Exhausted(f"the template looks up a name of more than {LONGEST_SLOW_TEXT} characters")


def _guard_unique(budget: CostBudget, asked: Operands) -> None:
    guard_slow_list(budget, asked)
    if isinstance(asked.value, Iterable) and not isinstance(asked.value, str):
        guard_keys(budget, Operands(None, ([(item,) for item in asked.value],)))


def _guard_batches(budget: CostBudget, asked: Operands) -> None:
    _guard_items(budget, asked)
    for item in asked.given:
        if isinstance(item, int):
            budget.items(max(0, item))


def _guard_round(budget: CostBudget, asked: Operands) -> None:
    guard_numeric(asked.value)
    budget.step()
    if any(isinstance(item, int) and abs(item) > MOST_ROUNDED_DIGITS for item in asked.given):
        raise Exhausted(f"the template rounds to more than {MOST_ROUNDED_DIGITS} digits")


def _flat(values: list[Any]) -> list[Any]:
    return [*values, *(item for value in values if isinstance(value, tuple) for item in value)]


_TEXT_FILTERS = ("capitalize", "e", "escape", "forceescape", "lower", "safe", "string", "trim", "truncate", "upper")
_SLOW_TEXT_FILTERS = ("pprint", "striptags", "title", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr")
_WALKING_FILTERS = ("first", "list", "map", "reject", "rejectattr", "reverse", "select", "selectattr")
_SLOW_LIST_FILTERS = ("dictsort", "groupby", "max", "min", "sort", "sum")
WRITING_FILTERS = frozenset({*_TEXT_FILTERS, *_SLOW_TEXT_FILTERS, "center", "format", "indent", "join", "replace"})
"""Filters that make text of their value and arguments."""

FILTERS: Mapping[str, Guard] = MappingProxyType(
    dict.fromkeys(_TEXT_FILTERS, _guard_text)
    | dict.fromkeys(_SLOW_TEXT_FILTERS, guard_slow_text)
    | dict.fromkeys(_WALKING_FILTERS, _guard_items)
    | dict.fromkeys(_SLOW_LIST_FILTERS, guard_slow_list)
    | dict.fromkeys(("center", "indent"), guard_padding)
    | dict.fromkeys(("batch", "slice"), _guard_batches)
    | {
        "format": guard_percent,
        "join": guard_join,
        "replace": guard_replace,
        "round": _guard_round,
        "unique": _guard_unique,
    }
)
LISTING_FILTERS = frozenset(FILTERS) - {"map", "reject", "rejectattr", "select", "selectattr"}
"""Filters whose guard wants to see all items; the others pass them on one by one."""


# Format strings.

_NUMBER = re.compile(r"\d+")
_DIGITS = 12
"""Digits of a width that are read; a longer one is too large anyway."""
_CONVERSION = re.compile(r"[-+ #0]*(\*|\d*)(?:\.(\*|\d*))?")
_PARENTHESIS = re.compile(r"[()]")


class Formatting:
    """The `format` or `format_map` of one text; a template gets it in place of Python's own method."""

    __slots__ = ("_budget", "_environment", "_is_map", "_text")

    def __init__(
        self, environment: SandboxedEnvironment, budget: Callable[[], CostBudget], text: str, name: str
    ) -> None:
        self._environment = environment
        self._budget = budget
        self._text = text
        self._is_map = name == "format_map"

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """Return the formatted text, of the type of the format string."""
        budget = self._budget()
        budget.read(len(self._text))
        if self._is_map:
            if kwargs or len(args) != 1 or not isinstance(args[0], Mapping):
                raise TypeError("format_map() takes exactly one mapping")
            return self._formatted(budget, (), args[0])
        return self._formatted(budget, args, kwargs)

    def _formatted(self, budget: CostBudget, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        formatter = _formatter(self._environment, budget, self._text)
        return type(self._text)(formatter.vformat(self._text, args, kwargs))

    def __repr__(self) -> str:
        return f"<method {'format_map' if self._is_map else 'format'}>"


def format_method(value: Any) -> tuple[str, str] | None:
    """Return the text and the method's name when `value` is the `format` or `format_map` of a text; else None."""
    if not isinstance(value, BuiltinMethodType | MethodType) or value.__name__ not in ("format", "format_map"):
        return None
    return (value.__self__, value.__name__) if isinstance(value.__self__, str) else None


def percent_widths(text: str) -> Iterator[int | None]:
    """Yield every width and precision in a format string for `%`; None for `*`, which stands for an argument."""
    at = text.find("%")
    while at >= 0:
        conversion = _CONVERSION.match(text, _end_of_name(text, at + 1))
        assert conversion is not None
        yield from (None if part == "*" else int(part[:_DIGITS]) for part in conversion.groups() if part)
        at = text.find("%", conversion.end() + 1)


def _end_of_name(text: str, at: int) -> int:
    """Return where the `(name)` that begins at `at` ends; parentheses inside it are counted, as Python does."""
    if not text.startswith("(", at):
        return at
    depth = 0
    for parenthesis in _PARENTHESIS.finditer(text, at):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return parenthesis.end()
    return len(text)


class _Measured:
    """Measures a field before it is written; to be mixed into a formatter."""

    budget: CostBudget

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(self._printable(value), conversion)  # type: ignore[misc]

    def format_field(self, value: Any, format_spec: str) -> Any:
        widths = sum(int(digits[:_DIGITS]) for digits in _NUMBER.findall(format_spec))
        self.budget.text(widths)
        written = super().format_field(self._printable(value), format_spec)  # type: ignore[misc]
        self.budget.step()
        self.budget.text(len(written))
        return written

    def _printable(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        self.budget.weigh(value)
        return plain(value)


class _Formatter(_Measured, SandboxedFormatter):
    pass


class _EscapeFormatter(_Measured, SandboxedEscapeFormatter):
    pass


def _formatter(environment: SandboxedEnvironment, budget: CostBudget, text: str) -> _Formatter | _EscapeFormatter:
    made: _Formatter | _EscapeFormatter
    made = _EscapeFormatter(environment, escape=text.escape) if isinstance(text, Markup) else _Formatter(environment)
    made.budget = budget
    return made
