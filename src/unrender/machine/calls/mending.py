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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.answer import Marker, literal_of
from unrender.answer.views import MARKER_WORDS, CallView
from unrender.errors import ParseError
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_LISTED, MAX_WORD
from unrender.machine import CallIds, Malformed, numbered_id
from unrender.machine.calls import Left, Steps
from unrender.machine.calls.damaged import LAST_LETTERS, TAG_WORD, DamagedReader, behind_words
from unrender.machine.frames import CallState, relabel
from unrender.machine.interpreter import Machine
from unrender.messages import Request
from unrender.nodes import Role
from unrender.values import DONE
from unrender.values.coercion import coerce
from unrender.values.finder import end_of
from unrender.values.scanner import LiteralScanner, LiteralStyle

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


@dataclass(slots=True, eq=False)
class _Mender(DamagedReader):
    """Reads one damaged call."""

    def mended(self) -> Mended | None:
        """Return the call that was read. Return None if it isn't damaged, or if its arguments don't match the schema."""
        machine, call = self.machine, self.machine.current
        if not self.damage or not call.types.fit("".join(call.arguments)):
            return None
        # The words before the tool's name may be a value whose markers are missing.
        if self.worded and len(self.damage) > 1:
            return None
        roles, ends = machine.span_roles, [self.place(end - machine.base) for end in machine.span_ends]
        for event, role in self.damage:
            if event.text:
                relabel(roles, ends, event.position, event.position + len(event.text), role)
        call.id = self._id_text()
        return Mended(call, tuple(self.damage), tuple(zip(roles, ends, strict=True)), self.ends_run)

    def _id_text(self) -> str:
        calls = self.view.calls
        known = calls.envelope or not self.words.keys().isdisjoint((Slot.ID, Slot.INDEX))
        if calls.id_parts is None or not known:
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
            self.elements(calls.function[:at], shown=any(opened))
            self._all_arguments()
            self.elements(calls.function[at + 1 : calls.last_slot + 1], shown=True)
        self.closers([marker for marker in calls.closing if marker])
        # Calls need the end marker of the run, even if more calls follow or the start marker is missing.
        self.ends_run = bool(calls.close) and self.found_marker(calls.close)
        if not (self.closed or self.ends_run):
            self.stop()

    def _exactly(self, reading: Steps[Any]) -> None:
        """Run an exact reader. It can't suspend, since the whole text is known."""
        for _ in reading:
            self.stop()

    def _opened(self, marker: Marker) -> bool:
        """Read a start marker and the words after it. Return whether the marker was found."""
        if not self.found_marker(marker):
            return False
        here = self.after_space(self.at)
        head = behind_words(self.view, self.text[here : here + MAX_WORD], self.machine.request)
        words = self.text[here : here + head.start()].rstrip() if head else ""
        if MARKER_WORDS.search(words) and not any(mark in words for mark in self.view.shown):
            self.worded = True
            self.note(here, here + len(words), "a call")
            self.go(here + len(words))
        return True

    # Arguments.

    def _all_arguments(self) -> None:
        arguments, machine = self.view.arguments, self.machine
        if arguments.open and not self.found_marker(arguments.open):
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
                start.restore(machine)
                del self.damage[known:]
                empty = bool(arguments.close) and self.text.startswith(arguments.close.core, self.after_space(self.at))
                if not (empty or self._tagged() or self._boxed() or self.closer_at(self.at, foreign=False)):
                    raise
            machine.frames.clear()
            machine.arguments("}" if machine.current.count else "{}")
        if arguments.close and not self.found_marker(arguments.close):
            self.stop()

    def _each_entry(self) -> None:
        """Read all arguments. At least one is required."""
        arguments = self.view.arguments
        entry, separated = arguments.entry, False
        while len(self.keys) <= MAX_LISTED:
            if not self.entry_at(self.after_space(self.at)) and not separated:
                break
            self.elements(entry[: entry.index(Slot.VALUE)], shown=True)
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
        if arguments.closer and not self.found_marker(arguments.closer):
            self.stop()

    def _given(self, value: str) -> None:
        """Add the JSON text of the current argument's value."""
        self.begin_value()
        self.machine.arguments(value)

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
        torn = TAG_WORD.match(core)
        options = [re.escape(core), re.escape(head or core), *map(re.escape, self.view.last_ends)]
        if torn:
            options.append(rf"(?<=\n){re.escape(torn.group())}(?!\w)")
        for found in re.compile("|".join(options)).finditer(text, start):
            at, end = found.span()
            if text.startswith(core, at):
                end = self.after_repeats(core, at + len(core))
                if self._follows(self.after_space(end)):
                    return at, end
            elif self._ends_open(at, core):
                self.note(at, at, repr(core))
                return start + len(text[start:at].rstrip()), at
            elif torn and text.startswith(torn.group(), at):
                after = end_of(LAST_LETTERS, text, end)
                if self._follows(self.after_space(after)) and core not in text[at:after]:
                    self.note(at, after, repr(core))
                    return at, after
        return None

    def _ends_open(self, at: int, core: str) -> bool:
        """Return whether a value without an end marker ends at `at`, before the next argument or the end of the call."""
        entry, text = self.view.arguments.entry, self.text
        head = literal_of(entry[0]).strip()
        if not text.startswith(head, at):
            return text.startswith(self.view.last_ends, at) and not self._later(core, at) and self.closer_at(at)
        on_line = "\n" in self.view.arguments.closer.text + literal_of(entry[0])
        if on_line and text[max(at - MAX_BLANK, 0) : at].rstrip(" ")[-1:] != "\n":
            return False
        key = next((key for key in self.unused() if text.startswith(key, at + len(head))), "")
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
        return at >= len(self.text) or self.entry_at(at) or self.closer_at(at)

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
            elif part in '}]"' or self.closer_at(at):
                # After a comma, another value is missing, too.
                if part in '}]"' or not opened or dropped or before == ",":
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
        if not self.closer_at(after):
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
