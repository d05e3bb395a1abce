"""Reads the markers and words of a damaged call.

Strategy: each marker may be missing, repeated, torn or spelled differently. The complete text of the call is known, so nothing suspends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from unrender.answer import Element, Elements, Marker, is_distinctive, literal_of, without_fences
from unrender.answer.views import ATTRIBUTE, MARKER_WORDS, CallView
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_WORD
from unrender.machine import Malformed
from unrender.machine.call_events import NAMESPACE, glued, name_call
from unrender.machine.calls import NAME_END, Left
from unrender.machine.calls.envelope import ObjectReader
from unrender.messages import Request
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import SPACE, end_of

_QUOTES = re.compile(r"[\"'\s]*")
_QUOTE = re.compile(r"[\"']?")
_TAG_END = re.compile(r"[\"']?\s*>")
_PREFIX = re.compile(r"\w+[.:/]$")
"""Matches a prefix that some templates put before a name, such as `functions.` in `to=functions.now`."""
_CLOSING_TAG = re.compile(r"</[^<>\s]{1,64}>")
_WORD = re.compile(r"[\w.:-]*")
TAG_WORD = re.compile(r"\W+\w+")
LAST_LETTERS = re.compile(r"[^\s<>]{0,16}>?")
"""Matches the rest of a truncated or decorated end marker, after the marker's word."""
_NOISE = re.compile(r"\s*[\"',:;=.]{1,3}\s*")
"""Matches punctuation that models insert between two markers, or use instead of a marker."""
_BEFORE_TORN = re.compile(r"[{(\[<]?[\"']?")
"""Matches characters that models write before a damaged start marker, such as `{"` in `{"function=` for `<function=`."""
_SENTENCE_ENDS = (".", ":", "!", "?", ">", "\u3002", "\uff1a")
"""Characters that may end a sentence before a call."""


def first_word(view: CallView, text: str) -> re.Match[str] | None:
    """Return the first word of `text` that isn't part of a start marker of a call. Return None if there is no such word."""
    return next((word for word in MARKER_WORDS.finditer(text) if word.group() not in view.opening_words), None)


def behind_words(view: CallView, text: str, request: Request) -> re.Match[str] | None:
    """Return the start of a call in `text`, up to the tool name. Only words may precede the call. Return None if there is no such call."""
    for found in view.named_head.finditer(text):
        if request.tool(found["name"].removeprefix(NAMESPACE)):
            before = text[: found.start()].rstrip()
            # Any words are allowed before a distinctive marker. Before a bracket or a bare name, a complete sentence is required.
            ended = is_distinctive(found["open"]) or before[-1:] in _SENTENCE_ENDS
            return found if ended and "`" not in before else None
    return None


def tool_named(view: CallView, word: str, request: Request) -> str:
    """Return the offered tool with the name `word`, or "". In `word`, the name of a declared argument may directly follow the tool name."""
    if request.tool(word):
        return word
    return glued(request, word) if Slot.KEY in view.arguments.entry[1:2] else ""


@dataclass(slots=True, eq=False)
class DamagedReader(ObjectReader):
    """Reads the markers of one damaged call, whose whole text is in the buffer of a machine of its own."""

    damage: list[tuple[Malformed, Role]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    words: dict[Slot, str] = field(default_factory=dict)
    """The texts of the slots of the call."""
    missing: tuple[str, ...] = ()
    """Missing pieces of the latest marker."""
    edits: list[tuple[int, int]] = field(default_factory=list)
    """Corrections of JSON: an index in the corrected text, and by how much it differs from the index in the original text."""
    spots: dict[str, list[int]] = field(default_factory=dict)
    """Cached positions of each marker in the text."""
    worded: bool = False
    """True if words precede the tool's name."""
    closed: bool = False
    """True if an end marker proves that the call is complete."""
    ends_run: bool = False

    @property
    def text(self) -> str:
        return self.machine.buffer

    @property
    def at(self) -> int:
        return self.machine.at

    @property
    def types(self) -> ArgumentTypes:
        return self.machine.current.types

    def stop(self) -> NoReturn:
        """End the reader, since the call can't be repaired."""
        raise Left

    def go(self, end: int, role: Role = Role.MARKER) -> None:
        """Consume the text up to `end`."""
        self.machine.take(role, end)

    def note(self, at: int, end: int, wanted: str, role: Role = Role.MALFORMED) -> None:
        """Record that the text from `at` to `end` differs from the expected text `wanted`."""
        self.damage.append((Malformed(self.text[at:end], self.place(at), wanted), role))

    def place(self, at: int) -> int:
        """Return the position in the output of an index in the buffer."""
        return self.machine.base + at + sum(shift for begin, shift in self.edits if begin <= at)

    def after_space(self, at: int) -> int:
        return end_of(SPACE, self.text, at, at + MAX_BLANK)

    # Markers.

    def found_marker(self, marker: Marker, *, partly: bool = True) -> bool:
        """Read a marker, and return whether it was found. If `partly` is True, some pieces of the marker may be missing."""
        at, missing, found, sure, known = self.at, [], False, False, len(self.damage)
        single = self.view.single
        for piece in marker.pieces:
            here = self.after_space(at)
            if self.text.startswith(piece, here):
                at, found, sure = self.after_repeats(piece, here + len(piece)), True, sure or piece in single
            elif found and (noise := end_of(_NOISE, self.text, at)) > at and self.text.startswith(piece, noise):
                self.note(at, noise, repr(piece))
                at = noise + len(piece)
            elif without_fences([piece]):
                missing.append((here, piece))
                layout = marker.before(piece)
                at += len(layout) * self.text.startswith(layout, at)
        # A piece that isn't unique doesn't identify this marker, because it may belong to any marker, such as `<|sep|>` in
        # `<|close|>call<|sep|>`.
        if not found or (missing and not (partly and sure)):
            del self.damage[known:]
            return False
        self.go(at)
        self.missing = tuple(piece for _, piece in missing)
        for here, piece in missing:
            self.note(here, here, repr(piece))
        return True

    def after_repeats(self, piece: str, at: int) -> int:
        """Return the position after repetitions of a marker that ends at `at`."""
        while piece in self.view.single and self.text.startswith(piece, again := self.after_space(at)):
            at = again + len(piece)
            self.note(again, at, "the text after it")
        return at

    def elements(self, elements: Elements, *, shown: bool) -> None:
        """Read markers and slots in order. `shown` is True if earlier text already indicates a call."""
        i = 0
        while i < len(elements):
            element, after = elements[i], elements[i + 1 :]
            if element is Slot.NAME:
                self._tool(literal_of(*after[:1]))
            elif element is Slot.KEY:
                self._argument(literal_of(*after[:1]))
            elif isinstance(element, Slot):
                self._slot(element, after)
            elif element and not self.found_marker(element, partly=False):
                i += self._otherwise(elements, i, element, shown=shown) - 1
            shown = True
            i += 1

    def _otherwise(self, elements: Elements, i: int, marker: Marker, *, shown: bool) -> int:
        """Read the text that replaces a marker. Return the number of elements that the text covers."""
        if (slot := elements[i + 1 : i + 2]) and slot[0] in (Slot.NAME, Slot.KEY):
            if opened := self.spelled(marker, literal_of(*elements[i + 2 : i + 3])):
                self.note(self.at, opened.end(), repr(marker.text.strip()))
                self.go(opened.end())
                self._tool() if slot[0] is Slot.NAME else self._argument()
                closing = _TAG_END.match(self.text, self.at)
                if not closing:
                    self.stop()
                self.go(closing.end())
                return 3
            if slot[0] is Slot.KEY and (begin := self._unopened(self.at)) >= 0:
                self.note(self.at, begin, repr(marker.core))
                self.go(begin)
                return 1
            # The prefix of a name may be missing, as in `to=now` instead of `to=functions.now`.
            prefix = _PREFIX.search(marker.text)
            if slot[0] is Slot.NAME and prefix:
                rest = Marker(marker.text[: prefix.start()], _cut(marker.pieces, prefix.group()))
                if (not rest and shown) or (rest and self.found_marker(rest)):
                    self.note(self.at, self.at, repr(prefix.group()))
                    return 1
        if self.found_marker(marker):
            return 1
        if not shown:
            self.stop()
        return self._skipped(elements, i) or self._torn_opener(marker) or self._noise(elements, i) or self.stop()

    def spelled(self, marker: Marker, after: str) -> re.Match[str] | None:
        """Match another spelling of the same tag, such as `<function name="` for `<function=`."""
        tag = ATTRIBUTE.search(marker.core)
        if not tag or not _TAG_END.match(after.strip()):
            return None
        head = rf"{re.escape(marker.core[: tag.start()])}<{re.escape(tag.group(1))}(?:\s+name)?\s*=\s*"
        return re.compile(head).match(self.text, self.after_space(self.at))

    def _skipped(self, elements: Elements, i: int) -> int:
        """Supply the missing elements before the next element that is present. Return the number of missing elements, or 0 on failure."""
        here = self.after_space(self.at)
        for j in range(i + 1, len(elements) + 1):
            if self._starts(elements[j : j + 1], here):
                return j - i if all(map(self._supply, elements[i:j])) else 0
        return 0

    def _starts(self, elements: Elements, at: int) -> bool:
        """Return whether the first element is at `at`. If there is none, arguments without a start marker come next."""
        if not elements:
            return self.entry_at(at) if self.view.arguments.entry else self.text.startswith("{", at)
        first = elements[0].pieces[:1] if isinstance(elements[0], Marker) else ()
        return is_distinctive(literal_of(elements[0]).strip()) and self.text.startswith(first, at)

    def _supply(self, element: Element) -> bool:
        """Record a missing element. Return False if the element's text can't be determined."""
        if isinstance(element, Marker):
            self.note(self.at, self.at, repr(element.core))
        if element is Slot.INDEX:
            self.words[element] = str(self.view.calls.index_start)
        return element in (Slot.ID, Slot.INDEX, Slot.ANY) or isinstance(element, Marker)

    def _torn_opener(self, marker: Marker) -> int:
        """Read the start marker of a tag whose bracket is missing, as in `{"function=now>` for `<function=now>`.

        Returns 1 on success, otherwise 0.
        """
        begin = self.after_space(self.at)
        here = end_of(_BEFORE_TORN, self.text, begin)
        if ATTRIBUTE.search(marker.core) is None or not self.text.startswith(core := marker.core.lstrip("<"), here):
            return 0
        self.note(begin, here + len(core), repr(marker.core))
        self.go(here + len(core))
        return 1

    def _noise(self, elements: Elements, i: int) -> int:
        """Read punctuation before a marker, or instead of one.

        Returns 1 if the marker or the next element follows the punctuation, otherwise 0.
        """
        marker, after, end = elements[i], elements[i + 1 : i + 2], end_of(_NOISE, self.text, self.at)
        assert isinstance(marker, Marker)
        there = self.text.startswith(marker.pieces[0], end)
        instead = bool(after or self.view.arguments.entry) and self._starts(after, end)
        if end == self.at or not (there or instead):
            return 0
        self.note(self.at, end, repr(marker.core))
        self.go(end)
        return int(not there or self.found_marker(marker, partly=False))

    def _unopened(self, at: int) -> int:
        """Return the position of a declared key whose start marker is missing or wrong. Return -1 if there is no such key."""
        entry = self.view.arguments.entry
        first = entry[0]
        if not isinstance(first, Marker) or not first or entry[1] is not Slot.KEY:
            return -1
        closer = literal_of(entry[2]).strip()
        at = self.after_space(at)
        wrong = max((mark for mark in self.view.shown if self.text.startswith(mark, at)), key=len, default="")
        begin = self.after_space(at + len(wrong))
        key = any(self.text.startswith(key + closer, begin) for key in self.unused())
        return begin if key and is_distinctive(closer) else -1

    def unused(self) -> Iterator[str]:
        """Yield the declared arguments that have no value yet."""
        return (key for key in self.types.declared if key not in self.keys)

    def entry_at(self, at: int) -> bool:
        """Return whether an argument starts at `at`."""
        entry = self.view.arguments.entry
        first = entry[0]
        if isinstance(first, Slot) or not first:
            return not self.keys and not self.closer_at(at)
        if self.text.startswith(first.pieces[0], at) or self._unopened(at) >= 0:
            return True
        kept, self.machine.at = self.at, at
        spelled = self.spelled(first, literal_of(*entry[2:3]))
        self.machine.at = kept
        return spelled is not None

    # Names and words.

    def _tool(self, after: str = "") -> None:
        names = sorted(self.machine.request._tool_names, key=len, reverse=True)
        word = MARKER_WORDS.match(self.text, self.at)
        name = tool_named(self.view, word.group(), self.machine.request) if word else ""
        ends = word is None or name in ("", word.group())
        name_call(self.machine, self._one_of(names if ends else [name], after, ends=ends))
        self.words[Slot.NAME] = self.machine.current.name

    def _argument(self, after: str = "") -> None:
        self.machine.current.key = self._one_of(sorted(self.unused(), key=len, reverse=True), after)
        self.keys.append(self.machine.current.key)

    def _one_of(self, names: Sequence[str], after: str, *, ends: bool = True) -> str:
        """Read and return one of `names` before the marker `after`. The name may have quotation marks.

        If `ends` is False, letters may directly follow the name. Otherwise, the name must be a whole word.
        """
        start = end_of(_QUOTES, self.text, self.at, self.at + MAX_BLANK)
        start += len(NAMESPACE) * self.text.startswith(NAMESPACE, start)
        name = next((name for name in names if name and self.text.startswith(name, start)), "")
        end = start + len(name)
        if not name or (ends and re.compile(r"[\w-]").match(self.text, end)):
            self.stop()
        closed = end if after.startswith(('"', "'")) else end_of(_QUOTE, self.text, end)
        if self.text[self.at : start].strip() or closed > end:
            self.note(self.at, start, "just the name")
        self.go(start)
        self.go(end, Role.NAME)
        self.go(closed)
        return name

    def _slot(self, slot: Slot, after: Elements) -> None:
        """Read the text of a slot, up to the next marker."""
        stop = next((part.pieces[0] for part in after if isinstance(part, Marker) and part), "")
        end = self.text.find(stop, self.at, self.at + MAX_WORD) if stop else end_of(_WORD, self.text, self.at)
        if end < 0 or (self.text[self.at : end].split("\n")[1:] and slot is not Slot.ANY):
            if not self._supply(slot):
                self.stop()
            return
        word = self.text[self.at : end].strip()
        wrong = slot is Slot.TYPE and self.view.type_words and word not in self.view.type_words
        if slot is not Slot.ANY and (not word or wrong or NAME_END.search(word)):
            self.stop()
        self.words[slot] = word
        if slot is Slot.TYPE:
            self.machine.current.kind = word
        self.go(end, Role.ID if slot in (Slot.ID, Slot.INDEX) else Role.MARKER)

    # End markers.

    def closer_at(self, at: int, *, foreign: bool = True) -> bool:
        """Return whether an end marker of the call is at `at`.

        A marker that is truncated at the end of the text counts too. If `foreign` is True, any closing tag counts.
        """
        here, ends = self.after_space(at), self.view.last_ends
        rest = self.text[here : here + MAX_WORD]
        torn = here + len(rest) == len(self.text) and any(self.view.torn(rest, closer) for closer in ends)
        if torn or rest.startswith(ends):
            return True
        return foreign and bool(ends) and _CLOSING_TAG.match(rest) is not None

    def closers(self, markers: Sequence[Marker]) -> None:
        """Read the end markers of the call. `closed` is set if at least one is found."""
        self.closed = not any(without_fences(marker.pieces) for marker in markers)
        for i, marker in enumerate(markers):
            if not without_fences(marker.pieces):
                continue
            if self.found_marker(marker):
                self.closed = True
            elif not self._torn_closer(marker, markers[i + 1 :]):
                here = self.after_space(self.at)
                self.note(here, here, repr(marker.core))

    def _torn_closer(self, marker: Marker, after: Sequence[Marker]) -> bool:
        """Read an end marker that is truncated at the end of the text, decorated, or from another format."""
        here = self.after_space(self.at)
        word = TAG_WORD.match(marker.core)
        end = 0
        if self.view.torn(self.text[here:], marker.core):
            end = len(self.text)
        elif word and self.text.startswith(word.group(), here):
            end = end_of(LAST_LETTERS, self.text, here + len(word.group()))
        elif (foreign := _CLOSING_TAG.match(self.text, here)) and not any(foreign.group() in it.text for it in after):
            end = foreign.end()
        if end:
            self.note(here, end, repr(marker.core))
            self.go(end)
            self.closed = True
        return end > 0


def _cut(pieces: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    return tuple(filter(None, (*pieces[:-1], pieces[-1].removesuffix(prefix))))
