"""Parses the markers and names of a damaged call, and rewrites them in the syntax of the format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from unrender.answer.literals import is_distinctive, without_fences
from unrender.answer.nodes import Calls, Element, Elements, Marker, literal_of
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_WORD
from unrender.machine.call_events import NAMESPACE, glued
from unrender.messages.wire import Request
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import end_of
from unrender.values.notations import notation_of
from unrender.values.scanner import LiteralStyle

_SPACE = re.compile(r"\s*")
_QUOTES = re.compile(r"[\"'\s]*")
_QUOTE = re.compile(r"[\"']?")
_ATTRIBUTE = re.compile(r"<([^\s<>=\"'/]+)(?:\s+\w+)?\s*=\s*[\"']?$")
"""Matches the start of a tag that contains a name, such as `<function=` or `<invoke name="`."""
_TAG_END = re.compile(r"[\"']?\s*>")
_PREFIX = re.compile(r"\w+[.:/]$")
"""Matches a prefix that some templates put before a name, such as `functions.` in `to=functions.now`."""
_CLOSING_TAG = re.compile(r"</[^<>\s]{1,64}>")
TAG_WORD = re.compile(r"\W+\w+")
LAST_LETTERS = re.compile(r"[^\s<>]{0,16}>?")
"""Matches the rest of a truncated or decorated end marker, after the marker's word."""
MARKER_WORDS = re.compile(r"[^\W\d][\w.-]*")
_LEAST_PART = 2
"""A part of a marker must be longer than this to be recognized."""
_NOISE = re.compile(r"\s*[\"',:;=.]{1,3}\s*")
"""Matches punctuation that models insert between two markers, or use instead of a marker."""
_BEFORE_TORN = re.compile(r"[{(\[<]?[\"']?")
"""Matches characters that models write before a damaged start marker, such as `{"` in `{"function=` for `<function=`."""
_NAME = r"[\w.:/-]{1,128}?"
_OBJECT_HEAD = rf'\{{\s*"(?:[\w-]{{1,64}}"\s*:\s*")?(?P<name>{_NAME})"'
"""Matches the start of a JSON object that is a call. The name may be the value of the object's first field, or the first key."""
_SENTENCE_ENDS = (".", ":", "!", "?", ">", "\u3002", "\uff1a")
"""Characters that may end a sentence before a call."""
_HEAD_WORDS = frozenset(("function", "functions", "name", "invoke", "call", "tool", "to"))
"""Words that may separate the start marker of a call from the tool name."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A difference between a call and its format."""

    at: int
    found: str
    """The unexpected text, or "" if something is missing."""
    wanted: str
    role: Role = Role.MALFORMED
    """The role of the found text."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """A call that was rewritten in the syntax of its format."""

    pieces: tuple[tuple[str, int], ...]
    """Pieces of the rewritten call, each with its position in the original text. The position of an inserted marker is -1."""
    end: int
    """End of the call in the original text."""
    damage: tuple[Damage, ...]
    keys: tuple[str, ...]
    """Argument names in the original text, if each argument has its own markers."""
    has_id: bool
    """False if the original text has no id although the format requires one."""
    ends_run: bool
    """True if the original text includes the end marker of a run of calls."""

    @property
    def text(self) -> str:
        """Text of the rewritten call."""
        return "".join(text for text, _ in self.pieces)


@dataclass(frozen=True)
class Repair:
    """Repairs calls of one syntax."""

    calls: Calls
    style: LiteralStyle | None
    """Notation of values that have their own delimiters. None for raw values."""

    def first_word(self, text: str) -> re.Match[str] | None:
        """Return the first word of `text` that isn't part of a start marker of a call. Return None if there is no such word."""
        known = (word for word in MARKER_WORDS.finditer(text) if word.group() not in _HEAD_WORDS | self.words)
        return next(known, None)

    def behind_words(self, text: str, request: Request) -> re.Match[str] | None:
        """Return the start of a call in `text`, up to the tool name.

        Only words may precede the call. Return None if there is no such call.
        """
        for found in self._head.finditer(text):
            if request.tool(found["name"].removeprefix(NAMESPACE)):
                before = text[: found.start()].rstrip()
                # Any words are allowed before a distinctive marker. Before a bracket or a bare name, a complete sentence is required.
                ended = is_distinctive(found["open"]) or before[-1:] in _SENTENCE_ENDS
                return found if ended and "`" not in before else None
        return None

    @cached_property
    def _head(self) -> re.Pattern[str]:
        function, opener = self.calls.function, re.escape(self.calls.call_open.core)
        if self.calls.envelope:
            return re.compile(rf"(?P<open>(?:{opener})?)\s*{_OBJECT_HEAD}")
        at = function.index(Slot.NAME)
        around = (function[at - 1 : at], function[at + 1 : at + 2])
        before, after = ("".join(part.core for part in parts if isinstance(part, Marker)) for parts in around)
        shown = is_distinctive(before) or is_distinctive(after)
        head = rf"(?P<open>(?:{opener})?\s*{re.escape(before)})(?P<name>{_NAME}){re.escape(after)}"
        return re.compile(head if shown else r"(?!)(?P<open>)(?P<name>)")

    def tool(self, word: str, request: Request) -> str:
        """Return the offered tool with the name `word`, or "". In `word`, the name of a declared argument may directly follow the tool
        name.
        """
        if request.tool(word):
            return word
        return glued(request, word) if Slot.KEY in self.calls.arguments.entry[1:2] else ""

    @property
    def other_opener(self) -> str:
        """Other spelling of the tag that starts a call, such as `<function name=` for `<function=`. "" if there is none."""
        tag = _ATTRIBUTE.search(self.calls.head.core)
        return "" if not tag or " " in tag.group() else f"{self.calls.head.core[: tag.end(1)]} name="

    @cached_property
    def words(self) -> frozenset[str]:
        """Words in the markers before the tool name."""
        calls = self.calls
        opening = (calls.open, calls.call_open, *calls.function[: calls.function.index(Slot.NAME)])
        return frozenset(word for part in opening for word in MARKER_WORDS.findall(literal_of(part)))

    @property
    def markers(self) -> Iterator[Marker]:
        """All markers in the syntax of a call."""
        calls, arguments = self.calls, self.calls.arguments
        every = (calls.open, calls.call_open, *calls.function, arguments.open, *arguments.entry, arguments.close)
        return (part for part in (*every, calls.call_close, calls.close) if isinstance(part, Marker) and part)

    def torn(self, text: str, closer: str) -> bool:
        """Return whether `text`, at the end of the output, is a prefix of the end marker `closer` and of no other marker."""
        others = (marker.core for marker in self.markers if marker.core != closer)
        begun = len(text) > _LEAST_PART and closer.startswith(text)
        return begun and not any(other.startswith(text) for other in others)

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """End markers that may follow the last argument of a call."""
        closers = dict.fromkeys((self.calls.arguments.close.core, *self.calls.all_closers))
        return tuple(filter(is_distinctive, closers))

    @cached_property
    def known(self) -> frozenset[str]:
        """Markers and parts of markers that values of a damaged call can't contain."""
        return self.single | {marker.core for marker in self.markers if is_distinctive(marker.core)}

    @cached_property
    def single(self) -> frozenset[str]:
        """Pieces of markers that occur only once in a call, so that a second occurrence is a repetition."""
        every = "\n".join(marker.text for marker in self.markers)
        pieces = (piece for marker in self.markers for piece in marker.pieces)
        return frozenset(piece for piece in pieces if is_distinctive(piece) and every.count(piece) == 1)


def repairs(calls: Calls, style: LiteralStyle) -> Repair | None:
    """Return a `Repair` for one call syntax. Return None if calls of this syntax can't be repaired."""
    arguments = calls.arguments
    raw = notation_of(arguments.codec).unquoted and bool(arguments.entry)
    unfit = calls.whole or not any((calls.open, calls.call_open, calls.head))
    # Raw arguments on lines of their own, such as `city: Paris`, are separated only by whitespace, so they can't be repaired.
    open_ended = raw and not (arguments.open_ended is False and literal_of(arguments.entry[0]).strip())
    return None if unfit or open_ended else Repair(calls, None if raw else style)


@dataclass(slots=True)
class MarkerWalk:
    """Walks over the markers of one damaged call and rewrites the call."""

    repair: Repair
    text: str
    request: Request
    at: int = 0
    pieces: list[tuple[str, int]] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    types: ArgumentTypes = field(default_factory=lambda: ArgumentTypes(None))
    keys: list[str] = field(default_factory=list)
    has_id: bool = True
    closed: bool = False
    """True if an end marker proves that the call is complete."""
    ends_run: bool = False
    missing: tuple[str, ...] = ()
    """Missing pieces of the latest marker."""

    def write(self, text: str, at: int = -1) -> None:
        self.pieces.append((text, at))

    def note(self, at: int, end: int, wanted: str, role: Role = Role.MALFORMED) -> None:
        """Record that `text[at:end]` differs from the expected text `wanted`."""
        self.damage.append(Damage(at, self.text[at:end], wanted, role))

    def space(self, at: int) -> int:
        return end_of(_SPACE, self.text, at, at + MAX_BLANK)

    def marker(self, marker: Marker, *, wanted: bool = True, partly: bool = True) -> bool:
        """Parse a marker and write its complete text. Return whether the marker was found.

        If `partly` is True, some pieces of the marker may be missing. If `wanted` is False, a missing marker is still written, but isn't
        recorded as a difference.
        """
        at, missing, found, sure, known = self.at, [], False, False, len(self.damage)
        for piece in marker.pieces:
            here = self.space(at)
            if self.text.startswith(piece, here):
                at, found, sure = here + len(piece), True, sure or piece in self.repair.single
                again = self.space(at)
                while piece in self.repair.single and self.text.startswith(piece, again):
                    self.note(again, again + len(piece), "the text after it")
                    at = again + len(piece)
                    again = self.space(at)
            elif found and (noise := end_of(_NOISE, self.text, at)) > at and self.text.startswith(piece, noise):
                self.note(at, noise, repr(piece))
                at = noise + len(piece)
            elif without_fences([piece]):
                missing.append((here, piece))
                layout = marker.before(piece)
                at += len(layout) * self.text.startswith(layout, at)
        # A piece that isn't unique doesn't identify this marker, because it may belong to any marker, such as `<|sep|>` in
        # `<|close|>call<|sep|>`.
        if missing and not (partly and sure):
            del self.damage[known:]
            found = False
        if found or not wanted:
            self.write(marker.text)
        if found:
            self.at = at
            self.missing = tuple(piece for _, piece in missing)
            for here, piece in missing:
                self.note(here, here, repr(piece))
        return found

    def elements(self, elements: Elements, *, shown: bool) -> bool:
        """Parse markers and slots in order. `shown` is True if earlier text already indicates a call. Return False on failure."""
        i = 0
        while i < len(elements):
            element = elements[i]
            if element is Slot.NAME:
                if not self._name(literal_of(*elements[i + 1 : i + 2])):
                    return False
            elif element is Slot.KEY:
                if not self._key(literal_of(*elements[i + 1 : i + 2])):
                    return False
            elif isinstance(element, Slot):
                if not self._word(element, elements[i + 1 :]):
                    return False
            elif element and not self.marker(element, partly=False):
                step = self._otherwise(elements, i, shown=shown)
                if not step:
                    return False
                i += step - 1
            elif not element:
                self.write(element.text)
            shown = True
            i += 1
        return True

    def _otherwise(self, elements: Elements, i: int, *, shown: bool) -> int:
        """Parse the text that replaces a marker. Return the number of elements that the text covers, or 0 on failure."""
        marker = elements[i]
        assert isinstance(marker, Marker)
        if (slot := elements[i + 1 : i + 2]) and slot[0] in (Slot.NAME, Slot.KEY):
            if opened := self.spelled(marker, literal_of(*elements[i + 2 : i + 3])):
                self.note(self.at, opened.end(), repr(marker.text.strip()))
                self.write(marker.text)
                self.at = opened.end()
                known = self._name() if slot[0] is Slot.NAME else self._key()
                closing = _TAG_END.match(self.text, self.at)
                if not known or not closing:
                    return 0
                self.write(literal_of(elements[i + 2]))
                self.at = closing.end()
                return 3
            if slot[0] is Slot.KEY and (begin := self._unopened(self.at)) >= 0:
                self.note(self.at, begin, repr(marker.core))
                self.write(marker.text)
                self.at = begin
                return 1
            # The prefix of a name may be missing, as in `to=now` instead of `to=functions.now`.
            prefix = _PREFIX.search(marker.text)
            if slot[0] is Slot.NAME and prefix:
                rest = Marker(marker.text[: prefix.start()], _cut(marker.pieces, prefix.group()))
                if (not rest and shown) or (rest and self.marker(rest, wanted=True)):
                    self.pieces = self.pieces[:-1] if rest else self.pieces
                    self.note(self.at, self.at, repr(prefix.group()))
                    self.write(marker.text)
                    return 1
        if self.marker(marker):
            return 1
        if not shown:
            return 0
        return self._skipped(elements, i) or self._torn_opener(marker) or self._noise(elements, i)

    def spelled(self, marker: Marker, after: str) -> re.Match[str] | None:
        """Match another spelling of the same tag, such as `<function name="` for `<function=`."""
        tag = _ATTRIBUTE.search(marker.core)
        if not tag or not _TAG_END.match(after.strip()):
            return None
        before = marker.core[: tag.start()]
        return re.compile(rf"{re.escape(before)}<{re.escape(tag.group(1))}(?:\s+name)?\s*=\s*").match(
            self.text, self.space(self.at)
        )

    def _skipped(self, elements: Elements, i: int) -> int:
        """Write the missing elements before the next element that is present. Return the number of missing elements, or 0 on failure."""
        here = self.space(self.at)
        for j in range(i + 1, len(elements) + 1):
            after = elements[j] if j < len(elements) else None
            if after is None:  # Arguments without a start marker come next.
                entries = bool(self.repair.calls.arguments.entry)
                there = self.entry_at(here) if entries else self.text.startswith("{", here)
            else:
                there = isinstance(after, Marker) and any(
                    self.text.startswith(piece, here) for piece in after.pieces[:1]
                )
                there = there and is_distinctive(literal_of(after).strip())
            if there:
                return j - i if all(map(self._supply, elements[i:j])) else 0
        return 0

    def _torn_opener(self, marker: Marker) -> int:
        """Parse the start marker of a tag whose bracket is missing, as in `{"function=now>` for `<function=now>`.

        Returns 1 on success, otherwise 0.
        """
        tag = _ATTRIBUTE.search(marker.core)
        begin = self.space(self.at)
        here = end_of(_BEFORE_TORN, self.text, begin)
        if tag is None or not self.text.startswith(core := marker.core.lstrip("<"), here):
            return 0
        self.note(begin, here + len(core), repr(marker.core))
        self.write(marker.text)
        self.at = here + len(core)
        return 1

    def _noise(self, elements: Elements, i: int) -> int:
        """Parse punctuation before a marker, or instead of one.

        Returns 1 if the marker or the next element follows the punctuation, otherwise 0.
        """
        marker = elements[i]
        assert isinstance(marker, Marker)
        end = end_of(_NOISE, self.text, self.at)
        if end == self.at:
            return 0
        if there := self.text.startswith(marker.pieces[0], end):
            self.note(self.at, end, repr(marker.core))
            self.at = end
            return int(self.marker(marker, partly=False))
        after = elements[i + 1] if i + 1 < len(elements) else None
        if isinstance(after, Marker):
            there = is_distinctive(after.core) and self.text.startswith(after.pieces[0], end)
        elif after is None and self.repair.calls.arguments.entry:
            there = self.entry_at(end)
        if there:
            self.note(self.at, end, repr(marker.core))
            self.write(marker.text)
            self.at = end
        return int(there)

    def _unopened(self, at: int) -> int:
        """Return the position of a declared key whose start marker is missing or wrong. Return -1 if there is no such key."""
        entry = self.repair.calls.arguments.entry
        first = entry[0]
        if not isinstance(first, Marker) or not first or entry[1] is not Slot.KEY:
            return -1
        closer = literal_of(entry[2]).strip()
        at = self.space(at)
        wrong = max((mark for mark in self.repair.known if self.text.startswith(mark, at)), key=len, default="")
        begin = self.space(at + len(wrong))
        key = any(self.text.startswith(key + closer, begin) for key in self.types.declared if key not in self.keys)
        return begin if key and is_distinctive(closer) else -1

    def _supply(self, element: Element) -> bool:
        """Write a missing element. Return False if the element's text can't be determined."""
        if isinstance(element, Marker):
            self.note(self.at, self.at, repr(element.core))
            self.write(element.text)
        elif element is Slot.ID:
            self.has_id = False
            self.write("0" * (self.repair.calls.id_length or 1))
        elif element is Slot.INDEX:
            self.write(str(self.repair.calls.index_start))
        return element in (Slot.ID, Slot.INDEX, Slot.ANY) or isinstance(element, Marker)

    def _name(self, after: str = "") -> bool:
        names = sorted(self.request._tool_names, key=len, reverse=True)
        word = MARKER_WORDS.match(self.text, self.at)
        name = self.repair.tool(word.group(), self.request) if word else ""
        ends = word is None or name in ("", word.group())
        end = self._named(names if ends else [name], after, ends=ends)
        if end:
            self.types = ArgumentTypes.of(self.request.tool(self.text[self.pieces[-1][1] : end]))
        return end > 0

    def _key(self, after: str = "") -> bool:
        declared = [key for key in self.types.declared if key not in self.keys]
        end = self._named(sorted(declared, key=len, reverse=True), after)
        if end:
            self.keys.append(self.text[self.pieces[-1][1] : end])
        return end > 0

    def _named(self, names: Sequence[str], after: str, *, ends: bool = True) -> int:
        """Parse one of `names` before the marker `after`. The name may have quotation marks.

        Returns the end of the name, or 0 if no name matches. If `ends` is False, letters may directly follow the name. Otherwise, the name
        must be a whole word.
        """
        start = end_of(_QUOTES, self.text, self.at, self.at + MAX_BLANK)
        start += len(NAMESPACE) * self.text.startswith(NAMESPACE, start)
        name = next((name for name in names if name and self.text.startswith(name, start)), "")
        end = start + len(name)
        if not name or (ends and re.compile(r"[\w-]").match(self.text, end)):
            return 0
        closed = end if after.startswith(('"', "'")) else end_of(_QUOTE, self.text, end)
        if self.text[self.at : start].strip() or closed > end:
            self.note(self.at, start, "just the name")
        self.write(name, start)
        self.at = closed
        return end

    def _word(self, slot: Slot, after: Elements) -> bool:
        """Copy the text of a slot, up to the next marker. Return False on failure."""
        stop = next((part.pieces[0] for part in after if isinstance(part, Marker) and part), "")
        end = (
            self.text.find(stop, self.at, self.at + MAX_WORD)
            if stop
            else end_of(re.compile(r"[\w.:-]*"), self.text, self.at)
        )
        if end < 0 or (self.text[self.at : end].split("\n")[1:] and slot is not Slot.ANY):
            return self._supply(slot)
        self.write(self.text[self.at : end], self.at)
        self.at = end
        return True

    def entry_at(self, at: int) -> bool:
        """Return whether an argument starts at `at`."""
        entry = self.repair.calls.arguments.entry
        first = entry[0]
        if isinstance(first, Slot) or not first:
            return not self.keys and not self.closer_at(at)
        if self.text.startswith(first.pieces[0], at) or self._unopened(at) >= 0:
            return True
        kept, self.at = self.at, at
        spelled = self.spelled(first, literal_of(*entry[2:3]))
        self.at = kept
        return spelled is not None

    def closer_at(self, at: int, *, foreign: bool = True) -> bool:
        """Return whether an end marker of the call is at `at`.

        A marker that is truncated at the end of the text counts too. If `foreign` is True, any closing tag counts.
        """
        here, ends = self.space(at), self.repair.ends
        rest = self.text[here : here + MAX_WORD]
        torn = here + len(rest) == len(self.text) and any(self.repair.torn(rest, closer) for closer in ends)
        if torn or rest.startswith(ends):
            return True
        return foreign and bool(ends) and _CLOSING_TAG.match(rest) is not None

    def read_closers(self, markers: Sequence[Marker]) -> None:
        """Parse the end markers of the call. `closed` is set if at least one is found."""
        self.closed = not any(without_fences(marker.pieces) for marker in markers)
        for i, marker in enumerate(markers):
            if not without_fences(marker.pieces):
                self.write(marker.text)
            elif self.marker(marker):
                self.closed = True
            elif not self._torn(marker, markers[i + 1 :]):
                here = self.space(self.at)
                self.note(here, here, repr(marker.core))
                self.write(marker.text)

    def _torn(self, marker: Marker, after: Sequence[Marker]) -> bool:
        """Parse an end marker that is truncated at the end of the text, decorated, or from another format."""
        here = self.space(self.at)
        rest = self.text[here:]
        word = TAG_WORD.match(marker.core)
        end = 0
        if self.repair.torn(rest, marker.core):
            end = len(self.text)
        elif word and self.text.startswith(word.group(), here):
            end = end_of(LAST_LETTERS, self.text, here + len(word.group()))
        elif (foreign := _CLOSING_TAG.match(self.text, here)) and not any(foreign.group() in it.text for it in after):
            end = foreign.end()
        if end:
            self.note(here, end, repr(marker.core))
            self.write(marker.text)
            self.at, self.closed = end, True
        return end > 0


def _cut(pieces: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    return tuple(filter(None, (*pieces[:-1], pieces[-1].removesuffix(prefix))))
