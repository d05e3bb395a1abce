"""Finds markers in a generated answer that the template never writes at their position.

Strategy: the answer is parsed, the template renders the parsed message, and the markers of the answer and the rendering are compared in
order.

Rules: grammars allow some deviations that don't affect parsing. They may leave out a marker, or generate an empty part with its markers. An
answer's markers may therefore be missing, and markers of an empty part are accepted if the template writes them around text. Whitespace,
values, the order of arguments, and a header at the start are ignored. Messages that the template doesn't render are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from unrender.answer.literals import tokens
from unrender.conversation.messages import Said
from unrender.messages.wire import Message
from unrender.nodes import Role
from unrender.proof.reading import with_and_without_end
from unrender.proof.said import said_by
from unrender.turn import Turn
from unrender.verify.axes import pairs, proof_answer
from unrender.verify.renditions import Candidate, show_after_prompt

_CONTENT, _THOUGHT, _ARGUMENTS = "Quite so.", "Let me see.", {"text": "Rome"}


def unwritten(asked: Candidate, turn: Turn, text: str) -> str:
    """Return the first marker of the answer `text` that the template doesn't write for the answer's message, or "". `asked` is the
    candidate that renders the message.
    """
    # The template may write a second call even if the request allows only one.
    turn = replace(turn, request=replace(turn.request, tool_choice="auto", parallel_tool_calls=True))
    headers, bare = (turn.format.turn.unasked, *turn.format.turn.headers), text.lstrip()
    header = next((core for core in map(str.strip, headers) if core and bare.startswith(core)), "")
    message, markers = _markers(turn, bare.removeprefix(header))
    first, filled = "", set[str]()
    for fills, answer in _answers(message):
        if shown := show_after_prompt(asked, answer):
            filled |= fills
            missing = _missing(markers, _markers(turn, shown.answer)[1])
            if not missing:
                return ""
            first = first or missing
    return first if filled == _empty(message) else ""


def _answers(message: Message) -> Iterator[tuple[set[str], Said]]:
    """Yield variants of a message in which empty parts contain text, each with the names of these parts. The first variant is the unchanged
    message.
    """
    calls = pairs(said_by(message))
    said: Mapping[str, Any] = {"content": message.content, "reasoning": message.reasoning, "calls": calls}
    # Include each call that has no arguments twice, with and without arguments, because either form may match.
    both = [(name, given) for name, arguments in calls for given in ((arguments,) if arguments else (_ARGUMENTS, {}))]
    filled: Mapping[str, Any] = {"content": _CONTENT, "reasoning": _THOUGHT, "calls": both}
    for which in product((False, True), repeat=3):
        fills = {part for part, fill in zip(filled, which, strict=True) if fill}
        if fills <= _empty(message):
            yield fills, proof_answer(**{**said, **{part: filled[part] for part in fills}})


def _empty(message: Message) -> set[str]:
    """Return the names of a message's empty parts. They include "calls" if a call has no arguments."""
    bare = any(not call.arguments for call in message.tool_calls)
    parts = {"content": message.content, "reasoning": message.reasoning, "calls": not bare}
    return {part for part, said in parts.items() if not said}


def _markers(turn: Turn, text: str) -> tuple[Message, list[str]]:
    """Parse an answer, and return its message and its markers. Layout, argument names and the end-of-turn marker are left out."""
    text = min(with_and_without_end(turn.format, text), key=len)
    parser = turn.parser()
    parser.feed(text)
    parser.finish()
    runs, last = [""], Role.MARKER
    for span in parser.spans:
        said = text[span.start : span.end]
        if span.role is Role.MARKER:
            runs += [] if last is Role.MARKER else [""]
            runs[-1] += said
        elif span.role is Role.LAYOUT:
            runs[-1] += said if last is Role.MARKER else ""
            continue
        last = span.role
    # Normalize markers to the format's main variant, without argument names. For example, `</a>` may be the end marker of `<a>` for any
    # `a`.
    tools, keys = (
        turn.format.tools,
        {key for call in parser.message.tool_calls for key in call.arguments},
    )
    spelled = {closer.strip(): tools.value_suffix.strip() for closer in tools.arguments.closers}
    nameless = dict.fromkeys(sorted(keys, key=len, reverse=True), "")
    pieces = (piece for run in runs for piece in tokens(_replaced(run, spelled)))
    return parser.message, [_replaced(piece, nameless) for piece in pieces]


def _replaced(text: str, others: Mapping[str, str]) -> str:
    for old, new in others.items():
        text = text.replace(old, new)
    return text


def _missing(markers: Sequence[str], written: Sequence[str]) -> str:
    """Return the first marker that doesn't occur in `written` after the previous markers, or "" if all of them do."""
    rest = iter(written)
    return next((marker for marker in markers if marker not in rest), "")
