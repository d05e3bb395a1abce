"""Answers FIRST of a run of calls: the texts with which the parser begins a call, and which free text must not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unrender.answer.literals import is_distinctive, is_phrase
from unrender.answer.nodes import Calls, Marker, literal_of
from unrender.format import Slot
from unrender.limits import MAX_SMALL

_NAME_KEY = re.compile(r'(\{?"[^"]*")\s*:\s*"$')


def call_signs(calls: Calls) -> Iterator[str]:
    """Yield the markers that show a call, and what is before a tool's name with it."""
    chain, names = calls.openers, [tool.name for tool in calls.tools or ()]
    if not chain:
        after_name = literal_of(calls.function[1]) + _begins_arguments(calls)
        yield from (name + after_name for name in names if calls.function[0] is Slot.NAME)
        return
    heads = ["{" if calls.envelope and marker is calls.function[0] else marker.pieces[0] for marker in chain]
    shown = [calls.shows(head, outermost=not at) for at, head in enumerate(heads)]
    for marker in (marker for marker, alone in zip(chain, shown, strict=True) if alone):
        yield from (spelling.pieces[0].rstrip("[{") for spelling in marker.spelled)
    if all(alone or (at and not is_distinctive(heads[at])) for at, alone in enumerate(shown)):
        return  # No other marker begins one.
    hidden = dict.fromkeys(head for head, alone in zip(heads, shown, strict=True) if not alone)
    said = [head for head in hidden if is_distinctive(head) and not head.startswith("```")]
    # `Action:\n[` as a whole is the format's own; of `{"name": "` and `Action:`, prose writes all but the name of a tool.
    if calls.own and not shown[0] and is_phrase(chain[0].core):
        yield chain[0].core
    elif not said or not calls.envelope:
        yield from _named(calls, chain, names)
    # Any white space may be before the JSON in `[TOOL_CALLS][{...}`: what models write is a sign.
    if calls.envelope:
        yield from (head + space + bracket for head in said for space in ("", " ", "\n") for bracket in "[{")


def _named(calls: Calls, chain: list[Marker], names: list[str]) -> Iterator[str]:
    """Yield what is right before the name of a tool, with the name: `<function=now`, `{"name": "now"`."""
    # All the names together are cut to a bounded length, since an automaton has a state for each character.
    cut = MAX_SMALL // max(1, len(names))
    at = calls.function.index(Slot.NAME) if Slot.NAME in calls.function else 0
    before = literal_of(calls.function[at - 1]) if at else ""
    if calls.envelope and (key := _NAME_KEY.search(before)):
        yield from (key[1] + space + '"' + f'{name}"'[:cut] for space in (": ", ":") for name in names or [""])
    elif at > 1:
        yield "".join(marker.text for marker in chain)
    else:
        before = before.lstrip() or chain[-1].text.lstrip()
        yield from (before + name[: max(cut, 1)] for name in names or [""])


def _begins_arguments(calls: Calls) -> str:
    """Return the text that begins the arguments; "" if a call has more than two parts before them."""
    arguments = calls.arguments
    # `f({` and `f(a=`: with a parenthesis alone, any prose about f would be a call.
    if Slot.ARGUMENTS not in calls.function[:3]:
        return ""
    return arguments.open.text if arguments.entry or arguments.open.text else "{"
