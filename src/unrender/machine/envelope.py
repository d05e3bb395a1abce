"""Parses a call that is one JSON object, whose fields may be in any order.

Strategy: this module parses the structure of the object, and scanners parse the values. The call is committed at its name. Arguments before
the name are buffered. A bare object (without a marker before it) must start with the name, or with the arguments if the format puts them
first. Any other bare object is content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from unrender.format import Envelope
from unrender.limits import MAX_NAME
from unrender.machine.arguments import run_scanner
from unrender.machine.call_events import commit, name_call, name_meant, start_call, unoffered
from unrender.machine.frames import CallState
from unrender.machine.instructions import take_space
from unrender.machine.interpreter import Machine
from unrender.machine.names import ONE_OF_THE_TOOLS
from unrender.nodes import Role
from unrender.values.declared import NOT_HERE, odd_names
from unrender.values.finder import Finder
from unrender.values.json_text import duplicate_key
from unrender.values.resumable import DONE, FAILED, MORE, Scanner, Status, Taker
from unrender.values.scanner import LiteralScanner, LiteralStyle, QuotedScanner

# Accept single quotes too, because some models write Python: `{'name': 'f'}`.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_QUOTE = Finder(('"',))
_SCALAR = re.compile(r"[^\s,}\]]+")
_ARGUMENT_NAMES = frozenset(("arguments", "parameters"))
"""Keys that models use for the arguments, regardless of the template."""
_NULLS = ("null", "None")
"""Spellings of null, which all have the same length."""
_HEADS = ("{", '"')
"""First characters of arguments: an object, or a string that contains an object."""
_STYLES = {strict: LiteralStyle(strict=strict, loose_keys=not strict) for strict in (False, True)}
"""Notations of values: strict (True) and lenient (False)."""


@dataclass(slots=True, eq=False)
class EnvelopeState(Scanner):
    """The state of parsing the object, with a scanner for the current value."""

    step: str = "_open"
    """Name of the method that runs next."""
    path: tuple[str, ...] = ()
    """Keys of the objects around the current field, such as `function`."""
    key: str = ""
    value: Scanner = field(default_factory=Scanner)
    """Scanner for the current value."""
    ids: tuple[tuple[str, ...], ...] = ()
    """Paths of the id fields parsed so far."""
    skips: bool = False
    """True if the current value is ignored, e.g. in a repeated field."""
    repeated: str = ""
    """Name of a field that was repeated before the tool name. The repetition is reported once the tool name is known."""
    others: tuple[RawField, ...] = ()
    """Unknown fields parsed so far."""
    held: list[str] = field(default_factory=list)
    """Text of the current value, if the field is unknown."""

    @property
    def flow(self) -> Taker | None:
        return self.value.flow

    @property
    def duplicate(self) -> str:
        return self.value.duplicate

    def scan(self, text: str, start: int, *, final: bool) -> tuple[int, str, Status]:
        return self.value.scan(text, start, final=final)


@dataclass(frozen=True, slots=True)
class ReadEnvelope:
    """A call that is one JSON object, from `{` to `}`."""

    fields: Envelope
    recover: int
    bare: bool
    """True if no marker precedes the object."""
    arguments_first: bool
    """True if the format writes the arguments before the name."""
    waits: bool
    """True if the id follows the name. Arguments are then buffered until the name and id are known."""
    strict: bool
    ends: Finder
    """End markers of the call, which also end an object without a closing brace."""
    shown: bool = False
    """True if a marker other than a fence precedes the object, so that the object can't be an answer in JSON."""
    known: frozenset[str] = frozenset()
    """Other fields that the format contains."""
    left_out: bool = False
    """True if the format writes nothing for empty arguments: `{"name": "now", "arguments": }`."""

    def step(self, machine: Machine) -> bool:
        state = machine.scanner
        if not isinstance(state, EnvelopeState):
            state = machine.scanner = EnvelopeState()
        while machine.scanner is state:
            if state.step not in ("_scan", "_skip") and take_space(machine):
                return True
            pc = machine.pc
            if getattr(self, state.step)(machine, state):
                return True
            # If the object has ended or is invalid, `pc` has changed and this instruction is done.
            if machine.pc != pc:
                return False
        return False

    def _open(self, machine: Machine, state: EnvelopeState) -> bool:
        return self._punctuation(machine, state, "{", "_key")

    def _colon(self, machine: Machine, state: EnvelopeState) -> bool:
        return self._punctuation(machine, state, ":", "_value")

    def _punctuation(self, machine: Machine, state: EnvelopeState, char: str, following: str) -> bool:
        if not machine.buffer.startswith(char, machine.at):
            return self._fail(machine, repr(char))
        machine.take(Role.MARKER, machine.at + 1)
        state.step = following
        return False

    def _fail(self, machine: Machine, wanted: str) -> bool:
        machine.scanner = None
        return machine.fail(wanted)

    def _key(self, machine: Machine, state: EnvelopeState) -> bool:
        if machine.buffer.startswith("}", machine.at):
            return self._close(machine, state)
        if self.fields.name_is_key and not state.path and (end := _declared_end(machine)) != NOT_HERE:
            return end is None or self._name(machine, state, end, machine.buffer[machine.at + 1 : end - 1])
        found = _STRING.match(machine.buffer, machine.at, machine.at + MAX_NAME)
        if not found:
            return self._unfinished(machine, "a key")
        state.key = _unquote(found.group())
        state.skips = self._repeats(machine, state)
        # If the name is repeated, the first one counts, because the call may already have been emitted.
        if state.skips:
            self._report(machine, state)
        elif self.fields.name_is_key and not state.path:
            return self._name(machine, state, found.end(), state.key)
        # The first key decides whether a bare object is a call, as in `{"name": …`, or an answer in JSON, as in `{"answer": 42}`.
        if self.bare and not self._may_precede_name(machine, state):
            return self._fail(machine, "the tool's name")
        machine.take(Role.MARKER, found.end())
        state.step = "_colon"
        return False

    def _repeats(self, machine: Machine, state: EnvelopeState) -> bool:
        """Return whether the field repeats an earlier one and is therefore ignored."""
        path = (*state.path, state.key)
        if self._is_name(path):
            return bool(machine.current.name)
        return path in state.ids or (self._is_arguments(path) and machine.current.count > 0)

    def _report(self, machine: Machine, state: EnvelopeState) -> None:
        if machine.current.name:
            machine.malformed(state.key, "another field")
        else:
            state.repeated = state.key

    def _is_name(self, path: tuple[str, ...]) -> bool:
        if self.fields.name_is_key:
            return len(path) == 1
        # Models also use well-known formats such as `{"type": "function", "function": {"name": "f"}}`, so accept the name in `function`.
        return path == self.fields.name_field or path == ("function", *self.fields.name_field[-1:])

    def _may_precede_name(self, machine: Machine, state: EnvelopeState) -> bool:
        path = (*state.path, state.key)
        fields = (self.fields.name_field, self.fields.id_field, self.fields.gen_id_field)
        if self.arguments_first and self._is_arguments(path):
            return True
        said = bool(machine.current.name) or path in fields
        return said or state.key in ("type", "function") or self._is_wrapper(path)

    def _is_wrapper(self, path: tuple[str, ...]) -> bool:
        fields = (self.fields.name_field, self.fields.args_field)
        return any(len(path) < len(field) and field[: len(path)] == path for field in fields)

    def _unfinished(self, machine: Machine, wanted: str) -> bool:
        head = machine.buffer[machine.at : machine.at + 1]
        begun = head in ("", '"', "'") and len(machine.buffer) - machine.at < MAX_NAME
        if begun and not machine.final:
            return True
        # If the output ends in a key after the tool name, the call is cut off.
        if begun and machine.current.name:
            machine.take(Role.MARKER, len(machine.buffer))
        return self._fail(machine, wanted)

    def _name(self, machine: Machine, state: EnvelopeState, end: int, name: str) -> bool:
        # Until a tool name is found, the object may be content, so don't consume anything before the name.
        before = 0 if name_call(machine, name) else name_meant(machine, name, machine.position + 1)
        if before < 0 and not unoffered(machine, name, ONE_OF_THE_TOOLS, shown=self.shown):
            return self._fail(machine, ONE_OF_THE_TOOLS)
        machine.take(Role.MARKER, machine.at + 1)
        machine.take(Role.MALFORMED, machine.at + before)
        machine.take(Role.NAME, end - 1)
        machine.take(Role.MARKER, end)
        commit(machine, self.recover)
        if state.repeated:
            machine.malformed(state.repeated, "another field")
        if not self.waits or machine.current.id:
            start_call(machine)
        state.step = "_colon" if self.fields.name_is_key else "_next"
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
        # In the format `{"type": "function", "function": {"name": …}}`, the fields of the inner object count.
        wraps = self._is_wrapper(path) or path == ("function",)
        if wraps and machine.buffer.startswith("{", machine.at):
            machine.take(Role.MARKER, machine.at + 1)
            state.path, state.step = path, "_key"
            return False
        ids = (field[: len(path)] for field in (fields.id_field, fields.gen_id_field))
        # Ignore additional fields that the format itself contains.
        state.skips = state.key in self.known or path in ids
        return self._ignore(state)

    def _ignore(self, state: EnvelopeState) -> bool:
        """Skip the value of the current field. At the end of the object, `settle` interprets the values of unknown fields."""
        state.value = LiteralScanner(_STYLES[self.strict])
        state.step = "_skip"
        return False

    def _is_arguments(self, path: tuple[str, ...]) -> bool:
        field = self.fields.args_field
        if self.fields.name_is_key:
            return len(path) == 1
        # Accept `parameters` instead of `arguments` and vice versa, because many models confuse the two.
        return path == field or (path[-1] in _ARGUMENT_NAMES and path[:-1] in (field[:-1], ("function",)))

    def _read_name(self, machine: Machine, state: EnvelopeState) -> bool:
        if (end := _declared_end(machine)) != NOT_HERE:
            return end is None or self._name(machine, state, end, machine.buffer[machine.at + 1 : end - 1])
        found = _STRING.match(machine.buffer, machine.at, machine.at + MAX_NAME)
        if not found:
            return self._unfinished(machine, "the tool's name")
        return self._name(machine, state, found.end(), _unquote(found.group()))

    def _id(self, machine: Machine, state: EnvelopeState) -> bool:
        quoted = machine.buffer.startswith(('"', "'"), machine.at)
        found = (_STRING if quoted else _SCALAR).match(machine.buffer, machine.at, machine.at + MAX_NAME)
        # The id may be incomplete: `"id": 12` may become `"id": 123`.
        if not found or (found.end() == len(machine.buffer) and not machine.final):
            return self._unfinished(machine, "the call's id") if not found else True
        machine.current.id = _unquote(found.group())
        state.ids = (*state.ids, (*state.path, state.key))
        machine.take(Role.ID, found.end())
        if machine.current.name:
            start_call(machine)
        state.step = "_next"
        return False

    def _arguments(self, machine: Machine, state: EnvelopeState) -> bool:
        head = machine.buffer[machine.at : machine.at + 1]
        if head not in _HEADS:
            return self._no_arguments(machine, state)
        state.value = (LiteralScanner if head == "{" else QuotedScanner)(_STYLES[self.strict])
        machine.current.count = 1
        state.step = "_scan"
        return False

    def _no_arguments(self, machine: Machine, state: EnvelopeState) -> bool:
        """Parse null, or arguments that the format leaves out because they are empty."""
        if self.left_out and machine.buffer.startswith((",", "}"), machine.at):
            state.step = "_next"
            return False
        if not machine.buffer.startswith(_NULLS, machine.at):
            return any(map(machine.may_begin, _NULLS)) or self._fail(machine, "a JSON object")
        machine.take(Role.MARKER, machine.at + len(_NULLS[0]))
        state.step = "_next"
        return False

    def _scan(self, machine: Machine, state: EnvelopeState) -> bool:
        # `run_scanner` removes a finished scanner, so restore the state of the object.
        status = run_scanner(machine)
        if status is not DONE:
            return status is MORE
        machine.scanner = state
        if not machine.current.name:
            state.repeated = state.repeated or state.duplicate
        state.step = "_next"
        return False

    def _skip(self, machine: Machine, state: EnvelopeState) -> bool:
        end, text, status = state.scan(machine.buffer, machine.at, final=machine.final)
        machine.take(Role.MARKER, end)
        if not state.skips:
            state.held.append(text)
        if status is DONE:
            if not state.skips:
                state.others = (*state.others, (state.key, "".join(state.held)))
                state.held = []
            state.step = "_next"
        elif status is FAILED or machine.final:
            self._fail(machine, "a JSON value")
        return status is MORE and not machine.final

    def _next(self, machine: Machine, state: EnvelopeState) -> bool:
        if machine.buffer.startswith("}", machine.at):
            return self._close(machine, state)
        if not machine.final and self.ends.may_grow(machine.buffer, machine.at):
            return True
        # Report a missing outer brace, as in `{"name": "f", "arguments": {}</call>`.
        if self.ends.at(machine.buffer, machine.at):
            machine.malformed("", "'}'")
            machine.current.repaired = True
            return self._finish(machine, state, 0)
        return self._punctuation(machine, state, ",", "_key")

    def _close(self, machine: Machine, state: EnvelopeState) -> bool:
        if state.path:
            machine.take(Role.MARKER, machine.at + 1)
            state.path, state.step = state.path[:-1], "_next"
            return False
        return self._finish(machine, state, 1)

    def _finish(self, machine: Machine, state: EnvelopeState, size: int) -> bool:
        """End the object. `size` is the length of the object's closing brace."""
        call = machine.current
        if not call.name:
            return self._fail(machine, "the tool's name")
        name = self.fields.args_field[-1] if self.fields.args_field else state.key
        if state.others and not settle(machine, state.others, name, takes=not self.strict):
            return self._fail(machine, repr(name))
        if _defines(call):
            if not call.begun:
                call.name = ""  # Like an object without a tool name, a tool definition isn't a failed call.
            return self._fail(machine, "arguments, not the definition of a tool")
        machine.take(Role.MARKER, machine.at + size)
        if call.count == 0:
            machine.arguments("{}")
        start_call(machine)
        call.closed = True
        machine.scanner = None
        return machine.go_on()


def _defines(call: CallState) -> bool:
    """Return whether the object is a tool definition, which contains a JSON Schema instead of arguments."""
    text = "".join(call.arguments)
    if '"properties"' not in text or (call.tool and call.types.schema("properties") is not None):
        return False
    try:
        schema = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return isinstance(schema, dict) and schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def _declared_end(machine: Machine) -> int | None:
    """Return the end of a string that contains a declared name without JSON escapes, as in `"say "hi""`.

    Returns `NOT_HERE` if there is no such string, or None if more text is needed.
    """
    odd, at = odd_names(machine.request._tool_names), machine.at
    if not odd or not machine.buffer.startswith('"', at):
        return NOT_HERE
    end = odd.end_at(machine.buffer, at + 1, _QUOTE, final=machine.final)
    if end is None or end == NOT_HERE:
        return end
    return end + 1 if machine.buffer.startswith('"', end) else NOT_HERE


def _unquote(text: str) -> str:
    # Only use the JSON parser for strings with escapes, such as `"caf\u00e9"`.
    if text[0] == '"' and "\\" in text:
        try:
            return str(json.loads(text, strict=False))
        except json.JSONDecodeError:
            return text[1:-1]
    return text[1:-1] if text[0] in "\"'" else text


METADATA = frozenset(("call_id", "function", "id", "index", "object", "status", "tool_call_id", "type"))
"""Metadata fields of calls in APIs, which are ignored unless their value is an object."""
RawField = tuple[str, str]
"""The key of an unknown field, and the JSON text of the field's value."""
_WRITTEN_KEY = re.compile(r'"([^"]+)"\s*:')


def known_fields(texts: Iterable[str], fields: Envelope) -> frozenset[str]:
    """Return the JSON keys in the fixed `texts` of a call, except the keys of the name and the arguments."""
    written = {json.loads(f'"{key}"') for text in texts for key in _WRITTEN_KEY.findall(text)}
    return frozenset(written - {*fields.name_field[-1:], *fields.args_field[-1:]})


def settle(machine: Machine, others: Iterable[RawField], name: str, *, takes: bool) -> bool:
    """Interpret unknown fields at the end of a call. Return False if their meaning is ambiguous.

    `name` is the format's key for the arguments. If `takes` is True, the arguments may be under any other key too.
    """
    call = machine.current
    # If exactly one field contains an object, the object is the arguments, as in `{"name": "f", "args": {"a": 1}}`.
    objects = {key: found for key, value in others if (found := _object_in(value))}
    # A field with the name of one of the tool's arguments is a misplaced argument.
    own = {key for key, _ in others if call.tool and call.types.schema(key) is not None}
    # `id` may be metadata or an argument of the tool. If other arguments were found, treat `id` as metadata.
    silent = METADATA if call.count else METADATA - own
    said = [key for key, _ in others if key in objects or key not in silent]
    if call.count or not said:
        for key in said:
            machine.malformed(key, "another field")
        return True
    # Don't guess if two fields contain objects, or if an argument is misplaced, because some of the arguments might be lost.
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
    """Return the object in `value`, which is an object or a string that contains one. Return "" if there is no object."""
    if not value.startswith('"'):
        return value if value.startswith("{") else ""
    # The object may be encoded as a string, as in `"{\"a\": 1}"`.
    _, found, status = QuotedScanner(LiteralStyle()).scan(value, 0, final=True)
    return found if status is DONE and value.strip('" \t\n\r') else ""
