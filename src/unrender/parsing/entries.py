"""Instructions that go from argument to argument: an argument that is here whole is read at once.

Rules: the single steps of the program read the same, and take over where anything differs from what the format writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from unrender.grammar.nodes import Role
from unrender.parsing.arguments import Value, key_text
from unrender.parsing.finder import Finder
from unrender.parsing.follow import Follow
from unrender.parsing.frames import CallState
from unrender.parsing.instructions import MAX_NAME, SPACE
from unrender.parsing.literals import tokens
from unrender.parsing.machine import Machine
from unrender.parsing.slots import key_of
from unrender.parsing.spelled import Pieces, pieces_of
from unrender.parsing.values import DONE


@dataclass(frozen=True, slots=True)
class Entries:
    """After an argument: another one follows, or the arguments end."""

    entry: int
    done: int
    opener: str
    """What every argument begins with; empty when it begins with its name."""
    separator: str
    marks: Finder
    """The opener, and everything that may end the arguments."""
    closed: bool = True
    """A marker ends the arguments; else they end where no other follows."""
    further: Follow | None = None
    """Says whether another follows, where neither a marker nor a separator does."""
    spelled: SpelledArgument | None = None
    """Reads an argument at once that is here whole, as the format spells it."""

    def step(self, machine: Machine) -> bool:
        buffer, call = machine.buffer, machine.call
        assert call is not None
        if self.further is not None:
            return self._after_white_space(machine, self.further, first=call.count == 0)
        at = SPACE.match(buffer, machine.at).end()  # type: ignore[union-attr]
        if self.spelled is not None and self.spelled.read(machine, call, at):
            return False
        separable = bool(self.separator) and call.separated < call.count
        begun = separable and self.separator.startswith(buffer[at : at + len(self.separator)])
        if begun and buffer.startswith(self.separator, at):
            call.separated = call.count
            machine.take(Role.LAYOUT, at)
            machine.take(Role.MARKER, at + len(self.separator))
            at, begun = SPACE.match(buffer, machine.at).end(), False  # type: ignore[union-attr]
        machine.take(Role.LAYOUT, at)
        if begun and not machine.final:
            return True
        if not machine.final and (at >= len(buffer) or self.marks.may_grow(buffer, at)):
            return True
        mark = self.marks.at(buffer, at)
        if mark == self.opener and at < len(buffer):
            machine.pc = self.entry
        elif mark or not self.closed:
            machine.pc = self.done
        else:
            machine.fail(f"{self.opener!r} or the end of the arguments")
        return False

    def _after_white_space(self, machine: Machine, further: Follow, *, first: bool) -> bool:
        found = further.goes_on(machine.buffer, machine.at, first=first, final=machine.final)
        if found is not None:
            machine.pc = self.entry if found else self.done
        return found is None


@dataclass(frozen=True, slots=True)
class SpelledArgument:
    """One argument between markers, as the format spells it: `<parameter=city>Rome</parameter>`.

    Models mostly write just what the template wrote. The single steps read the same, and take over where anything differs.
    """

    opener: str
    pieces: Pieces
    """What the characters of `opener` are."""
    stop: str
    """What ends the name."""
    between: str
    """What is between the name and the value, from `stop` on."""
    closer: str
    """What is after the value, with the white space before it."""
    roles: tuple[Role, ...]
    """What the parts of an argument are, from its name on."""
    before: tuple[int, ...]
    """Where the parts of `between` end, counted from the end of the name."""
    after: tuple[int, ...]
    """Where the parts of `closer` end, counted from the end of the value."""
    value: Value

    def read(self, machine: Machine, call: CallState, at: int) -> bool:
        """Read the argument that begins at `at`; False where it is not here whole, or is spelled otherwise."""
        buffer = machine.buffer
        if not buffer.startswith(self.opener, at):
            return False
        start = at + len(self.opener)
        end = buffer.find(self.stop, start, start + MAX_NAME)
        key = key_of(buffer[start:end])
        if (
            end < 0
            or not key
            or key in call.keys
            or not buffer.startswith(self.between, end)
            or buffer[start].isspace()
        ):
            return False
        call.key = key
        first = end + len(self.between)
        scanner = self.value.scanner(call, quoted=False)
        stop, text, status = scanner.scan(buffer, first, final=False)
        if status != DONE or stop == first or scanner.duplicate or not buffer.startswith(self.closer, stop):
            return False
        machine.take(Role.LAYOUT, at)
        machine.take_pieces(self.pieces)
        machine.take_parts(self.roles, [end, *[end + n for n in self.before], stop, *[stop + n for n in self.after]])
        call.keys.add(key)
        machine.arguments(key_text(call) + text)
        call.count += 1
        return True


def spelled_argument(opener: str, between: str, closer: str, value: Value) -> SpelledArgument:
    """Return the spelling of an argument whose name and `value` are between these markers."""
    first = pieces_of(between)
    layout = len(closer) - len(closer.lstrip())
    last = (Role.LAYOUT, Role.MARKER) if layout else (Role.MARKER,)
    roles = (Role.NAME, *(role for role, _ in first), Role.ARGUMENT, *last)
    before = tuple(accumulate(size for _, size in first))
    after = (layout, len(closer)) if layout else (len(closer),)
    return SpelledArgument(opener, pieces_of(opener), tokens(between)[0], between, closer, roles, before, after, value)
