"""Reports as text and as data."""

from __future__ import annotations

import pytest

from unrender.verify.verdicts import CapabilityFinding, Counterexample, Report, Verdict

EXAMPLE = Counterexample(answer="<a>x", expected="x", found="<a>x", chunking="every 1")
PROVED = CapabilityFinding(capability="content", verdict=Verdict.PROVED, held=2, total=2)
REFUTED = CapabilityFinding(capability="reasoning", verdict=Verdict.REFUTED, held=1, total=3, counterexample=EXAMPLE)
UNSEEN = CapabilityFinding(capability="call ids", verdict=Verdict.NOT_OBSERVABLE, reason="nothing is written")


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (PROVED, "content: proved (2 of 2)"),
        (REFUTED, "reasoning: refuted (1 of 3)"),
        (UNSEEN, "call ids: not observable: nothing is written"),
        (CapabilityFinding(capability="a", verdict=Verdict.PROVED, total=1, reason="why"), "a: proved (0 of 1): why"),
        (CapabilityFinding(capability="a", verdict=Verdict.NOT_OBSERVABLE), "a: not observable"),
    ],
)
def test_a_finding_is_a_line(finding, line):
    """The line has the verdict, a count where there is one, and a reason where there is one."""
    assert str(finding) == line


@pytest.mark.parametrize(
    ("findings", "history", "proved", "refuted"),
    [
        ((PROVED, UNSEEN), (), True, ()),
        ((PROVED, REFUTED), (), False, (REFUTED,)),
        ((UNSEEN,), (), False, ()),
        ((), (), False, ()),
        ((PROVED,), (REFUTED,), True, ()),  # a history that changes is the template's affair
        ((UNSEEN,), (PROVED,), False, ()),
    ],
)
def test_what_is_proved(findings, history, proved, refuted):
    """A format is proved when something is proved of it and nothing is refuted; its history does not count."""
    report = Report(findings=findings, history=history)

    assert report.proved is proved
    assert report.refuted == refuted


def test_a_report_is_a_line_for_each_finding():
    """What holds of the format comes first, then what holds of the history."""
    report = Report(findings=(PROVED, UNSEEN), history=(REFUTED,))

    assert str(report).splitlines() == [
        "content: proved (2 of 2)",
        "call ids: not observable: nothing is written",
        "reasoning: refuted (1 of 3)",
    ]


def test_a_report_is_data():
    """Everything is in the data, counterexamples with it."""
    assert Report(findings=(REFUTED,), history=(UNSEEN,)).to_dict() == {
        "proved": False,
        "findings": [
            {
                "capability": "reasoning",
                "verdict": "refuted",
                "held": 1,
                "total": 3,
                "counterexample": {"answer": "<a>x", "expected": "x", "found": "<a>x", "chunking": "every 1"},
                "reason": "",
            }
        ],
        "history": [
            {
                "capability": "call ids",
                "verdict": "not observable",
                "held": 0,
                "total": 0,
                "counterexample": None,
                "reason": "nothing is written",
            }
        ],
    }


def test_words_for_a_history():
    """A history is kept or changed, not proved or refuted."""
    assert [verdict.in_history for verdict in Verdict] == ["kept", "changed", "not observable"]
