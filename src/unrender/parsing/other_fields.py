"""Decides what the fields of a call's JSON object say that the format does not know: `{"name": "now", "args": {"city": "Rome"}}`.

Rules: arguments are never lost in silence. Where a call has none, one object under another name is taken for them, and
reported; anything else that may be arguments ends the call. Beside arguments every such field is left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from unrender.format import CallSyntax, Envelope, Slot
from unrender.parsing.keys import duplicate_key
from unrender.parsing.machine import Machine
from unrender.parsing.quoted import QuotedScanner
from unrender.parsing.spelled import keys_in
from unrender.parsing.values import DONE, LiteralStyle

METADATA = frozenset(("call_id", "function", "id", "index", "object", "status", "tool_call_id", "type"))
"""Fields that the wire forms of calls have beside name and arguments; their values are never objects."""
Field = tuple[str, str]
"""A key, and its value as JSON text."""


def known_fields(syntax: CallSyntax, fields: Envelope) -> frozenset[str]:
    """Return the keys that the format itself writes, those of name and arguments excepted: their values say nothing."""
    written = {key for part in syntax.function if not isinstance(part, Slot) for key in keys_in(part)}
    return frozenset(written - {*fields.name_field[-1:], *fields.args_field[-1:]})


def settle(machine: Machine, others: Iterable[Field], name: str, *, takes: bool) -> bool:
    """Say what a call is, at its end, that has other fields. Return False if it cannot be said for sure.

    `name` is the name of the arguments in the format; `takes` means that they may have another.
    """
    call = machine.call
    assert call is not None
    objects = {key: found for key, value in others if (found := _object_in(value))}
    # A field named like one of the tool's own arguments is that argument, in the wrong place.
    own = {key for key, _ in others if call.tool and call.types.schema(key) is not None}
    silent = METADATA if call.count else METADATA - own
    said = [key for key, _ in others if key in objects or key not in silent]
    if call.count or not said:
        for key in said:
            machine.malformed(key, "another field")
        return True
    if not takes or own or len([key for key in said if key in objects]) != 1:
        return False
    for key in said:
        machine.malformed(key, repr(name) if key in objects else "another field")
    arguments = "".join(objects.values())
    if duplicate := duplicate_key(arguments):
        machine.malformed(duplicate, "another argument")
    call.count = 1
    machine.arguments(arguments)
    return True


def _object_in(value: str) -> str:
    """Return the object that a value is, or that it holds as text; "" when it is or holds none."""
    if not value.startswith('"'):
        return value if value.startswith("{") else ""
    _, found, status = QuotedScanner(LiteralStyle()).scan(value, 0, final=True)
    return found if status is DONE and value.strip('" \t\n\r') else ""
