"""Reads the arguments of a call: one JSON object, or separate arguments with names and values.

Strategy: readers of `values` read each value. They return JSON text while the value arrives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import unescape
from typing import assert_never

from unrender.answer import Marker
from unrender.format import Slot, Strings, Typing
from unrender.limits import MAX_NAME
from unrender.machine.calls import NAME_END, Cursor, Steps
from unrender.machine.frames import CallState
from unrender.machine.instructions import shared_length
from unrender.machine.interpreter import OR
from unrender.nodes import Role
from unrender.values import Scanner
from unrender.values.coercion import STRING, agreed
from unrender.values.doubts import CDATA_END, CDATA_START, Doubts, leaves_open
from unrender.values.finder import NOT_HERE, SPACE, Finder, end_of, odd_names
from unrender.values.json_text import escape
from unrender.values.marked_ends import MarkedEnds, ValueMarks
from unrender.values.notations import notation_of
from unrender.values.raw import CodeValueScanner, RawScanner, XmlScanner
from unrender.values.scanner import LiteralScanner, QuotedScanner
from unrender.values.unmarked_ends import Follow

_CDATA = Finder((CDATA_END,))
_GOES_ON = re.compile(r"[^\W_]|[\"':]")
"""Characters that can't directly follow a value without delimiters."""
_QUOTES = ("'", '"')
"""Quotation marks of Python strings. Models sometimes quote values even if the format has raw text."""


@dataclass(slots=True, eq=False)
class ArgumentReader(Cursor):
    """Reads all arguments of a call."""

    def arguments(self) -> Steps[None]:
        """Read the arguments, with the markers around them."""
        arguments = self.view.arguments
        if self.view.empty and (yield from self._none(*self.view.empty)):
            return
        yield from self.marker(arguments.open)
        if arguments.entry:
            yield from self._entries()
        else:
            if arguments.open:
                yield from self.before_object()
            yield from self._object()
        yield from self.marker(arguments.close)

    def _none(self, text: str, begins: Finder) -> Steps[bool]:
        """Read the `text` that stands for empty arguments, and return whether it was found."""
        machine = self.machine
        while True:
            # If empty arguments have no text, as in "f()", the arguments are empty unless an argument starts at this position.
            absent = not text and not begins.at(machine.buffer, machine.at)
            written = bool(text) and machine.buffer.startswith(text, machine.at)
            longer = not written and bool(text) and machine.may_begin(text)
            if not longer and (not absent or self.decided(begins, machine.at)):
                break
            yield
        if absent or written:
            machine.take(Role.ARGUMENT, machine.at + len(text))
            machine.arguments("{}")
            machine.current.closed = True
            self._end_with_output(marked=written)
        return absent or written

    def _end_with_output(self, *, marked: bool) -> None:
        """If the output ends after the arguments, require them to match the tool's schema, unless an end marker was found (`marked`)."""
        machine = self.machine
        machine.current.repaired |= not marked and machine.final and machine.at == len(machine.buffer)

    def _object(self) -> Steps[None]:
        """Read all arguments as one JSON object, or as a JSON string that contains one."""
        machine, style = self.machine, self.view.object_style
        while machine.at >= len(machine.buffer) and not machine.final:
            yield
        head = machine.buffer[machine.at : machine.at + 1]
        # Accept a JSON string too, because some formats encode the arguments twice: `"{\"city\": \"Rome\"}"`.
        if head not in ("{", '"'):
            self.fail("a JSON object")
        yield from self.scan(LiteralScanner(style) if head == "{" else QuotedScanner(LiteralScanner(style)))
        machine.current.closed = True

    # Separate arguments.

    def _entries(self) -> Steps[None]:
        view, entry = self.view, self.view.arguments.entry
        further = None if view.follow.closed or view.opener else view.follow
        while True:
            if further is None:
                end = yield from self._to_entry()
            else:
                while (goes_on := self._goes_on(further)) is None:
                    yield
                end = None if goes_on else ""
            if end is not None:
                self._end(end)
                return
            for i, part in enumerate(entry):
                if not (yield from self._entry_part(i, part)):
                    break

    def _goes_on(self, further: Follow) -> bool | None:
        """Return whether another argument follows, if only whitespace separates arguments. Return None if more text is needed."""
        machine, first = self.machine, self.machine.current.count == 0
        machine.steps += 1
        among = further.among((), machine.current.types.odd, odd_names(machine.request._tool_names))
        return among.goes_on(machine.buffer, machine.at, first=first, final=machine.final)

    def _to_entry(self) -> Steps[str | None]:
        """Consume the text up to another argument, or up to the marker that ends the arguments.

        Returns None if another argument follows. Otherwise, returns the marker, or "" if the arguments end without one.
        """
        machine, view, call = self.machine, self.view, self.machine.current
        separator, opener = view.arguments.separator.core, view.opener
        while True:
            machine.steps += 1
            buffer, at = machine.buffer, end_of(SPACE, machine.buffer, machine.at)
            separable = bool(separator) and call.separated < call.count
            # Accept one separator after each argument, but not two, as in "a=1, , b=2". Wait if a chunk ends inside a separator such as "
            # and ".
            begun = separable and separator.startswith(buffer[at : at + len(separator)])
            # Reject a second separator, because no argument can start with one.
            if begun and buffer.startswith(separator, at):
                call.separated = call.count
                machine.take(Role.LAYOUT, at)
                machine.take(Role.MARKER, at + len(separator))
                at, begun = end_of(SPACE, buffer, machine.at), False
            machine.take(Role.LAYOUT, at)
            if (not begun or machine.final) and self.decided(view.entry_marks, at):
                mark = view.entry_marks.at(buffer, at)
                if mark in view.doubled and call.count:
                    machine.malformed(mark, opener and repr(opener))
                    machine.take(Role.MARKER, at + len(mark))
                    continue
                named = mark == opener or self._named_like(at, mark)
                if named and at < len(buffer):
                    return None
                if named is not None:
                    break
            yield
        if not mark and view.follow.closed:
            self.fail(f"{opener!r} or the end of the arguments")
        return mark

    def _named_like(self, at: int, mark: str) -> bool | None:
        """Return whether an argument whose name starts like the marker `mark` begins at `at`. Return None if more text is needed.

        For example, if calls start with `<call to="`, then `<call>` is the start tag of an argument named `call`.
        """
        opener, machine, call = self.view.opener, self.machine, self.machine.current
        if not opener or not self.view.after_key or not mark.startswith(opener):
            return False
        heads = [opener + key + self.view.after_key for key in call.types.declared if key not in call.keys]
        if any(machine.buffer.startswith(head, at) and head.startswith(mark) for head in heads):
            return True
        rest = machine.buffer[at : at + MAX_NAME]
        return None if not machine.final and any(head.startswith(rest) for head in heads) else False

    def _end(self, mark: str) -> None:
        """End the arguments at the marker `mark`, unless the output is cut off in another argument."""
        machine, call = self.machine, self.machine.current
        follow = None if self.view.follow.closed else self.view.follow
        # If text directly follows a value, as in `a="x"y"`, the value doesn't end at the quotation mark.
        goes_on = not mark and machine.span_roles[-1] is Role.ARGUMENT and _GOES_ON.match(machine.buffer, machine.at)
        if follow and goes_on and not machine.quotation:
            self.fail("the end of the arguments")
        missing = call.missing if machine.final and follow else ()
        if follow and missing and follow.cut_after(machine.buffer, machine.at, missing):
            machine.failed_at = len(machine.buffer)
            self.fail(OR.join(map(repr, missing)))
        bracketed = bool(self.view.arguments.close.core)
        machine.arguments("}" if call.count else "{}")
        call.closed, call.ended = True, bracketed
        self._end_with_output(marked=bracketed)

    def _entry_part(self, i: int, part: Marker | Slot) -> Steps[bool]:
        """Read one part of an argument. Return False if the argument ends there, because the end marker of its value is missing."""
        entry = self.view.arguments.entry
        if part is Slot.VALUE:
            return (yield from self._value())
        if part is Slot.KEY:
            if Slot.KEY in entry[:i]:
                yield from self.literal(self.machine.current.key)
            else:
                yield from self._key()
        elif isinstance(part, Slot):
            yield from self.word(part, self.view.entry_stops(i), self.view.type_words if part is Slot.TYPE else ())
        else:
            yield from self._entry_marker(i, part)
        return True

    def _entry_marker(self, i: int, part: Marker) -> Steps[None]:
        """Read a marker of an argument. Next to a raw value, the whitespace of the marker must match exactly."""
        arguments = self.view.arguments
        entry, others = arguments.entry, tuple(other.core for other in part.others)
        raw = notation_of(arguments.codec).unquoted
        if raw and i > 0 and entry[i - 1] is Slot.VALUE:
            yield from self._layout(part.lead)
            # Allow a missing end marker of a raw value at the end of the call, as in `Rome</f></call>`.
            yield from self.literal(part.core, others, instead=self.view.after_closer)
            return
        for piece in [part.core] if others else part.pieces:
            yield from self.space()
            yield from self.literal(piece, others)
        before_value = entry[i + 1 : i + 2] == (Slot.VALUE,)
        if raw and before_value:
            yield from self._layout(part.after if part else part.text)
        elif part.text[-1:].isspace() and not before_value:
            yield from self.space()

    def _layout(self, text: str) -> Steps[None]:
        """Consume as much whitespace as matches the layout `text`, since other whitespace belongs to the raw value next to it."""
        machine = self.machine
        machine.steps += 1
        while True:
            end = machine.at + shared_length(machine.buffer, machine.at, text)
            # Wait for more text, because a layout such as "\n\n" may be split over two chunks.
            if machine.final or end < len(machine.buffer) or end == machine.at + len(text):
                break
            yield
        machine.take(Role.LAYOUT, end)

    def _key(self) -> Steps[None]:
        """Read the name of an argument."""
        machine, call, view = self.machine, self.machine.current, self.view.key
        while view.opener:
            if machine.buffer.startswith(view.opener, machine.at):
                machine.malformed(view.opener, "the name of an argument")
                machine.take(Role.MARKER, machine.at + len(view.opener))
            elif machine.may_begin(view.opener):
                yield
            else:
                break
        declared = yield from self.declared(call.types.odd, view.stops)
        if declared != NOT_HERE:
            call.key = machine.buffer[machine.at : declared]
            machine.take(Role.NAME, declared)
            return
        # The name ends at the next stop, such as `>` in `<parameter=city>`.
        while True:
            machine.steps += 1
            buffer, start = machine.buffer, machine.at
            end, literal = view.stops.find(buffer, start, start + MAX_NAME)
            if literal or machine.final or len(buffer) - start >= MAX_NAME:
                break
            yield
        key = key_of(buffer[start:end]) if literal else ""
        if not view.closing and key not in call.types.declared and unescape(key) in call.types.declared:
            key = unescape(key)  # Unescape names such as `a&amp;b`.
        if not key or (view.bare and NAME_END.search(key)) or not self._may_be(key, call):
            self.fail("the name of an argument")
        call.key = key
        machine.take(Role.NAME, end)

    def _may_be(self, key: str, call: CallState) -> bool:
        """Return whether `key` may be the name of an argument. In a repaired call, only declared names are allowed."""
        view = self.view.key
        if key in call.types.declared:
            return True
        marked = any(head in key for head in view.heads) or (view.closing and key.startswith(view.closing))
        return not marked and (not call.repaired or call.types.knows(key))

    # Values.

    def _value(self) -> Steps[bool]:
        """Read the value of an argument. Return False if its end marker is missing or damaged."""
        machine, view, call = self.machine, self.view, self.machine.current
        yield from self._to_value()
        if call.key in call.keys:
            yield from self._repeat()
        self.begin_value()
        if view.doubts is not None:
            call.value = machine.position
        quoted = machine.buffer.startswith(_QUOTES, machine.at)
        scanner = self._scanner(call, quoted=quoted)
        self.valued = True
        yield from self.scan(scanner)
        self.valued = False
        torn = scanner.torn if isinstance(scanner, RawScanner) else None
        if isinstance(scanner, RawScanner) and scanner.keeps and view.values is not None:
            machine.malformed("", repr(view.values.of(call.key, ()).closers[0]))
            call.repaired = True
        if view.doubts is not None:
            text, call.value = machine.since(call.value or 0), None
            if self._crosses(text):
                self.quote()
            if self._is_doubtful(view.doubts, call, text, closed=torn is None):
                self.fail("the end of the value")
        if torn is not None and view.values is not None:
            # The end marker is missing or damaged. `torn` is the length of the damaged marker.
            machine.take(Role.LAYOUT, end_of(SPACE, machine.buffer, machine.at))
            end = machine.at + torn
            machine.malformed(machine.buffer[machine.at : end], repr(view.values.of(call.key, ()).closers[0]))
            machine.take(Role.MALFORMED, end)
            call.repaired, call.kind = True, ""
            return False
        if call.kind == CDATA_START:
            machine.take(Role.MARKER, machine.at + len(CDATA_END))
        call.kind = ""
        return True

    def begin_value(self) -> None:
        """Add the name of the current argument to the arguments of the call."""
        call = self.machine.current
        call.keys.add(call.key)
        self.machine.arguments(("{" if call.count == 0 else ", ") + f'"{escape(call.key)}": ')
        call.count += 1

    def _repeat(self) -> Steps[None]:
        """Report a duplicate argument, as in `<city>Rome</city><city>Oslo</city>`."""
        machine, call = self.machine, self.machine.current
        if self.view.hides_ends:
            while machine.at == len(machine.buffer) and not machine.final:
                yield
            # In `f(a='x', b='y', b='z')`, the value of `a` may be `x', b='y`.
            call.unclear = True
            self.fail("another argument")
        # The first value was already emitted, so emit the second one too. Most JSON parsers use the last value of a duplicate key.
        machine.malformed(call.key, "another argument")

    def _to_value(self) -> Steps[None]:
        """Consume a repeated start marker of the value, and the start of a CDATA section."""
        machine, view, call = self.machine, self.view, self.machine.current
        if view.values is not None:
            yield from self._drop_opener(view.values)
        while view.arguments.codec.cdata:
            rest = machine.buffer[machine.at : machine.at + len(CDATA_START)]
            if rest == CDATA_START:
                machine.take(Role.MARKER, machine.at + len(rest))
                call.kind = CDATA_START
            if rest == CDATA_START or machine.final or not CDATA_START.startswith(rest):
                break
            yield
        # Wait for the first character, because a quotation mark determines how the value is parsed.
        while isinstance(view.suffix, Follow) and machine.at == len(machine.buffer) and not machine.final:
            yield

    def _drop_opener(self, ends: MarkedEnds) -> Steps[None]:
        """Drop repeated start markers of a value."""
        machine = self.machine
        while (size := ends.repeated(machine.buffer, machine.at, final=machine.final)) != 0:
            if size is None:
                yield
            elif machine.policy.repair == "none":
                return
            elif self._may_be_text(machine.current):
                # In `<a><a>Rome</a>`, the second opener is repeated or text.
                machine.current.unclear = True
                self.fail("a value")
            else:
                end = machine.at + size
                machine.malformed(machine.buffer[machine.at : end], "a value")
                machine.take(Role.MARKER, end)
                return

    def _crosses(self, text: str) -> bool:
        """Return whether a value without an end marker contains the end of the quotation around its call."""
        suffix, quotation = self.view.suffix, self.machine.quotation
        ended = not isinstance(suffix, Follow) or suffix.closed
        return not ended and quotation is not None and quotation.closed_in(text)

    def _is_doubtful(self, doubts: Doubts, call: CallState, text: str, *, closed: bool) -> bool:
        """Return whether `text` may contain more than the value, because a marker around the value is damaged."""
        machine, suffix = self.machine, self.view.suffix
        missing, textual = call.missing if doubts.between else (), self._may_be_text(call)
        if doubts.raised(text, closed=closed, textual=textual, missing=missing, tools=machine.request._tool_names):
            return True
        if not isinstance(suffix, Follow):
            return False
        # In `f(a=b(c)` at the end of the output, the bracket closes the inner bracket, so the value is incomplete.
        cut = machine.final and suffix.ends_in_part(machine.buffer, machine.at) and leaves_open(text)
        return cut or doubts.leads_on(text, machine.buffer[machine.at : machine.at + MAX_NAME], missing)

    def _scanner(self, call: CallState, *, quoted: bool) -> Scanner:
        """Return a new scanner for the current value of `call`. `quoted` is True if the value starts with a quotation mark."""
        machine, view, codec = self.machine, self.view, self.view.arguments.codec
        # Only the name of a declared argument ends text. In `f(note=a or b, c=d, days=3)`, the value ends before `days`.
        suffix = view.suffix
        if isinstance(suffix, Follow):
            tools = odd_names(machine.request._tool_names)
            any_name = suffix.among((), call.types.odd, tools)
            literal = suffix.in_code and not self._may_be_text(call)
            suffix = suffix.among(() if literal else call.types.names, call.types.odd, tools)
            # A quotation mark may belong to a raw value or delimit it, as in `f(city="Rome")`. The text after the closing mark decides.
            if quoted and suffix.in_code:
                return CodeValueScanner(
                    finder=suffix, types=self._types(call), following=any_name, patient=machine.rereads
                )
        if call.kind == CDATA_START:
            return RawScanner(_CDATA, STRING)
        forms = {form: character for character, form in codec.escapes}
        doubt = None
        if view.values is not None:
            ends = view.values.of(call.key, call.types.declared)
            doubt = ValueMarks(
                ends,
                call.types,
                tuple(call.keys),
                patient=machine.rereads,
                repairs=machine.policy.repair != "none",
                textual=self._may_be_text(call),
            )
        if view.tags and doubt:
            types = call.types.types(call.key)
            return XmlScanner(suffix, types, forms, doubt, style=view.tags, key=call.key, tree=call.types)
        match codec.strings:
            case Strings.RAW:
                return RawScanner(suffix, self._types(call), forms, doubt, patient=machine.rereads)
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                odd = call.types.odd.names if view.style.in_code else ()
                return LiteralScanner(replace(view.style, names=odd) if odd else view.style)
            case _:
                assert_never(codec.strings)

    def _may_be_text(self, call: CallState) -> bool:
        types = self._types(call)
        return not types or "string" in types

    def _types(self, call: CallState) -> frozenset[str]:
        codec = self.view.arguments.codec
        match codec.typed_by:
            case Typing.SYNTAX | Typing.SCHEMA:
                return call.types.types(call.key)
            case Typing.ATTRIBUTE:
                named = frozenset(kind for kind, word in codec.types if word == call.kind)
                return agreed(named, call.types.types(call.key))
            case _:
                assert_never(codec.typed_by)


def key_of(text: str) -> str:
    """Return the argument name in `text`, without surrounding whitespace and quotation marks. Return "" if the name is invalid."""
    key = text.strip().strip("\"'")
    return "" if "\n" in key else key
