"""Finds calls that are JSON objects in a text, and describes their envelope (JSON_NATIVE).

The one thing that is recognised rather than compared: JSON. A call is the outermost object that holds this call's name
and arguments and no other call's; lists around it belong to the section.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unrender.analysis.probes import NAMES, Call
from unrender.analysis.spans import Span, arguments_span, holds, json_spans, literal_span, loads, path_to
from unrender.format import CallSyntax, Envelope, Slot


def find_envelope(text: str, call: Call, tools: CallSyntax) -> Envelope | None:
    """Return where name, arguments and id are in the JSON object that writes `call` in `text`."""
    span, outer = native_span(text, call, 0), _outer_span(text, call)
    if span is None:
        return None
    named = path_to(span.value, call.name)
    arguments = path_to(span.value, dict(call.arguments)) or _path_to_text(span.value, call.arguments)
    return Envelope(
        name_field=named or (),
        args_field=(arguments or ()) if named else (),
        id_field=path_to(span.value, call.id) or (),
        gen_id_field=_counter_path(span.value, tools),
        list_field=_list_path(outer.value, span.value) if outer is not None else (),
        array_wrapped=tools.section_start.rstrip().endswith("[") and tools.section_end.lstrip().startswith("]"),
    )


def native_span(text: str, call: Call, position: int) -> Span | None:
    """Find the JSON object that holds this call's name and arguments, and no other call's."""
    name_at = text.find(call.name, position)
    if name_at < 0:
        return None
    others = [name for name in NAMES if name != call.name]
    found = None
    for span in json_spans(text, "{", _last_needle(text, call, name_at)):
        fits = span.start >= position and _holds_call(span.value, call)
        if not fits or any(holds(span.value, name) for name in others):
            continue
        if found is None or _lists(found.value, span.value):
            found = span
    return found


def _outer_span(text: str, call: Call) -> Span | None:
    spans = json_spans(text, "{[", text.find(call.name))
    return next((span for span in spans if _holds_call(span.value, call)), None)


def _last_needle(text: str, call: Call, name_at: int) -> int:
    keys = [text.find(key) for key in call.arguments]
    return max([name_at, *keys])


def _holds_call(value: Any, call: Call) -> bool:
    arguments = dict(call.arguments)
    return holds(value, call.name) and (holds(value, arguments) or _path_to_text(value, arguments) is not None)


def _path_to_text(value: Any, arguments: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the keys that lead to `arguments` written as JSON text."""
    if not isinstance(value, dict):
        return None
    for key, item in value.items():
        if isinstance(item, str) and loads(item) == arguments:
            return (key,)
        deeper = _path_to_text(item, arguments)
        if deeper is not None:
            return (key, *deeper)
    return None


def _lists(outer: Any, inner: Any) -> bool:
    """Return whether `inner` is an item of a list in `outer`."""
    if isinstance(outer, list):
        return inner in outer or any(_lists(item, inner) for item in outer)
    return isinstance(outer, dict) and any(_lists(item, inner) for item in outer.values())


def _list_path(outer: Any, inner: Any) -> tuple[str, ...]:
    if not isinstance(outer, dict):
        return ()
    for key, item in outer.items():
        if isinstance(item, list) and inner in item:
            return (key,)
        deeper = _list_path(item, inner)
        if deeper:
            return (key, *deeper)
    return ()


def _counter_path(value: Any, tools: CallSyntax) -> tuple[str, ...]:
    if Slot.INDEX not in tools.function:
        return ()
    return path_to(value, str(tools.index_start)) or path_to(value, tools.index_start) or ()


def arguments_of(text: str, call: Call, position: int) -> Span | None:
    """Find where a call's arguments are written as one JSON object or Python dictionary."""
    return arguments_span(text, call.arguments, position) or literal_span(text, call.arguments, position)
