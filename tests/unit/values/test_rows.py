"""Values are read as in the rows of `tests/corpus/values.jsonl`."""

from __future__ import annotations

import pytest
from value_rows import given, value_rows

SLICES = 12


@pytest.mark.parametrize("at", range(SLICES))
def test_a_value_is_read_as_the_row_says(at: int) -> None:
    """Each function and scanner gives the row's result, for every chunking, from any place, and in a copy."""
    rows = value_rows()[at::SLICES]

    assert [row for row in rows if given(row) != row["gives"]] == []
