"""`unrender lint`: templates into what is wrong with them, for people and programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from unrender.cli.describe import Row
from unrender.cli.inputs import expanded, json_option, load
from unrender.cli.output import print_heading, print_rows
from unrender.cli.terminal import print_json, print_line
from unrender.lint import RULES, Finding, Message, lint


@click.command("lint", short_help="Find what is wrong with a template.")
@click.argument("templates", nargs=-1)
@click.option(
    "--ignore",
    multiple=True,
    type=click.Choice([rule.name for rule in RULES]),
    metavar="RULE",
    help="Do not ask this rule.",
)
@click.option("--rules", "only_rules", is_flag=True, help="List the rules, and examine nothing.")
@json_option
def lint_(templates: tuple[str, ...], *, ignore: tuple[str, ...], only_rules: bool, as_json: bool) -> None:
    """Render ordinary conversations, and report what goes wrong.

    Each of TEMPLATES may also be a directory of templates, which gives a line for each. Every finding comes with the conversation
    that shows it, and what to do about it. The exit code is 1 when there is any.
    """
    if only_rules:
        print_rows([(rule.name, rule.looks_for) for rule in RULES])
        return
    if not templates:
        raise click.UsageError("missing argument 'TEMPLATES...'")
    findings = {name: lint(load(name), ignore=ignore) for template in templates for name in expanded(template)}
    if as_json:
        print_json({name: [finding.to_dict() for finding in found] for name, found in findings.items()})
    elif len(findings) == 1:
        _show(*next(iter(findings.items())))
    else:
        _show_table(findings)
    sys.exit(any(findings.values()))


def _show(name: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_heading(finding.rule)
        rows = [("found", finding.text + "."), ("harm", finding.harm), ("fix", finding.fix)]
        rows += [("shown by" if not i else "", line) for i, line in enumerate(map(_message_line, finding.messages))]
        rows += [("written", repr(finding.excerpt))] if finding.excerpt else []
        print_rows(rows)
    count = f"{len(findings)} finding{'s' * (len(findings) != 1)}" if findings else "nothing found"
    print_line()
    print_line(f"{name}: {count}")


def _message_line(message: Message) -> str:
    content = message.get("content", "")
    parts = ["no content (null)"] if content is None else [repr(content)] if content else []
    if message.get("reasoning_content"):
        parts.insert(0, f"thinks {message['reasoning_content']!r}")
    for call in message.get("tool_calls", ()):
        arguments = call["function"]["arguments"]
        parts.append(f"calls {call['function']['name']} with {json.dumps(arguments)}")
    return f"{message['role']}: {', '.join(parts)}"


def _show_table(findings: Mapping[str, Sequence[Finding]]) -> None:
    print_rows(list(_table(findings)))
    counts = Counter(finding.rule for found in findings.values() for finding in found)
    if counts:
        print_heading("Findings", f"{sum(counts.values())} in {len(findings)} templates")
        print_rows([(name, str(count)) for name, count in counts.most_common()])


def _table(findings: Mapping[str, Sequence[Finding]]) -> Iterator[Row]:
    for name, found in findings.items():
        rules = ", ".join(finding.rule for finding in found)
        yield Path(name).name.removesuffix(".jinja"), rules or "nothing found"
