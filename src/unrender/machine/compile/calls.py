"""Compiles one call syntax into straight-line code: how a run of calls is entered, read and left.

Rules: white space in and between literals is flexible; beside raw values it is taken only as far as the format writes it.
Markdown fences are optional wherever a JSON value begins. A call counts from its first argument on (`Commit`): before
that, a failure leaves everything content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from unrender.format import Arguments, CallSyntax, Containers, Envelope, Part, Slot
from unrender.format.parts import text_of
from unrender.freezing import FrozenDict
from unrender.grammar import follow
from unrender.grammar.assemble import PROSE_WORD, is_distinctive, shows_call, splitter, tokens
from unrender.machine.arguments import (
    BeginCall,
    CloseTag,
    Commit,
    DropEmpty,
    Entries,
    JsonArguments,
    MarkId,
    NoArguments,
    ReadKey,
    Value,
    literal_style,
)
from unrender.machine.compile import Code
from unrender.machine.compile.literals import (
    around_calls,
    before_object,
    doubts_of,
    ends_apart,
    literal_code,
    pieces_of,
    unsplit,
    with_commas,
)
from unrender.machine.envelope import ReadEnvelope, known_fields
from unrender.machine.instructions import (
    BACKQUOTES,
    Attempt,
    Jump,
    Lit,
    Look,
    MaybeFence,
    Named,
    Space,
)
from unrender.machine.interpreter import Instruction
from unrender.machine.names import Echo, ReadName, ReadWord, SkipWords
from unrender.machine.tail import Tail
from unrender.nodes import Calls
from unrender.values.doubts import Doubts
from unrender.values.finder import Finder
from unrender.values.marked_ends import MarkedEnds, Markers, torn_head
from unrender.values.notations import notation_of
from unrender.values.raw import TagStyle
from unrender.values.scanner import LiteralStyle
from unrender.values.unmarked_ends import Follow

_BRACKETS = re.compile(r"[\[({]+")
_WORD_PREFIX = re.compile(r"\w+[.:/]")
_TAG_HEAD = re.compile(r"[^\s<>/][^<>]*$")
_TAG_ENDS = (">", '">', "'>")


@dataclass(frozen=True, slots=True)
class CallEntry:
    """A place where a run of calls may begin: the marker that shows it, and the address of its code."""

    opener: str
    lead: str
    target: int
    strong: bool
    """The marker is not something that prose contains: when no call follows, that is worth a report."""
    alone: bool = True
    """It shows a call by itself, without the name of a tool after it."""
    weak: bool = False
    """It is a bracket, which prose and code write as well."""


def empty_entries(
    code: Code, syntax: CallSyntax, target: int, ends: Finder, closers: int = 0, leads: tuple[str, ...] = ("",)
) -> Iterator[CallEntry]:
    """Emit the code of empty calls and empty sections, which say nothing, and yield its entries.

    `functools[]` shows one, and `[]` does not. `closers` close a call and a run of calls at `target`; with none, what is
    there is read whole.
    """
    split = splitter(syntax)
    for texts in _empty_blocks(syntax, whole=not closers):
        # A fence may be missing, so an empty block of fences alone is anything, and `Action:` with them a word.
        shown = "".join("".join(piece for text in texts for piece in follow.without_fences(split(text))).split())
        if is_distinctive(shown) and not PROSE_WORD.fullmatch(shown):
            opener = split(texts[0])[0]
            read = [instruction for text in texts for instruction in literal_code(syntax, text)]
            at = code.emit(*read, DropEmpty(closers, ends), Jump(target))
            yield from (CallEntry(opener, lead + _lead_of(texts[0]), at, strong=False) for lead in leads)


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

    def __init__(
        self, code: Code, calls: Calls, hub: int, ends: frozenset[str], trail: str, turn_ends: frozenset[str]
    ) -> None:
        self.code = code
        self.calls = calls
        self.ends, self.trail = ends, trail
        self.over: frozenset[str] = turn_ends
        self.turn_ends: Finder = Finder((*ends, *turn_ends))
        self.syntax: CallSyntax = with_commas(ends_apart(calls.syntax, ends))
        self.leads: tuple[str, ...] = calls.leads
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
        call = self.code.emit(*literal_code(syntax, syntax.call_start))
        function = self._function()
        bare = self.code.emit(Jump(call, loose=True))
        # `<call>` may be missing too: then what a call begins with, e.g. `<function=`, shows it.
        inner = self.code.emit(Jump(function, loose=True))
        section = self.code.emit(*literal_code(syntax, syntax.section_start), Jump(call))
        self._tail(call)
        # `<call>` without the `<calls>` around it begins a run as well, and then its end needs no `</calls>`.
        outer = bare if syntax.section_start.strip() else call
        levels = [(syntax.section_start, section), (syntax.call_start, outer), (self.head, inner)]
        others = [(text, self.code.emit(*literal_code(syntax, text), Jump(call))) for text in self.spellings]
        # In another syntax an empty block is what prose mentions.
        kept = self.calls.own or self.calls.cleans
        closers = len(follow.closing_tokens(syntax))
        empty = list(empty_entries(self.code, syntax, self.tail, self.turn_ends, closers, self.leads)) if kept else []
        # Without any marker, a call begins with its name: at the start of an answer, or of a line.
        if not self.marked:
            self.unmarked = (self.code.emit(Space(), Named(), Jump(call)),)
            breaks = [lead[at:] for lead in self.leads for at in range(len(lead)) if "\n" in lead[at:]]
            self.lines = {before + name: call for before in breaks for name in self.names}
        return [*self._entries([(text, at) for text, at in [*levels, *others] if text.strip()]), *empty]

    def _entries(self, levels: list[tuple[str, int]]) -> Iterator[CallEntry]:
        for i, (text, at) in enumerate(levels):
            opener = self.split(text)[0]
            # An inner opener counts by itself only where prose does not write it: `{` alone begins no call.
            distinctive = is_distinctive(opener)
            if i == 0 or distinctive:
                alone = shows_call(self.calls, 0 if text in self.spellings else i, text)
                leads = (lead + _lead_of(text) for lead in self.leads)
                yield from (
                    CallEntry(opener, lead, at, distinctive, alone, bool(_BRACKETS.fullmatch(opener))) for lead in leads
                )

    # One call.

    def _function(self) -> int:
        start = self.code.emit(BeginCall(self.syntax.whole))
        if self.syntax.envelope:
            self._envelope(self.syntax.envelope)
        else:
            self._skeleton()
        self.code.emit(Jump(self.tail))
        return start

    def _envelope(self, envelope: Envelope) -> None:
        syntax = self.syntax
        slots = [part for part in syntax.function if isinstance(part, Slot)]
        # With the id after the name, the arguments wait for it: a call starts with both.
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
            ends=Finder(() if syntax.whole else (end for end in follow.closing_tokens(syntax) if len(end) > 1)),
            shown=any("`" not in token for token in marked),
            known=known_fields(syntax, envelope),
            left_out=syntax.arguments.when_empty == "",
        )
        # A list around one call is a list of one, where the syntax wants none.
        listed: list[Instruction] = [Lit("[", optional=True), Space()] if marked and not syntax.whole else []
        self.code.emit(Space(), MaybeFence(), Space(), *listed, read)

    def _skeleton(self) -> None:
        parts = self.syntax.function
        first, last = self.syntax.id_parts or (-1, -1)
        for i, part in enumerate(parts[: follow.last_slot(parts) + 1]):
            if i == first:
                self.code.emit(Space(), MarkId())
            self._part(parts, i, part)
            if i + 1 == last:
                self.code.emit(MarkId(ends=True))

    def _part(self, parts: tuple[Part, ...], i: int, part: Part) -> None:
        stops = Finder([*follow.after_part(self.syntax, i), *(["/>"] if _is_tag_end(parts, i + 1) else [])])
        if part is Slot.NAME:
            again = Slot.NAME in parts[:i]
            if i == 0 or text_of(parts[i - 1])[-1:].isspace():
                self.code.emit(Space())
            self.code.emit(Echo(part) if again else ReadName(stops))
        elif part is Slot.ARGUMENTS:
            waits = Slot.ID in parts[i:]
            self.code.emit(*self._before_arguments(), *self._assure_arguments(), Commit(self.tail, starts=not waits))
            ArgumentCode(self.code, self.syntax, self.ends, self.trail).compile()
        elif part is Slot.ANY:
            self.code.emit(
                *self._space_around(parts, i),
                SkipWords(stops, Finder(filter(is_distinctive, around_calls(self.syntax)))),
            )
        elif isinstance(part, Slot):
            self.code.emit(Space(), ReadWord(part, stops))
        elif self._may_be_missing(parts, i, part):
            self.code.emit(Space(), Lit(part.strip(), optional=True))
        else:
            read = [*self._closed_tag(parts, i), *literal_code(self.syntax, part)]
            # "```get_weather": the word on this fence is the tool's name.
            named = read[-1:] == [MaybeFence()] and part[-1:] == "`" and parts[i + 1 : i + 2] == (Slot.NAME,)
            self.code.emit(*(read[:-1] if named else read), *([MaybeFence(worded=False)] if named else []))

    def _closed_tag(self, parts: tuple[Part, ...], i: int) -> list[Instruction]:
        """Return the code that reads a call without arguments in a tag that closes itself: `<invoke name="now"/>`."""
        if not _is_tag_end(parts, i):
            return []
        closers = follow.call_closers(self.syntax, self.split)
        # What closes the function is in the skeleton, what closes the call is around it.
        inside = len(follow.call_closers(replace(self.syntax, call_end=""), self.split))
        arguments = Finder(
            filter(None, ("{", self.syntax.arguments.start.strip(), *follow.after_part(self.syntax, i)[:1]))
        )
        return [CloseTag(text_of(parts[i]).strip()[:-1], self.tail, inside, inside >= len(closers), arguments)]

    def _may_be_missing(self, parts: tuple[Part, ...], i: int, literal: str) -> bool:
        """Return whether a word before the name, as in `functions.`, may be left out: another marker shows the call."""
        opened = self.syntax.section_start.strip() or self.syntax.call_start.strip()
        return i == 0 and bool(opened) and parts[1:2] == (Slot.NAME,) and bool(_WORD_PREFIX.fullmatch(literal.strip()))

    def _space_around(self, parts: tuple[Part, ...], i: int) -> list[Instruction]:
        """White space before words that say nothing, where the texts beside them have some: it may hold line breaks."""
        before = text_of(parts[i - 1])[-1:] if i else ""
        after = text_of(parts[i + 1])[:1] if i + 1 < len(parts) else ""
        return [Space()] if before.isspace() or after.isspace() else []

    def _before_arguments(self) -> list[Instruction]:
        arguments = self.syntax.arguments
        return [Space()] if arguments.entry or arguments.start.strip() else before_object()

    def _assure_arguments(self) -> list[Instruction]:
        """Without a marker, a tool's name is a call only where arguments follow it."""
        arguments = self.syntax.arguments
        return [] if self.marked or arguments.entry else [Look(Finder(("".join(tokens(arguments.start)[:1]) or "{",)))]

    # After a call.

    def _tail(self, call: int) -> None:
        syntax = self.syntax
        text = syntax.call_start if syntax.call_start.strip() else text_of(syntax.function[0])
        split = self.split
        if split(text)[:1] and split(text)[0] in follow.closing_tokens(syntax):
            split = unsplit  # spaced-markers.jinja: `[Tool Call]` and `[Tool Call End]` begin with the same word.
        closers = tuple(follow.call_closers(syntax, split))
        section = tuple(follow.without_fences(split(syntax.section_end)))
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
        # `name\n{…}` alone may be prose: what is around arguments in brackets shows a call by itself.
        unmarked = not self.marked and not syntax.arguments.entry
        told = FrozenDict(openers)
        broken = Finder(text for text in (*closers, *section, opener) if len(text) > 1)
        found = (closers, section, told, optional, excess, separator, after, marks)
        self.code.put(self.tail, Tail(*found, self.hub, self.turn_ends, broken, self._refused(), unmarked))

    def _refused(self) -> Finder:
        """Return what ends the text of a call that is content; nothing where no marker closes calls."""
        closing = list(filter(is_distinctive, follow.closing_tokens(self.syntax)))
        openers = (self.split(text)[:1] for text in (self.syntax.section_start, self.syntax.call_start, self.head))
        opening = [text for found in openers for text in found if is_distinctive(text)]
        return Finder(
            (*closing, *opening, BACKQUOTES, *self.over, *(self.trail + text for text in self.over)) if closing else ()
        )


def _is_tag_end(parts: tuple[Part, ...], i: int) -> bool:
    """Return whether the literal at `i` ends a tag that holds the name and stands before the arguments."""
    if i < 2 or (parts[i - 1 : i], parts[i + 1 : i + 2]) != ((Slot.NAME,), (Slot.ARGUMENTS,)):
        return False
    opened = text_of(parts[i - 2]).rpartition("<")[2]
    return _TAG_HEAD.match(opened) is not None and text_of(parts[i]).strip() in _TAG_ENDS


# The arguments of a call.


class ArgumentCode:
    """Compiles the arguments of `syntax` into `code`; `ends` are the texts that end a turn, after the layout `trail`."""

    def __init__(self, code: Code, syntax: CallSyntax, ends: frozenset[str], trail: str) -> None:
        self.code = code
        self.syntax = syntax
        self.arguments: Arguments = syntax.arguments
        self.ends, self.trail = ends, trail
        self.marked: MarkedEnds | None = None

    @cached_property
    def follow(self) -> Follow:
        """What ends a value without an end marker of its own."""
        return follow.open_ends(self.syntax, self.ends, self.trail)

    def compile(self) -> None:
        """Emit the code that reads all arguments, or the text written when there are none."""
        arguments, empty = self.arguments, self.arguments.when_empty
        first = arguments.start if arguments.start.strip() else "".join(map(text_of, arguments.entry[:1]))
        begins = tokens(first)[:1] or ([] if arguments.entry else ["{", '"'])
        # `f with a = 1;` and `f with ;`: only what follows the arguments shows that there are none, and each entry looks for it.
        if empty is None or not (empty.strip() or begins):
            self._read_arguments()
            return
        none = self.code.reserve()
        self._read_arguments()
        self.code.put(none, NoArguments(empty.strip(), Finder(begins), len(self.code)))

    def _read_arguments(self) -> None:
        if self.arguments.entry:
            self._read_entries()
        else:
            self._read_object()

    def _read_object(self) -> None:
        arguments = self.arguments
        # What counts only when it is whole is read as it is written, without tolerance.
        strict = self.syntax.whole and notation_of(arguments.codec).is_json
        opened = [*literal_code(self.syntax, arguments.start), *before_object()] if arguments.start.strip() else []
        read = JsonArguments(LiteralStyle(strict=strict, loose_keys=not strict))
        self.code.emit(*opened, read, *literal_code(self.syntax, arguments.end))

    def _read_entries(self) -> None:
        arguments = self.arguments
        self.code.emit(*literal_code(self.syntax, arguments.start))
        between = self.code.reserve()
        self.marked = self._marked_ends()
        entry = self._entry(between)
        done = self.code.emit(*literal_code(self.syntax, arguments.end))
        opener, ends = self._opener(), self.follow
        further = None if ends.closed or opener else ends
        separator, repeated = arguments.separator.strip(), self.marked.closers if self.marked else ()
        # Where an opener is also the closer, it is not doubled.
        doubled = frozenset(repeated) - {opener}
        marks = Finder([opener, *follow.after_entries(self.syntax), *repeated])
        open_ended = None if ends.closed else ends
        after_key = "".join(tokens(text_of(arguments.entry[arguments.entry.index(Slot.KEY) + 1]))[:1])
        found = (entry, done, opener, separator, marks, ends.closed, further, open_ended, doubled)
        self.code.put(between, Entries(*found, after_key, bool(arguments.end.strip())))

    def _opener(self) -> str:
        return (tokens(text_of(self.arguments.entry[0])) or [""])[0]

    def _marked_ends(self) -> MarkedEnds | None:
        """Return what finds the ends of raw values that have an end marker; None where values have none."""
        arguments, entry = self.arguments, self.arguments.entry
        i = entry.index(Slot.VALUE)
        suffix = text_of(entry[i + 1]) if i + 1 < len(entry) else ""
        unquoted = notation_of(arguments.codec).unquoted or arguments.codec.containers is Containers.XML
        if not suffix.strip() or not unquoted or self.arguments.open_ended:
            return None
        tags, core = _tags(arguments, i), suffix.strip()
        last = text_of(entry[-1]) if tags else suffix
        separated = bool(arguments.separator.strip())
        opener = pieces_of(entry[:i])
        head = text_of(entry[0])
        between = "" if separated else arguments.separator + head[: len(head) - len(head.lstrip())]
        function = self.syntax.function
        before_name = function[: function.index(Slot.NAME)]
        following = [*tokens(arguments.separator)[:1]] if separated else [self._opener()]
        return MarkedEnds(
            Markers(
                closers=(tags.close, tags.end) if tags else (core, *arguments.closers),
                named=tags is not None,
                lead=suffix[: suffix.index(core)],
                trail=last[len(last.rstrip()) :] + between,
                opener=opener,
                separator=arguments.separator if separated else "",
                followers=tuple(dict.fromkeys(filter(None, (*following, *follow.after_entries(self.syntax))))),
                call_end=pieces_of(
                    (arguments.end, *function[function.index(Slot.ARGUMENTS) + 1 :], self.syntax.call_end)
                ),
                section_end=tuple(tokens(self.syntax.section_end)),
                call_start=tuple(str(part) for part in pieces_of((self.syntax.call_start, *before_name))),
                turn_ends=tuple(sorted(self.ends)),
                escapes=tuple(form for _, form in arguments.codec.escapes),
                open_ended=not self.follow.closed or not any(following),
            )
        )

    def _entry(self, between: int) -> int:
        """Emit the code of one argument and return where it begins; after it, `between` goes on."""
        start = len(self.code)
        entry = self.arguments.entry
        raw = notation_of(self.arguments.codec).unquoted
        for i, part in enumerate(entry):
            if part is Slot.KEY:
                again = Slot.KEY in entry[:i]
                self.code.emit(Echo(part) if again else self._read_key(i))
            elif part is Slot.VALUE:
                self.code.emit(self._value(i, between))
            elif isinstance(part, Slot):
                words = tuple(word for _, word in self.arguments.codec.types) if part is Slot.TYPE else ()
                self.code.emit(ReadWord(part, _stops(entry, i), tuple(dict.fromkeys(words))))
            else:
                self.code.emit(*self._entry_literal(entry, i, part, raw))
        self.code.emit(Jump(between))
        return start

    def _read_key(self, i: int) -> ReadKey:
        syntax, entry = self.syntax, self.arguments.entry
        call = (syntax.section_start, syntax.call_start, *syntax.function, syntax.call_end, syntax.section_end)
        pieces = pieces_of((*call, self.arguments.start, *entry, self.arguments.end))
        markers = [piece for piece in pieces if not isinstance(piece, Slot) and is_distinctive(piece)]
        heads = tuple(dict.fromkeys(torn_head(marker) or marker for marker in markers))
        opener = "".join(tokens(text_of(entry[i - 1]))[-1:]) if i else ""
        named = self.marked.markers if self.marked and self.marked.markers.named else None
        closing = named.closers[0].removeprefix(text_of(entry[0]).strip()) if named else ""
        bare = isinstance(entry[0], Slot)
        heads = (*heads, named.closers[0]) if named else heads
        return ReadKey(_stops(entry, i), bare, opener if opener in markers else "", heads, closing)

    def _entry_literal(self, entry: tuple[Part, ...], i: int, text: str, raw: bool) -> list[Instruction]:
        """A literal of an argument; beside a raw value its white space is taken exactly."""
        core = text.strip()
        before = raw and entry[i + 1 : i + 2] == (Slot.VALUE,)
        # The closer of a raw value may be missing where the whole call is closed: `Rome</f></call>`.
        if raw and i > 0 and entry[i - 1] is Slot.VALUE:
            layout = Space(text[: len(text) - len(text.lstrip())])
            return [layout, Lit(core, self.arguments.closers, instead=follow.after_closer(self.syntax))]
        found: list[Instruction] = []
        others = self.arguments.closers if i > 0 and entry[i - 1] is Slot.VALUE else ()
        for token in [core] if others else tokens(core):
            found += [Space(), Lit(token, others)]
        if before:
            found.append(Space(text[len(text.rstrip()) :] if core else text))
        elif text[-1:].isspace() and entry[i + 1 : i + 2] != (Slot.VALUE,):
            found.append(Space())
        return found

    def _value(self, i: int, between: int) -> Value:
        arguments = self.arguments
        doubts = doubts_of(self.syntax, i, _tags(arguments, i))
        if self.arguments.open_ended:
            return _read_value(arguments, self.follow, doubts=doubts)
        return _read_value(
            arguments, Finder(follow.after_value(self.syntax)), _tags(arguments, i), self.marked, between, doubts
        )


def _stops(entry: tuple[Part, ...], i: int) -> Finder:
    following = next((part for part in entry[i + 1 :] if not isinstance(part, Slot)), "")
    return Finder(tokens(following)[:1] or (" ", "\n"))


def _read_value(
    arguments: Arguments,
    suffix: Finder | Follow,
    tags: TagStyle | None = None,
    ends: MarkedEnds | None = None,
    between: int = 0,
    doubts: Doubts | None = None,
) -> Value:
    codec = arguments.codec
    style = literal_style(codec, suffix, in_code=arguments.in_code and arguments.end.strip() == ")")
    return Value(codec, suffix, style, tags, ends, between, doubts)


def _tags(arguments: Arguments, i: int) -> TagStyle | None:
    """Return how the tags are written when the argument's name is the tag's: `<city>…</city>`."""
    entry = arguments.entry
    # `"Rome"` ends at its quotation mark, whatever tag is around it.
    by_itself = not arguments.codec.strings.unquoted and arguments.codec.containers is not Containers.XML
    # Of `a=1/a, b=2/b` the name ends the argument, and nothing closes a tag.
    if Slot.KEY not in entry[i + 1 : -1] or by_itself:
        return None
    again = entry.index(Slot.KEY, i + 1)
    opens = text_of(entry[0]).strip()
    before = text_of(entry[again - 1])
    closes = before.strip()
    return TagStyle(
        opens,
        closes,
        text_of(entry[again + 1]).strip(),
        arguments.codec.item_tag,
        space=before[: before.index(closes)] if not arguments.codec.item_tag else "",
        escapes=arguments.codec.escapes,
    )
