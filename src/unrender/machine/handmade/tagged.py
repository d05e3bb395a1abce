"""Puts calls together from the tags of a grammar made by hand: notes of what was read become events once they are final.

Any part of such a grammar may be taken back, so what its tags hold is only noted while they are read. Rules: calls that are
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

    said: list[str] = field(default_factory=list)
    """The arguments so far, as JSON text."""
    written: str = ""
    """How the arguments are written: "whole" in one value, or as "entries"; "" for not known yet."""
    tags: set[Role] = field(default_factory=set)
    """The tags that were read."""
    pieces: list[str] = field(default_factory=list)
    """Text of the tag that is open, where it was not read as a value."""
    streamed: bool = False
    """The tag that is open was read as a value."""


@dataclass(frozen=True, slots=True)
class Note:
    """Text of the open tag, inside a call; if it is a value, `text` is its JSON."""

    text: str
    value: bool = False

    def tell(self, machine: Machine) -> None:
        """Add the text to the call."""
        call = _call(machine)
        if self.value:
            call.streamed = True
            _say(machine, call, self.text)
        else:
            call.pieces.append(self.text)


@dataclass(frozen=True, slots=True)
class Opened:
    """A tag begins: a call, or a part of one."""

    role: Role
    position: int

    def tell(self, machine: Machine) -> None:
        """Begin the call, or the part."""
        if self.role is Role.CALL:
            machine.call = TaggedCall(start=self.position)
            return
        call = _call(machine)
        if self.role in call.tags and self.role in _ONCE:
            machine.events.append(Malformed("", self.position, f"one {self.role.value} in a call"))
        call.pieces, call.streamed = [], False


@dataclass(frozen=True, slots=True)
class Closed:
    """The innermost open tag ends: a call, or a part of one."""

    role: Role
    position: int

    def tell(self, machine: Machine) -> None:
        """End the call, or give it the part."""
        call, role = _call(machine), self.role
        text = "".join(call.pieces)
        match role:
            case Role.NAME if role not in call.tags:
                machine.named(text)
            case Role.ID if role not in call.tags:
                call.id = text
            case Role.KEY:
                before = ", " if call.written == "entries" else "{"
                _say(machine, call, f"{before}{json.dumps(text, ensure_ascii=False)}: ")
                call.written, call.key = "entries", text
            case Role.VALUE if not call.streamed:
                _say(machine, call, coerce(text, call.types.types(call.key)))
            case Role.ARGUMENT:
                call.written = "whole"
                _say(machine, call, "" if call.streamed else text)
            case Role.CALL:
                self._end(machine, call)
                return
        call.tags.add(role)
        # A grammar with ids gives a call when it has both, in any order.
        if role in _BEFORE_START and call.name and (not machine.has_ids or Role.ID in call.tags):
            machine.start_call()

    def _end(self, machine: Machine, call: TaggedCall) -> None:
        """End a call that was read to its end; without a name it is invalid."""
        if call.name:
            _say(machine, call, _CLOSING[call.written])
        # `arguments(json_value())` reads `[1]` as well, which are no arguments.
        if call.name and _is_object("".join(call.said)):
            machine.complete_call(self.position)
            return
        wanted = "arguments that are one JSON object" if call.name else "the name of a tool in the call"
        machine.fail_call(CallStatus.INVALID, wanted, "", self.position, self.position)


Notice = Note | Opened | Closed
"""What was read of a call, and may yet be taken back."""


def _call(machine: Machine) -> TaggedCall:
    """Return the open call: all tags but its own are inside it."""
    assert isinstance(machine.call, TaggedCall)
    return machine.call


def _say(machine: Machine, call: TaggedCall, text: str) -> None:
    call.said.append(text)
    machine.arguments(text)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False
