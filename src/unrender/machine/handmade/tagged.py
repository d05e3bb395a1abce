"""Turns notes of what combinators read into events: text, and calls put together from tagged parts.

Rules: calls that are given as they are written start when the name is known (and the id, where the grammar reads ids);
arguments that come before wait. A value read as JSON streams; other text is held until its tag ends, and an argument's is
then typed by the tool's schema. A call is complete when its parts add up to a name and one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from unrender.errors import MalformedOutput
from unrender.machine.events import (
    ArgumentsText,
    ContentText,
    Event,
    Malformed,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender.machine.handmade.engine import Broken, Closed, Engine, Note, Notice, Opened, Program, Step
from unrender.machine.ids import CallIds
from unrender.machine.ledger import up_to
from unrender.machine.leftovers import BrokenText
from unrender.machine.policy import (
    USUAL,
    CallRelease,
    Policy,
    UnknownTools,
    instead_of_call,
    instead_of_silence,
    refuse,
)
from unrender.messages.wire import CallStatus, Request, ToolCall
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes, coerce

_CLOSING: Mapping[str, str] = {"": "{}", "entries": "}", "whole": ""}
"""What ends the arguments, by how they were written."""


class TaggedCall:
    """The call that is being put together from its parts."""

    __slots__ = ("begun", "id", "key", "name", "pieces", "said", "start", "streamed", "tags", "written")

    def __init__(self, start: int) -> None:
        self.start: int = start
        """Where its text begins, in characters from the output's beginning."""
        self.name: str = ""
        self.id: str = ""
        self.begun: bool = False
        """`ToolCallStarted` is out."""
        self.key: str = ""
        """The name of the latest argument."""
        self.said: list[str] = []
        """The arguments so far, as JSON text."""
        self.written: str = ""
        """How the arguments are written: "whole" in one value, or as "entries"; "" for not known yet."""
        self.tags: set[Role] = set()
        """The tags that were read."""
        self.pieces: list[str] = []
        """Text of the tag that is open, where it was not read as a value."""
        self.streamed: bool = False
        """The tag that is open was read as a value."""

    def copy(self) -> TaggedCall:
        """Return an independent copy."""
        other = TaggedCall(self.start)
        for slot in self.__slots__:
            value = getattr(self, slot)
            setattr(other, slot, value.copy() if isinstance(value, list | set) else value)
        return other


class TaggedReader:
    """Runs an engine and gives events.

    Text that the prompt has begun is before position 0; `given` means that a generation prompt wrote it. A strict
    reader raises `MalformedOutput` at the first text that the grammar does not allow.
    """

    __slots__ = (
        "call",
        "calls",
        "dead",
        "engine",
        "events",
        "has_ids",
        "ids",
        "length_limited",
        "policy",
        "request",
        "strict",
    )

    def __init__(
        self,
        program: Program,
        request: Request,
        *,
        strict: bool,
        ids: CallIds,
        policy: Policy | None = None,
        begun: int = 0,
        given: bool = False,
    ) -> None:
        self.policy: Policy = policy or USUAL
        self.engine: Engine = Engine(program, _names(request, self.policy), begun=begun, given=given)
        self.request: Request = request
        self.strict: bool = strict
        self.ids: CallIds = ids
        self.has_ids: bool = program.has_ids
        self.length_limited: bool = False
        """The engine stopped because its limit was reached."""
        self.events: list[Event | BrokenText] = []
        self.call: TaggedCall | None = None
        self.calls: int = 0
        self.dead: list[tuple[int, int]] = []
        """Where the text of calls is that is content, as they are not complete."""

    def copy(self) -> TaggedReader:
        """Return an independent reader in the same state."""
        other = TaggedReader.__new__(TaggedReader)
        for slot in self.__slots__:
            setattr(other, slot, getattr(self, slot))
        other.engine = self.engine.copy()
        other.call = self.call.copy() if self.call else None
        other.events, other.dead = list(self.events), list(self.dead)
        other.ids = self.ids.copy()
        return other

    def feed(self, text: str) -> list[Event | BrokenText]:
        """Read more text; return the events that are final."""
        return self._taken(self.engine.feed(text))

    def finish(self, text: str = "") -> list[Event | BrokenText]:
        """Read to the end, over the last of the text: no more will come."""
        events = self._taken(self.engine.finish(text))
        expected = instead_of_silence(self.request, self.calls)
        if not expected or self.length_limited:
            return events
        return [*events, *self._released([Malformed("", self.engine.position, expected)])]

    @property
    def program(self) -> tuple[Step, ...]:
        """The instructions that read the answer."""
        return self.engine.program

    @property
    def steps(self) -> int:
        """The number of instructions executed so far."""
        return self.engine.steps

    @property
    def final_end(self) -> int:
        """The end of the last final span. A call that was not told of is not final: it may become content."""
        end = self.engine.final_end
        return end if self.call is None or self.call.begun else min(end, self.call.start)

    def final_spans(self) -> list[tuple[Role, int]]:
        """Return the role and the end of each final span; no way back begins before its end."""
        spans = up_to(self.engine.final_spans(), self.final_end)
        return _merged(_as_content(spans, self.dead)) if self.dead else spans

    @property
    def _waits(self) -> bool:
        """Whether calls are given when they are complete."""
        return self.policy.calls is CallRelease.COMPLETE

    def open_call(self) -> ToolCall | None:
        """Return the call that is being read, as far as the caller was not told of it."""
        call = self.call
        return None if call is None or call.begun or Role.NAME not in call.tags else _read_so_far(call, CallStatus.OPEN)

    def _taken(self, notices: Iterable[Notice]) -> list[Event | BrokenText]:
        for notice in notices:
            match notice:
                case Note(role, text, value):
                    self._note(role, text, value=value)
                case Opened(role, position):
                    self._opened(role, position)
                case Closed():
                    self._closed(notice)
                case Broken():
                    self._broken(notice)
        events, self.events = self.events, []
        return self._released(events)

    def _released(self, events: list[Event | BrokenText]) -> list[Event | BrokenText]:
        if self.strict:
            refuse(events)
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
            self.call = TaggedCall(position)
        elif call is not None:
            if role in call.tags and role in _ONCE:
                self.events.append(Malformed("", position, f"one {role.value} in a call"))
            call.pieces, call.streamed = [], False

    def _closed(self, closed: Closed) -> None:
        call, role = self.call, closed.role
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
                self._end(call, closed)
        call.tags.add(role)
        named = Role.NAME in call.tags and (not self.has_ids or Role.ID in call.tags)
        if role in _BEFORE_START and named and not self._waits:
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
        if expected := instead_of_call(self.request, self.calls, call.name):
            self.events.append(Malformed(call.name, call.start, expected))
        self.calls += 1
        if call.said:
            self.events.append(ArgumentsText(self.calls - 1, "".join(call.said)))

    def _end(self, call: TaggedCall, closed: Closed) -> None:
        """End a call that was read to its end; without a name there is none."""
        self.call = None
        named = Role.NAME in call.tags
        self._say(call, _CLOSING[call.written] if named else "")
        if named and _is_object("".join(call.said)):
            self._start(call)
            self.events.append(ToolCallFinished(self.calls - 1, CallStatus.COMPLETE))
            return
        wanted = "arguments that are one JSON object" if named else "the name of a tool in the call"
        self._bury(call, CallStatus.INVALID, Malformed("", closed.position, wanted), closed.text)

    def _broken(self, broken: Broken) -> None:
        call, self.call = self.call, None
        if self.strict:
            refuse(self.events)
            raise MalformedOutput(broken.position, broken.expected, broken.around)
        met = Malformed(broken.met, broken.position, broken.expected)
        if call is None:
            self.events.append(met)
        else:
            self._bury(call, CallStatus.TRUNCATED if broken.at_end else CallStatus.INVALID, met, broken.text)

    def _bury(self, call: TaggedCall, status: CallStatus, met: Malformed, text: str) -> None:
        """End a call that is not complete, and report it. Its text becomes content, unless the call was given already."""
        named = Role.NAME in call.tags
        if named and not self._waits:
            self._start(call)
            self.events += [ToolCallFinished(self.calls - 1, status), met]
            return
        self.events.append(replace(met, call=_read_so_far(call, status)) if named else met)
        if text:
            self.events.append(ContentText(text))
            self.dead.append((call.start, met.position))


_ONCE = frozenset((Role.NAME, Role.ID, Role.ARGUMENT))
_BEFORE_START = frozenset((Role.NAME, Role.ID))


def _names(request: Request, policy: Policy) -> frozenset[str] | None:
    """Return the names that a call may have; None for any."""
    if not request.calls_allowed:
        return frozenset()
    if request.tools is None or policy.unknown_tools is UnknownTools.CALL:
        return None
    return frozenset(tool.name for tool in request.tools)


def _as_content(spans: Iterable[tuple[Role, int]], dead: Iterable[tuple[int, int]]) -> Iterator[tuple[Role, int]]:
    """Yield the spans, with what lies in one of the `dead` stretches as content."""
    waiting = deque(dead)
    at = -sys.maxsize
    for role, stop in spans:
        while waiting and waiting[0][0] < stop:
            start, end = waiting[0]
            if start > at:
                yield role, start
            at = min(end, stop)
            yield Role.CONTENT, at
            if end > stop:
                break
            waiting.popleft()
        if at < stop:
            yield role, stop
            at = stop


def _merged(spans: Iterable[tuple[Role, int]]) -> list[tuple[Role, int]]:
    """Join neighbours of the same role."""
    found: list[tuple[Role, int]] = []
    for role, stop in spans:
        if found and found[-1][0] is role:
            found.pop()
        found.append((role, stop))
    return found


def _read_so_far(call: TaggedCall, status: CallStatus) -> ToolCall:
    return ToolCall(name=call.name, arguments="".join(call.said), id=call.id, status=status)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False
