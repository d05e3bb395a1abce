"""Control-flow instructions of handwritten grammars: choices, loops, rules, lookaheads and tags.

Rules: the rules of `instructions` apply. Open nodes are on the machine's stack, and each backtracking point stores the stack.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_NAME, MAX_STACK
from unrender.machine.call_events import complete_call, fail_call, name_call, offers, start_call
from unrender.machine.events import Malformed
from unrender.machine.frames import IN_CALLS, CallState, StackEntry
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.coercion import coerce
from unrender.values.finder import Finder, Flow, end_of
from unrender.values.resumable import DONE, MORE
from unrender.values.scanner import LiteralScanner, LiteralStyle

UNLIMITED = 1 << 60
_CLOSING: Mapping[str, str] = {"": "{}", "entries": "}", "whole": ""}
"""Text that completes the JSON of the arguments, for each value of `CallState.written`."""
_ONCE = frozenset((Role.NAME, Role.ID, Role.ARGUMENT))
_BEFORE_START = frozenset((Role.NAME, Role.ID))
_TEXTS = (Role.CONTENT, Role.REASONING)

OptionGuard = re.Pattern[str] | None
"""Matches the first characters with which an option may start. The option is tried only if the next character matches. None means no
restriction.
"""


def _open(machine: Machine, targets: tuple[int, ...], *, holds: bool = False) -> int:
    """Add a backtracking point that commits don't close, and return its serial number."""
    machine.serial += 1
    frame = machine.way_back(targets[:-1], targets[-1])
    frame.holds, frame.reported, frame.serial = holds, False, machine.serial
    return machine.serial


def _close_point(machine: Machine, serial: int) -> None:
    """Close the backtracking point with this serial number, and all later ones. Does nothing if a cut already closed them."""
    # In `("a" cut "b" / "c")`, the cut has already closed the choice's backtracking point, so there may be nothing to close.
    while serial and machine.frames and machine.frames[-1].serial >= serial:
        machine.frames.pop()


def _rewind(machine: Machine, serial: int) -> bool:
    """Return to the backtracking point with this serial number, and close it. Return False if the backtracking limit is exceeded."""
    while machine.frames[-1].serial > serial:
        machine.frames.pop()
    frame = machine.frames.pop()
    machine.failed_at = max(machine.failed_at, machine.at)
    # A lookahead is parsed again, so its text counts towards the limit like that of a failed attempt.
    machine.reread += 1 + machine.position - frame.at
    machine.go_back(frame.start)
    return not machine.exhausted()


def _push(machine: Machine, **held: int | Role | None) -> None:
    """Push an entry onto the stack."""
    depth = machine.stack.depth + 1 if machine.stack else 1
    machine.stack = StackEntry(machine.stack, depth, **held)  # type: ignore[arg-type]


def _pop(machine: Machine) -> StackEntry:
    """Remove the latest entry from the stack, and return it."""
    entry = machine.stack
    assert entry is not None
    machine.stack = entry.below
    return entry


def at_edge(machine: Machine) -> bool:
    """Return whether all available text is consumed, but more text may follow."""
    return machine.at == len(machine.buffer) and not machine.final


@dataclass(frozen=True, slots=True)
class CharRun:
    """Consumes as many matching characters as possible, as in `[a-z]{minimum,maximum}`."""

    pattern: re.Pattern[str]
    """Matches any number of the allowed characters."""
    minimum: int
    maximum: int
    wanted: str

    def step(self, machine: Machine) -> bool:
        limit = machine.at + self.maximum - machine.counted
        end = end_of(self.pattern, machine.buffer, machine.at, limit)
        machine.counted += end - machine.at
        machine.take(Role.MARKER, end)
        if at_edge(machine) and machine.counted < self.maximum:
            return True  # Continue with the next chunk.
        count, machine.counted = machine.counted, 0
        return machine.fail(self.wanted) if count < self.minimum else machine.go_on()


@dataclass(frozen=True, slots=True)
class UpTo:
    """Consumes all text before the first of the literals, as in `(!stop .)*`."""

    finder: Finder
    flow: Flow
    """Fast path for text that contains none of the literals."""

    @classmethod
    def first_of(cls, stops: tuple[str, ...]) -> UpTo:
        """Return an instruction that consumes text up to the first of `stops`."""
        return cls(Finder(stops), Flow(stops))

    def step(self, machine: Machine) -> bool:
        buffer, here = machine.buffer, machine.at
        at, _ = self.finder.find(buffer, here)
        waits = at < 0 and not machine.final
        if at < 0:
            at = self.finder.undecided_from(buffer, here) if waits else len(buffer)
        machine.take(Role.MARKER, at)
        if waits:
            if machine.tag in _TEXTS and machine.span_roles[-1:] == [machine.tag]:
                machine.flow = self.flow
            return True
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Value:
    """Parses one JSON or Python value."""

    style: LiteralStyle
    wanted: str
    first: str = ""
    """The value's required first character, or "" if any value is allowed."""

    def step(self, machine: Machine) -> bool:
        if machine.scanner is None:
            if self.first and not machine.buffer.startswith(self.first, machine.at):
                return at_edge(machine) or machine.fail(self.wanted)
            machine.scanner = LiteralScanner(self.style)
        end, text, status = machine.scanner.scan(machine.buffer, machine.at, final=machine.final)
        machine.take_value(end, text)
        if status is MORE and not machine.final:
            return True
        machine.scanner = None
        return machine.go_on() if status is DONE else machine.fail(self.wanted)


@dataclass(frozen=True, slots=True)
class Try:
    """Tries options in order, as in `a / b / c`. Options that the next character excludes are skipped."""

    options: tuple[tuple[OptionGuard, int], ...]
    wanted: str
    guarded: bool = False
    """True if the next character may exclude an option."""
    holds: bool = False
    """True for a lookahead or an atom. Cuts inside the node then don't close its backtracking point."""

    def step(self, machine: Machine) -> bool:
        here = machine.at
        if self.guarded and at_edge(machine):
            return True
        # If only one option is possible, the text streams, because no backtracking point is needed. For example, if the next character is
        # 7, the first option of `"<a>" / [0-9]+` is excluded.
        viable = tuple(target for guard, target in self.options if guard is None or guard.match(machine.buffer, here))
        if not viable or _too_deep(machine):
            return machine.fail(self.wanted)
        serial = machine.serial + 1 if len(viable) > 1 else 0
        _push(machine, way=serial)
        if serial:
            _open(machine, viable[1:], holds=self.holds)
        return machine.go_to(viable[0])


def _too_deep(machine: Machine) -> bool:
    return machine.stack is not None and machine.stack.depth >= MAX_STACK


@dataclass(frozen=True, slots=True)
class Chosen:
    """Ends an option. The remaining options are no longer tried."""

    target: int
    again: bool = False
    """True at the end of a lookahead, after which the same text has to be parsed again."""

    def step(self, machine: Machine) -> bool:
        way = _pop(machine).way
        if not self.again:
            _close_point(machine, way)
        elif _rewind(machine, way):
            _pop(machine)  # Backtracking restored the stack entry of the choice, so remove it again.
        else:
            return False
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Loop:
    """Starts another round of a loop, or continues after the loop, as in `a{minimum,maximum}`."""

    minimum: int
    maximum: int
    guards: tuple[OptionGuard, OptionGuard]
    """Guards for the first round and for later rounds. Later rounds start with the separator."""
    targets: tuple[int, int]
    otherwise: int

    ends: bool = False
    """True for the instruction at the end of a round. After an empty round, this instruction leaves the loop."""

    def step(self, machine: Machine) -> bool:
        if not self.ends:
            return self._round(machine, 0)
        stack, entry = machine.stack, _pop(machine)
        _close_point(machine, entry.way)
        # Leave the loop after an empty round. Otherwise, a loop such as `(a?)*` would never end.
        if machine.position == entry.start:
            return machine.go_to(self.otherwise)
        waits = self._round(machine, entry.count + 1)
        if waits:
            machine.stack = stack
        return waits

    def _round(self, machine: Machine, count: int) -> bool:
        """Start the next round after `count` completed ones, if the text allows it. Return True to suspend the machine."""
        again, serial = min(count, 1), 0
        if count == self.maximum:
            return machine.go_to(self.otherwise)
        # A mandatory round needs no backtracking point.
        if count >= self.minimum:
            guard = self.guards[again]
            if guard is not None:
                if at_edge(machine):
                    return True
                if not guard.match(machine.buffer, machine.at):
                    return machine.go_to(self.otherwise)
            # An optional round needs a backtracking point. For example, `("a" "b")* "a"` matches "aba" only if the second round is undone.
            serial = _open(machine, (self.otherwise,))
        _push(machine, count=count, start=machine.position, way=serial)
        return machine.go_to(self.targets[again])


@dataclass(frozen=True, slots=True)
class Subroutine:
    """Calls the rule at `target`, then continues at the next instruction. Without a target, returns from a rule."""

    target: int = -1

    def step(self, machine: Machine) -> bool:
        if self.target < 0:
            return machine.go_to(_pop(machine).address)
        if _too_deep(machine):
            return machine.fail(f"at most {MAX_STACK} nested rules")
        _push(machine, address=machine.pc + 1)
        return machine.go_to(self.target)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Starts or ends a tag, which determines the role of its text. A tool name must be the name of an offered tool.

    Backtracking can undo any part of a call, so a backtracking point inside a call stores a copy of the call. A streamed call starts once
    its name is known, and its id if the grammar has ids. Earlier arguments are buffered. A value that is parsed as JSON streams. Text of
    other tags is buffered until the end of the tag. The text of an argument is then converted according to the tool's schema. A complete
    call consists of a name and one JSON object.
    """

    role: Role
    ends: bool = False
    waits: bool = False
    """True if the grammar has ids. A call then starts only after its name and id."""

    def step(self, machine: Machine) -> bool:
        if self.ends:
            return self._end(machine)
        _push(machine, tag=machine.tag)
        machine.tag = self.role
        if self.role is Role.CALL:
            machine.call = CallState(start=machine.position)
        elif self.role in IN_CALLS:
            call = machine.current
            if self.role in call.tags and self.role in _ONCE:
                machine.events.append(Malformed("", machine.position, f"one {self.role.value} in a call"))
            call.pieces, call.streamed = [], False
        return machine.go_on()

    def _end(self, machine: Machine) -> bool:
        if self.role in IN_CALLS:
            call = machine.current
            text = "".join(call.pieces)
            allowed = machine.request._calls_allowed and len(text) <= MAX_NAME
            if self.role is Role.NAME and not (allowed and offers(machine, text)):
                return machine.fail("the name of a tool")
            _close(machine, call, self.role, text, waits=self.waits)
        machine.tag = _pop(machine).tag
        return machine.go_on()


def _close(machine: Machine, call: CallState, role: Role, text: str, *, waits: bool) -> None:
    """Process the end of a call, or of a part of the call."""
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
    # If the grammar has ids, a call starts once its name and id are known, in any order.
    if role in _BEFORE_START and call.name and (not waits or Role.ID in call.tags):
        start_call(machine)


def _end(machine: Machine, call: CallState) -> None:
    """End a call. A call is invalid if it has no name, or if its arguments aren't an object."""
    if call.name:
        machine.arguments(_CLOSING[call.written])
    # Check that the arguments are an object, because `arguments(json_value())` also accepts other values, such as `[1]`.
    if call.name and _is_object("".join(call.arguments)):
        complete_call(machine)
        return
    wanted = "arguments in the form of one JSON object" if call.name else "the name of a tool in the call"
    fail_call(machine, "invalid", wanted, "", machine.position)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Handles a failure when no backtracking point is left. The rest of the text is content."""

    def step(self, machine: Machine) -> bool:
        if at_edge(machine):
            return True
        machine.tag = None
        # Report only one character, so that the result doesn't depend on the chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        if machine.call is None:
            machine.malformed(met, machine.wanted)
        else:
            fail_call(machine, "invalid" if met else "truncated", machine.wanted, met)
        return machine.go_on()
