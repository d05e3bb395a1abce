"""Finds the valid part of a broken call: the longest prefix that the grammar accepts, up to a misplaced marker.

Rule: text is only cut off. What is kept begins with the call's first marker, and a grammar says how it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from unrender.answer.build import calls_of
from unrender.answer.literals import is_sign
from unrender.answer.nodes import Calls, Marker
from unrender.dialects.remainder import Remainder, reach
from unrender.format import Format
from unrender.limits import STANDARD, Limits
from unrender.messages.wire import Request
from unrender.nodes import Grammar

_STEPS = 300_000
"""Steps to read one beginning of a call."""
_OPENERS = 4
"""The most places before a call at which its run may have begun; the nearest are tried first."""
_STRANGE = "\ue000"
"""A character that no marker, name or key holds: where it may stand, text is free."""
_MARKS = 64
"""Markers, or marks, of one call that are looked at."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The good beginning of a call that broke."""

    cut: int
    """The place in the output where it ends."""
    text: str
    """The call up to there, from the first marker of its run on."""
    request: Request
    """The request that the call may still answer: nothing but a call of the tool that was named."""


def good_beginning(
    format: Format, request: Request, output: str, span: tuple[int, int], end: int, name: str, limits: Limits = STANDARD
) -> Begun | None:
    """Return what is good of a call of tool `name`, which the `span` of the output is and which broke at `end`.

    Return None if not even its first marker and its name are valid. Raises `GrammarError` where calls cannot be written as a grammar.
    """
    start, stop = span
    # Layout is no part of a call's first marker: ` to=functions.NAME` after a prompt that ends in `<|start|>assistant`.
    start += len(output[start:stop]) - len(output[start:stop].lstrip())
    tool = request.tool(name)
    runs = calls_of(format, request)[:1]
    if tool is None or not runs:
        return None
    named = replace(request, tools=(tool,))
    others = tuple(other for other in request.tools or () if other.name != name)
    grammar = Remainder(format=format, request=named, limits=limits).called()
    found: Begun | None = None
    for opened in _openings(runs[0], output, start):
        cut = _good(runs[0], grammar, opened, output[start:stop], end - start)
        # The name stays: without it, another call may be written.
        if cut is None or name not in opened + output[start : start + cut] or (found and found.cut >= start + cut):
            continue
        found = Begun(start + cut, opened + output[start : start + cut], named)
    if found is None or not others:
        return found
    # Calls of other tools may follow this one, where nothing but the name that was written can come of what is kept.
    elsewhere = Remainder(format=format, request=replace(request, tools=others), limits=limits).called()
    read = reach(elsewhere, found.text, _STEPS)
    return replace(found, request=request) if read is not None and read < len(found.text) else found


def _openings(calls: Calls, output: str, start: int) -> Iterator[str]:
    """Yield what may precede a call in its run: nothing, the output from an opener of the run on, or openers that were left out."""
    yield ""
    opener = calls.openers[0].core if calls.openers else ""
    at = start
    for _ in range(_OPENERS if opener else 0):
        at = output.rfind(opener, 0, at)
        if at < 0:
            break
        yield output[at:start]
    # A call whose opener is missing is read at the start of a line.
    if not output[output.rfind("\n", 0, start) + 1 : start].strip():
        yield calls.open.text.lstrip() + calls.call_open.text.lstrip()


def _good(calls: Calls, grammar: Grammar, opened: str, call: str, end: int) -> int | None:
    """Return how much of `call`, which broke at `end`, is good after `opened`; None where nothing is."""

    def free(at: int) -> bool:
        """Return whether any text may stand at a place of the call: it is in a value."""
        inside = opened + call[:at] + _STRANGE
        return reach(grammar, inside, _STEPS) == len(inside)

    codec = calls.arguments.codec
    marks = filter(None, (codec.string_open, codec.string_close, '"', "'"))
    quote = re.compile("|".join(map(re.escape, dict.fromkeys(marks))))
    read = reach(grammar, opened + call[:end], _STEPS)
    if read is None or read <= len(opened):
        return None
    cut = read - len(opened)
    bare = len(call[:cut].rstrip())
    for start, stop in _markers(calls, call):
        # A value was not closed, `<a>1</call>` or `{"a": "1}</call>`; or the call breaks after what closed it: `<a>1</a>2</a>`.
        if start <= cut and free(start) and (stop >= bare or free(stop)):
            string = _before_string(quote, call, start, free)
            cut = len(call[:start].rstrip()) if string is None else string
            break
    else:
        cut = _before_quote(quote, call, cut, bare, free)
    # Of `argu`, which is no key, nothing stays of the key `args`.
    while 0 < cut < len(call) and call[cut - 1].isalnum() and call[cut].isalnum():
        cut -= 1
    return cut


def _before_quote(quote: re.Pattern[str], call: str, cut: int, bare: int, free: Callable[[int], bool]) -> int:
    """Return where a call is cut that breaks at `cut`, after the end of a string or in one; without layout that is `bare`.

    `quote` matches the marks that begin and end strings.
    """
    mark = next((mark for mark in quote.finditer(call, max(bare - _MARKS, 0), bare) if mark.end() == bare), None)
    # `"say "hi""` breaks after a mark that was not meant to end the string; what is before it may be half of what was meant.
    if mark is not None:
        string = _before_string(quote, call, mark.start(), free) if free(mark.start()) else None
        return mark.start() if string is None else string
    # A string of JSON has no line break.
    string = _before_string(quote, call, bare, free) if cut < len(call) and free(bare) else None
    return cut if string is None else string


def _before_string(quote: re.Pattern[str], call: str, inside: int, free: Callable[[int], bool]) -> int | None:
    """Return where the string begins that a place is in; None where it is in none, or in one with too many marks."""
    marks = list(quote.finditer(call, 0, inside))[-_MARKS:]
    return next((mark.start() for mark in reversed(marks) if free(mark.end()) and not free(mark.start())), None)


def _markers(calls: Calls, text: str) -> list[tuple[int, int]]:
    """Return where in a text markers of calls begin and end, in order."""
    arguments = calls.arguments
    parts = (calls.open, calls.close, calls.call_open, calls.call_close, *calls.function)
    parts = (*parts, arguments.open, *arguments.entry, arguments.close)
    pieces = dict.fromkeys(
        piece for part in parts if isinstance(part, Marker) for piece in part.pieces if is_sign(piece)
    )
    if not pieces:
        return []
    return [found.span() for found in re.finditer("|".join(map(re.escape, pieces)), text)][:_MARKS]
