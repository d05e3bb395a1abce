"""Lines and rows of tables as records, and what is said of those that are none."""

from __future__ import annotations

import pytest

from unrender.batch.files import Piece
from unrender.batch.records import RawRow, kind_of, place_word, raw_rows


def rows(*lines, first=1, file="a.jsonl"):
    return list(raw_rows(Piece(file=file, first=first, rows=list(lines), size=len(lines), read=0)))


@pytest.mark.parametrize(
    ("line", "record", "problem"),
    [
        (b'{"a": 1}\n', {"a": 1}, ""),
        (b"[1]\n", None, "expected a JSON object, found list"),
        (b"null\n", None, "expected a JSON object, found NoneType"),
        (b'"a"\n', None, "expected a JSON object, found str"),
        (
            b"{oops}\n",
            None,
            "expected JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (b"[" * 100_000, None, "expected JSON, found it nested too deeply"),
        (None, None, "expected a line of at most 64 MB, found a longer one"),
    ],
)
def test_a_line_is_a_record_or_has_a_problem(line, record, problem):
    """A line holds one JSON object; what else it holds is said."""
    (row,) = rows(line)

    assert (row.at, row.record, row.problem) == (1, record, problem)
    assert row.raw == (line or b"")


def test_a_line_that_is_no_utf8_is_said():
    """Bytes that are not text are a bad row, not an error."""
    (row,) = rows(b'{"a": "\xff"}')

    assert row.record is None
    assert row.problem.startswith("expected JSON: 'utf-8' codec can't decode byte 0xff")


def test_empty_lines_are_no_rows():
    """They count as lines all the same."""
    assert [row.at for row in rows(b"\n", b'{"a": 1}\n', b"  \n", b'{"a": 2}', first=7)] == [8, 10]


@pytest.mark.parametrize(
    ("raw", "most", "shown"),
    [
        (b"abc\n", 9, "abc"),
        (b"abc\n", 2, "ab"),
        (b"a\xff", 9, "a\ufffd"),
        ({"a": 1}, 9, "{'a': 1}"),
        ({"a": 1}, 4, "{'a'"),
    ],
)
def test_a_row_is_shown_to_people(raw, most, shown):
    """So many characters of it, without its end of line."""
    assert RawRow(at=1, raw=raw, record=None).shown(most) == shown


@pytest.mark.parametrize(
    ("file", "word"), [("a.parquet", "row"), ("a.jsonl", "line"), ("-", "line"), ("parquet", "line")]
)
def test_places_have_a_word(file, word):
    """Tables have rows, other files lines."""
    assert place_word(file) == word


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("text: expected a text, found 7", "text: expected a text"),
        ("expected JSON: Expecting value: line 1 column 2 (char 1)", "expected JSON: Expecting value"),
        ("expected JSON: Extra data (char 7)", "expected JSON: Extra data"),
        ("expected JSON", "expected JSON"),
    ],
)
def test_reasons_of_a_kind_are_counted_together(reason, kind):
    """What differs from row to row is left out."""
    assert kind_of(reason) == kind
