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
from unrender.limits import MAX_BLANK, MAX_CONTEXT, MAX_WORDS
from unrender.machine import Malformed
from unrender.machine.call_events import (
    ABANDONED,
    begin_call,
    call_failed,
    complete_call,
    cut_short,
    fail_call,
    seal,
    unquote,
)
from unrender.machine.calls import Steps
from unrender.machine.calls.broken import BrokenReader
from unrender.machine.frames import CallState
from unrender.machine.instructions import shared_length, tool_at, undecided
from unrender.machine.quotation import Quotation, going_on
from unrender.nodes import Role
from unrender.values.finder import SPACE, Finder, end_of
from unrender.values.json_text import escape

_FOREIGN = re.compile(rf"<(?:/[^<>\s]{{0,{MAX_BLANK}}}+>?)?")
"""Matches a closing tag, or a prefix of one."""
_CALLS_END = ("call>", "calls>")
_OWN = "a call in the format's syntax"
_NEXT_FIELD = (",", ":", '"')
"""Characters after which a JSON object may continue if its closing brace is wrong."""


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
class TailReader(BrokenReader):
    """Reads the end of a call."""

    addresses: Addresses

    @property
    def due(self) -> tuple[str, ...]:
        """The end markers of the call and of the run that weren't read yet."""
        return (*self.view.closers, *self.view.section)[self.machine.closed :]

    def tail(self) -> Steps[None]:
        """Consume the end markers of a call and of a run of calls, up to the next call. Leave the run if no call follows."""
        while (more := self._after()) is not None:
            self.machine.steps += 1
            if more:
                yield

    def _after(self) -> bool | None:
        """Consume one end marker. Return whether more text is needed, or None if another call follows."""
        machine, view = self.machine, self.view
        if (more := self.end_failed()) is not None:
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

    def _ends_this(self, mark: str) -> bool:
        """Return whether a start marker ends the current call instead of starting another one. This is possible only if calls start and end
        with the same marker.
        """
        return not mark or mark in self.due or (mark == BACKQUOTES and self.machine.fenced)

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
        due = "" if mark or not self.due else self.due[0]
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
        if debris <= at:
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
        if (lost := self.lost(at)) is not False:
            return lost is None or self._give_up(at)
        if ended:
            self._complete()
        return None

    def _give_up(self, at: int) -> bool:
        """End a call whose arguments may be incomplete, because more arguments follow at `at`."""
        machine = self.machine
        wanted = repr(self.due[0]) if self.due else "the end of the call"
        if machine.frames and machine.frames[-1].whole:
            self.fail(wanted)
        self.refuse("invalid", wanted, machine.buffer[at : at + 1])
        return False

    def begin_call(self) -> CallState:
        """Begin a possible call."""
        machine, call = self.machine, begin_call(self.machine)
        if machine.frames:
            frame = machine.frames[-1]
            call.before = self.view.argument_markers.key_at_end(machine.context(frame.at, frame.spans, MAX_CONTEXT))
        return call

    def _complete(self) -> None:
        machine, call = self.machine, self.machine.call
        if call and self.displaced(call):
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
        around = going_on(machine.quotation, mark) if mark and machine.quotation else None
        if around and not around.any_text and self.unless_quoted(around):
            return True
        if machine.call and machine.closed < len(view.closers):
            marks, after = Finder(view.argument_markers.of(machine.call.missing)), at + len(mark)
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
        machine, frame, call = self.machine, self.machine.frames[-1], self.machine.call
        damaged = any(isinstance(event, Malformed) for event in machine.events[frame.start.events - machine.released :])
        damaged = damaged or limited or machine.fenced or bool(self.due)
        if damaged or (call and not self._fits(call)):
            self.fail(_OWN)
        machine.malformed("", _OWN, at=max(frame.at, 0))

    def _end_run(self, at: int, *, limited: bool) -> NoReturn:
        """End the run of calls before `at`. `limited` is True if the token limit cut off the last call."""
        machine, view = self.machine, self.view
        torn = self._torn(at)
        ended = torn or limited or at >= len(machine.buffer)
        due = self.due
        if limited and not due:
            fail_call(machine, "truncated", "the end of the call", "")
        if due:
            wanted = repr(due[0])
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
            elif not ended or due[0] not in view.stripped:
                self._missing(due[0])
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
