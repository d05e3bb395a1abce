"""Saves a machine in the middle of an answer as plain JSON data, and restores it, perhaps in another process.

Strategy: what a program and a request say is not saved, only where the reading is; a scanner is made anew by the
instruction that it belongs to. Each field is checked, so that data which no parser has written is a `StateError`.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from typing import Any

from unrender.machine.arguments import CloseArguments, Entries, JsonArguments, Value
from unrender.machine.envelope import LAST_STEP, EnvelopeState, ReadEnvelope
from unrender.machine.frames import CallState, Frame
from unrender.machine.ids import CallIds
from unrender.machine.instructions import Attempt, Jump, Lit, Maybe, MaybeFence, Soft, Space
from unrender.machine.interpreter import ABANDONED, Machine, Program
from unrender.machine.policy import read_policy, save_policy
from unrender.machine.saved import MOST, Saved
from unrender.machine.slots import Commit, EndId, MarkId, ReadKey, ReadName, ReadWord, RepeatKey, RepeatName, SkipWords
from unrender.machine.tail import Tail
from unrender.messages.wire import CallStatus
from unrender.nodes import Role
from unrender.parser.saved_events import read_events, save_events
from unrender.values.code_value import CodeValueScanner
from unrender.values.coercion import ArgumentTypes
from unrender.values.flow import Scanner
from unrender.values.joined import JoinedScanner
from unrender.values.json_strings import QuotedScanner
from unrender.values.raw import EscapedScanner, RawScanner
from unrender.values.scanner import MAX_DEPTH, LiteralScanner, LiteralStyle
from unrender.values.wellformed import END, KEY_STRING, STRING, VALUE
from unrender.values.xml import XmlScanner

_ROLES = {role.value: role for role in Role}
_STATUSES = {status.value: status for status in CallStatus}
_FLAGS = ("answered", "fenced", "final", "given", "halted", "length_limited", "loose", "mentioned", "strict")
_INSIDE = (
    *(MarkId, EndId, ReadName, ReadWord, SkipWords, Commit, ReadKey, RepeatName, RepeatKey),
    *(JsonArguments, Entries, Value, CloseArguments, ReadEnvelope),
)
"""Instructions that work on a call."""
_STRAIGHT = (Lit, Maybe, MaybeFence, Soft, Space)
"""Instructions that go on to the next one."""


def save_machine(machine: Machine) -> dict[str, Any]:
    """Return the data from which `read_machine` restores the machine."""
    machine.forget()
    past = "".join(machine.past)
    return {
        **{name: getattr(machine, name) for name in _FLAGS},
        "pc": machine.pc,
        "base": machine.base,
        "past": past,
        "buffer": machine.buffer,
        "at": machine.at,
        "failed_at": max(-1, machine.failed_at),  # Whatever is before the buffer is before all that can still fail.
        "wanted": machine.wanted,
        "calls": machine.calls,
        "closed": min(machine.closed, ABANDONED),
        "steps": machine.steps,
        "reread": machine.reread,
        **_save_ids(machine.ids),
        "policy": save_policy(machine.policy),
        "roles": [role.value for role in machine.span_roles],
        "ends": list(machine.span_ends),
        "carried": list(machine.carried),
        "carried_spans": list(machine.carried_spans),
        "events": save_events(machine.events),
        "frames": [_save_frame(frame, machine.released) for frame in machine.frames],
        "call": _save_call(machine.call, machine.base - len(past)) if machine.call else None,
        "scanner": _save_scanner(machine.scanner) if machine.scanner else None,
    }


def read_machine(saved: Saved, machine: Machine, calls: int) -> None:
    """Bring a new machine to the state that was saved; `calls` is the number of calls that have left it so far."""
    for name in _FLAGS:
        setattr(machine, name, saved.flag(name))
    machine.pc = saved.number("pc", 0, len(machine.program) - 1)
    machine.base = saved.number("base", -MOST)
    past = saved.text("past")
    machine.past = deque([past] if past else [])
    machine.past_start = machine.base - len(past)
    machine.buffer = saved.text("buffer")
    machine.at = saved.number("at", 0, len(machine.buffer))
    machine.failed_at = saved.number("failed_at", -1, len(machine.buffer))
    machine.wanted = saved.text("wanted")
    _read_ids(saved, machine.ids)
    machine.closed = saved.number("closed", 0, ABANDONED)
    machine.steps, machine.reread = saved.number("steps"), saved.number("reread")
    machine.policy = read_policy(saved.part("policy"))
    _read_spans(saved, machine)
    machine.events, counts = read_events(saved.objects("events"), calls, MOST)
    machine.calls = saved.number("calls", counts[-1], counts[-1])
    least = machine.base - len(past)
    machine.frames = []
    for item in saved.objects("frames"):
        frame = _read_frame(item, machine, least, counts)
        machine.frames.append(frame)
        least = frame.at
    call = saved.object("call")
    machine.call = _read_call(call, machine) if call else None
    saved.require("call", machine.call is not None or not _inside_call(machine.program, machine.pc), "a call")
    scanner = saved.object("scanner")
    machine.scanner = _read_scanner(scanner, machine) if scanner else None


def _save_ids(ids: CallIds) -> dict[str, Any]:
    taken = sorted(ids.taken.items(), key=itemgetter(1))
    return {"ids": [id for id, _ in taken], "id_calls": [call for _, call in taken], "id_offset": ids.offset}


def _read_ids(saved: Saved, ids: CallIds) -> None:
    texts, calls = saved.texts("ids"), saved.numbers("id_calls", -1, MOST)
    saved.require("ids", len(texts) == len(calls), "a call for each id")
    ids.taken, ids.offset = dict(zip(texts, calls, strict=True)), saved.number("id_offset")


def _read_spans(saved: Saved, machine: Machine) -> None:
    roles = saved.texts("roles")
    saved.require("roles", all(role in _ROLES for role in roles), "names of roles")
    machine.span_roles = [_ROLES[role] for role in roles]
    machine.span_ends = saved.numbers("ends", -MOST, machine.base + machine.at)
    saved.require("ends", len(machine.span_ends) == len(roles), "an end for each role")
    machine.carried = saved.texts("carried")
    machine.carried_spans = saved.numbers("carried_spans", 0, len(roles) - 1)


def _inside_call(program: Program, pc: int) -> bool:
    """Return whether the code at `pc` works on a call that has been begun."""
    for _ in program:
        instruction = program[pc]
        if isinstance(instruction, _INSIDE):
            return True
        if isinstance(instruction, Jump):
            pc = instruction.target
        elif isinstance(instruction, _STRAIGHT):
            pc += 1
        else:
            return False
    return False


# Ways back.


def _save_frame(frame: Frame, released: int) -> dict[str, Any]:
    names = ("attempt", "at", "spans", "span_end", "calls", "holds", "whole")
    own = {name: getattr(frame, name) for name in names}
    return {"left": len(frame.targets), "events": frame.events - released, **own}


def _read_frame(saved: Saved, machine: Machine, least: int, counts: list[int]) -> Frame:
    attempt = saved.number("attempt", 0, len(machine.program) - 1)
    instruction = machine.program[attempt]
    if not isinstance(instruction, Attempt):
        raise saved.refuse("attempt", "the place of an attempt")
    left = saved.number("left", 0, len(instruction.targets) - 1)
    targets = instruction.targets[len(instruction.targets) - left :]
    events = saved.number("events", 0, len(counts) - 1)
    states = ((True, False),) if instruction.sealed >= 0 else ((False, False), (True, True))
    saved.require("holds", (saved.flag("holds"), saved.flag("whole")) in states, "what holds calls here")
    return Frame(
        targets=targets,
        otherwise=instruction.otherwise,
        at=saved.number("at", least, machine.base + machine.at),
        events=events,
        spans=saved.number("spans", 0, len(machine.span_roles)),
        span_end=saved.number("span_end", -MOST),
        calls=saved.number("calls", counts[events], counts[events]),
        holds=saved.flag("holds"),
        sealed=instruction.sealed,
        reported=instruction.reported and instruction.sealed < 0,
        whole=saved.flag("whole"),
        attempt=attempt,
    )


# The call.

_CALL_TEXTS = ("name", "id", "key", "kind", "latest")
_CALL_FLAGS = ("known", "begun", "closed", "ended", "listing")
_HOLDS = {kind: kind for kind in ("", "raw", "read")}


def _save_call(call: CallState, least: int) -> dict[str, Any]:
    names = (*_CALL_TEXTS, *_CALL_FLAGS, "holds", "count", "recover", "separated")
    lists = {"keys": sorted(call.keys), "arguments": list(call.arguments), "held": list(call.held)}
    return {
        **lists,
        "mark": max(call.mark, least),
        "start": max(call.start, least),
        **{name: getattr(call, name) for name in names},
    }


def _read_call(saved: Saved, machine: Machine) -> CallState:
    least = machine.past_start if machine.past else machine.base
    call = CallState()
    for name in _CALL_TEXTS:
        setattr(call, name, saved.text(name))
    for name in _CALL_FLAGS:
        setattr(call, name, saved.flag(name))
    saved.require("begun", machine.calls > 0 or not call.begun, "a call that has been told of")
    call.keys, call.arguments = set(saved.texts("keys")), saved.texts("arguments")
    call.holds, call.held = saved.choice("holds", _HOLDS), saved.texts("held")
    call.count, call.separated = saved.number("count"), saved.number("separated")
    call.mark = saved.number("mark", least, machine.base + machine.at)
    call.start = saved.number("start", least, machine.base + machine.at)
    call.recover = saved.number("recover", 0, len(machine.program) - 1)
    saved.require("recover", not call.recover or isinstance(machine.program[call.recover], Tail), "where a call ends")
    call.tool = machine.request.tool(call.name) if call.name else None
    call.types = ArgumentTypes(call.tool)
    return call


# Scanners.

_RAW = ("is_string", "begun", "head", "blank", "held")
_SCANNERS: dict[type[Any], tuple[str, tuple[str, ...]]] = {
    LiteralScanner: ("literal", ("state", "stack", "quote", "comma", "keys")),
    QuotedScanner: ("quoted", ("opened", "done")),
    RawScanner: ("raw", _RAW),
    EscapedScanner: ("escaped", (*_RAW, "kept")),
    JoinedScanner: ("joined", _RAW),
    CodeValueScanner: ("code", ("held", "said", "closed", "settled")),
    XmlScanner: ("tags", ("depth", "begun", "held", "kept")),
    EnvelopeState: ("envelope", ("step", "path", "key", "ids", "skips", "repeated", "others", "held")),
}


def _save_scanner(scanner: Scanner) -> dict[str, Any]:
    kind, names = _SCANNERS[type(scanner)]
    inside = _inside(scanner)
    saved = {"kind": kind, **{name: _plain(getattr(scanner, name)) for name in names}}
    return {**saved, "inner": _save_scanner(inside) if inside else None}


def _inside(scanner: Any) -> Scanner | None:
    """Return the scanner that reads inside `scanner`, if there is one."""
    match scanner:
        case QuotedScanner():
            return scanner.inner
        case RawScanner():
            return scanner.literal
        case CodeValueScanner():
            return scanner.raw if scanner.settled else scanner.literal
        case EnvelopeState():
            return scanner.scanner
    return None


def _plain(value: Any) -> Any:
    """Return lists for lists and tuples, so that the state is plain data and nobody else's."""
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _read_scanner(saved: Saved, machine: Machine) -> Scanner:
    instruction = machine.program[machine.pc]
    kind = saved.text("kind")
    if isinstance(instruction, ReadEnvelope) and kind == "envelope":
        return _read_envelope(saved, instruction)
    made: Scanner | None = None
    if isinstance(instruction, JsonArguments):
        made = _json_scanner(kind, instruction.style)
    elif isinstance(instruction, Value):
        assert machine.call is not None
        made = instruction.scanner(machine.call, quoted=kind == "code")
    if made is None or _SCANNERS[type(made)][0] != kind:
        raise saved.refuse("kind", "the kind of value that is read here")
    _fill(made, saved)
    return made


def _json_scanner(kind: str, style: LiteralStyle) -> LiteralScanner | QuotedScanner | None:
    if kind == "literal":
        return LiteralScanner(style)
    return QuotedScanner(style) if kind == "quoted" else None


def _fill(scanner: Any, saved: Saved) -> None:
    match scanner:
        case LiteralScanner():
            _fill_literal(scanner, saved)
        case QuotedScanner():
            scanner.opened, scanner.done = saved.flag("opened"), saved.flag("done")
            _fill_literal(scanner.inner, saved.part("inner"))
        case RawScanner():
            scanner.is_string, scanner.begun, scanner.blank = (saved.flag(n) for n in ("is_string", "begun", "blank"))
            scanner.head, scanner.held = saved.text("head"), saved.texts("held")
            if literal := saved.object("inner"):
                scanner.literal = scanner.structured()
                _fill_literal(scanner.literal, literal)
            if isinstance(scanner, EscapedScanner):
                scanner.kept = saved.text("kept")
        case CodeValueScanner():
            scanner.held, scanner.said = saved.texts("held"), saved.texts("said")
            scanner.closed, scanner.settled = saved.flag("closed"), saved.flag("settled")
            _fill(scanner.raw if scanner.settled else scanner.literal, saved.part("inner"))
        case XmlScanner():
            scanner.depth, scanner.begun = saved.number("depth", -MOST), saved.flag("begun")
            scanner.held, scanner.kept = saved.texts("held"), saved.text("kept")


def _fill_literal(scanner: LiteralScanner, saved: Saved) -> None:
    scanner.state = saved.number("state", VALUE, END)
    scanner.keys = saved.text("keys")
    scanner.stack, scanner.comma, scanner.quote = saved.text("stack"), saved.text("comma"), saved.text("quote")
    saved.require("stack", set(scanner.stack) <= set("{[") and len(scanner.stack) <= MAX_DEPTH, "open brackets")
    saved.require("stack", bool(scanner.stack) or scanner.state in (VALUE, STRING, END), "an open bracket")
    quotes = {'"', "'", *([scanner.style.quote_open] if scanner.style.quote_open else [])}
    needed = scanner.state in (STRING, KEY_STRING)
    saved.require("quote", scanner.quote in quotes or not (needed or scanner.quote), "a quotation mark of this format")


def _read_envelope(saved: Saved, instruction: ReadEnvelope) -> EnvelopeState:
    state = EnvelopeState()
    state.step = saved.number("step", 0, LAST_STEP)
    state.path, state.key = tuple(saved.texts("path")), saved.text("key")
    state.skips, state.repeated = saved.flag("skips"), saved.text("repeated")
    others, state.held = saved.items("others"), saved.texts("held")
    pairs = all(isinstance(item, list) and list(map(type, item)) == [str, str] for item in others)
    saved.require("others", pairs, "a list of keys with their values")
    state.others = tuple((key, value) for key, value in others)
    ids = saved.items("ids")
    saved.require("ids", all(isinstance(path, list) for path in ids), "a list of paths")
    state.ids = tuple(map(tuple, ids))
    inner = saved.object("inner")
    if inner:
        state.scanner = _json_scanner(inner.text("kind"), instruction.style)
        inner.require("kind", state.scanner is not None, "the kind of value that is read here")
        _fill(state.scanner, inner)
    saved.require("inner", state.scanner is not None or not state.in_value, "a value that is read")
    return state
