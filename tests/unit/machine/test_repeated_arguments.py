"""Arguments of one name as the items of one list: what the schema says decides."""

from __future__ import annotations

from typing import Any

import pytest
from stepping import machine_at

from unrender.machine.events import ArgumentsText
from unrender.machine.interpreter import Machine
from unrender.machine.repeated_arguments import begin_list, end_list, items_or_value, next_item
from unrender.messages.wire import Request, Tool

PROPERTIES = {
    "tags": {"type": "array", "items": {"type": "string"}},
    "lists": {"type": "array", "items": {"type": "array"}},
    "anything": {"type": "array"},
    "either": {"type": ["array", "integer"]},
    "city": {"type": "string"},
}
TOOL = Tool(name="now", parameters={"properties": PROPERTIES})


def beginning(key: str, text: str = "a") -> Machine:
    machine = machine_at(text, request=Request(tools=(TOOL,)))
    call = machine.begin_call()
    machine.named("now")
    call.begun, machine.calls, call.key = True, 1, key
    return machine


def said(machine: Machine) -> str:
    return "".join(event.text for event in machine.events if isinstance(event, ArgumentsText))


@pytest.mark.parametrize(
    ("key", "text", "raw", "listing", "holds", "out"),
    [
        ("tags", "a", True, True, "", "["),
        ("tags", "[a", True, False, "", ""),
        ("lists", "[a", True, True, "", "["),
        ("anything", "[a", True, True, "", "["),
        ("either", "a", True, False, "raw", ""),
        ("either", "a", False, False, "read", ""),
        ("unknown", "a", True, False, "raw", ""),
        ("city", "a", True, False, "", ""),
    ],
)
def test_an_argument_may_be_a_list(key: str, text: str, raw: bool, listing: bool, holds: str, out: str) -> None:
    """What must be one streams; what may be one waits; brackets where no item has any are all of the list."""
    machine = beginning(key, text)
    call = machine.call
    assert call is not None
    begin_list(machine, call, raw=raw)

    assert (call.latest, call.listing, call.holds, said(machine)) == (key, listing, holds, out)


@pytest.mark.parametrize(
    ("fields", "goes_on", "out"),
    [
        ({"latest": "tags", "listing": True}, True, ", "),
        ({"latest": "city", "listing": True}, False, ""),
        ({"latest": "tags"}, False, ""),
        ({"latest": "tags", "holds": "raw", "held": ['"7', '"']}, True, '["7", '),
        ({"latest": "tags", "holds": "read", "held": ["7"]}, True, "[7, "),
    ],
)
def test_another_item(fields: dict[str, Any], goes_on: bool, out: str) -> None:
    """Of the same name, where the latest is a list or may be one."""
    machine = beginning("tags")
    call = machine.call
    assert call is not None
    for name, value in fields.items():
        setattr(call, name, value)

    assert next_item(machine, call) is goes_on
    assert said(machine) == out
    assert call.listing is (goes_on or fields.get("listing", False))
    assert (call.holds, call.held) == ("", [])


@pytest.mark.parametrize(
    ("fields", "out"),
    [
        ({}, ""),
        ({"listing": True}, "]"),
        ({"latest": "city", "holds": "raw", "held": ['"7"']}, '"7"'),
        ({"latest": "either", "holds": "raw", "held": ['"7"']}, "7"),
        ({"latest": "either", "holds": "raw", "held": ["no JSON"]}, '"no JSON"'),
        ({"latest": "either", "holds": "read", "held": ["7"]}, "7"),
    ],
)
def test_the_end_of_an_argument(fields: dict[str, Any], out: str) -> None:
    """A list is closed; one item that waited is the value itself."""
    machine = beginning("tags")
    call = machine.call
    assert call is not None
    for name, value in fields.items():
        setattr(call, name, value)
    end_list(machine, call)

    assert said(machine) == out
    assert (call.listing, call.holds, call.held) == (False, "", [])


def test_the_types_of_an_item() -> None:
    """Those of the list's items while it is open, else those of the argument."""
    machine = beginning("tags")
    call = machine.call
    assert call is not None
    assert items_or_value(call) == {"array"}
    call.listing = True

    assert items_or_value(call) == {"string"}
