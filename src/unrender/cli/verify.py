"""`unrender verify`: templates into verdicts, each with the renderings it rests on."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from unrender.cli.describe import Row
from unrender.cli.inputs import expanded, json_option, load
from unrender.cli.output import console, print_heading, print_json, print_rows, print_text
from unrender.messages import CallStatus
from unrender.verify import Finding, Report, Verdict, verify

WORDS = ("expected", "found")


@click.command("verify", short_help="Prove a format on its template.")
@click.argument("templates", nargs=-1, required=True)
@click.option("--samples", default=8, show_default=True, help="Answers that are made per capability.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other answers.")
@json_option
def verify_(templates: tuple[str, ...], *, samples: int, seed: int, as_json: bool) -> None:
    """Render random answers with a template, parse them back, and compare.

    Each of TEMPLATES may also be a directory of templates. The exit code is 1 when a capability is refuted.
    """
    names = [name for template in templates for name in expanded(template)]
    reports = _verified(names, samples, seed)
    if as_json:
        print_json({name: report.to_dict() for name, report in reports.items()})
    elif len(names) == 1:
        _show(console(), names[0], reports[names[0]])
    else:
        _show_table(console(), reports)
    sys.exit(any(report.refuted for report in reports.values()))


def finding_row(finding: Finding) -> Row:
    """Return a capability and what is known of it."""
    capability, _, verdict = str(finding).partition(": ")
    return capability, verdict


def _verified(names: Sequence[str], samples: int, seed: int) -> dict[str, Report]:
    """Verify one after the other; a terminal sees how far it is."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    reports = {}
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=len(names))
        for name in names:
            progress.update(task, description=Path(name).stem)
            loaded = load(name)
            reports[name] = verify(loaded.template, analysis=loaded.analysis, samples=samples, seed=seed)
            progress.advance(task)
    return reports


def _show(out: Console, name: str, report: Report) -> None:
    print_heading(out, name)
    print_rows(out, [finding_row(finding) for finding in report.findings])
    for finding in report.refuted:
        example = finding.counterexample
        if example:
            print_heading(out, finding.capability, f"refuted by this answer, fed {example.chunking}")
            print_text(out, Text(example.answer))
            print_rows(out, _differences(json.loads(example.expected), json.loads(example.found)))


def _differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[Row]:
    """Return the parts of two messages that differ, each as it should be and as it is."""
    rows = []
    for part in ("reasoning_content", "content", "tool_calls", "statuses"):
        pair = [_comparable(part, message.get(part)) for message in (expected, found)]
        if pair[0] != pair[1]:
            rows += [
                (f"{part} {word}", json.dumps(it, ensure_ascii=False)) for word, it in zip(WORDS, pair, strict=True)
            ]
    return rows


def _comparable(part: str, value: Any) -> Any:
    """Leave out what is not compared: the ids of calls, made up where the format has none, and that a call is whole."""
    match part:
        case "tool_calls":
            return [call["function"] for call in value or ()]
        case "statuses":
            return [status for status in value or () if status != CallStatus.COMPLETE]
        case _:
            return value or ""


def _show_table(out: Console, reports: dict[str, Report]) -> None:
    print_rows(out, [(Path(name).name.removesuffix(".jinja"), _sum(report)) for name, report in reports.items()])
    refuted = sum(bool(report.refuted) for report in reports.values())
    out.print(f"\n{len(reports)} templates, {refuted} with something refuted")


def _sum(report: Report) -> str:
    counts = Counter(finding.verdict for finding in report.findings)
    order = (Verdict.PROVED, Verdict.NOT_OBSERVABLE, Verdict.REFUTED)
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    names = ", ".join(finding.capability for finding in report.refuted)
    return words + (f": {names}" if names else "")
