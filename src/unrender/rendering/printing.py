"""Inspects the values of a template, and converts them to text that is the same in every process.

Rules: data (strings, numbers, lists, dicts, …) is printed as in Python. All other values are *opaque*: methods, functions, iterators, and
objects of Jinja or the caller. Opaque values are printed without memory addresses: a method as its name, and any other callable as
`<callable>`.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, KeysView, Mapping, ValuesView
from itertools import chain
from types import BuiltinMethodType, FunctionType, MethodDescriptorType, MethodType, NoneType
from typing import Any

from jinja2.runtime import Undefined
from jinja2.utils import Namespace

_ATOMS = (str, bytes, bytearray, int, float, complex, NoneType, range, Undefined)
_ROWS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)
_METHODS = (MethodType, BuiltinMethodType, MethodDescriptorType)
_CODE = (*_METHODS, FunctionType, type)
"""Types whose values would otherwise be printed with names of internal classes."""
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


class _Shown:
    """Printable replacement for an opaque value."""

    __slots__ = ("_repr", "_text")

    def __init__(self, text: str, representation: str = "") -> None:
        self._text = text
        self._repr = representation or text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._repr


def values_inside(value: Any) -> Iterable[Any]:
    """Return the items of a container, including keys. Returns nothing for strings, numbers and opaque values."""
    if isinstance(value, _ATOMS):
        return ()
    if isinstance(value, _ROWS):
        return value
    if isinstance(value, Namespace):
        return variables_of(value).values()
    if isinstance(value, Mapping):
        return chain(value.keys(), value.values())
    return ()


def plain(value: Any) -> Any:
    """Return `value` with its opaque parts replaced by printable ones.

    Weigh `value` before you call this function, which never returns for a value that contains itself.
    """
    if isinstance(value, _ATOMS):
        return value
    # For `{{ messages.append }}`, Python would print `<built-in method append of list object at 0x7f…>`. Print only the method's name.
    if isinstance(value, _CODE):
        shown = f"<method {value.__name__}>" if isinstance(value, _METHODS) else "<callable>"
        return _Shown(shown)
    if is_opaque(value):
        return _Shown(without_addresses(str(value)), without_addresses(repr(value)))
    return _copied(value) if _holds_opaque(value) else value


def without_addresses(text: str) -> str:
    """Return `text` without memory addresses such as ` at 0x7f…`."""
    return _ADDRESS.sub("", text)


def variables_of(namespace: Namespace) -> dict[str, Any]:
    """Return the variables that a template has set in a namespace."""
    variables: dict[str, Any] = object.__getattribute__(namespace, "_Namespace__attrs")
    return variables


def is_opaque(value: Any) -> bool:
    """Return whether `value` is neither a string, a number, nor a container."""
    return not isinstance(value, (*_ATOMS, *_ROWS, Mapping, Namespace))


def _holds_opaque(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if is_opaque(item):
            return True
        waiting.extend(values_inside(item))
    return False


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, Namespace):
        return _Shown(f"<Namespace {plain(variables_of(value))!r}>")
    return _Shown(f"{type(value).__name__}({[plain(item) for item in value]!r})")
