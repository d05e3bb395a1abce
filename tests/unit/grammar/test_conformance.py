"""Tests of validating values against schemas, and of keywords that grammars support."""

from __future__ import annotations

import pytest

from unrender import GrammarError
from unrender.grammar import conforms, unsupported_keywords

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}


def test_values_conform_or_do_not():
    """A value that the schema allows conforms. A value with a missing property or of another type doesn't."""
    assert conforms({"n": 1}, SCHEMA)
    assert not any(conforms(value, SCHEMA) for value in ({"n": 0}, {}, [], None))


def test_keywords_that_no_grammar_holds_are_placed():
    """Unsupported keywords are listed by path. An invalid schema is an error."""
    assert unsupported_keywords(SCHEMA) == ()
    assert unsupported_keywords({"properties": {"a": {"pattern": "(?=a)"}}}) == ("#/properties/a/pattern",)
    with pytest.raises(GrammarError):
        unsupported_keywords({"pattern": "("})
