"""Prints a parser's program: a line for each instruction, with its address, name, and fields.

A number beside `target`, `end`, `hub` and the like is an address: where the reading goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from itertools import islice
from typing import Any

from unrender.limits import MOST_SHOWN_LITERALS
from unrender.parser.streaming import Parser
from unrender.values.finder import Finder, Flow
from unrender.values.unmarked_ends import Follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One instruction: its address, its name, and its fields as text."""

    address: int
    name: str
    fields: str

    def __str__(self) -> str:
        return f"{self.address:4}  {self.name}  {self.fields}".rstrip()


def listing(parser: Parser) -> tuple[Line, ...]:
    """Return the program that `parser` runs, in the order of the addresses.

    >>> from unrender import Format, Request
    >>> str(listing(Parser(Format(undeclared_reasoning=False), Request()))[0])
    '   0  Jump  target=4'
    """
    return tuple(
        Line(address=address, name=type(instruction).__name__, fields=" ".join(_fields(instruction)))
        for address, instruction in enumerate(parser.program)
    )


def _fields(holder: Any) -> Iterator[str]:
    """Yield the fields that say something: not what is left at its default, and not how text is skipped fast."""
    for field in fields(holder) if is_dataclass(holder) else ():
        value = getattr(holder, field.name)
        if not isinstance(value, Flow) and not _is_default(field, value):
            yield f"{field.name}={_shown(value)}"


def _is_default(field: Field[Any], value: Any) -> bool:
    return field.default is not MISSING and bool(value == field.default)


def _listed(opening: str, texts: Collection[str], closing: str) -> str:
    """Return the first texts of many, and how many more there are."""
    found, more = list(islice(texts, MOST_SHOWN_LITERALS)), len(texts) - MOST_SHOWN_LITERALS
    return opening + ", ".join([*found, *([f"and {more} more"] if more > 0 else [])]) + closing


def _items(opening: str, closing: str) -> Callable[[Any], str]:
    return lambda values: _listed(opening, [_shown(value) for value in values], closing)


def _table(table: Mapping[Any, Any]) -> str:
    return _listed("{", [f"{_shown(key)}: {_shown(value)}" for key, value in table.items()], "}")


_SHOWN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (Finder, lambda finder: _items("<", ">")(finder.literals)),
    (Follow, lambda _: "<what may follow the value>"),
    (Enum, lambda member: str(member.value)),
    (Mapping, _table),
    (tuple, _items("(", ")")),
    (list, _items("[", "]")),
    (frozenset, lambda values: _items("{", "}")(sorted(values, key=repr))),
)
"""How values of fields are shown, by the first class that fits; others as Python writes them."""


def _shown(value: Any) -> str:
    for kind, show in _SHOWN:
        if isinstance(value, kind):
            return show(value)
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(_fields(value))})"
    return value.__name__ if callable(value) and hasattr(value, "__name__") else repr(value)
