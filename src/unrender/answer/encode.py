"""Encodes messages in a format: one call, a sequence of calls, or a complete answer.

Analysis uses this module to reproduce a template's rendering. Instructions, histories and verification encode calls with this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unrender.answer import ArgumentsPart, Calls, Element, Marker
from unrender.answer.build import own_calls
from unrender.answer.follow import as_skeleton
from unrender.format import ContentMode, Format, Slot
from unrender.values.notations import encode_entry, encode_value, raw_alphabet

Call = tuple[str, Mapping[str, Any], str]
"""Name, arguments and id of a call."""


def encode_answer(format: Format, *, content: str = "", reasoning: str = "", calls: Sequence[Call] = ()) -> str:
    """Return a complete answer, without its header and the end of the turn."""
    turn, markers = format.turn, format.reasoning
    called = encode_calls(own_calls(format), calls)
    # If there is no reasoning, calls may still follow the start marker of reasoning, without an end marker.
    inside = markers.holds_calls and calls and (turn.tools_first or not content)
    opened = inside and not content and turn.start_to_tools.strip() == markers.start.strip()
    before = "" if opened else markers.empty
    if reasoning:
        before = markers.start + reasoning + ("" if inside else markers.end)
    wrapper = format.content_with_calls if called and format.content_with_calls is not None else format.content
    bare = wrapper.mode is ContentMode.WRAPPED_WITH_REASONING and not reasoning
    wraps = not bare and (content or wrapper.wraps_empty)
    said = wrapper.start + content + wrapper.end if wraps else content
    to_content = turn.reasoning_to_content if before else turn.start_to_content
    to_calls = turn.reasoning_to_tools if before else turn.start_to_tools
    if not called:
        return before + (to_content + said if said else "")
    if turn.tools_first:
        return before + to_calls + called + (turn.tools_to_content + said if said else "")
    return before + (to_content + said + turn.content_to_tools if said else to_calls) + called


def encode_calls(calls: Calls | None, said: Iterable[Call], *, first: int = 0) -> str:
    """Return the text of calls with all markers. Returns "" if the format has no calls.

    Calls are numbered from `first`, which is the number of earlier calls.
    """
    written: list[str] = []
    if calls is None:
        return ""
    for index, (name, values, call_id) in enumerate(said, start=calls.index_start + first):
        texts = {Slot.NAME: name, Slot.ID: call_id, Slot.INDEX: str(index)}
        before = calls.function[: (*calls.function, Slot.ARGUMENTS).index(Slot.ARGUMENTS)]
        # Indent all lines of pretty-printed JSON as far as the first line.
        line = filled(before, texts).rpartition("\n")[2]
        arguments = encode_arguments(values, calls.arguments, margin=line[: len(line) - len(line.lstrip(" "))])
        written.append(filled(calls.function, {**texts, Slot.ARGUMENTS: arguments}))
    return run_of(calls, written)


def run_of(calls: Calls, written: Sequence[str]) -> str:
    """Return the text of a sequence of calls with all markers around and between them. Returns "" if there are no calls."""
    each = (calls.call_open.text + call + calls.call_close.text for call in written)
    return calls.open.text + calls.separator.text.join(each) + calls.close.text if written else ""


def filled(pieces: Iterable[Element], texts: Mapping[Slot, str]) -> str:
    """Return the text of the given markers and slots. `texts` contains the text for each slot."""
    return "".join(piece.text if isinstance(piece, Marker) else texts.get(piece, "") for piece in pieces)


def encode_arguments(values: Mapping[str, Any], arguments: ArgumentsPart, *, margin: str = "") -> str:
    """Return the text of a call's arguments, including the literals around and between them."""
    if not values and arguments.empty is not None:
        return arguments.empty
    codec = arguments.codec
    if arguments.entry:
        entry = as_skeleton(arguments.entry)
        kept = {key: value for key, value in values.items() if value is not None or not codec.omits_null}
        inside = arguments.separator.text.join(encode_entry(key, value, codec, entry) for key, value in kept.items())
    else:
        inside = encode_value(values, codec, margin=margin)
        if codec.escapes:  # The object is encoded inside a string: `"{\"city\": …}"`.
            inside = f'"{inside if codec.strings.unquoted else raw_alphabet(codec).written(inside)}"'
    return arguments.open.text + inside + arguments.close.text
