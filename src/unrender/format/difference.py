"""Lists the differences between two Formats, each named by its path in the Format.

Rules: equal formats have no differences; a path names the smallest part that differs, but a skeleton or a list of markers is
compared whole, since its parts mean nothing alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import zip_longest
from typing import Any

from unrender.format import CallSyntax, Format, Slot, Spelling


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A part of the Format that differs."""

    path: str
    """e.g. `tools.call_start` or `tolerated[1].arguments.codec.strings`"""
    before: Any
    """Plain JSON data; None where the part is not there. A skeleton is one text, its slots written `«name»`."""
    after: Any

    def __str__(self) -> str:
        return f"{self.path}\n  - {_written(self.before)}\n  + {_written(self.after)}"


def differences(before: Format, after: Format) -> tuple[Difference, ...]:
    r"""Return the differences between two Formats, in the order of the Format's fields; none when they are equal.

    >>> from unrender.format import TurnTexts
    >>> print(*differences(Format(turn=TurnTexts(end="<|end|>")), Format(turn=TurnTexts(end="<|end|>\n"))))
    turn.end
      - '<|end|>'
      + '<|end|>\n'
    """
    return tuple(_differences(before, after, ""))


def _differences(before: Any, after: Any, path: str) -> Iterator[Difference]:
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
        yield Difference(path=path, before=_plain(before), after=_plain(after))


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
