"""Puts calls together from the tags of a grammar made by hand.

Any part of such a grammar may be taken back: a way back inside a call keeps a copy of the call. Rules: calls that are
given as they are written start when the name is known (and the id, where the grammar reads ids); arguments that come
before wait. A value read as JSON streams; other text is held until its tag ends, and an argument's is then typed by the
tool's schema. A call is complete when its parts add up to a name and one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from unrender.machine.calls import complete_call, fail_call, name_call, start_call
from unrender.machine.events import Malformed
from unrender.machine.frames import CallState
from unrender.machine.interpreter import Machine
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.coercion import coerce

_CLOSING: Mapping[str, str] = {"": "{}", "entries": "}", "whole": ""}
"""What ends the arguments, by how they were written."""
_ONCE = frozenset((Role.NAME, Role.ID, Role.ARGUMENT))
_BEFORE_START = frozenset((Role.NAME, Role.ID))


def open_tag(machine: Machine, role: Role) -> None:
    """Begin a call, or a part of one."""
    if role is Role.CALL:
        machine.call = CallState(start=machine.position)
        return
    call = machine.current
    if role in call.tags and role in _ONCE:
        machine.events.append(Malformed("", machine.position, f"one {role.value} in a call"))
    call.pieces, call.streamed = [], False


def close_tag(machine: Machine, role: Role, *, waits: bool) -> None:
    """End the innermost open tag: the call, or a part that the call is given; `waits` means that calls may have ids of their own."""
    call = machine.current
    text = "".join(call.pieces)
    match role:
        case Role.NAME if role not in call.tags:
            name_call(machine, text)
        case Role.ID if role not in call.tags:
            call.id = text
        case Role.KEY:
            before = ", " if call.written == "entries" else "{"
            machine.arguments(f"{before}{json.dumps(text, ensure_ascii=False)}: ")
            call.written, call.key = "entries", text
        case Role.VALUE if not call.streamed:
            machine.arguments(coerce(text, call.types.types(call.key)))
        case Role.ARGUMENT:
            call.written = "whole"
            machine.arguments("" if call.streamed else text)
        case Role.CALL:
            _end(machine, call)
            return
    call.tags |= {role}
    # A grammar with ids gives a call when it has both, in any order.
    if role in _BEFORE_START and call.name and (not waits or Role.ID in call.tags):
        start_call(machine)


def _end(machine: Machine, call: CallState) -> None:
    """End a call that was read to its end; without a name it is invalid."""
    if call.name:
        machine.arguments(_CLOSING[call.written])
    # `arguments(json_value())` reads `[1]` as well, which are no arguments.
    if call.name and _is_object("".join(call.arguments)):
        complete_call(machine)
        return
    wanted = "arguments that are one JSON object" if call.name else "the name of a tool in the call"
    fail_call(machine, CallStatus.INVALID, wanted, "", machine.position)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False
