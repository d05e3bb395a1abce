"""Lists the attributes of built-in values that a template may use, with the guard of each.

Rules: what is not in these tables does not exist for a template. A guard measures before the method is called.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, MethodWrapperType
from typing import Any

from jinja2 import exceptions

from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.growth import (
    TEXT,
    Guard,
    Operands,
    count_of,
    guard_comparisons,
    guard_join,
    guard_keys,
    guard_padding,
    guard_replace,
    guard_slow_text,
)

_CODECS = frozenset({"utf8", "ascii", "latin1", "iso88591"})
_CODEC_ERRORS = ("strict", "ignore", "replace")
_FEW_PIECES = 1000
_WORD = re.compile(r"\S+")
_LINE = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LONG_NUMBER = re.compile(r"\d{4}")


def is_listed(value: Any, name: str) -> bool:
    """Return whether a template may use this attribute.

    It always may if the value is not of a type built into Python.
    """
    methods = _methods_of(value)
    return methods is None or name in methods or (isinstance(value, tuple) and name in getattr(value, "_fields", ()))


def guard_method(budget: CostBudget, name: str, asked: Operands) -> None:
    """Count the result of the method `name` of `asked.value`, before it is computed."""
    methods = _methods_of(asked.value)
    guard = (_OF_OTHERS if methods is None else methods).get(name, _weigh_all)
    guard(budget, asked)


def guard_date_format(pattern: str) -> None:
    """Refuse a pattern for `strftime` that would pad a lot: `%1000000d` does in some C libraries."""
    if len(pattern) > 1000 or _LONG_NUMBER.search(pattern):
        raise Exhausted("strftime: expected a format of at most 1000 characters without large widths")


def _methods_of(value: Any) -> Mapping[str, Guard] | None:
    return next((methods for kinds, methods in METHODS if isinstance(value, kinds)), None)


def _free(budget: CostBudget, _asked: Operands) -> None:
    budget.step()


def _weigh_all(budget: CostBudget, asked: Operands) -> None:
    budget.weigh(asked.given)


def _weigh_owner(budget: CostBudget, asked: Operands) -> None:
    """Guard what compares items, with each other or with an argument."""
    budget.weigh(asked.value)
    budget.weigh(asked.given)


def _sort(budget: CostBudget, asked: Operands) -> None:
    if asked.kwargs.get("key") is not None:
        raise exceptions.SecurityError("sort: expected no key, which would be called unseen")
    _weigh_owner(budget, asked)


def _copy(budget: CostBudget, asked: Operands) -> None:
    budget.items(len(asked.value))


def _extend(budget: CostBudget, asked: Operands) -> None:
    for items in asked.args:
        budget.items(len(asked.value) + len(items))


def _hash_key(budget: CostBudget, asked: Operands) -> None:
    if asked.args and not isinstance(asked.args[0], str):
        budget.weigh(asked.args[0])


def _read(budget: CostBudget, asked: Operands) -> None:
    budget.read(len(asked.value) + sum(len(item) for item in asked.given if isinstance(item, TEXT)))
    for item in asked.given:
        if isinstance(item, tuple):
            budget.weigh(item)


def _compare(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    for item in asked.given:
        guard_comparisons(asked.value, item)


def _split(budget: CostBudget, asked: Operands) -> None:
    _compare(budget, asked)
    separator, most = asked.argument(0, "sep"), asked.argument(1, "maxsplit", -1)
    pieces = _count_of_matches(_WORD, asked.value) if separator is None else count_of(asked.value, separator)
    budget.items(1 + (min(most, pieces) if isinstance(most, int) and most >= 0 else pieces))


def _split_lines(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    budget.items(1 + _count_of_matches(_LINE, asked.value))


def _count_of_matches(pattern: re.Pattern[str], text: Any) -> int:
    """Return how often the pattern matches, or what is more; counted only where it may be often."""
    most = len(text)
    if most <= _FEW_PIECES or not isinstance(text, str):
        return most
    return sum(1 for _ in islice(pattern.finditer(text), 1_000_000))


def _pad(budget: CostBudget, asked: Operands) -> None:
    for item in asked.given:
        if isinstance(item, int):
            budget.text(max(0, item))


def _code(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    codec, errors = asked.argument(0, "encoding", "utf-8"), asked.argument(1, "errors", "strict")
    if str(codec).lower().replace("-", "").replace("_", "") not in _CODECS or errors not in _CODEC_ERRORS:
        wanted = "expected utf-8, ascii or latin-1, with errors strict, ignore or replace"
        raise exceptions.SecurityError(
            f"the template asks for the codec {codec!r:.40} with errors {errors!r:.40}: {wanted}"
        )


def _translate(budget: CostBudget, asked: Operands) -> None:
    budget.text(len(asked.value) * budget.weigh(asked.given))


def _translation(budget: CostBudget, asked: Operands) -> None:
    budget.weigh(asked.given)
    budget.items(sum(len(item) for item in asked.given if isinstance(item, str)))


def _join(budget: CostBudget, asked: Operands) -> None:
    for items in asked.args:
        guard_join(budget, Operands(items, (asked.value,)))


def _format_date(_budget: CostBudget, asked: Operands) -> None:
    guard_date_format(str(asked.argument(0, "format", "")))


_READING = (
    *("capitalize", "casefold", "count", "endswith", "find", "index", "lower", "partition", "removeprefix"),
    *("removesuffix", "startswith", "swapcase", "title", "upper", "isalnum", "isalpha", "isascii", "isdecimal"),
    *("isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper"),
)
_COMPARING = ("lstrip", "rfind", "rindex", "rpartition", "rstrip", "strip")
_BYTES: Mapping[str, Guard] = MappingProxyType(
    dict.fromkeys(_READING, _read)
    | dict.fromkeys(_COMPARING, _compare)
    | dict.fromkeys(("center", "ljust", "rjust", "zfill"), _pad)
    | dict.fromkeys(("split", "rsplit"), _split)
    | {
        "decode": _code,
        "expandtabs": guard_padding,
        "hex": _read,
        "join": _join,
        "replace": guard_replace,
        "splitlines": _split_lines,
    }
)
_STR: Mapping[str, Guard] = MappingProxyType(
    {name: guard for name, guard in _BYTES.items() if name not in ("decode", "hex")}
    | {"encode": _code, "maketrans": _translation, "translate": _translate}
    | {"format": _free, "format_map": _free}  # measured field by field, see `Formatting`
    | {"striptags": guard_slow_text, "unescape": _read}  # of a text that was escaped
)
_NUMBERS = ("real", "imag", "numerator", "denominator", "conjugate", "as_integer_ratio", "is_integer", "hex")
_COUNTS = ("bit_count", "bit_length")

METHODS: tuple[tuple[tuple[type, ...], Mapping[str, Guard]], ...] = (
    ((str,), _STR),
    ((bytes, bytearray), _BYTES),
    ((int, float, complex), dict.fromkeys((*_NUMBERS, *_COUNTS), _free)),
    (
        (list,),
        dict.fromkeys(("append", "clear", "insert", "pop", "reverse"), _free)
        | dict.fromkeys(("count", "index", "remove"), _weigh_owner)
        | {"copy": _copy, "extend": _extend, "sort": _sort},
    ),
    ((tuple,), {"count": _weigh_owner, "index": _weigh_owner}),
    (
        (dict,),
        dict.fromkeys(("clear", "items", "keys", "popitem", "values"), _free)
        | dict.fromkeys(("get", "pop", "setdefault"), _hash_key)
        | {"copy": _copy, "update": guard_keys},
    ),
    ((range,), {"start": _free, "stop": _free, "step": _free, "count": _weigh_all, "index": _weigh_all}),
    ((KeysView, ValuesView, ItemsView), {}),
    ((type, FunctionType, BuiltinFunctionType, MethodType, MethodWrapperType), {}),
)
"""Kinds of values, and their attributes with what guards each."""

# Values of the caller's, e.g. a date, keep all attributes that Jinja's sandbox allows.
_OF_OTHERS: Mapping[str, Guard] = MappingProxyType({"strftime": _format_date})
