"""Handles the start, name and end of calls, quotations around calls, and the text of failed calls."""

from __future__ import annotations

import re

from unrender.limits import MAX_BLANK, MAX_CONTEXT
from unrender.machine import (
    ArgumentsText,
    ContentText,
    FailedCalls,
    Malformed,
    ToolCallFinished,
    ToolCallStarted,
    instead_of_call,
)
from unrender.machine.frames import CallState, Frame, relabel
from unrender.machine.interpreter import Machine
from unrender.machine.quotation import going_on, opened
from unrender.messages import CallStatus, Request, ToolCall
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes
from unrender.values.finder import SPACE, end_of

NAMESPACE = "functions."
"""Namespace that some formats put before tool names. Some models add the namespace even in other formats."""
ABANDONED = 1 << 30
"""Value of `machine.closed` that prevents an abandoned call's end markers from being reported as missing. The value exceeds the number of
end markers of any call.
"""
_BETWEEN = frozenset((Role.MARKER, Role.LAYOUT))
"""Roles of text that is allowed between content and a call."""
_NAME = re.compile(r"[\w.:/-]{1,128}")
"""Matches any name that a tool might have, for tools that aren't offered."""
_LAST_WORD = re.compile(r"[\w.-]{3,}\Z")
"""Matches text at the end of the output that may be the start of a tool name."""


def begin_call(machine: Machine) -> CallState:
    """Create the state of a new call."""
    # The text of a failed call starts at its first marker, where the backtracking point is.
    # A further call of a run starts after the call before it.
    start = max(machine.frames[-1].at, machine.separated) if machine.frames else machine.position
    machine.call = CallState(start=start)
    machine.closed = 0
    return machine.call


def offers(machine: Machine, name: str) -> bool:
    """Return whether a call may use this tool name."""
    request = machine.request
    any_name = request.tools is None or machine.policy.unknown_tools == "call"
    return bool(name) and (any_name or request.tool(name) is not None)


def name_call(machine: Machine, name: str) -> bool:
    """Set the name of the call. If no such tool is offered, return False and change nothing."""
    if not offers(machine, name):
        return False
    call, tools, tool = machine.current, machine.request.tools, machine.request.tool(name)
    call.name, call.tool, call.offered = name, tool, tools is None or tool is not None
    call.types = ArgumentTypes.of(tool)
    return True


def name_meant(machine: Machine, name: str, position: int) -> int:
    """Correct a misspelled tool name at `position`, and report it.

    A namespace before the name is allowed. The policy `repair="offered"` also corrects upper and lower case. Returns the length of the text
    before the name, or -1 if no tool or more than one tool matches.
    """
    if machine.policy.repair == "none" or machine.strict or not name:
        return -1
    alone = name.removeprefix(NAMESPACE)
    meant = [alone] if machine.request.tool(alone) else []
    if not meant and machine.policy.repair == "offered":
        meant = [offered for offered in machine.request._tool_names if offered.lower() == alone.lower()]
    if len(meant) != 1 or not name_call(machine, meant[0]):
        return -1
    before = len(name) - len(alone)
    machine.malformed(name[:before] or name, repr(meant[0]), at=position)
    machine.current.repaired = True
    return before


def glued(request: Request, text: str) -> str:
    """Return the tool if `text` consists of a tool name and one of the tool's argument names. Return "" if no tool or more than one tool
    matches.
    """
    named = [name for name in request._tool_names if name and text.startswith(name)]
    found = [name for name in named if text[len(name) :] in ArgumentTypes.of(request.tool(name)).declared]
    return found[0] if len(found) == 1 else ""


def start_call(machine: Machine) -> None:
    """Emit the start of the call, if calls are streamed."""
    if machine.given_as_written(machine.current):
        _emit_start(machine)


def _emit_start(machine: Machine) -> None:
    """Emit the start of the call, and the arguments buffered before it."""
    call = machine.current
    if call.begun:
        return
    call.begun = True
    call.id = machine.ids.give(machine.calls, call.name, call.id)
    machine.events.append(ToolCallStarted(machine.calls, call.id, call.name, call.offered, call.start))
    if expected := instead_of_call(machine.request, call.name):
        # Backtracking may still remove this event, so a strict parser raises the error only once the event is final.
        machine.events.append(Malformed(call.name, call.start, expected))
    # Emit arguments that precede the name, as in `{"arguments": {…}, "name": "f"}`.
    if waiting := "".join(call.arguments):
        machine.events.append(ArgumentsText(machine.calls, waiting))
    machine.calls += 1


def end_call(machine: Machine, status: CallStatus, text: str = "") -> None:
    """Emit the end of the call. If the start wasn't emitted yet, emit the start and the arguments first."""
    _emit_start(machine)
    machine.events.append(ToolCallFinished(machine.calls - 1, status, text, machine.position))
    machine.call, machine.thinks = None, True


def complete_call(machine: Machine) -> None:
    """End a complete call. If the request allows no more calls, the call fails."""
    call = machine.current
    if call.unoffered:
        machine.frames.clear()  # The call's text becomes content whether or not it's quoted, so no backtracking is needed.
        fail_call(machine, "invalid", "", "")
        machine.closed = ABANDONED
    elif machine.surplus(call):
        fail_call(machine, "invalid", "no more than one call", call.name, call.start)
    else:
        end_call(machine, "complete")


def seal(machine: Machine) -> None:
    """Close the frame that holds one complete call, unless the call may be quoted."""
    if machine.frames and machine.frames[-1].whole and not machine.frames[-1].quotation:
        machine.frames.pop()


def open_call(machine: Machine) -> ToolCall | None:
    """Return the part of the current call that was parsed. Return None if the start of the call was already emitted, or if the call may
    still be text.
    """
    call = machine.call
    # Return None, because a call without a name or after an open backtracking point may still be text.
    if call is None or not call.name or call.begun or call.unoffered:
        return None
    if machine.frames and machine.frames[0].at <= call.start:
        return None
    return _read_so_far(call, "open")


# Backtracking points, and calls that may be quoted


def commit(machine: Machine, recover: int = -1) -> None:
    """Close all backtracking points except those that hold a call. If a call fails later, execution continues at the address `recover`."""
    if recover >= 0:
        machine.recover = recover
        if machine.call:
            machine.call.committed = True
    # Keep the frame of a call inside reasoning open, because the call may turn out to be part of the reasoning.
    while machine.frames and not is_quoted(machine, machine.frames[-1]) and not machine.frames[-1].holds:
        machine.frames.pop()


def is_quoted(machine: Machine, frame: Frame) -> bool:
    """Return whether a quotation is open at the backtracking point. If a quotation is open, the frame buffers the text that follows."""
    if frame.hub < 0 or frame.quotation:
        return frame.quotation is not None
    (before, thought), call = _text_before(machine, frame), machine.since(frame.at)
    cut = len(before) >= MAX_CONTEXT
    found = opened(before, cut=cut, anchored=frame.anchored and not thought, call=call)
    frame.quotation = going_on(found) if thought and found else found
    if frame.quotation is None:
        frame.hub = -1
        return False
    frame.holds = True
    return True


def _text_before(machine: Machine, frame: Frame) -> tuple[str, bool]:
    """Return the free text before a backtracking point, and whether that text is reasoning that has ended."""
    position, spans, line = frame.at, frame.spans, ""
    while spans:
        role = machine.span_roles[spans - 1]
        before = "" if role in _BETWEEN else machine.context(position, spans, MAX_CONTEXT)
        if before.strip() or (role not in _BETWEEN and not before):
            return before + line, role is not frame.role
        # Skip headers to find a quotation before them, as in "`<|im_start|>assistant <call>`".
        spans -= 1
        begin = machine.span_ends[spans - 1] if spans else 0
        line = "\n" if "\n" in machine.recent(max(begin, position - MAX_CONTEXT), position) else line
        position = begin
    return "", False


def begins_line(machine: Machine, frame: Frame) -> bool:
    """Return whether only whitespace precedes a backtracking point on its line."""
    if not frame.spans or machine.span_ends[frame.spans - 1] != frame.at:
        return True
    before = machine.context(frame.at, frame.spans, MAX_BLANK)
    after = machine.since(frame.at) + machine.buffer[machine.at : machine.at + MAX_BLANK]
    text = before + after[: end_of(SPACE, after, 0)]
    line = text[text.rfind("\n") + 1 :]
    return not line.strip() and (len(line) < len(text) or len(before) < MAX_BLANK)


def unquote(machine: Machine) -> None:
    """Accept a call that was buffered because it might have been quoted."""
    frame = machine.frames[-1]
    frame.quotation = None
    if machine.call is None or not frame.whole:
        machine.frames.pop()


def fail_call(machine: Machine, status: CallStatus, wanted: str, met: str, at: int | None = None) -> None:
    """End a call that can't be completed, and report it. `Policy.failed_calls` determines where the call's text is returned.

    `at` is the position of the failure, if more text was consumed since then.
    """
    call = machine.current
    if machine.strict and at is None:
        machine.malformed(met, wanted)
    machine.barrier = at = machine.position if at is None else at
    cut = status == "truncated" and machine.cut_at(call)
    if cut:
        machine.take(Role.MALFORMED, len(machine.buffer))
    # The start of a streamed call was already emitted, so don't emit its text as content.
    streamed = machine.given_as_written(call)
    # The call's first marker may be part of the prompt, so exclude it from the model's text.
    text = "" if streamed else machine.since(max(call.start, 0) if machine.given else call.start)
    outcome = fate(machine, call, cut)
    if streamed or outcome == "call":
        call.arguments = call.arguments if streamed else [text]
        end_call(machine, status, text)
        machine.malformed(met, wanted, at=at)
        return
    machine.call = None
    failed = bool(call.name) or cut
    if not call.unoffered:  # Calls of unoffered tools were already reported at the tool name.
        machine.malformed(met, wanted, _read_so_far(call, status, text) if failed else None, at)
    if outcome == "content":
        # Carried whitespace is now between two pieces of content, so emit it.
        if machine.carried:
            machine.bring()
        machine.answered = True
    if text:
        machine.events += [ContentText(text)] if outcome == "content" else []
        role = Role.CONTENT if outcome == "content" else Role.MALFORMED
        relabel(machine.span_roles, machine.span_ends, call.start, machine.position, role)


def call_failed(machine: Machine) -> bool:
    """Return whether the latest call failed, so that its end markers are content."""
    policy = machine.policy
    return (
        machine.closed == ABANDONED and policy.tool_calls == "complete" and policy.failed_calls in ("auto", "content")
    )


def cut_short(machine: Machine, call: CallState | None = None) -> bool:
    """Handle a call that the token limit cut off at the end of the output. `call` contains the part of it that was parsed."""
    machine.call = call or CallState()
    machine.call.start, machine.call.cut = machine.position, True
    machine.frames.clear()
    fail_call(machine, "truncated", machine.wanted or "a call", "")
    machine.halted = True
    return False


def drop_opener(machine: Machine) -> None:
    """Handle output that ends inside the start marker of a call. The marker is reported and dropped."""
    if machine.length_limited:
        cut_short(machine)
        return
    machine.malformed(machine.buffer[machine.at :], "a call")
    machine.take(Role.MALFORMED, len(machine.buffer))


def unoffered(machine: Machine, name: str, wanted: str, *, shown: bool = False) -> bool:
    """Start and report a call of a tool that isn't offered. The call's text is content up to its end.

    Returns False if the text before the name may be prose. `shown` is True if the text before the name definitely starts a call.
    """
    frame = machine.frames[-1] if machine.frames else None
    others = machine.policy.repair == "offered" and frame is not None and bool(frame.targets)
    if others or (machine.policy.repair != "none" and glued(machine.request, name)):
        return False  # Keep trying, because another syntax may have the name elsewhere, or a repair may find it.
    shown = shown or (frame is not None and frame.reported and frame.alone)
    if machine.strict or frame is None or not shown or frame.role is not Role.CONTENT or not _NAME.fullmatch(name):
        return False
    machine.failed_here(wanted)
    machine.malformed(machine.since(frame.at), wanted, at=frame.at)
    call = machine.current
    call.name, call.offered, call.unoffered = name, False, True
    return True


def fate(machine: Machine, call: CallState, cut: bool) -> FailedCalls:
    """Return the treatment of a failed call's text."""
    chosen = machine.policy.failed_calls
    if call.unoffered or machine.given_as_written(call):
        return "content"
    if machine.surplus(call):  # The request allows only one call, so don't return another one.
        return "content" if chosen == "content" else "apart"
    if chosen == "auto":
        return "apart" if cut else "content"
    # Treat a call without a name as text, unless the token limit cut it off.
    if not call.name:
        return "apart" if cut and chosen == "call" else chosen if cut else "content"
    return chosen


def begins_call(machine: Machine, frame: Frame) -> bool:
    """Return whether the text after a backtracking point is certainly a call.

    The text extends to the end of the output, where the token limit cut it off.
    """
    # A call followed by more reasoning is part of the reasoning.
    if frame.holds and not (frame.whole or frame.quotation):
        return False
    if frame.call or frame.at == machine.separated or (frame.reported and frame.alone):
        return True
    # `functools[` may be prose, but `functools[{"name": "get_we` contains the start of a tool name.
    name = _LAST_WORD.search(machine.buffer, machine.at)
    names = (tool.name for tool in machine.request.tools or ())
    return name is not None and any(offered.startswith(name.group()) for offered in names)


def _read_so_far(call: CallState, status: CallStatus, text: str = "") -> ToolCall:
    """Return the part of the call that was parsed. `text` is the source text of a failed call."""
    arguments = "".join(call.arguments)
    return ToolCall(
        name=call.name, arguments_json=arguments, id=call.id, status=status, offered=call.offered, text=text
    )
