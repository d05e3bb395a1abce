"""Reads the text after a call's arguments: end markers, the next call, or invalid text.

Rules:
- End markers may be missing or repeated. If a run of calls breaks off, its text is content, except for its end markers.
- After a failure, the reader searches for another start marker, up to a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from unrender.answer import is_distinctive
from unrender.answer.views import BACKQUOTES
from unrender.limits import FREE_REREADS, MAX_BLANK, MAX_CONTEXT, MAX_SLOW_TEXT, MAX_WORD, MAX_WORDS
from unrender.machine import Malformed
from unrender.machine.call_events import (
    ABANDONED,
    begin_call,
    call_failed,
    commit,
    complete_call,
    cut_short,
    fail_call,
    fate,
    name_call,
    seal,
    unquote,
)
from unrender.machine.calls import Steps
from unrender.machine.calls.envelope import ObjectReader
from unrender.machine.calls.mending import mend
from unrender.machine.frames import CallState
from unrender.machine.instructions import shared_length, tool_at, undecided
from unrender.machine.interpreter import OR
from unrender.machine.quotation import Quotation, going_on
from unrender.messages import CallStatus
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, end_of
from unrender.values.json_text import escape

_FOREIGN = re.compile(rf"<(?:/[^<>\s]{{0,{MAX_BLANK}}}+>?)?")
"""Matches a closing tag, or a prefix of one."""
_CALLS_END = ("call>", "calls>")
_OWN = "a call in the format's syntax"
_GOES_ON = (",", ":", "}", "]")
"""Characters that can continue JSON after a complete value."""
_NEXT_FIELD = (",", ":", '"')
"""Characters after which a JSON object may continue if its closing brace is wrong."""
_FIELD = re.compile(rf"[\s,}}]{{0,{MAX_BLANK}}}+[\"']?(?:[\w.-]{{1,{MAX_BLANK}}}+(?:[\"']\s{{0,{MAX_BLANK}}}+(:)?)?)?")
"""Matches a prefix of another field after a JSON object. The group is the colon after the field's key, as in `, "b": 2}`."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses at which execution continues before and after a run of calls."""

    hub: int
    """The free text around the calls."""
    tail: int
    """The text after a call's arguments, at which execution continues if a committed call fails."""
    tried: int
    """An attempt to read one more call, so that only the failed call becomes text."""


@dataclass(slots=True, eq=False, kw_only=True)
class TailReader(ObjectReader):
    """Reads the end of a call."""

    addresses: Addresses

    def tail(self) -> Steps[None]:
        """Consume the end markers of a call and of a run of calls, up to the next call. Leave the run if no call follows."""
        while (more := self._after()) is not None:
            self.machine.steps += 1
            if more:
                yield

    def _after(self) -> bool | None:
        """Consume one end marker. Return whether more text is needed, or None if another call follows."""
        machine, view = self.machine, self.view
        if (more := self._end_failed()) is not None:
            return more
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        if machine.call and (more := self._ends(at)) is not None:
            return more
        # Layout between calls is always shorter than `MAX_BLANK`, so leave the run of calls.
        if at - machine.at == MAX_BLANK:
            return self._leave(machine.at)
        if undecided(machine, view.marks, at) or (view.hides_closers and undecided(machine, view.turn_ends, at)):
            return True
        mark = view.marks.at(buffer, at)
        if mark in view.call_openers and not self._ends_this(mark):
            return self._to_next_call(at, mark)
        if mark == BACKQUOTES and machine.fenced:
            machine.fenced = False
            if machine.call:  # A closing fence completes the arguments, as in `{"a": 1}` inside a code block.
                machine.call.ended = True
            self._take(at + len(mark))
            return False
        if mark and mark == view.calls.separator.core:
            return self._separator(at, mark)
        if mark and (mark in view.closers or mark in view.section) and self._close(at, mark):
            return False
        if not mark and (view.section or not view.calls.separator.core) and "" in view.call_openers:
            # In "now {…}\nthen {…}", calls have no markers, so look for a tool name. In a list such as `[f()g()]`, a missing comma is
            # accepted.
            named = tool_at(machine, at)
            if named is not False:
                return True if named is None else self._to_next_call(at, mark)
        return self._excess(at, mark) if mark in view.excess else self._foreign(at, mark)

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
        self._refuse(status, wanted, met)

    def _refuse(self, status: CallStatus, wanted: str, met: str) -> None:
        fail_call(self.machine, status, wanted, met)
        self.machine.closed, self.machine.refused = ABANDONED, status == "invalid"

    def _end_failed(self) -> bool | None:
        """Consume the rest of a failed call, and return whether more text is needed. Returns None if there is no failed call, or if the end
        of the failed call was reached.
        """
        machine = self.machine
        if machine.broke:
            self._break()
        if machine.call and machine.call.broken:
            return self._end_broken(*machine.call.broken)
        return True if machine.refused and self._end_refused() else None

    def _end_broken(self, wanted: str, met: str, position: int) -> bool:
        """Consume a broken call, then repair it or fail. Return whether more text is needed."""
        machine, view = self.machine, self.view
        stops = view.broken_ends
        search = stops.find if machine.final else stops.decided
        at, mark = search(machine.buffer, machine.at) if stops.literals else (machine.at, "")
        mendable = self.may_be_mended()
        # If calls have no end markers, the repair code finds the end of the call.
        if not mark and (machine.final or (mendable and not stops.literals)):
            at = len(machine.buffer)
        # Don't repair a call if JSON continues after its end marker, as in `{"a": 1</call>, "b": 2}`.
        after = end_of(SPACE, machine.buffer, at + len(mark), at + len(mark) + MAX_BLANK)
        if mendable and mark and not self.decided(view.marks, after):
            return True
        mendable = mendable and machine.buffer[after : after + 1] not in _GOES_ON
        lost = self._lost(after) if mendable and mark else False
        if lost is None:
            return True
        mendable = mendable and not lost
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
            self._cut_back(position)
            machine.call = None
            self.fail(wanted.partition(OR)[0])
        if fate(machine, call, False) == "content":
            self._cut_back(position)
            self._refuse("invalid", wanted, met)
            return False
        fail_call(machine, "invalid", wanted, met, position)
        machine.closed = closed
        return False

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
        if found is None or self._displaced(found.call):
            return False
        rest = text[found.spans[-1][1] - start :]
        if self.view.arguments.entry and any(mark in rest for mark in self.view.argument_marks(found.call.missing)):
            return False
        self._cut_back(start)
        if machine.frames and machine.frames[-1].at == start:
            machine.go_back(machine.frames[-1].start)
            commit(machine)
        call = machine.call = CallState(start=start)
        name_call(machine, found.call.name)
        call.id, call.arguments = found.call.id, [found.arguments]
        for event, _ in found.damage:
            machine.malformed(event.text, event.expected, at=event.position)
        for role, end in found.spans:
            machine.take(role, end - machine.base)
        complete_call(machine)
        machine.closed = len(self.view.closers) + len(self.view.section) * found.ends_run
        return True

    def _cut_back(self, position: int) -> None:
        """Move back to `position` and remove all spans after it. No event may have a position after `position`."""
        machine = self.machine
        machine.recall(position)
        roles, ends = machine.span_roles, machine.span_ends
        while ends and (ends[-2] if len(ends) > 1 else 0) >= position:
            del roles[-1], ends[-1]
        if ends and ends[-1] > position:
            ends[-1] = position
        machine.at, machine.scanner = position - machine.base, None

    def _end_refused(self) -> bool:
        """Consume the rest of a call whose text, including its markers, is content. Return whether more text is needed."""
        machine, stops = self.machine, self.view.refused_ends
        buffer, mark = machine.buffer, ""
        if stops.literals:
            search = stops.find if machine.final else stops.decided
            at, mark = search(buffer, machine.at)
            # Ignore backquotes if no fence is open.
            while mark == BACKQUOTES and not machine.fenced:
                at, mark = search(buffer, at + len(mark))
            end = at if mark or not machine.final else len(buffer)
            closed = call_failed(machine) and (mark in self.view.closers or mark in self.view.section)
            machine.text(Role.CONTENT, end + len(mark) if closed else end)
            if not mark and not machine.final:
                return True
        machine.refused = False
        return False

    def _ends_this(self, mark: str) -> bool:
        """Return whether a start marker ends the current call instead of starting another one. This is possible only if calls start and end
        with the same marker.
        """
        awaited = (*self.view.closers, *self.view.section)[self.machine.closed :]
        return not mark or mark in awaited or (mark == BACKQUOTES and self.machine.fenced)

    def _excess(self, at: int, mark: str) -> bool:
        """Accept one extra bracket before a complete marker, as in `{"a": 1}}}</call>`. Otherwise, leave the run of calls."""
        machine, marks = self.machine, self.view.marks
        after = end_of(SPACE, machine.buffer, at + 1, at + 1 + MAX_BLANK)
        if undecided(machine, marks, after):
            return True
        if len(marks.at(machine.buffer, after)) < 2:
            return self._leave(at)
        if machine.call and machine.call.keys:
            machine.call.repaired = True
        machine.malformed(mark, "an end marker")
        self._take(at + 1)
        return False

    def _foreign(self, at: int, mark: str) -> bool:
        """Accept another format's closing tag as the next end marker, as in `{"a": 1}</arg_value>`, and drop words before an end marker.

        At the end of the output, a partial end marker is accepted too. If none of these is found, leave the run of calls.
        """
        machine, view = self.machine, self.view
        expected = (*view.closers, *view.section)[machine.closed :] if not mark else ()
        due = expected[0] if expected else ""
        debris = self._debris_end(at, due)
        if debris is None:
            return True
        found = _FOREIGN.match(machine.buffer, at) if due else None
        if found and not machine.final and found.end() == len(machine.buffer) and found.end() - at < MAX_BLANK:
            return True
        # At the end of a section, accept only closing tags of calls, because other tags may belong to the text.
        ends = ">" if machine.closed < len(view.closers) else _CALLS_END
        text = found.group() if found and found.group().endswith(ends) else ""
        if debris > at:
            text = machine.buffer[at:debris].rstrip()
        rest = machine.buffer[at : at + len(due)] if machine.final and not machine.length_limited else ""
        if at + len(rest) == len(machine.buffer) and view.torn(rest, due):
            text = rest
        if not text or call_failed(machine):
            return self._leave(at)
        machine.take(Role.LAYOUT, at)
        machine.malformed(text, repr(due))
        machine.take(Role.MALFORMED, at + len(text))
        if machine.call:
            machine.call.repaired = True
        if debris > at:
            return False
        machine.closed = max(machine.closed, len(view.closers))
        return False

    def _debris_end(self, at: int, due: str) -> int | None:
        """Return the position of the end marker `due` after words inside a call, as in `</function>words</call>`.

        Returns -1 if the words aren't part of the call, and None if more text is needed.
        """
        machine = self.machine
        if not 0 < machine.closed < len(self.view.closers) or not is_distinctive(due) or call_failed(machine):
            return -1
        reach = at + MAX_WORDS + len(due)
        found, mark = self.view.broken_ends.find(machine.buffer, at, reach)
        if not mark and not machine.final and len(machine.buffer) < reach:
            return None
        return found if mark == due else -1

    def _close(self, at: int, mark: str) -> bool:
        """Consume the end marker `mark`. Return False if it's a character that may be text."""
        machine, expected, seen = self.machine, (*self.view.closers, *self.view.section), self.machine.closed
        ahead = [i for i in range(seen, len(expected)) if expected[i] == mark]
        # Drop a repeated end marker, but not a repeated single character such as `]`, which may be text.
        if not ahead and len(mark) == 1:
            return False
        if call_failed(machine):
            machine.text(Role.CONTENT, at + len(mark))
            return True
        if not self.view.closers:
            self._complete()
        machine.take(Role.LAYOUT, at)
        # An end marker that was already consumed is a repetition, as in `</call></call>`.
        index = ahead[0] if ahead else seen - 1
        # Without a preceding `</call>`, `</section>` ends both the call and the section.
        if index > seen:
            self._missing(expected[seen])
        machine.take(Role.MARKER, at + len(mark))
        machine.closed = index + 1
        # The text after a damaged call, or after a call in a section, may show that arguments are lost.
        unsure = machine.call and (machine.call.repaired or machine.closed < len(expected))
        if machine.closed >= len(self.view.closers) and not unsure:
            self._complete()
        return True

    def _ends(self, at: int) -> bool | None:
        """Complete the call if it has ended, or end it if more of its arguments follow at `at`.

        Return whether more text is needed, or None if the text at `at` may follow the call.
        """
        machine, view, entries = self.machine, self.view, bool(self.view.arguments.entry)
        # A call without end markers, such as `f(a=1)`, is already complete, unless its bracket may be part of a value.
        ended = machine.closed >= len(view.closers) and bool(view.closers or not view.hides_closers)
        # The end of an object shows that the call wasn't cut off.
        if (entries and self._limited()) or not (ended or machine.closed or not entries):
            return None
        if (lost := self._lost(at)) is not False:
            return lost is None or self._give_up(at)
        if ended:
            self._complete()
        return None

    def _lost(self, at: int) -> bool | None:
        """Return whether more of the call's arguments follow at `at`, after its end. Return None if more text is needed."""
        machine, view, call = self.machine, self.view, self.machine.current
        buffer, position = machine.buffer, machine.position
        if not view.arguments.entry:
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
        marks = view.argument_marks(call.missing)
        finder = Finder((*marks, *view.broken_ends.literals, *view.turn_ends.literals))
        reach = at + MAX_WORD + finder.longest
        _, mark = finder.find(buffer, at, reach)
        return None if not mark and not machine.final and len(buffer) < reach else mark in marks

    def _give_up(self, at: int) -> bool:
        """End a call whose arguments may be incomplete, because more arguments follow at `at`."""
        machine = self.machine
        due = (*self.view.closers, *self.view.section)[machine.closed :]
        wanted = repr(due[0]) if due else "the end of the call"
        if machine.frames and machine.frames[-1].whole:
            self.fail(wanted)
        self._refuse("invalid", wanted, machine.buffer[at : at + 1])
        return False

    def begin_call(self) -> CallState:
        """Begin a possible call."""
        machine, call = self.machine, begin_call(self.machine)
        if machine.frames:
            frame = machine.frames[-1]
            call.before = self.view.argument_at_end(machine.context(frame.at, frame.spans, MAX_CONTEXT))
        return call

    def _displaced(self, call: CallState) -> bool:
        """Return whether an argument that the call lacks was written before it, as in `<a>1</a><call name="f"></call>`."""
        before = self.machine.current.before
        return bool(before) and before in call.missing

    def _complete(self) -> None:
        machine, call = self.machine, self.machine.call
        if call and self._displaced(call):
            fail_call(machine, "invalid", "arguments after the tool's name", "")
            machine.closed = ABANDONED
        elif call and (call.repaired or self.view.unmarked) and not self._fits(call):
            fail_call(machine, "invalid", "arguments that match the tool's schema", "")
            machine.closed = ABANDONED
        elif call:
            complete_call(machine)
        if call:
            seal(machine)

    def _missing(self, marker: str) -> None:
        """Report a missing end marker. Without the marker, a call is valid only if its arguments match the tool's schema."""
        self.machine.malformed("", repr(marker))
        if call := self.machine.call:
            call.repaired = True
            # If a value contains the missing marker, the value and the marker may be swapped.
            call.unclear |= is_distinctive(marker) and escape(marker) in "".join(call.arguments)

    def _fits(self, call: CallState) -> bool:
        arguments = "".join(call.arguments)
        if call.unclear:
            return False
        if not call.repaired:
            return call.begun or call.types.admit(arguments)
        # Reject repaired calls with unknown arguments. In `{city:"Paris,opts:{"a": 1}}`, a missing quotation mark turns `a` into an
        # argument.
        known = not self.view.excess or all(map(call.types.knows, call.keys))
        return known and call.types.fit(arguments)

    def _separator(self, at: int, mark: str) -> bool | None:
        """Consume the separator `mark` before another call. If no call follows, the separator is text, as in "f(), and …"."""
        machine, marks = self.machine, self.view.marks
        end = at + len(mark)
        after = end_of(SPACE, machine.buffer, end, end + MAX_BLANK)
        if after - end == MAX_BLANK:
            return self._leave(at)
        if undecided(machine, marks, after):
            return True
        following = marks.at(machine.buffer, after)
        if following not in self.view.call_openers:
            return self._leave(at)
        if call_failed(machine):
            machine.text(Role.CONTENT, after)
        machine.take(Role.LAYOUT, at)
        machine.take(Role.MARKER, end)
        machine.take(Role.LAYOUT, after)
        machine.separated = machine.position
        machine.listed = -1 if call_failed(machine) else machine.position
        return self._to_next_call(after, following)

    def _to_next_call(self, at: int, mark: str) -> bool | None:
        """Complete the call, and continue at the next one, whose start marker `mark` is at `at`."""
        machine, view = self.machine, self.view
        # A closing tag that ends a quotation may start like a call, as in "`<f/>`" inside `<output>`. Don't check comments for this,
        # because they may contain several calls.
        around = going_on(machine.quotation) if mark and machine.quotation else None
        if around and not around.any_text and self.unless_quoted(around):
            return True
        if machine.call and machine.closed < len(view.closers):
            marks, after = Finder(view.argument_marks(machine.call.missing)), at + len(mark)
            after = end_of(SPACE, machine.buffer, after, after + MAX_BLANK)
            if undecided(machine, marks, after):
                return True
            if marks.at(machine.buffer, after):  # A start marker is inside a call, as in `<f><call><a>Rome</a></f>`.
                return self._give_up(at)
        if machine.closed < len(view.closers):
            self._missing(view.closers[machine.closed])
        self._complete()
        # Whitespace inside a section is layout, but whitespace between standalone calls may become content.
        if view.section:
            machine.take(Role.LAYOUT, at)
            if not machine.loose:
                machine.separated = machine.position
        else:
            machine.carry(at)
        # If a backtracking point is open, a failure undoes all calls of the run. Otherwise, only the failed call becomes text.
        if not machine.frames or machine.quotation:
            self.leave(self.addresses.tried)
        return None

    def _leave(self, at: int) -> Literal[True]:
        """Leave the run of calls, since no call follows at `at`. Return True if more text is needed."""
        machine, view = self.machine, self.view
        limited = self._limited()
        if machine.quotation and not limited and self.unless_quoted(machine.quotation):
            return True
        if machine.quotation:
            if view.calls.alone:
                self._end_alone(limited=limited)
            unquote(machine)
        return self._end_run(at, limited=limited)

    def _end_alone(self, *, limited: bool) -> None:
        """Report calls in another format's syntax that are the whole answer. Damaged calls are text."""
        machine, view, call = self.machine, self.view, self.machine.call
        frame, ends = machine.frames[-1], len(view.closers) + len(view.section)
        damaged = any(isinstance(event, Malformed) for event in machine.events[frame.start.events - machine.released :])
        damaged = damaged or limited or machine.fenced or machine.closed < ends
        if damaged or (call and not self._fits(call)):
            self.fail(_OWN)
        machine.malformed("", _OWN, at=max(frame.at, 0))

    def _end_run(self, at: int, *, limited: bool) -> NoReturn:
        """End the run of calls before `at`. `limited` is True if the token limit cut off the last call."""
        machine, view = self.machine, self.view
        torn = self._torn(at)
        ended = torn or limited or at >= len(machine.buffer)
        expected = (*view.closers, *view.section)
        if limited and machine.closed >= len(expected):
            fail_call(machine, "truncated", "the end of the call", "")
        if machine.closed < len(expected):
            wanted = repr(expected[machine.closed])
            cut_off = ended and machine.call and self._was_cut_off()
            # A bare call such as `{"name": …}` must be complete, so it's text if its end is missing.
            if machine.frames and machine.frames[-1].whole and (cut_off or not ended):
                self.fail(wanted)
            # In `[f(a='x'); g('y')]`, the value of `a` may be `x'); g('y`, if the format has no escapes.
            goes_on = not ended and not view.turn_ends.at(machine.buffer, at)
            # In `{"a": 1}, "b": 2}`, the object may be closed too early.
            early = not (view.arguments.entry or machine.closed) and machine.buffer[at : at + 1] in _NEXT_FIELD
            unclear = (view.hides_closers or early) and machine.call and goes_on and not self._limited()
            if cut_off or unclear:
                fail_call(machine, "truncated" if cut_off else "invalid", wanted, "" if cut_off else machine.buffer[at])
                machine.closed = ABANDONED
            # If an end marker also ends the turn, engines strip it from the end of the output, so don't report it as missing.
            elif not ended or expected[machine.closed] not in view.stripped:
                self._missing(expected[machine.closed])
        self._complete()
        if not call_failed(machine):  # After a call that became text, whitespace is text too.
            # If text follows, consume only the format's layout, because further line breaks belong to the text.
            shared = shared_length(machine.buffer, machine.at, view.after)
            machine.take(Role.LAYOUT, at if ended else machine.at + shared)
        if torn and machine.at < len(machine.buffer):
            self._drop()
        self.leave(machine.frames[-1].sealed if machine.frames else self.addresses.hub)

    def _torn(self, at: int) -> bool:
        """Return whether the marker that starts at `at` was truncated by the token limit."""
        rest = self.machine.buffer[at:]
        limited = self.machine.final and self.machine.length_limited and rest
        return bool(limited) and any(mark.startswith(rest) for mark in self.view.marks.literals)

    def _drop(self) -> None:
        """Report and drop a marker that was truncated after a call.

        The marker starts the next call or ends a complete one.
        """
        machine, rest = self.machine, self.machine.buffer[self.machine.at :]
        closers = (*self.view.closers, *self.view.section)
        if any(closer.startswith(rest) for closer in closers):
            machine.malformed(rest, " or ".join(map(repr, closers)))
            machine.take(Role.MALFORMED, len(machine.buffer))
        else:
            cut_short(machine)

    def _limited(self) -> bool:
        """Return whether the token limit cut off the output before the end of the call."""
        machine = self.machine
        # After the first end marker, the arguments are complete. A call without end markers is complete only if text follows.
        cut = machine.call is not None and machine.call.cut and not machine.closed
        return machine.length_limited and machine.final and cut

    def _was_cut_off(self) -> bool:
        """Return whether a call with complete arguments was cut off at the end of the output.

        Engines strip the marker that stopped the model, and report why it stopped. Models that omit the start marker also omit the end
        marker. Otherwise, a call is complete only after an end marker, or after the closing fence or bracket around its arguments.
        """
        machine, closers = self.machine, self.view.closers
        if self._limited():
            return True
        if machine.closed or machine.stopped or not closers or closers[0] in self.view.stripped:
            return False
        ended = machine.call is not None and machine.call.ended
        return not (machine.loose or ended)

    def _take(self, end: int) -> None:
        """Consume an end marker. After a failed call, the end marker is content."""
        if call_failed(self.machine):
            self.machine.text(Role.CONTENT, end)
        else:
            self.machine.take(Role.MARKER, end)

    def unless_quoted(self, around: Quotation) -> bool:
        """Leave the run if the quotation around the calls is closed at the current position. Return whether more text is needed."""
        machine = self.machine
        quoted = around.closed(machine.buffer, machine.at, self.view.turn_ends, final=machine.final)
        if quoted and self.view.calls.alone:
            self.fail(_OWN)
        if quoted:
            self.quote()
        return quoted is None
