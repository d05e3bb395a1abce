"""Converts a Format to plain JSON data and back, and lists the differences between two Formats.

Rules:
- Invalid data raises `FormatError` with the path.
- Equal formats have no differences. The path of a difference names the smallest part that differs. However, skeletons and lists of markers
  are compared as single values, because their items have no meaning on their own.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.format.parts import CallSyntax, Slot, Spelling

if TYPE_CHECKING:
    from unrender.format import Format


_LONG_NUMBER = 10**60


def plain_data(value: Any) -> Any:
    """Return plain JSON data, with slots as `{"slot": "name"}`."""
    if isinstance(value, Slot):
        return {"slot": value.value}
    if isinstance(value, StrEnum):
        return value.value
    if is_dataclass(value):
        pairs = ((f, getattr(value, f.name)) for f in fields(value))
        return {f.name: plain_data(item) for f, item in pairs if item != f.default or f.name == "mode"}
    if isinstance(value, tuple):
        return [plain_data(item) for item in value]
    return value


def decode(kind: Any, data: Any, *, where: str) -> Any:
    """Return `data` as a value of type `kind`. Raises `FormatError` with the path below `where`."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return _decode_union(args, data, where=where)
    if origin is tuple:
        return _decode_tuple(args, data, where=where)
    if is_dataclass(kind):
        return kind.from_dict(data) if hasattr(kind, "from_dict") else decode_fields(kind, data, where=where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _decode_enum(kind, data, where=where)
    # `true` isn't a number, although Python's `True` is an `int`.
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise FormatError(f"expected {kind.__name__}, found {data_in_words(data)}", where)
    return data


def _decode_union(options: tuple[Any, ...], data: Any, *, where: str) -> Any:
    if data is None and type(None) in options:
        return None
    # In a skeleton, `"key"` is literal text and `{"slot": "key"}` is a slot.
    if Slot in options:
        return decode(Slot if isinstance(data, dict) else str, data, where=where)
    kinds = [option for option in options if option is not type(None)]
    return decode(next((kind for kind in kinds if type(data) is kind), kinds[0]), data, where=where)


def _decode_tuple(args: tuple[Any, ...], data: Any, *, where: str) -> Any:
    if not isinstance(data, list):
        raise FormatError(f"expected a list, found {data_in_words(data)}", where)
    if args[-1] is Ellipsis:
        return tuple(decode(args[0], item, where=f"{where}[{i}]") for i, item in enumerate(data))
    if len(data) != len(args):
        raise FormatError(f"expected {len(args)} items, found {len(data)}", where)
    pairs = zip(args, data, strict=True)
    return tuple(decode(kind, item, where=f"{where}[{i}]") for i, (kind, item) in enumerate(pairs))


def _decode_enum(kind: type[StrEnum], data: Any, *, where: str) -> StrEnum:
    if kind is Slot and isinstance(data, dict):
        data = data.get("slot")
    values = [item.value for item in kind]
    if data not in values:
        raise FormatError(f"expected one of {values}, found {data_in_words(data)}", where)
    return kind(data)


def decode_fields(kind: Any, data: Any, *, where: str) -> Any:
    """Return an object as a dataclass, with its fields converted to their types."""
    if not isinstance(data, dict):
        raise FormatError(f"expected an object, found {data_in_words(data)}", where)
    data = {name: item for name, item in data.items() if name not in _DERIVED.get(kind, ())}
    hints = typing.get_type_hints(kind)
    unknown = [name for name in data if name not in hints]
    if unknown:
        raise FormatError(f"unknown field {data_in_words(unknown[0])}; known are {sorted(hints)}", where)
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in data]
    if missing:
        raise FormatError(f"the field {missing[0]!r} is missing", where)
    places = {name: f"{where}.{name}".removeprefix(".") for name in data}
    return kind(**{name: decode(hints[name], item, where=places[name]) for name, item in data.items()})


_DERIVED: dict[type, tuple[str, ...]] = {CallSyntax: ("mode", "envelope")}
"""Fields that older JSON may contain, but that are now computed from other fields."""
_GONE = {"arguments": ("repeats", "as_string"), "codec": ("entities", "escaped_containers")}
"""Fields of version 1 that were removed, by their parent object."""
_HELD = {"format": ("tools", "tolerated"), "tools": ("arguments",), "arguments": ("codec",)}
"""Path to the objects with removed fields: for each object, its fields to search."""


def without_gone_fields(data: Any, name: str = "format", where: str = "format") -> Any:
    """Return JSON of version 1 without the fields that were removed later. Raises `FormatError` if such a field isn't empty.

    Removed values, such as `"strings": "escaped"`, raise an error in `decode`, like any unknown value.

    >>> without_gone_fields({"tools": {"arguments": {"start": "(", "repeats": False}}})
    {'tools': {'arguments': {'start': '('}}}
    """
    if name == "tolerated" and isinstance(data, list):
        return [without_gone_fields(tools, "tools", f"{where}[{i}]") for i, tools in enumerate(data)]
    if not isinstance(data, dict):
        return data
    gone, held = _GONE.get(name, ()), _HELD.get(name, ())
    if said := next((field for field in gone if data.get(field)), None):
        raise FormatError("this field of version 1 was removed", f"{where}.{said}")
    kept = {key: item for key, item in data.items() if key not in gone}
    return kept | {key: without_gone_fields(kept[key], key, f"{where}.{key}") for key in held if key in kept}


def data_in_words(data: Any) -> str:
    """Return a short description of data for an error message, regardless of its depth or size."""
    if isinstance(data, str):
        return repr(data[:60])
    if isinstance(data, int) and abs(data) >= _LONG_NUMBER:
        return "a number of more than 60 digits"
    return f"{type(data).__name__}" if isinstance(data, dict | list | tuple) else repr(data)


# Differences.


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDifference:
    """A part that differs between two Formats."""

    path: str
    """Path of the part, e.g. `tools.call_start` or `tolerated[1].arguments.codec.strings`."""
    before: Any
    """Plain JSON data; None if the part is missing. A skeleton is one text with slots written as `«name»`."""
    after: Any

    def __str__(self) -> str:
        return f"{self.path}\n  - {_written(self.before)}\n  + {_written(self.after)}"


def differences(before: Format, after: Format) -> tuple[FormatDifference, ...]:
    r"""Return the differences between two Formats, in field order; empty if they are equal.

    >>> from unrender.format import Format, TurnTexts
    >>> print(*differences(Format(turn=TurnTexts(end="<|end|>")), Format(turn=TurnTexts(end="<|end|>\n"))))
    turn.end
      - '<|end|>'
      + '<|end|>\n'
    """
    return tuple(_differences(before, after, ""))


def _differences(before: Any, after: Any, path: str) -> Iterator[FormatDifference]:
    if before == after:
        return
    if is_dataclass(before) and is_dataclass(after):
        for field in fields(before):
            place = f"{path}.{field.name}" if path else field.name
            yield from _differences(getattr(before, field.name), getattr(after, field.name), place)
    elif _holds_parts(before) or _holds_parts(after):
        for i, (one, other) in enumerate(zip_longest(before, after)):
            yield from _differences(one, other, f"{path}[{i}]")
    else:
        yield FormatDifference(path=path, before=_plain(before), after=_plain(after))


def _holds_parts(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, CallSyntax | Spelling) for item in value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        if any(isinstance(item, Slot) for item in value):
            return "".join(f"«{item}»" if isinstance(item, Slot) else item for item in value)
        return [_plain(item) for item in value]
    if is_dataclass(value):
        pairs = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _plain(item) for field, item in pairs if item != field.default}
    return str(value) if isinstance(value, str) else value


def _written(value: Any) -> str:
    return "not there" if value is None else repr(value)
