"""Instructions for the inside of a call: its arguments, in any codec.

Rules: a scanner lives in `machine.scanner` from its first step until it is done, so that a suspended value resumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from unrender.format import Codec, Strings, Typing
from unrender.machine.frames import CallState
from unrender.machine.instructions import SPACE
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.atoms import escape, may_be_in_word
from unrender.values.coercion import ANY, STRING, Kinds
from unrender.values.finder import Finder, end_of
from unrender.values.json_strings import QuotedScanner
from unrender.values.notations import notation_of
from unrender.values.raw import CodeValueScanner, RawScanner
from unrender.values.scanner import DONE, FAILED, MORE, WORD, LiteralScanner, LiteralStyle, Status
from unrender.values.unmarked_ends import Follow
from unrender.values.xml import TagStyle, XmlScanner

CDATA_START, CDATA_END = "<![CDATA[", "]]>"
_CDATA = Finder((CDATA_END,))
_QUOTES = ("'", '"')
"""What begins a string where a model writes Python though the format has raw text."""


def run_scanner(machine: Machine) -> Status:
    """Let the current scanner take as much as it can, and emit its text; then fail or suspend as its status says."""
    scanner, call = machine.scanner, machine.call
    assert scanner is not None
    assert call is not None
    end, text, status = scanner.scan(machine.buffer, machine.at, final=machine.final)
    machine.take(Role.ARGUMENT, end)
    machine.arguments(text)
    if status == MORE and not machine.final:
        machine.flow = scanner.flow
        return MORE
    if status != DONE:
        machine.fail("the rest of the arguments" if status == MORE else "a JSON value")
        return FAILED
    if call.name and (duplicate := scanner.duplicate):
        machine.malformed(duplicate, "another argument")
    machine.scanner = None
    return DONE


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """All arguments as one JSON object, bare or written as a string."""

    style: LiteralStyle

    def step(self, machine: Machine) -> bool:
        if machine.scanner is None:
            if machine.at >= len(machine.buffer) and not machine.final:
                return True
            head = machine.buffer[machine.at : machine.at + 1]
            if head not in ("{", '"'):
                machine.fail("a JSON object")
                return False
            machine.scanner = LiteralScanner(self.style) if head == "{" else QuotedScanner(self.style)
        status = run_scanner(machine)
        if status is DONE:
            assert machine.call is not None
            machine.call.closed = True
            machine.pc += 1
        return status is MORE


@dataclass(frozen=True, slots=True)
class Value:
    """One argument's value."""

    codec: Codec
    suffix: Finder | Follow
    """What ends a raw value."""
    style: LiteralStyle
    """How values are read that end by themselves."""
    tags: TagStyle | None = None

    def step(self, machine: Machine) -> bool:
        call = machine.call
        assert call is not None
        if machine.scanner is None and not self._open(machine, call):
            return True
        status = run_scanner(machine)
        if status is DONE:
            if call.kind == CDATA_START:
                machine.take(Role.MARKER, machine.at + len(CDATA_END))
            call.kind = ""
            machine.pc += 1
        return status is MORE

    def _open(self, machine: Machine, call: CallState) -> bool:
        if self.codec.cdata and not self._enter_cdata(machine, call):
            return False
        if isinstance(self.suffix, Follow) and machine.at == len(machine.buffer) and not machine.final:
            return False
        if call.key in call.keys:
            # What the first one says is out: JSON keeps both, and most readers the last.
            machine.malformed(call.key, "another argument")
        call.keys.add(call.key)
        machine.arguments(key_text(call))
        call.count += 1
        machine.scanner = self.scanner(call, quoted=machine.buffer.startswith(_QUOTES, machine.at))
        return True

    def _enter_cdata(self, machine: Machine, call: CallState) -> bool:
        rest = machine.buffer[machine.at : machine.at + len(CDATA_START)]
        if rest == CDATA_START:
            machine.take(Role.MARKER, machine.at + len(rest))
            call.kind = CDATA_START
            return True
        return machine.final or not CDATA_START.startswith(rest)

    def scanner(self, call: CallState, *, quoted: bool) -> RawScanner | LiteralScanner | XmlScanner | CodeValueScanner:
        """Return a new scanner for the current value of `call`; `quoted` means that it begins with a quotation mark."""
        suffix = self.suffix if isinstance(self.suffix, Finder) else self.suffix.among(call.types.names)
        if quoted and isinstance(suffix, Follow) and suffix.in_code:
            return CodeValueScanner(RawScanner(suffix, self._types(call)))
        if call.kind == CDATA_START:
            return RawScanner(_CDATA, STRING)
        if self.tags:
            return XmlScanner(self.tags, call.key, call.types)
        match self.codec.strings:
            case Strings.RAW:
                return RawScanner(suffix, self._types(call))
            case Strings.JSON | Strings.PYTHON | Strings.QUOTED | Strings.SINGLE:
                return LiteralScanner(self.style)
            case _:
                assert_never(self.codec.strings)

    def _types(self, call: CallState) -> frozenset[str]:
        match self.codec.typed_by:
            case Typing.SYNTAX | Typing.SCHEMA:
                return call.types.types(call.key)
            case Typing.ATTRIBUTE:
                named = frozenset(kind for kind, word in self.codec.types if word == call.kind)
                return _agreed(named, call.types.types(call.key))
            case _:
                assert_never(self.codec.typed_by)


def _agreed(named: frozenset[str], allowed: frozenset[str]) -> frozenset[str]:
    """Return the types that a value may have that is `named` one of some types, where the schema has `allowed` others.

    Models name types wrongly. What is named a string is one only if nothing else fits a schema without strings, and where
    the schema wants a string, the text is one, whatever it is named. Without a schema the name decides.
    """
    known = isinstance(allowed, Kinds) and bool(allowed)
    if "string" in named:
        return STRING | allowed if known and "string" not in allowed else STRING
    return STRING if known and allowed == STRING else named or ANY


def key_text(call: CallState) -> str:
    """Return the JSON before the value of the argument that begins."""
    return ("{" if call.count == 0 else ", ") + f'"{escape(call.key)}": '


def literal_style(codec: Codec, suffix: Finder | Follow, *, in_code: bool = False) -> LiteralStyle:
    """Return how to read values of `codec` that need no end marker; `suffix` follows them, `in_code` a comma or bracket."""
    notation = notation_of(codec)
    verbatim = notation.verbatim
    literals = suffix.literals if isinstance(suffix, Finder) else ()
    cores = sorted({core for literal in literals if (core := literal.strip())})
    return LiteralStyle(
        stops=tuple(dict.fromkeys(head for core in cores if not may_be_in_word(head := _head_of(core)))),
        ends=tuple(dict.fromkeys(core[0] for core in cores)),
        quote_open=verbatim.open if verbatim else "",
        quote_close=verbatim.close if verbatim else "",
        bare_keys=notation.inside.bare_keys,
        in_code=in_code and verbatim is not None and len(verbatim.close) == 1,
    )


def _head_of(marker: str) -> str:
    """Return the beginning of `marker` that shows the end of a word before it: one letter may be in the word."""
    return marker[: end_of(WORD, marker, 0)] if may_be_in_word(marker[0]) else marker[0]


@dataclass(frozen=True, slots=True)
class CloseValue:
    """The marker after a raw value. It may be missing when the whole call is closed."""

    text: str
    instead: tuple[str, ...]

    def step(self, machine: Machine) -> bool:
        rest = machine.buffer[machine.at : machine.at + max(map(len, (self.text, *self.instead)))]
        if rest.startswith(self.text):
            machine.take(Role.MARKER, machine.at + len(self.text))
        elif any(rest.startswith(text) for text in self.instead):
            machine.malformed("", repr(self.text))
        elif not machine.final and any(text.startswith(rest) for text in (self.text, *self.instead)):
            return True
        else:
            machine.fail(repr(self.text))
            return False
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class CloseArguments:
    """All arguments have been read."""

    bracketed: bool
    """A bracket or a marker follows that ends them."""

    def step(self, machine: Machine) -> bool:
        assert machine.call is not None
        machine.arguments("}" if machine.call.count else "{}")
        machine.call.closed = True
        machine.call.ended = self.bracketed
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class DropEmpty:
    """Drops a call, or a section, that is empty: it has no meaning."""

    closers: int
    """How many markers close a call and a run of calls."""

    def step(self, machine: Machine) -> bool:
        machine.malformed("", "a call")
        machine.commit()
        machine.closed = self.closers
        machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class NoArguments:
    """The text written in place of arguments when there are none, if it differs from the usual text around them."""

    text: str
    begins: Finder
    """What arguments begin with."""
    after: int
    """Where to go on after the arguments."""

    def step(self, machine: Machine) -> bool:
        buffer, at, call = machine.buffer, machine.at, machine.call
        assert call is not None
        rest = buffer[at : at + len(self.text)]
        begun = not self.text and not self.begins.at(buffer, at)
        if not machine.final and (rest != self.text and self.text.startswith(rest)):
            return True
        if not machine.final and begun and (at >= len(buffer) or self.begins.may_grow(buffer, at)):
            return True
        if begun or (self.text and rest == self.text):
            machine.take(Role.ARGUMENT, at + len(self.text))
            machine.arguments("{}")
            call.closed = True
            machine.pc = self.after
        else:
            machine.pc += 1
        return False


@dataclass(frozen=True, slots=True)
class Entries:
    """After an argument: another one follows, or the arguments end."""

    entry: int
    done: int
    opener: str
    """What every argument begins with; empty when it begins with its name."""
    separator: str
    marks: Finder
    """The opener, and everything that may end the arguments."""
    closed: bool = True
    """A marker ends the arguments; else they end where no other follows."""
    further: Follow | None = None
    """Says whether another follows, where neither a marker nor a separator does."""

    def step(self, machine: Machine) -> bool:
        buffer, call = machine.buffer, machine.call
        assert call is not None
        if self.further is not None:
            return self._after_white_space(machine, self.further, first=call.count == 0)
        at = end_of(SPACE, buffer, machine.at)
        separable = bool(self.separator) and call.separated < call.count
        begun = separable and self.separator.startswith(buffer[at : at + len(self.separator)])
        if begun and buffer.startswith(self.separator, at):
            call.separated = call.count
            machine.take(Role.LAYOUT, at)
            machine.take(Role.MARKER, at + len(self.separator))
            at, begun = end_of(SPACE, buffer, machine.at), False
        machine.take(Role.LAYOUT, at)
        if begun and not machine.final:
            return True
        if not machine.final and (at >= len(buffer) or self.marks.may_grow(buffer, at)):
            return True
        mark = self.marks.at(buffer, at)
        if mark == self.opener and at < len(buffer):
            machine.pc = self.entry
        elif mark or not self.closed:
            machine.pc = self.done
        else:
            machine.fail(f"{self.opener!r} or the end of the arguments")
        return False

    def _after_white_space(self, machine: Machine, further: Follow, *, first: bool) -> bool:
        found = further.goes_on(machine.buffer, machine.at, first=first, final=machine.final)
        if found is not None:
            machine.pc = self.entry if found else self.done
        return found is None
