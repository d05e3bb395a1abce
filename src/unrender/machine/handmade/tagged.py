"""Puts calls together from the tags of a grammar made by hand.

Any part of such a grammar may be taken back: a way back inside a call keeps a copy of the call. Rules: calls that are
given as they are written start when the name is known (and the id, where the grammar reads ids); arguments that come
before wait. A value read as JSON streams; other text is held until its tag ends, and an argument's is then typed by the
tool's schema. A call is complete when its parts add up to a name and one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unrender.machine.events import Malformed
from unrender.machine.frames import CallState
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.coercion import coerce

if TYPE_CHECKING:
    from unrender.machine.interpreter import Machine

IN_CALLS: Mapping[Role, Role] = {
    Role.CALL: Role.MARKER,
    Role.NAME: Role.NAME,
    Role.ID: Role.ID,
    Role.KEY: Role.ARGUMENT,
    Role.VALUE: Role.ARGUMENT,
    Role.ARGUMENT: Role.ARGUMENT,
}
"""The tags that only a call has, and what their text is called in a span."""
_CLOSING: Mapping[str, str] = {"": "{}", "entries": "}", "whole": ""}
"""What ends the arguments, by how they were written."""
_ONCE = frozenset((Role.NAME, Role.ID, Role.ARGUMENT))
_BEFORE_START = frozenset((Role.NAME, Role.ID))


@dataclass(slots=True, eq=False, kw_only=True)
class TaggedCall(CallState):
    """The call that is being put together from its parts."""

    written: str = ""
    """How the arguments are written: "whole" in one value, or as "entries"; "" for not known yet."""
    tags: frozenset[Role] = frozenset()
    """The tags that were read."""
    pieces: list[str] = field(default_factory=list)
    """Text of the tag that is open, where it was not read as a value."""
    streamed: bool = False
    """The tag that is open was read as a value."""
    sizes: tuple[int, int] = (0, 0)
    """How many arguments and pieces there were when this copy was kept."""

    def kept(self) -> TaggedCall:
        """Return a copy to come back to. It shares the texts, which only grow, so that a way back costs the same in a long call."""
        made = self._same()
        made.sizes = len(self.arguments), len(self.pieces)
        return made

    def restored(self) -> TaggedCall:
        """Return the call as it was when this copy was kept."""
        del self.arguments[self.sizes[0] :], self.pieces[self.sizes[1] :]
        return self._same()

    def _same(self) -> TaggedCall:
        other = object.__new__(TaggedCall)
        for name in self._names:
            setattr(other, name, getattr(self, name))
        return other


def add_text(machine: Machine, text: str, value: str | None) -> None:
    """Add text of the open tag to the call; `value` is its JSON, where it is read as a value."""
    call = _call(machine)
    if value is not None:
        call.streamed = True
        machine.arguments(value)
    else:
        call.pieces.append(text)


def open_tag(machine: Machine, role: Role) -> None:
    """Begin a call, or a part of one."""
    if role is Role.CALL:
        machine.call = TaggedCall(start=machine.position)
        return
    call = _call(machine)
    if role in call.tags and role in _ONCE:
        machine.events.append(Malformed("", machine.position, f"one {role.value} in a call"))
    call.pieces, call.streamed = [], False


def close_tag(machine: Machine, role: Role) -> None:
    """End the innermost open tag: the call, or a part that the call is given."""
    call = _call(machine)
    text = "".join(call.pieces)
    match role:
        case Role.NAME if role not in call.tags:
            machine.named(text)
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
    if role in _BEFORE_START and call.name and (not machine.has_ids or Role.ID in call.tags):
        machine.start_call()


def _end(machine: Machine, call: TaggedCall) -> None:
    """End a call that was read to its end; without a name it is invalid."""
    if call.name:
        machine.arguments(_CLOSING[call.written])
    # `arguments(json_value())` reads `[1]` as well, which are no arguments.
    if call.name and _is_object("".join(call.arguments)):
        machine.complete_call()
        return
    wanted = "arguments that are one JSON object" if call.name else "the name of a tool in the call"
    machine.fail_call(CallStatus.INVALID, wanted, "", machine.position)


def _call(machine: Machine) -> TaggedCall:
    """Return the open call: all tags but its own are inside it."""
    assert isinstance(machine.call, TaggedCall)
    return machine.call


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False
