"""Reads what follows a call's arguments: the end of the call, the end of the run, or the next call.

Rules: closers may be missing or doubled, and a run that breaks off is left to the text; nothing that closes a call is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK
from unrender.machine.instructions import BACKQUOTES, SPACE, tool_at
from unrender.machine.interpreter import ABANDONED, Machine
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.finder import Finder, end_of


@dataclass(frozen=True, slots=True)
class Tail:
    """Reads the closers of a call and of a run of calls, and then the next call.

    Closers may be missing or doubled.
    """

    closers: tuple[str, ...]
    """What must follow a call, in order."""
    section: tuple[str, ...]
    """What must follow the last call."""
    openers: Mapping[str, tuple[int, int]]
    """What begins another call: where to go, and where to try when a failure must leave it text."""
    optional: frozenset[str]
    """Closers that are also ends of turn."""
    excess: frozenset[str]
    """Brackets that models write once too often before a closer."""
    separator: str
    after: str
    """Layout that may follow the last call."""
    marks: Finder
    hub: int

    def step(self, machine: Machine) -> bool:
        if not self.closers:
            self._complete(machine)
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        if at - machine.at == MAX_BLANK:
            return self._leave(machine, machine.at)
        if at >= len(buffer) and not machine.final:
            return True
        if not machine.final and self.marks.may_grow(buffer, at):
            return True
        mark = self.marks.at(buffer, at)
        if mark in self.openers and not self._ends_this(machine, mark):
            return self._next_call(machine, at, mark)
        if mark == BACKQUOTES and machine.fenced:
            machine.fenced = False
            if machine.call:
                machine.call.ended = True
            _take(machine, at + len(mark))
            return False
        if mark and mark == self.separator:
            return self._separator(machine, at, mark)
        if mark and (mark in self.closers or mark in self.section) and self._close(machine, at, mark):
            return False
        if not mark and not self.separator and "" in self.openers:
            named = tool_at(machine, at)
            if named is not False:
                return named is None or self._next_call(machine, at, mark)
        return self._excess(machine, at, mark) if mark in self.excess else self._leave(machine, at)

    def _ends_this(self, machine: Machine, mark: str) -> bool:
        """Return whether a mark that begins a call ends this one: where both are the same marker, the second one ends."""
        awaited = (*self.closers, *self.section)[machine.closed :]
        return not mark or mark in awaited or (mark == BACKQUOTES and machine.fenced)

    def _excess(self, machine: Machine, at: int, mark: str) -> bool:
        after = end_of(SPACE, machine.buffer, at + 1, at + 1 + MAX_BLANK)
        if not machine.final and (after >= len(machine.buffer) or self.marks.may_grow(machine.buffer, after)):
            return True
        if len(self.marks.at(machine.buffer, after)) < 2:
            return self._leave(machine, at)
        machine.malformed(mark, "a closer")
        _take(machine, at + 1)
        return False

    def _close(self, machine: Machine, at: int, mark: str) -> bool:
        expected = (*self.closers, *self.section)
        seen = machine.closed
        ahead = [i for i in range(seen, len(expected)) if expected[i] == mark]
        if not ahead and len(mark) == 1:
            return False
        if machine.dead():
            machine.text(Role.CONTENT, at + len(mark))
            return True
        machine.take(Role.LAYOUT, at)
        index = ahead[0] if ahead else seen - 1
        if index > seen:
            machine.malformed("", repr(expected[seen]))
        machine.take(Role.MARKER, at + len(mark))
        machine.closed = index + 1
        if machine.closed >= len(self.closers):
            self._complete(machine)
        return True

    def _complete(self, machine: Machine) -> None:
        if machine.call:
            machine.start_call()
            machine.end_call(CallStatus.COMPLETE)
            machine.seal()

    def _separator(self, machine: Machine, at: int, mark: str) -> bool:
        buffer = machine.buffer
        end = at + len(mark)
        after = end_of(SPACE, buffer, end, end + MAX_BLANK)
        if after - end == MAX_BLANK:
            return self._leave(machine, at)
        if not machine.final and (after >= len(buffer) or self.marks.may_grow(buffer, after)):
            return True
        following = self.marks.at(buffer, after)
        if following not in self.openers:
            return self._leave(machine, at)
        if machine.dead():
            machine.text(Role.CONTENT, after)
        machine.take(Role.LAYOUT, at)
        machine.take(Role.MARKER, end)
        machine.take(Role.LAYOUT, after)
        return self._next_call(machine, after, following)

    def _next_call(self, machine: Machine, at: int, mark: str) -> bool:
        if machine.closed < len(self.closers):
            machine.malformed("", repr(self.closers[machine.closed]))
        self._complete(machine)
        if self.section:
            machine.take(Role.LAYOUT, at)
        else:
            machine.carry(at)
        direct, tried = self.openers[mark]
        machine.pc = direct if machine.frames else tried
        return False

    def _leave(self, machine: Machine, at: int) -> bool:
        ended = at >= len(machine.buffer)
        expected = (*self.closers, *self.section)
        if machine.closed < len(expected):
            wanted = repr(expected[machine.closed])
            cut_off = ended and machine.call and self._was_cut_off(machine)
            if machine.frames and machine.frames[-1].whole and (cut_off or not ended):
                machine.fail(wanted)
                return False
            if cut_off:
                machine.bury_call(CallStatus.TRUNCATED, wanted, "")
                machine.closed = ABANDONED
            elif not ended or expected[machine.closed] not in self.optional:
                machine.malformed("", wanted)
        self._complete(machine)
        if not machine.dead():  # After a call that is text, white space is text as well.
            machine.take(
                Role.LAYOUT, at if ended else machine.at + _shared_length(machine.buffer, machine.at, self.after)
            )
        machine.leave_calls(self.hub)
        return False

    def _was_cut_off(self, machine: Machine) -> bool:
        """Judge a call whose arguments are complete, at the end of the output.

        Engines strip the marker that stopped the model, and a model that leaves out the opening marker leaves out the
        closing one. Otherwise something must show that the arguments are all there: a closing marker, or the fence or
        the bracket around them. A call that shows nothing of the kind was cut off.
        """
        if machine.closed or not self.closers or self.closers[0] in self.optional:
            return False
        ended = machine.call is not None and machine.call.ended
        return machine.length_limited or not (machine.loose or ended)


def _take(machine: Machine, end: int) -> None:
    """Take a closing marker; after a call that has died it is content like the call."""
    if machine.dead():
        machine.text(Role.CONTENT, end)
    else:
        machine.take(Role.MARKER, end)


def _shared_length(text: str, start: int, layout: str) -> int:
    size = 0
    while size < len(layout) and text.startswith(layout[size], start + size):
        size += 1
    return size
