"""Describes the text that a parser allows next, and finds unreported calls in the content.

A call is unreported if its markers, next to a tool name, became content. Rule: a tool name counts as a call if the content also contains an
end marker of calls, or two other markers. A name at the start of a line also counts if it's followed by the text that the format requires
next. Brackets and ordinary words aren't markers. The parser reports such a call, but doesn't add it to the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unrender.answer import Marker, is_sign, literal_of
from unrender.answer.build import calls_in
from unrender.answer.views import CallView
from unrender.cache import kept
from unrender.format import Format, Slot
from unrender.machine import BrokenText, Event, Malformed
from unrender.machine.instructions import FreeText
from unrender.machine.interpreter import Machine
from unrender.messages import Request
from unrender.nodes import Role

_NO_MARKER = "\0"
_TEXT = {Role.CONTENT: "text", Role.REASONING: "reasoning"}


def expected_by(machine: Machine, *, by_hand: bool) -> tuple[str, ...]:
    """Return descriptions of the text that is allowed next: quoted literals, and names of free parts.

    The result is empty after the end of the output.
    """
    if machine.final:
        return ()
    asked = machine.copy()
    asked.resume()
    reader = asked.restart.reader if asked.restart else None
    stops = reader.stops if reader and by_hand else ()
    asked.strict, asked.wanted, asked.failed_at = False, "", asked.at
    # Feed a copy a character that no marker contains. If a marker is expected, the copy fails and reports the expected text.
    wanted = _wanted(asked, asked.feed(_NO_MARKER))
    if by_hand:
        return (asked.wanted,) if asked.wanted else ("text", *_quoted(stops))
    if not wanted and asked.scanner is not None:
        reader = asked.restart.reader if asked.restart else None
        suffix = reader.view.suffix if reader and reader.valued else None
        return ("more of the value", *_quoted(getattr(suffix, "literals", ())))
    after = asked.program[asked.pc]
    if not wanted and isinstance(after, FreeText):
        return (_TEXT[after.role], *_quoted(after.table))
    # An uncertain call may still become text.
    return (wanted or _wanted(asked, asked.finish()), *(["text"] if machine.frames else []))


def _wanted(asked: Machine, events: list[Event | BrokenText]) -> str:
    """Return the text that was expected instead of the text fed last, or "" if any text is allowed."""
    return next((event.expected for event in events if isinstance(event, Malformed)), asked.wanted)


def _quoted(markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repr(core) for marker in markers if (core := marker.strip())))


_NAME = r"(?m)^[\s\[{\"'`(]{0,8}(?:\w{1,32}[.:/])?(?P<name>[^\s\"'`(){}\[\]<>:,=|]{1,256})"


@dataclass(frozen=True, slots=True)
class _Signs:
    """The text of a format that indicates a call in content."""

    heads: frozenset[str]
    """First characters of all markers and of all strings in `lines`."""
    markers: tuple[str, ...]
    closers: tuple[str, ...]
    lines: tuple[tuple[str, re.Pattern[str]], ...]
    """Strings that follow a tool name in the format, each with a pattern for lines that start with a name followed by this string."""


def unread_call(content: str, format: Format, request: Request) -> tuple[int, str] | None:
    """Return the position and spelling of a tool name in `content` that was meant as a call, or None if there is no such name."""
    signs = _signs(format)
    if not request.tools:
        return None
    # Most prose doesn't contain even the first characters of markers, so look for these characters before searching for names.
    heads = {head for head in signs.heads if head in content}
    lines = [line for text, line in signs.lines if text[0] in heads and text in content]
    marked = any(closer[0] in heads and closer in content for closer in signs.closers)
    marked = marked or sum(min(content.count(text), 2) for text in signs.markers if text[0] in heads) > 1
    folded = content.casefold() if lines or marked else ""
    names = [tool.name.casefold() for tool in request.tools if tool.name.casefold() in folded]
    for line in lines if names else ():
        found = next((found for found in line.finditer(content) if found["name"].casefold() in names), None)
        if found and not _is_mention(content, found):
            return found.start("name"), found["name"]
    if not marked or not names:
        return None
    folded = folded if len(folded) == len(content) else content
    found = re.search(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)", folded)
    return (found.start(), content[found.start() : found.end()]) if found else None


def _is_mention(content: str, found: re.Match[str]) -> bool:
    """Return whether the same quotation mark precedes the name and follows the match, as in "`now(` begins a call"."""
    mark = content[found.start("name") - 1 : found.start("name")]
    return mark != "" and mark in "`'\"" and content.startswith(mark, found.end())


@kept(10_000)
def _signs(format: Format) -> _Signs:
    markers: list[str] = []
    closers: list[str] = []
    lines: list[tuple[str, re.Pattern[str]]] = []
    for calls in calls_in(format):
        arguments, function = calls.arguments, calls.function
        markers += [piece for marker in CallView(calls).markers for piece in marker.pieces if is_sign(piece)]
        closers += filter(is_sign, calls.all_closers)
        # Collect the text between a name and its arguments, as in `now[ARGS]`, `now(…)` or `now\n{`.
        after = function[function.index(Slot.NAME) + 1 :]
        pieces = next((part.pieces for part in after if isinstance(part, Marker) and part), ())
        if not after[:1] or after[0] is Slot.ARGUMENTS or not literal_of(after[0]).strip():
            pieces = arguments.open.pieces or (() if arguments.entry else ("{",))
        if pieces:
            end = f"(?s:.{{0,4096}}?){re.escape(arguments.close.core)}" if arguments.close else ""
            line = _NAME + "".join(rf"\s{{0,8}}{re.escape(piece)}" for piece in pieces) + end
            lines.append((max(pieces, key=len), re.compile(line)))
    heads = frozenset(text[0] for text in (*markers, *closers, *(text for text, _ in lines)))
    return _Signs(heads, tuple(dict.fromkeys(markers)), tuple(dict.fromkeys(closers)), tuple(lines))
