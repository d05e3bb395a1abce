r"""Attribute the text of a prompt to the template, messages, tools and documents.

Strategy: the conversation is rendered once more, with an invisible mark before and after each text. A mark consists of private-use
characters that don't occur in the prompt, and contains the number of the text's owner. Filters such as `trim`, `tojson` and `upper` keep the
marks, so the text between two marks is the text as the template writes it. If removing the marks results in the prompt, all owners are
certain.

A template may write something else because of a mark, e.g. if it checks the start of a message. The renderings then differ in the middle.
The text between their common start and end has an unknown owner, and counts as a body. So a mistake can hide a marker of the template, but
never turns text of a message into a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from unrender.conversation.bodies import Body, changed_conversation, changed_documents, changed_tools
from unrender.conversation.messages import Conversation
from unrender.conversation.transcript import Writer
from unrender.messages.wire import Request
from unrender.turn import Piece

_DIGITS = 32
_LENGTH = 4
"""Number of digits in a mark."""
_SIZE = _DIGITS + 2
"""Number of characters of which marks consist: one for the start of a text, one for its end, and the digits."""
_FIRST, _LAST = 0xE000, 0xF8FF
"""The private-use characters from which the characters of the marks are chosen."""
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_UNKNOWN = Body("unknown")
_TEMPLATE = Body("template")
_ANSWERS = ("assistant",)

_Run = tuple[str, Body]


class Shown(NamedTuple):
    """A conversation, and the writer that rendered it."""

    writer: Writer
    messages: Conversation
    request: Request
    tools: Sequence[Mapping[str, Any]] = ()

    def pieces(self, prompt: str, *, asks: bool = True) -> tuple[Piece, ...]:
        """Return the pieces of `prompt`, which is the start of the rendered conversation. Renders the conversation once."""
        marks = _Marks.unused_in(prompt, self)
        rendered = None if marks is None else self._changed(marks.around).rendered(asks=asks)
        runs = [] if rendered is None or marks is None else list(marks.read(rendered))
        return tuple(_pieces(_aligned(runs, prompt)))

    def rendered(self, *, asks: bool) -> str | None:
        """Return the rendered conversation, or None if the template rejects it."""
        return replace(self.writer, time=None).text(self.messages, asks=asks)

    def texts(self) -> Iterator[tuple[Body, str]]:
        """Yield each text of the conversation, the tools and the documents, with its owner."""
        found: list[tuple[Body, str]] = []

        def take(owner: Body, text: str) -> str:
            found.append((owner, text))
            return text

        self._changed(take)
        yield from found

    def _changed(self, change: Callable[[Body, str], str]) -> Shown:
        writer, request = self.writer, self.request
        context, variable = dict(writer.kwargs.context), writer.capabilities.tools_variable
        if isinstance(listed := context.get(variable), str) and writer.capabilities.tools_as_text:
            context[variable] = json.dumps(changed_tools(json.loads(listed), change), ensure_ascii=False)
        elif isinstance(listed, list | tuple):
            context[variable] = changed_tools(listed, change)
        if isinstance(documents := context.get("documents"), list | tuple):
            context["documents"] = changed_documents(documents, change)
        injection = writer.injection
        if injection is not None:
            tools = changed_tools(self.tools, change)
            names = {
                one["function"]["name"]: other["function"]["name"] for one, other in zip(self.tools, tools, strict=True)
            }
            request = replace(
                request,
                tools=tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools or ()),
                named_tool=request.named_tool and names.get(request.named_tool, request.named_tool),
            )
            injection = writer.plan.offer(tools, request)
        writer = replace(writer, injection=injection, kwargs=replace(writer.kwargs, context=context))
        return self._replace(writer=writer, messages=changed_conversation(self.messages, change))


class _Marks:
    """The marks of one rendering."""

    def __init__(self, first: int, reasoning: Sequence[str]) -> None:
        self._opens, self._closes, *digits = map(chr, range(first, first + _SIZE))
        self._digits = digits
        self._range = (first, first + _SIZE)
        self._mark = re.compile(f"([{self._opens}{self._closes}])([{digits[0]}-{digits[-1]}]{{{_LENGTH}}})")
        self._owners: dict[tuple[Body, str, str, bool], int] = {}
        self._known: list[tuple[Body, str, str, bool]] = []
        self._inside: set[int] = set()
        """Numbers of texts that also have marks inside."""
        self._reasoning = re.compile(f"({'|'.join(map(re.escape, reasoning)) or '(?!)'})")

    @classmethod
    def unused_in(cls, prompt: str, shown: Shown) -> _Marks | None:
        """Return marks of characters that don't occur in the conversation. Returns None if each such character occurs."""
        texts = [prompt, *(text for _, text in shown.texts())]
        used = {ord(char) for text in texts for char in re.findall(f"[{chr(_FIRST)}-{chr(_LAST)}]", text)}
        used |= {int(code, 16) for text in texts if "\\u" in text for code in _ESCAPE.findall(text)}
        reasoning = shown.writer.format.reasoning
        markers = [text for text in (reasoning.start.strip(), reasoning.end.strip()) if text]
        for first in range(_FIRST, _LAST - _SIZE, _SIZE):
            if used.isdisjoint(range(first, first + _SIZE)):
                return cls(first, markers)
        return None

    def around(self, owner: Body, text: str) -> str:
        """Return the text with marks around it, but inside the whitespace at its ends."""
        core = text.strip()
        lead, _, trail = text.partition(core)
        if owner.kind == "content" and owner.role in _ANSWERS and self._reasoning.search(core):
            # Templates take apart `<think>A</think>B`. Then only marks inside show where `A` and `B` are.
            parts = self._reasoning.split(core)
            core = "".join(
                part if k % 2 or not part.strip() else self._between(owner, part, inner=True)
                for k, part in enumerate(parts)
            )
            number = self._number((owner, lead, trail, False))
            self._inside.add(number)
        return self._between(owner, lead + core + trail, inner=False, ends=(lead, trail))

    def _between(self, owner: Body, text: str, *, inner: bool, ends: tuple[str, str] | None = None) -> str:
        core = text.strip()
        lead, _, trail = text.partition(core)
        digits = self._written(self._number((owner, *(ends or (lead, trail)), inner)))
        return f"{lead}{self._opens}{digits}{core}{self._closes}{digits}{trail}"

    def _number(self, key: tuple[Body, str, str, bool]) -> int:
        number = self._owners.setdefault(key, len(self._known))
        if number == len(self._known):
            self._known.append(key)
        return number

    def _written(self, number: int) -> str:
        return "".join(self._digits[number // _DIGITS**k % _DIGITS] for k in range(_LENGTH))

    def read(self, rendered: str) -> Iterator[_Run]:
        """Yield the parts of a rendering with marks, without the marks, each with its owner."""
        if len(self._known) > _DIGITS**_LENGTH:
            return
        low, high = self._range
        if "\\u" in rendered:  # A template may write `\ue000` in JSON.
            rendered = _ESCAPE.sub(lambda e: chr(c) if low <= (c := int(e[1], 16)) < high else e[0], rendered)
        found = [
            _Mark(*mark.span(), mark[1] == self._opens, self._read(mark[2])) for mark in self._mark.finditer(rendered)
        ]
        pairs = _pairs(found)
        at, place, dangling = 0, 0, False
        while at < len(found):
            mark = found[at]
            last = pairs.get(at)
            soft = mark.number in self._inside
            broken = last is None and not soft
            gap = rendered[place : mark.start]
            before = "" if last is None else next(filter(gap.endswith, _forms(self._known[mark.number][1])), "")
            yield gap.removesuffix(before), _UNKNOWN if dangling or (broken and not mark.opens) else _TEMPLATE
            yield before, self._known[mark.number][0]
            dangling = broken and mark.opens
            place = mark.end
            if last is not None:
                owner, lead, trail, _ = self._known[mark.number]
                text, place, at = self._mark.sub("", rendered[mark.end : found[last].start]), found[last].end, last
                after = next((form for form in _forms(trail) if rendered.startswith(form, place)), "")
                yield text + after, owner
                place += len(after)
            at += 1
        yield rendered[place:], _UNKNOWN if dangling else _TEMPLATE

    def _read(self, digits: str) -> int:
        number = sum((ord(digit) - ord(self._digits[0])) * _DIGITS**k for k, digit in enumerate(digits))
        return min(number, len(self._known) - 1)


def _forms(blank: str) -> Iterator[str]:
    """Yield the forms in which templates write the whitespace at an end of a text."""
    if blank:
        yield from (blank, json.dumps(blank)[1:-1])


class _Mark(NamedTuple):
    start: int
    end: int
    opens: bool
    number: int


def _pairs(marks: Sequence[_Mark]) -> dict[int, int]:
    """Return the index of the end mark for the index of each start mark that has one. Texts may contain marked texts."""
    opened: dict[int, int] = {}
    pairs: dict[int, int] = {}
    for at, mark in enumerate(marks):
        if mark.opens:
            opened[mark.number] = at
        elif (first := opened.pop(mark.number, None)) is not None:
            pairs[first] = at
    return pairs


def _aligned(runs: Sequence[_Run], prompt: str) -> Iterator[_Run]:
    """Yield the parts of `prompt`, with the owners that the same text has in the other rendering."""
    other = "".join(text for text, _ in runs)
    start = len(prompt) if other.startswith(prompt) else _shared(prompt, other)
    end = 0 if start == len(prompt) else _shared(prompt[start:][::-1], other[start:][::-1])
    yield from _cut(runs, 0, start)
    yield prompt[start : len(prompt) - end], _UNKNOWN
    yield from _cut(runs, len(other) - end, len(other)) if end else ()


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _cut(runs: Iterable[_Run], start: int, end: int) -> Iterator[_Run]:
    at = 0
    for text, owner in runs:
        yield text[max(start - at, 0) : max(end - at, 0)], owner
        at += len(text)


def _pieces(runs: Iterable[_Run]) -> Iterator[Piece]:
    for owner, group in groupby(((text, owner) for text, owner in runs if text), key=lambda run: run[1]):
        text = "".join(part for part, _ in group)
        yield Piece(text=text, kind=owner.kind, message=owner.message, role=owner.role, where=owner.where)
