"""Instructions that parse the tool name and id of a call, and words without meaning.

Rules: the rules of `instructions` apply. Declared names with unusual characters take precedence (`values.declared`). All other names are
parsed as words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.format import Slot
from unrender.limits import MAX_NAME, MAX_SMALL, MAX_WORDS
from unrender.machine.call_events import name_call, name_meant, unoffered
from unrender.machine.interpreter import OR, Machine
from unrender.nodes import Role
from unrender.values.declared import NOT_HERE, odd_names
from unrender.values.finder import Finder

ONE_OF_THE_TOOLS = "the name of one of the tools"
_WORDS = re.compile(r" \w")
NAME_END = re.compile(r"""[\s"'{}\[\]()<>,=]""")


@dataclass(frozen=True, slots=True)
class ReadName:
    """Parses the tool name, which ends at one of `stops` or at whitespace. Fails if no such tool is offered."""

    stops: Finder

    def step(self, machine: Machine) -> bool:
        # Declared names may contain spaces, such as `get weather`, so try them before words.
        odd, at = odd_names(machine.request._tool_names), machine.at
        declared = odd.end_at(machine.buffer, at, self.stops, final=machine.final, ends=NAME_END) if odd else NOT_HERE
        if declared is None:
            return True
        ends = _word_ends(machine, self.stops) if declared == NOT_HERE else [declared]
        if ends is None:
            return True
        for end in ends:
            if name_call(machine, machine.buffer[machine.at : end]):
                machine.take(Role.NAME, end)
                return machine.go_on()
        if machine.request.tools is None:
            return machine.fail("the name of a tool")
        name = machine.buffer[machine.at : ends[0]] if ends else ""
        before = name_meant(machine, name, machine.position)
        after = machine.buffer[ends[0] : ends[0] + 2] if ends else ""
        if before < 0 and ends and len(after) < 2 and not machine.final:
            return True
        # Words of a sentence aren't a tool name, as in "<call>I will now".
        prose = _WORDS.match(after) is not None
        if ends and (before >= 0 or (not prose and unoffered(machine, name, ONE_OF_THE_TOOLS))):
            machine.take(Role.MALFORMED, machine.at + before)
            machine.take(Role.NAME, ends[0])
            return machine.go_on()
        return machine.fail(ONE_OF_THE_TOOLS)


def _word_ends(machine: Machine, stops: Finder) -> list[int] | None:
    """Return the possible ends of the word at the current position, nearest first. Return None if more text is needed."""
    buffer, start = machine.buffer, machine.at
    horizon = start + MAX_NAME
    limit = NAME_END.search(buffer, start, horizon)
    edge = limit.start() if limit else min(len(buffer), horizon)
    # Wait for more text if a stop may start before the end of the word. "now(" ends at the bracket, unless "(args" is a stop too.
    if limit and not machine.final and stops.undecided_from(buffer, start) < edge:
        return None
    ends: list[int] = []
    reach = min(edge + stops.longest, horizon)
    at, literal = stops.find(buffer, start, reach)
    while literal and at <= edge and len(ends) < MAX_SMALL:
        ends.append(at)
        at, literal = stops.find(buffer, at + 1, reach)
    if limit or (machine.final and edge < horizon):
        return [*ends, edge] if edge not in ends else ends
    if edge == horizon:
        return ends
    # With the stop ":", the tool name in "ns:now:" may be "ns" or "ns:now". Try each possible end of the name, nearest first.
    known = [end for end in ends if machine.request.tool(buffer[start:end])]
    # If an incomplete stop may start earlier, wait for more text.
    return known if known and stops.undecided_from(buffer, start) >= known[0] else None


@dataclass(frozen=True, slots=True)
class ReadWord:
    """Parses a counter, an id, or a type word, which ends at one of `stops` or at whitespace."""

    slot: Slot
    stops: Finder
    types: tuple[str, ...] = ()
    """Words that are accepted as types."""

    def step(self, machine: Machine) -> bool:
        ends = _word_ends(machine, self.stops)
        call = machine.current
        if ends is None:
            return True
        if not ends or ends[0] == machine.at:
            return machine.fail(f"the call's {self.slot.value}")
        word = machine.buffer[machine.at : ends[0]]
        if self.slot is Slot.ID:
            call.id = word
        elif self.slot is Slot.TYPE:
            call.kind = word
            if self.types and word not in self.types:
                machine.malformed(word, OR.join(map(repr, self.types)))
        machine.take(Role.ID if self.slot is not Slot.TYPE else Role.MARKER, ends[0])
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class SkipWords:
    """Skips meaningless words on one line, up to one of `stops`."""

    stops: Finder
    barred: Finder
    """Markers that skipped words can't contain, because the markers belong to another call."""

    def step(self, machine: Machine) -> bool:
        buffer, start = machine.buffer, machine.at
        limit = start + MAX_WORDS + self.stops.longest
        end, literal = self.stops.find(buffer, start, limit)
        if literal and not machine.final and self.stops.undecided_from(buffer, start) < end:
            return True
        # Don't skip text that may be the start of a stop. For example, ` to` may become the stop ` to=`, as in `assistant to=f`.
        words = buffer[start : end if literal else min(limit, self.stops.undecided_from(buffer, start))]
        barred = self.barred.find(words, 0)[1]
        if len(words) > MAX_WORDS or "\n" in words or barred or (not literal and machine.final):
            return machine.fail(OR.join(map(repr, self.stops.literals)))
        if not literal:
            return True
        machine.take(Role.MARKER, end)
        return machine.go_on()
