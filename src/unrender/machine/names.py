"""Instructions for the words of a call: its tool name, its id, and meaningless words.

Rules: same as in `instructions`. Declared names with unusual characters take precedence (`values.declared`). Any other name is a word.
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
    """The tool name, up to one of `stops` or whitespace. Fails if no such tool is offered."""

    stops: Finder

    def step(self, machine: Machine) -> bool:
        # A tool may be called `get weather`, although a word ends at the space.
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
        # In "<call>I will now", the words aren't a tool name.
        prose = _WORDS.match(after) is not None
        if ends and (before >= 0 or (not prose and unoffered(machine, name, ONE_OF_THE_TOOLS))):
            machine.take(Role.MALFORMED, machine.at + before)
            machine.take(Role.NAME, ends[0])
            return machine.go_on()
        return machine.fail(ONE_OF_THE_TOOLS)


def _word_ends(machine: Machine, stops: Finder) -> list[int] | None:
    """Return the possible ends of the word at the current position, nearest first; None if more text is needed."""
    buffer, start = machine.buffer, machine.at
    horizon = start + MAX_NAME
    limit = NAME_END.search(buffer, start, horizon)
    edge = limit.start() if limit else min(len(buffer), horizon)
    # "now(" ends at the bracket, unless "(" also starts a stop, as in "now(args".
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
    # With ":" as a stop, "ns:now:" may be the tool "ns" or "ns:now". Try each end, nearest first.
    known = [end for end in ends if machine.request.tool(buffer[start:end])]
    # A stop that starts earlier may still be incomplete.
    return known if known and stops.undecided_from(buffer, start) >= known[0] else None


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A counter, an id, or the word for the type of a value, up to one of `stops` or whitespace."""

    slot: Slot
    stops: Finder
    types: tuple[str, ...] = ()
    """Allowed words for types."""

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
    """Meaningless words on one line, up to one of `stops`."""

    stops: Finder
    barred: Finder
    """Markers that the skipped words can't contain, because they belong to another call."""

    def step(self, machine: Machine) -> bool:
        buffer, start = machine.buffer, machine.at
        limit = start + MAX_WORDS + self.stops.longest
        end, literal = self.stops.find(buffer, start, limit)
        if literal and not machine.final and self.stops.undecided_from(buffer, start) < end:
            return True
        # Exclude a possible start of a stop from the words. For example, the text ` to` may become the stop ` to=` in `assistant to=f`.
        words = buffer[start : end if literal else min(limit, self.stops.undecided_from(buffer, start))]
        barred = self.barred.find(words, 0)[1]
        if len(words) > MAX_WORDS or "\n" in words or barred or (not literal and machine.final):
            return machine.fail(OR.join(map(repr, self.stops.literals)))
        if not literal:
            return True
        machine.take(Role.MARKER, end)
        return machine.go_on()
