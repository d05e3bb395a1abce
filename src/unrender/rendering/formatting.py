"""Carries out format strings (`%` and `str.format`) after measuring the widths that they pad to.

Strategy: `%` is scanned as Python scans it, and all widths and precisions are added up before. `str.format` is carried out
by Jinja's sandboxed formatter, which asks here before it writes a field: by then nested fields are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2.sandbox import SandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from unrender.rendering.cost import Budget
from unrender.rendering.printing import plain

_NUMBER = re.compile(r"\d+")
_DIGITS = 12
"""Digits of a width that are read; a longer one is too large anyway."""
_CONVERSION = re.compile(r"[-+ #0]*(\*|\d*)(?:\.(\*|\d*))?")
_PARENTHESIS = re.compile(r"[()]")


class Formatting:
    """The `format` or `format_map` of one text; a template gets it in place of Python's own method."""

    __slots__ = ("_budget", "_environment", "_is_map", "_text")

    def __init__(self, environment: SandboxedEnvironment, budget: Callable[[], Budget], text: str, name: str) -> None:
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

    def _formatted(self, budget: Budget, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
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

    budget: Budget

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


def _formatter(environment: SandboxedEnvironment, budget: Budget, text: str) -> _Formatter | _EscapeFormatter:
    made: _Formatter | _EscapeFormatter
    made = _EscapeFormatter(environment, escape=text.escape) if isinstance(text, Markup) else _Formatter(environment)
    made.budget = budget
    return made
