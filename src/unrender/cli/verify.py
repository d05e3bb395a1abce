"""`unrender verify`: templates into verdicts, each with the renderings it rests on."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from unrender.cli.describe import Row
from unrender.cli.inputs import expanded, json_option, load, write_text
from unrender.cli.output import INDENT, print_heading, print_rows
from unrender.cli.terminal import GREEN, NO_STYLE, RED, print_block, print_json, print_line, progress
from unrender.verify import Counterexample, Finding, Report, Verdict, diff, markdown, verify
from unrender.verify.report import HISTORY_WORDS

_DIFF_STYLES = {"-": RED, "+": GREEN}


@click.command("verify", short_help="Prove a format on its template.")
@click.argument("templates", nargs=-1, required=True)
@click.option("--samples", default=8, show_default=True, help="Answers that are made per capability.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other answers.")
@click.option("--report", metavar="FILE", help="Also write a report in Markdown, for people to keep.")
@json_option
def verify_(templates: tuple[str, ...], *, samples: int, seed: int, report: str | None, as_json: bool) -> None:
    """Render random answers with a template, parse them back, and compare.

    Each of TEMPLATES may also be a directory of templates. Grammars are checked with the engines that are installed. The exit
    code is 1 when a capability is refuted; what is found of the template's history does not change it.
    """
    names = [name for template in templates for name in expanded(template)]
    reports = _verified(names, samples, seed)
    if report is not None:
        write_text(report, markdown({Path(name).name: it for name, it in reports.items()}))
    if as_json:
        print_json({name: it.to_dict() for name, it in reports.items()})
    elif len(names) == 1:
        _show(names[0], reports[names[0]])
    else:
        _show_table(reports)
    sys.exit(any(it.refuted for it in reports.values()))


def finding_row(finding: Finding) -> Row:
    """Return a capability and what is known of it."""
    capability, _, verdict = str(finding).partition(": ")
    return capability, verdict


def history_row(finding: Finding) -> Row:
    """Return a kind of turn, and whether the next prompt keeps it as it was."""
    word = HISTORY_WORDS.get(finding.verdict, f"{finding.verdict}: {finding.reason}")
    return finding.capability, word


def _verified(names: Sequence[str], samples: int, seed: int) -> dict[str, Report]:
    """Verify one after the other; a terminal sees how far it is."""
    reports = {}
    with progress(len(names)) as shown:
        for name in names:
            shown.say(name)
            loaded = load(name)
            reports[name] = verify(loaded, samples=samples, seed=seed)
            shown.advance(name)
    return reports


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


def _show_table(reports: dict[str, Report]) -> None:
    print_rows([(Path(name).name.removesuffix(".jinja"), _sum(report)) for name, report in reports.items()])
    refuted = sum(bool(report.refuted) for report in reports.values())
    print_line()
    print_line(f"{len(reports)} templates, {refuted} with something refuted")


def _sum(report: Report) -> str:
    counts = Counter(finding.verdict for finding in report.findings)
    order = (Verdict.PROVED, Verdict.NOT_OBSERVABLE, Verdict.REFUTED)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    names = ", ".join(finding.capability for finding in report.refuted)
    return words + (f": {names}" if names else "")
