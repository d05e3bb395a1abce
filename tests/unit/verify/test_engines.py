"""Questions to engines: is this answer accepted?"""

from __future__ import annotations

import pytest
from engines import gbnf_reader, installed, lark_reader, tag_reader

needs_llguidance = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
needs_xgrammar = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
ANSWERS = [("ab", True), ("abab", True), ("é", True), ("", False), ("a", False), ("aba", False), ("abé", False)]


def test_what_is_installed():
    """An engine is looked for, not imported."""
    assert installed("json")
    assert not installed("no_such_engine")


@needs_llguidance
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_lark(text, accepted):
    """Llguidance takes whole answers: no beginning of one, and nothing after one."""
    assert lark_reader('start: "ab"+ | "é"')(text) is accepted


@needs_llguidance
def test_a_lark_reader_is_asked_again():
    """One question leaves no trace in the next."""
    accepts = lark_reader('start: "ab"')

    assert [accepts("a"), accepts("ab"), accepts("b"), accepts("ab")] == [False, True, False, True]


@needs_llguidance
def test_a_lark_grammar_that_is_refused():
    """The engine's own words say why."""
    with pytest.raises(ValueError, match="missing"):
        lark_reader("start: missing")


@needs_xgrammar
@pytest.mark.parametrize(("text", "accepted"), ANSWERS)
def test_gbnf(text, accepted):
    """Xgrammar takes whole answers of a grammar."""
    assert gbnf_reader('root ::= "ab"+ | "é"')(text) is accepted


@needs_xgrammar
def test_structural_tag():
    """Xgrammar takes whole answers of a structural tag."""
    accepts = tag_reader({"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}})

    assert [accepts("ab"), accepts("a")] == [True, False]
