"""Instructions for the inside of a call: its start, and the names and values of its arguments.

Rules: the rules of `instructions` apply. A scanner is stored in `machine.scanner` from its first step to its last, so that a suspended
value can resume.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import unescape
from typing import assert_never

from unrender.format import Codec, Strings, Typing
from unrender.limits import MAX_BLANK, MAX_NAME
from unrender.machine.call_events import begin_call, begins_line, commit, complete_call, seal, start_call, unquote
from unrender.machine.frames import CallState
from unrender.machine.instructions import SPACE, undecided
from unrender.machine.interpreter import OR, Machine
from unrender.machine.names import NAME_END
from unrender.machine.quotation import Quotation, going_on
from unrender.nodes import Role
from unrender.values.coercion import STRING, agreed
from unrender.values.declared import NOT_HERE, odd_names
from unrender.values.doubts import CDATA_END, CDATA_START, Doubts, leaves_open
from unrender.values.finder import Finder, end_of
from unrender.values.json_text import escape, may_be_in_word
from unrender.values.marked_ends import MarkedEnds, ValueMarks
from unrender.values.notations import notation_of
from unrender.values.raw import CodeValueScanner, RawScanner, TagStyle, XmlScanner
from unrender.values.resumable import DONE, FAILED, MORE, Scanner, Status
from unrender.values.scanner import WORD, LiteralScanner, LiteralStyle, QuotedScanner
from unrender.values.unmarked_ends import Follow

_CDATA = Finder((CDATA_END,))
_GOES_ON = re.compile(r"[^\W_]|[\"':]")
"""Characters that can't directly follow a value without delimiters."""
_QUOTES = ("'", '"')
"""Quotation marks of Python strings. Models sometimes quote values even if the format has raw text."""


@dataclass(frozen=True, slots=True)
class BeginCall:
    """The start of a possible call."""

    whole: bool = False
    """True if the call is buffered until its end."""
    checked: bool = False
    """True if the call's arguments must match the tool's schema."""
    hub: int = -1
    """Address of the text around the call if the call is in another format's syntax, otherwise -1."""
    section: str = ""
    """Start marker of the section around the calls, for calls in another format's syntax."""

    def step(self, machine: Machine) -> bool:
        if self.hub >= 0:
            return self._sibling(machine)
        begin_call(machine).repaired = self.checked  # the arguments of repaired calls are checked
        frame = machine.frames[-1]
        if self.whole and not frame.holds:
            frame.holds = frame.whole = True
        return machine.go_on()

    def _sibling(self, machine: Machine) -> bool:
        """Start a call in another format's syntax. The call must start a line, and no text may follow it."""
        frame = machine.frames[-1]
        # Check only the first call of a run, because that call's frame also holds the later calls.
        if len(machine.frames) < 2 or machine.frames[-2].quotation is None:
            # Reject a call after a section marker that is inside a sentence, as in "Write <calls>\n<call>".
            before = machine.context(frame.at, frame.spans, MAX_BLANK).rstrip()
            opened = bool(self.section) and before.endswith(self.section)
            if opened or frame.holds or frame.role is not Role.CONTENT or not begins_line(machine, frame):
                return machine.fail("a call in the format's syntax")
            frame.hub, frame.quotation, frame.holds, frame.whole = self.hub, Quotation(any_text=True), True, True
        begin_call(machine).repaired = True
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class MarkId:
    """The start or end of an id."""

    ends: bool = False

    def step(self, machine: Machine) -> bool:
        if self.ends:
            machine.current.id = machine.since(machine.current.mark)
        else:
            machine.current.mark = machine.position
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class Commit:
    """Makes all text before the current position final."""

    recover: int = -1
    """Address at which execution continues if the committed call fails. -1 if no call is committed."""
    starts: bool = False
    """True if the start of the call can be emitted, because its id is known or the call has none."""
    release: bool = False
    """True if calls that were buffered become final too."""

    def step(self, machine: Machine) -> bool:
        if self.release:
            machine.frames.pop()
        commit(machine, self.recover)
        if self.starts:
            start_call(machine)
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class ReadKey:
    """Parses the name of an argument, which ends at one of `stops`."""

    stops: Finder
    bare: bool
    """True if whitespace and brackets also end the name."""
    opener: str = ""
    """The marker before the name, which models sometimes repeat."""
    heads: tuple[str, ...] = ()
    """Prefixes of the format's markers. Only declared names may contain such a prefix."""
    closing: str = ""
    """Prefix that turns a name into a closing tag, such as `/` in `</city>`. Undeclared names can't start with this prefix."""

    def step(self, machine: Machine) -> bool:
        buffer, start, call = machine.buffer, machine.at, machine.current
        if self.opener and buffer.startswith(self.opener, start):
            machine.malformed(self.opener, "the name of an argument")
            machine.take(Role.MARKER, start + len(self.opener))
            return False
        if self.opener and machine.may_begin(self.opener):
            return True
        odd = call.types.odd
        declared = odd.end_at(buffer, start, self.stops, final=machine.final) if odd else NOT_HERE
        if declared is None:
            return True
        if declared != NOT_HERE:
            call.key = buffer[start:declared]
            machine.take(Role.NAME, declared)
            return machine.go_on()
        # The name ends at the next stop, such as `>` in `<parameter=city>`.
        end, literal = self.stops.find(buffer, start, start + MAX_NAME)
        if not literal and not machine.final and len(buffer) - start < MAX_NAME:
            return True
        key = key_of(buffer[start:end]) if literal else ""
        if not self.closing and key not in call.types.declared and unescape(key) in call.types.declared:
            key = unescape(key)  # Unescape names such as `a&amp;b`.
        if not key or (self.bare and NAME_END.search(key)) or not self._may_be(key, call):
            return machine.fail("the name of an argument")
        call.key = key
        machine.take(Role.NAME, end)
        return machine.go_on()

    def _may_be(self, key: str, call: CallState) -> bool:
        """Return whether `key` may be the name of an argument. In a repaired call, only declared names are allowed."""
        if key in call.types.declared:
            return True
        marked = any(head in key for head in self.heads) or (self.closing and key.startswith(self.closing))
        return not marked and (not call.repaired or call.types.knows(key))


def key_of(text: str) -> str:
    """Return the argument name in `text`, without surrounding whitespace and quotation marks. Return "" if the name is invalid."""
    key = text.strip().strip("\"'")
    return "" if "\n" in key else key


def run_scanner(machine: Machine) -> Status:
    """Run the current scanner, emit the consumed text, and return the status. If the scanner fails, the machine fails too."""
    scanner = machine.scanner
    assert scanner is not None
    end, text, status = scanner.scan(machine.buffer, machine.at, final=machine.final)
    if end < machine.at:
        machine.reread += machine.at - end
        _return_to(machine, machine.base + end)
    machine.take(Role.ARGUMENT, end)
    machine.arguments(text)
    if status == MORE and not machine.final:
        # Let following text that can't end the value take the fast path, which runs no instructions.
        machine.flow = scanner.flow
        return MORE
    if status != DONE:
        machine.fail("the rest of the arguments" if status == MORE else scanner.wanted)
        return FAILED
    # A call whose name isn't known yet may turn out to be text, so the envelope reports the duplicate key only once the name is known.
    if machine.current.name and (duplicate := scanner.duplicate):
        machine.malformed(duplicate, "another argument")
    machine.scanner = None
    return DONE


def _return_to(machine: Machine, position: int) -> None:
    """Move back to `position`, which must be in the latest span."""
    machine.recall(position)
    machine.at = position - machine.base
    roles, ends = machine.span_roles, machine.span_ends
    if len(ends) > 1 and ends[-2] >= position:
        del roles[-1], ends[-1]
    else:
        ends[-1] = position


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """Parses all arguments as one JSON object, or as a JSON string that contains one."""

    style: LiteralStyle

    def step(self, machine: Machine) -> bool:
        if machine.scanner is None:
            if machine.at >= len(machine.buffer) and not machine.final:
                return True
            head = machine.buffer[machine.at : machine.at + 1]
            # Accept a JSON string too, because some formats encode the arguments twice: `"{\"city\": \"Rome\"}"`.
            if head not in ("{", '"'):
                return machine.fail("a JSON object")
            machine.scanner = LiteralScanner(self.style) if head == "{" else QuotedScanner(self.style)
        status = run_scanner(machine)
        if status is not DONE:
            return status is MORE
        machine.current.closed = True
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class ReadValue:
    """Parses the value of one argument."""

    codec: Codec
    suffix: Finder | Follow
    """Text that ends a raw value."""
    style: LiteralStyle
    """Notation of values that need no end marker because they have their own delimiters."""
    tags: TagStyle | None = None
    ends: MarkedEnds | None = None
    """Other texts that end a raw value if its end marker is missing."""
    between: int = 0
    """Address at which execution continues after a value without an end marker."""
    doubts: Doubts | None = None
    """Strings that values can't contain. None if values have their own delimiters."""

    def step(self, machine: Machine) -> bool:
        call = machine.current
        if machine.scanner is None and not self._open(machine, call):
            return True
        scanner = machine.scanner
        assert scanner is not None
        status = run_scanner(machine)
        if status is not DONE:
            return status is MORE
        torn = scanner.torn if isinstance(scanner, RawScanner) else None
        if self.doubts is not None:
            text, call.value = machine.since(call.value or 0), None
            if self._crosses(machine, text):
                return machine.quote()
            if self._is_doubtful(machine, self.doubts, text, closed=torn is None):
                return machine.fail("the end of the value")
        if torn is not None:
            return self._leave(machine, call, torn)
        if call.kind == CDATA_START:
            machine.take(Role.MARKER, machine.at + len(CDATA_END))
        call.kind = ""
        return machine.go_on()

    def _crosses(self, machine: Machine, text: str) -> bool:
        """Return whether a value without an end marker contains the end of the quotation around its call."""
        ended = not isinstance(self.suffix, Follow) or self.suffix.closed
        return not ended and machine.quotation is not None and machine.quotation.closed_in(text)

    def _is_doubtful(self, machine: Machine, doubts: Doubts, text: str, *, closed: bool) -> bool:
        """Return whether `text` may contain more than the value, because a marker around the value is damaged."""
        buffer, at = machine.buffer, machine.at
        missing = machine.current.missing if doubts.between else ()
        if doubts.raised(text, closed=closed, missing=missing, tools=machine.request._tool_names):
            return True
        if not isinstance(self.suffix, Follow):
            return False
        # In `f(a=b(c)` at the end of the output, the bracket closes the inner bracket, so the value is incomplete.
        cut = machine.final and self.suffix.ends_in_part(buffer, at) and leaves_open(text)
        return cut or doubts.leads_on(text, buffer[at : at + MAX_NAME], missing)

    def _leave(self, machine: Machine, call: CallState, torn: int) -> bool:
        """Continue after a value whose end marker is missing or damaged.

        `torn` is the length of a damaged end marker.
        """
        assert self.ends is not None
        machine.take(Role.LAYOUT, end_of(SPACE, machine.buffer, machine.at))
        end = machine.at + torn
        machine.malformed(machine.buffer[machine.at : end], repr(self.ends.of(call.key, ()).closers[0]))
        machine.take(Role.MALFORMED, end)
        call.repaired, call.kind = True, ""
        return machine.go_to(self.between)

    def _open(self, machine: Machine, call: CallState) -> bool:
        if self.ends is not None and call.kind != CDATA_START and not self._drop_opener(machine, self.ends):
            return False
        if self.codec.cdata and not self._enter_cdata(machine, call):
            return False
        # Wait for the first character, because a quotation mark determines how the value is parsed.
        if isinstance(self.suffix, Follow) and machine.at == len(machine.buffer) and not machine.final:
            return False
        # Report a duplicate argument, as in `<city>Rome</city><city>Oslo</city>`.
        if call.key in call.keys:
            # The first value was already emitted, so emit the second one too. Most JSON parsers use the last value of a duplicate key.
            machine.malformed(call.key, "another argument")
        call.keys.add(call.key)
        machine.arguments(key_text(call))
        call.count += 1
        if self.doubts is not None:
            call.value = machine.position
        quoted = machine.buffer.startswith(_QUOTES, machine.at)
        machine.scanner = self.scanner(call, machine.request._tool_names, quoted=quoted, patient=machine.rereads)
        return True

    def _drop_opener(self, machine: Machine, ends: MarkedEnds) -> bool:
        """Drop a repeated start marker of a value. Return False if more text is needed."""
        size = ends.repeated(machine.buffer, machine.at, final=machine.final)
        if size:
            end = machine.at + size
            machine.malformed(machine.buffer[machine.at : end], "a value")
            machine.take(Role.MARKER, end)
        return size is not None

    def _enter_cdata(self, machine: Machine, call: CallState) -> bool:
        rest = machine.buffer[machine.at : machine.at + len(CDATA_START)]
        if rest == CDATA_START:
            machine.take(Role.MARKER, machine.at + len(rest))
            call.kind = CDATA_START
            return True
        return machine.final or not CDATA_START.startswith(rest)

    def scanner(self, call: CallState, tools: tuple[str, ...], *, quoted: bool, patient: bool = True) -> Scanner:
        """Return a new scanner for the current value of `call`.

        `quoted` is True if the value starts with a quotation mark. `patient` is True if the value's text may be parsed again.
        """
        # Only the name of a declared argument ends the value. In `f(city=Rome, or Oslo, days=3)`, the value ends before `days`.
        suffix = self.suffix
        if isinstance(suffix, Follow):
            suffix = suffix.among(call.types.names, call.types.odd, odd_names(tools))
        # A quotation mark may belong to a raw value or delimit it, as in `f(city="Rome")`. The text after the closing mark decides.
        if quoted and isinstance(suffix, Follow) and suffix.in_code:
            return CodeValueScanner(RawScanner(suffix, self._types(call)), suffix)
        if call.kind == CDATA_START:
            return RawScanner(_CDATA, STRING)
        doubt = None
        if self.ends is not None:
            ends = self.ends.of(call.key, call.types.declared)
            doubt = ValueMarks(ends, call.types, call.keys, patient=patient)
        if self.tags:
            return XmlScanner(self.tags, call.key, call.types, doubt)
        match self.codec.strings:
            case Strings.RAW:
                return RawScanner(suffix, self._types(call), self.codec.escapes, doubt)
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                odd = call.types.odd.names if self.style.in_code else ()
                return LiteralScanner(replace(self.style, names=odd) if odd else self.style)
            case _:
                assert_never(self.codec.strings)

    def _types(self, call: CallState) -> frozenset[str]:
        match self.codec.typed_by:
            case Typing.SYNTAX | Typing.SCHEMA:
                return call.types.types(call.key)
            case Typing.ATTRIBUTE:
                named = frozenset(kind for kind, word in self.codec.types if word == call.kind)
                return agreed(named, call.types.types(call.key))
            case _:
                assert_never(self.codec.typed_by)


def key_text(call: CallState) -> str:
    """Return the JSON text before the value of the current argument, including the key."""
    return ("{" if call.count == 0 else ", ") + f'"{escape(call.key)}": '


def literal_style(codec: Codec, suffix: Finder | Follow, *, in_code: bool = False) -> LiteralStyle:
    """Return the notation for those values of `codec` that need no end marker.

    `suffix` is the text after the value. If `in_code` is True, the suffix is a comma or a bracket.
    """
    notation = notation_of(codec)
    verbatim = notation.verbatim
    literals = suffix.literals if isinstance(suffix, Finder) else ()
    # A number ends at the first character of the end marker, as in `3</v>`. A letter, as in `e>`, may be part of the number.
    cores = sorted({core for literal in literals if (core := literal.strip())})
    return LiteralStyle(
        stops=tuple(dict.fromkeys(head for core in cores if not may_be_in_word(head := _head_of(core)))),
        ends=tuple(dict.fromkeys(core[0] for core in cores)),
        quote_open=verbatim.open if verbatim else "",
        quote_close=verbatim.close if verbatim else "",
        marks=Finder((verbatim.close, *(form for _, form in codec.escapes))) if verbatim and codec.escapes else None,
        escapes=codec.escapes,
        bare_keys=notation.inside.bare_keys,
        in_code=in_code and verbatim is not None and len(verbatim.close) == 1,
        glued=in_code,
    )


def _head_of(marker: str) -> str:
    """Return the shortest prefix of `marker` that can't be part of the word before it.

    If the marker starts with a letter, the prefix is the marker's whole first word, because a single letter may continue the word before
    it.
    """
    return marker[: end_of(WORD, marker, 0)] if may_be_in_word(marker[0]) else marker[0]


@dataclass(frozen=True, slots=True)
class CloseTag:
    """Parses a self-closing tag of a call without arguments, as in `<invoke name="now"/>`. Other text isn't consumed."""

    quote: str
    """Text between the name and `/>`."""
    tail: int
    """Address at which execution continues after the call."""
    closers: int
    """Number of end markers that the tag replaces."""
    is_last: bool
    """True if the call has no other end marker."""
    arguments: Finder
    """Start markers of arguments, which must not follow the tag."""

    def step(self, machine: Machine) -> bool:
        buffer, call = machine.buffer, machine.current
        rest = buffer[machine.at : machine.at + len(self.quote)]
        end = end_of(SPACE, buffer, machine.at + len(rest), machine.at + MAX_NAME)
        found = rest == self.quote and buffer.startswith("/>", end)
        if not found:
            begun = len(rest) < len(self.quote) or buffer[end : end + 2] in ("", "/")
            return (not machine.final and begun and self.quote.startswith(rest)) or machine.go_on()
        after = end_of(SPACE, buffer, end + 2, end + MAX_NAME)
        if not machine.final and (after == len(buffer) or self.arguments.may_grow(buffer, after)):
            return True
        commit(machine, self.tail)
        start_call(machine)
        if self.arguments.at(buffer, after) or not call.types.fit("{}"):
            return machine.fail("the end of the call's start tag")
        machine.malformed(buffer[machine.at : end + 2], "arguments and the end of the call")
        machine.take(Role.MALFORMED, end + 2)
        machine.arguments("{}")
        call.closed, machine.closed = True, self.closers
        if self.is_last:
            complete_call(machine)
            seal(machine)
        return machine.go_to(self.tail)


@dataclass(frozen=True, slots=True)
class DropEmpty:
    """Drops and reports an empty call or section."""

    closers: int
    """Number of end markers of a call and its run of calls."""
    ends: Finder
    """Markers that end a turn."""

    def step(self, machine: Machine) -> bool:
        commit(machine)
        if machine.quotation:  # A quoted empty call is text, as in "`<call></call>`".
            around = going_on(machine.quotation)
            quoted = around and around.closed(machine.buffer, machine.at, self.ends, final=machine.final)
            if around and quoted is not False:
                return True if quoted is None else machine.quote()
            unquote(machine)
        machine.malformed("", "a call")
        machine.closed = self.closers
        return machine.go_on()


@dataclass(frozen=True, slots=True)
class NoArguments:
    """Parses the text that stands for empty arguments, if it differs from the usual text around arguments."""

    text: str
    begins: Finder
    """Start markers of arguments."""
    after: int
    """Address at which execution continues after the arguments."""

    def step(self, machine: Machine) -> bool:
        buffer, at = machine.buffer, machine.at
        # If empty arguments have no text, as in "f()", the arguments are empty unless an argument starts at this position.
        absent = not self.text and not self.begins.at(buffer, at)
        written = bool(self.text) and buffer.startswith(self.text, at)
        if (not written and self.text and machine.may_begin(self.text)) or (
            absent and undecided(machine, self.begins, at)
        ):
            return True
        if not absent and not written:
            return machine.go_on()
        machine.take(Role.ARGUMENT, at + len(self.text))
        machine.arguments("{}")
        machine.current.closed = True
        _end_with_output(machine, marked=written)
        return machine.go_to(self.after)


def _end_with_output(machine: Machine, *, marked: bool) -> None:
    """If the output ends after the arguments, require them to match the tool's schema, unless an end marker was found (`marked`)."""
    machine.current.repaired |= not marked and machine.final and machine.at == len(machine.buffer)


@dataclass(frozen=True, slots=True)
class Entries:
    """Parses the text after an argument: the start of another argument, or the end of all arguments."""

    entry: int
    done: int
    opener: str
    """Start marker of each argument. Empty if arguments start with their name."""
    separator: str
    marks: Finder
    """The start marker of an argument, and all markers that may end the arguments."""
    closed: bool = True
    """True if a marker ends the arguments. If False, the arguments end where no other argument follows."""
    further: Follow | None = None
    """Checks whether another argument follows. Used only if there are no markers or separators."""
    follow: Follow | None = None
    """Checks whether another argument is cut off at the end of the output. Used only if no marker ends the arguments."""
    repeated: frozenset[str] = frozenset()
    """End markers of values, which models sometimes repeat."""
    after_key: str = ""
    """Text after the name of an argument."""
    bracketed: bool = False
    """True if a bracket or a marker follows the arguments."""

    def step(self, machine: Machine) -> bool:
        buffer, call = machine.buffer, machine.current
        if self.further is not None:
            return self._after_white_space(machine, self.further, first=call.count == 0)
        at = end_of(SPACE, buffer, machine.at)
        separable = bool(self.separator) and call.separated < call.count
        # Accept one separator after each argument, but not two, as in "a=1, , b=2". Wait if a chunk ends inside a separator such as " and
        # ".
        begun = separable and self.separator.startswith(buffer[at : at + len(self.separator)])
        # Reject a second separator, because no argument can start with one.
        if begun and buffer.startswith(self.separator, at):
            call.separated = call.count
            machine.take(Role.LAYOUT, at)
            machine.take(Role.MARKER, at + len(self.separator))
            at, begun = end_of(SPACE, buffer, machine.at), False
        machine.take(Role.LAYOUT, at)
        if (begun and not machine.final) or undecided(machine, self.marks, at):
            return True
        mark = self.marks.at(buffer, at)
        if mark in self.repeated and call.count:
            machine.malformed(mark, self.opener and repr(self.opener))
            machine.take(Role.MARKER, at + len(mark))
            return False
        named = mark == self.opener or self._named_like(machine, at, mark)
        if named is None:
            return True
        if named and at < len(buffer):
            return machine.go_to(self.entry)
        if mark or not self.closed:
            return self._end(machine, mark)
        return machine.fail(f"{self.opener!r} or the end of the arguments")

    def _named_like(self, machine: Machine, at: int, mark: str) -> bool | None:
        """Return whether an argument whose name starts like the marker `mark` begins at `at`. Return None if more text is needed.

        For example, if calls start with `<call to="`, then `<call>` is the start tag of an argument named `call`.
        """
        if not self.opener or not self.after_key or not mark.startswith(self.opener):
            return False
        call = machine.current
        heads = [self.opener + key + self.after_key for key in call.types.declared if key not in call.keys]
        if any(machine.buffer.startswith(head, at) and head.startswith(mark) for head in heads):
            return True
        rest = machine.buffer[at : at + MAX_NAME]
        return None if not machine.final and any(head.startswith(rest) for head in heads) else False

    def _after_white_space(self, machine: Machine, further: Follow, *, first: bool) -> bool:
        odd = machine.current.types.odd, odd_names(machine.request._tool_names)
        found = further.among((), *odd).goes_on(machine.buffer, machine.at, first=first, final=machine.final)
        if found is None:
            return True
        return machine.go_to(self.entry) if found else self._end(machine)

    def _end(self, machine: Machine, mark: str = "") -> bool:
        """End the arguments, unless the output is cut off in another argument."""
        # If text directly follows a value, as in `a="x"y"`, the value doesn't end at the quotation mark.
        goes_on = not mark and machine.span_roles[-1] is Role.ARGUMENT and _GOES_ON.match(machine.buffer, machine.at)
        if self.follow and goes_on and not machine.quotation:
            return machine.fail("the end of the arguments")
        missing = machine.current.missing if machine.final and self.follow else ()
        if self.follow and missing and self.follow.cut_after(machine.buffer, machine.at, missing):
            machine.failed_at = len(machine.buffer)
            return machine.fail(OR.join(map(repr, missing)))
        machine.arguments("}" if machine.current.count else "{}")
        machine.current.closed, machine.current.ended = True, self.bracketed
        _end_with_output(machine, marked=self.bracketed)
        return machine.go_to(self.done)
