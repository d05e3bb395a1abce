"""`unrender verify`: proves or refutes templates' formats, and shows the renderings that decide."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from unrender.cli.describe import Row
from unrender.cli.endings import UNUSABLE
from unrender.cli.examining import Outcome, examine, jobs_option, timeout_option
from unrender.cli.inputs import check_printed, expanded, json_option, load, write_text
from unrender.cli.output import INDENT, print_heading, print_rows, print_table
from unrender.cli.paths import InputPath, OutputPath
from unrender.cli.terminal import GREEN, NO_STYLE, RED, print_block, print_json, print_line
from unrender.files import STANDARD
from unrender.verify import CapabilityFinding, Counterexample, Report, Verdict, diff, markdown, verify
from unrender.verify.report import HISTORY_WORDS

_VERDICTS = (Verdict.PROVED, Verdict.NOT_OBSERVABLE, Verdict.REFUTED)
_DIFF_STYLES = {"-": RED, "+": GREEN}


@click.command(short_help="Prove a format on its template.")
@click.argument("templates", nargs=-1, type=InputPath(), required=True)
@click.option("--samples", default=8, show_default=True, help="Answers that are made per capability.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other answers.")
@click.option(
    "--report",
    metavar="FILE",
    type=OutputPath(dir_okay=False),
    help="Also write a report in Markdown, for people to keep; - prints it instead.",
)
@timeout_option
@jobs_option
@json_option
def verify_command(
    templates: tuple[str, ...],
    *,
    samples: int,
    seed: int,
    report: str | None,
    timeout: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Render random answers with a template, parse them back, and compare.

    Each of TEMPLATES may also be a directory of templates; several are examined at a time, each in a process, and a
    table sums them up. Grammars are checked with the engines that are installed. The exit code is 1 when a capability
    is refuted, and 2 when a template could not be examined; findings about the template's history do not change it.
    """
    check_printed(report, "--report", as_json=as_json)
    names = [name for template in templates for name in expanded(template)]
    outcomes = examine(names, partial(_report, samples=samples, seed=seed), timeout=timeout, jobs=jobs)
    reports = {outcome.name: outcome.result for outcome in outcomes if outcome.result}
    if report is not None:
        failures = {Path(it.name).name: it.failure for it in outcomes if it.failure}
        write_text(report, markdown({Path(name).name: it for name, it in reports.items()}, failures=failures))
    if as_json:
        print_json({it.name: it.result.to_dict() if it.result else {"error": it.failure} for it in outcomes})
    elif len(names) == 1 and reports and report != STANDARD:
        _show(names[0], reports[names[0]])
    elif report != STANDARD:
        _show_table(outcomes)
    sys.exit(UNUSABLE if len(reports) < len(outcomes) else int(any(it.refuted for it in reports.values())))


def finding_row(finding: CapabilityFinding) -> Row:
    """Return a capability and what is known of it."""
    capability, _, verdict = str(finding).partition(": ")
    return capability, verdict


def history_row(finding: CapabilityFinding) -> Row:
    """Return a kind of turn, and whether the next prompt repeats it unchanged."""
    word = HISTORY_WORDS.get(finding.verdict, f"{finding.verdict}: {finding.reason}")
    return finding.capability, word


def _report(name: str, *, samples: int, seed: int) -> Report:
    return verify(load(name), samples=samples, seed=seed)


def _show(name: str, report: Report) -> None:
    print_heading(name)
    print_rows([finding_row(finding) for finding in report.findings])
    print_heading("History", "does the next prompt begin with the last one and the answer to it?")
    print_rows([history_row(finding) for finding in report.history])
    for finding in report.refuted:
        if example := finding.counterexample:
            print_heading(finding.capability, f"refuted by this answer, fed {example.chunking}")
            print_block([(example.answer, NO_STYLE)], indent=INDENT)
            _print_diff(example)
    for finding in report.history:
        if finding.counterexample:
            print_heading(finding.capability, "is written otherwise in the next prompt")
            _print_diff(finding.counterexample)


def _print_diff(example: Counterexample) -> None:
    for line in diff(example):
        print_block([(line, _DIFF_STYLES[line[0]])], indent=INDENT)


def _show_table(outcomes: Sequence[Outcome[Report]]) -> None:
    print_table(["template", *_VERDICTS, "seconds", ""], [_row(outcome) for outcome in outcomes])
    refuted = sum(bool(outcome.result and outcome.result.refuted) for outcome in outcomes)
    failed = sum(outcome.result is None for outcome in outcomes)
    print_line()
    words = f"{len(outcomes)} templates, {refuted} with something refuted"
    print_line(words + (f", {failed} not examined" if failed else ""))


def _row(outcome: Outcome[Report]) -> list[str]:
    name, seconds = Path(outcome.name).name.removesuffix(".jinja"), f"{outcome.seconds:.1f}"
    if outcome.result is None:
        return [name, *("" for _ in _VERDICTS), seconds, f"not examined: {outcome.failure}"]
    counts = Counter(finding.verdict for finding in outcome.result.findings)
    refuted = ", ".join(finding.capability for finding in outcome.result.refuted)
    return [name, *(str(counts[verdict]) for verdict in _VERDICTS), seconds, refuted]
