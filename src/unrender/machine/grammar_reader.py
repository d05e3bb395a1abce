"""Reads an answer as a handwritten grammar.

Strategy: one coroutine for each open node. A coroutine suspends (`yield`) until more text arrives, or yields an inner node, which is read
before the coroutine continues. A list holds the open coroutines, so rules may nest deeper than Python's own stack.

Rules:
- A node that doesn't match calls `fail`, which returns the machine to the latest backtracking point. The exception ends all coroutines up to
  the one that added this point.
- A cut closes the backtracking points around it. A failure without a backtracking point ends the grammar: the rest of the text is content.
- A choice or loop adds a backtracking point only if the next character leaves several possibilities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from unrender import nodes
from unrender.limits import MAX_NAME, MAX_STACK
from unrender.machine import Malformed
from unrender.machine.call_events import commit, complete_call, fail_call, name_call, offers, start_call
from unrender.machine.frames import IN_CALLS, CallState, Frame, Restart
from unrender.machine.instructions import take_space
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values import DONE, MORE
from unrender.values.coercion import coerce
from unrender.values.finder import end_of
from unrender.values.scanner import LiteralScanner

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


@dataclass(frozen=True, slots=True)
class GrammarPart:
    """A node of a handwritten grammar, with everything about it that doesn't depend on the text."""

    node: Any
    inner: tuple[GrammarPart, ...] = ()
    """The nodes inside this one. A repetition has its separator after its node."""
    wanted: str = ""
    """A description of the text that the node matches."""
    guards: tuple[OptionGuard, ...] = ()
    """The guards of the options of a choice, or of the first and of later rounds of a repetition."""
    reads: Any = None
    """A pattern for any number of allowed characters, a finder for the end of free text, or the notation of a value."""


@dataclass(frozen=True, slots=True)
class ReadGrammar:
    """Reads a whole answer, and ends the program."""

    answer: tuple[GrammarPart, ...]
    rest: GrammarPart
    """Reads the rest of the text if it doesn't match the grammar."""
    rules: Mapping[str, GrammarPart]
    has_ids: bool
    """True if the grammar has ids. A call then starts only after its name and id."""

    def step(self, machine: Machine) -> bool:
        if machine.restart is None:
            machine.restart = Restart.of(machine, GrammarReader(machine, self), keeps=False)
        if next(machine.restart.run, DONE) is DONE:
            machine.restart, machine.halted = None, True
        return True


class _Backtrack(Exception):
    """The machine has returned to the backtracking point `frame`. None if no backtracking point was left."""

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame


NodeSteps = Generator[GrammarPart | None, None, None]
"""A coroutine that reads one node. It yields an inner node to read next, or None to wait for more text."""


@dataclass(slots=True, eq=False)
class GrammarReader:
    """Reads the nodes of a grammar."""

    machine: Machine
    grammar: ReadGrammar
    stops: tuple[str, ...] = ()
    """The texts that end the text that is being read, if it's free text."""
    opened: list[NodeSteps] = field(default_factory=list)
    """The coroutines of the open nodes, innermost last."""

    def run(self) -> Generator[None, None, None]:
        """Read the answer."""
        self.opened.append(self._answer())
        failure: _Backtrack | None = None
        while self.opened:
            self.machine.steps += 1
            reading, thrown, failure = self.opened[-1], failure, None
            try:
                inner = reading.throw(thrown) if thrown else next(reading)
            except StopIteration:
                self.opened.pop()
            except _Backtrack as back:
                self.opened.pop()
                failure = back.with_traceback(None)
            else:
                if inner is None:
                    yield
                elif len(self.opened) >= MAX_STACK:
                    failure = self._failed(f"at most {MAX_STACK} nested rules")
                else:
                    self.opened.append(_READERS[type(inner.node)](self, inner))

    def fail(self, wanted: str) -> NoReturn:
        """End the node, and return to the latest backtracking point. `wanted` is the expected text."""
        raise self._failed(wanted)

    def _failed(self, wanted: str) -> _Backtrack:
        frame = self.machine.frames[-1] if self.machine.frames else None
        self.machine.fail(wanted)
        return _Backtrack(None if self.machine.broke else frame)

    @property
    def at_edge(self) -> bool:
        """True if all available text is consumed, but more text may follow."""
        return self.machine.at == len(self.machine.buffer) and not self.machine.final

    def _answer(self) -> NodeSteps:
        machine = self.machine
        try:
            yield from self.grammar.answer
            return
        except _Backtrack:
            pass  # No backtracking point is left.
        while self.at_edge:
            yield None
        machine.broke, machine.tag = False, None
        # Report only one character, so that the result doesn't depend on the chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        if machine.call is None:
            machine.malformed(met, machine.wanted)
        else:
            fail_call(machine, "invalid" if met else "truncated", machine.wanted, met)
        yield self.grammar.rest

    # Text.

    def literal(self, part: GrammarPart) -> NodeSteps:
        machine, text = self.machine, part.node.text
        while not machine.buffer.startswith(text, machine.at):
            if not machine.may_begin(text):
                self.fail(part.wanted)
            yield None
        machine.take(Role.MARKER, machine.at + len(text))

    def layout(self, _part: GrammarPart) -> NodeSteps:
        while take_space(self.machine):
            yield None

    def characters(self, part: GrammarPart) -> NodeSteps:
        machine, node, count = self.machine, part.node, 0
        most = UNLIMITED if node.maximum is None else node.maximum
        while True:
            end = end_of(part.reads, machine.buffer, machine.at, machine.at + most - count)
            count += end - machine.at
            machine.take(Role.MARKER, end)
            if count == most or not self.at_edge:
                break
            yield None
        if count < node.minimum:
            self.fail(part.wanted)

    def until(self, part: GrammarPart) -> NodeSteps:
        machine, finder = self.machine, part.reads
        while True:
            at, stop = finder.search(machine.buffer, machine.at, final=machine.final)
            machine.take(Role.MARKER, at)
            if stop or machine.final:
                break
            if machine.tag in _TEXTS and machine.span_roles[-1:] == [machine.tag]:
                machine.flow = finder.flow("")
            self.stops = finder.literals
            yield None
        self.stops = ()

    def end(self, part: GrammarPart) -> NodeSteps:
        while self.at_edge:
            yield None
        if self.machine.at < len(self.machine.buffer):
            self.fail(part.wanted)

    def value(self, part: GrammarPart) -> NodeSteps:
        machine, first = self.machine, getattr(part.node, "quote", "")
        while first and not machine.buffer.startswith(first, machine.at):
            if not self.at_edge:
                self.fail(part.wanted)
            yield None
        machine.scanner = scanner = LiteralScanner(part.reads)
        while True:
            end, text, status = scanner.scan(machine.buffer, machine.at, final=machine.final)
            machine.take_value(end, text)
            if status is not MORE or machine.final:
                break
            yield None
        machine.scanner = None
        if status is not DONE:
            self.fail(part.wanted)

    # Control flow.

    def parts(self, part: GrammarPart) -> NodeSteps:
        yield from part.inner

    def rule(self, part: GrammarPart) -> NodeSteps:
        yield self.grammar.rules[part.node.rule]

    def cut(self, _part: GrammarPart) -> NodeSteps:
        commit(self.machine)
        yield from ()

    def mark(self, _part: GrammarPart) -> NodeSteps:
        yield from ()

    def _open(self, *, holds: bool = False) -> Frame:
        """Add a backtracking point. If `holds` is True, cuts don't close it."""
        frame = self.machine.way_back((), self.machine.pc)
        frame.holds, frame.reported = holds, False
        return frame

    def _close(self, frame: Frame | None) -> None:
        """Close a backtracking point, unless a cut already closed it, as in `("a" cut "b" / "c")`."""
        if self.machine.frames and self.machine.frames[-1] is frame:
            self.machine.frames.pop()

    def _matches(self, frame: Frame | None, *parts: GrammarPart) -> Generator[GrammarPart | None, None, bool]:
        """Read parts in order. Return False if they don't match and the machine returned to the backtracking point `frame`."""
        try:
            yield from parts
        except _Backtrack as back:
            if frame is None or back.frame is not frame:
                raise
            return False
        return True

    def choice(self, part: GrammarPart) -> NodeSteps:
        """Try options in order, as in `a / b / c`. Options that the next character excludes are skipped."""
        machine = self.machine
        while any(part.guards) and self.at_edge:
            yield None
        # If only one option is possible, the text streams, because no backtracking point is needed. For example, if the next character is
        # 7, the first option of `"<a>" / [0-9]+` is excluded.
        options = zip(part.guards, part.inner, strict=True)
        viable = [it for guard, it in options if guard is None or guard.match(machine.buffer, machine.at)]
        if not viable:
            self.fail(part.wanted)
        for option in viable:
            frame = self._open() if option is not viable[-1] else None
            if (yield from self._matches(frame, option)):
                self._close(frame)
                return

    def repeat(self, part: GrammarPart) -> NodeSteps:
        """Read any number of rounds, as in `a{minimum,maximum}`."""
        machine, node, count = self.machine, part.node, 0
        inner, *separator = part.inner
        while count != node.maximum:
            frame, guard = None, part.guards[min(count, 1)]
            # A mandatory round needs no backtracking point. An optional one does: `("a" "b")* "a"` matches "aba" only if the second round
            # is undone.
            if count >= node.minimum:
                while guard and self.at_edge:
                    yield None
                if guard and not guard.match(machine.buffer, machine.at):
                    return
                frame = self._open()
            start = machine.position
            if not (yield from self._matches(frame, *separator[:count], inner)):
                return
            self._close(frame)
            # Leave the loop after an empty round. Otherwise, a loop such as `(a?)*` would never end.
            if machine.position == start:
                return
            count += 1

    def look(self, part: GrammarPart) -> NodeSteps:
        """Read a lookahead or an atom, in which cuts don't close the backtracking points around it."""
        machine, frame = self.machine, self._open(holds=True)
        matches = yield from self._matches(frame, part.inner[0])
        if matches and isinstance(part.node, nodes.Atomic):
            self._close(frame)
            return
        if matches:
            self._close(frame)
            machine.failed_at = max(machine.failed_at, machine.at)
            # A lookahead is parsed again, so its text counts towards the limit like that of a failed attempt.
            machine.reread += 1 + machine.position - frame.at
            frame.start.restore(machine)
            if machine.exhausted():
                raise _Backtrack(None)
        if matches is isinstance(part.node, nodes.Negate):
            self.fail(part.wanted)

    def tag(self, part: GrammarPart) -> NodeSteps:
        """Read a tag, which determines the role of its text. A tool name must be the name of an offered tool.

        Backtracking can undo any part of a call, so a backtracking point inside a call stores a copy of the call. A streamed call starts
        once its name is known, and its id if the grammar has ids. Earlier arguments are buffered. A value that is parsed as JSON streams.
        Text of other tags is buffered until the end of the tag. The text of an argument is then converted according to the tool's schema. A
        complete call consists of a name and one JSON object.
        """
        machine, node = self.machine, part.node
        around, machine.tag = machine.tag, node.role
        if node.role is Role.CALL:
            machine.call = CallState(start=machine.position)
        elif node.role in IN_CALLS:
            call = machine.current
            if node.role in call.tags and node.role in _ONCE:
                machine.events.append(Malformed("", machine.position, f"one {node.role.value} in a call"))
            call.pieces, call.streamed = [], False
        yield part.inner[0]
        if node.role in IN_CALLS:
            call = machine.current
            text = "".join(call.pieces)
            allowed = machine.request._calls_allowed and len(text) <= MAX_NAME
            if node.role is Role.NAME and not (allowed and offers(machine, text)):
                self.fail("the name of a tool")
            _close(machine, call, node.role, text, waits=self.grammar.has_ids)
        machine.tag = around


_READERS: Mapping[type, Callable[[GrammarReader, GrammarPart], NodeSteps]] = {
    nodes.Literal: GrammarReader.literal,
    nodes.Layout: GrammarReader.layout,
    nodes.Chars: GrammarReader.characters,
    nodes.Until: GrammarReader.until,
    nodes.End: GrammarReader.end,
    nodes.JsonValue: GrammarReader.value,
    nodes.PythonValue: GrammarReader.value,
    nodes.Quoted: GrammarReader.value,
    nodes.Sequence: GrammarReader.parts,
    nodes.Ref: GrammarReader.rule,
    nodes.Cut: GrammarReader.cut,
    nodes.Mark: GrammarReader.mark,
    nodes.Choice: GrammarReader.choice,
    nodes.Repeat: GrammarReader.repeat,
    nodes.Peek: GrammarReader.look,
    nodes.Negate: GrammarReader.look,
    nodes.Atomic: GrammarReader.look,
    nodes.Tag: GrammarReader.tag,
}


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
