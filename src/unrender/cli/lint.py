"""`unrender lint`: says what is wrong with templates, for people and programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

import click

from unrender.cli.examining import (
    Outcome,
    examine,
    exit_code,
    jobs_option,
    print_data,
    print_outcomes,
    timeout_option,
)
from unrender.cli.inputs import InputPath, json_option, load
from unrender.cli.output import print_heading, print_rows, print_table
from unrender.cli.terminal import print_json, print_line
from unrender.lint import RULES, Finding, OpenAIMessage, Severity, lint


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
@timeout_option
@jobs_option
@json_option
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

    Each of TEMPLATES may also be a directory of templates; several are examined at a time, each in a process, and a
    table sums them up. Every finding comes with the conversation that shows it, and what to do about it. Errors make
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
        _show(outcomes[0].name, outcomes[0].result)
    else:
        _show_table(outcomes)
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


def _show(name: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_heading(finding.rule, finding.severity)
        rows = [("found", finding.text + "."), ("harm", finding.harm), ("fix", finding.fix)]
        rows += [("shown by" if not i else "", line) for i, line in enumerate(map(_message_line, finding.messages))]
        rows += [("written", repr(finding.excerpt))] if finding.excerpt else []
        print_rows(rows)
    print_line()
    print_line(f"{name}: {_summary(findings)}")


def _summary(findings: Sequence[Finding]) -> str:
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


def _show_table(outcomes: Sequence[Outcome[tuple[Finding, ...]]]) -> None:
    print_outcomes(outcomes, [f"{severity}s" for severity in Severity], "rules", _cells)
    found = [finding for outcome in outcomes for finding in outcome.result or ()]
    failed = sum(outcome.result is None for outcome in outcomes)
    print_line(f"{len(outcomes)} templates: {_summary(found)}" + (f"; {failed} not examined" if failed else ""))
    if found:
        print_heading("Rules", "how many templates break them")
        print_rows([(name, str(count)) for name, count in Counter(it.rule for it in found).most_common()])


def _cells(findings: Sequence[Finding]) -> list[str]:
    counts = Counter(finding.severity for finding in findings)
    rules = ", ".join(finding.rule for finding in findings)
    return [*(str(counts[severity]) for severity in Severity), rules or "nothing found"]
