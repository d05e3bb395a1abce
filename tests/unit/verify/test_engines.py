"""Engines that check whether a grammar accepts an answer."""

from __future__ import annotations

import pytest
from engines import gbnf_reader, installed, lark_reader, tag_reader

needs_llguidance = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
needs_xgrammar = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
ANSWERS = [("ab", True), ("abab", True), ("é", True), ("", False), ("a", False), ("aba", False), ("abé", False)]


def test_what_is_installed():
    """`installed` finds an engine without importing it."""
    assert installed("json")
    assert not installed("no_such_engine")


@needs_llguidance
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_lark(text, accepted):
    """Only whole answers are accepted by llguidance, without missing or additional text."""
    assert lark_reader('start: "ab"+ | "é"')(text) is accepted


@needs_llguidance
def test_a_lark_reader_is_asked_again():
    """Earlier calls of a reader don't affect later ones."""
    accepts = lark_reader('start: "ab"')

    assert [accepts("a"), accepts("ab"), accepts("b"), accepts("ab")] == [False, True, False, True]


@needs_llguidance
def test_a_lark_grammar_that_is_refused():
    """The error has the engine's own message."""
    with pytest.raises(ValueError, match="missing"):
        lark_reader("start: missing")


@needs_xgrammar
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_gbnf(text, accepted):
    """Only whole answers of a grammar are accepted by xgrammar."""
    assert gbnf_reader('root ::= "ab"+ | "é"')(text) is accepted


@needs_xgrammar
def test_structural_tag():
    """Only whole answers of a structural tag are accepted by xgrammar."""
    accepts = tag_reader({"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}})

    assert [accepts("ab"), accepts("a")] == [True, False]
