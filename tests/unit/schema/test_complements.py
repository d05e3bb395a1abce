r"""The complement of a schema as schemas per keyword (`tests/corpus/complements.jsonl`). Keys with `\0` are ours."""

from __future__ import annotations

from typing import Any

import pytest
from recipes import ANALYSIS, rows_of

from unrender.schema.conjuncts import excluded_schemas


def test_each_keyword_is_broken_in_its_way() -> None:
    """The complement of a keyword has its type, and sizes differ by one. Patterns and references have no complement."""
    rows = rows_of(ANALYSIS.with_name("complements.jsonl"))

    assert [{**row, "broken": excluded_schemas(row["schema"])} for row in rows] == rows


WRAPPED: list[Any] = [
    lambda schema: {"properties": {"a": schema}},
    lambda schema: {"prefixItems": [schema]},
    lambda schema: {"allOf": [schema]},
    lambda schema: {"anyOf": [schema]},
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_sixteen_levels_are_broken(wrap: Any) -> None:
    """Complements support 16 levels. Each keyword that contains schemas is a level."""
    schema: Any = {"minimum": 1}
    for _ in range(16):
        schema = wrap(schema)

    assert excluded_schemas(schema) is not None
    assert excluded_schemas(wrap(schema)) is None
