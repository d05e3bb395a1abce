"""Finds, in content, what a model meant as a call and what nothing reported: markers of the format beside a tool's name.

Rule: a tool's name counts with one marker that closes calls, with two other markers, or at the start of a line, where what the
format writes next follows it. Brackets and words of prose are no markers. No call is made of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.answer.build import calls_in
from unrender.answer.literals import is_sign
from unrender.answer.nodes import Marker, literal_of
from unrender.cache import kept
from unrender.format import Format, Slot
from unrender.messages.wire import Request

_NAME = r"(?m)^[\s\[{\"'`(]{0,8}(?:\w{1,32}[.:/])?(?P<name>[^\s\"'`(){}\[\]<>:,=|]{1,256})"


@dataclass(frozen=True, slots=True)
class _Signs:
    """Signs of a call in content."""

    heads: frozenset[str]
    """The first characters of all of it."""
    markers: tuple[str, ...]
    closers: tuple[str, ...]
    lines: tuple[tuple[str, re.Pattern[str]], ...]
    """Texts that the format writes after a name, and lines that begin with a name and that."""


def unread_call(content: str, format: Format, request: Request) -> tuple[int, str] | None:
    """Return where in `content` the name of a tool is that was meant as a call, and the name as it is there; None without."""
    signs = _signs(format)
    if not request.tools:
        return None
    # Prose holds none of it, and most of it not even the first characters. Only where something is there, names are looked for.
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
    """Return whether a mark is before the name, and again after what follows it: "`now(` begins a call"."""
    mark = content[found.start("name") - 1 : found.start("name")]
    return mark != "" and mark in "`'\"" and content.startswith(mark, found.end())


@kept(10_000)
def _signs(format: Format) -> _Signs:
    markers: list[str] = []
    closers: list[str] = []
    lines: list[tuple[str, re.Pattern[str]]] = []
    for calls in calls_in(format):
        arguments, function = calls.arguments, calls.function
        texts = (calls.open, calls.call_open, *function, arguments.open, *arguments.entry, arguments.close)
        markers += [piece for part in texts if isinstance(part, Marker) for piece in part.pieces if is_sign(piece)]
        closers += filter(is_sign, calls.all_closers)
        # `now[ARGS]`, `now(…)`, `now\n{`: what is written after a name, up to what begins the arguments.
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
