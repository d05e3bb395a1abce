"""JSON Schema in every dialect, as engines read it: recorded schemas, the table of keywords, the official suite."""

from __future__ import annotations

from collections import Counter
from typing import Any

import fetch
import json_schema
import pytest
from engines import Accepts, converted_reader, gbnf_reader, installed, lark_reader, tag_reader
from json_schema import ARGUED, Verdict
from remainders import written
from vendor import vendor_cases

from unrender import GrammarError
from unrender import grammar as c

CASES = vendor_cases("schemas")
SCHEMAS = [pytest.param(case, id=case["id"]) for case in CASES if case.get("convertible") and "schema" in case]
SCHEMAS += [pytest.param(case, id=case["id"]) for case in CASES if "convertible" not in case and "schema" in case]
BROKEN = [pytest.param(case, id=case["id"]) for case in CASES if case.get("convertible") is False]
GRAMMARS = [pytest.param(case, id=case["id"]) for case in CASES if "gbnf" in case]

LLGUIDANCE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
XGRAMMAR = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
DIALECTS = [
    pytest.param("lark", lark_reader, True, id="lark", marks=LLGUIDANCE),
    pytest.param("gbnf", converted_reader, False, id="gbnf-llguidance", marks=LLGUIDANCE),
    pytest.param("gbnf", gbnf_reader, False, id="gbnf-xgrammar", marks=XGRAMMAR),
    pytest.param("structural_tag", tag_reader, True, id="structural-tag", marks=XGRAMMAR),
]

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("dialect", "read", "native"), DIALECTS[:3])
@pytest.mark.parametrize("case", SCHEMAS)
def test_a_schema_accepts_and_rejects_what_the_case_says(
    case: dict[str, Any], dialect: str, read: Any, native: bool
) -> None:
    """The engine of each dialect accepts every accepted text of the case, and rejects every rejected one."""
    check_verdicts(read(written(c.schema(case["schema"]), dialect)), case)


def check_verdicts(accepts: Accepts, case: dict[str, Any]) -> None:
    verdicts = {text: accepts(text) for text in (*case["accept"], *case["reject"])}
    assert verdicts == {**dict.fromkeys(case["accept"], True), **dict.fromkeys(case["reject"], False)}


@pytest.mark.parametrize("dialect", ["lark", "gbnf"])
@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_schema_is_a_clear_error(case: dict[str, Any], dialect: str) -> None:
    """A keyword with an invalid value raises an error with the keyword's path."""
    with pytest.raises(GrammarError, match="#/pattern: pattern '.*': expected"):
        written(c.schema(case["schema"]), dialect)


@LLGUIDANCE
@pytest.mark.parametrize("case", GRAMMARS)
def test_the_reader_of_gbnf_reads_gbnf(case: dict[str, Any]) -> None:
    """The engine that the other tests rely on reads handwritten GBNF as recorded."""
    check_verdicts(converted_reader(case["gbnf"]), case)


@pytest.mark.parametrize(("dialect", "read", "native"), DIALECTS)
@pytest.mark.parametrize("keyword", json_schema.KEYWORDS, ids=lambda keyword: keyword.name)
def test_a_keyword_is_enforced_as_the_table_says(keyword, dialect, read, native):
    """Valid values are accepted. Invalid ones are rejected, unless the table marks the rule as wider."""
    accepts = read(written(c.schema(keyword.schema), dialect))

    assert [text for text in keyword.right if not accepts(text)] == []
    assert [text for text in keyword.wrong if accepts(text)] == []
    assert bool(keyword.wrong) != bool(json_schema.losses(keyword, native=native)) or native


def test_the_table_is_published_as_it_is_written():
    """The page equals the output of `python scripts/json_schema.py`."""
    page = json_schema.PAGE.read_text(encoding="utf-8")

    assert json_schema.with_keywords(page) == page


SUITE = pytest.mark.skipif(
    not any(fetch.SUITE.glob("*.json")), reason="no suite: run `python3 scripts/fetch.py schema-suite`"
)
NAMES = [dialect.name for dialect in json_schema.DIALECTS]

LEAST_RIGHT = 0.80
LEAST_RIGHT_OR_ARGUED = 0.97
NARROWER_BY_DESIGN = {("unevaluatedProperties", "anyOf")}
"""Files and keywords. A value that fits several branches of `anyOf` is written as fitting one of them."""


@LLGUIDANCE
@SUITE
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_decided_wrong_in_silence(name: str) -> None:
    """A grammar that is wider than the schema comes with a warning, and one that is narrower, too, or has a listed reason."""
    wrong = [
        (verdict, test.file, test.schema, test.data)
        for test, verdict in json_schema.verdicts(name)
        if verdict is Verdict.SILENT
        or (verdict is Verdict.REFUSED and not any((test.file, word) in NARROWER_BY_DESIGN for word in test.schema))
    ]

    assert wrong == []


@LLGUIDANCE
@SUITE
@pytest.mark.parametrize("name", NAMES)
def test_most_instances_are_decided_right(name: str) -> None:
    """The share of instances decided as JSON Schema requires stays high, with and without the listed exceptions."""
    found = Counter(verdict for _, verdict in json_schema.verdicts(name))

    assert found[Verdict.RIGHT] / found.total() >= LEAST_RIGHT
    assert (found[Verdict.RIGHT] + sum(found[reason] for reason in ARGUED)) / found.total() >= LEAST_RIGHT_OR_ARGUED


def test_an_argued_refusal_is_one_of_the_type_that_is_implied() -> None:
    """JSON Schema also rejects the values refused for an implied type, once the types are written in the schema."""
    implied = [test for test, verdict in json_schema.verdicts("GBNF") if verdict is Verdict.IMPLIED]

    assert all(test.valid for test in implied)
    assert json_schema.typed({"minLength": 1, "items": {"minimum": 3}}) == {
        "type": ["array", "string"],
        "minLength": 1,
        "items": {"type": ["number"], "minimum": 3},
    }


@SUITE
def test_the_section_is_published_as_it_is_written() -> None:
    """The page equals the output of `python scripts/json_schema.py`."""
    page = json_schema.PAGE.read_text(encoding="utf-8")

    assert json_schema.with_suite(page) == page
