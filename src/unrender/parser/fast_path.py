"""Finds the fast path of a suspended machine, and keeps its account (see flow.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from unrender.machine.events import ArgumentsText, ContentText, Event, ReasoningText
from unrender.machine.interpreter import Machine
from unrender.nodes import Role
from unrender.parser.message import MessageFold


def flows(machine: Machine) -> bool:
    """Return whether all text so far is final, and has the role of the text that the machine's `flow` takes."""
    end = machine.base + machine.at
    ends = machine.span_ends
    if machine.frames or end < 0 or not ends or ends[-1] != end:
        return False
    role = machine.span_roles[-1]
    if role is Role.ARGUMENT:
        return machine.call is not None
    return role is Role.REASONING or (role is Role.CONTENT and machine.answered and not machine.carried)


def event_maker(machine: Machine) -> Callable[[str], Event] | None:
    """Return the function that makes an event of more text of the present role; None where the text waits."""
    role = machine.span_roles[-1]
    if role is not Role.ARGUMENT:
        return ReasoningText if role is Role.REASONING else ContentText
    return None if _waits(machine) else partial(ArgumentsText, machine.calls - 1)


def writer(machine: Machine, fold: MessageFold) -> Callable[[str], object]:
    """Return the function that adds more text of the present role to the message, or to the arguments that wait."""
    if _waits(machine) and machine.call is not None:
        return machine.call.arguments.append
    return fold.writer(machine.span_roles[-1])


def _waits(machine: Machine) -> bool:
    """Return whether the text belongs to a call that the caller was not told of."""
    return machine.span_roles[-1] is Role.ARGUMENT and machine.call is not None and not machine.call.begun


def give_up_undecided(machine: Machine) -> str:
    """Take the undecided text out of the machine and return it; it has to be fed again."""
    machine.forget()
    text, machine.buffer = machine.buffer, ""
    return text


def account(machine: Machine, text: str) -> None:
    """Tell the machine that `text` took the fast path."""
    if machine.span_roles[-1] is Role.ARGUMENT:
        machine.past.append(text)  # The call that it belongs to may die.
    machine.base += len(text)
    machine.failed_at -= len(text)
    machine.span_ends[-1] += len(text)
    machine.steps += 1
