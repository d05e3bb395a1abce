"""Formats, and texts designed to be slow to parse: a start, and a unit repeated after it.

Strategy: the starts put the parser into each state of a format: the beginning of the text, after an opening marker, in
a name, in an argument, after a call, in reasoning. The units are all significant characters, and the format's own
markers, whole and cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from properties.families import FAMILIES, REQUEST, Reading

from unrender.format import Format, Slot
from unrender.types import Request

FORMATS = Path(__file__).resolve().parents[1] / "formats"
JSON_ANSWER = Request(tools=REQUEST.tools, response_schema={"type": "object"})
_UNITS = (
    *"{[\\\"' \na9<\ud800",
    *("\\u", "\\ud83c", "&", "```", "]]>", *",]}:", '{"a":', "[1,", '"k": 1, ', "a b<c ", "1_", " ,"),
    *('{"function":', '"id": "1", ', "é", "\t", "</a>", "<a>", "()", "a=1,"),
)


@cache
def readings() -> tuple[Reading, ...]:
    """Return all formats of `tests/formats` and all families, with outputs."""
    golden = []
    for path in sorted(FORMATS.glob("*.json")):
        format = Format.from_dict(json.loads(path.read_text(encoding="utf-8")))
        prompt = "".join(format.turn.headers[:1]) + format.turn.prefill
        golden.append(Reading(name=path.stem, format=format, prompt=prompt))
    answer = Reading(
        name="json answer", format=FAMILIES[0].format, request=JSON_ANSWER, written=('```json\n{"a": 1}\n```',)
    )
    return (*FAMILIES, *golden, answer)


def attacks(reading: Reading) -> Iterator[tuple[str, str]]:
    """Yield pairs of a start and a unit."""
    units = (*_UNITS, *markers(reading.format))
    for start in _starts(reading):
        for unit in dict.fromkeys(units):
            yield start, unit
    for output in reading.outputs[:2]:
        yield "", output or " "
        yield "", output[:-3] or " "
        yield reading.format.reasoning.start, output or " "


def filled(start: str, unit: str, size: int) -> str:
    """Return `start` followed by whole units, about `size` characters in total."""
    return start + unit * max(1, (size - len(start)) // len(unit))


def markers(format: Format) -> list[str]:
    """Return the format's markers, each whole and without its last character."""
    tools = format.tools
    literals = [part for part in (*tools.function, *tools.arguments.entry) if not isinstance(part, Slot)]
    texts = [
        *(tools.section_start, tools.section_end, tools.call_start, tools.call_end, tools.separator, *literals),
        *(format.reasoning.start, format.reasoning.end, format.content.start, format.content.end, format.turn.end),
        tools.section_start + tools.call_start + "".join(literals[:1]),
    ]
    return [text for marker in dict.fromkeys(texts) for text in (marker, marker.strip()[:-1]) if text]


def _starts(reading: Reading) -> list[str]:
    tools, think = reading.format.tools, reading.format.reasoning.start
    head = "" if not tools.function or isinstance(tools.function[0], Slot) else tools.function[0]
    opener = tools.section_start + tools.call_start
    named = opener + head + "get_weather"
    output = max(reading.outputs, key=lambda text: ("get_" in text or "now" in text, len(text)))
    values = output.partition("Paris")[0] if "Paris" in output else output[: len(output) * 2 // 3]
    starts = ("", opener, named, output, values, think, think + named, think + output, think + values)
    return list(dict.fromkeys(starts))
