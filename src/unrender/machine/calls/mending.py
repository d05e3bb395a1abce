r"""Reads a damaged call, without guessing.

Strategy: the same walk over the tree as for any call, with alternatives for each marker: it may be missing, repeated, torn or spelled
differently. Names, values and objects are read by the exact readers, which accept nothing unexpected here. The complete text of the call is
known, so nothing suspends.

Rules that prevent guessing:
- The exact readers come first. A call is read here only if they failed.
- The text contains the name of an offered tool, and the declared name of each argument.
- Each value is followed by its own end marker, or by another marker of the same call at the expected place.
- A call is read only if there is just one way to insert the missing markers.
- The arguments match the tool's schema.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from unrender.answer.literals import is_distinctive, without_fences
from unrender.answer.nodes import Element, Elements, Marker, literal_of
from unrender.answer.views import ATTRIBUTE, MARKER_WORDS, CallView
from unrender.errors import ParseError
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_LISTED, MAX_WORD
from unrender.machine.call_events import NAMESPACE, glued, name_call
from unrender.machine.calls.arguments import key_text
from unrender.machine.calls.cursor import NAME_END, Left, Steps
from unrender.machine.calls.envelope import ObjectReader
from unrender.machine.events import Malformed
from unrender.machine.frames import CallState
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import Machine
from unrender.machine.past import relabel
from unrender.messages.wire import Request
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes, coerce
from unrender.values.finder import end_of
from unrender.values.resumable import DONE
from unrender.values.scanner import LiteralScanner, LiteralStyle

_SPACE = re.compile(r"\s*")
_QUOTES = re.compile(r"[\"'\s]*")
_QUOTE = re.compile(r"[\"']?")
_TAG_END = re.compile(r"[\"']?\s*>")
_PREFIX = re.compile(r"\w+[.:/]$")
"""Matches a prefix that some templates put before a name, such as `functions.` in `to=functions.now`."""
_CLOSING_TAG = re.compile(r"</[^<>\s]{1,64}>")
_TAG_WORD = re.compile(r"\W+\w+")
_LAST_LETTERS = re.compile(r"[^\s<>]{0,16}>?")
"""Matches the rest of a truncated or decorated end marker, after the marker's word."""
_NOISE = re.compile(r"\s*[\"',:;=.]{1,3}\s*")
"""Matches punctuation that models insert between two markers, or use instead of a marker."""
_BEFORE_TORN = re.compile(r"[{(\[<]?[\"']?")
"""Matches characters that models write before a damaged start marker, such as `{"` in `{"function=` for `<function=`."""
_SENTENCE_ENDS = (".", ":", "!", "?", ">", "\u3002", "\uff1a")
"""Characters that may end a sentence before a call."""
_JSON_PART = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\]<]|[^\W\d][\w.-]*', re.DOTALL)
"""Matches the parts of JSON text that determine its end: strings, brackets, possible starts of markers, and words."""
_ARGUMENTS = re.compile(r"(?:arguments|parameters)\b")
"""Names that models use for an argument that contains all arguments."""
_BARE_WORDS = re.compile(r"[\w.+*/:@%-]+(?: [\w.+*/:@%-]+)*")
_CLOSER_HEAD = re.compile(r"\W+\w")
_LEAST = 2


@dataclass(frozen=True, slots=True)
class Mended:
    """A damaged call that was read. Positions are those of the original text."""

    call: CallState
    arguments: str
    damage: tuple[tuple[Malformed, Role], ...]
    """The differences from the format, with the roles of their text."""
    spans: tuple[tuple[Role, int], ...]
    """The role and end of each piece of the call."""
    ends_run: bool
    """True if the text includes the end marker of a run of calls."""


def mend(view: CallView, text: str, start: int, request: Request) -> Mended | None:
    """Return the damaged call at the start of `text`, whose position in the output is `start`.

    Returns None if the text has no damage, or if reading the call would require guessing.
    """
    machine = Machine(program=(), request=request, ids=CallIds(numbered_id), roles={}, strict=True)
    machine.buffer, machine.base, machine.final, machine.call = text, start, True, CallState(start=start)
    mender = _Mender(machine, view)
    try:
        mender.call()
        return mender.mended()
    except (Left, ParseError):
        return None


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
class _Mender(ObjectReader):
    """Reads one damaged call, whose whole text is in the buffer of a machine of its own."""

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
        self.damage.append((Malformed(self.text[at:end], self._place(at), wanted), role))

    def _place(self, at: int) -> int:
        """Return the position in the output of an index in the buffer."""
        return self.machine.base + at + sum(shift for begin, shift in self.edits if begin <= at)

    def after_space(self, at: int) -> int:
        return end_of(_SPACE, self.text, at, at + MAX_BLANK)

    def mended(self) -> Mended | None:
        """Return the call that was read. Return None if it isn't damaged, or if its arguments don't match the schema."""
        machine, call = self.machine, self.machine.current
        arguments = "".join(call.arguments)
        if not self.damage or not call.types.fit(arguments):
            return None
        roles, ends = machine.span_roles, [self._place(end - machine.base) for end in machine.span_ends]
        for event, role in self.damage:
            if event.text:
                relabel(roles, ends, event.position, event.position + len(event.text), role)
        call.id = self._id_text()
        return Mended(call, arguments, tuple(self.damage), tuple(zip(roles, ends, strict=True)), self.ends_run)

    def _id_text(self) -> str:
        calls = self.view.calls
        if calls.id_parts is None or (
            not calls.envelope and Slot.ID not in self.words and Slot.INDEX not in self.words
        ):
            return self.words.get(Slot.ID, self.machine.current.id)
        parts = calls.function[slice(*calls.id_parts)]
        return "".join(part.text if isinstance(part, Marker) else self.words.get(part, "") for part in parts).strip()

    # The call.

    def call(self) -> None:
        """Read the call, up to its end markers."""
        calls = self.view.calls
        opened = [self._opened(marker) for marker in (calls.open, calls.call_open) if marker]
        if calls.envelope:
            self._balanced()
            self._exactly(self.envelope(calls.envelope))
            self._drop_stray()
        else:
            at = calls.function.index(Slot.ARGUMENTS)
            self._elements(calls.function[:at], shown=any(opened))
            self._all_arguments()
            self._elements(calls.function[at + 1 : calls.last_slot + 1], shown=True)
        self._closers([marker for marker in calls.closing if marker])
        # Calls need the end marker of the run, even if more calls follow or the start marker is missing.
        self.ends_run = bool(calls.close) and self._found(calls.close)
        if not (self.closed or self.ends_run):
            self.stop()

    def _exactly(self, reading: Steps[Any]) -> None:
        """Run an exact reader. It can't suspend, since the whole text is known."""
        for _ in reading:
            self.stop()

    def _opened(self, marker: Marker) -> bool:
        """Read a start marker and the words after it. Return whether the marker was found."""
        if not self._found(marker):
            return False
        here = self.after_space(self.at)
        head = behind_words(self.view, self.text[here : here + MAX_WORD], self.machine.request)
        words = self.text[here : here + head.start()].rstrip() if head else ""
        if MARKER_WORDS.search(words) and not any(mark in words for mark in self.view.shown):
            self.note(here, here + len(words), "a call")
            self.go(here + len(words))
        return True

    # Markers.

    def _found(self, marker: Marker, *, partly: bool = True) -> bool:
        """Read a marker, and return whether it was found. If `partly` is True, some pieces of the marker may be missing."""
        at, missing, found, sure, known = self.at, [], False, False, len(self.damage)
        single = self.view.single
        for piece in marker.pieces:
            here = self.after_space(at)
            if self.text.startswith(piece, here):
                at, found, sure = here + len(piece), True, sure or piece in single
                again = self.after_space(at)
                while piece in single and self.text.startswith(piece, again):
                    self.note(again, again + len(piece), "the text after it")
                    at = again + len(piece)
                    again = self.after_space(at)
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

    def _elements(self, elements: Elements, *, shown: bool) -> None:
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
            elif element and not self._found(element, partly=False):
                i += self._otherwise(elements, i, element, shown=shown) - 1
            shown = True
            i += 1

    def _otherwise(self, elements: Elements, i: int, marker: Marker, *, shown: bool) -> int:
        """Read the text that replaces a marker. Return the number of elements that the text covers."""
        if (slot := elements[i + 1 : i + 2]) and slot[0] in (Slot.NAME, Slot.KEY):
            if opened := self._spelled(marker, literal_of(*elements[i + 2 : i + 3])):
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
                if (not rest and shown) or (rest and self._found(rest)):
                    self.note(self.at, self.at, repr(prefix.group()))
                    return 1
        if self._found(marker):
            return 1
        ways = (self._skipped(elements, i), self._torn_opener(marker), self._noise(elements, i)) if shown else ()
        return next(filter(None, ways), 0) or self.stop()

    def _spelled(self, marker: Marker, after: str) -> re.Match[str] | None:
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
            after = elements[j] if j < len(elements) else None
            if after is None:  # Arguments without a start marker come next.
                entries = bool(self.view.arguments.entry)
                there = self._entry_at(here) if entries else self.text.startswith("{", here)
            else:
                first = after.pieces[:1] if isinstance(after, Marker) else ()
                there = is_distinctive(literal_of(after).strip()) and self.text.startswith(first, here)
            if there:
                return j - i if all(map(self._supply, elements[i:j])) else 0
        return 0

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
        marker = elements[i]
        assert isinstance(marker, Marker)
        end = end_of(_NOISE, self.text, self.at)
        if end == self.at:
            return 0
        if self.text.startswith(marker.pieces[0], end):
            self.note(self.at, end, repr(marker.core))
            self.go(end)
            return int(self._found(marker, partly=False))
        after = elements[i + 1] if i + 1 < len(elements) else None
        there = False
        if isinstance(after, Marker):
            there = is_distinctive(after.core) and self.text.startswith(after.pieces[0], end)
        elif after is None and self.view.arguments.entry:
            there = self._entry_at(end)
        if there:
            self.note(self.at, end, repr(marker.core))
            self.go(end)
        return int(there)

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
        key = any(self.text.startswith(key + closer, begin) for key in self._unused())
        return begin if key and is_distinctive(closer) else -1

    def _unused(self) -> Iterator[str]:
        """Yield the declared arguments that have no value yet."""
        return (key for key in self.types.declared if key not in self.keys)

    # Names and words.

    def _tool(self, after: str = "") -> None:
        names = sorted(self.machine.request._tool_names, key=len, reverse=True)
        word = MARKER_WORDS.match(self.text, self.at)
        name = tool_named(self.view, word.group(), self.machine.request) if word else ""
        ends = word is None or name in ("", word.group())
        name_call(self.machine, self._one_of(names if ends else [name], after, ends=ends))
        self.words[Slot.NAME] = self.machine.current.name

    def _argument(self, after: str = "") -> None:
        self.machine.current.key = self._one_of(sorted(self._unused(), key=len, reverse=True), after)
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
        end = (
            self.text.find(stop, self.at, self.at + MAX_WORD)
            if stop
            else end_of(re.compile(r"[\w.:-]*"), self.text, self.at)
        )
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

    # Arguments.

    def _all_arguments(self) -> None:
        arguments, machine = self.view.arguments, self.machine
        if arguments.open and not self._found(arguments.open):
            self.stop()
        if not arguments.entry:
            self._balanced()
            self._exactly(self._object())
            self._drop_stray()
        else:
            start, known = machine.way_back((), -1).start, len(self.damage)
            try:
                self._each_entry()
            except Left:
                if self.keys:
                    raise
                machine.go_back(start)
                del self.damage[known:]
                if not (self._tagged() or self._boxed() or self._closer_at(self.at, foreign=False)):
                    raise
            machine.frames.clear()
            machine.arguments("}" if machine.current.count else "{}")
        if arguments.close and not self._found(arguments.close):
            self.stop()

    def _each_entry(self) -> None:
        """Read all arguments. At least one is required."""
        arguments = self.view.arguments
        entry, separated = arguments.entry, False
        while len(self.keys) <= MAX_LISTED:
            if not self._entry_at(self.after_space(self.at)) and not separated:
                break
            self._elements(entry[: entry.index(Slot.VALUE)], shown=True)
            self._raw() if self.view.raw else self._quoted()
            if not arguments.separator:
                continue
            here = self.after_space(self.at)
            separated = self.text.startswith(arguments.separator.core, here)
            if not separated:
                return
            self.go(here + len(arguments.separator.core))
        if not self.keys or len(self.keys) > MAX_LISTED:
            self.stop()

    def _quoted(self) -> None:
        """Read a value with its own delimiters. A bare word is a string if the schema requires a string."""
        arguments, call = self.view.arguments, self.machine.current
        start = self.after_space(self.at)
        end = self._scanned(start, self.view.mended_style)
        follows = tuple(filter(None, (arguments.separator.core, arguments.close.core, arguments.closer.core)))
        after = next((it for it in follows if end and self.text.startswith(it, self.after_space(end))), "")
        if after:
            self.go(start)
            self._value_up_to(end, self.text[end : self.after_space(end)] + after)
        else:
            stops = [at for text in follows if (at := self.text.find(text, start)) >= 0]
            end = min(stops, default=start)
            word = self.text[start:end].strip()
            if not _BARE_WORDS.fullmatch(word) or self.types.types(self.keys[-1]) != {"string"}:
                self.stop()
            self.note(start, start, "a quotation mark")
            self.go(start)
            self._given(json.dumps(word, ensure_ascii=False))
            self.go(start + len(word), Role.ARGUMENT)
            self.go(end)
        call.kind = ""
        if arguments.closer and not self._found(arguments.closer):
            self.stop()

    def _given(self, value: str) -> None:
        """Add the JSON text of the current argument's value."""
        call = self.machine.current
        self.machine.arguments(key_text(call) + value)
        call.keys.add(call.key)
        call.count += 1

    def _value_up_to(self, end: int, after: str) -> None:
        """Read the current argument's value exactly. The value ends at `end`, before the text `after`."""
        whole, self.machine.buffer = self.text, self.text[:end] + after
        self._exactly(self._value())
        if self.at != end:
            self.stop()
        self.machine.buffer = whole

    def _raw(self) -> None:
        """Read a raw value up to its end."""
        entry = self.view.arguments.entry
        at = entry.index(Slot.VALUE)
        before, after = literal_of(entry[at - 1]), entry[at + 1 :]
        closer = "".join(self.keys[-1] if part is Slot.KEY else literal_of(part) for part in after)
        core = closer.strip()
        trail = before[len(before.rstrip()) :]
        start = self.at + len(trail) * self.text.startswith(trail, self.at)
        ended = self._raw_end(start, core) if core else None
        if ended is None:
            self.stop()
        end, next_at = ended
        lead = closer[: len(closer) - len(closer.lstrip())]
        if lead and self.text.endswith(lead, start, end):
            end -= len(lead)
        value = self.text[start:end]
        torn = not self.text.startswith(core, self.after_space(end)) and _holds_part(value, core)
        torn = torn or any(_begins_with_part(value, piece) for piece in self.missing)
        if torn or any(text in value for text in self.view.shown):
            self.stop()
        self.go(start)
        self._value_up_to(end, closer)
        self.go(next_at)

    def _raw_end(self, start: int, core: str) -> tuple[int, int] | None:
        """Return the end of a raw value, and the position after its end marker. Return None if the end is ambiguous."""
        text, head = self.text, literal_of(self.view.arguments.entry[0]).strip()
        torn = _TAG_WORD.match(core)
        options = [re.escape(core), re.escape(head or core), *map(re.escape, self.view.last_ends)]
        if torn:
            options.append(rf"(?<=\n){re.escape(torn.group())}(?!\w)")
        for found in re.compile("|".join(options)).finditer(text, start):
            at, end = found.span()
            if text.startswith(core, at):
                end = at + len(core)
                again = self.after_space(end)
                while core in self.view.single and text.startswith(core, again):
                    self.note(again, again + len(core), "the text after it")
                    end = again + len(core)
                    again = self.after_space(end)
                if self._follows(self.after_space(end)):
                    return at, end
            elif self._ends_open(at, core):
                self.note(at, at, repr(core))
                return start + len(text[start:at].rstrip()), at
            elif torn and text.startswith(torn.group(), at):
                after = end_of(_LAST_LETTERS, text, end)
                if self._follows(self.after_space(after)) and core not in text[at:after]:
                    self.note(at, after, repr(core))
                    return at, after
        return None

    def _ends_open(self, at: int, core: str) -> bool:
        """Return whether a value without an end marker ends at `at`, before the next argument or the end of the call."""
        head = literal_of(self.view.arguments.entry[0]).strip()
        if self.text.startswith(head, at):
            return self._next_entry(at, core)
        return self.text.startswith(self.view.last_ends, at) and not self._later(core, at) and self._closer_at(at)

    def _next_entry(self, at: int, core: str) -> bool:
        """Return whether the next argument starts at `at`, if the current value has no end marker."""
        entry, text = self.view.arguments.entry, self.text
        head = literal_of(entry[0]).strip()
        on_line = "\n" in self.view.arguments.closer.text + literal_of(entry[0])
        if on_line and text[max(at - MAX_BLANK, 0) : at].rstrip(" ")[-1:] != "\n":
            return False
        key = next((key for key in self._unused() if text.startswith(key, at + len(head))), "")
        after = literal_of(*entry[2:3]).strip() or ">"
        declared = bool(key) and text.startswith(after[:1], self.after_space(at + len(head) + len(key)))
        return declared and self._later(head, at) >= self._later(core, at)

    def _later(self, mark: str, at: int) -> int:
        """Return the number of occurrences of a marker at or after `at`."""
        if mark not in self.spots:
            self.spots[mark] = [found.start() for found in re.finditer(re.escape(mark), self.text)]
        return len(self.spots[mark]) - bisect_left(self.spots[mark], at)

    def _follows(self, at: int) -> bool:
        """Return whether the text at `at` may follow a value."""
        return at >= len(self.text) or self._entry_at(at) or self._closer_at(at)

    def _entry_at(self, at: int) -> bool:
        """Return whether an argument starts at `at`."""
        entry = self.view.arguments.entry
        first = entry[0]
        if isinstance(first, Slot) or not first:
            return not self.keys and not self._closer_at(at)
        if self.text.startswith(first.pieces[0], at) or self._unopened(at) >= 0:
            return True
        kept, self.machine.at = self.at, at
        spelled = self._spelled(first, literal_of(*entry[2:3]))
        self.machine.at = kept
        return spelled is not None

    # Objects.

    def _scanned(self, start: int, style: LiteralStyle) -> int:
        """Return the end of a value with its own delimiters, or 0 if there is no such value."""
        end, _, status = LiteralScanner(style).scan(self.text, start, final=True)
        return end if status is DONE else 0

    def _balanced(self) -> None:
        """Correct the JSON object at the current position. Missing closing brackets are inserted, and a wrong one is dropped."""
        start = self.after_space(self.at)
        if not self.text.startswith("{", start):
            self.stop()
        self.go(start)
        if self._scanned(start, LiteralStyle()):
            return
        text, opened, edits = self.text, "", list[tuple[int, str, str]]()
        for found in _JSON_PART.finditer(text, start):
            at, part = found.start(), found.group()
            before = text[max(at - MAX_BLANK, 0) : at].rstrip()[-1:]
            dropped = any(not new for _, _, new in edits)
            if part in "{[":
                opened += "}" if part == "{" else "]"
            elif part == opened[-1:]:
                opened = opened[:-1]
            elif part in self.machine.request._tool_names and before == ":":
                self.note(at, at, "a quotation mark")
                edits.append((at, part, json.dumps(part)))
            elif part in "}]" and opened and before in ('"', "}", "]") and not dropped:
                self.note(at, found.end(), repr(opened[-1]))
                edits.append((at, part, ""))  # Drop a single wrong bracket, as in `{"a": "x"]}`.
            elif part in '}]"' or self._closer_at(at):
                if part in '}]"' or not opened or dropped:
                    self.stop()
                self.note(at, at, repr(opened[::-1]))
                edits.append((start + len(text[start:at].rstrip()), "", opened[::-1]))
                opened = ""
            if not opened:
                self._correct(edits)
                return
        self.stop()

    def _correct(self, edits: Sequence[tuple[int, str, str]]) -> None:
        """Replace texts of the buffer. An edit consists of an index, the text there, and the text that replaces it."""
        pieces, done, size = [""], 0, 0
        for at, old, new in edits:
            pieces += (self.text[done:at], new)
            size += at - done
            if new:
                # An inserted character has no width in the original text.
                kept = new.find(old) if old else 0
                self.edits += ((size + i + 1, -1) for i in range(len(new)) if not kept <= i < kept + len(old))
            else:
                self.edits.append((size, len(old)))
            size, done = size + len(new), at + len(old)
        self.machine.buffer = "".join((*pieces, self.text[done:]))

    def _drop_stray(self) -> None:
        """Drop closing brackets, and closing tags of other formats, if an end marker of the call follows."""
        if extra := self.view.stray.match(self.text, self.at):
            self.note(self.at, extra.end(), "the end of the call")
            self.go(extra.end())

    def _tagged(self, box: str = "") -> bool:
        """Read a JSON object that contains the arguments of a call whose arguments should be between tags.

        `box` is an end marker that may follow the object. Returns False if there is no such object before the end of the call.
        """
        start = self.after_space(self.at)
        end = self._scanned(start, LiteralStyle(strict=True)) if self.text.startswith("{", start) else 0
        try:
            given = json.loads(self.text[start:end]) if end else None
        except (ValueError, RecursionError):
            return False
        if not isinstance(given, Mapping) or len(given) > MAX_LISTED:
            return False
        after = self.after_space(end)
        if box and self.text.startswith("}", after):
            after = self.after_space(after + 1)
        if box and self.text.startswith(box, after):
            after += len(box)
        if not self._closer_at(after):
            return False
        self.note(start, end, "arguments between tags", Role.ARGUMENT)
        call = self.machine.current
        for key, value in given.items():
            call.key = key
            written = isinstance(value, str) and self.view.raw
            self._given(coerce(value, call.types.types(key)) if written else json.dumps(value, ensure_ascii=False))
        if after > self.after_space(end):
            self.note(end, after, "the end of the call")
        self.go(after)
        return True

    def _boxed(self) -> bool:
        """Read a JSON object that is the only argument, called `arguments` or `parameters`, as the arguments of the call."""
        entry, at = self.view.arguments.entry, self.at
        value = entry.index(Slot.VALUE)
        for part in entry[:value]:
            word = _ARGUMENTS.match(self.text, self.after_space(at)) if part is Slot.KEY else None
            core = literal_of(part).strip()
            if word is None and (isinstance(part, Slot) or not self.text.startswith(core, self.after_space(at))):
                return False
            at = word.end() if word else self.after_space(at) + len(core)
        self.note(self.at, at, "arguments between tags")
        self.go(at)
        return self._tagged(literal_of(*entry[value + 1 :]).strip())

    # End markers.

    def _closer_at(self, at: int, *, foreign: bool = True) -> bool:
        """Return whether an end marker of the call is at `at`.

        A marker that is truncated at the end of the text counts too. If `foreign` is True, any closing tag counts.
        """
        here, ends = self.after_space(at), self.view.last_ends
        rest = self.text[here : here + MAX_WORD]
        torn = here + len(rest) == len(self.text) and any(self.view.torn(rest, closer) for closer in ends)
        if torn or rest.startswith(ends):
            return True
        return foreign and bool(ends) and _CLOSING_TAG.match(rest) is not None

    def _closers(self, markers: Sequence[Marker]) -> None:
        """Read the end markers of the call. `closed` is set if at least one is found."""
        self.closed = not any(without_fences(marker.pieces) for marker in markers)
        for i, marker in enumerate(markers):
            if not without_fences(marker.pieces):
                continue
            if self._found(marker):
                self.closed = True
            elif not self._torn_closer(marker, markers[i + 1 :]):
                here = self.after_space(self.at)
                self.note(here, here, repr(marker.core))

    def _torn_closer(self, marker: Marker, after: Sequence[Marker]) -> bool:
        """Read an end marker that is truncated at the end of the text, decorated, or from another format."""
        here = self.after_space(self.at)
        word = _TAG_WORD.match(marker.core)
        end = 0
        if self.view.torn(self.text[here:], marker.core):
            end = len(self.text)
        elif word and self.text.startswith(word.group(), here):
            end = end_of(_LAST_LETTERS, self.text, here + len(word.group()))
        elif (foreign := _CLOSING_TAG.match(self.text, here)) and not any(foreign.group() in it.text for it in after):
            end = foreign.end()
        if end:
            self.note(here, end, repr(marker.core))
            self.go(end)
            self.closed = True
        return end > 0


def _cut(pieces: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    return tuple(filter(None, (*pieces[:-1], pieces[-1].removesuffix(prefix))))


def _begins_with_part(value: str, opener: str) -> bool:
    """Return whether a value starts with a part of its start marker, as in `<arg_valueRome`, `arg_value>Rome` or `<arg_value/>Rome`."""
    head = _CLOSER_HEAD.match(opener)
    rests = (*(opener[at:] for at in range(1, len(opener) - _LEAST)), *MARKER_WORDS.findall(opener))
    value = value.lstrip()
    return value.startswith(head.group() if head else opener) or value.startswith(rests)


def _holds_part(value: str, closer: str) -> bool:
    """Return whether a value ends with a part of its end marker, as in `Rome</para`, `Romeparameter>` or `Romeparameter`."""
    head = _CLOSER_HEAD.match(closer)
    begun = head is not None and head.group() in value.rpartition("\n")[2]
    ends = (*(closer[at:] for at in range(1, len(closer) - _LEAST)), *MARKER_WORDS.findall(closer))
    return begun or value.endswith(tuple(end for end in ends if len(end) > _LEAST))
