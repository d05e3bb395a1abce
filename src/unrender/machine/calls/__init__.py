"""Reads calls: the markers, names and arguments of each call, in the order of the tree that `answer` builds.

Open `call_reader` first. One coroutine reads a run of calls. It is a class in six steps, each of which adds the syntax around the step
before: this module (markers and words), `arguments`, `envelope` (calls that are one JSON object), `broken` (calls that failed), `tail` (the
text after a call) and `call_reader`. Where these fail, `mending` reads the same call with the alternatives of `damaged`. What a reader
looks for comes from `answer.views`.

Strategy: a reader suspends (`yield`) until more text arrives if the text so far allows several readings. Its position in the syntax is the
position in its code, so there is no state to keep up to date.

Rules:
- A reader that can't continue calls `fail`, which returns to the latest backtracking point and ends the reader.
- A reader doesn't keep text. All text, events and calls are in the machine.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from unrender.answer import Marker, without_fences
from unrender.answer.views import BACKQUOTES, CallView
from unrender.format import Slot
from unrender.limits import MAX_NAME, MAX_SMALL, MAX_WORDS
from unrender.machine.call_events import name_call, name_meant, unoffered
from unrender.machine.instructions import FENCE, take_space, undecided
from unrender.machine.interpreter import OR, Machine
from unrender.nodes import Role
from unrender.values import DONE, FAILED, MORE, Scanner
from unrender.values.finder import NOT_HERE, Finder, OddNames, end_of, odd_names

ONE_OF_THE_TOOLS = "the name of one of the tools"
NAME_END = re.compile(r"""[\s"'{}\[\]()<>,=]""")
_WORDS = re.compile(r" \w")
_T = TypeVar("_T")
Steps = Generator[None, None, _T]
"""A coroutine that suspends until more text arrives, and then returns a value."""


class Left(Exception):
    """The machine continues at another instruction, so the reader ends."""


class Failed(Left):
    """The machine returned to the latest backtracking point."""


@dataclass(slots=True, eq=False)
class Cursor:
    """Reads literals, whitespace and words."""

    machine: Machine
    view: CallView
    valued: bool = False
    """True while a raw value is being read."""
    replaced: tuple[str, int] | None = None
    """Words in place of a tool's name, and their position."""

    def fail(self, wanted: str) -> NoReturn:
        """End the reader, and return to the latest backtracking point. `wanted` is the expected text."""
        self.machine.fail(wanted)
        raise Failed

    def leave(self, target: int) -> NoReturn:
        """End the reader, and continue at another instruction."""
        self.machine.go_to(target)
        raise Left

    def quote(self) -> NoReturn:
        """End the reader, because the calls are quoted and therefore text."""
        self.machine.quote()
        raise Left

    def decided(self, markers: Finder, at: int) -> bool:
        """Return whether the text is long enough to identify the marker at `at`."""
        self.machine.steps += 1
        return not undecided(self.machine, markers, at)

    def space(self) -> Steps[None]:
        """Consume whitespace."""
        self.machine.steps += 1
        while take_space(self.machine):
            yield

    def literal(
        self, text: str, others: Iterable[str] = (), *, optional: bool = False, instead: tuple[str, ...] = ()
    ) -> Steps[bool]:
        """Consume `text`, or one of its `other` spellings, and return whether it was found.

        If `text` isn't `optional`, it must be there, unless one of the markers `instead` follows. Such a marker isn't consumed.
        """
        machine, texts = self.machine, (text, *others)
        while True:
            machine.steps += 1
            for found in texts:
                if machine.buffer.startswith(found, machine.at):
                    machine.take(Role.MARKER, machine.at + len(found))
                    return True
            # If a marker that may come next follows directly, only this marker is missing, as in `<city>Rome</f></call>`.
            if machine.buffer.startswith(instead, machine.at):
                machine.malformed("", repr(text))
                return True
            if not any(map(machine.may_begin, (*texts, *instead))):
                break
            yield
        if not optional:
            self.fail(repr(text))
        return False

    def fence(self, *, worded: bool = True) -> Steps[None]:
        """Consume the start of an optional Markdown fence: three backquotes and a language.

        If `worded` is False, a word after the backquotes isn't a language, and isn't consumed.
        """
        machine = self.machine
        while True:
            machine.steps += 1
            bare = machine.at + len(BACKQUOTES) * machine.buffer.startswith(BACKQUOTES, machine.at)
            end = end_of(FENCE, machine.buffer, machine.at) if worded else bare
            # Wait for more text if the fence may continue. "```js" may become "```json", and "``" may become a fence.
            longer = worded and end == len(machine.buffer) and not machine.final
            if not (longer if end > machine.at else machine.may_begin(BACKQUOTES)):
                break
            yield
        if end > machine.at:
            machine.fenced = True
            machine.take(Role.MARKER, end)

    def marker(self, marker: Marker, *, worded: bool = True) -> Steps[None]:
        """Consume a marker, with any whitespace before its pieces.

        If `worded` is False, a word directly after the last fence isn't part of the fence.
        """
        for i, piece in enumerate(marker.pieces):
            yield from self.space()
            if without_fences([piece]):
                yield from self.literal(piece, optional=self.view.optional(piece))
            else:
                yield from self.fence(worded=worded or i + 1 < len(marker.pieces))

    def before_object(self) -> Steps[None]:
        """Consume whitespace and an optional Markdown fence before a JSON object."""
        yield from self.space()
        yield from self.fence()
        yield from self.space()

    # Names and other words.

    def declared(
        self, odd: OddNames, stops: Finder, ends: re.Pattern[str] | None = None, *, skips: int = 0
    ) -> Steps[int]:
        """Return the end of a declared name that isn't a plain word, or `NOT_HERE`. The name isn't consumed.

        `skips` is the number of characters before the name.
        """
        machine = self.machine
        while odd:
            end = odd.end_at(machine.buffer, machine.at + skips, stops, final=machine.final, ends=ends)
            if end is not None:
                return end
            yield
        return NOT_HERE

    def name(self, stops: Finder) -> Steps[None]:
        """Consume the tool name, which ends at one of `stops` or at whitespace."""
        machine = self.machine
        # Declared names may contain spaces, such as `get weather`, so try them before words.
        declared = yield from self.declared(odd_names(machine.request._tool_names), stops, NAME_END)
        while True:
            machine.steps += 1
            ends = self._word_ends(stops) if declared == NOT_HERE else [declared]
            if ends is not None:
                if self._named(ends):
                    return
                # The text after the name may still show that the name is meant.
                short = bool(ends) and len(machine.buffer) - ends[0] < len("  ") and not machine.final
                if machine.request.tools is None or not short:
                    self.fail("the name of a tool" if machine.request.tools is None else ONE_OF_THE_TOOLS)
            yield

    def _named(self, ends: list[int]) -> bool:
        """Consume the name of an offered tool that ends at one of `ends`. Return False if there is none."""
        machine = self.machine
        for end in ends:
            if self.call_named(machine.buffer[machine.at : end]):
                machine.take(Role.NAME, end)
                return True
        if machine.request.tools is None or not ends:
            return False
        name = machine.buffer[machine.at : ends[0]]
        before = name_meant(machine, name, machine.position)
        after = machine.buffer[ends[0] : ends[0] + 2]
        if before < 0 and len(after) < 2 and not machine.final:
            return False
        # Words of a sentence aren't a tool name, as in "<call>I will now".
        prose = _WORDS.match(after) is not None
        if before < 0 and (prose or not unoffered(machine, name, ONE_OF_THE_TOOLS)):
            return False
        machine.take(Role.MALFORMED, machine.at + before)
        machine.take(Role.NAME, ends[0])
        return True

    def call_named(self, name: str) -> bool:
        """Set the name of the call. If no such tool may be called in this syntax, return False and change nothing."""
        # In another format's syntax, only the name distinguishes a call from text such as `<b><i>text</i></b>`.
        request = self.machine.request
        known = not self.view.calls.sibling or request.tools is None or request.tool(name) is not None
        return known and name_call(self.machine, name)

    def _word_ends(self, stops: Finder) -> list[int] | None:
        """Return the possible ends of the word at the current position, nearest first. Return None if more text is needed."""
        machine = self.machine
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

    def word(self, slot: Slot, stops: Finder, types: Sequence[str] = ()) -> Steps[None]:
        """Consume a counter, an id, or one of the type words `types`, which ends at one of `stops` or at whitespace."""
        machine, call = self.machine, self.machine.current
        while (ends := self._word_ends(stops)) is None:
            yield
        machine.steps += 1
        if not ends or ends[0] == machine.at:
            self.fail(f"the call's {slot.value}")
        word = machine.buffer[machine.at : ends[0]]
        if slot is Slot.ID:
            call.id = word
        elif slot is Slot.TYPE:
            call.kind = word
            if types and word not in types:
                machine.malformed(word, OR.join(map(repr, types)))
        machine.take(Role.ID if slot is not Slot.TYPE else Role.MARKER, ends[0])

    def skip_words(self, stops: Finder) -> Steps[None]:
        """Skip meaningless words on one line, up to one of `stops`."""
        machine = self.machine
        while True:
            machine.steps += 1
            buffer, start = machine.buffer, machine.at
            limit = start + MAX_WORDS + stops.longest
            end, literal = stops.find(buffer, start, limit)
            if not (literal and not machine.final and stops.undecided_from(buffer, start) < end):
                # Don't skip text that may be the start of a stop. For example, ` to` may become the stop ` to=`, as in `assistant to=f`.
                words = buffer[start : end if literal else min(limit, stops.undecided_from(buffer, start))]
                barred = self.view.barred.find(words, 0)[1]
                if len(words) > MAX_WORDS or "\n" in words or barred or (not literal and machine.final):
                    self.fail(OR.join(map(repr, stops.literals)))
                if literal:
                    # In a call with two names, these words replace the first name.
                    self.replaced = (words, machine.position) if self.view.calls.checked else None
                    machine.take(Role.MALFORMED if self.replaced else Role.MARKER, end)
                    return
            yield

    # Values.

    def scan(self, scanner: Scanner) -> Steps[None]:
        """Read one value. Its JSON text is added to the arguments of the call."""
        machine = self.machine
        machine.scanner = scanner
        while True:
            machine.steps += 1
            end, text, status = scanner.scan(machine.buffer, machine.at, final=machine.final)
            if end < machine.at:
                machine.reread += machine.at - end
                machine.return_to(machine.base + end)
            machine.take(Role.ARGUMENT, end)
            machine.arguments(text)
            if status is not MORE or machine.final:
                break
            # Let following text that can't end the value take the fast path, which runs no instructions.
            machine.flow = scanner.flow
            yield
        if status is not DONE:
            machine.current.unclear |= scanner.unclear
            self.fail(scanner.wanted if status is FAILED else "the rest of the arguments")
        # A call whose name isn't known yet may turn out to be text, so the envelope reports the duplicate key only once the name is known.
        if machine.current.name and (duplicate := scanner.duplicate):
            machine.malformed(duplicate, "another argument")
        if machine.current.name and scanner.lost:
            machine.malformed(scanner.lost, "a JSON value")
        machine.scanner = None
