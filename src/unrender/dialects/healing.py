"""Finds the valid part of a broken call: the longest prefix that the grammar accepts, up to a misplaced marker.

Rule: text is only cut off, never changed. The kept text starts with the call's first marker, and a grammar determines how it may continue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from unrender.answer import Marker, is_sign, literal_of
from unrender.answer.build import calls_of
from unrender.answer.encode import Call, encode_calls
from unrender.answer.views import CallView
from unrender.dialects.intact import ReadCall, intact_arguments, requiring
from unrender.dialects.remainder import Remainder, reach
from unrender.format import Format
from unrender.limits import STANDARD, Limits
from unrender.messages import Request
from unrender.nodes import Grammar

_STEPS = 300_000
"""Maximum number of steps to parse one prefix of a call."""
_OPENERS = 4
"""Maximum number of earlier openers that are tried as the start of the sequence that contains the call. The nearest openers are tried
first.
"""
_STRANGE = "\ue000"
"""A character for testing whether arbitrary text is allowed at a position. No marker, name or key contains it."""
_LEAST_CLOSER = 3
"""Minimum length of the start of an end marker that isn't taken for text."""
_MARKS = 64
"""Maximum number of markers, or of quotation marks, that are examined in one call."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The valid prefix of a broken call."""

    cut: int
    """Position in the output where the valid prefix ends."""
    text: str
    """The valid prefix, starting at the first marker of the sequence of calls that contains it."""
    request: Request
    """Request for the rest of the call. Its only tool requires the arguments that were intact, with their values."""
    following: str
    """Text of the complete calls that follow the broken one, without the end of the sequence of calls."""


def good_beginning(
    format: Format,
    request: Request,
    output: str,
    span: tuple[int, int],
    end: int,
    name: str,
    read: ReadCall,
    later: Sequence[Call] = (),
    limits: Limits = STANDARD,
    *,
    prefill: int = 0,
) -> Begun | None:
    """Return the valid prefix of a broken call of the tool `name`. The call is at `span` in the output, and its error is at `end`.

    The first `prefill` characters of the output are the end of the prompt and can't be cut off. These characters may contain the call's
    start. `read` parses a single call, and `later` are the complete calls that follow. Returns None if not even the first marker and the
    name are valid. Raises `GrammarError` if calls cannot be written as a grammar.
    """
    start, stop = span
    tool = request.tool(name)
    runs = calls_of(format, replace(request, parallel_tool_calls=False))[:1]
    if tool is None or not runs:
        return None
    view = CallView(runs[0])
    kept = intact_arguments(view, tool, output[start:stop], read)
    # If the model started an unfinished call again, the second call completes the first one.
    closers = runs[0].closers
    ended = not closers or closers[-1] in output[start:stop]
    if later and not ended and later[0][0] == name and all(later[0][1].get(key) == kept[key] for key in kept):
        kept, later = dict(later[0][1]), later[1:]
    # If the prompt contains the start of the call, that part is valid. The model's part follows it, and may be cut off entirely.
    begun = start <= prefill > 0
    prompted = dict.fromkeys([output[start:prefill], output[:prefill]]) if begun else ()
    start = max(start, prefill) if begun else start
    # Skip whitespace before the call's first marker, as in ` to=functions.NAME` after a prompt that ends in `<|start|>assistant`.
    start += len(output[start:stop]) - len(output[start:stop].lstrip())
    # The values of intact arguments may exclude each other, e.g. by `oneOf`.
    for values in (kept, {}) if kept else ({},):
        named = replace(request, tools=(requiring(tool, values),), parallel_tool_calls=False)
        grammar = Remainder(format=format, request=named, limits=limits).called()
        found: Begun | None = None
        for opened in [*_openings(view, output, start), *prompted]:
            cut = _good(view, grammar, opened, output[start:stop], end - start, begun=begun)
            # Require the name to be kept, since the model could otherwise call another tool.
            if cut is None or name not in opened + output[start : start + cut] or (found and found.cut >= start + cut):
                continue
            found = Begun(start + cut, opened + output[start : start + cut], named, _following(view, later))
        if found is not None:
            return found
    return None


def _following(view: CallView, said: Sequence[Call]) -> str:
    """Return the text of calls that follow an earlier call, without the end of the sequence of calls."""
    calls = view.written
    alone = replace(calls, open=Marker(), close=Marker())
    written = (encode_calls(alone, [call], first=index) for index, call in enumerate(said, start=1))
    return "" if calls.ends_turn else "".join(calls.separator.text + call for call in written)


def _openings(view: CallView, output: str, start: int) -> Iterator[str]:
    """Yield texts that may precede the call in its sequence of calls: "", the output since an earlier opener, or the missing openers."""
    yield ""
    calls = view.written
    opener = calls.openers[0].core if calls.openers else ""
    at = start
    for _ in range(_OPENERS if opener else 0):
        at = output.rfind(opener, 0, at)
        if at < 0:
            break
        yield output[at:start]
        # Earlier calls of the sequence are complete, so the grammar continues as if there were none.
        yield calls.open.text.lstrip()
    # At the start of a line, a call may also lack its openers.
    if not output[output.rfind("\n", 0, start) + 1 : start].strip():
        yield calls.open.text.lstrip() + calls.call_open.text.lstrip()


def _good(view: CallView, grammar: Grammar, opened: str, call: str, end: int, *, begun: bool) -> int | None:
    """Return the length of the valid prefix of `call`. Returns None if `opened` isn't valid, or if the prefix is empty and `begun` is
    False.

    `opened` is the text before the call, and `end` is the position of the call's error.
    """

    def free(at: int) -> bool:
        """Return whether arbitrary text is allowed at a position in the call, i.e. whether the position is inside a value."""
        inside = opened + call[:at] + _STRANGE
        return reach(grammar, inside, _STEPS) == len(inside)

    codec = view.arguments.codec
    marks = filter(None, (codec.string_open, codec.string_close, '"', "'"))
    quote = re.compile("|".join(map(re.escape, dict.fromkeys(marks))))
    read = reach(grammar, opened + call[:end], _STEPS)
    if read is None or read < len(opened) + (not begun):
        return None
    cut = read - len(opened)
    bare = len(call[:cut].rstrip())
    for start, stop in _markers(view, call):
        # Either the value before this marker was never closed, as in `<a>1</call>` or `{"a": "1}</call>`, or the error comes after the
        # value's closer, as in `<a>1</a>2</a>`.
        if start <= cut and free(start) and (stop >= bare or free(stop)):
            string = _before_string(quote, call, start, free)
            cut = len(call[:start].rstrip()) if string is None else string
            break
    else:
        cut = _before_quote(quote, call, cut, bare, free)
    torn = _damaged_closer(view, call[:cut])
    cut = torn if torn is not None and free(torn) else cut
    # Drop an incomplete word: `argu` isn't a key, even though it shares a prefix with the key `args`.
    while 0 < cut < len(call) and call[cut - 1].isalnum() and call[cut].isalnum():
        cut -= 1
    return cut


def _damaged_closer(view: CallView, call: str) -> int | None:
    """Return the position of a damaged end marker in the last value of `call`, as in `<a>1</§a>`. Returns None if there is none."""
    entry, closer = view.arguments.entry, view.arguments.closer.core
    opener = literal_of(*entry[:1]).strip()
    if not opener or len(closer) < _LEAST_CLOSER:
        return None
    start = call.rfind(opener) + len(opener)
    least = max(len(closer) // 2, _LEAST_CLOSER)
    found = re.compile(re.escape(closer[:least])).search(call, start)
    return found and len(call[: found.start()].rstrip())


def _before_quote(quote: re.Pattern[str], call: str, cut: int, bare: int, free: Callable[[int], bool]) -> int:
    """Return the end of the valid prefix of a call that becomes invalid at `cut`, inside or directly after a string. `bare` is the position
    before the whitespace at `cut`.

    `quote` matches the marks that start and end strings.
    """
    mark = next((mark for mark in quote.finditer(call, max(bare - _MARKS, 0), bare) if mark.end() == bare), None)
    # For example, `"say "hi""` becomes invalid after a mark that wasn't meant to end the string. Cut off the whole string, since the text
    # before the mark may be incomplete.
    if mark is not None:
        string = _before_string(quote, call, mark.start(), free) if free(mark.start()) else None
        return mark.start() if string is None else string
    # The string itself may also be invalid, e.g. because of a line break, which JSON strings can't contain.
    string = _before_string(quote, call, bare, free) if cut < len(call) and free(bare) else None
    return cut if string is None else string


def _before_string(quote: re.Pattern[str], call: str, inside: int, free: Callable[[int], bool]) -> int | None:
    """Return the start of the string around the position `inside`. Returns None if there is no such string, or if the string contains too
    many quotation marks.
    """
    marks = list(quote.finditer(call, 0, inside))[-_MARKS:]
    return next((mark.start() for mark in reversed(marks) if free(mark.end()) and not free(mark.start())), None)


def _markers(view: CallView, text: str) -> list[tuple[int, int]]:
    """Return the spans of call markers in a text, in order."""
    pieces = dict.fromkeys(piece for marker in view.markers for piece in marker.pieces if is_sign(piece))
    if not pieces:
        return []
    return [found.span() for found in re.finditer("|".join(map(re.escape, pieces)), text)][:_MARKS]
