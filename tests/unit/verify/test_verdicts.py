"""Reports as text and as data."""

from __future__ import annotations

import pytest

from unrender.verify import Report, Verdict
from unrender.verify.verdicts import CapabilityFinding, Counterexample

EXAMPLE = Counterexample(answer="<a>x", expected="x", found="<a>x", chunking="every 1")
PASSED = CapabilityFinding(capability="content", verdict=Verdict.PASSED, held=2, total=2)
FAILED = CapabilityFinding(capability="reasoning", verdict=Verdict.FAILED, held=1, total=3, counterexample=EXAMPLE)
UNSEEN = CapabilityFinding(capability="call ids", verdict=Verdict.SKIPPED, reason="nothing is written")


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (PASSED, "content: passed (2 of 2)"),
        (FAILED, "reasoning: failed (1 of 3)"),
        (UNSEEN, "call ids: skipped: nothing is written"),
        (CapabilityFinding(capability="a", verdict=Verdict.PASSED, total=1, reason="why"), "a: passed (0 of 1): why"),
        (CapabilityFinding(capability="a", verdict=Verdict.SKIPPED), "a: skipped"),
    ],
)
def test_a_finding_is_a_line(finding, line):
    """The line has the verdict, and a count and a reason if there are any."""
    assert str(finding) == line


@pytest.mark.parametrize(
    ("findings", "history", "passed", "failed"),
    [
        ((PASSED, UNSEEN), (), True, ()),
        ((PASSED, FAILED), (), False, (FAILED,)),
        ((UNSEEN,), (), False, ()),
        ((), (), False, ()),
        ((PASSED,), (FAILED,), True, ()),  # A template may rewrite the history.
        ((UNSEEN,), (PASSED,), False, ()),
    ],
)
def test_what_passed(findings, history, passed, failed):
    """A report passes if a finding passed and none failed. The history doesn't count."""
    report = Report(findings=findings, history=history)

    assert report.passed is passed
    assert report.failed == failed


def test_a_report_is_a_line_for_each_finding():
    """Findings about the format come first, then those about the history."""
    report = Report(findings=(PASSED, UNSEEN), history=(FAILED,))

    assert str(report).splitlines() == [
        "content: passed (2 of 2)",
        "call ids: skipped: nothing is written",
        "reasoning: failed (1 of 3)",
    ]


def test_a_report_is_data():
    """The data is complete, including counterexamples."""
    data = Report(findings=(FAILED,), history=(UNSEEN,)).to_dict()

    assert (data["passed"], len(data["findings"]), len(data["history"])) == (False, 1, 1)
    assert data["findings"][0] == {
        "capability": "reasoning",
        "verdict": "failed",
        "held": 1,
        "total": 3,
        "reason": "",
        "counterexample": {"answer": "<a>x", "expected": "x", "found": "<a>x", "chunking": "every 1"},
    }
    assert (data["history"][0]["counterexample"], data["history"][0]["reason"]) == (None, "nothing is written")


def test_words_for_a_history():
    """A history is kept or changed, not passed or failed."""
    assert [verdict.in_history for verdict in Verdict] == ["kept", "changed", "skipped"]
