"""Formats with one error: each fails the expected check, even without an engine."""

from __future__ import annotations

import pytest
from cases import cases
from unit.verify.conftest import template_named, with_format

from unrender.verify import GRAMMARS, Verdict, verify


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr("unrender.verify.grammars.installed", lambda engine: False)


@pytest.mark.few(3)
@pytest.mark.slow
@cases
def test_what_is_read_and_never_allowed_fails_without_an_engine(why, change, no_engine):
    """The parser accepts unusual layout, but the grammar doesn't, so it rejects the template's own answers."""
    template = template_named("json-tags")
    report = verify(with_format(template, change), only=[GRAMMARS])

    assert report.failed[-1].capability == "written answers"
    assert {finding.verdict for finding in report.findings[2:]} == {Verdict.SKIPPED}
    assert verify(template, only=[GRAMMARS]).failed == ()


@pytest.mark.few(4)
@pytest.mark.slow
@cases
def test_what_is_easily_misread_fails_its_check(template, change, check, failed):
    """A format that misreads the template's output fails the check for this error. Whitespace isn't excused by a template that trims."""
    sound = template_named(template)

    assert verify(sound, samples=2, only=[check]).failed == ()
    report = verify(with_format(sound, change), samples=2, only=[check])
    assert [finding.capability for finding in report.failed] == failed
