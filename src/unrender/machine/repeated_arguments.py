"""Joins arguments of one name that follow each other into one list, for formats that write lists so.

Rules: the schema decides. What it wants to be a list streams as one, from the first item on. What may be a list, or about
which it says nothing, waits until another name or the end shows how many there are: one is the value itself, several are
a list. Anything else that comes twice is reported, as in all other formats; so is a name that comes again later.
"""

from __future__ import annotations

import json

from unrender.machine.frames import CallState
from unrender.machine.interpreter import Machine
from unrender.values.coercion import ANY, coerce, item_types

_LIST = frozenset(("array",))


def begin_list(machine: Machine, call: CallState, *, raw: bool) -> None:
    """Begin the argument `call.key`, and begin a list if it is one.

    `raw` means that the schema gives the text of its value a type.
    """
    call.latest = call.key
    types = call.types.types(call.key)
    if types == _LIST and not _is_json_list(machine, types):
        call.listing = True
        machine.arguments("[")
    elif types == ANY or ("array" in types and types != _LIST):
        call.holds = "raw" if raw else "read"


def next_item(machine: Machine, call: CallState) -> bool:
    """Return whether the argument that begins is another item of the latest argument's list, and continue the list."""
    if call.key != call.latest or not (call.listing or call.holds):
        return False
    if call.holds:
        machine.arguments("[" + _settled(call, listed=True))
        call.listing = True
    machine.arguments(", ")
    return True


def end_list(machine: Machine, call: CallState) -> None:
    """End the latest argument, which may be a list."""
    if call.holds:
        machine.arguments(_settled(call, listed=False))
    if call.listing:
        machine.arguments("]")
        call.listing = False


def items_or_value(call: CallState) -> frozenset[str]:
    """Return the types of the value that begins: those of an item in the open list, or those of the argument."""
    types = call.types.types(call.key)
    return item_types(types) if call.listing else types


def _settled(call: CallState, *, listed: bool) -> str:
    """Return what has waited as JSON, typed as an item of a list or as the argument itself."""
    text, types = "".join(call.held), call.types.types(call.latest)
    if call.holds == "raw":
        text = coerce(_string(text), item_types(types) if listed else types)
    call.holds = ""
    call.held.clear()
    return text


def _string(text: str) -> str:
    """Return the string that has waited as JSON; what a state says that no parser has written is text as it is."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def _is_json_list(machine: Machine, types: frozenset[str]) -> bool:
    """Return whether a model writes all of the list as JSON: brackets where no item may have any."""
    items = item_types(types)
    return machine.buffer.startswith("[", machine.at) and items != ANY and "array" not in items
