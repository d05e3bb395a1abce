"""Shapes are written as JSON Schema, using keywords that engines agree on."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import jsonschema
import pytest
from cases import cases
from schema_rows import schema_rows

from unrender.schema.reader import read_schema
from unrender.schema.shapes import Nothing
from unrender.schema.writer import Unwritable, shape_schema, write_schema

ROWS = [row for row in schema_rows() if "error" not in row]


def test_the_written_schema_admits_the_same_values():
    """A schema validator agrees with the rows, except for floating-point numbers, which it rounds."""
    for row in ROWS:
        with suppress(Unwritable):
            validator = jsonschema.Draft202012Validator(write_schema(read_schema(row["schema"])))
            for field in ("accepts", "rejects"):
                values = [value for value in row.get(field, ()) if not re.search(r"[0-9][.e]", json.dumps(value))]
                assert [value for value in values if validator.is_valid(value) != (field == "accepts")] == [], row


@cases
def test_a_schema_is_written_in_few_keywords(schema, written):
    """Types are explicit, objects are closed, integers have the rules' number of digits, and recursion uses `$defs`."""
    assert write_schema(read_schema(schema)) == written


@cases
def test_what_engines_do_not_say_is_not_written(schema, reason):
    """Keywords that engines don't support are left to the grammar's rules."""
    with pytest.raises(Unwritable, match=reason):
        write_schema(read_schema(schema))


def test_the_impossible_has_no_schema():
    """`Nothing` can't be written, and callers remove it first."""
    with pytest.raises(ValueError, match="no value has this shape"):
        shape_schema(Nothing())
