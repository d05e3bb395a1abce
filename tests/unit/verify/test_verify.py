"""Verdicts on sound templates, and on formats that do not fit their templates, as text and as data."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from cases import cases
from engines import installed
from tables import table
from unit.verify.conftest import SOURCE, sound, template_named, with_format

from unrender import ChatTemplate, TemplateError
from unrender.format import CallSyntax
from unrender.verify import CHECKS, GRAMMARS, Report, Verdict, verify, verify_format, verify_quickly
from unrender.verify.hostile import structured_results
from unrender.verify.renditions import AXES
from unrender.verify.verdicts import CapabilityFinding, Counterexample, diff


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
