"""Compiles one call syntax into straight-line code: how a run of calls is entered, read and left.

Rules: white space in and between literals is flexible; beside raw values it is taken only as far as the format writes it.
Markdown fences are optional wherever a JSON value begins. A call counts from its first argument on (`Commit`): before
that, a failure leaves everything content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from unrender.format import CallSyntax, Envelope, Part, Slot
from unrender.freezing import FrozenDict
from unrender.machine.arguments import DropEmpty
from unrender.machine.compile.argument_code import ArgumentCode
from unrender.machine.compile.code import Code
from unrender.machine.compile.literals import (
    before_object,
    call_closers,
    closing_tokens,
    ends_apart,
    is_distinctive,
    last_slot,
    literal_code,
    markers,
    splitter,
    text_of,
    tokens,
    unsplit,
    what_follows_arguments,
    with_commas,
)
from unrender.machine.envelope import ReadEnvelope, known_fields
from unrender.machine.instructions import (
    BACKQUOTES,
    Ahead,
    Attempt,
    Hold,
    Jump,
    Loosen,
    Maybe,
    MaybeFence,
    Named,
    Space,
)
from unrender.machine.interpreter import Instruction
from unrender.machine.slots import BeginCall, Commit, EndId, MarkId, ReadName, ReadWord, RepeatName, SkipWords
from unrender.machine.tail import Tail
from unrender.nodes import Calls
from unrender.values.finder import Finder

_WORD_PREFIX = re.compile(r"\w+[.:/]")


@dataclass(frozen=True, slots=True)
class CallEntry:
    """A place where a run of calls may begin: the marker that shows it, and the address of its code."""

    opener: str
    lead: str
    target: int
    strong: bool
    """The marker is not something that prose contains: when no call follows, that is worth a report."""


def empty_entries(code: Code, syntax: CallSyntax, target: int, closers: int = 0, lead: str = "") -> Iterator[CallEntry]:
    """Emit the code of empty calls and empty sections, which say nothing, and yield its entries.

    `functools[]` shows one, and `[]` does not. `closers` close a call and a run of calls at `target`; with none, what is
    there is read whole.
    """
    split = splitter(syntax)
    for texts in _empty_blocks(syntax, whole=not closers):
        if is_distinctive("".join("".join(texts).split())):
            opener = split(texts[0])[0]
            read = [instruction for text in texts for instruction in literal_code(syntax, text)]
            at = code.emit(*read, DropEmpty(closers), Jump(target))
            yield CallEntry(opener, lead + _lead_of(texts[0]), at, is_distinctive(opener))


def _empty_blocks(syntax: CallSyntax, *, whole: bool) -> list[tuple[str, ...]]:
    """Return the markers of empty calls and empty sections, in the order in which they are tried."""
    section, call = (syntax.section_start, syntax.section_end), (syntax.call_start, syntax.call_end)
    calls = [call] if all(map(str.strip, call)) else []
    around = [(section[0], *call, section[1] if whole else "") for call in calls]
    return [*calls, *((section, *around) if all(map(str.strip, section)) else ())]


def _lead_of(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


class CallCode:
    """Compiles one run of calls into `code`.

    `hub` is the address of the code for the text after the run; `ends` are the texts that end a turn.
    """

    def __init__(self, code: Code, calls: Calls, hub: int, ends: frozenset[str]) -> None:
        self.code = code
        self.ends = ends
        self.syntax: CallSyntax = with_commas(ends_apart(calls.syntax, ends))
        self.lead: str = calls.lead
        self.spellings: tuple[str, ...] = calls.spellings
        self.head: str = "{" if calls.syntax.envelope else text_of(calls.syntax.function[0])
        self.marked: bool = any(map(str.strip, (calls.syntax.section_start, calls.syntax.call_start, self.head)))
        self.unmarked: tuple[int, ...] = ()
        """Addresses of code that reads calls with no marker; tried where an answer begins."""
        self.lines: dict[str, int] = {}
        """The same after content, by what shows such a call: a line that begins with a tool's name."""
        self.names: list[str] = [tool.name for tool in calls.tools or ()] if calls.on_lines else []
        self.hub = hub
        self.split: Callable[[str], list[str]] = splitter(calls.syntax)
        self.tail: int = code.reserve()

    def compile(self) -> list[CallEntry]:
        """Emit the code of calls, sections and the text after them; return the entries, the outermost first."""
        syntax = self.syntax
        call = self.code.emit(*self._hold(), *literal_code(syntax, syntax.call_start))
        function = self._function()
        bare = self.code.emit(Loosen(), Jump(call))
        inner = self.code.emit(Loosen(), *self._hold(), Jump(function))
        section = self.code.emit(*literal_code(syntax, syntax.section_start), Jump(call))
        self._tail(call)
        outer = bare if syntax.section_start.strip() else call
        levels = [(syntax.section_start, section), (syntax.call_start, outer), (self.head, inner)]
        others = [(text, self.code.emit(*literal_code(syntax, text), Jump(call))) for text in self.spellings]
        empty = list(empty_entries(self.code, syntax, self.tail, len(closing_tokens(syntax)), self.lead))
        if not self.marked:
            self.unmarked = (self.code.emit(Space(), Named(), Jump(call)),)
            breaks = [self.lead[at:] for at in range(len(self.lead)) if "\n" in self.lead[at:]]
            self.lines = {before + name: call for before in breaks for name in self.names}
        return [*self._entries([(text, at) for text, at in [*levels, *others] if text.strip()]), *empty]

    def _entries(self, levels: list[tuple[str, int]]) -> Iterator[CallEntry]:
        for i, (text, at) in enumerate(levels):
            opener = self.split(text)[0]
            distinctive = is_distinctive(opener)
            if i == 0 or distinctive:
                yield CallEntry(opener, self.lead + _lead_of(text), at, distinctive)

    def _hold(self) -> tuple[Instruction, ...]:
        return (Hold(),) if self.syntax.whole else ()

    # One call.

    def _function(self) -> int:
        start = self.code.emit(BeginCall())
        if self.syntax.envelope:
            self._envelope(self.syntax.envelope)
        else:
            self._skeleton()
        self.code.emit(Jump(self.tail))
        return start

    def _envelope(self, envelope: Envelope) -> None:
        syntax = self.syntax
        slots = [part for part in syntax.function if isinstance(part, Slot)]
        order = [slot for slot in slots if slot in (Slot.NAME, Slot.ID)]
        marked = [
            token for text in (syntax.section_start, syntax.call_start) for token in self.split(text) if len(token) > 1
        ]
        read = ReadEnvelope(
            fields=envelope,
            recover=self.tail,
            bare=not marked,
            arguments_first=Slot.ARGUMENTS in slots[: slots.index(Slot.NAME)],
            waits=order == [Slot.NAME, Slot.ID],
            strict=syntax.whole,
            ends=Finder(() if syntax.whole else (end for end in closing_tokens(syntax) if len(end) > 1)),
            known=known_fields(syntax, envelope),
        )
        # A list around one call is a list of one, where the syntax wants none.
        listed: list[Instruction] = [Maybe("["), Space()] if marked and not syntax.whole else []
        self.code.emit(Space(), MaybeFence(), Space(), *listed, read)

    def _skeleton(self) -> None:
        parts = self.syntax.function
        first, last = self.syntax.id_parts or (-1, -1)
        for i, part in enumerate(parts[: last_slot(parts) + 1]):
            if i == first:
                self.code.emit(Space(), MarkId())
            self._part(parts, i, part)
            if i + 1 == last:
                self.code.emit(EndId())

    def _part(self, parts: tuple[Part, ...], i: int, part: Part) -> None:
        stops = Finder(self._following(parts, i))
        if part is Slot.NAME:
            again = Slot.NAME in parts[:i]
            if i == 0 or text_of(parts[i - 1])[-1:].isspace():
                self.code.emit(Space())
            self.code.emit(RepeatName() if again else ReadName(stops))
        elif part is Slot.ARGUMENTS:
            waits = Slot.ID in parts[i:]
            self.code.emit(*self._before_arguments(), *self._assure_arguments(), Commit(self.tail, waits))
            ArgumentCode(self.code, self.syntax, self.ends).compile()
        elif part is Slot.ANY:
            self.code.emit(*self._space_around(parts, i), SkipWords(stops))
        elif isinstance(part, Slot):
            self.code.emit(Space(), ReadWord(part, stops))
        elif self._may_be_missing(parts, i, part):
            self.code.emit(Space(), Maybe(part.strip()))
        else:
            self.code.emit(*literal_code(self.syntax, part))

    def _may_be_missing(self, parts: tuple[Part, ...], i: int, literal: str) -> bool:
        """Return whether a word before the name, as in `functions.`, may be left out: another marker shows the call."""
        opened = self.syntax.section_start.strip() or self.syntax.call_start.strip()
        return i == 0 and bool(opened) and parts[1:2] == (Slot.NAME,) and bool(_WORD_PREFIX.fullmatch(literal.strip()))

    def _space_around(self, parts: tuple[Part, ...], i: int) -> list[Instruction]:
        """White space before words that say nothing, where the texts beside them have some: it may hold line breaks."""
        before = text_of(parts[i - 1])[-1:] if i else ""
        after = text_of(parts[i + 1])[:1] if i + 1 < len(parts) else ""
        return [Space()] if before.isspace() or after.isspace() else []

    def _following(self, parts: tuple[Part, ...], i: int) -> list[str]:
        """What may be after the slot at `i`; words that say nothing and arguments may be left out."""
        arguments = self.syntax.arguments
        found: list[str] = []
        for part in parts[i + 1 :]:
            if part is Slot.ARGUMENTS:
                texts = (arguments.start, *map(text_of, arguments.entry[:1]), arguments.when_empty or "")
                found += [token for text in texts for token in tokens(text)[:1]]
            elif part is not Slot.ANY:
                found += tokens(text_of(part))[:1]
            left_out = part is Slot.ARGUMENTS and (arguments.entry or arguments.when_empty == "")
            if isinstance(part, Slot) and part is not Slot.ANY and not left_out:
                return found
            if text_of(part).strip():
                return found
        return [*found, *what_follows_arguments(self.syntax), *tokens(self.syntax.separator)[:1]]

    def _before_arguments(self) -> list[Instruction]:
        arguments = self.syntax.arguments
        return [Space()] if arguments.entry or arguments.start.strip() else before_object()

    def _assure_arguments(self) -> list[Instruction]:
        """Without a marker, a tool's name is a call only where arguments follow it."""
        arguments = self.syntax.arguments
        return [] if self.marked or arguments.entry else [Ahead("".join(tokens(arguments.start)[:1]) or "{")]

    # After a call.

    def _tail(self, call: int) -> None:
        syntax = self.syntax
        text = syntax.call_start if syntax.call_start.strip() else text_of(syntax.function[0])
        split = self.split
        if split(text)[:1] and split(text)[0] in closing_tokens(syntax):
            split = unsplit  # spaced-markers.jinja: `[Tool Call]` and `[Tool Call End]` begin with the same word.
        closers = tuple(call_closers(syntax, split))
        section = tuple(markers(split(syntax.section_end)))
        opener = "{" if syntax.envelope and not syntax.call_start.strip() else (split(text) or [""])[0]
        # If this is not another call, go on in the text: the hub may find another marker here.
        tried = self.code.emit(Attempt((call,), self.hub, reported=False))
        separator = syntax.separator.strip()
        # Without section or separator, calls that must be whole and have a marker are looked for in the text, one by one.
        chained = bool(separator or section or not syntax.whole or not self.marked)
        named = syntax.function[:1] == (Slot.NAME,)
        openers = {opener: (call, tried)} if chained and (opener or separator or named) else {}
        ends = syntax.section_end or syntax.call_end or text_of(syntax.function[-1])
        excess = frozenset("}]" if syntax.envelope and not syntax.whole else "")
        # The opener is searched for even if no call may follow, so that it is not taken for a closer that it begins with.
        marks = Finder([*closers, *section, opener, separator, BACKQUOTES, *excess])
        after = ends[len(ends.rstrip()) :]
        optional = self.ends & {*closers, *section}
        self.code.put(
            self.tail, Tail(closers, section, FrozenDict(openers), optional, excess, separator, after, marks, self.hub)
        )
