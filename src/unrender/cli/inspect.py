"""`unrender inspect`: shows what the model writes, and how that is known."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from unrender import ChatTemplate
from unrender.analysis import Analysis, Evidence
from unrender.cli.format.description import answers, capability_rows, help_rows, sections
from unrender.cli.inputs import json_option, load, template_argument, template_name_option
from unrender.cli.output import INDENT, print_heading, print_rows
from unrender.cli.terminal import DIM, GREEN, NO_STYLE, RED, print_block, print_columns, print_json, print_line
from unrender.cli.verify import finding_row
from unrender.injection import Plan, plan_tools
from unrender.verify import Report, verify


@click.command(short_help="Show what was derived, and how.")
@template_argument
@template_name_option
@click.option(
    "--compare", metavar="NAME", help="Show one comparison: what it rendered, side by side, and what differs, e.g. R1."
)
@json_option
def inspect_command(template: str, *, template_name: str | None, compare: str | None, as_json: bool) -> None:
    """Show what was derived: answers, markers, capabilities, proof and evidence.

    With --compare, show one of the comparisons of the analysis instead: both renderings side by side, and what differs.
    """
    loaded = load(template, name=template_name)
    if compare:
        _show_comparison(compare, loaded.analysis)
    elif as_json:
        print_json(_as_data(loaded))
    else:
        _show(template, loaded)


def _plan(template: ChatTemplate) -> Plan:
    return plan_tools(template.format, template.capabilities, "auto", template.template.source)


def _as_data(template: ChatTemplate) -> dict[str, Any]:
    analysis, plan = template.analysis, _plan(template)
    return {
        "format": template.format.to_dict(),
        "capabilities": asdict(analysis.capabilities),
        "help": {name: getattr(plan, name) for name in ("offers", "format_name", "writes_calls", "writes_results")},
        "proof": _prove(template).to_dict(),
        "evidence": [asdict(evidence) | {"split": asdict(evidence.split)} for evidence in analysis.evidence],
        "diagnostics": list(analysis.diagnostics),
    }


def _prove(template: ChatTemplate) -> Report:
    return verify(template)


def _show_comparison(name: str, analysis: Analysis) -> None:
    found = [evidence for evidence in analysis.evidence if evidence.comparison == name.upper()]
    if not found:
        known = ", ".join(sorted({evidence.comparison for evidence in analysis.evidence if evidence.comparison}))
        raise click.BadParameter(f"no comparison {name!r} was made; there are {known}", param_hint="--compare")
    for evidence in found:
        _show_evidence(evidence)


def _show_evidence(evidence: Evidence) -> None:
    """Print both texts beside each other, what differs in colours, and below them what differs once more, quoted."""
    split, sides = evidence.split, (evidence.left, evidence.right)
    print_heading(f"{evidence.comparison}  {evidence.part}", evidence.finding)
    print_columns([(evidence.left.what, DIM)], [(evidence.right.what, DIM)], indent=INDENT)
    print_columns(
        [(split.prefix, NO_STYLE), (split.left, RED), (split.suffix, NO_STYLE)],
        [(split.prefix, NO_STYLE), (split.right, GREEN), (split.suffix, NO_STYLE)],
        indent=INDENT,
    )
    alone = (split.left, split.right)
    rows = [(f"only in {side.what}", repr(text)) for side, text in zip(sides, alone, strict=True) if text]
    rows = rows or [("difference", "none")]
    print_line()
    print_rows([*rows, ("decided by", evidence.rule)] if evidence.rule else rows)


def _summary(evidence: Evidence) -> str:
    return f"{evidence.finding} ({evidence.rule})" if evidence.rule else evidence.finding


def _show(name: str, template: ChatTemplate) -> None:
    analysis = template.analysis
    print_heading(name, "")
    for text in answers(template.format, analysis.capabilities):
        print_heading("An answer", "«slots» are the model's own words")
        print_block(text, indent=INDENT)
    for title, summary, rows in sections(template.format):
        print_heading(title, summary)
        print_rows(rows)
    print_heading("Capabilities", "what the template does with a conversation")
    print_rows(capability_rows(analysis.capabilities))
    helped = help_rows(_plan(template))
    if helped:
        print_heading("Help", "what prepare() does for tools, as the template does not")
        print_rows(helped)
    print_heading("Proof", "answers that the template wrote, parsed back")
    print_rows([finding_row(finding) for finding in _prove(template).findings])
    print_heading("Evidence", f"from {analysis.renderings} renderings; --compare NAME shows them")
    print_rows([(f"{found.comparison:<3}{found.part}", _summary(found)) for found in analysis.evidence])
    if analysis.diagnostics:
        print_heading("Not determined", "")
        print_rows([("-", diagnostic) for diagnostic in analysis.diagnostics])
