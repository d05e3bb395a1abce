"""Notes of what combinators read → events: text, and calls put together from the parts that tags name.

Rules: a call starts when its name is known (and its id, where the grammar reads ids); arguments that come before wait. A
value read as JSON streams; other text is held until its tag ends, and an argument's is then typed by the tool's schema.
A call is complete when its parts add up to a name and one JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from unrender.assemble import offered
from unrender.grammar.nodes import Role
from unrender.messages import CallStatus, Request
from unrender.parsing.coercion import ArgumentTypes, coerce
from unrender.parsing.engine import Broken, Closed, Engine, Note, Notice, Opened, Program
from unrender.parsing.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.parsing.ids import CallIds

_CLOSING: Mapping[str, str] = {"": "{}", "entries": "}", "whole": ""}
"""What ends the arguments, by how they were written."""


class TaggedCall:
    """The call that is being put together."""

    __slots__ = ("begun", "id", "key", "name", "pieces", "said", "streamed", "tags", "written")

    def __init__(self) -> None:
        self.name = ""
        self.id = ""
        self.begun = False
        """`ToolCallStarted` is out."""
        self.key = ""
        """The name of the latest argument."""
        self.said: list[str] = []
        """The arguments so far, as JSON text."""
        self.written = ""
        """How the arguments are written: "whole" in one value, or as "entries"; "" for not known yet."""
        self.tags: set[Role] = set()
        """The tags that were read."""
        self.pieces: list[str] = []
        """Text of the tag that is open, where it was not read as a value."""
        self.streamed = False
        """The tag that is open was read as a value."""

    def copy(self) -> TaggedCall:
        """Return an independent copy."""
        other = TaggedCall()
        for slot in self.__slots__:
            value = getattr(self, slot)
            setattr(other, slot, value.copy() if isinstance(value, list | set) else value)
        return other


class TaggedReader:
    """Runs an engine and gives events."""

    __slots__ = ("call", "calls", "engine", "events", "has_ids", "ids", "length_limited", "request")

    def __init__(self, program: Program, request: Request, *, strict: bool, ids: CallIds, begun: int = 0) -> None:
        tools = offered(request) if request.calls_allowed else ()
        names = None if tools is None else frozenset(tool.name for tool in tools)
        self.engine = Engine(program, names, strict=strict, begun=begun)
        self.request = request
        self.ids = ids
        self.has_ids = program.has_ids
        self.length_limited = False
        """The engine stopped because its limit was reached."""
        self.events: list[Event] = []
        self.call: TaggedCall | None = None
        self.calls = 0

    def copy(self) -> TaggedReader:
        """Return an independent reader in the same state."""
        other = TaggedReader.__new__(TaggedReader)
        for slot in self.__slots__:
            setattr(other, slot, getattr(self, slot))
        other.engine = self.engine.copy()
        other.call = self.call.copy() if self.call else None
        other.events = list(self.events)
        other.ids = self.ids.copy()
        return other

    def feed(self, text: str) -> list[Event]:
        """Read more text; returns the events that are final."""
        return self._taken(self.engine.feed(text))

    def finish(self) -> list[Event]:
        """Read to the end: no more text will come."""
        return self._taken(self.engine.finish())

    def _taken(self, notices: Iterable[Notice]) -> list[Event]:
        for notice in notices:
            match notice:
                case Note(role, text, value):
                    self._note(role, text, value=value)
                case Opened(role, position):
                    self._opened(role, position)
                case Closed(role):
                    self._closed(role)
                case Broken(text, position, expected, at_end):
                    self._broken(at_end=at_end)
                    self.events.append(Malformed(text, position, expected))
        events, self.events = self.events, []
        return events

    def _note(self, role: Role, text: str, *, value: bool) -> None:
        call = self.call
        if call is None:
            self.events.append(ReasoningText(text) if role is Role.REASONING else ContentText(text))
        elif value:
            call.streamed = True
            self._say(call, text)
        else:
            call.pieces.append(text)

    def _opened(self, role: Role, position: int) -> None:
        call = self.call
        if role is Role.CALL:
            self.call = TaggedCall()
        elif call is not None:
            if role in call.tags and role in _ONCE:
                self.events.append(Malformed("", position, f"one {role.value} in a call"))
            call.pieces, call.streamed = [], False

    def _closed(self, role: Role) -> None:
        call = self.call
        if call is None:
            return
        text = "".join(call.pieces)
        match role:
            case Role.NAME if role not in call.tags:
                call.name = text
            case Role.ID if role not in call.tags:
                call.id = text
            case Role.KEY:
                self._say(call, (", " if call.written == "entries" else "{") + _string(text) + ": ")
                call.written, call.key = "entries", text
            case Role.VALUE if not call.streamed:
                types = ArgumentTypes(self.request.tool(call.name)).types(call.key)
                self._say(call, coerce(text, types))
            case Role.ARGUMENT:
                call.written = "whole"
                self._say(call, "" if call.streamed else text)
            case Role.CALL:
                self._end(call, CallStatus.COMPLETE)
        call.tags.add(role)
        if role in _BEFORE_START and Role.NAME in call.tags and (not self.has_ids or Role.ID in call.tags):
            self._start(call)

    def _say(self, call: TaggedCall, text: str) -> None:
        if not text:
            return
        call.said.append(text)
        if call.begun:
            self.events.append(ArgumentsText(self.calls - 1, text))

    def _start(self, call: TaggedCall) -> None:
        if call.begun:
            return
        call.begun = True
        known = self.request.tools is None or self.request.tool(call.name) is not None
        call.id = self.ids.give(self.calls, call.name, call.id)
        self.events.append(ToolCallStarted(self.calls, call.id, call.name, known))
        self.calls += 1
        if call.said:
            self.events.append(ArgumentsText(self.calls - 1, "".join(call.said)))

    def _end(self, call: TaggedCall, status: CallStatus) -> None:
        """End the call; without a name there is none."""
        self.call = None
        if Role.NAME not in call.tags:
            return
        self._start(call)
        if status is CallStatus.COMPLETE:
            self._say(call, _CLOSING[call.written])
            status = status if _is_object("".join(call.said)) else CallStatus.INVALID
        self.events.append(ToolCallFinished(self.calls - 1, status))

    def _broken(self, *, at_end: bool) -> None:
        if self.call is not None:
            self._end(self.call, CallStatus.TRUNCATED if at_end else CallStatus.INVALID)


_ONCE = frozenset((Role.NAME, Role.ID, Role.ARGUMENT))
_BEFORE_START = frozenset((Role.NAME, Role.ID))


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False
