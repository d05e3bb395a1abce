"""How a format spells the beginning of a call's JSON object → its pieces, so that a call spelled like that is read at once.

Models mostly write just what the template wrote. Then nothing has to be decided key by key up to the arguments.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property

from unrender.format import CallSyntax, Slot
from unrender.nodes import Role

Pieces = tuple[tuple[Role, int], ...]
"""Roles, each with how many characters it has."""
_BEFORE = re.compile(r'\{\s*(?:"[^"\\]+"\s*:\s*\{\s*)*"[^"\\]+"\s*:\s*(?=")')
"""`{"function": {"name": ` before a quotation mark."""
_AFTER = re.compile(r'(?<=")\s*,\s*"[^"\\]+"\s*:\s*(?="?\Z)')
"""`, "arguments": ` after a quotation mark."""
_KEY = re.compile(r'"([^"]+)"\s*:')
_SPACE = re.compile(r"(\s+)")


@dataclass(frozen=True)
class Spelling:
    """The text of the object before the name's quotation marks and after them, up to the arguments."""

    before: str
    after: str

    @cached_property
    def pieces_before(self) -> Pieces:
        """What the characters before the name are."""
        return _pieces(self.before)

    @cached_property
    def pieces_after(self) -> Pieces:
        """What the characters after the name are."""
        return _pieces(self.after)


def spelling_of(syntax: CallSyntax) -> Spelling | None:
    """Return the spelling of the object up to its arguments, where nothing but the name and what encloses both is before them."""
    fields, function = syntax.envelope, syntax.function
    if fields is None or function[1:4:2] != (Slot.NAME, Slot.ARGUMENTS):
        return None
    first, second = function[0], function[2]
    assert isinstance(first, str)
    assert isinstance(second, str)
    before, after = _BEFORE.match(first), _AFTER.search(second)
    if not before or not after or before.end() != len(first) - 1 or after.start() != 1:
        return None
    keys = keys_in(before.group())
    if keys != fields.name_field or (*keys[:-1], *keys_in(after.group())) != fields.args_field:
        return None
    return Spelling(before.group(), after.group())


def keys_in(text: str) -> tuple[str, ...]:
    """Return the keys in a piece of a JSON object."""
    return tuple(json.loads(f'"{key}"') for key in _KEY.findall(text))


def pieces_of(text: str) -> Pieces:
    """Return what a text of markers is: white space between them is layout."""
    return tuple((Role.LAYOUT if part.isspace() else Role.MARKER, len(part)) for part in _SPACE.split(text) if part)


def _pieces(text: str) -> Pieces:
    """Return what a text of keys and punctuation is; white space inside keys is theirs."""
    found: list[tuple[Role, int]] = []
    for part in re.split(r'("[^"]*")', text):
        kinds = [part] if part.startswith('"') else _SPACE.split(part)
        found += [(Role.LAYOUT if kind.isspace() else Role.MARKER, len(kind)) for kind in kinds if kind]
    return tuple(found)
