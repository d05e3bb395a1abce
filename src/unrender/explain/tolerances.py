"""Finds the tolerances that a reading needed: without them the message would be different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unrender.explain.reading import Reading
from unrender.format import Format


def find_tolerances(reading: Reading) -> tuple[str, ...]:
    """Return a sentence for each tolerance that the output needed.

    A tolerance is a deviation from the template's own way of writing that the format still reads.
    """
    return tuple(sentence for sentence, format in _without_one(reading.turn.format) if _differs(reading, format))


def _differs(reading: Reading, format: Format) -> bool:
    other = Reading.of(replace(reading.turn, format=format), reading.output)
    return other.message != reading.message


def _without_one(format: Format) -> Iterator[tuple[str, Format]]:
    for syntax in format.tolerated:
        others = tuple(other for other in format.tolerated if other != syntax)
        yield (
            f"a call in another syntax: {syntax.why or 'a variant of the template’s own'}",
            replace(format, tolerated=others),
        )
    for spelling in format.spellings:
        for other in spelling.others:
            kept = replace(spelling, others=tuple(text for text in spelling.others if text != other))
            spellings = tuple(kept if it is spelling else it for it in format.spellings)
            yield f"{other!r} instead of {spelling.marker!r}", replace(format, spellings=spellings)
    for marker in format.ignored:
        rest = tuple(text for text in format.ignored if text != marker)
        yield f"{marker!r} dropped, since it says nothing", replace(format, ignored=rest)
