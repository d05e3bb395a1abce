"""The official JSON Schema Test Suite holds in the emitted grammars, or what does not hold is reported."""

from __future__ import annotations

from collections import Counter

import fetch
import json_schema
import pytest
from json_schema import ARGUED, Verdict

from unrender.verify.engines import installed

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed"),
    pytest.mark.skipif(
        not any(fetch.SUITE.glob("*.json")), reason="no suite: run `python3 scripts/fetch.py schema-suite`"
    ),
]
NAMES = [dialect.name for dialect in json_schema.DIALECTS]

LEAST_RIGHT = 0.80
LEAST_RIGHT_OR_ARGUED = 0.97
NARROWER_BY_DESIGN = {("unevaluatedProperties", "anyOf")}
"""File and keyword: a value that obeys several branches of `anyOf` at once is written as obeying one of them."""


def counts(name: str) -> Counter[Verdict]:
    return Counter(verdict for _, verdict in json_schema.verdicts(name))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_accepted_against_its_schema_in_silence(name: str) -> None:
    """Where a grammar is wider than the schema, a warning says so."""
    wrong = [(test.schema, test.data) for test, verdict in json_schema.verdicts(name) if verdict is Verdict.SILENT]

    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_refused_in_silence_without_a_reason(name: str) -> None:
    """Where a grammar is narrower, it is for one of the argued reasons, or a warning says so."""
    wrong = [
        (test.file, test.schema, test.data)
        for test, verdict in json_schema.verdicts(name)
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
    implied = [test for test, verdict in json_schema.verdicts("GBNF") if verdict is Verdict.IMPLIED]

    assert all(test.valid for test in implied)
    assert json_schema.typed({"minLength": 1, "items": {"minimum": 3}}) == {
        "type": ["array", "string"],
        "minLength": 1,
        "items": {"type": ["number"], "minimum": 3},
    }


def test_the_section_is_published_as_it_is_written() -> None:
    """The page is what the script writes: run `python scripts/json_schema.py`."""
    assert json_schema.PAGE.read_text(encoding="utf-8").endswith(json_schema.suite_section())
