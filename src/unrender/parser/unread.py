"""Finds, in content, what a model meant as a call and what nothing reported: markers of the format beside a tool's name.

Rule: a tool's name counts with one marker that closes calls, with two other markers, or at the start of a line, where what the
format writes next follows it. Brackets and words of prose are no markers. No call is made of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unrender.cache import kept
from unrender.format import Format, Slot, ToolMode
from unrender.grammar.assemble import PROSE_WORD, is_distinctive, splitter, text_of
from unrender.machine.compile.literals import closing_tokens
from unrender.messages.wire import Request

_NAME = r"(?m)^[\s\[{\"'`(]{0,8}(?:\w{1,32}[.:/])?(?P<name>[^\s\"'`(){}\[\]<>:,=|]{1,256})"


@dataclass(frozen=True, slots=True)
class _Signs:
    """What shows a call in content."""

    markers: tuple[str, ...]
    closers: tuple[str, ...]
    lines: tuple[re.Pattern[str], ...]
    """Lines that begin with a name, and what the format writes after it."""


def unread_call(content: str, format: Format, request: Request) -> tuple[int, str] | None:
    """Return where in `content` the name of a tool is that was meant as a call, and the name as it is there; None without."""
    names = {tool.name.casefold(): tool.name for tool in request.tools or ()}
    signs = _signs(format)
    if not names or not signs.lines:
        return None
    for line in signs.lines:
        found = next((found for found in line.finditer(content) if found["name"].casefold() in names), None)
        if found:
            return found.start("name"), found["name"]
    shown = sum(min(content.count(marker), 2) for marker in signs.markers)
    if shown < 2 and not any(closer in content for closer in signs.closers):
        return None
    folded = content.casefold() if len(content.casefold()) == len(content) else content
    found = next(filter(None, (re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) for name in names)), None)
    return (found.start(), content[found.start() : found.end()]) if found else None


@kept(10_000)
def _signs(format: Format) -> _Signs:
    markers: list[str] = []
    closers: list[str] = []
    lines: list[re.Pattern[str]] = []
    for syntax in (format.tools, *format.tolerated):
        if syntax.mode is ToolMode.NONE:
            continue
        split, arguments = splitter(syntax), syntax.arguments
        texts = (
            syntax.section_start,
            syntax.call_start,
            *syntax.function,
            arguments.start,
            *arguments.entry,
            arguments.end,
        )
        markers += [token for part in texts for token in split(text_of(part)) if _is_sign(token)]
        closers += [token for token in closing_tokens(syntax) if _is_sign(token)]
        # `now[ARGS]`, `now(…)`, `now\n{`: what is written after a name, up to what begins the arguments.
        after = syntax.function[syntax.function.index(Slot.NAME) + 1 :]
        next_part = next((text_of(part) for part in after if text_of(part).strip()), "")
        if not after[:1] or after[0] is Slot.ARGUMENTS or not text_of(after[0]).strip():
            next_part = arguments.start.strip() or ("" if arguments.entry else "{")
        pieces = split(next_part)
        if pieces:
            end = f"(?s:.{{0,4096}}?){re.escape(arguments.end.strip())}" if arguments.end.strip() else ""
            lines.append(re.compile(_NAME + "".join(rf"\s{{0,8}}{re.escape(piece)}" for piece in pieces) + end))
        else:
            lines.append(re.compile(r"(?!)(?P<name>)"))
    return _Signs(tuple(dict.fromkeys(markers)), tuple(dict.fromkeys(closers)), tuple(lines))


def _is_sign(token: str) -> bool:
    return is_distinctive(token) and not PROSE_WORD.fullmatch(token)
