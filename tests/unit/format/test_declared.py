"""Each declared format is well-formed, has a reason, and is found by name or by evidence."""

from __future__ import annotations

import pytest

from unrender.errors import FormatError
from unrender.format import Format
from unrender.format.declared import Declared, Signs, declared_formats
from unrender.verify import Verdict, verify_format


@pytest.mark.parametrize("declared", declared_formats(), ids=lambda declared: declared.name)
def test_a_declared_format_says_why(declared: Declared) -> None:
    """A declared format has a reason, and survives a round trip through JSON."""
    assert declared.why.endswith(".")
    assert Format.from_json(declared.format.to_json()) == declared.format


@pytest.mark.few(9)
@pytest.mark.slow
@pytest.mark.parametrize("declared", declared_formats(), ids=lambda declared: declared.name)
def test_what_a_declared_format_generates_is_read(declared: Declared) -> None:
    """Every answer that the format's grammars allow is parsed correctly."""
    verdicts = {finding.capability: finding.verdict for finding in verify_format(declared.format).findings}

    assert verdicts["generated answers"] is Verdict.PASSED


def test_names_are_unique() -> None:
    """Names of declared formats are unique."""
    names = [declared.name for declared in declared_formats()]

    assert len(set(names)) == len(names)


def test_a_format_is_found_by_name() -> None:
    """An unknown name is an error that lists the known ones."""
    assert Format.named("none") == Format(undeclared_reasoning=False)
    with pytest.raises(FormatError, match="expected one of .*'none'.*, found 'nope'"):
        Format.named("nope")


@pytest.mark.parametrize(
    ("source", "found"), [("a b", True), ("a c", True), ("a", False), ("b", False), ("a b x", False)]
)
def test_evidence_is_what_the_source_has_and_has_not(source: str, found: bool) -> None:
    """Evidence requires all of some texts, any of others, and none of the rest."""
    assert Signs(all=("a",), any=("b", "c"), none=("x",)).found_in(source) is found
