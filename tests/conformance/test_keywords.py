"""The table of JSON Schema keywords says what the engines do."""

from __future__ import annotations

import json_schema
import pytest
from engines import converted_reader

from unrender.dialects.gbnf import gbnf_of
from unrender.dialects.lark import lark_of
from unrender.dialects.structural_tag import structural_tag_of
from unrender.grammar.expansion import Values
from unrender.nodes import Grammar, JsonValue
from unrender.verify.engines import gbnf_reader, installed, lark_reader, tag_reader

LLGUIDANCE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
XGRAMMAR = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
DIALECTS = [
    pytest.param(lark_of, lark_reader, Values.NATIVE, id="lark", marks=LLGUIDANCE),
    pytest.param(gbnf_of, converted_reader, Values.SPELLED, id="gbnf-llguidance", marks=LLGUIDANCE),
    pytest.param(gbnf_of, gbnf_reader, Values.SPELLED, id="gbnf-xgrammar", marks=XGRAMMAR),
    pytest.param(structural_tag_of, tag_reader, Values.NATIVE, id="structural-tag", marks=XGRAMMAR),
]


@pytest.mark.engine
@pytest.mark.parametrize(("write", "read", "values"), DIALECTS)
@pytest.mark.parametrize("keyword", json_schema.KEYWORDS, ids=lambda keyword: keyword.name)
def test_a_keyword_is_enforced_as_the_table_says(keyword, write, read, values):
    """What the schema admits is accepted; the rest is rejected, unless the table says that the rule is wider."""
    accepts = read(write(Grammar(JsonValue(keyword.schema))))

    assert [text for text in keyword.right if not accepts(text)] == []
    assert [text for text in keyword.wrong if accepts(text)] == []
    assert bool(keyword.wrong) != bool(json_schema.losses(keyword, values)) or values is Values.NATIVE


def test_the_table_is_published_as_it_is_written():
    """The page is what the script writes: run `python scripts/json_schema.py`."""
    assert json_schema.PAGE.read_text(encoding="utf-8").startswith(json_schema.keyword_section())
