"""Finds calls in a rendering: the values that they write, each call's slots, and the literals before, between and after."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from unrender.analysis.ask.probes import NAMES, ProbeCall
from unrender.analysis.find.skeletons import Row, Token, find_tokens, joined_skeleton, make_row, outer_literals
from unrender.format import CallSyntax, Envelope, Part, Skeleton, Slot, ToolMode
from unrender.limits import MOST_BRACKETS

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSpan:
    """A value and the text[start:end] that writes it."""

    start: int
    end: int
    value: Any


def json_spans(text: str, opener: str, before: int) -> Iterator[ValueSpan]:
    """Yield the JSON values that begin with a character of `opener`, left of the position `before`, in order."""
    trials = 0
    for match in re.finditer(f"[{re.escape(opener)}]", text[:before]):
        trials += 1
        if trials > MOST_BRACKETS:
            return
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield ValueSpan(start=match.start(), end=end, value=value)


def arguments_span(text: str, arguments: Mapping[str, Any], start: int = 0) -> ValueSpan | None:
    """Find where `arguments` is written as one JSON object."""
    key = next(iter(arguments), None)
    at = text.find(key, start) if key else -1
    if at < 0:
        return None
    spans = [span for span in json_spans(text, "{", at) if span.start >= start and span.value == arguments]
    return spans[-1] if spans else None


def literal_span(text: str, arguments: Mapping[str, Any], start: int = 0) -> ValueSpan | None:
    """Find where `arguments` is written as a Python dictionary."""
    key = next(iter(arguments), None)
    at = text.find(key, start) if key else -1
    brace = text.rfind("{", start, at) if at >= 0 else -1
    for match in islice(re.finditer(r"\}", text[brace:] if brace >= 0 else ""), MOST_BRACKETS):
        end = brace + match.end()
        if _literal(text[brace:end]) == arguments:
            return ValueSpan(start=brace, end=end, value=dict(arguments))
    return None


def _literal(text: str) -> Any:
    """Return the value of a Python literal, or None."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def loads(text: str) -> Any:
    """Return the JSON value of `text`, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def path_to(value: Any, wanted: Any) -> tuple[str, ...] | None:
    """Return the keys that lead to `wanted` in nested objects, or None.

    >>> path_to({"function": {"name": "f"}}, "f")
    ('function', 'name')
    """
    return _path(value, lambda item: type(item) is type(wanted) and item == wanted)


def _path(value: Any, fits: Callable[[Any], bool]) -> tuple[str, ...] | None:
    """Return the keys that lead to the first item that `fits` in nested objects, or None."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if fits(item):
            return (key,)
        deeper = _path(item, fits)
        if deeper is not None:
            return (key, *deeper)
    return None


def value_holds(value: Any, wanted: Any) -> bool:
    """Return whether `wanted` is a key or a value anywhere in `value`."""
    if type(value) is type(wanted) and value == wanted:
        return True
    if isinstance(value, dict):
        is_key = isinstance(wanted, str) and wanted in value
        return is_key or any(value_holds(item, wanted) for item in value.values())
    return isinstance(value, list) and any(value_holds(item, wanted) for item in value)


def find_row(text: str, calls: Sequence[ProbeCall], mode: ToolMode, entry: Skeleton = ()) -> Row | None:
    """Find `calls` in `text`; None when some are missing. `entry` is the skeleton of an argument in tags."""
    tokens: list[Token] = []
    position = 0
    for owner, call in enumerate(calls):
        span = _find_call(text, call, mode, entry, position)
        if span is None:
            return None
        tokens.append(Token(start=span.start, end=span.end, slot=Slot.ARGUMENTS, owner=owner))
        position = span.end
    words = {call.name: (Slot.NAME, owner) for owner, call in enumerate(calls)}
    words |= {call.id: (Slot.ID, owner) for owner, call in enumerate(calls)}
    if mode is not ToolMode.JSON_NATIVE:
        return make_row(text, find_tokens(text, words, tokens), len(calls))
    return _native_row(text, calls, tokens, words)


def _find_call(text: str, call: ProbeCall, mode: ToolMode, entry: Skeleton, position: int) -> ValueSpan | None:
    """Find a call's arguments or, for JSON_NATIVE, the whole call."""
    if mode is ToolMode.JSON_NATIVE:
        return native_span(text, call, position)
    if mode is ToolMode.TAG_WITH_JSON:
        return arguments_of(text, call, position)
    return _tagged_span(text, call, entry, position)


def _tagged_span(text: str, call: ProbeCall, entry: Skeleton, position: int) -> ValueSpan | None:
    words = dict.fromkeys(call.arguments, (Slot.KEY, 0)) | {
        str(value): (Slot.VALUE, 0) for value in call.arguments.values()
    }
    name_at = text.find(call.name, position)
    inside = [token for token in find_tokens(text, words) if token.start >= max(name_at, position)]
    values = [token.end for token in inside if token.slot is Slot.VALUE]
    if not inside or len(values) < len(call.arguments):
        return None
    last_value = values[len(call.arguments) - 1]
    keys_after_value = entry[entry.index(Slot.VALUE) :].count(Slot.KEY)
    # `<a>7</a>`: the key is there again after the last value, and belongs to the arguments as well.
    ends = [token.end for token in inside if token.start >= last_value and token.slot is Slot.KEY][:keys_after_value]
    prefix, suffix = outer_literals(entry)
    return ValueSpan(
        start=inside[0].start - len(prefix), end=(ends or [last_value])[-1] + len(suffix), value=call.arguments
    )


def _native_row(
    text: str, calls: Sequence[ProbeCall], wholes: Sequence[Token], words: Mapping[str, tuple[Slot, int]]
) -> Row | None:
    items = []
    for whole, call in zip(wholes, calls, strict=True):
        inner = text[whole.start : whole.end]
        span = arguments_of(inner, call, 0)
        if span is None:
            return None
        covered = [Token(start=span.start, end=span.end, slot=Slot.ARGUMENTS, owner=0)]
        tokens = find_tokens(inner, words, covered)
        parts: list[Part] = [inner[: tokens[0].start]]
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            parts += [token.slot, inner[token.end : following.start if following else len(inner)]]
        items.append(joined_skeleton(parts))
    betweens = [text[left.end : right.start] for left, right in itertools.pairwise(wholes)]
    return Row(
        before=text[: wholes[0].start], items=tuple(items), betweens=tuple(betweens), after=text[wholes[-1].end :]
    )


def find_envelope(text: str, call: ProbeCall, tools: CallSyntax) -> Envelope | None:
    """Return where name, arguments and id are in the JSON object that writes `call` in `text`."""
    span, outer = native_span(text, call, 0), _outer_span(text, call)
    if span is None:
        return None
    named = path_to(span.value, call.name)
    arguments = path_to(span.value, dict(call.arguments))
    return Envelope(
        name_field=named or (),
        args_field=(arguments or ()) if named else (),
        id_field=path_to(span.value, call.id) or (),
        gen_id_field=_counter_path(span.value, tools),
        list_field=(_path(outer.value, lambda item: isinstance(item, list) and span.value in item) or ())
        if outer
        else (),
        array_wrapped=tools.section_start.rstrip().endswith("[") and tools.section_end.lstrip().startswith("]"),
    )


def native_span(text: str, call: ProbeCall, position: int) -> ValueSpan | None:
    """Find the JSON object that holds this call's name and arguments, and no other call's."""
    name_at = text.find(call.name, position)
    if name_at < 0:
        return None
    # `{"calls": [{"name": "f"}, {"name": "g"}]}`: the outer object holds two calls, so it is neither.
    others = [name for name in NAMES if name != call.name]
    found = None
    for span in json_spans(text, "{", _last_needle(text, call, name_at)):
        fits = span.start >= position and _holds_call(span.value, call)
        if not fits or any(value_holds(span.value, name) for name in others):
            continue
        if found is None or _lists(found.value, span.value):
            found = span
    return found


def _outer_span(text: str, call: ProbeCall) -> ValueSpan | None:
    spans = json_spans(text, "{[", text.find(call.name))
    return next((span for span in spans if _holds_call(span.value, call)), None)


def _last_needle(text: str, call: ProbeCall, name_at: int) -> int:
    keys = [text.find(key) for key in call.arguments]
    return max([name_at, *keys])


def _holds_call(value: Any, call: ProbeCall) -> bool:
    arguments = dict(call.arguments)
    return value_holds(value, call.name) and value_holds(value, arguments)


def _lists(outer: Any, inner: Any) -> bool:
    """Return whether `inner` is an item of a list in `outer`."""
    if isinstance(outer, list):
        return inner in outer or any(_lists(item, inner) for item in outer)
    return isinstance(outer, dict) and any(_lists(item, inner) for item in outer.values())


def _counter_path(value: Any, tools: CallSyntax) -> tuple[str, ...]:
    if Slot.INDEX not in tools.function:
        return ()
    return path_to(value, str(tools.index_start)) or path_to(value, tools.index_start) or ()


def arguments_of(text: str, call: ProbeCall, position: int) -> ValueSpan | None:
    """Find where a call's arguments are written as one JSON object or Python dictionary."""
    return arguments_span(text, call.arguments, position) or literal_span(text, call.arguments, position)
