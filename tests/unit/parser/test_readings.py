"""How outputs are read, whole and broken: a change of any reading is a change that users see.

When one is meant: `python3 scripts/run.py goldens`, and say why in the commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import goldens
import pytest
from goldens import Reader
from splitting import merged, pieces

from unrender.machine.events import Event

READERS = list(goldens.readers())
each_reader = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


def recorded(reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in goldens.recorded(goldens.path_of(reader)):
        yield item["text"], item


def test_every_format_has_readings() -> None:
    """No file is left over, and none is missing."""
    assert {goldens.path_of(reader) for reader in READERS} == set(Path(goldens.READINGS).glob("*.json"))


@each_reader
def test_texts_are_read_as_recorded(reader: Reader) -> None:
    """Whole and character by character: the same events, and the same roles of all characters."""
    for text, expected in recorded(reader):
        assert goldens.reading(reader.parser(), text, [text]) == expected
        assert goldens.reading(reader.parser(), text, pieces(text, 1)) == expected


@pytest.mark.slow
@each_reader
def test_a_saved_parser_reads_the_same(reader: Reader) -> None:
    """A parser that is saved as JSON and restored after every few characters gives the same events as one that never was."""
    for text, expected in recorded(reader):
        parser, events = reader.parser(), list[Event]()
        for piece in pieces(text, 4):
            events += parser.feed(piece)
            parser = reader.restored(json.loads(json.dumps(parser.state())))
        events += parser.finish()

        assert [str(event) for event in merged(events)] == expected["events"]
        assert goldens.spans(parser) == expected["spans"]
