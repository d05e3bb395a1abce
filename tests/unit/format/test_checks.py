"""Tests of invariants: a Format that can't be parsed and written unambiguously is an error that names the field.

Each row of `tests/corpus/format_checks.jsonl` is a format, with the error if it is invalid.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from properties.families import FAMILIES, REQUEST
from recipes import rows_of
from splitting import fed

from unrender import Parser
from unrender.errors import FormatError
from unrender.format import Format, TurnTexts

MAX_ITEMS, MAX_LAYOUT, MAX_MARKER, MAX_TEXT = 128, 32, 1_000, 16_000
CHECKS = Path(__file__).parents[2] / "corpus" / "format_checks.jsonl"


def problem_of(data: dict[str, Any]) -> str | None:
    """Return the error of a format, or None if it is valid and survives a round trip."""
    try:
        made = Format.from_dict({"version": 2, **data})
    except FormatError as error:
        return str(error)
    assert Format.from_dict(made.to_dict()) == made
    return None


def test_a_format_has_the_problem_that_the_row_says() -> None:
    """A format that can't be parsed or written is an error with the field's path. Other formats are valid."""
    for row in rows_of(CHECKS):
        assert problem_of(row["format"]) == row.get("problem"), row


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"turn": {"end": "x" * MAX_MARKER}}, None),
        ({"turn": {"end": "x" * (MAX_MARKER + 1)}}, "format.turn.end: expected at most"),
        ({"turn": {"end": "\n" * MAX_LAYOUT + "<e>"}}, None),
        ({"turn": {"end": "\n" * (MAX_LAYOUT + 1) + "<e>"}}, "format.turn.end: .* whitespace at either end"),
        ({"turn": {"content_to_tools": " " * (MAX_LAYOUT + 1)}}, "format.turn.content_to_tools: .* whitespace, found"),
        ({"tools": {"why": "x" * (MAX_TEXT + 1)}}, f"format.tools.why: expected at most {MAX_TEXT}"),
        (
            {"turn": {"headers": ["<h>"] * (MAX_ITEMS + 1)}},
            f"format.turn.headers: expected at most {MAX_ITEMS} entries",
        ),
        ({"spellings": [{"marker": "<t>", "others": ["x"] * 20_000}]}, r"format.spellings\[0\].others: "),
        ({"preserved_tokens": [f"<t{i}>" for i in range(100_000)]}, "format.preserved_tokens: "),
        ({"ignored": [f"{i}" * 300 for i in range(100, 120)]}, f"format: .* {MAX_TEXT} characters"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_texts_and_lists_are_bounded(data: dict[str, Any], problem: str | None) -> None:
    """Limits apply to a marker, its whitespace, a list, and all texts together."""
    if problem is None:
        assert problem_of(data) is None
        return
    with pytest.raises(FormatError, match=problem):
        Format.from_dict({"version": 2, **data})


def test_no_way_leads_to_a_format_that_breaks_an_invariant() -> None:
    """A format is checked however it is created: directly, by `replace`, or from JSON."""
    long = TurnTexts(end="x" * (MAX_MARKER + 1))

    with pytest.raises(FormatError, match="format.turn.end"):
        Format(turn=long)
    with pytest.raises(FormatError, match="format.turn.end"):
        replace(FAMILIES[0].format, turn=long)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"version":' * 50_000 + "1" + "}" * 50_000,
        '{"version": ' + "1" * 5_000 + "}",
        '{"version": 2, "tools": {"index_start": ' + "1" * 5_000 + "}}",
        '{"version": [[[[1]]]]}',
        '{"version": 2, "spellings": [{"marker": "x"}]}',
        '{"version": 2, "content": {"mode": {"a": []}}}',
    ],
    ids=["deep list", "deep object", "long version", "long number", "list", "missing field", "object for a word"],
)
def test_json_that_is_no_format_is_a_format_error(text: str) -> None:
    """Deep, long or incomplete JSON raises only `FormatError`."""
    with pytest.raises(FormatError):
        Format.from_json(text)


@pytest.mark.slow
def test_data_of_any_depth_is_a_format_error() -> None:
    """The error message shows very deep data without traversing all of it."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    for data in ({"version": deep}, {"version": 2, "turn": deep}, {"version": 2, "tools": {"index_start": 10**5_000}}):
        with pytest.raises(FormatError):
            Format.from_dict(data)


def test_an_end_of_sequence_token_that_is_no_marker_is_left_out() -> None:
    """A tokenizer's end-of-sequence token that is too long for a Format is ignored."""
    format = FAMILIES[0].format

    assert format._ended_by("x" * 40_000) == format
    assert format._ended_by("<eos>").turn.ends == ("<eos>",)


@pytest.mark.slow
def test_the_largest_format_is_read_in_bounded_time() -> None:
    """A parser of the largest allowed format works in bounded time."""
    ignored = [f"<{i}" + "x" * (MAX_MARKER - 10) + ">" for i in range(MAX_TEXT // MAX_MARKER)]
    format = Format.from_json(json.dumps({"version": 2, "ignored": ignored}))
    parser = Parser(format, REQUEST)

    fed(parser, [ignored[3] + "Hi" + ignored[7]])

    assert parser.message.content == "Hi"
