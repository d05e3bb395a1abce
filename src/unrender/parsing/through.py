"""A machine that has suspended → how what comes next goes straight through, beside it (see flow.py)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from unrender.grammar.nodes import Role
from unrender.parsing.events import ArgumentsText, ContentText, Event, ReasoningText
from unrender.parsing.machine import Machine


def flows(machine: Machine) -> bool:
    """Return whether all that was read is final, and of one kind with what the machine's `flow` takes."""
    end = machine.base + machine.at
    ends = machine.span_ends
    if machine.frames or end < 0 or not ends or ends[-1] != end:
        return False
    role = machine.span_roles[-1]
    if role is Role.ARGUMENT:
        return machine.call is not None and machine.call.begun
    return role is Role.REASONING or (role is Role.CONTENT and machine.answered and not machine.carried)


def event_maker(machine: Machine) -> Callable[[str], Event]:
    """Return what makes an event of more of what was read last."""
    role = machine.span_roles[-1]
    if role is Role.ARGUMENT:
        return partial(ArgumentsText, machine.calls - 1)
    return ReasoningText if role is Role.REASONING else ContentText


def keeper(machine: Machine) -> Callable[[str], object] | None:
    """Return what keeps text of a call that may yet die; None outside of calls."""
    return machine.past.append if machine.span_roles[-1] is Role.ARGUMENT else None


def give_up_undecided(machine: Machine) -> str:
    """Take the text from the machine that it has not decided; it has to be fed again."""
    machine.forget()
    text, machine.buffer = machine.buffer, ""
    return text


def account(machine: Machine, size: int) -> None:
    """Tell the machine that so many characters went straight through."""
    machine.base += size
    machine.failed_at -= size
    machine.span_ends[-1] += size
    machine.steps += 1
