"""Behaviour as data: the rows of `tests/corpus` hold, with one test for each property.

`scripts/corpus.py` rewrites rows after an intended change; the commit gives the reason.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest
from cases import case_rows, thinned
from judge.laws import check_judged
from properties.invariants import check, check_events, check_strict
from recipes import ANALYSIS, DERIVED, derived
from rows import ANSWERS, FORMATS, Row, rows
from schema_rows import expected, read, readers, schema_rows
from splitting import fed, pieces, random_pieces

from unrender import Event, Policy
from unrender.grammar import conforms
from unrender.testing import numbered_id

FILES = sorted(ANSWERS.glob("*.jsonl"))
STEPS = 12
"""Maximum number of instructions per character."""
WRITTEN = Policy(tool_calls="streamed", repair="none")
UNREPAIRED = Policy(repair="none")
FEW = 60
"""Instructions that even the shortest answer needs."""

META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
some_rows = thinned(5)
"""For properties that hold for every text: a fifth of each file is enough to find most defects."""


def readable(path: Path) -> list[Row]:
    """Return the rows that no strict parser rejects."""
    return [row for row in rows(path) if "raises" not in row.data]


def judged(row: Row) -> bool:
    """Return whether `check_judged` covers the row, since it feeds chunks, copies and restored parsers itself."""
    return row.usual and row.turn.grammar is None and not row.turn.prefill


def cuts(row: Row) -> list[int]:
    """Return three places in the text, the same in each run."""
    return sorted(Random(row.text).choices(range(len(row.text) + 1), k=3))


def test_every_row_has_its_place() -> None:
    """A file is named after its format. A row has a reason, and no two rows are the same."""
    every = [row for path in FILES for row in rows(path)]
    kept = [json.dumps([row.name, {key: row.data[key] for key in row.data if key != "why"}]) for row in every]

    assert {path.stem for path in FILES} <= set(FORMATS)
    assert [row for row in every if not row.data["why"].strip()] == []
    assert len(set(kept)) == len(kept)


@each_file
def test_a_text_is_read_as_the_row_says(path: Path) -> None:
    """Events, failed calls and spans, or the place where a strict parser stops, are as in the row."""
    for row in rows(path):
        assert row.read([row.text]) == row.expected(), row


@some_rows
@each_file
def test_chunks_change_nothing(path: Path, step: int) -> None:
    """Single characters, pieces and random chunks give the same result."""
    for row in rows(path)[::step]:
        others = () if judged(row) else (pieces(row.text, 1), random_pieces(row.text, 9, 1), ["", row.text, ""])
        for chunks in (pieces(row.text, 4), *others):
            assert row.read(chunks) == row.expected(), row


@some_rows
@each_file
def test_copies_and_restored_parsers_go_on(path: Path, step: int) -> None:
    """A copy and a parser saved as JSON and restored continue as the original would, while it reads something else."""
    for row in readable(path)[::step]:
        for cut in cuts(row)[judged(row) * 2 :]:
            parser = row.parser()
            before = parser.feed(row.text[:cut])
            copy, restored = parser.copy(), row.restored(json.loads(json.dumps(parser.state())))
            if not row.data.get("strict"):
                parser.feed("<" + row.text)
            for reader in (copy, restored):
                assert row.read_on(reader, before, [row.text[cut:]]) == row.expected(), (row, cut)


@some_rows
@each_file
def test_deltas_add_up_to_the_message(path: Path, step: int) -> None:
    """Events are in order, and the streamed parts add up to the whole answer. Returned spans don't change, but the last may grow."""
    for row in readable(path)[::step]:
        parser, events, seen = row.parser(), list[Event](), list[list[Any]]()
        for piece in pieces(row.text, 3):
            events += parser.feed(piece)
            seen.append([(span.role, span.start) for span in parser.spans])
        check_events([*events, *parser.finish(row.data.get("finish"))], parser.message)
        assert [later for earlier, later in pairwise(seen) if later[: len(earlier)] != earlier] == [], row


@some_rows
@each_file
def test_a_strict_parser_stops_or_reads_the_same(path: Path, step: int) -> None:
    """A strict parser stops at the same place in any chunks. A text that it accepts is read as by other parsers."""
    for row in readable(path)[::step]:
        if row.usual and not row.turn.prefill:
            check_strict(lambda row=row: row.turn.parser(strict=True, ids=numbered_id), row.text)  # type: ignore[misc]


@some_rows
@each_file
def test_calls_given_as_they_are_written_are_the_same_calls(path: Path, step: int) -> None:
    """Streamed calls give the same complete calls as whole ones in any chunks, but fewer are repaired."""
    for row in readable(path)[::step]:
        if row.usual and not row.turn.prefill:
            message = check(lambda row=row: row.turn.parser(policy=WRITTEN, ids=numbered_id), row.text)  # type: ignore[misc]
            complete = [call for call in message.tool_calls if call.status == "complete"]
            whole = row.turn.parser(policy=UNREPAIRED, ids=numbered_id)
            whole.finish(text=row.text)
            given = [(call.name, call.arguments_json) for call in whole.message.tool_calls]
            assert [(call.name, call.arguments_json) for call in complete] == given, row


@some_rows
@each_file
def test_the_judge_finds_nothing_lost(path: Path, step: int) -> None:
    """Spans cover the text and account for all of it. Each way of feeding gives the same result."""
    for row in rows(path)[::step]:
        if judged(row):
            check_judged(row.turn, row.text, 1)


@some_rows
@each_file
def test_work_is_linear(path: Path, step: int) -> None:
    """The number of instructions is limited by the length of the text, in any chunks."""
    for row in readable(path)[::step]:
        for size in (1, len(row.text) or 1):
            parser = row.parser()
            fed(parser, pieces(row.text, size))
            assert parser._steps <= STEPS * len(row.text + row.turn.prefill) + FEW, (row, size)


@pytest.mark.engine
@each_file
def test_the_grammar_allows_what_the_row_says(path: Path) -> None:
    """The turn's grammar, read by the engine, accepts the text if the row expects it."""
    for row in rows(path):
        if "written" in row.data:
            assert row.allowed() is row.data["written"], row


SLICES = 12
each_slice = pytest.mark.parametrize("at", range(SLICES))


@each_slice
def test_a_schema_is_read_as_the_row_says(at: int) -> None:
    """A schema has the expected shape and losses, or an error that names the place."""
    for row in schema_rows()[at::SLICES]:
        assert read(row) == expected(row), row["why"]


@each_slice
def test_what_is_generated_is_admitted(at: int) -> None:
    """Typing of arguments agrees with their generation, and rejects the same values as a schema validator."""
    for row in schema_rows()[at::SLICES]:
        if "error" in row:
            continue
        judge = jsonschema.Draft202012Validator(row["schema"])
        accepts, rejects = (
            [value for value in row.get(field, ()) if conforms(value, row["schema"])]
            for field in ("accepts", "rejects")
        )
        assert accepts == row.get("accepts", []), row["why"]
        if "lost" not in row and "...any" not in row["shape"] and META.is_valid(row["schema"]):
            assert [value for value in rejects if not judge.is_valid(value)] == [], row["why"]


@pytest.mark.few(6)
@pytest.mark.engine
@each_slice
def test_every_dialect_accepts_what_the_row_says(at: int) -> None:
    """The engine of each dialect accepts the row's accepted values and rejects the others."""
    for row in schema_rows()[at::SLICES]:
        for dialect, accepts in readers(row["schema"]) if {"accepts", "rejects"} & set(row) else ():
            found = {
                field: [value for value in row.get(field, ()) if accepts(_text(value))]
                for field in ("accepts", "rejects")
            }
            assert found == {"accepts": row.get("accepts", []), "rejects": []}, (dialect, row)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.few(215)
@pytest.mark.parametrize("row", case_rows(ANALYSIS), ids=lambda row: row.get("why") or row["frame"])
def test_a_template_is_read_as_the_row_says(row: dict[str, Any]) -> None:
    """A template has the expected format and other results. One that is composed of parts has the expected format."""
    assert derived(row) == {key: row[key] for key in DERIVED if key in row}


def test_every_case_is_asked() -> None:
    """Each row next to tests names a test that uses its rows."""
    for path in Path(__file__).parent.rglob("cases.jsonl"):
        asked = "\n".join(test.read_text(encoding="utf-8") for test in path.parent.glob("test_*.py"))
        lost = {row["test"] for row in case_rows(path) if f"@cases\ndef test_{row['test']}(" not in asked}
        assert lost == set(), path
