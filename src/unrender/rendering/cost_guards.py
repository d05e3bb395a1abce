"""Guards for the operators, filters, methods and format strings of a template. Guards measure the cost of an operation before it runs.

Rules:
- Guards never change values. They raise `Exhausted` if an operation is too expensive, and `TypeError` if it makes no sense.
- Expensive operations are listed in tables. A filter may be unlisted only if it's cheap and its result is no larger than its input.
- Templates can't use unlisted methods of built-in values.
- `%` format strings are scanned as in Python. The sum of all widths and precisions is counted in advance.
- `str.format` uses Jinja's sandboxed formatter. Nested fields are resolved first, and then each field is measured before it's formatted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sized, ValuesView
from dataclasses import dataclass, field
from itertools import islice
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MappingProxyType, MethodType, MethodWrapperType
from typing import Any, cast

from jinja2 import exceptions
from jinja2.sandbox import SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from unrender import limits
from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.printing import plain

TEXT = (str, bytes, bytearray)

_INTEGER_ERROR = f"the template makes an integer of more than {limits.MAX_INTEGER_BITS} bits"


@dataclass(frozen=True, slots=True)
class Operands:
    """The input of a filter or method, and its arguments."""

    value: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> list[Any]:
        """All arguments."""
        return [*self.args, *self.kwargs.values()]

    @property
    def text(self) -> str | bytes | bytearray:
        """The value as a string."""
        return self.value if isinstance(self.value, TEXT) else str(self.value)

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """Return the argument with the given position or name, or `default` if it's missing."""
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)


Guard = Callable[[CostBudget, Operands], None]


def guard_operator(budget: CostBudget, operator: str, left: Any, right: Any) -> None:
    """Count the result of `left operator right` in advance. `operator` is one of `+`, `-`, `*`, `**` and `%`."""
    if isinstance(left, int) and isinstance(right, int):
        bits, more = left.bit_length(), right.bit_length()
        # The size of a product or power can be limited in advance: `2 ** 10` needs at most 2 * 10 bits.
        if {"**": bits * right, "*": bits + more}.get(operator, 1 + max(bits, more)) > limits.MAX_INTEGER_BITS:
            raise Exhausted(_INTEGER_ERROR)
    elif operator == "+":
        # Operands of different types, as in `[1] + "a"`, have no common size. Python raises an error, which is reported as an error of the
        # template.
        if any(isinstance(left, kinds) and isinstance(right, kinds) for kinds in (TEXT, (list, tuple))):
            _guard_size(budget, left, len(left) + len(right))
    elif operator == "%" and isinstance(left, TEXT):
        guard_percent(budget, Operands(left, (right,)))
    elif operator == "*":
        # Either operand of `*` may be the number: `"ab" * 9999999` and `9999999 * "ab"` are equivalent.
        for value, times in ((left, right), (right, left)):
            if isinstance(times, int) and isinstance(value, (*TEXT, list, tuple)):
                _guard_size(budget, value, max(0, len(value) * times))


def guard_result(budget: CostBudget, result: Any) -> None:
    """Count the result of a filter or a call."""
    # The methods of a caller's objects aren't listed, so only their results can be measured.
    if isinstance(result, (*TEXT, list, tuple)):
        _guard_size(budget, result, len(result))
    elif isinstance(result, int):
        guard_integer(result)


def guard_integer(value: int) -> None:
    """Raise `Exhausted` for integers that are too large for further calculations."""
    if value.bit_length() > limits.MAX_INTEGER_BITS:
        raise Exhausted(_INTEGER_ERROR)


def guard_keys(budget: CostBudget, asked: Operands) -> None:
    """Guard `dict(…)`, `namespace(…)` and `update`, which use parts of their arguments as keys."""
    # Hashes of strings are randomized, but a template can choose numbers and tuples whose hashes collide. Building a dict then takes
    # quadratic time.
    odd = 0
    for items in asked.given:
        budget.weigh(items)
        if not isinstance(items, Mapping) and isinstance(items, Iterable):
            odd += sum(not isinstance(pair[0], str) for pair in items if isinstance(pair, list | tuple) and pair)
        elif isinstance(items, Mapping):
            odd += sum(not isinstance(key, str) for key in items)
    if odd > limits.MAX_PIECES:
        raise Exhausted(f"the template hashes more than {limits.MAX_PIECES} keys that are not text at once")


def guard_padding(budget: CostBudget, asked: Operands) -> None:
    """Guard `center`, `indent` and `expandtabs`, which may pad each line or replace each tab."""
    # A width is a number, as in `"a\nb" | indent(9)`, or the length of a string, as in `indent("> ")`.
    widths = (item if isinstance(item, int) else len(item) for item in asked.given if isinstance(item, int | str))
    text = asked.text
    budget.text(len(text) + (1 + count_of(text, "\n") + count_of(text, "\t")) * max([0, *widths]))


def guard_replace(budget: CostBudget, asked: Operands) -> None:
    """Guard the filter and method `replace`."""
    # The result may be much larger than the input if the replaced text is short: `"aaaa" | replace("a", x * 1000)`.
    old, new, *_ = (*asked.given, "", "")
    budget.text(len(asked.text) + count_of(asked.text, old) * budget.weigh(new))


def guard_join(budget: CostBudget, asked: Operands) -> None:
    """Guard the filter `join`. The input contains the items, and the argument is the separator."""
    count = len(asked.value) if isinstance(asked.value, Sized) else 0
    budget.items(count)
    budget.text(budget.weigh(asked.value) + count * budget.weigh(asked.given))


def guard_percent(budget: CostBudget, asked: Operands) -> None:
    """Guard the operator `%`. Each field may print all arguments, padded to the width in the format string."""
    text = asked.value if isinstance(asked.value, str) else bytes(asked.value).decode("latin-1")
    # A width may be an argument, as in `"%*d" % (9999999, 1)`. For each `*`, the sum of all integer arguments is counted.
    given = [*asked.given, *(item for value in asked.given if isinstance(value, tuple) for item in value)]
    from_arguments = sum(abs(item) for item in given if isinstance(item, int))
    widths = sum(from_arguments if width is None else width for width in percent_widths(text))
    budget.text(len(text) + widths + text.count("%") * budget.weigh(asked.given))


def guard_slow_text(budget: CostBudget, asked: Operands) -> None:
    """Guard slow filters and methods, which take microseconds per character."""
    size = budget.weigh(asked.value)
    if size > limits.MAX_SLOW_TEXT:
        raise Exhausted(f"the template searches a text of more than {limits.MAX_SLOW_TEXT} characters")
    # `text | wordwrap(1, wrapstring=long)` inserts the argument after each character.
    budget.text(size * (1 + sum(len(item) for item in asked.given if isinstance(item, str))))


def guard_numeric(_: Any, value: Any) -> None:
    """Raise `TypeError` for arguments that aren't numbers, since `%` and `*` would format or repeat strings."""
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, found {type(value).__name__}")


def guard_slow_list(budget: CostBudget, asked: Operands) -> None:
    """Guard slow filters and methods, which sort or compare items."""
    _guard_items(budget, asked)
    if budget.weigh(asked.value) > limits.MAX_SLOW_LIST:
        raise Exhausted(f"the template compares more than {limits.MAX_SLOW_LIST} characters of list items")


def count_of(text: Any, part: Any) -> int:
    """Return the number of occurrences of `part` in `text`. If the types differ, return an upper bound."""
    kinds = str if isinstance(text, str) else (bytes, bytearray)
    return text.count(part) if isinstance(part, kinds) else len(text) + 1


def _guard_size(budget: CostBudget, value: Any, size: int) -> None:
    """Count the cost of creating a string or list of the given size from `value`."""
    if isinstance(value, TEXT):
        budget.text(size)
    else:
        budget.items(size)


def _guard_text(budget: CostBudget, asked: Operands) -> None:
    budget.read(budget.weigh(asked.value))


def _guard_items(budget: CostBudget, asked: Operands) -> None:
    """Guard operations that iterate over all items, or that split an attribute name."""
    if isinstance(asked.value, Sized):
        budget.items(len(asked.value))
    if any(isinstance(item, str) and len(item) > limits.MAX_SLOW_TEXT for item in asked.given):
        raise Exhausted(f"the template looks up a name of more than {limits.MAX_SLOW_TEXT} characters")


def _guard_unique(budget: CostBudget, asked: Operands) -> None:
    guard_slow_list(budget, asked)
    # `items | unique` hashes each item, so guard the items like keys of a dict.
    if isinstance(asked.value, Iterable) and not isinstance(asked.value, str):
        guard_keys(budget, Operands(None, ([(item,) for item in asked.value],)))


def _guard_batches(budget: CostBudget, asked: Operands) -> None:
    _guard_items(budget, asked)
    budget.items(max([0, *(item for item in asked.given if isinstance(item, int))]))


def _guard_round(budget: CostBudget, asked: Operands) -> None:
    guard_numeric(budget, asked.value)
    budget.step()
    # Limit the precision, because rounding computes a power: `1 | round(400000000)` would compute `10 ** 400000000`.
    if any(isinstance(item, int) and abs(item) > limits.MAX_REPETITIONS for item in asked.given):
        raise Exhausted(f"the template rounds to more than {limits.MAX_REPETITIONS} digits")


_TEXT_FILTERS = ("capitalize", "e", "escape", "forceescape", "lower", "safe", "string", "trim", "truncate", "upper")
_SLOW_TEXT_FILTERS = ("pprint", "striptags", "title", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr")
_WALKING_FILTERS = ("first", "list", "map", "reject", "rejectattr", "reverse", "select", "selectattr")
_SLOW_LIST_FILTERS = ("dictsort", "groupby", "max", "min", "sort", "sum")
WRITING_FILTERS = frozenset({*_TEXT_FILTERS, *_SLOW_TEXT_FILTERS, "center", "format", "indent", "join", "replace"})
"""Filters that convert their value and arguments to text."""

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
"""Filters whose guard needs all items. All other filters iterate lazily."""


# Format strings.

_NUMBER = re.compile(r"\d+")
_DIGITS = 12
"""Maximum number of digits that are parsed in a width. A width with more digits would exceed the limits anyway."""
_CONVERSION = re.compile(r"[-+ #0]*(\*|\d*)(?:\.(\*|\d*))?")
_PARENTHESIS = re.compile(r"[()]")


class Formatting:
    """Replaces the `format` or `format_map` method of a string in templates."""

    __slots__ = ("_environment", "_method")

    def __init__(self, environment: Any, method: Any) -> None:
        self._environment = environment
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        """Return the formatted text as a string of the format string's type."""
        text: str = self._method.__self__
        environment, fields = self._environment, cast("Mapping[str, Any]", kwargs)
        environment.budget.read(len(text))
        if self._method.__name__ == "format_map":
            if kwargs or len(args) != 1 or not isinstance(args[0], Mapping):
                raise TypeError("format_map() takes exactly one mapping")
            fields, args = args[0], ()
        # As in markupsafe, `("<b>{}</b>" | safe).format(x)` escapes `x`.
        escapes = {"escape": text.escape} if isinstance(text, Markup) else {}
        formatter = (_EscapeFormatter if escapes else _Formatter)(environment, **escapes)
        formatter.budget = environment.budget
        return type(text)(formatter.vformat(text, args, fields))

    def __repr__(self) -> str:
        return f"<method {self._method.__name__}>"


def is_format_method(value: Any) -> bool:
    """Return whether a value is the `format` or `format_map` method of a string."""
    is_method = isinstance(value, BuiltinMethodType | MethodType) and isinstance(value.__self__, str)
    return is_method and value.__name__ in ("format", "format_map")


def percent_widths(text: str) -> Iterator[int | None]:
    """Yield each width and precision in a `%` format string. Yields None for `*`, which refers to an argument."""
    at = text.find("%")
    while at >= 0:
        # A name in a `%` field may contain parentheses. In `"%(a(b))5d"`, the width follows the name `a(b)`.
        conversion = _CONVERSION.match(text, _end_of_name(text, at + 1))
        assert conversion is not None
        yield from (None if part == "*" else int(part[:_DIGITS]) for part in conversion.groups() if part)
        at = text.find("%", conversion.end() + 1)


def _end_of_name(text: str, at: int) -> int:
    """Return the end of the `(name)` at `at`. Nested parentheses are matched, as in Python."""
    if not text.startswith("(", at):
        return at
    depth = 0
    for parenthesis in _PARENTHESIS.finditer(text, at):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return parenthesis.end()
    return len(text)


class _Measured:
    """Formatter mixin that measures each field before formatting it."""

    budget: CostBudget

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return super().convert_field(self._printable(value), conversion)  # type: ignore[misc]

    def format_field(self, value: Any, format_spec: str) -> Any:
        # Any number in the specification may be a width, as in `"{:>9999999}"`. Nested fields, as in `"{:{w}}"`, have already been
        # resolved.
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


# Methods.


# Only codecs that take linear time are allowed. Others, such as `"punycode"` and `"idna"`, take quadratic time.
_CODECS = frozenset({"utf8", "ascii", "latin1", "iso88591"})
_CODEC_ERRORS = ("strict", "ignore", "replace")
_FEW_PIECES = 1000
_WORD = re.compile(r"\S+")
_LINE = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LONG_NUMBER = re.compile(r"\d{4}")


def is_listed(value: Any, name: str) -> bool:
    """Return whether a template may use the attribute `name`.

    For types that aren't built into Python, all attributes are allowed.
    """
    methods = _methods_of(value)
    return methods is None or name in methods or (isinstance(value, tuple) and name in getattr(value, "_fields", ()))


def guard_method(budget: CostBudget, name: str, asked: Operands) -> None:
    """Count the result of calling the method `name` of `asked.value` in advance."""
    methods = _methods_of(asked.value)
    guard = (_OF_OTHERS if methods is None else methods).get(name, _weigh_all)
    guard(budget, asked)


def guard_date_format(pattern: str) -> None:
    """Raise `Exhausted` for `strftime` patterns with large widths, because some C libraries pad the result of `%1000000d` to this width."""
    if len(pattern) > 1000 or _LONG_NUMBER.search(pattern):
        raise Exhausted("strftime: expected a format of at most 1000 characters without large widths")


def _methods_of(value: Any) -> Mapping[str, Guard] | None:
    return next((methods for kinds, methods in METHODS if isinstance(value, kinds)), None)


def _free(budget: CostBudget, _asked: Operands) -> None:
    budget.step()


def _weigh_all(budget: CostBudget, asked: Operands) -> None:
    budget.weigh(asked.given)


def _weigh_owner(budget: CostBudget, asked: Operands) -> None:
    """Guard operations that compare items with each other or with an argument."""
    budget.weigh(asked.value)
    budget.weigh(asked.given)


def _sort(budget: CostBudget, asked: Operands) -> None:
    # Python would call the function `f` in `messages.sort(key=f)` outside the sandbox.
    if asked.kwargs.get("key") is not None:
        raise exceptions.SecurityError("sort: expected no key function")
    _weigh_owner(budget, asked)


def _extend(budget: CostBudget, asked: Operands) -> None:
    """Guard `copy` and `extend`."""
    for items in asked.args or [()]:
        budget.items(len(asked.value) + len(items))


def _hash_key(budget: CostBudget, asked: Operands) -> None:
    # Hashing a nested tuple, as in `known.get(((x, x), (x, x)))`, hashes shared parts each time they occur.
    if asked.args and not isinstance(asked.args[0], str):
        budget.weigh(asked.args[0])


def _read(budget: CostBudget, asked: Operands) -> None:
    # An argument may be a tuple of strings, as in `text.startswith((a, b, …))`. Python tries all of them, so count all.
    budget.read(len(asked.value) + sum(len(item) for item in asked.given if isinstance(item, TEXT)))
    for item in asked.given:
        if isinstance(item, tuple):
            budget.weigh(item)


def _compare(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    # A search such as `"aaa…a".find("aa…ab")` compares almost all characters at every position.
    if any(
        isinstance(item, TEXT) and len(asked.value) * len(item) > limits.MAX_TEXT_COMPARISONS for item in asked.given
    ):
        raise Exhausted(f"the template compares more than {limits.MAX_TEXT_COMPARISONS} characters at once")


def _split(budget: CostBudget, asked: Operands) -> None:
    _compare(budget, asked)
    # Count the pieces in advance, since `"a,a,a,…".split(",")` creates all pieces at once.
    separator, most = asked.argument(0, "sep"), asked.argument(1, "maxsplit", -1)
    pieces = _count_of_matches(_WORD, asked.value) if separator is None else count_of(asked.value, separator)
    budget.items(1 + (min(most, pieces) if isinstance(most, int) and most >= 0 else pieces))


def _split_lines(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    budget.items(1 + _count_of_matches(_LINE, asked.value))


def _count_of_matches(pattern: re.Pattern[str], text: Any) -> int:
    """Return the number of matches in `text`, or an upper bound if `text` is short."""
    # For short text, counting the matches isn't worth the time.
    if len(text) <= _FEW_PIECES or not isinstance(text, str):
        return len(text)
    return sum(1 for _ in islice(pattern.finditer(text), 1_000_000))


def _pad(budget: CostBudget, asked: Operands) -> None:
    budget.text(max([0, *(item for item in asked.given if isinstance(item, int))]))


def _code(budget: CostBudget, asked: Operands) -> None:
    _read(budget, asked)
    codec, errors = asked.argument(0, "encoding", "utf-8"), asked.argument(1, "errors", "strict")
    if str(codec).lower().replace("-", "").replace("_", "") not in _CODECS or errors not in _CODEC_ERRORS:
        wanted = "expected utf-8, ascii or latin-1, with errors strict, ignore or replace"
        raise exceptions.SecurityError(
            f"the template uses the codec {codec!r:.40} with errors {errors!r:.40}: {wanted}"
        )


def _translate(budget: CostBudget, asked: Operands) -> None:
    # Each character may be replaced by the longest string in the table: `("a" * 1000).translate({97: long})`.
    budget.text(len(asked.value) * budget.weigh(asked.given))


def _translation(budget: CostBudget, asked: Operands) -> None:
    budget.weigh(asked.given)
    budget.items(sum(len(item) for item in asked.given if isinstance(item, str)))


def _join(budget: CostBudget, asked: Operands) -> None:
    for items in asked.args:
        guard_join(budget, Operands(items, (asked.value,)))


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
    | {"format": _free, "format_map": _free}  # Needs no guard here, because `Formatting` measures each field.
    | {"striptags": guard_slow_text, "unescape": _read}  # Escaped text has these additional methods.
)
_NUMBERS = (
    *("bit_count", "bit_length", "real", "imag", "numerator", "denominator"),
    *("conjugate", "as_integer_ratio", "is_integer", "hex"),
)

METHODS: tuple[tuple[tuple[type, ...], Mapping[str, Guard]], ...] = (
    ((str,), _STR),
    ((bytes, bytearray), _BYTES),
    ((int, float, complex), dict.fromkeys(_NUMBERS, _free)),
    (
        (list,),
        dict.fromkeys(("append", "clear", "insert", "pop", "reverse"), _free)
        | dict.fromkeys(("count", "index", "remove"), _weigh_owner)
        | {"copy": _extend, "extend": _extend, "sort": _sort},
    ),
    ((tuple,), {"count": _weigh_owner, "index": _weigh_owner}),
    (
        (dict,),
        dict.fromkeys(("clear", "items", "keys", "popitem", "values"), _free)
        | dict.fromkeys(("get", "pop", "setdefault"), _hash_key)
        | {"copy": _extend, "update": guard_keys},
    ),
    ((range,), {"start": _free, "stop": _free, "step": _free, "count": _weigh_all, "index": _weigh_all}),
    ((KeysView, ValuesView, ItemsView), {}),
    # Functions and classes have no attributes in templates, because `joiner.mro()` would give access to all classes.
    ((type, FunctionType, BuiltinFunctionType, MethodType, MethodWrapperType), {}),
)
"""Maps types of values to their allowed attributes, with a guard for each attribute."""

# Templates may use all attributes of the caller's values, e.g. dates, that Jinja's sandbox allows.
_OF_OTHERS: Mapping[str, Guard] = MappingProxyType(
    {"strftime": lambda _budget, asked: guard_date_format(str(asked.argument(0, "format", "")))}
)
