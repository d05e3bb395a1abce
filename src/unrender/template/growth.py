"""What a template asks for (an operator, a filter, a method of a string) into how large the result may become.

Rules: a guard measures before the work is done and raises `Exhausted`; it never changes a value. What is not in a table
here cannot return much more than it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from types import MappingProxyType
from typing import Any

from unrender.template.budget import Budget, Exhausted

Guard = Callable[[Budget, Any, tuple[Any, ...], dict[str, Any]], None]

_TEXT = (str, bytes, bytearray)
_LONGEST_INTEGER = 8192  # bits; Python itself refuses to print much longer ones
_LONGEST_SLOW_TEXT = 100_000  # characters; what searches or wraps needs microseconds for each
_LONGEST_SLOW_LIST = 400_000  # weight; sorting compares everything inside
_NUMBER = re.compile(r"\d+")
# `%(name)-20.3f` and `{name:>20}`, without what cannot hold a width.
_FIELD = re.compile(r"%(?:\([^)%]{0,200}\))?([-+ #0-9.]*)|\{[^{}:]*:([^{}]*)")
_WIDTH_FROM_ARGUMENT = re.compile(r"\*|:[^{}]*\{")


def guard_operator(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Make room for `left operator right`, operator one of `+ * ** %`."""
    if operator == "+":
        _guard_sum(budget, left, right)
    elif operator == "%":
        if isinstance(left, _TEXT):
            _guard_format(budget, left, (right,), {})
    elif isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if bits > _LONGEST_INTEGER:
            raise Exhausted(f"the template makes an integer of more than {_LONGEST_INTEGER} bits")
    elif operator == "*":
        for value, times in ((left, right), (right, left)):
            if isinstance(times, int):
                _guard_repeat(budget, value, times)


def guard_filter(budget: Budget, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make room for `value | name(*args, **kwargs)`."""
    guard = FILTERS.get(name)
    if guard is not None:
        guard(budget, value, args, kwargs)


def guard_method(budget: Budget, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make room for `owner.name(*args, **kwargs)`, a method of a built-in type."""
    if isinstance(owner, _TEXT):
        budget.text(len(owner))
        _guard_numbers(budget, args, kwargs)
        guard = TEXT_METHODS.get(name, _guard_text)
        guard(budget, owner, args, kwargs)
    elif name == "extend":
        budget.items(len(owner) + sum(len(arg) for arg in args if isinstance(arg, Sized)))
    elif name not in _MUTATORS:
        _guard_numbers(budget, args, kwargs)
        budget.weigh([*args, *kwargs.values()])


def guard_result(budget: Budget, result: Any) -> None:
    """Count what a filter or a call has made."""
    if isinstance(result, _TEXT):
        budget.text(len(result))
    elif isinstance(result, list):
        budget.items(len(result))


# Methods of lists and dicts that neither copy, compare nor print their arguments.
_MUTATORS = frozenset({"append", "insert", "update", "setdefault", "get", "pop", "copy", "items", "keys", "values"})


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


def _guard_numbers(budget: Budget, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, int):
            budget.text(max(0, value))


def _guard_text(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(value, str):
        budget.weigh(value)


def _guard_padding(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _guard_text(budget, value, args, kwargs)
    given = (*args, *kwargs.values())
    width = max([0, *(item if isinstance(item, int) else len(item) for item in given if isinstance(item, int | str))])
    text = value if isinstance(value, _TEXT) else str(value).encode()
    # Both may be padded: each line (`indent`) and each tab (`expandtabs`).
    line, tab = ("\n", "\t") if isinstance(text, str) else (b"\n", b"\t")
    budget.text(len(text) + (1 + text.count(line) + text.count(tab)) * width)  # type: ignore[arg-type]


def _guard_replace(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _guard_text(budget, value, args, kwargs)
    text = value if isinstance(value, _TEXT) else str(value)
    old = args[0] if args else kwargs.get("old", kwargs.get("s"))
    new = args[1] if len(args) > 1 else kwargs.get("new", "")
    if isinstance(old, type(text)):
        budget.text(len(text) + text.count(old) * budget.weigh(new))  # type: ignore[arg-type]
    else:
        budget.text((len(text) + 1) * budget.weigh(new))


def _guard_join(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Guard the filter: `value` holds the items, the separator is given."""
    separator = args[0] if args else kwargs.get("d", "")
    count = len(value) if isinstance(value, Sized) else 0
    budget.text(budget.weigh(value) + count * budget.weigh(separator))


def _guard_join_method(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for items in args:
        _guard_join(budget, items, (value,), {})


def _guard_format(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Guard `%` and `format`: each field may print all arguments, padded to any number in the format."""
    _guard_text(budget, value, args, kwargs)
    text = value if isinstance(value, str) else str(value)
    fields = [first or second for first, second in _FIELD.findall(text)]
    widths = sum(int(digits[:9]) for field in fields for digits in _NUMBER.findall(field))
    if _WIDTH_FROM_ARGUMENT.search(text):
        widths += len(fields) * sum(abs(item) for item in _flat(args, kwargs) if isinstance(item, int))
    fields_at_most = text.count("%") + text.count("{")
    budget.text(len(text) + widths + fields_at_most * budget.weigh([*args, *kwargs.values()]))


def _flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    inner = [item for arg in args if isinstance(arg, tuple) for item in arg]
    return [*args, *inner, *kwargs.values()]


def _guard_translate(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    budget.text(len(value) * budget.weigh([*args, *kwargs.values()]))


def _guard_slow_text(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    size = budget.weigh(value)
    if size > _LONGEST_SLOW_TEXT:
        raise Exhausted(f"the template searches a text of more than {_LONGEST_SLOW_TEXT} characters")
    added = sum(len(item) for item in (*args, *kwargs.values()) if isinstance(item, str))
    budget.text(size * (1 + added))


def _guard_slow_list(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(value, str) and budget.weigh(value) > _LONGEST_SLOW_LIST:
        raise Exhausted(f"the template compares more than {_LONGEST_SLOW_LIST} characters of list items")


def _guard_batches(budget: Budget, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for item in (*args, *kwargs.values()):
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
