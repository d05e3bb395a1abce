"""Compile one call syntax into straight-line code: how a run of calls is entered, read and left.

Rules: white space in and between literals is flexible; beside raw values it is taken only as far as the format writes it.
Markdown fences are optional wherever a JSON value begins. A call counts from its first argument on (`Commit`): before
that, a failure leaves everything content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from unrender.format import Arguments, Containers, Part, Slot, Tools
from unrender.grammar.nodes import Calls
from unrender.grammar.notations import notation_of
from unrender.parsing.arguments import (
    CloseArguments,
    CloseValue,
    DropEmpty,
    Entries,
    JsonArguments,
    NoArguments,
    Value,
    literal_style,
)
from unrender.parsing.code import Code
from unrender.parsing.envelope import ReadEnvelope
from unrender.parsing.finder import Finder
from unrender.parsing.follow import Follow
from unrender.parsing.instructions import Ahead, Attempt, Hold, Jump, Lit, Loosen, Maybe, MaybeFence, Named, Soft, Space
from unrender.parsing.machine import Instruction
from unrender.parsing.slots import (
    BeginCall,
    Commit,
    EndId,
    MarkId,
    ReadKey,
    ReadName,
    ReadWord,
    RepeatKey,
    RepeatName,
    SkipWords,
)
from unrender.parsing.tail import FENCE, Tail
from unrender.parsing.values import LiteralStyle
from unrender.parsing.xml import TagStyle

_FENCED = re.compile(r"```\w*")
_FENCE_EDGE = re.compile(r"(```\w*)")
_JSON_TAIL = re.compile(r'\s*[\[{](?:\s*(?:[\[{:,]|"[^"]*"))*\s*$')
_JSON_HEAD = re.compile(r"^\s*(?:[\]}]\s*)+")
_JSON_TOKEN = re.compile(r'"[^"]*"|\S')
_WORD_PREFIX = re.compile(r"\w+[.:/]")
_DISTINCTIVE = re.compile(r"\w.*\W|\W.*\w")


@dataclass(frozen=True, slots=True)
class Entry:
    """A place where a run of calls may begin: the marker that shows it, and where its code is."""

    opener: str
    lead: str
    target: int
    strong: bool
    """The marker is not something that prose contains: when no call follows, that is worth a report."""


def tokens(text: str) -> list[str]:
    """Split a literal into the pieces between which white space is free."""
    return [piece for word in text.split() for piece in _FENCE_EDGE.split(word) if piece]


def json_tokens(text: str) -> list[str]:
    """Split a literal around JSON as `tokens` does, and each bracket and key of that JSON from the rest."""
    head = _JSON_HEAD.match(text)
    start = head.end() if head else 0
    tail = _JSON_TAIL.search(text, start)
    end = tail.start() if tail else len(text)
    return [*_JSON_TOKEN.findall(text[:start]), *tokens(text[start:end]), *_JSON_TOKEN.findall(text[end:])]


class CallCode:
    """Compiles the code of one run of calls into `code`; `hub` is where the text after it is read, `ends` end a turn."""

    def __init__(self, code: Code, calls: Calls, hub: int, ends: frozenset[str]) -> None:
        self.code = code
        self.ends = ends
        self.syntax: Tools = _ends_apart(calls.syntax, ends)
        self.lead: str = calls.lead
        self.spellings: tuple[str, ...] = calls.spellings
        self.head: str = "{" if calls.syntax.envelope else _text(calls.syntax.function[0])
        self.marked: bool = any(map(str.strip, (calls.syntax.section_start, calls.syntax.call_start, self.head)))
        self.unmarked: tuple[int, ...] = ()
        """Where calls are read that no marker shows, if they are any, for a place where an answer begins."""
        self.lines: dict[str, int] = {}
        """Where such calls are read after content, by what shows them: a line that begins with a tool's name."""
        self.names: list[str] = [tool.name for tool in calls.tools or ()] if calls.on_lines else []
        self.hub = hub
        self.split: Callable[[str], list[str]] = _splitter(calls.syntax)
        self.tail: int = code.reserve()

    def compile(self) -> list[Entry]:
        """Emit everything; returns the entries, the outermost first."""
        syntax = self.syntax
        call = self.code.emit(*self._hold(), *self._literal(syntax.call_start))
        function = self._function()
        bare = self.code.emit(Loosen(), Jump(call))
        inner = self.code.emit(Loosen(), *self._hold(), Jump(function))
        section = self.code.emit(*self._literal(syntax.section_start), Jump(call))
        self._tail(call)
        outer = bare if syntax.section_start.strip() else call
        levels = [(syntax.section_start, section), (syntax.call_start, outer), (self.head, inner)]
        others = [(text, self.code.emit(*self._literal(text), Jump(call))) for text in self.spellings]
        others += [(text, at) for text, at in self._nothing() if _is_distinctive(self.split(text)[0])]
        if not self.marked:
            self.unmarked = (self.code.emit(Space(), Named(), Jump(call)),)
            breaks = [self.lead[at:] for at in range(len(self.lead)) if "\n" in self.lead[at:]]
            self.lines = {before + name: call for before in breaks for name in self.names}
        return list(self._entries([(text, at) for text, at in [*levels, *others] if text.strip()]))

    def _entries(self, levels: list[tuple[str, int]]) -> Iterator[Entry]:
        for i, (text, at) in enumerate(levels):
            opener = self.split(text)[0]
            distinctive = _is_distinctive(opener)
            if i == 0 or distinctive:
                lead = text[: len(text) - len(text.lstrip())]
                yield Entry(opener, self.lead + lead, at, distinctive)

    def _nothing(self) -> Iterator[tuple[str, int]]:
        """Yield the code of empty calls and empty sections, which say nothing, with their openers."""
        syntax = self.syntax
        call = [*self._literal(syntax.call_start), *self._literal(syntax.call_end)]
        section = [*self._literal(syntax.section_start), *self._literal(syntax.section_end)]
        count = len(closing_tokens(syntax))
        if syntax.call_start.strip() and syntax.call_end.strip():
            yield syntax.call_start, self.code.emit(*call, DropEmpty(count), Jump(self.tail))
        if syntax.section_start.strip() and syntax.section_end.strip():
            yield syntax.section_start, self.code.emit(*section, DropEmpty(count), Jump(self.tail))
            if syntax.call_start.strip() and syntax.call_end.strip():
                opened = (*self._literal(syntax.section_start), *call, DropEmpty(count), Jump(self.tail))
                yield syntax.section_start, self.code.emit(*opened)

    def _hold(self) -> tuple[Instruction, ...]:
        return (Hold(),) if self.syntax.whole else ()

    def _literal(self, text: str) -> list[Instruction]:
        found: list[Instruction] = []
        for token in self.split(text):
            found.append(Space())
            found.append(self._token(token))
        return found

    def _token(self, text: str) -> Instruction:
        if _FENCED.fullmatch(text):
            return MaybeFence()
        # One call needs no list around it, even where the syntax wants one.
        optional = text == "[" and self.syntax.envelope and not self.syntax.whole
        return Maybe(text) if optional else Lit(text)

    # One call.

    def _function(self) -> int:
        start = self.code.emit(BeginCall())
        if self.syntax.envelope:
            self._envelope()
        else:
            self._skeleton()
        self.code.emit(Jump(self.tail))
        return start

    def _envelope(self) -> None:
        syntax = self.syntax
        assert syntax.envelope is not None
        slots = [part for part in syntax.function if isinstance(part, Slot)]
        order = [slot for slot in slots if slot in (Slot.NAME, Slot.ID)]
        marked = [
            token for text in (syntax.section_start, syntax.call_start) for token in self.split(text) if len(token) > 1
        ]
        read = ReadEnvelope(
            fields=syntax.envelope,
            recover=self.tail,
            bare=not marked,
            arguments_first=Slot.ARGUMENTS in slots[: slots.index(Slot.NAME)],
            waits=order == [Slot.NAME, Slot.ID],
            strict=syntax.whole,
            ends=Finder(() if syntax.whole else (end for end in closing_tokens(syntax) if len(end) > 1)),
        )
        # A list around one call is a list of one, where the syntax wants none.
        listed: list[Instruction] = [Maybe("["), Space()] if marked and not syntax.whole else []
        self.code.emit(Space(), MaybeFence(), Space(), *listed, read)

    def _skeleton(self) -> None:
        parts = self.syntax.function
        first, last = self.syntax.id_parts or (-1, -1)
        for i, part in enumerate(parts[: _last_slot(parts) + 1]):
            if i == first:
                self.code.emit(Space(), MarkId())
            self._part(parts, i, part)
            if i + 1 == last:
                self.code.emit(EndId())

    def _part(self, parts: tuple[Part, ...], i: int, part: Part) -> None:
        stops = Finder(self._following(parts, i))
        if part is Slot.NAME:
            again = Slot.NAME in parts[:i]
            if i == 0 or _text(parts[i - 1])[-1:].isspace():
                self.code.emit(Space())
            self.code.emit(RepeatName() if again else ReadName(stops))
        elif part is Slot.ARGUMENTS:
            waits = Slot.ID in parts[i:]
            self.code.emit(*self._before_arguments(), *self._assured(), Commit(self.tail, waits))
            self._arguments(self.syntax.arguments)
        elif part is Slot.ANY:
            self.code.emit(*self._space_around(parts, i), SkipWords(stops))
        elif isinstance(part, Slot):
            self.code.emit(Space(), ReadWord(part, stops))
        elif self._may_be_missing(parts, i, part):
            self.code.emit(Space(), Maybe(part.strip()))
        else:
            self.code.emit(*self._literal(part))

    def _may_be_missing(self, parts: tuple[Part, ...], i: int, literal: str) -> bool:
        """Return whether a word before the name, as in `functions.`, may be left out: another marker shows the call."""
        opened = self.syntax.section_start.strip() or self.syntax.call_start.strip()
        return i == 0 and bool(opened) and parts[1:2] == (Slot.NAME,) and bool(_WORD_PREFIX.fullmatch(literal.strip()))

    def _space_around(self, parts: tuple[Part, ...], i: int) -> list[Instruction]:
        """White space before words that say nothing, where the texts beside them have some: it may hold line breaks."""
        before = _text(parts[i - 1])[-1:] if i else ""
        behind = _text(parts[i + 1])[:1] if i + 1 < len(parts) else ""
        return [Space()] if before.isspace() or behind.isspace() else []

    def _following(self, parts: tuple[Part, ...], i: int) -> list[str]:
        """What may be after the slot at `i`; words that say nothing and arguments may be left out."""
        arguments = self.syntax.arguments
        found: list[str] = []
        for part in parts[i + 1 :]:
            if part is Slot.ARGUMENTS:
                texts = (arguments.start, *map(_text, arguments.entry[:1]), arguments.when_empty or "")
                found += [token for text in texts for token in tokens(text)[:1]]
            elif part is not Slot.ANY:
                found += tokens(_text(part))[:1]
            left_out = part is Slot.ARGUMENTS and (arguments.entry or arguments.when_empty == "")
            if isinstance(part, Slot) and part is not Slot.ANY and not left_out:
                return found
            if _text(part).strip():
                return found
        return [*found, *self._closers(), *tokens(self.syntax.separator)[:1]]

    def _before_arguments(self) -> list[Instruction]:
        arguments = self.syntax.arguments
        return [Space()] if arguments.entry or arguments.start.strip() else self._before_object()

    def _before_object(self) -> list[Instruction]:
        return [Space(), MaybeFence(), Space()]

    def _assured(self) -> list[Instruction]:
        """Without a marker, a tool's name is a call only where arguments follow it."""
        arguments = self.syntax.arguments
        bracket = '"' if arguments.as_string else "{"
        return [] if self.marked or arguments.entry else [Ahead("".join(tokens(arguments.start)[:1]) or bracket)]

    # Arguments.

    def _arguments(self, arguments: Arguments) -> None:
        empty = arguments.when_empty
        if empty is None:
            self._written_arguments(arguments)
            return
        none = self.code.reserve()
        self._written_arguments(arguments)
        first = arguments.start if arguments.start.strip() else "".join(map(_text, arguments.entry[:1]))
        begins = tokens(first)[:1] or ([] if arguments.entry else ["{", '"'])
        self.code.put(none, NoArguments(empty.strip(), Finder(begins), len(self.code)))

    def _written_arguments(self, arguments: Arguments) -> None:
        if not arguments.entry:
            strict = self.syntax.whole and notation_of(arguments.codec).is_json
            opened = [*self._literal(arguments.start), *self._before_object()] if arguments.start.strip() else []
            read = JsonArguments(LiteralStyle(strict=strict, loose_keys=not strict))
            self.code.emit(*opened, read, *self._literal(arguments.end))
            return
        self.code.emit(*self._literal(arguments.start))
        between = self.code.reserve()
        entry = self._entry(arguments, between)
        done = self.code.emit(CloseArguments(bool(arguments.end.strip())), *self._literal(arguments.end))
        opener = (tokens(_text(arguments.entry[0])) or [""])[0]
        separator = arguments.separator.strip()
        ends = tokens(arguments.end)[:1] or [*self._behind_arguments(), *self._closers()]
        behind = tokens(self.syntax.separator)[:1]
        follow = Follow(self.syntax, tuple(sorted(self.ends)))
        marks = Finder([opener, *ends, *behind, *follow.fences])
        further = None if follow.closed or opener else follow
        self.code.put(between, Entries(entry, done, opener, separator, marks, follow.closed, further))

    def _behind_arguments(self) -> list[str]:
        """What follows the arguments where more slots come after them, as in `</NAME>`."""
        parts = self.syntax.function
        at = parts.index(Slot.ARGUMENTS) + 1
        return tokens(_text(parts[at]))[:1] if at < _last_slot(parts) else []

    def _closers(self) -> list[str]:
        """What may follow a call's last argument: the end of the call or of all calls, or the next call."""
        syntax = self.syntax
        begins = self.split(syntax.call_start) or self.split(_text(syntax.function[0]))[:1]
        return [*closing_tokens(syntax), *_markers(begins)]

    def _entry(self, arguments: Arguments, between: int) -> int:
        start = len(self.code)
        entry = arguments.entry
        raw = notation_of(arguments.codec).unquoted
        for i, part in enumerate(entry):
            if part is Slot.KEY:
                again = Slot.KEY in entry[:i]
                key = RepeatKey() if again else ReadKey(_stops(entry, i), isinstance(entry[0], Slot))
                self.code.emit(key)
            elif part is Slot.VALUE:
                self.code.emit(self._value(arguments, i))
            elif isinstance(part, Slot):
                self.code.emit(ReadWord(part, _stops(entry, i)))
            else:
                self.code.emit(*self._entry_literal(entry, i, part, raw))
        self.code.emit(Jump(between))
        return start

    def _entry_literal(self, entry: tuple[Part, ...], i: int, text: str, raw: bool) -> list[Instruction]:
        """A literal of an argument; beside a raw value its white space is taken exactly."""
        core = text.strip()
        before = raw and entry[i + 1 : i + 2] == (Slot.VALUE,)
        behind = raw and i > 0 and entry[i - 1] is Slot.VALUE
        found: list[Instruction] = [Soft(text[: len(text) - len(text.lstrip())])] if behind else []
        if behind:
            found.append(CloseValue(core, tuple(self._whole_closers())))
            return found
        for token in core.split():
            found += [Space(), Lit(token)]
        if before:
            found.append(Soft(text[len(text.rstrip()) :] if core else text))
        elif text[-1:].isspace() and entry[i + 1 : i + 2] != (Slot.VALUE,):
            found.append(Space())
        return found

    def _value(self, arguments: Arguments, i: int) -> Value:
        entry = arguments.entry
        if Follow.needed(self.syntax):
            return _read_value(arguments, Follow(self.syntax, tuple(sorted(self.ends))))
        suffix = _text(entry[i + 1]) if i + 1 < len(entry) else ""
        core = suffix.strip()
        lead = suffix[: suffix.index(core)]
        texts = (
            [lead + text for text in (core, *self._whole_closers())] if core else self._ends_of_value(arguments, suffix)
        )
        variants = [text[k:] for text in texts for k in range(len(text) - len(text.lstrip()) + 1)]
        return _read_value(arguments, Finder(variants), _tags(arguments, i))

    def _ends_of_value(self, arguments: Arguments, layout: str) -> list[str]:
        """What follows a value that has only `layout` of its own after it: its white space is not a part of the value."""
        between = [layout + text.rstrip() for text in (arguments.separator, arguments.end) if text.strip()]
        return [*between, *self._closers()]

    def _whole_closers(self) -> list[str]:
        """A function's end and its call's end together: so much closing that it is not an argument's text."""
        parts = self.syntax.function
        function = "".join(_text(part) for part in parts[_last_slot(parts) + 1 :]).strip()
        whole = (function + self.syntax.call_end).strip()
        return [whole] if function and whole != function else []

    # After a call.

    def _tail(self, call: int) -> None:
        syntax = self.syntax
        text = syntax.call_start if syntax.call_start.strip() else _text(syntax.function[0])
        split = self.split
        if split(text)[:1] and split(text)[0] in closing_tokens(syntax):
            split = _whole  # Markers that begin with the same word are told apart by all of theirs.
        closers = tuple(_call_closers(syntax, split))
        section = tuple(_markers(split(syntax.section_end)))
        opener = "{" if syntax.envelope and not syntax.call_start.strip() else (split(text) or [""])[0]
        # What is not a further call may still be another marker, which is found where text is read.
        tried = self.code.emit(Attempt((call,), self.hub, reported=False))
        separator = syntax.separator.strip()
        # Without section or separator, calls that must be whole and have a marker are looked for in the text, one by one.
        chained = bool(separator or section or not syntax.whole or not self.marked)
        named = syntax.function[:1] == (Slot.NAME,)
        openers = {opener: (call, tried)} if chained and (opener or separator or named) else {}
        ends = syntax.section_end or syntax.call_end or _text(syntax.function[-1])
        excess = frozenset("}]" if syntax.envelope and not syntax.whole else "")
        # The opener counts also where it leads nowhere from here: a closer that it begins with is not meant.
        marks = Finder([*closers, *section, opener, separator, FENCE, *excess])
        after = ends[len(ends.rstrip()) :]
        optional = self.ends & {*closers, *section}
        self.code.put(self.tail, Tail(closers, section, openers, optional, excess, separator, after, marks, self.hub))


def _ends_apart(syntax: Tools, ends: frozenset[str]) -> Tools:
    """Return the syntax with a space before an end of turn that its closers end with: engines strip that token."""

    def apart(closer: str) -> str:
        core = closer.rstrip()
        end = max((end for end in ends if core.endswith(end) and core != end), key=len, default="")
        return f"{closer.removesuffix(end)} {end}" if end and closer == core else closer

    return replace(syntax, call_end=apart(syntax.call_end), section_end=apart(syntax.section_end))


def _is_distinctive(opener: str) -> bool:
    """Return whether prose does not contain `opener`."""
    return len(opener) > 2 and bool(_DISTINCTIVE.search(opener))


def _text(part: Part) -> str:
    return "" if isinstance(part, Slot) else part


def closing_tokens(syntax: Tools) -> list[str]:
    """Return the markers that close a call and a run of calls, in order."""
    return [*_call_closers(syntax, _splitter(syntax)), *_markers(_splitter(syntax)(syntax.section_end))]


def _whole(text: str) -> list[str]:
    return [text.strip()] if text.strip() else []


def _call_closers(syntax: Tools, split: Callable[[str], list[str]]) -> list[str]:
    parts = syntax.function
    behind = [] if syntax.envelope else [_text(part) for part in parts[_last_slot(parts) + 1 :]]
    return [token for text in (*behind, syntax.call_end) for token in _markers(split(text))]


def _last_slot(parts: tuple[Part, ...]) -> int:
    return max((i for i, part in enumerate(parts) if isinstance(part, Slot)), default=-1)


def _splitter(syntax: Tools) -> Callable[[str], list[str]]:
    return json_tokens if syntax.envelope else tokens


def _markers(pieces: list[str]) -> list[str]:
    return [piece for piece in pieces if not _FENCED.fullmatch(piece)]


def _stops(entry: tuple[Part, ...], i: int) -> Finder:
    following = next((part for part in entry[i + 1 :] if not isinstance(part, Slot)), "")
    return Finder(following.split()[:1] or (" ", "\n"))


def _read_value(arguments: Arguments, suffix: Finder | Follow, tags: TagStyle | None = None) -> Value:
    codec = arguments.codec
    return Value(codec, suffix, literal_style(codec, suffix), notation_of(codec).decoder, tags, arguments.repeats)


def _tags(arguments: Arguments, i: int) -> TagStyle | None:
    """Return how the tags are written when the argument's name is the tag's: `<city>…</city>`."""
    entry = arguments.entry
    by_itself = not arguments.codec.strings.unquoted and arguments.codec.containers is not Containers.XML
    if Slot.KEY not in entry[i + 1 :] or by_itself:
        return None
    again = entry.index(Slot.KEY, i + 1)
    opens = _text(entry[0]).strip()
    behind = _text(entry[again - 1])
    closes = behind.strip()
    return TagStyle(
        opens,
        closes,
        _text(entry[again + 1]).strip(),
        arguments.codec.item_tag,
        space=behind[: behind.index(closes)] if not arguments.codec.item_tag else "",
        decoder=notation_of(arguments.codec).decoder,
    )
