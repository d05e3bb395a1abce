"""Commands that examine templates: `inspect` shows what was derived, `verify` tests it, `lint` finds what is wrong."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

import click

from unrender import ChatTemplate
from unrender.analysis import Evidence
from unrender.cli.description import answers, capability_rows, help_rows, sections
from unrender.cli.examining import Outcome, examine, examining_options, exit_code, print_data, print_outcomes
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    OutputPath,
    check_printed,
    json_option,
    load,
    template_argument,
    template_name_option,
    write_text,
)
from unrender.cli.terminal import (
    DIM,
    GREEN,
    INDENT,
    NO_STYLE,
    RED,
    UNUSABLE,
    Row,
    print_block,
    print_columns,
    print_heading,
    print_json,
    print_line,
    print_rows,
    print_table,
    progress,
)
from unrender.conversation.next_turn.continuation import Continuation
from unrender.conversation.offer import Plan, plan_tools
from unrender.lint import Finding, Severity, lint
from unrender.lint.conversations import OpenAIMessage
from unrender.lint.rules import RULES
from unrender.outputs import STANDARD_STREAM
from unrender.verify import Report, Verdict, verify
from unrender.verify.check import CHECKS, GRAMMARS
from unrender.verify.verdicts import CapabilityFinding, Counterexample, diff, markdown

_VERDICTS = (Verdict.PASSED, Verdict.SKIPPED, Verdict.FAILED)
_QUICK = tuple(name for name in CHECKS if name != GRAMMARS)
"""The checks of `inspect`: those that load no engine."""
_DIFF_STYLES = {"-": RED, "+": GREEN}


@click.command(short_help="Show what was derived, and how.")
@template_argument
@template_name_option
@click.option(
    "--compare", metavar="NAME", help="Show one comparison: what it rendered, side by side, and what differs, e.g. R1."
)
@click.option("--all", "everything", is_flag=True, help="Also list what passed, and the evidence.")
@json_option
def inspect_command(
    template: str, *, template_name: str | None, compare: str | None, everything: bool, as_json: bool
) -> None:
    """Show what was derived: markers, capabilities, checks, and at the end how an answer is written.

    With --compare, show one of the comparisons of the analysis instead: both renderings side by side, and what differs.
    """
    with progress(1) as shown:
        shown.say(template)
        loaded = load(template, name=template_name)
        evidence = loaded.analysis.evidence
    if compare:
        _show_comparison(compare, evidence)
        return
    if refusal := verify(loaded, samples=0, only=("content",)).refusal:
        raise BadInput(f"{template}: {refusal}")
    if as_json:
        print_json(_as_data(loaded, _quick_report(loaded)))
        return
    # What was derived is shown at once: the checks take longer than the analysis.
    _show_template(template, loaded, everything=everything)
    _show_checks(_quick_report(loaded), everything=everything)


def _quick_report(template: ChatTemplate) -> Report:
    """Return the checks that need no engine, and show their progress."""
    with progress(len(_QUICK)) as shown:
        return verify(template, only=_QUICK, progress=shown.advance)


def _plan(template: ChatTemplate) -> Plan:
    return plan_tools(template.format, template.capabilities, "auto", template._with_tools.source)


def _as_data(template: ChatTemplate, report: Report) -> dict[str, Any]:
    analysis, plan = template.analysis, _plan(template)
    return {
        "format": template.format.to_dict(),
        "capabilities": asdict(analysis.capabilities),
        "help": {name: getattr(plan, name) for name in ("offers", "format_name", "writes_calls", "writes_results")},
        "continuation": _continuation_data(template._continuation),
        "checks": report.to_dict(),
        "evidence": [asdict(evidence) | {"split": asdict(evidence.split)} for evidence in analysis.evidence],
        "diagnostics": list(analysis.diagnostics),
    }


def _continuation_data(found: Continuation) -> dict[str, Any]:
    """Return what is known of next turns as plain JSON data."""
    data = {item.name: getattr(found, item.name) for item in fields(found)}
    plain = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in data.items()}
    witness = found.witness and {name: getattr(found.witness, name) for name in ("why", "what", "before", "after")}
    return {"append_only": found.append_only, **plain, "witness": witness}


def _show_comparison(name: str, evidence: Sequence[Evidence]) -> None:
    found = [item for item in evidence if item.comparison == name.upper()]
    if not found:
        known = ", ".join(sorted({item.comparison for item in evidence if item.comparison}))
        raise click.BadParameter(f"no comparison {name!r} was made; there are {known}", param_hint="--compare")
    for item in found:
        _show_evidence(item)


def _show_evidence(evidence: Evidence) -> None:
    """Print both texts beside each other, what differs in colours, and below them what differs once more, quoted."""
    split = evidence.split
    print_heading(f"{evidence.comparison}  {evidence.part}", evidence.finding)
    print_columns([(evidence.left.what, DIM)], [(evidence.right.what, DIM)], indent=INDENT)
    print_columns(
        [(split.prefix, NO_STYLE), (split.left, RED), (split.suffix, NO_STYLE)],
        [(split.prefix, NO_STYLE), (split.right, GREEN), (split.suffix, NO_STYLE)],
        indent=INDENT,
    )
    alone = ((evidence.left.what, split.left), (evidence.right.what, split.right))
    rows = [(f"only in {what}", repr(text)) for what, text in alone if text] or [("difference", "none")]
    print_line()
    print_rows([*rows, ("decided by", evidence.rule)] if evidence.rule else rows)


def _show_template(name: str, template: ChatTemplate, *, everything: bool) -> None:
    """Print the picture last: what is printed last is what a screen still shows."""
    analysis = template.analysis
    print_heading(name)
    for title, summary, rows in sections(template.format):
        print_heading(title, summary)
        print_rows(rows)
    print_heading("Capabilities", "what the template does with a conversation")
    print_rows(capability_rows(analysis.capabilities))
    if helped := help_rows(_plan(template)):
        print_heading("Help", "what prepare() does for tools, as the template does not")
        print_rows(helped)
    print_heading("Next turn", "what the template writes after an answer when more is said")
    print_rows([*template._continuation.rows()])
    if everything:
        print_heading("Evidence", f"from {analysis.renderings} renderings; --compare NAME shows them")
        print_rows(
            [
                (f"{found.comparison:<3}{found.part}", found.finding + (f" ({found.rule})" if found.rule else ""))
                for found in analysis.evidence
            ]
        )
    if analysis.diagnostics:
        print_heading("Not determined")
        print_rows([("-", diagnostic) for diagnostic in analysis.diagnostics])
    for text in answers(template.format, analysis.capabilities, analysis.evidence):
        print_heading("An answer", "«slots» are the model's own words")
        print_block(text, indent=INDENT)


def _show_checks(report: Report, *, everything: bool) -> None:
    print_heading("Checks", "answers that the template wrote, parsed back")
    print_rows(_check_rows(report, everything=everything))


def _check_rows(report: Report, *, everything: bool) -> list[Row]:
    """Return the findings that failed, and how many others there are; or each finding."""
    if everything:
        return [finding_row(finding) for finding in report.findings]
    counts = Counter(finding.verdict for finding in report.findings)
    folded = [verdict for verdict in _VERDICTS if counts[verdict] and verdict is not Verdict.FAILED]
    rows = [(f"{counts[verdict]} capabilities", str(verdict)) for verdict in folded]
    return rows + [finding_row(finding) for finding in report.failed] + [("", "--all lists each, and the evidence")]


@click.command(short_help="Test a format on its template.")
@click.argument("templates", nargs=-1, type=InputPath(), required=True)
@click.option("--samples", default=8, show_default=True, help="Answers that are made per capability.")
@click.option("--seed", default=0, show_default=True, help="Another seed makes other answers.")
@click.option(
    "--report",
    metavar="FILE",
    type=OutputPath(dir_okay=False),
    help="Also write a report in Markdown, for people to keep; - prints it instead.",
)
@examining_options
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

    Each of TEMPLATES may also be a directory of templates; several are examined at a time, each in its own process,
    and a table sums them up. Grammars are checked with the engines that are installed. The exit code is 1 when a
    capability failed, and 2 when a template could not be examined or renders no conversation at all; findings about the
    template's history do not change it.
    """
    check_printed(report, "--report", as_json=as_json)
    outcomes = examine(templates, partial(_report, samples=samples, seed=seed), timeout=timeout, jobs=jobs)
    if report is not None:
        reports = {Path(it.name).name: it.result for it in outcomes if it.result}
        failures = {Path(it.name).name: it.failure for it in outcomes if it.failure}
        write_text(report, markdown(reports, failures=failures))
    if as_json:
        print_data(outcomes, Report.to_dict)
    elif report == STANDARD_STREAM:
        pass  # It is printed already.
    elif len(outcomes) == 1 and outcomes[0].result:
        _show_report(outcomes[0].name, outcomes[0].result)
    else:
        _show_reports(outcomes)
    refused = any(outcome.result.refusal for outcome in outcomes if outcome.result)
    sys.exit(UNUSABLE if refused else exit_code(outcomes, lambda report: bool(report.failed)))


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


def _show_report(name: str, report: Report) -> None:
    print_heading(name, report.refusal)
    if report.refusal:
        return
    print_rows([finding_row(finding) for finding in report.findings])
    print_heading("History", "does the next prompt begin with the last one and the answer to it?")
    print_rows([history_row(finding) for finding in report.history])
    for finding in report.failed:
        if example := finding.counterexample:
            print_heading(finding.capability, f"failed for this answer, fed {example.chunking}")
            print_block([(example.answer, NO_STYLE)], indent=INDENT)
            _print_diff(example)
    for finding in report.history:
        if finding.counterexample:
            print_heading(finding.capability, "is written otherwise in the next prompt")
            _print_diff(finding.counterexample)


def _print_diff(example: Counterexample) -> None:
    for line in diff(example):
        print_block([(line, _DIFF_STYLES[line[0]])], indent=INDENT)


def _show_reports(outcomes: Sequence[Outcome[Report]]) -> None:
    print_outcomes(outcomes, _VERDICTS, "", _report_cells)
    failed = sum(bool(outcome.result and outcome.result.failed) for outcome in outcomes)
    missing = sum(outcome.result is None for outcome in outcomes)
    words = f"{len(outcomes)} templates, {failed} with something failed"
    print_line(words + (f", {missing} not examined" if missing else ""))


def _report_cells(report: Report) -> list[str]:
    counts = Counter(finding.verdict for finding in report.findings)
    failed = ", ".join(finding.capability for finding in report.failed)
    return [*(str(counts[verdict]) for verdict in _VERDICTS), failed or report.refusal]


@click.command(short_help="Find what is wrong with a template.")
@click.argument("templates", nargs=-1, type=InputPath())
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice([rule.name for rule in RULES]),
    metavar="RULE",
    help="Do not ask this rule.",
)
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default=str(Severity.ERROR),
    show_default=True,
    help="The least severe finding that makes the exit code 1.",
)
@click.option("--rules", "only_rules", is_flag=True, help="List the rules, and examine nothing.")
@examining_options
def lint_command(
    templates: tuple[str, ...],
    *,
    ignore: tuple[str, ...],
    fail_on: str,
    only_rules: bool,
    timeout: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Render ordinary conversations, and report what goes wrong.

    Each of TEMPLATES may also be a directory of templates; several are examined at a time, each in its own process,
    and a table sums them up. Every finding comes with the conversation that shows it, and what to do about it. Errors make
    the exit code 1; warnings and notes do not, unless --fail-on says so. The exit code is 2 when a template could not
    be examined.
    """
    if only_rules:
        _show_rules(as_json=as_json)
        return
    if not templates:
        raise click.UsageError("missing argument 'TEMPLATES...'")
    outcomes = examine(templates, partial(_findings, ignore=ignore), timeout=timeout, jobs=jobs)
    if as_json:
        print_data(outcomes, lambda findings: list(map(Finding.to_dict, findings)))
    elif len(outcomes) == 1 and outcomes[0].result is not None:
        _show_findings(outcomes[0].name, outcomes[0].result)
    else:
        _show_linted(outcomes)
    sys.exit(exit_code(outcomes, partial(_fails, least=Severity(fail_on))))


def _show_rules(*, as_json: bool) -> None:
    if as_json:
        print_json([{"name": rule.name, "severity": rule.severity, "looks_for": rule.looks_for} for rule in RULES])
    else:
        print_table(["rule", "severity", "looks for"], [[rule.name, rule.severity, rule.looks_for] for rule in RULES])


def _findings(name: str, *, ignore: tuple[str, ...]) -> tuple[Finding, ...]:
    return lint(load(name), ignore=ignore)


def _fails(findings: Sequence[Finding], *, least: Severity) -> bool:
    """True when a finding is as severe as `least`, or more."""
    order = list(Severity)
    return any(order.index(finding.severity) <= order.index(least) for finding in findings)


def _show_findings(name: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_heading(finding.rule, finding.severity)
        place = "" if finding.line is None else f"line {finding.line}: "
        rows = [
            ("found", f"{place}{finding.text.removesuffix('?')}" + ("?" if finding.text.endswith("?") else ".")),
            ("harm", finding.harm),
            ("fix", finding.fix),
        ]
        rows += [("shown by" if not i else "", line) for i, line in enumerate(map(_message_line, finding.messages))]
        rows += [("written", repr(finding.excerpt))] if finding.excerpt else []
        print_rows(rows)
    print_line()
    print_line(f"{name}: {_counted(findings)}")


def _counted(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.severity for finding in findings)
    words = [f"{counts[it]} {it}{'s' * (counts[it] > 1)}" for it in Severity if counts[it]]
    return ", ".join(words) or "nothing found"


def _message_line(message: OpenAIMessage) -> str:
    content = message.get("content", "")
    parts = ["no content (null)"] if content is None else [repr(content)] if content else []
    if message.get("reasoning_content"):
        parts.insert(0, f"thinks {message['reasoning_content']!r}")
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        parts.append(f"calls {call['function']['name']} with {json.dumps(arguments)}")
    return f"{message['role']}: {', '.join(parts)}"


def _show_linted(outcomes: Sequence[Outcome[tuple[Finding, ...]]]) -> None:
    print_outcomes(outcomes, [f"{severity}s" for severity in Severity], "rules", _finding_cells)
    found = [finding for outcome in outcomes for finding in outcome.result or ()]
    failed = sum(outcome.result is None for outcome in outcomes)
    print_line(f"{len(outcomes)} templates: {_counted(found)}" + (f"; {failed} not examined" if failed else ""))
    if found:
        print_heading("Rules", "how many templates break them")
        print_rows([(name, str(count)) for name, count in Counter(it.rule for it in found).most_common()])


def _finding_cells(findings: Sequence[Finding]) -> list[str]:
    counts = Counter(finding.severity for finding in findings)
    rules = ", ".join(finding.rule for finding in findings)
    return [*(str(counts[severity]) for severity in Severity), rules or "nothing found"]
