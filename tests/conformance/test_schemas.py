"""The recorded schemas hold in every dialect, as read by the engines themselves."""

from __future__ import annotations

from typing import Any

import pytest
from engines import converted_reader
from vendor import vendor_cases

from unrender.dialects.gbnf import gbnf_of
from unrender.dialects.lark import lark_of
from unrender.errors import GrammarError
from unrender.nodes import Grammar, JsonValue
from unrender.verify.engines import gbnf_reader, installed, lark_reader

CASES = vendor_cases("schemas")
SCHEMAS = [pytest.param(case, id=case["id"]) for case in CASES if case.get("convertible") and "schema" in case]
SCHEMAS += [pytest.param(case, id=case["id"]) for case in CASES if "convertible" not in case and "schema" in case]
BROKEN = [pytest.param(case, id=case["id"]) for case in CASES if case.get("convertible") is False]
GRAMMARS = [pytest.param(case, id=case["id"]) for case in CASES if "gbnf" in case]

LLGUIDANCE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
XGRAMMAR = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
DIALECTS = [
    pytest.param(lark_of, lark_reader, id="lark", marks=LLGUIDANCE),
    pytest.param(gbnf_of, converted_reader, id="gbnf-llguidance", marks=LLGUIDANCE),
    pytest.param(gbnf_of, gbnf_reader, id="gbnf-xgrammar", marks=XGRAMMAR),
]

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(("write", "read"), DIALECTS)
@pytest.mark.parametrize("case", SCHEMAS)
def test_a_schema_accepts_and_rejects_what_the_case_says(case: dict[str, Any], write: Any, read: Any) -> None:
    """Each accepted text is accepted and each rejected one is rejected, by the engine that reads the dialect."""
    accepts = read(write(Grammar(JsonValue(case["schema"]))))

    verdicts = {text: accepts(text) for text in (*case["accept"], *case["reject"])}

    assert verdicts == {**dict.fromkeys(case["accept"], True), **dict.fromkeys(case["reject"], False)}


@pytest.mark.parametrize("write", [lark_of, gbnf_of])
@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_schema_is_a_clear_error(case: dict[str, Any], write: Any) -> None:
    """A keyword whose value is broken raises an error that names the keyword's path."""
    with pytest.raises(GrammarError, match="#/pattern: pattern '.*': expected"):
        write(Grammar(JsonValue(case["schema"])))


@LLGUIDANCE
@pytest.mark.parametrize("case", GRAMMARS)
def test_the_reader_of_gbnf_reads_gbnf(case: dict[str, Any]) -> None:
    """The engine that the other tests trust reads hand-written GBNF as recorded."""
    accepts = converted_reader(case["gbnf"])

    verdicts = {text: accepts(text) for text in (*case["accept"], *case["reject"])}

    assert verdicts == {**dict.fromkeys(case["accept"], True), **dict.fromkeys(case["reject"], False)}
