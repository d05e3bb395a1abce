"""Finds the calls in a rendering: each call's slots, and the literals before, between and after."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from unrender.analysis.native import arguments_of, native_span
from unrender.analysis.probes import Call
from unrender.analysis.skeletons import outer_literals
from unrender.analysis.spans import Span
from unrender.analysis.tokens import Row, Token, find_tokens, make_row, merge
from unrender.format import Part, Skeleton, Slot, ToolMode


def find_row(text: str, calls: Sequence[Call], mode: ToolMode, entry: Skeleton = ()) -> Row | None:
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


def _find_call(text: str, call: Call, mode: ToolMode, entry: Skeleton, position: int) -> Span | None:
    """Find a call's arguments or, for JSON_NATIVE, the whole call."""
    if mode is ToolMode.JSON_NATIVE:
        return native_span(text, call, position)
    if mode is ToolMode.TAG_WITH_JSON:
        return arguments_of(text, call, position)
    return _tagged_span(text, call, entry, position)


def _tagged_span(text: str, call: Call, entry: Skeleton, position: int) -> Span | None:
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
    ends = [token.end for token in inside if token.start >= last_value and token.slot is Slot.KEY][:keys_after_value]
    prefix, suffix = outer_literals(entry)
    return Span(start=inside[0].start - len(prefix), end=(ends or [last_value])[-1] + len(suffix), value=call.arguments)


def _native_row(
    text: str, calls: Sequence[Call], wholes: Sequence[Token], words: Mapping[str, tuple[Slot, int]]
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
        items.append(merge(parts))
    betweens = [text[left.end : right.start] for left, right in itertools.pairwise(wholes)]
    return Row(
        before=text[: wholes[0].start], items=tuple(items), betweens=tuple(betweens), after=text[wholes[-1].end :]
    )
