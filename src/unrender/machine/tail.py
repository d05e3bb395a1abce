"""Parses the text after a call's arguments: end markers, the next call, or invalid text.

Rules:
- End markers may be missing or repeated. If a run of calls breaks off, its text is content, except for its end markers.
- After a failure, the parser searches for another start marker, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.limits import MAX_BLANK, MAX_WORD
from unrender.machine.call_events import (
    ABANDONED,
    begin_call,
    call_failed,
    complete_call,
    cut_short,
    fail_call,
    fate,
    seal,
    unquote,
)
from unrender.machine.events import BrokenText
from unrender.machine.frames import CallState
from unrender.machine.instructions import BACKQUOTES, NO_MARKERS, SPACE, shared_length, tool_at, undecided
from unrender.machine.interpreter import Machine
from unrender.machine.quotation import going_on
from unrender.machine.repair import cut_back, give_up, may_be_repaired, repaired
from unrender.machine.repair.markers import Repair
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.values.finder import Finder, end_of

_WORD = re.compile(rf"[^\s{{}}]{{0,{MAX_WORD}}}")
_FOREIGN = re.compile(rf"<(?:/[^<>\s]{{0,{MAX_BLANK}}}+>?)?")
"""Matches a closing tag, or a prefix of one."""
_CALLS_END = ("call>", "calls>")
_GOES_ON = (",", ":", "}", "]")
"""Characters that can continue JSON after a complete value."""
_NOWHERE, _UNDECIDED = -1, -2


@dataclass(frozen=True, slots=True)
class Tail:
    """Consumes the end markers of a call and of a run of calls, and then starts the next call."""

    closers: tuple[str, ...]
    """End markers of a call, in order."""
    section: tuple[str, ...]
    """End markers after the last call, in order."""
    openers: Mapping[str, tuple[int, int]]
    """Start markers of calls, each with two addresses at which execution continues. The second opens a backtracking point, so that only the
    failed call becomes text.
    """
    optional: frozenset[str]
    """End markers of a call that also end the turn."""
    excess: frozenset[str]
    """Closing brackets, which models sometimes repeat before an end marker."""
    separator: str
    after: str
    """Whitespace that the format writes after the last call. It may be missing."""
    marks: Finder
    hub: int
    ends: Finder
    """Markers that end a turn."""
    stops: Finder
    """Markers at which a broken call ends: its end markers, and start markers of calls."""
    refused: Finder
    """Markers at which the text of a broken call ends, if this text is content. They are end markers, start markers of calls, and ends of
    the turn.
    """
    unmarked: bool = False
    """True if only a tool name indicates a call. If the arguments of such a call violate the tool's schema, the call is text."""
    repair: Repair | None = None
    """Settings for repairing damaged calls. None if repairs are disabled."""

    def step(self, machine: Machine) -> bool:
        if (suspended := self._end_failed(machine)) is not None:
            return suspended
        # A call without end markers, such as `f(a=1)`, is already complete.
        if not self.closers and not self._limited(machine):
            self._complete(machine)
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        # Layout between calls is always shorter than `MAX_BLANK`, so leave the run of calls.
        if at - machine.at == MAX_BLANK:
            return self._leave(machine, machine.at)
        if undecided(machine, self.marks, at):
            return True
        mark = self.marks.at(buffer, at)
        if mark in self.openers and not self._ends_this(machine, mark):
            return self._next_call(machine, at, mark)
        if mark == BACKQUOTES and machine.fenced:
            machine.fenced = False
            if machine.call:  # A closing fence completes the arguments, as in `{"a": 1}` inside a code block.
                machine.call.ended = True
            _take(machine, at + len(mark))
            return False
        if mark and mark == self.separator:
            return self._separator(machine, at, mark)
        if mark and (mark in self.closers or mark in self.section) and self._close(machine, at, mark):
            return False
        if not mark and (self.section or not self.separator) and "" in self.openers:
            # In "now {…}\nthen {…}", calls have no markers, so look for a tool name. In a list such as `[f()g()]`, a missing comma is
            # accepted.
            named = tool_at(machine, at)
            if named is not False:
                return named is None or self._next_call(machine, at, mark)
        return self._excess(machine, at, mark) if mark in self.excess else self._foreign(machine, at, mark)

    def _break(self, machine: Machine) -> None:
        """Handle invalid text in a committed call: repair the call, search for its end, or end it here."""
        machine.broke = False
        call, wanted = machine.call or begin_call(machine), machine.wanted
        # The call is truncated if parsing failed at the end of the output, as in `{"a": `. After any other failure, the call is invalid, as
        # in `{"a": ;`.
        truncated = machine.final and machine.failed_at >= len(machine.buffer)
        # Report only one character, so that the result doesn't depend on the chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        status: CallStatus = "truncated" if truncated or machine.cut_at(call) else "invalid"
        mendable = may_be_repaired(machine, self.repair) and not machine.length_limited
        # A value without an end marker extends to the end of the output and includes the end markers of the call, so try a repair.
        if status == "truncated" and mendable and self._repaired(machine, ""):
            return
        held = fate(machine, call, False) != "content" or mendable
        if status == "invalid" and not machine.strict and held:
            call.broken = (wanted, met, machine.position)
            return
        self._refuse(machine, status, wanted, met)

    def _refuse(self, machine: Machine, status: CallStatus, wanted: str, met: str) -> None:
        fail_call(machine, status, wanted, met)
        machine.closed, machine.refused = ABANDONED, status == "invalid"

    def _end_failed(self, machine: Machine) -> bool | None:
        """Consume the rest of a failed call, and return whether to suspend the machine. Returns None if there is no failed call, or if the
        end of the failed call was reached.
        """
        if machine.broke:
            self._break(machine)
        if machine.call and machine.call.broken:
            return self._end_broken(machine, *machine.call.broken)
        return True if machine.refused and self._end_refused(machine) else None

    def _end_broken(self, machine: Machine, wanted: str, met: str, position: int) -> bool:
        """Consume a broken call, then repair it or fail. Return True to suspend the machine."""
        search = self.stops.find if machine.final else self.stops.decided
        at, mark = search(machine.buffer, machine.at) if self.stops.literals else (machine.at, "")
        mendable = may_be_repaired(machine, self.repair)
        # If calls have no end markers, the repair code finds the end of the call.
        if not mark and (machine.final or (mendable and not self.stops.literals)):
            at = len(machine.buffer)
        # Don't repair a call if JSON continues after its end marker, as in `{"a": 1</call>, "b": 2}`.
        after = end_of(SPACE, machine.buffer, at + len(mark), at + len(mark) + MAX_BLANK)
        if mendable and mark and undecided(machine, self.marks, after):
            return True
        mendable = mendable and machine.buffer[after : after + 1] not in _GOES_ON
        machine.take(Role.MALFORMED, at)
        if not mark and not machine.final and (mendable or self.stops.literals):
            return True
        closed = ABANDONED
        if mark in self.closers:
            machine.take(Role.MALFORMED, at + len(mark))
            closed = machine.closed = self.closers.index(mark) + 1
            if closed < len(self.closers):
                return False
        elif mark in self.section:
            closed = len(self.closers)
        call = machine.current
        if mendable and self._repaired(machine, mark):
            return False
        if not call.committed and machine.frames:
            return give_up(machine, wanted)
        if fate(machine, call, False) == "content":
            machine.recall(position)
            cut_back(machine, position)
            self._refuse(machine, "invalid", wanted, met)
            return False
        fail_call(machine, "invalid", wanted, met, position)
        machine.closed = closed
        return False

    def _repaired(self, machine: Machine, mark: str) -> bool:
        """Try to repair the call that ends before `mark`. Return whether the repair succeeded."""
        ended = repaired(machine, self.repair, mark, self.hub) if self.repair else ""
        if ended:
            machine.closed = len(self.closers) + (len(self.section) if ended == "run" else 0)
        return bool(ended)

    def _end_refused(self, machine: Machine) -> bool:
        """Consume the rest of a call whose text, including its markers, is content. Return True to suspend the machine."""
        buffer, mark = machine.buffer, ""
        if self.refused.literals:
            search = self.refused.find if machine.final else self.refused.decided
            at, mark = search(buffer, machine.at)
            # Ignore backquotes if no fence is open.
            while mark == BACKQUOTES and not machine.fenced:
                at, mark = search(buffer, at + len(mark))
            end = at if mark or not machine.final else len(buffer)
            closed = call_failed(machine) and (mark in self.closers or mark in self.section)
            machine.text(Role.CONTENT, end + len(mark) if closed else end)
            if not mark and not machine.final:
                return True
        machine.refused = False
        return False

    def _ends_this(self, machine: Machine, mark: str) -> bool:
        """Return whether a start marker ends the current call instead of starting another one. This is possible only if calls start and end
        with the same marker.
        """
        awaited = (*self.closers, *self.section)[machine.closed :]
        return not mark or mark in awaited or (mark == BACKQUOTES and machine.fenced)

    def _excess(self, machine: Machine, at: int, mark: str) -> bool:
        # Accept one extra brace before a complete marker, as in `{"a": 1}}}</call>`.
        after = end_of(SPACE, machine.buffer, at + 1, at + 1 + MAX_BLANK)
        if undecided(machine, self.marks, after):
            return True
        if len(self.marks.at(machine.buffer, after)) < 2:
            return self._leave(machine, at)
        if machine.call and machine.call.keys:
            machine.call.repaired = True
        machine.malformed(mark, "an end marker")
        _take(machine, at + 1)
        return False

    def _foreign(self, machine: Machine, at: int, mark: str) -> bool:
        """Accept another format's closing tag as the next end marker, as in `{"a": 1}</arg_value>`.

        At the end of the output, a partial end marker is accepted too. If neither is found, leave the run of calls.
        """
        expected = (*self.closers, *self.section)[machine.closed :] if not mark else ()
        due = expected[0] if expected else ""
        found = _FOREIGN.match(machine.buffer, at) if due else None
        if found and not machine.final and found.end() == len(machine.buffer) and found.end() - at < MAX_BLANK:
            return True
        # At the end of a section, accept only closing tags of calls, because other tags may belong to the text.
        ends = ">" if machine.closed < len(self.closers) else _CALLS_END
        text = found.group() if found and found.group().endswith(ends) else ""
        rest = machine.buffer[at : at + len(due)] if machine.final and not machine.length_limited else ""
        if self.repair and at + len(rest) == len(machine.buffer) and self.repair.torn(rest, due):
            text = rest
        if not text or call_failed(machine):
            return self._leave(machine, at)
        machine.take(Role.LAYOUT, at)
        machine.malformed(text, repr(due))
        machine.take(Role.MALFORMED, at + len(text))
        machine.closed = max(machine.closed, len(self.closers))
        if machine.call:
            machine.call.repaired = True
            self._complete(machine)
        return False

    def _close(self, machine: Machine, at: int, mark: str) -> bool:
        expected = (*self.closers, *self.section)
        seen = machine.closed
        ahead = [i for i in range(seen, len(expected)) if expected[i] == mark]
        # Drop a repeated end marker, but not a repeated single character such as `]`, which may be text.
        if not ahead and len(mark) == 1:
            return False
        if call_failed(machine):
            machine.text(Role.CONTENT, at + len(mark))
            return True
        machine.take(Role.LAYOUT, at)
        # An end marker that was already consumed is a repetition, as in `</call></call>`.
        index = ahead[0] if ahead else seen - 1
        # Without a preceding `</call>`, `</section>` ends both the call and the section.
        if index > seen:
            self._repair(machine, expected[seen])
        machine.take(Role.MARKER, at + len(mark))
        machine.closed = index + 1
        if machine.closed >= len(self.closers):
            self._complete(machine)
        return True

    def _complete(self, machine: Machine) -> None:
        call = machine.call
        if call and (call.repaired or self.unmarked) and not self._fits(call):
            fail_call(machine, "invalid", "arguments that match the tool's schema", "")
            machine.closed = ABANDONED
        elif call:
            complete_call(machine)
        if call:
            seal(machine)

    def _repair(self, machine: Machine, missing: str) -> None:
        """Report a missing end marker. Without the marker, a call is valid only if its arguments match the tool's schema."""
        machine.malformed("", repr(missing))
        if machine.call is not None:
            machine.call.repaired = True

    def _fits(self, call: CallState) -> bool:
        arguments = "".join(call.arguments)
        if not call.repaired:
            return call.begun or call.types.admit(arguments)
        # Reject repaired calls with unknown arguments. In `{city:"Paris,opts:{"a": 1}}`, a missing quotation mark turns `a` into an
        # argument.
        known = not self.excess or all(map(call.types.knows, call.keys))
        return known and call.types.fit(arguments)

    def _separator(self, machine: Machine, at: int, mark: str) -> bool:
        buffer = machine.buffer
        end = at + len(mark)
        after = end_of(SPACE, buffer, end, end + MAX_BLANK)
        if after - end == MAX_BLANK:
            return self._leave(machine, at)
        if undecided(machine, self.marks, after):
            return True
        # The separator is text if no call follows, as in "f(), and …".
        following = self.marks.at(buffer, after)
        if following not in self.openers:
            return self._leave(machine, at)
        if call_failed(machine):
            machine.text(Role.CONTENT, after)
        machine.take(Role.LAYOUT, at)
        machine.take(Role.MARKER, end)
        machine.take(Role.LAYOUT, after)
        machine.separated = machine.position
        return self._next_call(machine, after, following)

    def _next_call(self, machine: Machine, at: int, mark: str) -> bool:
        # A closing tag that ends a quotation may start like a call, as in "`<f/>`" inside `<output>`. Don't check comments for this,
        # because they may contain several calls.
        around = going_on(machine.quotation) if mark and machine.quotation else None
        if around and not around.any_text:
            quoted = around.closed(machine.buffer, machine.at, self.ends, final=machine.final)
            if quoted is not False:
                return True if quoted is None else machine.quote()
        if machine.closed < len(self.closers):
            self._repair(machine, self.closers[machine.closed])
        self._complete(machine)
        # Whitespace inside a section is layout, but whitespace between standalone calls may become content.
        if self.section:
            machine.take(Role.LAYOUT, at)
            if not machine.loose:
                machine.separated = machine.position
        else:
            machine.carry(at)
        # If a backtracking point is open, a failure undoes all calls of the run. Otherwise, only the failed call becomes text.
        direct, tried = self.openers[mark]
        return machine.go_to(direct if machine.frames and not machine.quotation else tried)

    def _leave(self, machine: Machine, at: int) -> bool:
        limited = self._limited(machine)
        if machine.quotation:
            quoted = not limited and machine.quotation.closed(
                machine.buffer, machine.at, self.ends, final=machine.final
            )
            if quoted is not False:
                return True if quoted is None else machine.quote()
            unquote(machine)
        torn = self._torn(machine, at)
        ended = torn or limited or at >= len(machine.buffer)
        expected = (*self.closers, *self.section)
        if limited and machine.closed >= len(expected):
            fail_call(machine, "truncated", "the end of the call", "")
        if machine.closed < len(expected):
            wanted = repr(expected[machine.closed])
            cut_off = ended and machine.call and self._was_cut_off(machine)
            # A bare call such as `{"name": …}` must be complete, so it's text if its end is missing.
            if machine.frames and machine.frames[-1].whole and (cut_off or not ended):
                return machine.fail(wanted)
            if cut_off:
                fail_call(machine, "truncated", wanted, "")
                machine.closed = ABANDONED
            # If an end marker also ends the turn, engines strip it from the end of the output, so don't report it as missing.
            elif not ended or expected[machine.closed] not in self.optional:
                self._repair(machine, expected[machine.closed])
        self._complete(machine)
        if not call_failed(machine):  # After a call that became text, whitespace is text too.
            # If text follows, consume only the format's layout, because further line breaks belong to the text.
            shared = shared_length(machine.buffer, machine.at, self.after)
            machine.take(Role.LAYOUT, at if ended else machine.at + shared)
        if torn and machine.at < len(machine.buffer):
            self._drop(machine)
        return machine.go_to(machine.frames[-1].sealed if machine.frames else self.hub)

    def _torn(self, machine: Machine, at: int) -> bool:
        """Return whether the marker that starts at `at` was truncated by the token limit."""
        rest = machine.buffer[at:]
        limited = machine.final and machine.length_limited and rest
        return bool(limited) and any(mark.startswith(rest) for mark in self.marks.literals)

    def _drop(self, machine: Machine) -> None:
        """Report and drop a marker that was truncated after a call.

        The marker starts the next call or ends a complete one.
        """
        rest = machine.buffer[machine.at :]
        closers = (*self.closers, *self.section)
        if any(closer.startswith(rest) for closer in closers):
            machine.malformed(rest, " or ".join(map(repr, closers)))
            machine.take(Role.MALFORMED, len(machine.buffer))
        else:
            cut_short(machine)

    def _limited(self, machine: Machine) -> bool:
        """Return whether the token limit cut off the output before the end of the call."""
        # After the first end marker, the arguments are complete. A call without end markers is complete only if text follows.
        cut = machine.call is not None and machine.call.cut and not machine.closed
        return machine.length_limited and machine.final and cut

    def _was_cut_off(self, machine: Machine) -> bool:
        """Return whether a call with complete arguments was cut off at the end of the output.

        Engines strip the marker that stopped the model, and models that omit the start marker also omit the end marker. Otherwise, a call
        is complete only after an end marker, or after the closing fence or bracket around its arguments.
        """
        if self._limited(machine):
            return True
        if machine.closed or not self.closers or self.closers[0] in self.optional:
            return False
        ended = machine.call is not None and machine.call.ended
        return not (machine.loose or ended)


def _take(machine: Machine, end: int) -> None:
    """Consume an end marker. After a failed call, the end marker is content."""
    if call_failed(machine):
        machine.text(Role.CONTENT, end)
    else:
        machine.take(Role.MARKER, end)


# Text that isn't a valid call.


@dataclass(frozen=True, slots=True)
class Unread:
    """Treats text that isn't a valid call as content.

    The text ends where parsing failed, or at the next occurrence of the same marker. If `ends` is set, text that looks like a call ends
    after a closing brace and the call's end markers.
    """

    role: Role
    hub: int
    finder: Finder
    stops: Finder
    """Markers that always end the text, even inside a possible call."""
    openers: frozenset[str] = frozenset()
    """Start markers, without whitespace, that always indicate a call. An answer that consists only of such a marker has no content."""
    ends: Finder | None = None
    """Finder for the closing brace and for start markers of other calls. Set only if text that looks like a call is dropped."""
    closers: Finder = NO_MARKERS

    def step(self, machine: Machine) -> bool:
        if self.ends is not None and (end := self._brace(machine, self.ends)) != _NOWHERE:
            return end == _UNDECIDED or self._drop(machine, end)
        # Consume at least one character. Otherwise, the parser would find the same marker again forever.
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed) if machine.rereads else failed
        # Stop at the end marker of reasoning, as in "…with <call> and</think>".
        closed, closer = self.stops.find(machine.buffer, machine.at + 1, end + self.stops.longest)
        end = closed if closer and closed < end else end
        # Wait for more text if the marker may occur again, as in `<call> <ca`.
        if not machine.final and self.finder.undecided_from(machine.buffer, machine.at + 1) < end:
            return True
        alone = machine.final and not machine.answered and end == len(machine.buffer)
        if alone and "".join(machine.buffer[machine.at :].split()) in self.openers:
            if machine.wanted:  # Report the marker, unless it was reported earlier.
                machine.malformed(machine.buffer[machine.at : end], machine.wanted)
            machine.take(Role.MALFORMED, end)
            return machine.go_to(self.hub)
        if self.role is Role.CONTENT:
            machine.answered = True
        machine.text(self.role, end)
        return machine.go_to(self.hub)

    def _again(self, machine: Machine, failed: int) -> int:
        """Return the position before `failed` at which the marker occurs again, or `failed` if there is none.

        An overlapping marker counts too, as in `>>>>`.
        """
        buffer, start = machine.buffer, machine.at
        marker = self.finder.at(buffer, start)
        # In "<call> is how <call>{…}</call> begins", only the second marker starts a call. The text before it is content.
        core = marker.strip()
        inside = start + len(marker)
        limit = max(failed, inside)
        at, literal = self.finder.find(buffer, start + 1, limit + self.finder.longest)
        while literal and at < limit:
            same = core and at >= inside and literal.strip().startswith(core)
            if same or at < inside < at + len(literal):
                return at
            at, literal = self.finder.find(buffer, at + 1, limit + self.finder.longest)
        return failed

    def _drop(self, machine: Machine, end: int) -> bool:
        """Consume text that looks like a call, and the end markers after it. `end` is the position after its closing brace."""
        buffer, closer = machine.buffer, "}"
        while closer:
            after = end_of(SPACE, buffer, end, end + MAX_BLANK)
            if undecided(machine, self.closers, after):
                return True
            closer = self.closers.at(buffer, after)
            end = after + len(closer) if closer else end
        # Leave out the text of a generation prompt, which is never content.
        if text := buffer[max(machine.at, -machine.base) if machine.given else machine.at : end]:
            machine.events.append(BrokenText(text))
        machine.take(Role.MALFORMED, end)
        return machine.go_to(self.hub)

    def _brace(self, machine: Machine, ends: Finder) -> int:
        """Return the position after the closing brace of an object that follows the marker.

        Only a single word may be between the marker and the object.
        """
        buffer, failed = machine.buffer, max(machine.at + 1, machine.failed_at)
        opened = buffer.find("{", machine.at, failed)
        if opened < 0:
            opened = end_of(_WORD, buffer, failed)
            if opened == len(buffer) and opened - failed < MAX_WORD and not machine.final:
                return _UNDECIDED
            if not buffer.startswith("{", opened):
                return _NOWHERE
        # The text before the failure was valid JSON, so the outer object can't close there.
        inside = max(opened + 1, failed)
        limit = inside + MAX_WORD
        search = ends.find if machine.final else ends.decided
        at, literal = search(buffer, inside)
        if literal == "}" and at < limit:
            return at + 1
        return _NOWHERE if literal or machine.final or len(buffer) >= limit else _UNDECIDED
