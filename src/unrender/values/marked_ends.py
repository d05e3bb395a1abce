"""Finds the end of a raw value that has an end marker, even if that marker is missing, damaged or quoted.

Strategy: of all readings of a call, one without damage is used. A value ends at the first closer after which the call can go on without
damage: with an argument that has no value yet, or with the end of the call. Text inside a value that looks like a marker is a *mark*. Once a
value contains a mark, the following text is held back until the marks can be evaluated:

- A closer after which the call can't go on is text, and so is an opener with its own closer inside the value.
- An opener without a closer makes the next closers doubtful, so the value is held until its openers are closed, or until the output ends.
- If a repair gives a second reading, e.g. because a closer may be missing or repeated, the tool decides: a repair is made only if the reading
  without damage lacks a required argument. Otherwise, the value fails.
- Without any closer, the value ends at the next argument or at the end of the call.

Rule: at most `_reach` characters after a mark are examined, so decisions don't depend on the chunking.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import IntEnum
from functools import cached_property

from unrender.cache import kept
from unrender.format import Part, Slot
from unrender.limits import MAX_BLANK, MAX_OPTIONS, MAX_WORDS
from unrender.values import Resumable
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import INSERTED, Finder, end_of, is_damaged, torn_head

_GAP = rf"\s{{0,{MAX_BLANK}}}+"
_KEY = r"[^\n]{1,128}?"
_PLAIN_KEY = r"[\w.\-]{1,64}"
_WORD = r"[^\s\"'<>]{1,128}"
_REMAINS = 4
"""Minimum length of a suffix by which a damaged closer is recognized."""
_REACH = 4 * MAX_BLANK + 3 * 128 + INSERTED
"""Maximum combined length of whitespace, names and inserted characters after a mark."""
_PROSE = frozenset(".,;:!?)'`")
TAIL = 64
"""Number of characters at the end of a value that are kept to detect a damaged closer."""


class Kind(IntEnum):
    """The kind of a mark inside a value."""

    TEXT = 0
    CLOSED = 1
    """An end marker followed by text that the syntax allows."""
    BROKEN = 2
    """An end marker followed by text that the syntax doesn't allow."""
    MENTIONED = 3
    """An end marker in prose."""
    OPENED = 4
    """An opener of an argument."""
    ENDED = 5
    """The end of a call, followed by text that the syntax allows."""
    BEGUN = 6
    """The start of a call."""
    NESTED = 7
    """An end marker followed by a part of the end of all calls, and another end marker."""


@dataclass(frozen=True, slots=True)
class ValueMark:
    """A mark in a value. `end` is the position after the mark in the searched text."""

    kind: Kind
    end: int
    key: str = ""
    """Name of the argument that an opener starts. For a closer, the argument that starts after it."""
    size: int = 0
    """Length of an opener."""
    again: bool = False
    """True for a closer that may be repeated, because the same closer or another value of the same argument follows."""
    torn: int = 0
    """Length of the damaged closer at the start of the mark. 0 if there is none."""
    at: int = 0
    """Number of characters between the first mark and this mark."""
    pieces: int = 0
    """Number of pieces of text that are held before the mark."""
    doubtful: bool = False
    """True if the value may not end at this mark."""
    idle: bool = False
    """True for an opener of an argument that can't occur here. An idle opener is text unless it has a closer."""


@dataclass(frozen=True, kw_only=True)
class MarkedEnds:
    """Finds and classifies the marks in the values of one argument, by the markers around the values of its call syntax. Immutable.

    Whitespace is allowed between the parts of a marker.
    """

    close: tuple[str, ...]
    """The variants of the end marker. For named tags, these are the texts before and after the argument's name: `</` and `>`."""
    named: bool = False
    lead: str = ""
    """Whitespace before a closer."""
    trail: str = ""
    """Whitespace between a closer and the next argument."""
    opener: tuple[Part, ...] = ()
    """The markers before an argument's value."""
    separator: str = ""
    """Text between two arguments. Empty if only whitespace separates them."""
    followers: tuple[str, ...] = ()
    """Strings that may follow a closer."""
    call_close: tuple[Part, ...] = ()
    """The parts of the text that closes a call."""
    section_end: tuple[str, ...] = ()
    call_open: tuple[str, ...] = ()
    """Text at the start of a call, up to its name."""
    turn_ends: tuple[str, ...] = ()
    escapes: tuple[str, ...] = ()
    """Escaped forms of characters, which the finder also matches."""
    open_ended: bool = False
    """True if calls have no closing marker, so that any text may follow a closer."""
    key: str = ""
    """Name of the argument, for named tags."""
    names: tuple[str, ...] = ()
    """Names of the tool's arguments, for named tags."""
    _keyed: dict[tuple[str, tuple[str, ...]], MarkedEnds] = field(default_factory=dict, init=False, compare=False)

    def of(self, key: str, names: tuple[str, ...]) -> MarkedEnds:
        """Return the instance for the argument `key`. `names` contains the names of the tool's arguments."""
        if not self.named:
            return self
        found = self._keyed.get((key, names))
        if found is None:
            if len(self._keyed) >= MAX_OPTIONS:
                self._keyed.clear()
            found = self._keyed[key, names] = replace(self, key=key, names=names[:MAX_OPTIONS])
        return found

    @cached_property
    def closers(self) -> tuple[str, ...]:
        """The variants of the end marker of this argument's values."""
        return (self.close[0] + self.key + self.close[1],) if self.named else self.close

    @cached_property
    def finder(self) -> Finder:
        """Finder for the literals with which marks start."""
        return Finder((*self._kinds, *self.escapes))

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        """The kind of mark that each literal may start. Whitespace around a closer isn't part of the value if a marker follows."""
        leads, layouts = _suffixes(self.lead), _suffixes(self.lead + self.trail)
        # Searching is fastest if all marks start with the same character. So a call's start is included only if it starts like the closer.
        begun = [text for text in self.call_open[:1] if text[:1] == self.closers[0][:1]]
        rows: tuple[tuple[Kind, Iterable[str], list[str]], ...] = (
            (Kind.OPENED, self._openers, [layout for layout in layouts if not layout or layout.endswith(self._line)]),
            (Kind.BEGUN, begun, [""]),
            (Kind.ENDED, [part for part in self.call_close[:1] if not isinstance(part, Slot)], layouts),
            (Kind.TEXT, filter(None, (torn_head(closer, self.key) for closer in self.closers)), leads),
            (Kind.CLOSED, self.closers, leads),
        )
        return {lead + text: kind for kind, texts, before in rows for text in texts for lead in before}

    @cached_property
    def _line(self) -> str:
        """The last line break before an argument, and the whitespace after it. Empty if an argument doesn't start a line."""
        return self.trail[self.trail.rfind("\n") :] if "\n" in self.trail else ""

    @property
    def _openers(self) -> list[str]:
        """The literals at the start of openers. If tags are named, they are complete openers."""
        if not self.opener or isinstance(self.opener[0], Slot):
            return []
        if self.named:
            return [self.opener[0] + name + str(self.opener[2]) for name in (*self.names, self.key)]
        return [self.separator + self.opener[0]]

    def mark(self, text: str, at: int, literal: str, *, first: bool, final: bool) -> ValueMark | None:
        """Classify the literal that the finder matched at `at`. Returns None if more text is needed.

        `first` is True if the literal is at the start of the value.
        """
        kind = self._kinds[literal]
        end = at + len(literal)
        core = end - len(literal.lstrip())
        # If the format puts each argument on its own line, an opener in the middle of a line is text, as in `a <parameter=b>`.
        if kind is Kind.OPENED and core == at and self._line and not first:
            return ValueMark(Kind.TEXT, end)
        found = self._judged(text, at, core, end, kind, final=final)
        # After `_reach` characters, a mismatch is final, because no pattern matches more characters.
        undecided = found.kind in (Kind.TEXT, Kind.BROKEN, Kind.MENTIONED) and not final
        if found.kind is Kind.CLOSED and not final and self._may_continue(text, end):
            return None
        return None if undecided and len(text) - end < self._reach else found

    def _may_continue(self, text: str, end: int) -> bool:
        """Return whether the end of `text` may be an incomplete opener or closer after the closer that ends at `end`."""
        place = end_of(_SPACE, text, end)
        if len(text) - end >= self._reach or self._opener.match(text, place):
            return False
        if self._begun_nested.match(text, end):
            return True
        if _pattern(self.call_close).match(text, place):
            return False  # The end of the call may start like an opener, as in `<a` and `</call>`.
        heads = (self.opener[:1] if not self.separator else ()) + self.closers
        return any(text.startswith(str(head), place) or str(head).startswith(text[place:]) for head in heads)

    def _judged(self, text: str, at: int, core: int, end: int, kind: Kind, *, final: bool) -> ValueMark:
        # If the literal is text, continue after its whitespace, because `</x invoke>` and `</x parameter>` share `</x`.
        otherwise = ValueMark(Kind.TEXT, max(core, at + 1))
        match kind:
            case Kind.CLOSED:
                kind = self._closed(text, at, core, end, final=final)
                if kind is Kind.CLOSED and self._nested.match(text, end):
                    return ValueMark(Kind.NESTED, end)
                again = kind is Kind.CLOSED and self._again_at(text, end)
                # In `Rome </a>\n</a>`, only the second closer is where the format writes closers.
                if again and not text.startswith(self.lead, at):
                    return ValueMark(Kind.MENTIONED, end)
                following = self._opened(text, end_of(_SPACE, text, end)) if kind is Kind.CLOSED else None
                return ValueMark(kind, end, following.key if following else "", again=again)
            case Kind.OPENED:
                return self._opened(text, core) or otherwise
            case Kind.ENDED:
                return ValueMark(Kind.ENDED, core + 1) if self._ends_call(text, core, final=final) else otherwise
            case Kind.BEGUN:
                return ValueMark(Kind.BEGUN, end) if _pattern(self.call_open).match(text, core) else otherwise
        return self._torn(text, core, end, final=final)

    def _closed(self, text: str, at: int, core: int, end: int, *, final: bool) -> Kind:
        if self.open_ended or self._follower.match(text, end):
            return Kind.CLOSED
        lead, trail = self.lead, self.trail
        if final:
            rest = text[end : end + self._reach].strip()
            if not rest or (len(text) - end < self._reach and any(it.startswith(rest) for it in self._followers)):
                return Kind.CLOSED
        after = text[end : end + 1]
        # The closer in `Close it with </a>, and` is prose, and the closer in `</a>x` ends the value. If the format puts a line break before
        # closers, a closer in the middle of a line is prose.
        in_line = "\n" in lead and core == at
        if in_line or after in _PROSE or (after.isspace() and not (trail and text.startswith(trail, end))):
            return Kind.MENTIONED
        return Kind.BROKEN

    def _opened(self, text: str, core: int) -> ValueMark | None:
        found = self._opener.match(text, core)
        if found is None:
            return None
        key = found.group("key").strip().strip("\"'")
        return None if self.breaks(key) else ValueMark(Kind.OPENED, found.end(), key, found.end() - core)

    def _again_at(self, text: str, at: int) -> bool:
        """Return whether a closer follows at `at`, as the format writes it, so that an earlier closer may be text."""
        place = end_of(_SPACE, text, at)
        if self._opened(text, place):  # An opener can start like a closer.
            return False
        return text.endswith(self.lead, at, place) and any(text.startswith(it, place) for it in self.closers)

    def _ends_call(self, text: str, core: int, *, final: bool) -> bool:
        found = _pattern(self.call_close).match(text, core)
        return found is not None and (
            self._after_call.match(text, found.end()) is not None or (final and not text[found.end() :].strip())
        )

    def _torn(self, text: str, core: int, end: int, *, final: bool) -> ValueMark:
        """Classify a closer that is damaged after its first word. For example, `</a1>` ends the value if a marker of the call follows."""
        closer = next(it for it in self.closers if text.startswith(torn_head(it, self.key) or it, core))
        for at in range(end, min(core + len(closer) + INSERTED, len(text)) + 1):
            if at > end and text[at - 1].isspace():
                break
            if not is_damaged(text[core:at], closer):
                continue
            after = _SPACE.match(text, at)
            place = after.end() if after else at
            if opened := self._opened(text, place):
                return replace(opened, torn=at - core)
            if self._ends_call(text, place, final=final):
                return ValueMark(Kind.ENDED, place + 1, torn=at - core)
        return ValueMark(Kind.TEXT, end)

    def breaks(self, key: str) -> bool:
        """Return whether the name `key` is empty, or contains a complete or damaged marker of an argument."""
        return not key or any(head in key for head in self._heads)

    def ends_torn(self, tail: str) -> bool:
        """Return whether `tail` ends with the rest of a damaged closer, as in `Rome/a>`."""
        return tail.rstrip().endswith(self._remains)

    def repeated(self, text: str, at: int, *, final: bool) -> int | None:
        """Return the length of a repeated opener at `at`, the start of a value.

        Returns 0 if no opener is repeated, and None if more text is needed.
        """
        if found := self._again.match(text, at):
            return found.end() - at
        rest = text[at : at + self._reach].lstrip()
        heads = (str(parts[0]) for parts in self._before_value)
        begun = any(head.startswith(rest[: len(head)]) for head in heads)
        return None if begun and not final and len(text) - at < self._reach else 0

    @cached_property
    def _again(self) -> re.Pattern[str]:
        return re.compile(_GAP + "(?:" + ("|".join(_joined(parts, {}) for parts in self._before_value) or "(?!)") + ")")

    @cached_property
    def _before_value(self) -> tuple[tuple[Part, ...], ...]:
        """Markers between the key and the value that no value starts with."""
        opener = self.opener
        after_key = opener[opener.index(Slot.KEY) + 1 :] if Slot.KEY in opener else ()
        return tuple(it for it in (after_key, after_key[-1:]) if it and not isinstance(it[0], Slot) and _telling(it))

    @cached_property
    def _reach(self) -> int:
        every = (*self.opener, *self.call_close, *self.section_end, *self.call_open)
        several = max(map(len, (*self._followers, *self.turn_ends)), default=0)
        return _REACH + sum(len(part) for part in every if not isinstance(part, Slot)) + several

    @cached_property
    def _followers(self) -> tuple[str, ...]:
        return (*self.followers, *self.turn_ends, *self.closers)

    @cached_property
    def _follower(self) -> re.Pattern[str]:
        return re.compile(_GAP + _any(self._followers))

    @cached_property
    def _part_of_end(self) -> str:
        """Pattern for a part of the end of all calls, with text up to another marker. No part may start like the end of a value."""
        parts = (*self.call_close, *self.section_end)
        apart = [size for size in range(1, len(parts)) if not str(parts[size]).startswith(self.closers)]
        begun = "|".join(_joined(parts[:size], {}) for size in apart) or r"(?!)"
        ends = (*(part for part in parts if not isinstance(part, Slot)), *self.turn_ends)
        others = (_any(ends), self._opener.pattern.replace("?P<key>", "?:"), _joined(self.call_open, {}) or r"(?!)")
        return f"{_GAP}(?:{begun})(?:(?!{'|'.join(others)}).){{0,{MAX_WORDS}}}?"

    @cached_property
    def _nested(self) -> re.Pattern[str]:
        """Pattern for text after a closer that is inside the value, such as `</f></a>` in `<a>x</a></f></a></f></call>`."""
        return re.compile(self._part_of_end + _any(self.closers), re.DOTALL)

    @cached_property
    def _begun_nested(self) -> re.Pattern[str]:
        """Pattern for text that may become what `_nested` matches."""
        begun = _any(closer[:size] for closer in self.closers for size in range(1, len(closer)))
        return re.compile(self._part_of_end + begun + r"?\Z", re.DOTALL)

    @cached_property
    def _opener(self) -> re.Pattern[str]:
        opener, separator = self.opener, self.separator.strip()
        if not opener or isinstance(opener[0], Slot):
            return re.compile(r"(?!)")
        # After a short opener such as `"`, only a plain key is allowed. After `<parameter=`, a key may be any text.
        named = _any((*self.names, self.key)) if self.named else _KEY if len(opener[0]) > 2 else _PLAIN_KEY
        return re.compile(_joined((*[separator][: len(separator)], *opener), {Slot.KEY: f"(?P<key>{named})"}))

    @cached_property
    def _after_call(self) -> re.Pattern[str]:
        section = f"(?>(?:{_GAP}{_joined(self.section_end, {})})?)" if self.section_end else ""
        more = [_joined(self.call_open, {})] if self.call_open else []
        follows = "|".join([*more, *map(re.escape, self.turn_ends)])
        # The end marker of a section is sufficient, because every call is inside a section.
        closed = f"{_GAP}{_joined(self.section_end, {})}" if self.section_end else r"(?!)"
        return re.compile(f"{closed}|{section}{_GAP}(?:{follows})" if follows else closed)

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        """The beginnings of argument markers, up to the end of their first word."""
        pieces = [part for part in (*self.opener, *self.closers) if not isinstance(part, Slot)]
        pieces += [*self.close] if self.named else []
        return tuple({head for piece in pieces if len(head := torn_head(piece) or piece) > 2 or "<" in head})

    @cached_property
    def _remains(self) -> tuple[str, ...]:
        """Suffixes and prefixes of closers, by which damaged closers are recognized."""
        ends = {closer[at:] for closer in self.closers for at in range(1, len(closer)) if len(closer) - at >= _REMAINS}
        heads = {closer[:size] for closer in self.closers for size in range(2, len(closer))}
        short = {closer[1:] for closer in self.closers if len(closer) > 2}
        return (*ends, *short, *(head for head in heads if not head[0].isalnum()))


def _suffixes(text: str) -> list[str]:
    return [text[at:] for at in range(len(text) + 1)]


_SPACE = re.compile(_GAP)
_LETTER = re.compile(r"(?<!\w)\w")


def _telling(parts: Collection[Part]) -> bool:
    text = "".join(part for part in parts if not isinstance(part, Slot))
    return len(text) > 2 and _LETTER.search(text) is not None


def _any(texts: Iterable[str]) -> str:
    ordered = sorted({text for text in texts if text}, key=lambda text: (-len(text), text))
    return "(?:" + ("|".join(map(re.escape, ordered)) or r"(?!)") + ")"


def _joined(parts: Collection[Part], slots: dict[Slot, str]) -> str:
    """Return a pattern for the parts, with optional whitespace between them. `slots` contains patterns for the slots."""
    return _GAP.join(slots.get(part, _WORD) if isinstance(part, Slot) else re.escape(part) for part in parts)


@kept(1_000)
def _pattern(parts: tuple[Part, ...]) -> re.Pattern[str]:
    return re.compile(_joined(parts, {}) or r"(?!)")


# Evaluating all marks of a value.


@dataclass(frozen=True, slots=True)
class ValueEnd:
    """The end of a value: `mark`, or the current closer if `mark` is None."""

    mark: ValueMark | None = None
    failed: bool = False
    """True if the value can't end at `mark`, which was expected to end it."""
    unclear: bool = False
    """True if a repair gives a second reading, so that the call can't be repaired."""


@dataclass(slots=True, eq=False)
class ValueMarks(Resumable):
    """The marks found in a value, and the text from the first mark on."""

    ends: MarkedEnds
    types: ArgumentTypes
    given: tuple[str, ...] = ()
    """Names of arguments that already have a value, including the current argument."""
    _: KW_ONLY
    patient: bool
    """True if text after a mark can be parsed again. Otherwise, the first mark ends the value."""
    repairs: bool
    """True if a value may end without a closer of its own."""
    textual: bool
    """True if the value may be a string. Otherwise, markers can't be part of the value."""
    marks: list[ValueMark] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    size: int = 0
    """Number of characters since the first mark."""
    tail: str = ""
    """The last characters of the value so far."""
    begun: bool = False
    """True once the value contains the start of a call."""
    crossed: bool = False
    """True once the value contains a closer, and the start of a call after it."""

    def passed(self, text: str) -> None:
        """Record `text` as part of the value."""
        if text:
            self.tail = text[-TAIL:] if len(text) >= TAIL else (self.tail + text)[-TAIL:]
            if self.marks:
                self.size += len(text)

    def met(self, mark: ValueMark) -> ValueEnd | None:
        """Add a mark inside the value. Returns the end of the value, or None if the value may continue."""
        if mark.kind is Kind.BEGUN:
            self.begun = True
            self.crossed = self.crossed or bool(self._unpaired(self.marks)[1])
            return None
        opened = mark.kind is Kind.OPENED
        if mark.kind is Kind.NESTED:  # Only a string can contain a closer.
            mark = replace(mark, kind=Kind.MENTIONED if self.textual else Kind.CLOSED)
        if mark.kind is Kind.BROKEN and not self.depth:
            return ValueEnd(replace(mark, at=self.size, pieces=len(self.held)))
        if mark.kind is Kind.CLOSED:
            # A second value of the same argument isn't a reading without damage, so `</a><a>` with the same name is text at first.
            repeats = bool(mark.key) and mark.key in self.given
            if not self.patient or (not self.depth and not mark.again and not repeats):
                return self._doubted(self._unpaired(self.marks)[1], crossed=self.crossed) or ValueEnd()
            mark = replace(mark, again=mark.again or repeats)
        doubtful = bool(mark.again and mark.key) or (not mark.torn and self.ends.ends_torn(self.tail))
        doubtful = doubtful or (opened and (self.begun or not self.tail.strip()))
        # An opener can start an argument only if the tool has this argument and it has no value yet.
        idle = opened and (mark.key in self.given or not self.types.knows(mark.key))
        mark = replace(mark, at=self.size, pieces=len(self.held), doubtful=doubtful, idle=idle)
        if not self.patient and (not idle if opened else mark.kind is not Kind.MENTIONED):
            return ValueEnd(mark, failed=opened or doubtful)
        self.marks.append(mark)
        return None

    def _doubted(self, loose: list[ValueMark], *, crossed: bool) -> ValueEnd | None:
        """Return the end at one of the closers without an opener, if the marker after that closer may be damaged or repeated."""
        if not self.repairs:
            return None
        # In `Zed</a>\n</call/>\n<call><a>CET</a>`, the first closer may end the value, if the closer of the call is damaged.
        if crossed and loose:
            return ValueEnd(loose[0], failed=True, unclear=True)
        # In `Rome</a></a>`, the first closer may be text, or the second one may be repeated.
        again = next((mark for mark in loose if mark.again), None)
        return ValueEnd(again, failed=self.textual or again.doubtful, unclear=True) if again else None

    def ended(self) -> ValueEnd | None:
        """Return the end of the value at the end of the output. Returns None if the value has no end."""
        marks = self.marks
        last = next((i for i, mark in enumerate(marks) if mark.kind is Kind.CLOSED and not mark.again), len(marks))
        before, after = marks[:last], marks[last:]
        opened, loose = self._unpaired(before)
        kinds = [mark.kind for mark in before]
        at_end = kinds.index(Kind.ENDED) if Kind.ENDED in kinds else len(before)
        if doubted := self._doubted(loose, crossed=self.crossed and bool(after)):
            return doubted
        # If `…</call>` is followed by another call with an argument, the closer belongs to that argument.
        if at_end < len(before) and (not after or Kind.OPENED in kinds[at_end:]):
            opened = [*self._unpaired(before[:at_end])[0], before[at_end]]
        elif not after:
            return None
        opened = [mark for mark in opened if not mark.idle]
        if not opened or not self.repairs:
            return ValueEnd(after[0]) if after else None
        keys = [mark.key for mark in opened if mark.key]
        paired = any(mark.kind in _CLOSERS for mark in before) and bool(keys)
        # A named tag has no closer of its own if another argument starts inside it.
        paired = paired or (self.ends.named and Kind.OPENED in kinds[:at_end])
        failed = paired or len(set(keys)) < len(keys) or any(mark.doubtful for mark in opened)
        if not after or opened[-1].kind is Kind.ENDED:
            return ValueEnd(opened[0], failed=failed)
        return self._compared(opened, keys, after, failed=failed)

    def _compared(self, opened: list[ValueMark], keys: list[str], after: list[ValueMark], *, failed: bool) -> ValueEnd:
        """Return the end of a value that has a closer, but also `opened`, an unclosed opener of an argument."""
        size = next((i for i, mark in enumerate(after) if mark.kind is Kind.ENDED), len(after))
        following = {mark.key for mark in after[:size]} - {""}
        if following & set(keys) or not self._says_more(opened[-1], after[0]):
            return ValueEnd(after[0])
        lacks, given = self.types.lacks, {*self.given, *following}
        alone = not self.textual or bool(opened[0].torn) or (lacks(given) and not lacks({*given, *keys}))
        return ValueEnd(opened[0], failed=failed or not alone, unclear=True)

    def _says_more(self, opener: ValueMark, closer: ValueMark) -> bool:
        """Return whether there is text between `opener` and `closer`."""
        text = "".join(self.held[opener.pieces : closer.pieces])
        return bool(text[opener.size :].strip())

    def _unpaired(self, marks: list[ValueMark]) -> tuple[list[ValueMark], list[ValueMark]]:
        """Return the openers without a closer, and the closers without an opener."""
        opened: list[ValueMark] = []
        loose: list[ValueMark] = []
        for mark in marks:
            if self._opens(mark):
                opened.append(mark)
            elif mark.kind in _CLOSERS and opened:
                opened.pop()
            elif mark.kind in _CLOSERS:
                loose.append(mark)
        return opened, loose

    def _opens(self, mark: ValueMark) -> bool:
        # The closer of a named tag can't close another argument.
        return mark.kind is Kind.OPENED and (not self.ends.named or mark.key == self.ends.key)

    @property
    def depth(self) -> int:
        """Number of unclosed openers inside the value."""
        return len(self._unpaired(self.marks)[0])

    def keeps(self, end: ValueMark | None) -> bool:
        """Return whether the value contains markers of arguments, if it ends at `end`, or at the current closer if `end` is None."""
        marks = self.marks if end is None else self.marks[: self.marks.index(end)] if end in self.marks else []
        return any(mark.kind is not Kind.ENDED for mark in marks)


_CLOSERS = (Kind.CLOSED, Kind.BROKEN, Kind.MENTIONED)
