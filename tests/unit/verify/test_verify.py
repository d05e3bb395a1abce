"""Verdicts on sound templates, and on formats that don't fit their templates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import cases
from engines import installed
from unit.verify.conftest import template_named, with_format

from unrender import ChatTemplate
from unrender.format import CallSyntax
from unrender.verify import verify, verify_quickly
from unrender.verify.verdicts import Counterexample, diff


@pytest.mark.few(14)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@cases
def test_a_format_is_judged_as_the_row_says(why, template, change, failed, others):
    """A format derived from its template never fails. A wrong one fails exactly the capabilities that it misreads."""
    report = verify(with_format(template_named(template), change), samples=2)
    found = {finding.capability: str(finding.verdict) for finding in (*report.findings, *report.history)}
    missing = {finding.capability for finding in report.findings if "not installed" in finding.reason}

    assert [finding.capability for finding in report.failed] == [name for name in failed if name not in missing]
    assert {name: found.get(name) for name in others} == others
    assert report.passed is ("passed" in [str(finding.verdict) for finding in report.findings] and not failed)
    assert ("grammar in GBNF" in missing) is (bool(found) and not installed("xgrammar"))


def test_a_quick_report_is_kept(tmp_path, monkeypatch):
    """A later process reads the stored report on a derived format. A format passed by the caller is always checked."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))
    template, asked = template_named("unended"), []
    given = ChatTemplate(template._loaded, format=replace(template.format, ignored=("<x>",)))

    def recorded(template, **options):
        asked.append(template)
        return verify(template, **options)

    monkeypatch.setattr("unrender.verify.verify", recorded)
    report = verify_quickly(template)

    assert {"content", "message shapes"} <= {finding.capability for finding in report.findings}
    assert verify_quickly(template) == report
    for _ in range(2):
        verify_quickly(given)
    assert asked == [template, given, given]


@pytest.mark.slow
def test_same_seed_same_report():
    """The same seed gives the same answers and report."""
    template = template_named("tagged-raw")

    assert verify(template, samples=2, seed=5) == verify(template, samples=2, seed=5)


@cases
def test_a_difference_has_only_what_differs(expected, found, lines):
    """Generated ids are ignored. Long texts are shortened to the first difference."""
    assert [*diff(Counterexample(answer="", expected=expected, found=found, chunking="whole"))] == lines


@pytest.mark.slow
def test_a_template_is_verified_with_the_format_that_was_passed():
    """The constructors pass the format on."""
    wrong = ChatTemplate.from_string(
        template_named("json-tags")._with_tools.source,
        format=replace(template_named("json-tags").format, tools=CallSyntax()),
    )

    assert "tool calls" in {finding.capability for finding in verify(wrong, samples=1, only=["tool calls"]).failed}
