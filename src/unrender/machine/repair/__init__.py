"""Repairs slightly damaged calls, without guessing.

`walk` rewrites a damaged call in the syntax of its format, and the exact parser parses the result. This package decides when a call may be
repaired, where its text ends, and which parts of the result are used.

Rules: exact parsing always comes first, and repairs don't slow it down. A repair that fails doesn't change the parser's result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unrender.errors import ParseError
from unrender.limits import FREE_REREADS, MAX_SLOW_TEXT, MAX_WORD
from unrender.machine.call_events import NAMESPACE, begin_call, commit, complete_call, is_quoted, name_call
from unrender.machine.events import ArgumentsText, BrokenText, Event, ToolCallFinished, ToolCallStarted
from unrender.machine.frames import CallState
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import OR, Machine
from unrender.machine.repair.markers import Repair, Repaired
from unrender.machine.repair.walk import read_damaged
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes


@dataclass(frozen=True, slots=True)
class Damaged:
    """A call that couldn't be parsed exactly, although it has a start marker and the name of an offered tool."""

    repair: Repair
    tail: int
    """Address of the code that finds the end of the call."""

    def step(self, machine: Machine) -> bool:
        frame, wanted = machine.frames[-1], machine.wanted.partition(OR)[0] or "a call"
        if frame.holds or frame.role is not Role.CONTENT or machine.strict or machine.policy.repair == "none":
            return machine.fail(wanted)
        text = machine.buffer[machine.at : machine.at + MAX_WORD]
        whole = machine.final or len(text) == MAX_WORD
        word = self.repair.first_word(text)
        name = word.group().removeprefix(NAMESPACE) if word and (whole or word.end() < len(text)) else ""
        begins = bool(name and self.repair.tool(name, machine.request))
        head = None if begins else self.repair.behind_words(text, machine.request)
        begins = begins or head is not None
        if not begins and not whole:
            return True
        # Don't repair a call after a quotation mark, even if the call's start marker is a special token.
        frame.hub = max(frame.hub, 0)
        # If another word follows the start marker, the text isn't a truncated call.
        if not begins and word and word.end() < len(text):
            frame.cut = False
        if not begins or is_quoted(machine, frame) or not may_be_repaired(machine, self.repair):
            return machine.fail(wanted)
        call = begin_call(machine)
        failed = min(max(machine.at + 1, machine.failed_at), len(machine.buffer))
        call.broken = (wanted, machine.buffer[failed : failed + 1], machine.base + failed)
        # Skip text up to the name, because a marker before the name doesn't start another call.
        named = head or word
        machine.take(Role.MALFORMED, max(failed, machine.at + named.end()) if named else failed)
        return machine.go_to(self.tail)


def may_be_repaired(machine: Machine, repair: Repair | None) -> bool:
    """Return whether the current call may be repaired.

    A call can't be repaired if part of it was emitted or is in the prompt.
    """
    call = machine.call
    if (
        repair is None
        or machine.strict
        or machine.policy.repair == "none"
        or machine.searched > machine.position + FREE_REREADS
    ):
        return False
    start = call.start if call else machine.position
    if start < 0 or machine.position - start > MAX_SLOW_TEXT or machine.quotation:
        return False
    return call is None or not (call.begun or call.unoffered or machine.given_as_written(call) or machine.surplus(call))


def repaired(machine: Machine, repair: Repair, mark: str, hub: int) -> str:
    """Repair the call whose text ends before the marker `mark`.

    Returns "" if the repair failed. Otherwise, returns "run" if the text also ends the run of calls, or "call" if it doesn't. `hub` is the
    address of the code for content.
    """
    start = machine.current.start
    text = machine.since(start)
    if not text.endswith(mark):
        text += mark
    machine.searched += len(text)
    found = read_damaged(repair, text, machine.request)
    given = _read_exactly(machine, found, hub) if found else None
    if found is None or given is None:
        return ""
    machine.recall(start)
    cut_back(machine, start)
    if machine.frames and machine.frames[-1].at == start:
        machine.go_back(machine.frames[-1])
        commit(machine)
    call = machine.call = CallState(start=start)
    name_call(machine, given.name)
    call.id, call.arguments = given.id if found.has_id else "", [given.arguments]
    for damage in found.damage:
        machine.malformed(damage.found, damage.wanted, at=start + damage.at)
    for role, end in given.spans:
        machine.take(role, start + end - machine.base)
    complete_call(machine)
    return "run" if found.ends_run else "call"


def cut_back(machine: Machine, position: int) -> None:
    """Move back to `position` and remove all spans after it. No event may have a position after `position`."""
    roles, ends = machine.span_roles, machine.span_ends
    while ends and (ends[-2] if len(ends) > 1 else 0) >= position:
        del roles[-1], ends[-1]
    if ends and ends[-1] > position:
        ends[-1] = position
    machine.at, machine.scanner = position - machine.base, None


def give_up(machine: Machine, wanted: str) -> bool:
    """Fail because a call can't be repaired, and report where parsing originally failed. Always return False."""
    machine.searched += machine.position - machine.current.start
    failed = machine.current.broken[2] if machine.current.broken else machine.position
    machine.recall(failed)
    cut_back(machine, failed)
    machine.call = None
    return machine.fail(wanted.partition(OR)[0])


@dataclass(frozen=True, slots=True)
class _Given:
    name: str
    arguments: str
    id: str
    spans: tuple[tuple[Role, int], ...]


def _read_exactly(machine: Machine, found: Repaired, hub: int) -> _Given | None:
    """Parse the rewritten call. Return None if the call is invalid, or if its arguments don't match the tool's schema."""
    ids = CallIds(numbered_id)
    reader = Machine(program=machine.program, request=machine.request, ids=ids, roles={}, strict=True, pc=hub)
    try:
        events: list[Event | BrokenText] = [*reader.feed(found.text), *reader.finish()]
    except ParseError:
        return None
    arguments = "".join(event.text for event in events if isinstance(event, ArgumentsText))
    match [event for event in events if not isinstance(event, ArgumentsText)]:
        case [ToolCallStarted(name=name, id=id), ToolCallFinished(status="complete")]:
            written = "" if ids.made else id
        case _:
            return None
    if not _fits(machine, name, found.keys, arguments):
        return None
    return _Given(name, arguments, written, tuple(_placed(found, reader.final_spans())))


def _fits(machine: Machine, name: str, keys: Sequence[str], arguments: str) -> bool:
    """Return whether the arguments match the tool's schema. If `keys` isn't empty, the arguments must contain exactly these keys."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    types = ArgumentTypes.of(machine.request.tool(name))
    return list(given) == list(keys or given) and types.fit(arguments)


def _placed(found: Repaired, spans: list[tuple[Role, int]]) -> Iterator[tuple[Role, int]]:
    """Yield the role and the end of each span of the original text. Text that wasn't copied gets the role of a marker."""
    begin = at = 0
    for text, place in found.pieces:
        if place >= 0:
            yield from _left_out(found, at, place)
            at = place
            for role, end in spans:
                if begin < end and at < (stop := min(place + end - begin, place + len(text))):
                    yield role, stop
                    at = stop
        begin += len(text)
    yield from _left_out(found, at, found.end)


def _left_out(found: Repaired, begin: int, end: int) -> Iterator[tuple[Role, int]]:
    """Yield the spans of text that wasn't copied, i.e. markers of the format and unexpected text."""
    for damage in found.damage:
        stop = damage.at + len(damage.found)
        if begin <= damage.at and damage.at < stop <= end:
            yield Role.MARKER, damage.at
            yield damage.role, stop
    yield Role.MARKER, end
