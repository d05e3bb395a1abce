"""Reads a call that is one JSON object, whose fields may be in any order.

Strategy: the object's structure is read here, and its values by the scanners of `values`. The call is committed at its name. Arguments before
the name are buffered. A bare object (without a marker before it) must start with the name, or with the arguments if the format puts them
first. Any other bare object is content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from unrender.format import Envelope, Slot
from unrender.limits import MAX_NAME
from unrender.machine.call_events import commit, name_meant, start_call, unoffered
from unrender.machine.calls import ONE_OF_THE_TOOLS, Steps
from unrender.machine.calls.arguments import ArgumentReader
from unrender.machine.frames import CallState
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.values import DONE, FAILED, MORE
from unrender.values.finder import NOT_HERE, Finder, odd_names
from unrender.values.json_text import duplicate_key
from unrender.values.scanner import LiteralScanner, LiteralStyle, QuotedScanner

# Accept single quotes too, because some models write Python: `{'name': 'f'}`.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_QUOTE = Finder(('"',))
_SCALAR = re.compile(r"[^\s,}\]]+")
_ARGUMENT_NAMES = frozenset(("arguments", "parameters"))
"""Keys that models use for the arguments, regardless of the template."""
_NULLS = ("null", "None")
"""Spellings of null, which all have the same length."""
METADATA = frozenset(("call_id", "function", "id", "index", "object", "status", "tool_call_id", "type"))
"""Metadata fields of calls in APIs, which are ignored unless their value is an object."""
RawField = tuple[str, str]
"""The key of an unknown field, and the JSON text of the field's value."""
Path = tuple[str, ...]


@dataclass(slots=True, eq=False)
class ObjectReader(ArgumentReader):
    """Reads the object of a call."""

    recover: int = -1
    """Address at which execution continues if a call with a name fails."""
    ids: set[Path] = field(default_factory=set)
    """Paths of the id fields read so far."""
    repeated: str = ""
    """Name of a field that was repeated before the tool name. The repetition is reported once the tool name is known."""
    others: list[RawField] = field(default_factory=list)
    """Unknown fields read so far."""

    def envelope(self, fields: Envelope) -> Steps[None]:
        """Read the object, from `{` to `}`."""
        self.ids, self.repeated, self.others = set(), "", []
        yield from self.space()
        self._punctuation("{")
        key = yield from self._fields(fields, ())
        machine, call = self.machine, self.machine.current
        # A brace may be missing at the end, as in `{"name": "f", "arguments": {}</call>`.
        size = len("}") * machine.buffer.startswith("}", machine.at)
        if not size:
            machine.malformed("", "'}'")
            call.repaired = True
        if not call.name:
            self.lack("the tool's name")
        name = fields.args_field[-1] if fields.args_field else key
        if self.others and not settle(machine, self.others, name, takes=not self.view.calls.whole):
            self.lack(repr(name))
        if _defines(call):
            if not call.begun:
                call.name = ""  # Like an object without a tool name, a tool definition isn't a failed call.
            self.lack("arguments, not the definition of a tool")
        machine.take(Role.MARKER, machine.at + size)
        if call.count == 0:
            machine.arguments("{}")
        start_call(machine)
        call.closed = True

    def lack(self, wanted: str) -> NoReturn:
        """Fail at the current position of the object."""
        self.machine.scanner = None
        self.fail(wanted)

    def _punctuation(self, char: str) -> None:
        machine = self.machine
        if not machine.buffer.startswith(char, machine.at):
            self.lack(repr(char))
        machine.take(Role.MARKER, machine.at + 1)

    def _fields(self, fields: Envelope, path: Path) -> Steps[str]:
        """Read the fields of an object up to its end, and return the last key. Unless `path` is empty, the brace is consumed too."""
        machine, key = self.machine, ""
        while True:
            yield from self.space()
            if not machine.buffer.startswith("}", machine.at):
                key = yield from self._field(fields, path)
                yield from self.space()
            if machine.buffer.startswith("}", machine.at):
                machine.take(Role.MARKER, machine.at + len(path[:1]))
                return key
            while not machine.final and self.view.object_ends.may_grow(machine.buffer, machine.at):
                yield
            if self.view.object_ends.at(machine.buffer, machine.at):
                return key
            self._punctuation(",")

    def _field(self, fields: Envelope, path: Path) -> Steps[str]:
        """Read one field, and return its key."""
        machine, named = self.machine, fields.name_is_key and not path
        key, end = yield from self._string("a key", declared=named)
        here = (*path, key)
        # If the name is repeated, the first one counts, because the call may already have been emitted.
        skips = self._repeats(fields, here)
        if skips:
            if machine.current.name:
                machine.malformed(key, "another field")
            else:
                self.repeated = key
        elif named:
            self._name(end, key)
        # The first key decides whether a bare object is a call, as in `{"name": …`, or an answer in JSON, as in `{"answer": 42}`.
        if not named or skips:
            shown = self.view.before_object and not self.view.calls.alone
            if not shown and not self._may_precede_name(fields, here):
                self.lack("the tool's name")
            machine.take(Role.MARKER, end)
        yield from self.space()
        self._punctuation(":")
        yield from self.space()
        yield from self._value_of(fields, here, skips=skips)
        return key

    def _string(self, wanted: str, *, declared: bool) -> Steps[tuple[str, int]]:
        """Return the string at the current position, which isn't consumed, and its end.

        If `declared` is True, the string may be a declared tool name without JSON escapes, as in `"say "hi""`.
        """
        machine = self.machine
        while machine.at == len(machine.buffer) and not machine.final:
            yield
        if declared and machine.buffer.startswith('"', machine.at):
            end = yield from self.declared(odd_names(machine.request._tool_names), _QUOTE, skips=1)
            if end != NOT_HERE and machine.buffer.startswith('"', end):
                return machine.buffer[machine.at + 1 : end], end + 1
        while not (text := _STRING.match(machine.buffer, machine.at, machine.at + MAX_NAME)):
            machine.steps += 1
            self._require_string(wanted)
            yield
        return _unquote(text.group()), text.end()

    def _require_string(self, wanted: str) -> None:
        """Fail if the text can't become a short string."""
        machine = self.machine
        head = machine.buffer[machine.at : machine.at + 1]
        begun = head in ("", '"', "'") and len(machine.buffer) - machine.at < MAX_NAME
        if begun and not machine.final:
            return
        # If the output ends in a key after the tool name, the call is cut off.
        if begun and machine.current.name:
            machine.take(Role.MARKER, len(machine.buffer))
        self.lack(wanted)

    def _repeats(self, fields: Envelope, path: Path) -> bool:
        """Return whether the field repeats an earlier one and is therefore ignored."""
        if _is_name(fields, path):
            return bool(self.machine.current.name)
        return path in self.ids or (_is_arguments(fields, path) and self.machine.current.count > 0)

    def _may_precede_name(self, fields: Envelope, path: Path) -> bool:
        slots = [part for part in self.view.calls.function if isinstance(part, Slot)]
        arguments_first = Slot.ARGUMENTS in slots[: slots.index(Slot.NAME)]
        if arguments_first and _is_arguments(fields, path):
            return True
        said = bool(self.machine.current.name) or path in (fields.name_field, fields.id_field, fields.gen_id_field)
        return said or path[-1] in ("type", "function") or _is_wrapper(fields, path)

    def _name(self, end: int, name: str) -> None:
        """Set the tool name, a string that ends at `end`, and commit the call."""
        machine = self.machine
        # Until a tool name is found, the object may be content, so don't consume anything before the name. If a marker other than a fence
        # precedes the object, the object can't be an answer in JSON.
        before = 0 if self.call_named(name) else name_meant(machine, name, machine.position + 1)
        shown = any("`" not in piece for piece in self.view.before_object)
        if before < 0 and not unoffered(machine, name, ONE_OF_THE_TOOLS, shown=shown):
            self.lack(ONE_OF_THE_TOOLS)
        machine.take(Role.MARKER, machine.at + 1)
        machine.take(Role.MALFORMED, machine.at + before)
        machine.take(Role.NAME, end - 1)
        machine.take(Role.MARKER, end)
        commit(machine, self.recover)
        if self.repeated:
            machine.malformed(self.repeated, "another field")
        # If the id follows the name, arguments are buffered and the call starts once both the name and id are known.
        order = [part for part in self.view.calls.function if part in (Slot.NAME, Slot.ID)]
        if order != [Slot.NAME, Slot.ID] or machine.current.id:
            start_call(machine)

    def _value_of(self, fields: Envelope, path: Path, *, skips: bool) -> Steps[None]:
        """Read the value of the field at `path`. If `skips` is True, the value is ignored."""
        machine = self.machine
        if skips:
            yield from self._ignore(path[-1], skips=True)
        elif _is_name(fields, path) and not fields.name_is_key:
            name, end = yield from self._string("the tool's name", declared=True)
            self._name(end, name)
        elif _is_arguments(fields, path):
            yield from self._arguments()
        elif path in (fields.id_field, fields.gen_id_field):
            yield from self._id(path)
        # In the format `{"type": "function", "function": {"name": …}}`, the fields of the inner object count.
        elif (_is_wrapper(fields, path) or path == ("function",)) and machine.buffer.startswith("{", machine.at):
            machine.take(Role.MARKER, machine.at + 1)
            yield from self._fields(fields, path)
        else:
            # Ignore additional fields that the format itself contains.
            ids = (field[: len(path)] for field in (fields.id_field, fields.gen_id_field))
            yield from self._ignore(path[-1], skips=path[-1] in self.view.known or path in ids)

    def _ignore(self, key: str, *, skips: bool) -> Steps[None]:
        """Skip the value of a field. At the end of the object, `settle` interprets the values of unknown fields."""
        machine, scanner, held = self.machine, LiteralScanner(self.view.object_style), [""]
        while True:
            machine.steps += 1
            end, text, status = scanner.scan(machine.buffer, machine.at, final=machine.final)
            machine.take(Role.MARKER, end)
            held.append("" if skips else text)
            if status is not MORE or machine.final:
                break
            yield
        if status is DONE and not skips:
            self.others.append((key, "".join(held)))
        elif status is FAILED or status is MORE:
            self.lack("a JSON value")

    def _id(self, path: Path) -> Steps[None]:
        machine = self.machine
        while True:
            machine.steps += 1
            quoted = machine.buffer.startswith(('"', "'"), machine.at)
            found = (_STRING if quoted else _SCALAR).match(machine.buffer, machine.at, machine.at + MAX_NAME)
            # The id may be incomplete: `"id": 12` may become `"id": 123`.
            if found and (found.end() < len(machine.buffer) or machine.final):
                break
            if not found:
                self._require_string("the call's id")
            yield
        machine.current.id = _unquote(found.group())
        self.ids.add(path)
        machine.take(Role.ID, found.end())
        if machine.current.name:
            start_call(machine)

    def _arguments(self) -> Steps[None]:
        """Read the arguments: an object, a string that contains an object, null, or nothing where the format writes nothing."""
        machine, style = self.machine, self.view.object_style
        while True:
            rest = machine.buffer[machine.at : machine.at + len(_NULLS[0])]
            if rest.startswith(("{", '"')):
                machine.current.count = 1
                scanner = LiteralScanner(style) if rest[0] == "{" else QuotedScanner(LiteralScanner(style))
                yield from self.scan(scanner)
                if not machine.current.name:
                    self.repeated = self.repeated or scanner.duplicate
                return
            if self.view.arguments.empty == "" and rest.startswith((",", "}")):
                return
            if rest in _NULLS:
                machine.take(Role.MARKER, machine.at + len(rest))
                return
            if not any(map(machine.may_begin, _NULLS)):
                self.lack("a JSON object")
            yield


def _is_name(fields: Envelope, path: Path) -> bool:
    if fields.name_is_key:
        return len(path) == 1
    # Models also use well-known formats such as `{"type": "function", "function": {"name": "f"}}`, so accept the name in `function`.
    return path == fields.name_field or path == ("function", *fields.name_field[-1:])


def _is_arguments(fields: Envelope, path: Path) -> bool:
    field = fields.args_field
    if fields.name_is_key:
        return len(path) == 1
    # Accept `parameters` instead of `arguments` and vice versa, because many models confuse the two.
    return path == field or (path[-1] in _ARGUMENT_NAMES and path[:-1] in (field[:-1], ("function",)))


def _is_wrapper(fields: Envelope, path: Path) -> bool:
    both = (fields.name_field, fields.args_field)
    return any(len(path) < len(field) and field[: len(path)] == path for field in both)


def _defines(call: CallState) -> bool:
    """Return whether the object is a tool definition, which contains a JSON Schema instead of arguments."""
    if '"properties"' not in "".join(call.arguments) or (call.tool and call.types.schema("properties") is not None):
        return False
    schema = _loaded(call)
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def _loaded(call: CallState) -> dict[str, Any]:
    """Return the arguments of a call. Empty if they aren't an object, or nested too deeply."""
    try:
        found = json.loads("".join(call.arguments), strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _unquote(text: str) -> str:
    # Only use the JSON parser for strings with escapes, such as `"caf\u00e9"`.
    if text[0] == '"' and "\\" in text:
        try:
            return str(json.loads(text, strict=False))
        except json.JSONDecodeError:
            return text[1:-1]
    return text[1:-1] if text[0] in "\"'" else text


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
        # In `{"arguments": {"a": 1}, "b": 2}`, the object may be closed too early.
        if call.count and not own.intersection(said) <= _loaded(call).keys():
            return False
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
    _, found, status = QuotedScanner(LiteralScanner(LiteralStyle())).scan(value, 0, final=True)
    return found if status is DONE and value.strip('" \t\n\r') else ""
