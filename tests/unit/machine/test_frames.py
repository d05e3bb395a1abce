"""Ways back and calls: a copy has everything, and shares nothing that changes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from unrender.machine.frames import CallState, Entry, Frame
from unrender.messages.wire import Tool
from unrender.nodes import Role
from unrender.values.coercion import ArgumentTypes


def test_a_way_back_is_copied() -> None:
    """Every field, and the copy changes alone."""
    frame = Frame((1, 2), 3, 4, 5, 6, 7, 8, True, 9, False, True, 10, Entry(None, 1), Role.NAME, "now")
    other = frame.copy()
    assert [getattr(other, field.name) for field in fields(Frame)] == [
        (1, 2),
        3,
        4,
        5,
        6,
        7,
        8,
        True,
        9,
        False,
        True,
        10,
        Entry(None, 1),
        Role.NAME,
        "now",
    ]
    other.targets = ()

    assert frame.targets == (1, 2)


def test_a_way_back_holds_nothing_by_default() -> None:
    """It is reported, and seals nothing."""
    frame = Frame((), 0, 0, 0, 0, 0, 0)

    assert (frame.holds, frame.sealed, frame.reported, frame.whole) == (False, -1, True, False)


def test_nothing_is_known_of_a_call_that_begins() -> None:
    """Save that its tool is one that is offered, until its name says otherwise."""
    call = CallState()
    known: dict[str, Any] = {name: getattr(call, name) for name in CallState.__slots__}
    del known["types"]

    assert known == {
        **dict.fromkeys(("name", "id", "key", "kind"), ""),
        **dict.fromkeys(("count", "mark", "start", "separated", "recover"), 0),
        **dict.fromkeys(("begun", "closed", "ended"), False),
        "arguments": [],
        "keys": set(),
        "tool": None,
        "known": True,
    }
    assert call.types.types("x") == {"string"}


def test_a_call_is_copied() -> None:
    """Every field; texts and names that are collected are collected apart."""
    call = CallState()
    for at, name in enumerate(CallState.__slots__):
        if isinstance(getattr(call, name), str):
            setattr(call, name, f"text{at}")
        elif isinstance(getattr(call, name), bool):
            setattr(call, name, not getattr(call, name))
        elif isinstance(getattr(call, name), int):
            setattr(call, name, at)
    call.tool = Tool(name="now")
    call.types = ArgumentTypes(call.tool)
    call.arguments, call.keys = ["a"], {"c"}
    other = call.copy()
    assert all(getattr(other, name) == getattr(call, name) for name in CallState.__slots__)
    other.arguments.append("x")
    other.keys.add("x")

    assert (call.arguments, call.keys) == (["a"], {"c"})
