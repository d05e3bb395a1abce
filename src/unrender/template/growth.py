"""What a template asks for (an operator, a filter, a method of a string) into how large the result may become.

Rules: a guard measures before the work is done and raises `Exhausted`; it never changes a value. What is not in a table
here cannot return much more than it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from unrender.template.budget import Budget, Exhausted

_TEXT = (str, bytes, bytearray)
_LONGEST_INTEGER = 8192  # bits; Python itself refuses to print much longer ones
_LONGEST_SLOW_TEXT = 100_000  # characters; what searches or wraps needs microseconds for each
_LONGEST_SLOW_LIST = 400_000  # weight; sorting compares everything inside
_NUMBER = re.compile(r"\d+")
# `%(name)-20.3f` and `{name:>20}`, without what cannot hold a width.
_FIELD = re.compile(r"%(?:\([^)%]{0,200}\))?([-+ #0-9.]*)|\{[^{}:]*:([^{}]*)")
_WIDTH_FROM_ARGUMENT = re.compile(r"\*|:[^{}]*\{")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a filter or a method is asked: the value it works on, and its arguments."""

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
        return self.value if isinstance(self.value, _TEXT) else str(self.value)


Guard = Callable[[Budget, Asked], None]


def guard_operator(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Make room for `left operator right`, operator one of `+ * ** %`."""
    if operator == "+":
        _guard_sum(budget, left, right)
    elif operator == "%":
        if isinstance(left, _TEXT):
            _guard_format(budget, Asked(left, (right,)))
    elif isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if bits > _LONGEST_INTEGER:
            raise Exhausted(f"the template makes an integer of more than {_LONGEST_INTEGER} bits")
    elif operator == "*":
        for value, times in ((left, right), (right, left)):
            if isinstance(times, int):
                _guard_repeat(budget, value, times)


def guard_filter(budget: Budget, name: str, asked: Asked) -> None:
    """Make room for what the filter of that name returns."""
    guard = FILTERS.get(name)
    if guard is not None:
        guard(budget, asked)


def guard_method(budget: Budget, name: str, asked: Asked) -> None:
    """Make room for what the method of that name returns; the value asked is its owner, of a built-in type."""
    if isinstance(asked.value, _TEXT):
        budget.read(len(asked.value))
        _guard_numbers(budget, asked)
        guard = TEXT_METHODS.get(name)
        if guard is not None:
            guard(budget, asked)
    elif name == "extend":
        budget.items(len(asked.value) + sum(len(arg) for arg in asked.args if isinstance(arg, Sized)))
    elif name not in _UNCONCERNED:
        _guard_numbers(budget, asked)
        budget.weigh(asked.given)


def guard_result(budget: Budget, result: Any) -> None:
    """Count what a filter or a call has made."""
    if isinstance(result, _TEXT):
        budget.text(len(result))
    elif isinstance(result, list):
        budget.items(len(result))
    elif isinstance(result, int):
        guard_integer(result)


def guard_integer(value: int) -> None:
    """Refuse integers that are so long that calculating with them takes time."""
    if value.bit_length() > _LONGEST_INTEGER:
        raise Exhausted(f"the template makes an integer of more than {_LONGEST_INTEGER} bits")


# Methods of lists and dicts that neither copy, compare nor print their arguments.
_UNCONCERNED = frozenset({"append", "insert", "update", "setdefault", "get", "pop", "copy", "items", "keys", "values"})


def _guard_sum(budget: Budget, left: Any, right: Any) -> None:
    if isinstance(left, _TEXT) and isinstance(right, _TEXT):
        budget.text(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        budget.items(len(left) + len(right))


def _guard_repeat(budget: Budget, value: Any, times: int) -> None:
    if isinstance(value, _TEXT):
        budget.text(len(value) * times)
    elif isinstance(value, list | tuple):
        budget.items(len(value) * times)


def _guard_numbers(budget: Budget, asked: Asked) -> None:
    for value in asked.given:
        if isinstance(value, int):
            budget.text(max(0, value))


def _guard_text(budget: Budget, asked: Asked) -> None:
    if not isinstance(asked.value, str):
        budget.weigh(asked.value)


def _guard_padding(budget: Budget, asked: Asked) -> None:
    """Guard `center`, `indent`, `expandtabs`, where each line or tab may be padded."""
    _guard_text(budget, asked)
    widths = (item if isinstance(item, int) else len(item) for item in asked.given if isinstance(item, int | str))
    budget.text(len(asked.text) + (1 + _count(asked.text, "\n") + _count(asked.text, "\t")) * max([0, *widths]))


def _guard_replace(budget: Budget, asked: Asked) -> None:
    _guard_text(budget, asked)
    old, new, *_ = (*asked.given, "", "")
    budget.text(len(asked.text) + _count(asked.text, old) * budget.weigh(new))


def _count(text: str | bytes | bytearray, part: Any) -> int:
    """Return how often `part` occurs; more often than that when it is not of the text's own type."""
    if isinstance(text, str) and isinstance(part, str):
        return text.count(part)
    if isinstance(text, bytes | bytearray) and isinstance(part, bytes | bytearray):
        return text.count(part)
    return len(text) + 1


def _guard_join(budget: Budget, asked: Asked) -> None:
    """Guard the filter: the value holds the items, the separator is given."""
    count = len(asked.value) if isinstance(asked.value, Sized) else 0
    budget.text(budget.weigh(asked.value) + count * budget.weigh(asked.given))


def _guard_join_method(budget: Budget, asked: Asked) -> None:
    for items in asked.args:
        _guard_join(budget, Asked(items, (asked.value,)))


def _guard_format(budget: Budget, asked: Asked) -> None:
    """Guard `%` and `format`: each field may print all arguments, padded to any number in the format."""
    _guard_text(budget, asked)
    text = str(asked.value)
    fields = [first or second for first, second in _FIELD.findall(text)]
    widths = sum(int(digits[:9]) for field in fields for digits in _NUMBER.findall(field))
    if _WIDTH_FROM_ARGUMENT.search(text):
        widths += len(fields) * sum(abs(item) for item in _flat(asked.given) if isinstance(item, int))
    fields_at_most = text.count("%") + text.count("{")
    budget.text(len(text) + widths + fields_at_most * budget.weigh(asked.given))


def _flat(values: list[Any]) -> list[Any]:
    return [*values, *(item for value in values if isinstance(value, tuple) for item in value)]


def _guard_translate(budget: Budget, asked: Asked) -> None:
    budget.text(len(asked.value) * budget.weigh(asked.given))


def _guard_slow_text(budget: Budget, asked: Asked) -> None:
    size = budget.weigh(asked.value)
    if size > _LONGEST_SLOW_TEXT:
        raise Exhausted(f"the template searches a text of more than {_LONGEST_SLOW_TEXT} characters")
    budget.text(size * (1 + sum(len(item) for item in asked.given if isinstance(item, str))))


def _guard_slow_list(budget: Budget, asked: Asked) -> None:
    if not isinstance(asked.value, str) and budget.weigh(asked.value) > _LONGEST_SLOW_LIST:
        raise Exhausted(f"the template compares more than {_LONGEST_SLOW_LIST} characters of list items")


def _guard_batches(budget: Budget, asked: Asked) -> None:
    for item in asked.given:
        if isinstance(item, int):
            budget.items(item)


FILTERS: Mapping[str, Guard] = MappingProxyType(
    dict.fromkeys(
        ("capitalize", "e", "escape", "forceescape", "lower", "upper", "trim", "string", "truncate", "urlencode"),
        _guard_text,
    )
    | dict.fromkeys(("center", "indent"), _guard_padding)
    | dict.fromkeys(("pprint", "striptags", "title", "urlize", "wordcount", "wordwrap", "xmlattr"), _guard_slow_text)
    | dict.fromkeys(("dictsort", "groupby", "max", "min", "sort", "sum", "unique"), _guard_slow_list)
    | dict.fromkeys(("batch", "slice"), _guard_batches)
    | {"format": _guard_format, "join": _guard_join, "replace": _guard_replace}
)

TEXT_METHODS: Mapping[str, Guard] = MappingProxyType(
    {
        "expandtabs": _guard_padding,
        "format": _guard_format,
        "format_map": _guard_format,
        "join": _guard_join_method,
        "replace": _guard_replace,
        "translate": _guard_translate,
    }
)
