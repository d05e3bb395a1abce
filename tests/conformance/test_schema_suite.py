"""The official JSON Schema Test Suite holds in the emitted grammars, or what does not hold is reported."""

from __future__ import annotations

from collections import Counter

import pytest
import schema_suite
import schema_table
from schema_suite import ARGUED, Verdict

from unrender.verify.engines import installed

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed"),
    pytest.mark.skipif(not schema_suite.suite(), reason="no suite: run `python3 scripts/fetch_schema_suite.py`"),
]
NAMES = [dialect.name for dialect in schema_suite.DIALECTS]

LEAST_RIGHT = 0.80
LEAST_RIGHT_OR_ARGUED = 0.97
NARROWER_BY_DESIGN = {("unevaluatedProperties", "anyOf")}
"""File and keyword: a value that obeys several branches of `anyOf` at once is written as obeying one of them."""


def counts(name: str) -> Counter[Verdict]:
    return Counter(verdict for _, verdict in schema_suite.verdicts(name))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_accepted_against_its_schema_in_silence(name: str) -> None:
    """Where a grammar is wider than the schema, a warning says so."""
    wrong = [(test.schema, test.data) for test, verdict in schema_suite.verdicts(name) if verdict is Verdict.SILENT]

    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_refused_in_silence_without_a_reason(name: str) -> None:
    """Where a grammar is narrower, it is for one of the argued reasons, or a warning says so."""
    wrong = [
        (test.file, test.schema, test.data)
        for test, verdict in schema_suite.verdicts(name)
        if verdict is Verdict.REFUSED and not any((test.file, word) in NARROWER_BY_DESIGN for word in test.schema)
    ]

    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_most_instances_are_decided_right(name: str) -> None:
    """The share of instances that a grammar decides as JSON Schema says, and with those that are argued."""
    found = counts(name)

    assert found[Verdict.RIGHT] / found.total() >= LEAST_RIGHT
    assert (found[Verdict.RIGHT] + sum(found[reason] for reason in ARGUED)) / found.total() >= LEAST_RIGHT_OR_ARGUED


def test_an_argued_refusal_is_one_of_the_type_that_is_implied() -> None:
    """What counts as argued by its type is refused by JSON Schema itself once the types are written down."""
    implied = [test for test, verdict in schema_suite.verdicts("GBNF") if verdict is Verdict.IMPLIED]

    assert all(test.valid for test in implied)
    assert schema_suite.typed({"minLength": 1, "items": {"minimum": 3}}) == {
        "type": ["array", "string"],
        "minLength": 1,
        "items": {"type": ["number"], "minimum": 3},
    }


def test_the_section_is_published_as_it_is_written() -> None:
    """The page is what the script writes: run `python scripts/schema_suite.py`."""
    assert schema_suite.section(schema_table.PAGE) == schema_suite.text()
