"""Reads a call that is one JSON object: name, id and arguments from their fields, in any order.

Strategy: the object's own structure is walked here; values go to scanners. The name commits the call; arguments that
come before it wait. A bare object (no marker before it) must begin with the name, or with the arguments where the format
writes them first; else it is content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from unrender.format import CallSyntax, Envelope, Slot
from unrender.limits import MAX_NAME
from unrender.machine.arguments import run_scanner
from unrender.machine.instructions import take_space
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values.atoms import duplicate_key
from unrender.values.finder import Finder, Taker
from unrender.values.json_strings import QuotedScanner
from unrender.values.scanner import DONE, FAILED, MORE, LiteralScanner, LiteralStyle, Status

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_SCALAR = re.compile(r"[^\s,}\]]+")
_ARGUMENT_NAMES = frozenset(("arguments", "parameters"))
"""The two names that models use for the arguments, whichever the template shows."""
_NULLS = ("null", "None")
_HEADS = ("{", '"')
"""What arguments begin with: an object, or the text of one."""
_STYLES = {strict: LiteralStyle(strict=strict, loose_keys=not strict) for strict in (False, True)}
"""How values are read, strictly or not."""
_OPEN, _KEY, _COLON, _VALUE, _SCAN, _SKIP, _NEXT = range(7)


class EnvelopeState:
    """How far the object has been read."""

    __slots__ = ("held", "ids", "key", "others", "path", "repeated", "scanner", "skips", "step")

    def __init__(self) -> None:
        self.step: int = _OPEN
        self.path: tuple[str, ...] = ()
        self.key: str = ""
        self.scanner: LiteralScanner | QuotedScanner | None = None
        self.ids: tuple[tuple[str, ...], ...] = ()
        """The fields of ids that have been read."""
        self.skips: bool = False
        """The field has been read before: its value is skipped."""
        self.repeated: str = ""
        """A repeated field before the name; it is reported once this is a call."""
        self.others: tuple[RawField, ...] = ()
        """The fields so far that the format does not know."""
        self.held: list[str] = []
        """The value of such a field, as far as it is there."""

    def copy(self) -> EnvelopeState:
        """Return an independent state."""
        other = EnvelopeState()
        other.step, other.path, other.key = self.step, self.path, self.key
        other.ids, other.skips, other.repeated = self.ids, self.skips, self.repeated
        other.others, other.held = self.others, list(self.held)
        other.scanner = self.scanner.copy() if self.scanner else None
        return other

    @property
    def flow(self) -> Taker | None:
        """The fast path of the current value; None when it has none."""
        return self.scanner.flow if self.scanner else None

    @property
    def duplicate(self) -> str:
        """A key that comes twice in one object of the current value; "" where none does."""
        return self.scanner.duplicate if self.scanner else ""

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        """Let the scanner of the current value read as much as it can."""
        assert self.scanner is not None
        return self.scanner.scan(text, start, final=final)


@dataclass(frozen=True, slots=True)
class ReadEnvelope:
    """Reads a call that is one JSON object, from `{` to `}`."""

    fields: Envelope
    recover: int
    bare: bool
    """No marker is before the object."""
    arguments_first: bool
    """The format writes the arguments before the name."""
    waits: bool
    """The id comes after the arguments, which wait for it."""
    strict: bool
    ends: Finder
    """What closes the call: where it comes, the object has ended, brace or not."""
    known: frozenset[str] = frozenset()
    """Other fields that the format itself writes."""

    def step(self, machine: Machine) -> bool:
        state = machine.scanner
        if not isinstance(state, EnvelopeState):
            state = machine.scanner = EnvelopeState()
        while machine.scanner is state:
            if state.step is not _SCAN and state.step is not _SKIP and take_space(machine):
                return True
            pc = machine.pc
            if _STEPS[state.step](self, machine, state):
                return True
            if machine.pc != pc:
                return False
        return False

    def _open(self, machine: Machine, state: EnvelopeState) -> bool:
        return self._punctuation(machine, state, "{", _KEY)

    def _colon(self, machine: Machine, state: EnvelopeState) -> bool:
        return self._punctuation(machine, state, ":", _VALUE)

    def _punctuation(self, machine: Machine, state: EnvelopeState, char: str, following: int) -> bool:
        if machine.buffer.startswith(char, machine.at):
            machine.take(Role.MARKER, machine.at + 1)
            state.step = following
        else:
            self._fail(machine, repr(char))
        return False

    def _fail(self, machine: Machine, wanted: str) -> None:
        machine.scanner = None
        machine.fail(wanted)

    def _key(self, machine: Machine, state: EnvelopeState) -> bool:
        if machine.buffer.startswith("}", machine.at):
            return self._close(machine, state)
        found = _STRING.match(machine.buffer, machine.at, machine.at + MAX_NAME)
        if not found:
            return self._unfinished(machine, "a key")
        state.key = _unquote(found.group())
        state.skips = self._repeats(machine, state)
        if state.skips:
            self._report(machine, state)
        elif self.fields.name_is_key and not state.path:
            return self._name(machine, state, found.end())
        if self.bare and not self._may_precede_name(machine, state):
            self._fail(machine, "the tool's name")
            return False
        machine.take(Role.MARKER, found.end())
        state.step = _COLON
        return False

    def _repeats(self, machine: Machine, state: EnvelopeState) -> bool:
        """Return whether the field has been read before: of name, arguments and ids the first one counts."""
        assert machine.call is not None
        path = (*state.path, state.key)
        if self._is_name(path):
            return bool(machine.call.name)
        return path in state.ids or (self._is_arguments(path) and machine.call.count > 0)

    def _report(self, machine: Machine, state: EnvelopeState) -> None:
        assert machine.call is not None
        if machine.call.name:
            machine.malformed(state.key, "another field")
        else:
            state.repeated = state.key

    def _is_name(self, path: tuple[str, ...]) -> bool:
        if self.fields.name_is_key:
            return len(path) == 1
        return path == self.fields.name_field or path == ("function", *self.fields.name_field[-1:])

    def _may_precede_name(self, machine: Machine, state: EnvelopeState) -> bool:
        assert machine.call is not None
        path = (*state.path, state.key)
        fields = (self.fields.name_field, self.fields.id_field, self.fields.gen_id_field)
        if self.arguments_first and self._is_arguments(path):
            return True
        said = bool(machine.call.name) or path in fields
        return said or state.key in ("type", "function") or self._is_wrapper(path)

    def _is_wrapper(self, path: tuple[str, ...]) -> bool:
        fields = (self.fields.name_field, self.fields.args_field)
        return any(len(path) < len(field) and field[: len(path)] == path for field in fields)

    def _unfinished(self, machine: Machine, wanted: str) -> bool:
        head = machine.buffer[machine.at : machine.at + 1]
        begun = head in ("", '"', "'") and len(machine.buffer) - machine.at < MAX_NAME
        if begun and not machine.final:
            return True
        assert machine.call is not None
        if begun and machine.call.name:
            machine.take(Role.MARKER, len(machine.buffer))
        self._fail(machine, wanted)
        return False

    def _name(self, machine: Machine, state: EnvelopeState, end: int) -> bool:
        if not machine.named(_unquote(machine.buffer[machine.at : end])):
            self._fail(machine, "the name of one of the tools")
            return False
        machine.take(Role.MARKER, machine.at + 1)
        machine.take(Role.NAME, end - 1)
        machine.take(Role.MARKER, end)
        assert machine.call is not None
        machine.call.recover = self.recover
        machine.commit()
        if state.repeated:
            machine.malformed(state.repeated, "another field")
        if not self.waits or machine.call.id:
            machine.start_call()
        state.step = _COLON if self.fields.name_is_key else _NEXT
        return False

    def _value(self, machine: Machine, state: EnvelopeState) -> bool:
        path = (*state.path, state.key)
        fields = self.fields
        if state.skips:
            return self._ignore(state)
        if self._is_name(path) and not fields.name_is_key:
            return self._read_name(machine, state)
        if self._is_arguments(path):
            return self._arguments(machine, state)
        if path in (fields.id_field, fields.gen_id_field):
            return self._id(machine, state)
        wraps = self._is_wrapper(path) or path == ("function",)
        if wraps and machine.buffer.startswith("{", machine.at):
            machine.take(Role.MARKER, machine.at + 1)
            state.path, state.step = path, _KEY
            return False
        ids = (field[: len(path)] for field in (fields.id_field, fields.gen_id_field))
        state.skips = state.key in self.known or path in ids
        return self._ignore(state)

    def _ignore(self, state: EnvelopeState) -> bool:
        """The value is read and left out; what it says is settled when the whole object is there."""
        state.scanner = LiteralScanner(self.style)
        state.step = _SKIP
        return False

    @property
    def style(self) -> LiteralStyle:
        """How the values of the object are read."""
        return _STYLES[self.strict]

    def _is_arguments(self, path: tuple[str, ...]) -> bool:
        field = self.fields.args_field
        if self.fields.name_is_key:
            return len(path) == 1
        return path == field or (path[-1] in _ARGUMENT_NAMES and path[:-1] in (field[:-1], ("function",)))

    def _read_name(self, machine: Machine, state: EnvelopeState) -> bool:
        found = _STRING.match(machine.buffer, machine.at, machine.at + MAX_NAME)
        return self._name(machine, state, found.end()) if found else self._unfinished(machine, "the tool's name")

    def _id(self, machine: Machine, state: EnvelopeState) -> bool:
        quoted = machine.buffer.startswith(('"', "'"), machine.at)
        found = (_STRING if quoted else _SCALAR).match(machine.buffer, machine.at, machine.at + MAX_NAME)
        if not found or (found.end() == len(machine.buffer) and not machine.final):
            return self._unfinished(machine, "the call's id") if not found else True
        assert machine.call is not None
        machine.call.id = _unquote(found.group())
        state.ids = (*state.ids, (*state.path, state.key))
        machine.take(Role.ID, found.end())
        if machine.call.name:
            machine.start_call()
        state.step = _NEXT
        return False

    def _arguments(self, machine: Machine, state: EnvelopeState) -> bool:
        head = machine.buffer[machine.at : machine.at + 1]
        if head not in _HEADS:
            return self._no_arguments(machine, state)
        state.scanner = LiteralScanner(self.style) if head == "{" else QuotedScanner(self.style)
        assert machine.call is not None
        machine.call.count = 1
        state.step = _SCAN
        return False

    def _no_arguments(self, machine: Machine, state: EnvelopeState) -> bool:
        """Instead of an object only null is read: a call without its arguments would be another call."""
        rest = machine.buffer[machine.at : machine.at + len(_NULLS[0])]
        if not machine.final and rest not in _NULLS and any(null.startswith(rest) for null in _NULLS):
            return True
        if rest in _NULLS:
            machine.take(Role.MARKER, machine.at + len(rest))
            state.step = _NEXT
        else:
            self._fail(machine, "a JSON object")
        return False

    def _scan(self, machine: Machine, state: EnvelopeState) -> bool:
        status = run_scanner(machine)
        if status is DONE:
            machine.scanner = state
            assert machine.call is not None
            if not machine.call.name:
                state.repeated = state.repeated or state.duplicate
            state.step = _NEXT
        return status is MORE

    def _skip(self, machine: Machine, state: EnvelopeState) -> bool:
        end, text, status = state.scan(machine.buffer, machine.at, final=machine.final)
        machine.take(Role.MARKER, end)
        if not state.skips:
            state.held.append(text)
        if status is DONE:
            if not state.skips:
                state.others = (*state.others, (state.key, "".join(state.held)))
                state.held = []
            state.step = _NEXT
        elif status is FAILED or machine.final:
            self._fail(machine, "a JSON value")
        return status is MORE and not machine.final

    def _next(self, machine: Machine, state: EnvelopeState) -> bool:
        if machine.buffer.startswith("}", machine.at):
            return self._close(machine, state)
        if not machine.final and self.ends.may_grow(machine.buffer, machine.at):
            return True
        if self.ends.at(machine.buffer, machine.at):
            machine.malformed("", "'}'")
            return self._finish(machine, state, 0)
        return self._punctuation(machine, state, ",", _KEY)

    def _close(self, machine: Machine, state: EnvelopeState) -> bool:
        call = machine.call
        assert call is not None
        if state.path:
            machine.take(Role.MARKER, machine.at + 1)
            state.path, state.step = state.path[:-1], _NEXT
            return False
        return self._finish(machine, state, 1)

    def _finish(self, machine: Machine, state: EnvelopeState, size: int) -> bool:
        """End the object; its closing brace has `size` characters."""
        call = machine.call
        assert call is not None
        if not call.name:
            self._fail(machine, "the tool's name")
            return False
        name = self.fields.args_field[-1] if self.fields.args_field else state.key
        if state.others and not settle(machine, state.others, name, takes=not self.strict):
            self._fail(machine, repr(name))
            return False
        machine.take(Role.MARKER, machine.at + size)
        if call.count == 0:
            machine.arguments("{}")
        machine.start_call()
        call.closed = True
        machine.scanner = None
        machine.pc += 1
        return False


_STEPS = {
    _OPEN: ReadEnvelope._open,
    _KEY: ReadEnvelope._key,
    _COLON: ReadEnvelope._colon,
    _VALUE: ReadEnvelope._value,
    _SCAN: ReadEnvelope._scan,
    _SKIP: ReadEnvelope._skip,
    _NEXT: ReadEnvelope._next,
}


def _unquote(text: str) -> str:
    if text[0] == '"' and "\\" in text:
        try:
            return str(json.loads(text, strict=False))
        except json.JSONDecodeError:
            return text[1:-1]
    return text[1:-1] if text[0] in "\"'" else text


METADATA = frozenset(("call_id", "function", "id", "index", "object", "status", "tool_call_id", "type"))
"""Fields that the wire forms of calls have beside name and arguments; their values are never objects."""
RawField = tuple[str, str]
"""A key, and its value as JSON text."""
_WRITTEN_KEY = re.compile(r'"([^"]+)"\s*:')


def known_fields(syntax: CallSyntax, fields: Envelope) -> frozenset[str]:
    """Return the keys that the format itself writes, those of name and arguments excepted: their values say nothing."""
    parts = [part for part in syntax.function if not isinstance(part, Slot)]
    written = {json.loads(f'"{key}"') for part in parts for key in _WRITTEN_KEY.findall(part)}
    return frozenset(written - {*fields.name_field[-1:], *fields.args_field[-1:]})


def settle(machine: Machine, others: Iterable[RawField], name: str, *, takes: bool) -> bool:
    """Say what a call is, at its end, that has other fields. Return False if it cannot be said for sure.

    `name` is the name of the arguments in the format; `takes` means that they may have another.
    """
    call = machine.call
    assert call is not None
    objects = {key: found for key, value in others if (found := _object_in(value))}
    # A field named like one of the tool's own arguments is that argument, in the wrong place.
    own = {key for key, _ in others if call.tool and call.types.schema(key) is not None}
    silent = METADATA if call.count else METADATA - own
    said = [key for key, _ in others if key in objects or key not in silent]
    if call.count or not said:
        for key in said:
            machine.malformed(key, "another field")
        return True
    if not takes or own or len([key for key in said if key in objects]) != 1:
        return False
    for key in said:
        machine.malformed(key, repr(name) if key in objects else "another field")
    arguments = "".join(objects.values())
    if duplicate := duplicate_key(arguments):
        machine.malformed(duplicate, "another argument")
    call.count = 1
    machine.arguments(arguments)
    return True


def _object_in(value: str) -> str:
    """Return the object that a value is, or that it holds as text; "" when it is or holds none."""
    if not value.startswith('"'):
        return value if value.startswith("{") else ""
    _, found, status = QuotedScanner(LiteralStyle()).scan(value, 0, final=True)
    return found if status is DONE and value.strip('" \t\n\r') else ""
