"""Decides where the text of a failed call goes, and whether text that was cut off is a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unrender.machine.buffer import relabel
from unrender.machine.events import ContentText
from unrender.machine.frames import CallState, Frame
from unrender.machine.policy import FailedCalls
from unrender.messages.wire import CallStatus, ToolCall
from unrender.nodes import Role

if TYPE_CHECKING:
    from unrender.machine.interpreter import Machine

_NAME = re.compile(r"[\w.:/-]{1,128}")
"""What the name of a tool looks like that is not offered."""
_LAST_WORD = re.compile(r"[\w.-]{3,}\Z")
"""What may be most of a tool's name, at the end of the output."""


def end_failed(machine: Machine, status: CallStatus, wanted: str, met: str, at: int | None = None) -> None:
    """End a call that cannot be completed, and report it. `Policy.failed_calls` says what becomes of its text.

    `at` is where it failed, if more was read since.
    """
    call = machine.current
    if machine.strict and at is None:
        machine.malformed(met, wanted)
    at = machine.base + machine.at if at is None else at
    cut = status is CallStatus.TRUNCATED and machine.cut_off
    if cut:
        machine.take(Role.MALFORMED, len(machine.buffer))
    # The caller has its beginning already: the same text is not given again as content.
    if machine.given_as_written(call):
        machine.end_call(status)
        machine.malformed(met, wanted, at=at)
        return
    # A prompt may have written the call's first marker, which is then not a part of the model's text.
    text = machine.since(max(call.start, 0) if machine.given else call.start)
    outcome = fate(machine, call, cut)
    if outcome == "call":
        call.arguments = [text]
        machine.end_call(status, text)
        machine.malformed(met, wanted, at=at)
        return
    machine.call = None
    failed = bool(call.name) or cut
    if not call.unoffered:  # It was reported at its name.
        machine.malformed(met, wanted, read_so_far(call, status, text) if failed else None, at)
    if outcome == "content":
        # White space between the call before and this one is between content and content.
        if machine.carried:
            machine.bring()
        machine.answered = True
    if text:
        machine.events += [ContentText(text)] if outcome == "content" else []
        role = Role.CONTENT if outcome == "content" else Role.MALFORMED
        relabel(machine.span_roles, machine.span_ends, call.start, machine.position, role)


def cut_short(machine: Machine, call: CallState | None = None) -> None:
    """End the output here: the rest of the text is a call that the token limit has cut off; `call` is what was read of it."""
    machine.call = call or CallState()
    machine.call.start, machine.call.cut = machine.base + machine.at, True
    machine.frames.clear()
    machine.fail_call(CallStatus.TRUNCATED, machine.wanted or "a call", "")
    machine.halted = True


def drop_opener(machine: Machine) -> None:
    """End the output in a marker of a call, or a part of one: it says nothing, and is reported."""
    if machine.length_limited:
        cut_short(machine)
        return
    machine.malformed(machine.buffer[machine.at :], "a call")
    machine.take(Role.MALFORMED, len(machine.buffer))


def cut_short_at(machine: Machine, frame: Frame) -> bool:
    """End the output at a way back where the limit has cut a call off; return False where none begins there."""
    machine.cut_from = frame.at
    if not _begins_call(machine, frame):
        return False
    cut_short(machine, frame.call)
    return True


def unoffered(machine: Machine, name: str, wanted: str, *, shown: bool = False) -> bool:
    """Read on in a call of a tool that is not offered, whose text is content to its end, and report it.

    Return False where what is before the name may be prose, unless a call is `shown` there: then what follows is read for itself.
    """
    frame = machine.frames[-1] if machine.frames else None
    shown = shown or (frame is not None and frame.reported and frame.alone)
    if machine.strict or frame is None or not shown or frame.role is not Role.CONTENT or not _NAME.fullmatch(name):
        return False
    machine.failed_here(wanted)
    machine.malformed(machine.since(frame.at), wanted, at=frame.at)
    call = machine.current
    call.name, call.known, call.unoffered = name, False, True
    return True


def fate(machine: Machine, call: CallState, cut: bool) -> FailedCalls:
    """Return what becomes of the text of a call that fails."""
    chosen = machine.policy.failed_calls
    if call.unoffered or machine.given_as_written(call):
        return "content"
    if machine.surplus(call):  # Who asked for one call does not get another in its place.
        return "content" if chosen == "content" else "apart"
    if chosen == "auto":
        return "apart" if cut else "content"
    # Before the call has its name, it is text that began like one, unless the limit has cut it off.
    if not call.name:
        return "apart" if cut and chosen == "call" else chosen if cut else "content"
    return chosen


def _begins_call(machine: Machine, frame: Frame) -> bool:
    """Return whether the text from a way back on, where the limit has cut it off, shows the call that it begins."""
    if frame.holds and not (frame.whole or frame.quotation):  # In reasoning that goes on it is a thought.
        return False
    if frame.call or frame.at == machine.separated or (frame.reported and frame.alone):
        return True
    # `functools[` alone may be prose; `functools[{"name": "get_we` is not.
    name = _LAST_WORD.search(machine.buffer, machine.at)
    names = (tool.name for tool in machine.request.tools or ())
    return name is not None and any(offered.startswith(name.group()) for offered in names)


def read_so_far(call: CallState, status: CallStatus, text: str = "") -> ToolCall:
    """Return a call as far as it was read; `text` is its own, where it failed."""
    arguments = "".join(call.arguments)
    return ToolCall(name=call.name, arguments=arguments, id=call.id, status=status, known=call.known, text=text)
