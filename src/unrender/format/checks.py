"""Finds the first invariant that a Format breaks; it becomes a `FormatError` that names the field.

Strategy: a check is a generator of problems, each a path and what is wrong there. Texts and counts come first, so that
the later checks work on data of bounded size; then each part by itself; then the parts against each other.

Rules: what passes here is parsed, generated and exported without an error, so an invariant that is missing is a bug here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from unrender.errors import FormatError
from unrender.format.call_checks import check_tools, is_marked
from unrender.format.conflicts import JOINTS, check_answer, check_fences, check_syntax
from unrender.format.parts import CallSyntax, Content, ContentMode, Reasoning, ReasoningMode, Slot, Spelling, TurnTexts
from unrender.format.skeleton_checks import Problem
from unrender.limits import MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_REASON, MAX_TEXT

if TYPE_CHECKING:
    from unrender.format import Format


_RESERVED = re.compile("[\0\ud800-\udfff\ue000\ufdd0-\ufdef\U0010f000-\U0010ffff]")
"""NUL, at which engines end a text, surrogates, which no text holds, and the stand-ins of analysis, sampler and parser."""


def check(format: Format) -> None:
    """Raise `FormatError`, naming the field, for the first invariant that `format` breaks."""
    for where, problem in _problems(format):
        raise FormatError(problem, where)


def text_problem(text: str) -> str:
    """Return the reason why `text` cannot be a marker, or "" when it can."""
    if len(text) > MAX_MARKER:
        return f"expected at most {MAX_MARKER} characters, found {len(text)}"
    core = text.strip()
    if core and len(text) - min(len(text.lstrip()), len(text.rstrip())) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of white space at either end"
    if not core and len(text) > MAX_LAYOUT:
        return f"expected at most {MAX_LAYOUT} characters of white space, found {len(text)}"
    found = _RESERVED.search(text)
    return f"the character U+{ord(found.group()):04X} is reserved" if found else ""


def _problems(format: Format) -> Iterator[Problem]:
    yield from _texts(format, "format")
    size = sum(len(text) for text in _all_texts(format))
    if size > MAX_TEXT:
        yield "format", f"expected markers of at most {MAX_TEXT} characters together, found {size}"
    yield from _turn(format.turn)
    yield from _reasoning(format.reasoning)
    yield from _content(format.content, "format.content")
    if format.content_with_calls is not None:
        yield from _content(format.content_with_calls, "format.content_with_calls")
    for where, tools in _syntaxes(format):
        yield from check_tools(tools, where)
        yield from check_syntax(tools, where)
        yield from check_fences(tools, where)
    for at, spelling in enumerate(format.spellings):
        yield from _spelling(spelling, f"format.spellings[{at}]")
    yield from _blank(format.ignored, "format.ignored")
    yield from _blank(format.preserved_tokens, "format.preserved_tokens")
    yield from _between(format)


def _syntaxes(format: Format) -> Iterator[tuple[str, CallSyntax]]:
    yield "format.tools", format.tools
    yield from ((f"format.tolerated[{at}]", tools) for at, tools in enumerate(format.tolerated))


# Texts and counts.


def _texts(value: Any, where: str) -> Iterator[Problem]:
    if isinstance(value, Slot):
        return
    if isinstance(value, str):
        limit = MAX_REASON if where.endswith(".why") else MAX_MARKER
        problem = f"expected at most {limit} characters, found {len(value)}" if len(value) > limit else ""
        problem = problem if where.endswith(".why") else text_problem(value)
        if problem:
            yield where, problem
    elif isinstance(value, tuple):
        if len(value) > MAX_ITEMS:
            yield where, f"expected at most {MAX_ITEMS} entries, found {len(value)}"
        for at, item in enumerate(value):
            yield from _texts(item, f"{where}[{at}]")
    elif is_dataclass(value):
        for item in fields(value):
            yield from _texts(getattr(value, item.name), f"{where}.{item.name}")


def _all_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _all_texts(item)
    elif is_dataclass(value):
        for item in fields(value):
            if item.name != "why":
                yield from _all_texts(getattr(value, item.name))


def _blank(markers: tuple[str, ...], where: str) -> Iterator[Problem]:
    """Yield the markers of a list that are nothing but white space."""
    for at, marker in enumerate(markers):
        if not marker.strip():
            yield f"{where}[{at}]", f"expected a marker, found {marker!r}"


# The parts by themselves.


def _turn(turn: TurnTexts) -> Iterator[Problem]:
    yield from _blank(turn.headers, "format.turn.headers")
    yield from _blank(turn.ends, "format.turn.ends")
    for name in JOINTS:
        if len(getattr(turn, name).strip()) == 1:
            yield f"format.turn.{name}", f"expected white space or a marker, found {getattr(turn, name)!r}"
    if turn.start_to_content.strip():
        yield "format.turn.start_to_content", f"expected white space, found {turn.start_to_content!r}"


def _reasoning(reasoning: Reasoning) -> Iterator[Problem]:
    where, mode = "format.reasoning", reasoning.mode
    if mode is ReasoningMode.NONE:
        if reasoning != Reasoning():
            yield f"{where}.mode", "reasoning is described, and its mode is `none`"
        return
    start, end = reasoning.start.strip(), reasoning.end.strip()
    if not end:
        yield f"{where}.end", f"expected a marker that ends reasoning, found {reasoning.end!r}"
    if mode is ReasoningMode.DELIMITER and reasoning.start:
        yield f"{where}.start", f"expected nothing in mode `delimiter`, found {reasoning.start!r}"
    if mode is not ReasoningMode.DELIMITER and not start:
        yield f"{where}.start", f"expected a marker that begins reasoning, found {reasoning.start!r}"
    if reasoning.empty and not reasoning.closed_in(reasoning.empty):
        yield f"{where}.empty", f"expected a text with {end!r} in it, found {reasoning.empty!r}"


def _content(content: Content, where: str) -> Iterator[Problem]:
    if content.mode is ContentMode.PLAIN:
        if content != Content():
            yield f"{where}.mode", "a wrapper is described, and the mode is `plain`"
        return
    if not content.start.strip():
        yield f"{where}.start", f"expected a marker that begins content, found {content.start!r}"
    if content.end and not content.end.strip():
        yield f"{where}.end", f"expected a marker or nothing, found {content.end!r}"


def _spelling(spelling: Spelling, where: str) -> Iterator[Problem]:
    if spelling.marker != spelling.marker.strip() or not spelling.marker:
        yield f"{where}.marker", f"expected a marker without white space around it, found {spelling.marker!r}"
    yield from _blank(spelling.others, f"{where}.others")


# The parts against each other.


def _between(format: Format) -> Iterator[Problem]:
    if format.reasoning.holds_calls and format.tools == CallSyntax():
        yield "format.reasoning.holds_calls", "there are no calls that reasoning could hold"
    elif format.reasoning.holds_calls and not is_marked(format.tools) and not format.turn.reasoning_to_tools.strip():
        yield (
            "format.reasoning.holds_calls",
            "expected calls with a marker before the name, which shows them inside reasoning",
        )
    yield from check_answer(format.turn, format.reasoning, format.content, format.tools, format.ignored)
