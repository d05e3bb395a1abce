"""Compiles one call syntax into straight-line code: the start of a run of calls, the calls, and the end of the run.

Rules: whitespace inside and between literals is flexible. Next to raw values, only the format's own whitespace is consumed. Markdown fences
are optional before JSON values. A call is committed at its first argument (`Commit`). If parsing fails earlier, the text is content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from unrender.answer.follow import after_closer, after_entries, after_part, after_value, first_pieces, open_ends
from unrender.answer.literals import is_distinctive, is_sign, tokens, without_fences
from unrender.answer.nodes import Answer, ArgumentsPart, Calls, Element, Elements, Marker, literal_of
from unrender.format import Containers, Envelope, Slot
from unrender.json_values import FrozenDict
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
    ReadValue,
    literal_style,
)
from unrender.machine.compile import Code
from unrender.machine.envelope import ReadEnvelope, known_fields
from unrender.machine.instructions import (
    BACKQUOTES,
    Attempt,
    Fence,
    Jump,
    Lit,
    Look,
    Space,
)
from unrender.machine.interpreter import Instruction
from unrender.machine.names import ReadName, ReadWord, SkipWords
from unrender.machine.repair import Damaged
from unrender.machine.repair.markers import Repair, repairs
from unrender.machine.tail import Tail
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
    """A marker at which a run of calls may start, and the address of the code after the marker."""

    opener: str
    lead: str
    target: int
    strong: bool
    """True if the marker doesn't occur in prose. Such a marker is reported if no call follows."""
    alone: bool = True
    """True if the marker identifies a call without a tool name."""
    weak: bool = False
    """True if the marker is a bracket, which also occurs in prose and code."""
    damaged: int = -1
    """Address of the code that parses a damaged call after this marker. -1 if repairs are disabled."""


def empty_entries(
    code: Code, calls: Calls, target: int, ends: Finder, leads: tuple[str, ...] = ("",)
) -> Iterator[CallEntry]:
    """Emit the code that drops empty calls and empty sections. Yield the entry points of this code.

    `functools[]` counts as an empty section, but `[]` doesn't. Unless calls are forbidden, the end markers are left to the code at
    `target`.
    """
    for markers in _empty_blocks(calls):
        # Skip ambiguous blocks. For example, a block that consists only of fences matches any text, because fences are optional. A block of
        # fences and `Action:` is also ambiguous, because it may match a single word.
        if is_sign("".join(piece for marker in markers for piece in without_fences(marker.pieces))):
            closers = 0 if calls.forbidden else len(calls.all_closers)
            at = code.emit(*literal_code(calls, *markers), DropEmpty(closers, ends), Jump(target))
            first = markers[0]
            yield from (CallEntry(first.pieces[0], lead + first.lead, at, strong=False) for lead in leads)


def _empty_blocks(calls: Calls) -> list[tuple[Marker, ...]]:
    """Return the markers of empty calls and empty sections, in the order in which they are tried."""
    section, call = (calls.open, calls.close), (calls.call_open, calls.call_close)
    single = [call] if all(call) else []
    around = [(calls.open, *call, *([calls.close] if calls.forbidden else [])) for call in single]
    return [*single, *((section, *around) if all(section) else ())]


class CallCode:
    """Compiles one run of calls of `answer` into `code`. After the run, execution continues at `hub`."""

    def __init__(self, code: Code, calls: Calls, hub: int, answer: Answer) -> None:
        self.code = code
        self.calls: Calls = calls.with_commas
        self.arguments: ArgumentsPart = self.calls.arguments
        self.hub = hub
        self.over: list[str] = [marker.core for marker in answer.ends]
        self.ends: frozenset[str] = frozenset((*self.over, *(marker.core for marker in answer.dropped)))
        """Markers that end a turn, or that have no meaning."""
        self.trail: str = answer.trail
        self.marked: bool = any((calls.open, calls.call_open, calls.head))
        self.unmarked: tuple[int, ...] = ()
        """Addresses of the code for calls without markers, which are tried at the start of an answer."""
        self.lines: dict[str, int] = {}
        """Addresses of the code for calls that start a line after content. Each key is a line break followed by a tool name."""
        self.values: MarkedEnds | None = None
        """Finder for the ends of raw values that have end markers."""
        self.tail: int = code.reserve()
        codec = self.arguments.codec
        self.repair: Repair | None = repairs(
            self.calls,
            literal_style(codec, Finder(after_value(self.calls))) if self.arguments.entry else LiteralStyle(),
        )

    @cached_property
    def follow(self) -> Follow:
        """Finder for the end of a value that has no end marker of its own."""
        return open_ends(self.calls, self.ends, self.trail)

    def compile(self) -> list[CallEntry]:
        """Emit the code for calls, sections and the text after them. Return the entry points, outermost first."""
        calls, emit = self.calls, self.code.emit
        call = emit(*literal_code(calls, calls.call_open))
        function = self._function()
        bare = emit(Jump(call, loose=True))
        # If both `<calls>` and `<call>` are missing, a later marker such as `<function=` identifies the call.
        inner = emit(Jump(function, loose=True))
        section = emit(*literal_code(calls, calls.open), Jump(call))
        self._tail(call)
        self.damaged: int = emit(Damaged(self.repair, self.tail)) if self.repair else -1
        # If `<calls>` is missing, `<call>` starts a run of calls too. Such a run needs no `</calls>`.
        levels = [(calls.open, section), (calls.call_open, bare if calls.open else call), (calls.head, inner)]
        ways = [*((it, call) for it in calls.open.others), *((it, function) for it in calls.call_open.others)]
        others = [(marker, emit(*literal_code(calls, marker), Jump(at))) for marker, at in ways]
        # Ignore empty blocks in another format's syntax, because they are usually mentioned in prose.
        kept = calls.own or calls.cleans
        empty = list(empty_entries(self.code, calls, self.tail, Finder(self.ends), calls.leads)) if kept else []
        # A call without markers starts with its name, at the start of an answer or a line.
        if not self.marked:
            self.unmarked = (emit(Space(), Look(named=True), Jump(call)),)
            breaks = [lead[at:] for lead in calls.leads for at in range(len(lead)) if "\n" in lead[at:]]
            names = [tool.name for tool in calls.tools or ()] if calls.on_lines else []
            self.lines = {before + name: call for before in breaks for name in names}
        return [*self._entries([(marker, at) for marker, at in [*levels, *others] if marker]), *empty]

    def _entries(self, levels: list[tuple[Marker, int]]) -> Iterator[CallEntry]:
        for i, (marker, at) in enumerate(levels):
            opener = marker.pieces[0]
            # An inner start marker counts only if it doesn't occur in prose. For example, `{` alone doesn't start a call.
            distinctive = is_distinctive(opener)
            if i == 0 or distinctive:
                outermost = i == 0 or marker in (self.calls.open or self.calls.call_open).others
                alone = self.calls.shows(opener, outermost=outermost)
                weak = bool(_BRACKETS.fullmatch(opener))
                damaged = self.damaged if distinctive else -1
                for lead in (lead + marker.lead for lead in self.calls.leads):
                    yield CallEntry(opener, lead, at, distinctive, alone, weak, damaged)
        if self.repair and (spelled := self.repair.other_opener) and self.damaged >= 0:
            yield from (CallEntry(spelled, lead, self.damaged, strong=False) for lead in self.calls.leads)

    def _function(self) -> int:
        calls = self.calls
        sibling = BeginCall(hub=self.hub, section=calls.open.text.strip())
        start = self.code.emit(sibling if calls.sibling else BeginCall(calls.whole, calls.checked))
        if self.calls.envelope:
            self._envelope(self.calls.envelope)
        else:
            self._skeleton()
        self.code.emit(Jump(self.tail))
        return start

    def _envelope(self, envelope: Envelope) -> None:
        calls = self.calls
        slots = [part for part in calls.function if isinstance(part, Slot)]
        # If the id follows the name, arguments are buffered and the call starts once both the name and id are known.
        order = [slot for slot in slots if slot in (Slot.NAME, Slot.ID)]
        marked = [piece for piece in (*calls.open.pieces, *calls.call_open.pieces) if len(piece) > 1]
        read = ReadEnvelope(
            fields=envelope,
            recover=self.tail,
            bare=not marked,
            arguments_first=Slot.ARGUMENTS in slots[: slots.index(Slot.NAME)],
            waits=order == [Slot.NAME, Slot.ID],
            strict=calls.whole,
            ends=Finder(() if calls.whole else (end for end in calls.all_closers if len(end) > 1)),
            shown=any("`" not in piece for piece in marked),
            known=known_fields(map(literal_of, calls.function), envelope),
            left_out=calls.arguments.empty == "",
        )
        # Accept a list with one call, even if the syntax expects a single call.
        listed: list[Instruction] = [Lit("[", optional=True), Space()] if marked and not calls.whole else []
        self.code.emit(*before_object(), *listed, read)

    def _skeleton(self) -> None:
        parts = self.calls.function
        first, last = self.calls.id_parts or (-1, -1)
        for i, part in enumerate(parts[: self.calls.last_slot + 1]):
            if i == first:
                self.code.emit(Space(), MarkId())
            self._part(parts, i, part)
            if i + 1 == last:
                self.code.emit(MarkId(ends=True))

    def _part(self, parts: Elements, i: int, part: Element) -> None:
        stops = Finder([*after_part(self.calls, i), *(["/>"] if _is_tag_end(parts, i + 1) else [])])
        if part is Slot.NAME:
            again = Slot.NAME in parts[:i]
            if i == 0 or literal_of(parts[i - 1])[-1:].isspace():
                self.code.emit(Space())
            self.code.emit(Lit("", slot=part) if again else ReadName(stops))
        elif part is Slot.ARGUMENTS:
            waits = Slot.ID in parts[i:]
            self.code.emit(*self._before_arguments(), Commit(self.tail, starts=not waits))
            self._arguments()
        elif part is Slot.ANY:
            around = (self.calls.open, self.calls.call_open, self.calls.call_close, self.calls.close)
            known = (piece for marker in around for piece in marker.pieces if is_distinctive(piece))
            self.code.emit(*self._space_around(parts, i), SkipWords(stops, Finder(known)))
        elif isinstance(part, Slot):
            self.code.emit(Space(), ReadWord(part, stops))
        elif self._may_be_missing(parts, i, part):
            self.code.emit(Space(), Lit(part.core, optional=True))
        else:
            read = [*self._closed_tag(parts, i, part), *literal_code(self.calls, part)]
            # The word after the fence is the tool name, as in "```get_weather".
            named = read[-1:] == [Fence()] and part.text[-1:] == "`" and parts[i + 1 : i + 2] == (Slot.NAME,)
            self.code.emit(*(read[:-1] if named else read), *([Fence(worded=False)] if named else []))

    def _closed_tag(self, parts: Elements, i: int, part: Marker) -> list[Instruction]:
        """Return the code for a self-closing tag of a call without arguments, as in `<invoke name="now"/>`."""
        if not _is_tag_end(parts, i):
            return []
        # The tag replaces the end markers of the function, but not those of the call around it.
        closers, around = len(self.calls.closers), len(without_fences(self.calls.call_close.pieces))
        following = ("{", self.arguments.open.core, *after_part(self.calls, i)[:1])
        return [CloseTag(part.core[:-1], self.tail, closers - around, not around, Finder(filter(None, following)))]

    def _may_be_missing(self, parts: Elements, i: int, literal: Marker) -> bool:
        """Return whether a prefix of the name, such as `functions.`, is optional because another marker identifies the call."""
        opened = self.calls.open or self.calls.call_open
        return i == 0 and bool(opened) and parts[1:2] == (Slot.NAME,) and bool(_WORD_PREFIX.fullmatch(literal.core))

    def _space_around(self, parts: Elements, i: int) -> list[Instruction]:
        """Return the code for whitespace, including line breaks, around meaningless words. Return no code if the surrounding text has no
        whitespace.
        """
        before = literal_of(parts[i - 1])[-1:] if i else ""
        after = literal_of(parts[i + 1])[:1] if i + 1 < len(parts) else ""
        return [Space()] if before.isspace() or after.isspace() else []

    def _before_arguments(self) -> list[Instruction]:
        arguments = self.arguments
        read: list[Instruction] = [Space()] if arguments.entry or arguments.open else before_object()
        # Without markers, a tool name starts a call only if arguments follow.
        sure = [] if self.marked or arguments.entry else [Look(Finder(arguments.open.pieces[:1] or ("{",)))]
        return [*read, *sure]

    # The end of a call.

    def _tail(self, call: int) -> None:
        calls = self.calls
        marker = calls.call_open or calls.head
        opener, *_ = marker.pieces or ("",)
        closers, section = tuple(calls.closers), tuple(without_fences(calls.close.pieces))
        if opener and opener in calls.all_closers:
            # Don't split markers that share a word into pieces. For example, `[Tool Call]` and `[Tool Call End]` start with the same word.
            closers = tuple(without_fences(it.core for it in calls.closing if it))
            opener, section = marker.core, tuple(without_fences(it.core for it in (calls.close,) if it))
        # If no other call follows, continue in the free text, which may contain other markers.
        tried = self.code.emit(Attempt((call,), self.hub, reported=False))
        separator = calls.separator.core
        # Complete calls with a marker, but without a section or separator, are found one by one in the free text.
        chained = bool(separator or section or not calls.whole or calls.sibling or not self.marked)
        named = calls.function[:1] == (Slot.NAME,)
        openers = {opener: (call, tried)} if chained and (opener or separator or named) else {}
        ends = calls.close.text or calls.call_close.text or literal_of(calls.function[-1])
        bracketed = not self.arguments.entry or self.arguments.close.core[-1:] in tuple(")}]")
        excess = frozenset("}]" if bracketed and not calls.whole else "")
        # Search for the start marker even if no call may follow. Otherwise, a part of the start marker might match as an end marker.
        marks = Finder([*closers, *section, opener, separator, BACKQUOTES, *excess])
        after = ends[len(ends.rstrip()) :]
        optional = self.ends & {*closers, *section}
        # Without markers, text such as `name\n{…}` may be prose. Only arguments in brackets show that the text is a call.
        unmarked = not self.marked and not calls.arguments.entry
        told = FrozenDict(openers)
        broken = Finder(text for text in (*closers, *section, opener) if len(text) > 1)
        found = (closers, section, told, optional, excess, separator, after, marks)
        self.code.put(
            self.tail, Tail(*found, self.hub, Finder(self.ends), broken, self._refused(), unmarked, self.repair)
        )

    def _refused(self) -> Finder:
        """Return a finder for the markers at which a call's text ends if that text is content. The finder is empty if calls have no end
        markers.
        """
        calls = self.calls
        closing = list(filter(is_distinctive, calls.all_closers))
        heads = (piece for marker in (calls.open, calls.call_open, calls.head) for piece in marker.pieces[:1])
        ends = (*self.over, *(self.trail + text for text in self.over))
        return Finder((*closing, *filter(is_distinctive, heads), BACKQUOTES, *ends) if closing else ())

    # The arguments of a call.

    def _arguments(self) -> None:
        """Emit the code for all arguments, including empty ones."""
        arguments, empty = self.arguments, self.arguments.empty
        first = arguments.open.pieces if arguments.open else first_pieces(*arguments.entry[:1])
        begins = [*first[:1]] or ([] if arguments.entry else ["{", '"'])
        # In `f with a = 1;` and `f with ;`, only the text after `with` shows whether there are any arguments.
        none = self.code.reserve() if empty is not None and (empty.strip() or begins) else -1
        if arguments.entry:
            self._read_entries()
        else:
            self._read_object()
        if empty is not None and none >= 0:
            self.code.put(none, NoArguments(empty.strip(), Finder(begins), len(self.code)))

    def _read_object(self) -> None:
        arguments = self.arguments
        # Parse calls strictly if they must be complete.
        strict = self.calls.whole and notation_of(arguments.codec).is_json
        opened = [*literal_code(self.calls, arguments.open), *before_object()] if arguments.open else []
        read = JsonArguments(LiteralStyle(strict=strict, loose_keys=not strict))
        self.code.emit(*opened, read, *literal_code(self.calls, arguments.close))

    def _read_entries(self) -> None:
        arguments, entry = self.arguments, self.arguments.entry
        self.code.emit(*literal_code(self.calls, arguments.open))
        between = self.code.reserve()
        self.values = self._marked_ends()
        begun = self._entry(between)
        done = self.code.emit(*literal_code(self.calls, arguments.close))
        opener, ends = "".join(first_pieces(entry[0])), self.follow
        further = None if ends.closed or opener else ends
        repeated = self.values.closers if self.values else ()
        # A marker that both starts an argument and ends a value isn't a repeated end marker.
        doubled = frozenset(repeated) - {opener}
        marks = Finder([opener, *after_entries(self.calls), *repeated])
        open_ended = None if ends.closed else ends
        after_key = "".join(first_pieces(entry[entry.index(Slot.KEY) + 1]))
        found = (begun, done, opener, arguments.separator.core, marks, ends.closed, further, open_ended, doubled)
        self.code.put(between, Entries(*found, after_key, bool(arguments.close.core)))

    def _marked_ends(self) -> MarkedEnds | None:
        """Return the finder for the end markers of raw values. Return None if raw values have no end markers."""
        calls, arguments, entry, closer = self.calls, self.arguments, self.arguments.entry, self.arguments.closer
        i = entry.index(Slot.VALUE)
        unquoted = notation_of(arguments.codec).unquoted or arguments.codec.containers is Containers.XML
        if not closer or not unquoted or arguments.open_ended:
            return None
        tags, separator, function = _tags(arguments, i), arguments.separator, calls.function
        last = literal_of(entry[-1]) if tags else closer.text
        head = literal_of(entry[0])
        between = "" if separator else separator.text + head[: len(head) - len(head.lstrip())]
        following = separator.pieces[:1] if separator else first_pieces(entry[0])
        return MarkedEnds(
            Markers(
                closers=(tags.close, tags.end) if tags else tuple(it.core for it in closer.spelled),
                named=tags is not None,
                lead=closer.lead,
                trail=last[len(last.rstrip()) :] + between,
                opener=pieces_of(entry[:i]),
                separator=separator.text if separator else "",
                followers=tuple(dict.fromkeys((*following, *after_entries(calls)))),
                call_close=pieces_of(
                    (arguments.close, *function[function.index(Slot.ARGUMENTS) + 1 :], calls.call_close)
                ),
                section_end=calls.close.pieces,
                call_open=tuple(map(str, pieces_of((calls.call_open, *function[: function.index(Slot.NAME)])))),
                turn_ends=tuple(sorted(self.ends)),
                escapes=tuple(form for _, form in arguments.codec.escapes),
                open_ended=not self.follow.closed or not following,
            )
        )

    def _entry(self, between: int) -> int:
        """Emit the code for one argument, and return the address of the code. After the argument, execution continues at `between`."""
        start = len(self.code)
        entry = self.arguments.entry
        raw = notation_of(self.arguments.codec).unquoted
        for i, part in enumerate(entry):
            if part is Slot.KEY:
                again = Slot.KEY in entry[:i]
                self.code.emit(Lit("", slot=part) if again else self._read_key(i))
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
        calls, arguments, entry = self.calls, self.arguments, self.arguments.entry
        call = (calls.open, calls.call_open, *calls.function, calls.call_close, calls.close)
        pieces = pieces_of((*call, arguments.open, *entry, arguments.close))
        markers = [piece for piece in pieces if not isinstance(piece, Slot) and is_distinctive(piece)]
        heads = tuple(dict.fromkeys(torn_head(marker) or marker for marker in markers))
        opener = "".join(tokens(literal_of(entry[i - 1]))[-1:]) if i else ""
        named = self.values.markers if self.values and self.values.markers.named else None
        closing = named.closers[0].removeprefix(literal_of(entry[0]).strip()) if named else ""
        bare = isinstance(entry[0], Slot)
        heads = (*heads, named.closers[0]) if named else heads
        return ReadKey(_stops(entry, i), bare, opener if opener in markers else "", heads, closing)

    def _entry_literal(self, entry: Elements, i: int, part: Marker, raw: bool) -> list[Instruction]:
        """Return the code for a marker of an argument. Next to a raw value, the whitespace of the marker must match exactly."""
        # Allow a missing end marker of a raw value at the end of the call, as in `Rome</f></call>`.
        others = tuple(it.core for it in part.others)
        if raw and i > 0 and entry[i - 1] is Slot.VALUE:
            return [Space(part.lead), Lit(part.core, others=others, instead=after_closer(self.calls))]
        found: list[Instruction] = []
        for piece in [part.core] if others else part.pieces:
            found += [Space(), Lit(piece, others=others)]
        before_value = entry[i + 1 : i + 2] == (Slot.VALUE,)
        if raw and before_value:
            found.append(Space(part.after if part else part.text))
        elif part.text[-1:].isspace() and not before_value:
            found.append(Space())
        return found

    def _value(self, i: int, between: int) -> ReadValue:
        arguments, codec, tags = self.arguments, self.arguments.codec, _tags(self.arguments, i)
        suffix = self.follow if arguments.open_ended else Finder(after_value(self.calls))
        style = literal_style(codec, suffix, in_code=arguments.in_code and arguments.close.core == ")")
        return ReadValue(codec, suffix, style, tags, self.values, between, doubts_of(self.calls, i, tags))


def _is_tag_end(parts: Elements, i: int) -> bool:
    """Return whether the literal at `i` ends a tag that contains the tool name and precedes the arguments."""
    if i < 2 or (parts[i - 1 : i], parts[i + 1 : i + 2]) != ((Slot.NAME,), (Slot.ARGUMENTS,)):
        return False
    opened = literal_of(parts[i - 2]).rpartition("<")[2]
    return _TAG_HEAD.match(opened) is not None and literal_of(parts[i]).strip() in _TAG_ENDS


def _stops(entry: Elements, i: int) -> Finder:
    following = next((part.pieces for part in entry[i + 1 :] if isinstance(part, Marker)), ())
    return Finder(following[:1] or (" ", "\n"))


def _tags(arguments: ArgumentsPart, i: int) -> TagStyle | None:
    """Return the style of tags that are named after the argument, as in `<city>…</city>`. Return None if the syntax has no such tags."""
    entry = arguments.entry
    # A quoted value such as `"Rome"` ends at its quotation mark, so it needs no closing tag.
    by_itself = not arguments.codec.strings.unquoted and arguments.codec.containers is not Containers.XML
    # The repeated name must be inside a closing tag. In `a=1/a, b=2/b`, the name ends the argument.
    if Slot.KEY not in entry[i + 1 : -1] or by_itself:
        return None
    again = entry.index(Slot.KEY, i + 1)
    opens = literal_of(entry[0]).strip()
    before = literal_of(entry[again - 1])
    closes = before.strip()
    return TagStyle(
        opens,
        closes,
        literal_of(entry[again + 1]).strip(),
        arguments.codec.item_tag,
        space=before[: before.index(closes)] if not arguments.codec.item_tag else "",
        escapes=arguments.codec.escapes,
    )


def pieces_of(parts: Iterable[Element]) -> tuple[str | Slot, ...]:
    """Return the elements with each marker split into its pieces, and slots unchanged."""
    return tuple(piece for part in parts for piece in (part.pieces if isinstance(part, Marker) else (part,)))


def literal_code(calls: Calls, *markers: Marker) -> list[Instruction]:
    """Return the code for the given markers of `calls`."""
    found: list[Instruction] = []
    # The brackets of a list are optional if the list contains a single call.
    unlisted = calls.envelope is not None and not calls.whole
    for piece in (piece for marker in markers for piece in marker.pieces):
        fenced = not without_fences([piece])
        found += [Space(), Fence() if fenced else Lit(piece, optional=unlisted and piece == "[")]
    return found


def before_object() -> list[Instruction]:
    """Return the code for optional whitespace and a Markdown fence before a JSON object."""
    return [Space(), Fence(), Space()]


def doubts_of(calls: Calls, i: int, tags: TagStyle | None) -> Doubts | None:
    """Return the strings that values at slot `i` of an argument can't contain. Return None if the values have their own delimiters."""
    arguments, codec, entry = calls.arguments, calls.arguments.codec, calls.arguments.entry
    notation = notation_of(codec)
    if not notation.unquoted and not notation.verbatim and codec.containers is not Containers.XML:
        return None
    before = literal_of(entry[i - 1]) if i else ""
    call = "".join(tokens(calls.call_open.text)[:1] or tokens(literal_of(calls.function[0]))[:1])
    return Doubts.of(
        literal_of(entry[0]),
        before,
        tags.close if tags else arguments.closer.text,
        call if is_distinctive(call) else "",
        cdata=codec.cdata,
        nested=tags is not None and bool(tags.item),
        between=arguments.separator.text if arguments.in_code else "",
        equals=before + codec.string_open,
    )
