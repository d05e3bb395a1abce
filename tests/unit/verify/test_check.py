"""Verification of a template along all axes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from tables import table
from unit.verify.conftest import SOURCE, sound

from unrender import ChatTemplate, TemplateError
from unrender.format import CallSyntax
from unrender.verify import CHECKS, Verdict, verify, verify_format
from unrender.verify.hostile import structured_results
from unrender.verify.renditions import AXES

IDS = ('<call name="', '<call id="\' ~ call.id ~ \'" name="')
AFTER_AXES: list[str] = table("verify")["AFTER_AXES"]
"""Names of the capabilities after those of `AXES`, in order."""


@cache
def known(source=SOURCE):
    return ChatTemplate.from_string(source)


@cache
def reported():
    """Return the report on the sound template, and the reported progress."""
    names: list[str] = []
    return verify(known(), samples=2, progress=names.append), names


@pytest.mark.slow
def test_every_capability_is_told_when_it_is_done():
    """Progress names each capability once, in the order of the report."""
    report, names = reported()

    assert names == [*AXES, *AFTER_AXES]
    assert [finding.capability for finding in report.findings] == names
    assert report.history[0].capability == "content, then a question"
    assert report.passed


def test_checks_can_be_made_one_by_one():
    """A named check runs alone with the same result. History is only part of a full verification."""
    (alone,) = (report := verify(known(), samples=2, only=["content"])).findings

    assert alone.capability == "content"
    assert alone.verdict is Verdict.PASSED
    assert report.history == ()
    assert set(AXES) < set(CHECKS)


def found(report, capability):
    return next(finding for finding in report.findings if finding.capability == capability)


@pytest.mark.parametrize("axis", ["content", "strings", "null"])
def test_so_many_answers_are_made_for_each_axis(axis):
    """`samples` is the number of answers for each question."""
    assert found(reported()[0], axis).total == 2


@pytest.fixture
def no_grammars(monkeypatch):
    """Skip the grammar checks, which are the slowest."""
    monkeypatch.setattr("unrender.verify.check_grammars", lambda candidate, seed: iter(()))


@pytest.mark.slow
def test_ids_that_are_written_come_back(no_grammars):
    """A call's id is parsed if the template writes it."""
    assert found(verify(known(SOURCE.replace(*IDS)), samples=0), "call ids").verdict is Verdict.PASSED


def test_ids_that_are_not_written_are_skipped():
    """Most templates write no ids."""
    assert found(reported()[0], "call ids").reason == "the template doesn't write them"


def test_ids_that_are_not_read_fail(no_grammars):
    """A format without calls fails the check of ids."""
    template = known(SOURCE.replace(*IDS))
    wrong = ChatTemplate(template._loaded, format=replace(template.format, tools=CallSyntax(), tolerated=()))
    finding = found(verify(wrong, samples=0), "call ids")

    assert finding.verdict is Verdict.FAILED
    assert finding.counterexample.expected == "proof0000"


def test_a_format_for_itself():
    """Without a template, only the grammars are checked."""
    report = verify_format(sound().format)

    assert [finding.capability for finding in report.findings] == AFTER_AXES[-5:]
    assert report.history == ()
    assert found(report, "generated answers").verdict is Verdict.PASSED


def refusing(result: object) -> str:
    raise TemplateError(f"no {result}")


@pytest.mark.parametrize(
    ("write", "verdict"),
    [
        (json.dumps, Verdict.PASSED),
        (str, Verdict.FAILED),
        (lambda _: "", Verdict.FAILED),
        (refusing, Verdict.SKIPPED),
    ],
)
def test_results_that_are_no_text_are_in_the_prompt(write, verdict) -> None:
    """A result written as Python prints it fails, and so does a missing one. A refusal is skipped."""

    class Written:
        def prepare(self, messages, *, tools):
            return SimpleNamespace(prompt=write(messages[-1]["content"]))

    assert structured_results(Written()).verdict is verdict
