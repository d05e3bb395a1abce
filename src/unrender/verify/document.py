"""Writes reports as one page of Markdown: a table of templates, then each one's findings, with diffs.

Rules: what came from outside (names of files, words of templates, answers) is text on the page: it makes no markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from unrender.printable import printable_line, printable_lines
from unrender.verify.difference import diff
from unrender.verify.report import HISTORY_WORDS, CapabilityFinding, Report, Verdict

_MARKUP = re.compile(r"[\\`*_\[\]~|]")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HEAD = "| {0} | verdict | held | why |\n|---|---|--:|---|"


def markdown(reports: Mapping[str, Report], *, failures: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a page on the templates of `reports`; `failures` says why other templates were not examined."""
    lines = ["# What is proved", ""]
    lines += ["| template | " + " | ".join(Verdict) + " |", "|---|" + "--:|" * len(Verdict)]
    lines += [_summary(name, report) for name, report in reports.items()]
    if failures:
        lines += ["", "| not examined | why |", "|---|---|"]
        lines += [f"| {_prose(name)} | {_prose(why)} |" for name, why in failures.items()]
    for name, report in reports.items():
        lines += ["", f"## {_prose(name)}", "", *_table("capability", report.findings)]
        lines += ["", *_table("history", report.history, HISTORY_WORDS)] if report.history else []
        for finding in (*report.refuted, *_changed(report.history)):
            lines += ["", *_counterexample(finding)]
    return "\n".join([*lines, ""])


def _summary(name: str, report: Report) -> str:
    counts = [str(sum(finding.verdict is verdict for finding in report.findings)) for verdict in Verdict]
    return f"| {_prose(name)} | {' | '.join(counts)} |"


def _table(
    title: str, findings: Sequence[CapabilityFinding], words: Mapping[Verdict, str] = MappingProxyType({})
) -> Iterator[str]:
    yield _HEAD.format(title)
    for finding in findings:
        held = f"{finding.held} of {finding.total}" if finding.total else ""
        yield f"| {finding.capability} | {words.get(finding.verdict, finding.verdict)} | {held} | {_prose(finding.reason)} |"


def _prose(text: str) -> str:
    """Return a text in a line, every character of which Markdown shows as it is."""
    line = printable_line(" ".join(text.split()))
    return _MARKUP.sub(r"\\\g<0>", "".join(_HTML.get(char, char) for char in line))


def _changed(findings: Sequence[CapabilityFinding]) -> Iterator[CapabilityFinding]:
    yield from (finding for finding in findings if finding.verdict is Verdict.REFUTED)


def _counterexample(finding: CapabilityFinding) -> Iterator[str]:
    example = finding.counterexample
    assert example is not None
    yield f"{finding.capability}, shown by this answer, fed {_prose(example.chunking)}:"
    yield from ("", *_fenced("text", example.answer), "", *_fenced("diff", "\n".join(diff(example))))


def _fenced(language: str, text: str) -> Iterator[str]:
    """Fence a text with more backticks than it holds."""
    text = printable_lines(text)
    fence = "```"
    while fence in text:
        fence += "`"
    yield from (fence + language, text, fence)
