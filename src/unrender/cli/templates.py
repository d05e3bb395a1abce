"""Commands for templates: `inspect` shows the derived format, `verify` tests it, and `lint` finds mistakes."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from textwrap import shorten
from typing import Any

import click

from unrender import ChatTemplate
from unrender.analysis import Analysis, Capabilities
from unrender.cli.examining import Examined, examine, examining_options, exit_code, print_data, print_outcomes
from unrender.cli.inputs import (
    BadInput,
    InputPath,
    all_option,
    json_option,
    load_template,
    template_argument,
    template_name_option,
    titled,
)
from unrender.cli.terminal import (
    INDENT,
    NARROWEST,
    ROLE_STYLES,
    UNUSABLE,
    LabelledRow,
    Styled,
    StyledPiece,
    print_block,
    print_heading,
    print_json,
    print_line,
    print_rows,
    print_table,
    signed,
    width,
)
from unrender.conversation.next_turn.continuation import Continuation
from unrender.conversation.offer import Plan, call_form, plan_tools
from unrender.format import Format
from unrender.format.picture import PicturePiece, call_picture, field_texts, format_rows, inline
from unrender.lint import Finding, Severity, lint
from unrender.lint.conversations import OpenAIMessage
from unrender.lint.rules import RULES, Rule
from unrender.printable import excerpt_at
from unrender.verify import Report, Verdict, verify, verify_quickly
from unrender.verify.verdicts import CapabilityFinding, diff

_VERDICTS = (Verdict.PASSED, Verdict.SKIPPED, Verdict.FAILED)
_LABEL = 12
"""Minimum width of labels, which aligns rows that are printed separately."""
_REASONS = 3
"""Maximum number of reasons listed for skipped checks."""
_SEVERITIES = list(Severity)
_DIFF_STYLES = {"-": "red", "+": "green"}


@click.command(short_help="Show how a model writes its answers.")
@template_argument
@template_name_option
@all_option
@json_option
def inspect_command(template: str, *, template_name: str | None, everything: bool, as_json: bool) -> None:
    """Show a model's output format, the results of its checks, and settings for an engine."""
    loaded = load_template(template, name=template_name)
    report = verify_quickly(loaded)
    if report.refusal:
        raise BadInput(f"{template}: {report.refusal}")
    if as_json:
        print_json(_as_data(loaded, report))
    else:
        _show_template(template, loaded, report, everything=everything)


def _plan(template: ChatTemplate) -> Plan:
    return plan_tools(template.format, template.capabilities, "auto", template._with_tools.source)


def _as_data(template: ChatTemplate, report: Report) -> dict[str, Any]:
    analysis, plan = template.analysis, _plan(template)
    return {
        "format": template.format.to_dict(),
        "capabilities": asdict(analysis.capabilities),
        "help": {name: getattr(plan, name) for name in ("offers", "format_name", "writes_calls", "writes_results")},
        "continuation": _continuation_data(template.continuation),
        "checks": report.to_dict(),
        "evidence": [asdict(evidence) | {"split": asdict(evidence.split)} for evidence in analysis.evidence],
        "diagnostics": list(analysis.diagnostics),
    }


def _continuation_data(found: Continuation) -> dict[str, Any]:
    """Return the findings about the template's next turns, as plain JSON data."""
    data = {item.name: getattr(found, item.name) for item in fields(found)}
    plain = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in data.items()}
    witness = found.witness and {name: getattr(found.witness, name) for name in ("why", "what", "before", "after")}
    return {"append_only": found.append_only, **plain, "witness": witness}


def _show_template(name: str, template: ChatTemplate, report: Report, *, everything: bool) -> None:
    """Print sample answers and a summary. With `everything`, also print all fields, checks and evidence."""
    analysis = template.analysis
    print_line((titled(name), "bold"), "   ", *verdict_of(report))
    for text in answers(analysis):
        print_line()
        print_block(text, indent=INDENT)
    print_line()
    rows = summary_rows(analysis, _plan(template))
    print_rows([(label.ljust(_LABEL), text) for label, text in rows])
    if not everything:
        return
    print_heading("Format", "fields that differ from the default")
    print_rows([*field_rows(template.format)])
    print_heading("Capabilities", "what the template does with a conversation")
    print_rows(field_texts(analysis.capabilities))
    print_heading("Next turn", "what the template writes after an answer")
    print_rows([*template.continuation.rows()])
    print_heading("Checks", "answers that the template wrote, parsed back")
    print_rows([_finding_row(finding) for finding in report.findings])
    print_heading("Evidence", f"from {analysis.renderings} renderings, which --json contains")
    print_rows(
        [
            (f"{found.comparison:<3}{found.part}", found.finding + (f" ({found.rule})" if found.rule else ""))
            for found in analysis.evidence
        ]
    )


@click.command(short_help="Test a format on its template.")
@click.argument("templates", nargs=-1, type=InputPath(), required=True)
@click.option("--samples", default=8, show_default=True, help="Number of answers per capability.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random answers.")
@all_option
@examining_options
def verify_command(
    templates: tuple[str, ...],
    *,
    samples: int,
    seed: int,
    everything: bool,
    timeout: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Render random answers with a template, parse them back, and compare.

    TEMPLATES may include directories. Several templates are checked at a time, each in its own process, with a table of results. Grammars
    are checked with the installed engine libraries. The exit code is 1 if a check failed, and 2 if a template can't be checked or renders
    no conversation at all. Findings about the template's history don't change it.
    """
    outcomes = examine(templates, partial(_report, samples=samples, seed=seed), timeout=timeout, jobs=jobs)
    if as_json:
        print_data(outcomes, Report.to_dict)
    elif len(outcomes) == 1 and outcomes[0].result:
        show_report(outcomes[0].name, outcomes[0].result, everything=everything)
    else:
        _show_reports(outcomes)
    refused = any(outcome.result.refusal for outcome in outcomes if outcome.result)
    sys.exit(UNUSABLE if refused else exit_code(outcomes, lambda report: bool(report.failed)))


def _finding_row(finding: CapabilityFinding) -> LabelledRow:
    capability, _, verdict = str(finding).partition(": ")
    return capability, verdict


def _history_row(finding: CapabilityFinding) -> LabelledRow:
    reason = f": {finding.reason}" if finding.reason else ""
    return finding.capability, finding.verdict.in_history + reason


def _report(name: str, *, samples: int, seed: int) -> Report:
    return verify(load_template(name), samples=samples, seed=seed)


def show_report(name: str, report: Report, *, everything: bool = False) -> None:
    """Print the verdict with counts, the skipped checks by reason, and each failure with its diff. With `everything`, print all findings."""
    print_line((titled(name), "bold"), "   ", *verdict_of(report))
    print_rows([_finding_row(it) for it in report.findings] if everything else [*_skipped_rows(report)])
    if report.history and everything:
        print_heading("History", "does each prompt start with the previous prompt and its answer?")
        print_rows([_history_row(it) for it in report.history])
    elif report.history:
        print_rows([_history_summary(report)])
    if report.forgeries:
        print_rows([("forgery   ", report.forged)])
    for finding in (*report.failed, *(report.history if everything else ())):
        if example := finding.counterexample:
            changed = "is changed in the next prompt"
            failed = f"failed ({finding.held} of {finding.total} passed), fed {example.chunking}"
            print_heading(finding.capability, failed if finding in report.failed else changed)
            print_block([(example.answer, "")] if finding in report.failed else [], indent=INDENT)
            for line in diff(example):
                print_block([(line, _DIFF_STYLES[line[0]])], indent=INDENT)


def verdict_of(report: Report) -> tuple[StyledPiece, str]:
    """Return the verdict on a template, and a summary of the number of checks and answers."""
    if report.refusal:
        return (("NOT CHECKED", "red"), f"   {report.refusal}")
    counts = Counter(finding.verdict for finding in report.findings)
    passed, failed, answers = counts[Verdict.PASSED], counts[Verdict.FAILED], sum(it.total for it in report.findings)
    checks = f"{failed} of {passed + failed} checks" if failed else f"{passed} check{'s' * (passed != 1)}"
    word = ("FAILED", "red") if failed else ("PASSED", "green") if passed else ("SKIPPED", "dim")
    return word, f"   {checks}, {answers} answers"


def _skipped_rows(report: Report) -> Iterator[LabelledRow]:
    """Yield a row for each reason, with the number and the names of the skipped checks. The last row combines the remaining reasons."""
    groups = defaultdict[str, list[str]](list)
    for finding in report.findings:
        if finding.verdict is Verdict.SKIPPED:
            groups[finding.reason].append(finding.capability)
    found = sorted(groups.items(), key=lambda group: -len(group[1]))
    if len(found) > _REASONS:
        others = [name for _, names in found[_REASONS - 1 :] for name in names]
        found = [*found[: _REASONS - 1], ("other reasons (--all)", others)]
    for reason, names in found:
        text = f"{reason}: {', '.join(names)}"
        yield f"skipped {len(names):2}", shorten(text, max(width() - 14, NARROWEST), placeholder=" …")


def _history_summary(report: Report) -> LabelledRow:
    """Return a row with the number of follow-up prompts that start with the previous prompt and answer."""
    kept = [it.verdict is Verdict.PASSED for it in report.history if it.total]
    changed = f"{kept.count(False)} of {len(kept)} follow-ups rewrite the last answer (--all)"
    return "history   ", "every follow-up keeps the last answer" if all(kept) else changed


def _show_reports(outcomes: Sequence[Examined[Report]]) -> None:
    print_outcomes(outcomes, _VERDICTS, "", _report_cells)
    failed = sum(bool(outcome.result and outcome.result.failed) for outcome in outcomes)
    missing = sum(outcome.result is None for outcome in outcomes)
    words = f"{len(outcomes)} templates, {failed} with failed checks"
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
    help="Skip this rule.",
)
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default=str(Severity.ERROR),
    show_default=True,
    help="The least severe finding that makes the exit code 1.",
)
@click.option(
    "--explain",
    type=click.Choice([rule.name for rule in RULES]),
    metavar="RULE",
    help="Show only this rule, with its harm and the conversation.",
)
@click.option("--rules", "only_rules", is_flag=True, help="List the rules and exit.")
@examining_options
def lint_command(
    templates: tuple[str, ...],
    *,
    ignore: tuple[str, ...],
    fail_on: str,
    explain: str | None,
    only_rules: bool,
    timeout: float | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Render ordinary conversations, and report what goes wrong.

    TEMPLATES may include directories. Several templates are checked at a time, each in its own process, with a table of results. Errors set
    the exit code to 1; --fail-on does this for warnings or notes, too. The exit code is 2 if a template can't be checked.
    """
    if only_rules or (explain and not templates):
        _show_rules([rule for rule in RULES if explain in (None, rule.name)], as_json=as_json)
        return
    if not templates:
        raise click.UsageError("missing argument 'TEMPLATES...'")
    if explain:
        ignore = tuple(rule.name for rule in RULES if rule.name != explain)
    outcomes = examine(templates, partial(_findings, ignore=ignore), timeout=timeout, jobs=jobs)
    if as_json:
        print_data(outcomes, lambda findings: list(map(Finding.to_dict, findings)))
    elif len(outcomes) == 1 and outcomes[0].result is not None:
        _show_findings(outcomes[0].name, outcomes[0].result, explained=bool(explain))
    else:
        _show_linted(outcomes)
    failing = _SEVERITIES[: _SEVERITIES.index(Severity(fail_on)) + 1]
    sys.exit(exit_code(outcomes, lambda findings: any(it.severity in failing for it in findings)))


def _show_rules(rules: Sequence[Rule], *, as_json: bool) -> None:
    if as_json:
        print_json([{"name": rule.name, "severity": rule.severity, "looks_for": rule.looks_for} for rule in rules])
    else:
        print_table(["rule", "severity", "looks for"], [[rule.name, rule.severity, rule.looks_for] for rule in rules])
    if len(rules) == 1 and not as_json:
        print_rows([("harm", rules[0].harm), ("fix", rules[0].fix)])


def _findings(name: str, *, ignore: tuple[str, ...]) -> tuple[Finding, ...]:
    """Return the findings, errors first."""
    return tuple(sorted(lint(load_template(name), ignore=ignore), key=lambda it: _SEVERITIES.index(it.severity)))


def _show_findings(name: str, findings: Sequence[Finding], *, explained: bool) -> None:
    for it in findings:
        place = name if it.line is None else f"{name}:{it.line}"
        print_line((f"{place}: ", "bold"), signed(it.severity), f": {it.text} [{it.rule}]")
        for line in _source_lines(it):
            print_line((line, "dim"))
        if explained:
            shown = ["shown by", *[""] * len(it.messages)]
            rows = [("harm", it.harm), ("fix", it.fix), *zip(shown, map(_message_line, it.messages), strict=False)]
            print_rows([*rows, ("written", repr(it.excerpt))] if it.excerpt else rows)
        else:
            print_line(f"{INDENT}fix: {it.fix}")
    hint = "" if explained or not findings else ". Show a conversation: --explain RULE"
    print_line(f"{_counted(findings)} in {titled(name)}{hint}")


def _source_lines(finding: Finding) -> Iterator[str]:
    """Yield the template line that failed, shortened around the error, and a line of carets that mark the error."""
    code = finding.source.strip()
    if not code:
        return
    named = [finding.text.rpartition(": ")[2], *re.findall(r"'(\w+)'", finding.text)]
    part = next((text for text in named if text in code), code[0])
    shown, column = excerpt_at(code, code.index(part), max(width() - 8, NARROWEST))
    yield f"{finding.line:5} | {shown}"
    yield f"      | {' ' * column}{'^' * min(len(part), len(shown) - column)}"


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


def _show_linted(outcomes: Sequence[Examined[tuple[Finding, ...]]]) -> None:
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


def answers(analysis: Analysis, format: Format | None = None) -> list[Styled]:
    """Return complete sample answers, up to the end of the turn, in the analysis's format or in the `format` of a turn."""
    return [[_styled(piece) for piece in row] for row in analysis._pictures(format)]


def summary_rows(analysis: Analysis, plan: Plan) -> Iterator[LabelledRow]:
    """Yield a row for each topic of the summary."""
    rows = format_rows(analysis.format, analysis.capabilities.thinking_off)
    for topic, text in rows.items():
        yield topic, text
        if topic == "Tool calls" and plan.offers:
            yield "Tools", f"described in the system message, called as {inline(call_form(plan.format.tools))}"
    yield "Conversation", "; ".join(_conversation(analysis.capabilities))
    if analysis.diagnostics:
        yield "Not found", "; ".join(analysis.diagnostics)
    yield "Next", "unrender verify · unrender lint · unrender serve"


def _conversation(capabilities: Capabilities) -> Iterator[str]:
    yield f"tools: {'yes' if capabilities.supports_tools else 'no'}"
    if not capabilities.supports_system_role:
        yield "no system message"
    if capabilities.requires_nonnull_content and capabilities.supports_tool_calls:
        yield 'content: null is rejected, unrender sends ""'
    if refused := [*dict.fromkeys(refusal.feature for refusal in capabilities.refuses)]:
        yield f"refuses {refused[0]}" + (f" and {len(refused) - 1} more (--all)" if refused[1:] else "")


def field_rows(format_: Format) -> Iterator[LabelledRow]:
    """Yield the fields that differ from their defaults, followed by the other call syntaxes."""
    for path, text in field_texts(format_):
        yield path, repr(text)
    for tools in format_.tolerated:
        yield "tolerated", f"{''.join(_styled(piece)[0] for piece in call_picture(tools))!r}  {tools.why}"
    for spelling in format_.spellings:
        yield f"{spelling.marker!r} also as", ", ".join(map(repr, spelling.others))


def _styled(piece: PicturePiece) -> tuple[str, str]:
    return piece.text if piece.role == "marker" else f"«{piece.text}»", ROLE_STYLES.get(piece.role, "")
