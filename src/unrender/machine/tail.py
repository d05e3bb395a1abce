"""Parses the text after a call's arguments: the end of the call or of the run, the next call, or invalid text.

Rules:
- Closers may be missing or doubled, and a run that breaks off is left to the text; nothing that closes a call is lost.
- Text that broke off is searched for another beginning a bounded number of times.
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
"""A closing tag, or the beginning of one."""
_CALLS_END = ("call>", "calls>")
_GOES_ON = (",", ":", "}", "]")
"""Characters that continue JSON."""
_NOWHERE, _UNDECIDED = -1, -2


@dataclass(frozen=True, slots=True)
class Tail:
    """Reads the closers of a call and of a run of calls, and then the next call."""

    closers: tuple[str, ...]
    """Texts that must follow a call, in order."""
    section: tuple[str, ...]
    """Texts that must follow the last call."""
    openers: Mapping[str, tuple[int, int]]
    """Markers that begin another call: where to go, and where to try when a failure must leave it text."""
    optional: frozenset[str]
    """Closers that are also ends of turn."""
    excess: frozenset[str]
    """Brackets that models write once too often before a closer."""
    separator: str
    after: str
    """Layout that may follow the last call."""
    marks: Finder
    hub: int
    ends: Finder
    """Ends of a turn."""
    stops: Finder
    """Ends of a call that broke: what closes it, and what begins the next one."""
    refused: Finder
    """Ends of the text of a broken call that is content: what closes it, what begins a call, and what ends the turn."""
    unmarked: bool = False
    """Nothing but a tool's name shows a call: one whose JSON breaks the tool's schema is text."""
    repair: Repair | None = None
    """The reader of a call that is not written as the format has it."""

    def step(self, machine: Machine) -> bool:
        if (suspended := self._end_failed(machine)) is not None:
            return suspended
        # `f(a=1)`: nothing closes such a call, so it is complete at once.
        if not self.closers and not self._limited(machine):
            self._complete(machine)
        buffer = machine.buffer
        at = end_of(SPACE, buffer, machine.at, machine.at + MAX_BLANK)
        # So many blank lines are not the layout between two calls.
        if at - machine.at == MAX_BLANK:
            return self._leave(machine, machine.at)
        if undecided(machine, self.marks, at):
            return True
        mark = self.marks.at(buffer, at)
        if mark in self.openers and not self._ends_this(machine, mark):
            return self._next_call(machine, at, mark)
        if mark == BACKQUOTES and machine.fenced:
            machine.fenced = False
            if machine.call:  # The fence around `{"a": 1}` has closed, so the arguments are all there.
                machine.call.ended = True
            _take(machine, at + len(mark))
            return False
        if mark and mark == self.separator:
            return self._separator(machine, at, mark)
        if mark and (mark in self.closers or mark in self.section) and self._close(machine, at, mark):
            return False
        if not mark and (self.section or not self.separator) and "" in self.openers:
            # Nothing but its name shows the next call: "now {…}\nthen {…}"; in a list the comma may be missing: `[f()g()]`.
            named = tool_at(machine, at)
            if named is not False:
                return named is None or self._next_call(machine, at, mark)
        return self._excess(machine, at, mark) if mark in self.excess else self._foreign(machine, at, mark)

    def _break(self, machine: Machine) -> None:
        """End a committed call at invalid text; the rest of the text is parsed separately."""
        machine.broke = False
        call, wanted = machine.call or begin_call(machine), machine.wanted
        # `{"a": ` at the end of the output was cut off; `{"a": ;` was broken before it ended.
        truncated = machine.final and machine.failed_at >= len(machine.buffer)
        # Only one character: how many more have come depends on the chunks.
        met = machine.buffer[machine.at : machine.at + 1]
        status: CallStatus = "truncated" if truncated or machine.cut_at(call) else "invalid"
        mendable = may_be_repaired(machine, self.repair) and not machine.length_limited
        # A value that nothing closes takes all that follows, and with it what closes the call.
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
        """Read on to the end of a call that failed; return None where there is none, or its end is reached."""
        if machine.broke:
            self._break(machine)
        if machine.call and machine.call.broken:
            return self._end_broken(machine, *machine.call.broken)
        return True if machine.refused and self._end_refused(machine) else None

    def _end_broken(self, machine: Machine, wanted: str, met: str, position: int) -> bool:
        """Read on to the end of a call that broke; there it is repaired, or fails. Return True to suspend."""
        search = self.stops.find if machine.final else self.stops.decided
        at, mark = search(machine.buffer, machine.at) if self.stops.literals else (machine.at, "")
        mendable = may_be_repaired(machine, self.repair)
        # Without a marker that ends a call, the repair itself finds its end.
        if not mark and (machine.final or (mendable and not self.stops.literals)):
            at = len(machine.buffer)
        # `{"a": 1</call>, "b": 2}`: a closer is not the end where JSON goes on after it.
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
        """Repair the call whose text ends here, before `mark`; return whether it was."""
        ended = repaired(machine, self.repair, mark, self.hub) if self.repair else ""
        if ended:
            machine.closed = len(self.closers) + (len(self.section) if ended == "run" else 0)
        return bool(ended)

    def _end_refused(self, machine: Machine) -> bool:
        """Read on to the end of a call whose text is content: markers in it are content, too. Return True to suspend."""
        buffer, mark = machine.buffer, ""
        if self.refused.literals:
            search = self.refused.find if machine.final else self.refused.decided
            at, mark = search(buffer, machine.at)
            while mark == BACKQUOTES and not machine.fenced:  # No fence is open that these would close.
                at, mark = search(buffer, at + len(mark))
            end = at if mark or not machine.final else len(buffer)
            closed = call_failed(machine) and (mark in self.closers or mark in self.section)
            machine.text(Role.CONTENT, end + len(mark) if closed else end)
            if not mark and not machine.final:
                return True
        machine.refused = False
        return False

    def _ends_this(self, machine: Machine, mark: str) -> bool:
        """Return whether a mark that begins a call ends this one: where both are the same marker, the second one ends."""
        awaited = (*self.closers, *self.section)[machine.closed :]
        return not mark or mark in awaited or (mark == BACKQUOTES and machine.fenced)

    def _excess(self, machine: Machine, at: int, mark: str) -> bool:
        # `{"a": 1}}}</call>`: one brace too many is forgiven where a whole marker follows it.
        after = end_of(SPACE, machine.buffer, at + 1, at + 1 + MAX_BLANK)
        if undecided(machine, self.marks, after):
            return True
        if len(self.marks.at(machine.buffer, after)) < 2:
            return self._leave(machine, at)
        if machine.call and machine.call.keys:
            machine.call.repaired = True
        machine.malformed(mark, "a closer")
        _take(machine, at + 1)
        return False

    def _foreign(self, machine: Machine, at: int, mark: str) -> bool:
        """Take another format's closing tag for the one that is due, as in `{"a": 1}</arg_value>`, or a part of it at the end.

        The run is left where neither is here.
        """
        expected = (*self.closers, *self.section)[machine.closed :] if not mark else ()
        due = expected[0] if expected else ""
        found = _FOREIGN.match(machine.buffer, at) if due else None
        if found and not machine.final and found.end() == len(machine.buffer) and found.end() - at < MAX_BLANK:
            return True
        # What closes a section names calls: any other tag may be the text's own.
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
        # A closer that came already is doubled, and dropped; but a single `]` again may be text.
        if not ahead and len(mark) == 1:
            return False
        if call_failed(machine):
            machine.text(Role.CONTENT, at + len(mark))
            return True
        machine.take(Role.LAYOUT, at)
        # Of `</call></call>` the second one stands for the first again.
        index = ahead[0] if ahead else seen - 1
        # `</section>` without `</call>` before it closes both.
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
            fail_call(machine, "invalid", "arguments that the tool takes", "")
            machine.closed = ABANDONED
        elif call:
            complete_call(machine)
        if call:
            seal(machine)

    def _repair(self, machine: Machine, missing: str) -> None:
        """Report a closer that is missing: such a call counts only with arguments that the tool takes."""
        machine.malformed("", repr(missing))
        if machine.call is not None:
            machine.call.repaired = True

    def _fits(self, call: CallState) -> bool:
        arguments = "".join(call.arguments)
        if not call.repaired:
            return call.begun or call.types.admit(arguments)
        # In `{city:"Paris,opts:{"a": 1}}` a quotation mark is missing, and `a` is no argument.
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
        # "f(), and …": a comma that no call follows is text.
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
        # "`<f/>`" in `<output>`: what begins like a call may close a quotation. In a comment there may be several calls.
        around = going_on(machine.quotation) if mark and machine.quotation else None
        if around and not around.any_text:
            quoted = around.closed(machine.buffer, machine.at, self.ends, final=machine.final)
            if quoted is not False:
                return True if quoted is None else machine.quote()
        if machine.closed < len(self.closers):
            self._repair(machine, self.closers[machine.closed])
        self._complete(machine)
        # Inside a section white space is layout; between calls that stand alone it may turn out to be content.
        if self.section:
            machine.take(Role.LAYOUT, at)
            if not machine.loose:
                machine.separated = machine.position
        else:
            machine.carry(at)
        # With a way back open, a call that fails now takes the whole run back; without, it alone becomes
        # text.
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
            # A call that counts only whole, as bare `{"name": …}` in an answer, is text where its end is
            # missing.
            if machine.frames and machine.frames[-1].whole and (cut_off or not ended):
                return machine.fail(wanted)
            if cut_off:
                fail_call(machine, "truncated", wanted, "")
                machine.closed = ABANDONED
            # At the end of the output a closer that also ends the turn is not missing: the engine has
            # stripped it.
            elif not ended or expected[machine.closed] not in self.optional:
                self._repair(machine, expected[machine.closed])
        self._complete(machine)
        if not call_failed(machine):  # After a call that is text, white space is text as well.
            # Before more text only the layout that the format writes is taken: a third line break is the
            # text's own.
            shared = shared_length(machine.buffer, machine.at, self.after)
            machine.take(Role.LAYOUT, at if ended else machine.at + shared)
        if torn and machine.at < len(machine.buffer):
            self._drop(machine)
        return machine.go_to(machine.frames[-1].sealed if machine.frames else self.hub)

    def _torn(self, machine: Machine, at: int) -> bool:
        """Return whether the token limit has cut the output off in a marker that begins at `at`."""
        rest = machine.buffer[at:]
        limited = machine.final and machine.length_limited and rest
        return bool(limited) and any(mark.startswith(rest) for mark in self.marks.literals)

    def _drop(self, machine: Machine) -> None:
        """Report a marker that was cut off after a call: it begins the next call, or closes what is complete."""
        rest = machine.buffer[machine.at :]
        closers = (*self.closers, *self.section)
        if any(closer.startswith(rest) for closer in closers):
            machine.malformed(rest, " or ".join(map(repr, closers)))
            machine.take(Role.MALFORMED, len(machine.buffer))
        else:
            cut_short(machine)

    def _limited(self, machine: Machine) -> bool:
        """Return whether the token limit has cut the output off before the call has ended."""
        # What closes no call by a marker is complete where something follows, which nothing does here. A first closer shows
        # that the arguments are all there.
        cut = machine.call is not None and machine.call.cut and not machine.closed
        return machine.length_limited and machine.final and cut

    def _was_cut_off(self, machine: Machine) -> bool:
        """Judge a call whose arguments are complete, at the end of the output.

        Engines strip the marker that stopped the model, and models that omit the start marker also omit the end marker. Otherwise something
        must show that the arguments are all there: a closing marker, or the fence or
        the bracket around them. A call that shows nothing of the kind was cut off.
        """
        if self._limited(machine):
            return True
        if machine.closed or not self.closers or self.closers[0] in self.optional:
            return False
        ended = machine.call is not None and machine.call.ended
        return not (machine.loose or ended)


def _take(machine: Machine, end: int) -> None:
    """Take a closing marker; after a call that has failed it is content like the call."""
    if call_failed(machine):
        machine.text(Role.CONTENT, end)
    else:
        machine.take(Role.MARKER, end)


# Text that could not be read as a call.


@dataclass(frozen=True, slots=True)
class Unread:
    """Treats text that isn't a valid call as content.

    The text goes up to the place where reading failed, or to the next beginning of the same marker. Where `ends` are given, text
    with the shape of a call goes up to a closing brace and the call's closers.
    """

    role: Role
    hub: int
    finder: Finder
    stops: Finder
    """Ends of the text wherever it is, also where a call was looked for."""
    openers: frozenset[str] = frozenset()
    """Markers that show a call by themselves, without white space: an answer that is nothing else says nothing."""
    ends: Finder | None = None
    """The closing brace, and start markers of another call."""
    closers: Finder = NO_MARKERS

    def step(self, machine: Machine) -> bool:
        if self.ends is not None and (end := self._brace(machine, self.ends)) != _NOWHERE:
            return end == _UNDECIDED or self._drop(machine, end)
        # At least one character becomes text, or the same marker would be found here for ever.
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        end = self._again(machine, failed) if machine.rereads else failed
        # "…with <call> and</think>": what failed as a call must not swallow the end of the reasoning.
        closed, closer = self.stops.find(machine.buffer, machine.at + 1, end + self.stops.longest)
        end = closed if closer and closed < end else end
        # `<call> <ca`: whether the marker comes again, and ends this text, is not known yet.
        if not machine.final and self.finder.undecided_from(machine.buffer, machine.at + 1) < end:
            return True
        alone = machine.final and not machine.answered and end == len(machine.buffer)
        if alone and "".join(machine.buffer[machine.at :].split()) in self.openers:
            if machine.wanted:  # It led to no call, and that was not reported.
                machine.malformed(machine.buffer[machine.at : end], machine.wanted)
            machine.take(Role.MALFORMED, end)
            return machine.go_to(self.hub)
        if self.role is Role.CONTENT:
            machine.answered = True
        machine.text(self.role, end)
        return machine.go_to(self.hub)

    def _again(self, machine: Machine, failed: int) -> int:
        """Return where, before `failed`, the marker comes again, or one that outlasts it begins in it, as in `>>>>`."""
        buffer, start = machine.buffer, machine.at
        marker = self.finder.at(buffer, start)
        # "<call> is how <call>{…}</call> begins": the first marker is text, up to the second.
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
        """Take text with the shape of a call, whose brace closes before `end`, and its closers."""
        buffer, closer = machine.buffer, "}"
        while closer:
            after = end_of(SPACE, buffer, end, end + MAX_BLANK)
            if undecided(machine, self.closers, after):
                return True
            closer = self.closers.at(buffer, after)
            end = after + len(closer) if closer else end
        # What a generation prompt wrote is never content.
        if text := buffer[max(machine.at, -machine.base) if machine.given else machine.at : end]:
            machine.events.append(BrokenText(text))
        machine.take(Role.MALFORMED, end)
        return machine.go_to(self.hub)

    def _brace(self, machine: Machine, ends: Finder) -> int:
        """Return where the brace has closed that opens after the marker, with at most a word between."""
        buffer, failed = machine.buffer, max(machine.at + 1, machine.failed_at)
        opened = buffer.find("{", machine.at, failed)
        if opened < 0:
            opened = end_of(_WORD, buffer, failed)
            if opened == len(buffer) and opened - failed < MAX_WORD and not machine.final:
                return _UNDECIDED
            if not buffer.startswith("{", opened):
                return _NOWHERE
        # Up to the place of the failure all was JSON: no brace before it closes the outer one.
        inside = max(opened + 1, failed)
        limit = inside + MAX_WORD
        search = ends.find if machine.final else ends.decided
        at, literal = search(buffer, inside)
        if literal == "}" and at < limit:
            return at + 1
        return _NOWHERE if literal or machine.final or len(buffer) >= limit else _UNDECIDED
