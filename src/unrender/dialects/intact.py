"""Finds the arguments of a broken call that the model wrote completely, before and after the place where the call breaks.

Rule: an argument is intact if its name and its value are there, if the value's end is certain, and if the format's own parser reads the
argument, alone in a call, as this one argument without any damage. If the same argument is intact twice with different values, neither counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os.path import commonprefix
from typing import Any

from unrender.answer import ArgumentsPart, literal_of
from unrender.answer.encode import encode_arguments, filled, run_of
from unrender.answer.follow import after_arguments
from unrender.answer.views import CallView
from unrender.format import Containers, Slot
from unrender.json_values import content_key
from unrender.limits import MAX_OPTIONS, MAX_SLOW_TEXT
from unrender.messages import Tool
from unrender.values.notations import encode_value

ReadCall = Callable[[str, Tool], Mapping[str, Any] | None]
"""Returns the arguments of a text that is one complete, undamaged call of a tool. Returns None for any other text."""

_ENDS = 16
"""Maximum number of positions that are tried as the end of one value."""
_READS = 96
"""Maximum number of texts that are parsed to find the arguments of one call."""
_HOLE = "\0"
"""Stands for the arguments in the text of a call."""
_LIKE = 2
"""Minimum number of characters of a damaged marker that show which marker it was."""


def requiring(tool: Tool, kept: Mapping[str, Any]) -> Tool:
    """Return the tool with a schema that requires the arguments `kept` with exactly these values."""
    if not kept:
        return tool
    schema = tool.parameters if isinstance(tool.parameters, Mapping) else {}
    properties = {**schema.get("properties", {}), **{key: {"const": value} for key, value in kept.items()}}
    before = schema.get("required")
    required = [*dict.fromkeys((*(before if isinstance(before, list | tuple) else ()), *kept))]
    return Tool(name=tool.name, parameters={**schema, "properties": properties, "required": required})


def intact_arguments(view: CallView, tool: Tool, text: str, read: ReadCall) -> dict[str, Any]:
    """Return the intact arguments in `text`, which starts at the first marker of a broken call of `tool` and may go on after the call."""
    return _Search(view, tool, text, read).found()


@dataclass
class _Search:
    view: CallView
    tool: Tool
    text: str
    read: ReadCall
    left: int = _READS

    def __post_init__(self) -> None:
        self.calls = self.view.written
        schema = self.tool.parameters if isinstance(self.tool.parameters, Mapping) else {}
        properties = schema.get("properties", {})
        properties = properties if isinstance(properties, Mapping) else {}
        # A text with one argument lacks the others, so the tool that checks it requires none.
        self.alone = Tool(name=self.tool.name, parameters={**schema, "required": []})
        self.text = self.text[:MAX_SLOW_TEXT]
        self.openings = {key: _opening(self.calls.arguments, key) for key in [*properties][:MAX_OPTIONS] if key}
        # In nested tags, an argument of the call looks like a property of a value.
        self.nested = set(_nested(properties) if self.calls.arguments.codec.containers is Containers.XML else ())

    def found(self) -> dict[str, Any]:
        """Return the intact arguments by name."""
        values: dict[str, Any] = {}
        unsure = set()
        starts = sorted((at, key) for key, text in self.openings.items() for at in self.places(text))[:MAX_OPTIONS]
        end, whole = 0, True
        for index, (at, key) in enumerate(starts):
            # A name inside a value is no argument of the call. If that value is broken, its end isn't known.
            if at < end or (not whole and (key in self.nested or self.depth(end, at) > 0)):
                continue
            following = [place for place, _ in starts[index + 1 : index + 5]]
            read = self.value(key, at, following)
            whole = read is not None
            end = at + len(self.openings[key])
            if read is None:
                continue
            end, value = read
            if key in values and content_key(values[key]) != content_key(value):
                unsure.add(key)
            values.setdefault(key, value)
        return {key: value for key, value in values.items() if key not in unsure}

    def places(self, opening: str) -> Iterator[int]:
        """Yield the positions at which an argument may start. Whitespace in its markers may differ."""
        pattern = r"\s*".join(map(re.escape, opening.split()))
        inside = r"(?<![\w.])" if opening[0].isalnum() else ""
        return (found.start() for found in re.finditer(inside + pattern, self.text))

    def value(self, key: str, at: int, following: list[int]) -> tuple[int, Any] | None:
        """Return the end and the value of the argument `key` that starts at `at`, or None if it isn't intact.

        `following` are the next positions at which an argument may start.
        """
        for stop in (*following, len(self.text)):
            for end in self.ends(key, at, stop, last=stop == len(self.text)):
                read = self.alone_read(self.text[at:end])
                if read is not None and [*read] == [key]:
                    return end, read[key]
        return None

    def ends(self, key: str, at: int, stop: int, *, last: bool) -> Iterator[int]:
        """Yield the positions at which the value of an argument may end. `last` is True if no other argument starts at `stop`."""
        closing = _closing(self.calls.arguments, key)
        if closing:
            yield from self.closed(closing, at, stop, last=last)
            return
        text = self.text[at:stop]
        marks = [mark for mark in dict.fromkeys((self.separator.strip(), self.tail.strip()[:1])) if mark]
        found = (mark.start() for mark in re.finditer("|".join(map(re.escape, marks)), text)) if marks else ()
        for place, _ in zip(found, range(_ENDS), strict=False):
            if self.goes_on(text[place:].lstrip("".join(marks) + "]}) \n\t"), last=last):
                yield at + len(text[:place].rstrip())
        # Without a mark, only a quotation mark or bracket shows that a value is complete.
        whole = text.rstrip()
        if not last or whole[-1:] in "\"'}]":
            yield at + len(whole)

    def goes_on(self, rest: str, *, last: bool) -> bool:
        """Return whether `rest`, the text after a value without a closer, can't be a part of the value."""
        if not rest or any(_damaged(rest, text) for text in self.openings.values()):
            return True
        # Text without quotation marks can't be the rest of a quoted value.
        quoted = not self.calls.arguments.open_ended and not re.search(r"[\"'\\]", rest)
        return quoted or (last and any(text.startswith(rest.rstrip()) for text in self.openings.values()))

    def closed(self, closing: tuple[str, ...], at: int, stop: int, *, last: bool) -> Iterator[int]:
        """Yield the end of the first closer after which the call goes on, even if that text is damaged or incomplete."""
        pattern = re.compile("|".join(map(re.escape, closing)))
        between = self.calls.arguments.between
        layout = between.partition(closing[0])[2]
        followers = [*after_arguments(self.calls), *self.openings.values()]
        for mark, _ in zip(pattern.finditer(self.text, at, stop), range(_ENDS), strict=False):
            after = self.text[mark.end() : stop]
            rest = after.lstrip()
            known = not rest or _alike(after, layout) or any(_alike(rest, text) for text in followers if text)
            if not pattern.match(rest) and (known or not (last or pattern.search(rest))):
                yield mark.end()
                return

    def depth(self, start: int, end: int) -> int:
        """Return the number of objects that a part of the text opens and doesn't close. Values with their own closer don't count."""
        return (
            0
            if _closing(self.calls.arguments, "")
            else self.text.count("{", start, end) - self.text.count("}", start, end)
        )

    def alone_read(self, argument: str) -> Mapping[str, Any] | None:
        if self.left <= 0:
            return None
        self.left -= 1
        return self.read(self.head + argument + self.tail, self.alone)

    @cached_property
    def separator(self) -> str:
        arguments = self.calls.arguments
        return arguments.separator.text if arguments.entry else arguments.codec.item_separator

    @cached_property
    def _around(self) -> tuple[str, str]:
        head, tail = _around_arguments(self.calls.arguments)
        texts = {Slot.NAME: self.tool.name, Slot.ID: "call00001", Slot.INDEX: str(self.calls.index_start)}
        call = filled(self.calls.function, {**texts, Slot.ARGUMENTS: head + _HOLE + tail})
        before, _, after = run_of(self.calls, [call]).partition(_HOLE)
        return before, after

    @property
    def head(self) -> str:
        """The text of a call before its first argument."""
        return self._around[0]

    @property
    def tail(self) -> str:
        """The text of a call after its last argument."""
        return self._around[1]


def _around_arguments(arguments: ArgumentsPart) -> tuple[str, str]:
    """Return the text before the first argument, and the text after the last argument."""
    if arguments.entry:
        return arguments.open.text, arguments.close.text
    empty = encode_arguments({"": 0}, arguments)
    at, end = empty.find("{", len(arguments.open.text)), empty.rfind("}")
    return empty[: at + 1], empty[end:]


def _opening(arguments: ArgumentsPart, key: str) -> str:
    """Return the text of an argument before its value, up to a word for the value's type."""
    if not arguments.entry:
        written = encode_value({key: 0}, arguments.codec)
        return written[written.index("{") + 1 : written.rindex("0")].strip()
    texts = []
    for part in arguments.entry:
        if part in (Slot.VALUE, Slot.TYPE):
            break
        texts.append(key if part is Slot.KEY else literal_of(part))
    return "".join(texts).strip()


def _closing(arguments: ArgumentsPart, key: str) -> tuple[str, ...]:
    """Return the spellings of the text after an argument's value, without whitespace around it."""
    entry = arguments.entry
    if not entry:
        return ()
    after = entry[entry.index(Slot.VALUE) + 1 :]
    own = "".join(key if part is Slot.KEY else literal_of(part) for part in after).strip()
    return tuple(dict.fromkeys((own, *(other.core for other in arguments.closer.others)))) if own else ()


def _nested(properties: Mapping[str, Any], depth: int = 8) -> Iterator[str]:
    """Yield the names of properties inside the values of `properties`."""
    for schema in properties.values():
        yield from _names(schema, depth)


def _names(schema: Any, depth: int) -> Iterator[str]:
    if depth and isinstance(schema, Mapping):
        for word, inner in schema.items():
            if word == "properties" and isinstance(inner, Mapping):
                yield from inner
                yield from _nested(inner, depth - 1)
            else:
                yield from _names(inner, depth - 1)
    elif depth and isinstance(schema, list | tuple):
        for item in schema:
            yield from _names(item, depth - 1)


def _common(text: str, marker: str) -> int:
    """Return the length of the longest common prefix of two strings."""
    return len(commonprefix((text, marker)))


def _alike(text: str, marker: str) -> bool:
    """Return whether `text` starts like `marker`, or is a part of its start."""
    size = _common(text, marker)
    return size == len(text) or size >= _LIKE


def _damaged(text: str, marker: str) -> bool:
    """Return whether `text` starts with `marker`, except for some characters at the start or end of the marker."""
    return 2 * _common(text, marker) >= len(marker) >= _LIKE or text.startswith((marker[1:], marker[2:]))
