"""`unrender verify`: proves or refutes templates' formats, and shows the renderings that decide."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from unrender.batch.outputs import STANDARD
from unrender.cli.examining import (
    Outcome,
    examine,
    exit_code,
    jobs_option,
    print_data,
    print_outcomes,
    timeout_option,
)
from unrender.cli.format.description import Row
from unrender.cli.inputs import InputPath, OutputPath, check_printed, json_option, load, write_text
from unrender.cli.output import INDENT, print_heading, print_rows
from unrender.cli.terminal import GREEN, NO_STYLE, RED, print_block, print_line
from unrender.verify import CapabilityFinding, Counterexample, Report, Verdict, diff, markdown, verify

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
    outcomes = examine(templates, partial(_report, samples=samples, seed=seed), timeout=timeout, jobs=jobs)
    if report is not None:
        reports = {Path(it.name).name: it.result for it in outcomes if it.result}
        failures = {Path(it.name).name: it.failure for it in outcomes if it.failure}
        write_text(report, markdown(reports, failures=failures))
    if as_json:
        print_data(outcomes, Report.to_dict)
    elif report == STANDARD:
        pass  # It is printed already.
    elif len(outcomes) == 1 and outcomes[0].result:
        _show(outcomes[0].name, outcomes[0].result)
    else:
        _show_table(outcomes)
    sys.exit(exit_code(outcomes, lambda report: bool(report.refuted)))


def finding_row(finding: CapabilityFinding) -> Row:
    """Return a capability and what is known of it."""
    capability, _, verdict = str(finding).partition(": ")
    return capability, verdict


def history_row(finding: CapabilityFinding) -> Row:
    """Return a kind of turn, and whether the next prompt repeats it unchanged."""
    reason = f": {finding.reason}" if finding.reason else ""
    return finding.capability, finding.verdict.in_history + reason


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
    print_outcomes(outcomes, _VERDICTS, "", _cells)
    refuted = sum(bool(outcome.result and outcome.result.refuted) for outcome in outcomes)
    failed = sum(outcome.result is None for outcome in outcomes)
    words = f"{len(outcomes)} templates, {refuted} with something refuted"
    print_line(words + (f", {failed} not examined" if failed else ""))


def _cells(report: Report) -> list[str]:
    counts = Counter(finding.verdict for finding in report.findings)
    refuted = ", ".join(finding.capability for finding in report.refuted)
    return [*(str(counts[verdict]) for verdict in _VERDICTS), refuted]
