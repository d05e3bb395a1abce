r"""Rewrites a slightly damaged call in the syntax of its format.

Strategy: walk over the markers of the call, in the order of the answer tree. Insert missing markers, drop repeated ones, and replace other
spellings. Copy names, keys and values unchanged. Then the exact parser parses the result. The repair succeeds if the parser reports no
problems.

Rules that prevent guessing:
- The text contains the name of an offered tool, and the declared name of each argument.
- Each value is followed by its own end marker, or by another marker of the same call at the expected place.
- A call is repaired only if there is just one way to insert the missing markers.
- The arguments of a repaired call match the tool's schema.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from unrender.answer.follow import as_skeleton
from unrender.answer.nodes import Marker, literal_of
from unrender.format import Slot
from unrender.limits import MAX_BLANK, MAX_LISTED, MAX_WORD
from unrender.machine.repair.markers import LAST_LETTERS, MARKER_WORDS, TAG_WORD, MarkerWalk, Repair, Repaired
from unrender.messages.wire import Request
from unrender.nodes import Role
from unrender.values.finder import end_of
from unrender.values.notations import encode_entry
from unrender.values.resumable import DONE
from unrender.values.scanner import LiteralScanner, LiteralStyle

_JSON_PART = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\]<]|[^\W\d][\w.-]*', re.DOTALL)
"""Matches the parts of JSON text that determine its end: strings, brackets, possible starts of markers, and words."""
_ARGUMENTS = re.compile(r"(?:arguments|parameters)\b")
"""Names that models use for an argument that contains all arguments."""
_CLOSER_HEAD = re.compile(r"\W+\w")
_LEAST = 2


def read_damaged(repair: Repair, text: str, request: Request) -> Repaired | None:
    """Return the repaired call at the start of `text`. Return None if the call isn't damaged, or if a repair would require guessing."""
    walk = _Walk(repair, text, request)
    if not walk.call() or not walk.damage:
        return None
    pieces, damage = tuple(walk.pieces), tuple(walk.damage)
    return Repaired(pieces, walk.at, damage, tuple(walk.keys), walk.has_id, walk.ends_run)


@dataclass(slots=True)
class _Walk(MarkerWalk):
    places: dict[str, list[int]] = field(default_factory=dict)
    """Cached positions of each marker in the text."""

    def call(self) -> bool:
        """Parse and rewrite the call. Return whether the call can be repaired."""
        calls = self.repair.calls
        at = calls.function.index(Slot.ARGUMENTS)
        opened = [self._opened(marker) for marker in (calls.open, calls.call_open) if marker]
        if calls.envelope:
            return self._object() and self._ended()
        if not self.elements(calls.function[:at], shown=any(opened)):
            return False
        if not self._arguments() or not self.elements(calls.function[at + 1 : calls.last_slot + 1], shown=True):
            return False
        return self._ended()

    def _opened(self, marker: Marker) -> bool:
        """Parse a start marker and the words after it. Return whether the marker was found."""
        if not self.marker(marker, wanted=False):
            return False
        here = self.space(self.at)
        head = self.repair.behind_words(self.text[here : here + MAX_WORD], self.request)
        words = self.text[here : here + head.start()].rstrip() if head else ""
        if MARKER_WORDS.search(words) and not any(mark in words for mark in self.repair.known):
            self.note(here, here + len(words), "a call")
            self.at = here + len(words)
        return True

    def _ended(self) -> bool:
        """Parse the end markers of the call. Return whether at least one was found."""
        calls = self.repair.calls
        self.read_closers([marker for marker in calls.closing if marker])
        # The exact parser needs the end marker of the run, even if more calls follow or the start marker is missing.
        self.ends_run = bool(calls.close) and self.marker(calls.close, wanted=False)
        return self.closed or self.ends_run

    def _arguments(self) -> bool:
        arguments = self.repair.calls.arguments
        opened = self.marker(arguments.open) if arguments.open else True
        if not arguments.entry:
            return opened and self._object() and (not arguments.close or self.marker(arguments.close))
        if not opened:
            return False
        begin, written, known = self.at, len(self.pieces), len(self.damage)
        if not self._entries():
            if self.keys:
                return False
            self.at = begin
            del self.pieces[written:], self.damage[known:]
            if not (self._tagged_object() or self._boxed_object() or self.closer_at(self.at, foreign=False)):
                return False
        if arguments.close:
            return self.marker(arguments.close)
        return True

    def _object(self) -> bool:
        """Copy one JSON object. Missing closing brackets are inserted, and a superfluous one is dropped."""
        start = self.space(self.at)
        if not self.text.startswith("{", start):
            return False
        end = self._scanned(start, LiteralStyle())
        if end:
            self.write(self.text[start:end], start)
            self.at = end
        elif not self._broken_object(start):
            return False
        self._drop_closers()
        return True

    def _broken_object(self, start: int) -> bool:
        """Copy a JSON object with wrong or missing closing brackets, or with an unquoted tool name."""
        text, opened, copied, stray = self.text, "", start, False
        for found in _JSON_PART.finditer(text, start):
            at, part = found.start(), found.group()
            if part in "{[":
                opened += "}" if part == "{" else "]"
            elif part == opened[-1:]:
                opened = opened[:-1]
            elif part in self.request._tool_names and text[max(at - MAX_BLANK, 0) : at].rstrip()[-1:] == ":":
                self.write(text[copied:at], copied)
                self._quote(part, json.dumps(part), at)
                copied = found.end()
            elif (
                part in "}]"
                and opened
                and not stray
                and text[max(at - MAX_BLANK, 0) : at].rstrip()[-1:] in ('"', "}", "]")
            ):
                stray = True  # Drop a single wrong bracket, as in `{"a": "x"]}`.
                self.note(at, found.end(), repr(opened[-1]))
                self.write(text[copied:at], copied)
                copied = found.end()
            elif part in '}]"' or self.closer_at(at):
                if part in '}]"' or not opened or stray:
                    return False
                self.note(at, at, repr(opened[::-1]))
                end = start + len(text[start:at].rstrip())
                self.write(text[copied:end], copied)
                self.write(opened[::-1])
                self.at = end
                return True
            if not opened:
                self.write(text[copied : found.end()], copied)
                self.at = found.end()
                return True
        return False

    def _quote(self, word: str, quoted: str, at: int) -> None:
        """Write an unquoted word with quotation marks."""
        before, _, after = quoted.partition(word)
        self.note(at, at, "a quotation mark")
        self.write(before)
        self.write(word, at)
        self.write(after)

    def _drop_closers(self) -> None:
        """Drop closing brackets, and closing tags of other formats, if an end marker of the call follows."""
        own = "|".join(map(re.escape, self.repair.ends))
        extra = (
            re.compile(rf"(?:\s*(?!{own})(?:</[^<>\s]{{1,64}}>|[}}\]]))+(?=\s*(?:{own}))").match(self.text, self.at)
            if own
            else None
        )
        if extra:
            self.note(self.at, extra.end(), "the end of the call")
            self.at = extra.end()

    def _scanned(self, start: int, style: LiteralStyle) -> int:
        """Return the end of a value with its own delimiters, or 0 if there is no such value."""
        end, _, status = LiteralScanner(style).scan(self.text, start, final=True)
        return end if status is DONE else 0

    def _tagged_object(self, box: str = "") -> bool:
        """Write the entries of a JSON object as arguments between tags. `box` is an end marker that may follow the object.

        Returns False if there is no such object before the end of the call.
        """
        start = self.space(self.at)
        end = self._scanned(start, LiteralStyle(strict=True)) if self.text.startswith("{", start) else 0
        try:
            given = json.loads(self.text[start:end]) if end else None
        except (ValueError, RecursionError):
            return False
        if not isinstance(given, Mapping) or len(given) > MAX_LISTED:
            return False
        after = self.space(end)
        if box and self.text.startswith("}", after):
            after = self.space(after + 1)
        if box and self.text.startswith(box, after):
            after += len(box)
        if not self.closer_at(after):
            return False
        self.note(start, end, "arguments between tags", Role.ARGUMENT)
        arguments = self.repair.calls.arguments
        for key, value in given.items():
            self.write(encode_entry(key, value, arguments.codec, as_skeleton(arguments.entry)))
        if after > self.space(end):
            self.note(end, after, "the end of the call")
        self.at = after
        return True

    def _boxed_object(self) -> bool:
        """Write the entries of a JSON object that is the only argument, called `arguments` or `parameters`, as arguments between tags."""
        arguments = self.repair.calls.arguments
        entry, at = arguments.entry, self.at
        value = entry.index(Slot.VALUE)
        for part in entry[:value]:
            word = _ARGUMENTS.match(self.text, self.space(at)) if part is Slot.KEY else None
            if word is None and (not isinstance(part, Marker) or not self.text.startswith(part.core, self.space(at))):
                return False
            at = word.end() if word else self.space(at) + len(literal_of(part).strip())
        self.note(self.at, at, "arguments between tags")
        self.at = at
        return self._tagged_object(literal_of(*entry[value + 1 :]).strip())

    def _entries(self) -> bool:
        """Copy all arguments. Return False if an argument can't be parsed, or if other text is found."""
        arguments = self.repair.calls.arguments
        entry = arguments.entry
        value = entry.index(Slot.VALUE)
        separated = False
        while len(self.keys) <= MAX_LISTED:
            if not self.entry_at(self.space(self.at)) and not separated:
                return bool(self.keys)
            if not self.elements(entry[:value], shown=True):
                return False
            ended = self._raw() if self.repair.style is None else self._quoted(self.repair.style)
            if not ended:
                return False
            if not arguments.separator:
                continue
            here = self.space(self.at)
            separated = self.text.startswith(arguments.separator.core, here)
            if not separated:
                return True
            self.write(arguments.separator.text)
            self.at = here + len(arguments.separator.core)
        return False

    def _quoted(self, style: LiteralStyle) -> bool:
        """Copy a value with its own delimiters. A bare word is quoted if the schema requires a string."""
        arguments = self.repair.calls.arguments
        start = self.space(self.at)
        end = self._scanned(start, style)
        follows = (arguments.separator.core, arguments.close.core, arguments.closer.core)
        if end and self.text.startswith(tuple(filter(None, follows)), self.space(end)):
            self.write(self.text[start:end], start)
        else:
            stops = [at for text in filter(None, follows) if (at := self.text.find(text, start)) >= 0]
            end = min(stops, default=start)
            word = self.text[start:end].strip()
            if not re.fullmatch(r"[\w.+*/:@%-]+(?: [\w.+*/:@%-]+)*", word) or self.types.types(self.keys[-1]) != {
                "string"
            }:
                return False
            self._quote(word, encode_entry(self.keys[-1], word, arguments.codec, (Slot.VALUE,)), start)
        self.at = end
        return not arguments.closer or self.marker(arguments.closer)

    def _raw(self) -> bool:
        """Copy a raw value up to its end."""
        arguments = self.repair.calls.arguments
        entry = arguments.entry
        at = entry.index(Slot.VALUE)
        before, after = literal_of(entry[at - 1]), entry[at + 1 :]
        closer = "".join(self.keys[-1] if part is Slot.KEY else literal_of(part) for part in after)
        core = closer.strip()
        if not core:
            return False
        trail = before[len(before.rstrip()) :]
        start = self.at + len(trail) * self.text.startswith(trail, self.at)
        ended = self._raw_end(start, core)
        if ended is None:
            return False
        end, self.at = ended
        lead = closer[: len(closer) - len(closer.lstrip())]
        if lead and self.text.endswith(lead, start, end):
            end -= len(lead)
        value = self.text[start:end]
        torn = not self.text.startswith(core, self.space(end)) and _holds_part(value, core)
        torn = torn or any(_begins_with_part(value, piece) for piece in self.missing)
        if torn or any(text in value for text in self.repair.known):
            return False
        self.write(value, start)
        self.write(closer)
        return True

    def _raw_end(self, start: int, core: str) -> tuple[int, int] | None:
        """Return the end of a raw value, and the position after its end marker. Return None if the end is ambiguous."""
        text, head = self.text, literal_of(self.repair.calls.arguments.entry[0]).strip()
        torn = TAG_WORD.match(core)
        options = [re.escape(core), re.escape(head or core), *map(re.escape, self.repair.ends)]
        if torn:
            options.append(rf"(?<=\n){re.escape(torn.group())}(?!\w)")
        for found in re.compile("|".join(options)).finditer(text, start):
            at, end = found.span()
            if text.startswith(core, at):
                end = at + len(core)
                again = self.space(end)
                while core in self.repair.single and text.startswith(core, again):
                    self.note(again, again + len(core), "the text after it")
                    end = again + len(core)
                    again = self.space(end)
                if self._follows(self.space(end)):
                    return at, end
            elif self._ends_open(at, core):
                self.note(at, at, repr(core))
                return start + len(text[start:at].rstrip()), at
            elif torn and text.startswith(torn.group(), at):
                after = end_of(LAST_LETTERS, text, end)
                if self._follows(self.space(after)) and core not in text[at:after]:
                    self.note(at, after, repr(core))
                    return at, after
        return None

    def _ends_open(self, at: int, core: str) -> bool:
        """Return whether a value without an end marker ends at `at`, before the next argument or the end of the call."""
        head = literal_of(self.repair.calls.arguments.entry[0]).strip()
        if self.text.startswith(head, at):
            return self._next_entry(at, core)
        return self.text.startswith(self.repair.ends, at) and not self._later(core, at) and self.closer_at(at)

    def _next_entry(self, at: int, core: str) -> bool:
        """Return whether the next argument starts at `at`, if the current value has no end marker."""
        entry, text = self.repair.calls.arguments.entry, self.text
        head = literal_of(entry[0]).strip()
        closer = self.repair.calls.arguments.closer
        on_line = "\n" in closer.text + literal_of(entry[0])
        if on_line and text[max(at - MAX_BLANK, 0) : at].rstrip(" ")[-1:] != "\n":
            return False
        key = next(
            (key for key in self.types.declared if text.startswith(key, at + len(head)) and key not in self.keys), ""
        )
        after = literal_of(*entry[2:3]).strip() or ">"
        declared = bool(key) and text.startswith(after[:1], self.space(at + len(head) + len(key)))
        return declared and self._later(head, at) >= self._later(core, at)

    def _later(self, mark: str, at: int) -> int:
        """Return the number of occurrences of a marker at or after `at`."""
        if mark not in self.places:
            self.places[mark] = [found.start() for found in re.finditer(re.escape(mark), self.text)]
        return len(self.places[mark]) - bisect_left(self.places[mark], at)

    def _follows(self, at: int) -> bool:
        """Return whether the text at `at` may follow a value."""
        return at >= len(self.text) or self.entry_at(at) or self.closer_at(at)


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
