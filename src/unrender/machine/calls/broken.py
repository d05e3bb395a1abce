"""Reads what is left of a call that failed: finds its end, and repairs the call or makes it content.

Rules:
- A call isn't repaired if more of its arguments follow its end marker, or if an argument was written before it.
- No event is taken back: a call is only read again if none of its events was returned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.answer.views import BACKQUOTES
from unrender.limits import FREE_REREADS, MAX_BLANK, MAX_SLOW_TEXT, MAX_WORD
from unrender.machine.call_events import (
    ABANDONED,
    begin_call,
    call_failed,
    commit,
    complete_call,
    fail_call,
    fate,
)
from unrender.machine.calls.envelope import ObjectReader
from unrender.machine.calls.mending import mend
from unrender.machine.frames import CallState
from unrender.machine.instructions import undecided
from unrender.machine.interpreter import OR
from unrender.messages import CallStatus
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, end_of

_GOES_ON = (",", ":", "}", "]")
"""Characters that can continue JSON after a complete value."""
_FIELD = re.compile(rf"[\s,}}]{{0,{MAX_BLANK}}}+[\"']?(?:[\w.-]{{1,{MAX_BLANK}}}+(?:[\"']\s{{0,{MAX_BLANK}}}+(:)?)?)?")
"""Matches a prefix of another field after a JSON object. The group is the colon after the field's key, as in `, "b": 2}`."""


@dataclass(slots=True, eq=False, kw_only=True)
class BrokenReader(ObjectReader):
    """Reads the rest of a call that failed."""

    def _break(self) -> None:
        """Handle invalid text in a committed call: repair the call, search for its end, or end it here."""
        machine = self.machine
        machine.broke = False
        call, wanted = machine.call or begin_call(machine), machine.wanted
        # The call is truncated if parsing failed at the end of the output, as in `{"a": `. After any other failure, the call is invalid, as
        # in `{"a": ;`.
        truncated = machine.final and machine.failed_at >= len(machine.buffer)
        # Report only one character, so that the result doesn't depend on the chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        status: CallStatus = "truncated" if truncated or machine.cut_at(call) else "invalid"
        mendable = self.may_be_mended() and not machine.length_limited
        # A value without an end marker extends to the end of the output and includes the end markers of the call, so try a repair.
        if status == "truncated" and mendable and self._mended(""):
            return
        held = fate(machine, call, False) != "content" or mendable
        if status == "invalid" and not machine.strict and held:
            call.broken = (wanted, met, machine.position)
            return
        self.refuse(status, wanted, met)

    def refuse(self, status: CallStatus, wanted: str, met: str) -> None:
        """Fail the current call. If it's invalid, the rest of its text is consumed as content."""
        machine = self.machine
        machine.unclear = machine.current.unclear
        fail_call(machine, status, wanted, met)
        machine.closed, machine.refused = ABANDONED, status == "invalid"

    def end_failed(self) -> bool | None:
        """Consume the rest of a failed call. Return whether more text is needed, or None if no failed call is left to consume."""
        machine = self.machine
        if machine.broke:
            self._break()
        if machine.call and machine.call.broken:
            return self._end_broken(*machine.call.broken)
        return True if machine.refused and self._end_refused() else None

    def _end_broken(self, wanted: str, met: str, position: int) -> bool:
        """Consume a broken call, then repair it or fail. Return whether more text is needed."""
        machine, view, stops = self.machine, self.view, self.view.broken_ends
        at, mark = machine.at, ""
        if stops.literals:
            at, mark = stops.search(machine.buffer, at, final=machine.final)
        mendable = self.may_be_mended()
        # If calls have no end markers, the repair code finds the end of the call.
        if not mark and (machine.final or (mendable and not stops.literals)):
            at = len(machine.buffer)
        if mendable and mark:
            goes_on = self._continues(at + len(mark), mark)
            if goes_on is None:
                return True
            mendable = not goes_on
        machine.take(Role.MALFORMED, at)
        if not mark and not machine.final and (mendable or stops.literals):
            return True
        closed = ABANDONED
        if mark in view.closers:
            machine.take(Role.MALFORMED, at + len(mark))
            closed = machine.closed = view.closers.index(mark) + 1
            if closed < len(view.closers):
                return False
        elif mark in view.section:
            closed = len(view.closers)
        call = machine.current
        if mendable and self._mended(mark):
            return False
        if not call.committed and machine.frames:
            # Report where the exact reader failed.
            machine.searched += machine.position - call.start
            machine.return_to(position)
            machine.call = None
            self.fail(wanted.partition(OR)[0])
        if fate(machine, call, False) == "content":
            machine.return_to(position)
            self.refuse("invalid", wanted, met)
            return False
        fail_call(machine, "invalid", wanted, met, position)
        machine.closed = closed
        return False

    def _continues(self, at: int, mark: str) -> bool | None:
        """Return whether the call continues after `mark`, as in `{"a": 1</call>, "b": 2}`. Return None if more text is needed."""
        after = end_of(SPACE, self.machine.buffer, at, at + MAX_BLANK)
        if not self.decided(self.view.marks, after):
            return None
        if self.machine.buffer[after : after + 1] in _GOES_ON:
            return True
        return mark not in self.view.call_openers and self.lost(after)

    def may_be_mended(self) -> bool:
        """Return whether the current call may be repaired. It can't be repaired if part of it was emitted or is in the prompt."""
        machine, call = self.machine, self.machine.call
        if not self.view.mendable or self.view.calls.alone or machine.strict or machine.policy.repair == "none":
            return False
        start = call.start if call else machine.position
        if start < 0 or machine.position - start > MAX_SLOW_TEXT or machine.quotation:
            return False
        if machine.searched > machine.position + FREE_REREADS:
            return False
        shown = call and (
            call.begun or call.unclear or call.unoffered or machine.given_as_written(call) or machine.surplus(call)
        )
        return not shown

    def _mended(self, mark: str) -> bool:
        """Try to read the damaged call that ends before `mark`. Return whether that succeeded."""
        machine, start = self.machine, self.machine.current.start
        text = machine.since(start)
        text += "" if text.endswith(mark) else mark
        machine.searched += len(text)
        found = mend(self.view, text, start, machine.request)
        if found is None or self.displaced(found.call):
            return False
        rest = text[found.spans[-1][1] - start :]
        if self.view.arguments.entry and any(
            mark in rest for mark in self.view.argument_markers.of(found.call.missing)
        ):
            return False
        machine.return_to(start)
        if machine.frames and machine.frames[-1].at == start:
            machine.frames[-1].start.restore(machine)
            commit(machine)
        machine.call = found.call
        for event, _ in found.damage:
            machine.malformed(event.text, event.expected, at=event.position)
        for role, end in found.spans:
            machine.take(role, end - machine.base)
        complete_call(machine)
        machine.closed = len(self.view.closers) + len(self.view.section) * found.ends_run
        return True

    def _end_refused(self) -> bool:
        """Consume the rest of a call whose text, including its markers, is content. Return whether more text is needed."""
        machine, view = self.machine, self.view
        stops = view.unclear_ends if machine.unclear else view.refused_ends
        buffer, mark = machine.buffer, ""
        if stops.literals:
            end, mark = stops.search(buffer, machine.at, final=machine.final)
            # Ignore backquotes if no fence is open.
            while mark == BACKQUOTES and not machine.fenced:
                end, mark = stops.search(buffer, end + len(mark), final=machine.final)
            closed = call_failed(machine) and (mark in self.view.closers or mark in self.view.section)
            machine.text(Role.CONTENT, end + len(mark) if closed else end)
            if not mark and not machine.final:
                return True
        machine.refused = False
        return False

    def lost(self, at: int) -> bool | None:
        """Return whether more of the call's arguments follow at `at`, after its end. Return None if more text is needed."""
        machine, view, call = self.machine, self.view, self.machine.current
        buffer, position = machine.buffer, machine.position
        if machine.frames and not (view.closers or view.section):
            return False  # Nothing of such a call is shown before its last bracket, so it doesn't wait for more text.
        if not view.arguments.entry:
            if at > machine.at and buffer[at : at + 1].isalnum():
                return False  # A word after whitespace is text.
            found = _FIELD.match(buffer, at)
            more = found is not None and found.group(1) is not None
            # In `""city": "Rome"}`, an empty string isn't the arguments.
            more |= at == machine.at and buffer[at : at + 1].isalnum() and machine.recent(position - 1, position) == '"'
            return None if end_of(_FIELD, buffer, at) == len(buffer) and not (more or machine.final) else more
        if not view.closers or not (call.repaired or machine.closed < len(view.closers) + len(view.section)):
            return False
        if undecided(machine, view.marks, at):
            return None
        if view.marks.at(buffer, at):
            return False
        marks = view.argument_markers.of(call.missing)
        finder = Finder((*marks, *view.refused_ends.literals))
        reach = at + MAX_WORD + finder.longest
        _, mark = finder.find(buffer, at, reach)
        return None if not mark and not machine.final and len(buffer) < reach else mark in marks

    def displaced(self, call: CallState) -> bool:
        """Return whether an argument that the call lacks was written before it, as in `<a>1</a><call name="f"></call>`."""
        before = self.machine.current.before
        return bool(before) and before in call.missing
