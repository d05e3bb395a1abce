"""Requests to templates, and the turns that follow: the rows of `tests/corpus/turns.jsonl`."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from recipes import rows_of
from turn_rows import SAYS, TURNS, outcome


@pytest.mark.parametrize("row", rows_of(TURNS), ids=lambda row: row["why"])
def test_a_request_gives_what_the_row_says(row: dict[str, Any]) -> None:
    """Prompt, warnings and other results are as in the row, or the error is. Nothing that the caller passes is changed."""
    given = deepcopy(row)

    assert outcome(row) == {name: row[name] for name in SAYS if name in row}
    assert row == given
