"""Checks one call syntax: skeletons and envelopes that could not be written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from unrender.format.argument_checks import check_arguments
from unrender.format.parts import CallSyntax, Slot, ToolMode
from unrender.format.skeleton_checks import (
    Problem,
    check_after_words,
    check_once,
    check_skeleton,
    check_touching,
    literal,
)
from unrender.limits import LONGEST_ID, MAX_ENVELOPE_DEPTH, MAX_INDEX

_FUNCTION_SLOTS = (Slot.NAME, Slot.ARGUMENTS, Slot.ID, Slot.INDEX, Slot.ANY)


def check_tools(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield the problems of one call syntax by itself."""
    if tools.mode is ToolMode.NONE:
        if tools != CallSyntax():
            yield f"{where}.mode", "calls are described, and their mode is `none`"
        return
    if not 0 <= tools.id_length <= LONGEST_ID:
        yield f"{where}.id_length", f"expected a number from 0 to {LONGEST_ID}"
    if not 0 <= tools.index_start <= MAX_INDEX:
        yield f"{where}.index_start", f"expected a number from 0 to {MAX_INDEX}"
    yield from _function(tools, f"{where}.function")
    if not tools.envelope:
        yield from _unmarked(tools, where)
    yield from _id_parts(tools, f"{where}.id_parts")
    yield from check_arguments(tools, f"{where}.arguments")
    yield from _envelope(tools, f"{where}.envelope")


# The skeletons.


def _function(tools: CallSyntax, where: str) -> Iterator[Problem]:
    parts = tools.function
    yield from check_skeleton(parts, _FUNCTION_SLOTS, where)
    yield from check_once(parts, Slot.ARGUMENTS, where)
    if Slot.NAME not in parts:
        yield where, "expected the slot `name`"
    elif Slot.ARGUMENTS in parts and parts.index(Slot.NAME) > parts.index(Slot.ARGUMENTS) and not tools.envelope:
        yield where, "expected the slot `name` before `arguments`"
    if parts.count(Slot.ID) > 1:
        yield where, "expected the slot `id` once at most"
    yield from check_touching(parts, where, free=(Slot.ARGUMENTS, Slot.ANY))
    yield from check_after_words(parts, tools.arguments, where)


def is_marked(tools: CallSyntax) -> bool:
    """Return whether a marker, or a bracket of JSON, comes before the name of a call."""
    first = literal(tools.function[0]) if tools.function else ""
    return tools.envelope is not None or bool((tools.section_start + tools.call_start + first).strip())


def _unmarked(tools: CallSyntax, where: str) -> Iterator[Problem]:
    """Yield what keeps a call from being seen where no marker shows it: neither first, nor after another call."""
    parts, empty = tools.function, tools.arguments.when_empty
    first, last = literal(parts[0]) if parts else "", literal(parts[-1]) if parts else ""
    opened = is_marked(tools)
    if not opened and parts[:1] != (Slot.NAME,):
        yield f"{where}.function", "expected the slot `name` first, since no marker comes before it"
    following = (tools.separator + tools.call_start + first).strip()
    if tools.parallel and not following and parts[:1] != (Slot.NAME,):
        yield (
            f"{where}.function",
            "expected the slot `name` first, since no marker comes before a call that follows another",
        )
    if not opened and not tools.arguments.entry and empty is not None and empty[:1] not in ("{", '"'):
        yield f"{where}.arguments.when_empty", f"expected an object, as nothing else shows a call, found {empty!r}"
    brackets = tools.arguments.entry and (tools.arguments.start + tools.arguments.end).strip()
    written = empty.strip() if empty is not None else brackets or not tools.arguments.entry
    between = (last + tools.call_end + tools.separator + tools.call_start + first).strip()
    if tools.parallel and not between and not written:
        yield f"{where}.separator", "expected a text between a call without arguments and the next one"


def _id_parts(tools: CallSyntax, where: str) -> Iterator[Problem]:
    if tools.id_parts is None:
        return
    first, last = tools.id_parts
    parts = tools.function
    if not 0 <= first < last <= len(parts):
        yield where, f"expected two ascending positions from 0 to {len(parts)}, found {[first, last]}"
    elif Slot.ARGUMENTS in parts[:last]:
        yield where, "expected parts before the arguments"
    elif tools.envelope or Slot.ID in parts:
        yield where, "the id has a place of its own"


# The envelope.


def _envelope(tools: CallSyntax, where: str) -> Iterator[Problem]:
    native = tools.mode is ToolMode.JSON_NATIVE
    if native != (tools.envelope is not None):
        yield where, f"expected {'one' if native else 'none'} in mode `{tools.mode.value}`"
    if tools.envelope is None or not native:
        return
    envelope = tools.envelope
    paths = {name: getattr(envelope, name) for name in _PATHS}
    for name, path in paths.items():
        if len(path) > MAX_ENVELOPE_DEPTH:
            yield f"{where}.{name}", f"expected at most {MAX_ENVELOPE_DEPTH} keys, found {len(path)}"
    written = _filled(tools)
    if written is None:
        yield where.replace(".envelope", ".function"), "expected the parts to make up one JSON object"
        return
    found = _found(written)
    for name in _PATHS:
        if paths[name] != found.get(name, ()):
            yield f"{where}.{name}", f"expected {list(found.get(name, ()))} as in `function`, found {list(paths[name])}"
    opened = any(text.rstrip().endswith("[") for text in (tools.section_start, tools.call_start))
    if opened != envelope.array_wrapped:
        yield f"{where}.array_wrapped", "expected true where, and only where, `[` opens the section or the call"


_PATHS = ("name_field", "args_field", "id_field", "gen_id_field")
_NAME, _ID, _NUMBER = "unrender name", "unrender id", 730501


def _filled(tools: CallSyntax) -> dict[str, Any] | None:
    """Return the object that the skeleton writes for one call; None when it writes none, or a key twice."""
    values = {
        Slot.NAME: _NAME,
        Slot.ID: _ID,
        Slot.INDEX: str(_NUMBER),
        Slot.ARGUMENTS: "{}",
        Slot.ANY: "any",
    }
    text = "".join(values.get(part, "") if isinstance(part, Slot) else part for part in tools.function)
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or "" in found:
        raise ValueError("a key is empty or occurs twice")
    return found


def _found(value: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return where in the written object the slots are, by the envelope's field for each."""
    paths: dict[str, tuple[str, ...]] = {}
    for path, leaf in _leaves(value, ()):
        if leaf == _NAME:
            paths["name_field"] = path
        elif leaf == _ID:
            paths["id_field"] = path
        elif leaf in (_NUMBER, str(_NUMBER)):
            paths["gen_id_field"] = path
        elif leaf == {} and _NAME not in path:
            paths["args_field"] = path
    return paths


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    else:
        yield path, value
