"""Adds the call syntaxes that a model was observed to use to its template's format, each with its evidence.

Strategy: the syntax that parses most of the remaining answers completely is added first, until no syntax parses two more. Observed syntaxes
are tolerated, never generated. Their calls count only if an offered tool's schema admits the arguments.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from unrender.errors import FormatError
from unrender.explain.nearest import best_syntaxes
from unrender.format import CallSyntax, Format
from unrender.probe.answers import Answer, read
from unrender.probe.evidence import Evidence

_FEW = 2
"""Minimum number of answers that show a syntax."""


def with_observed(found: Evidence, engine: str) -> Format:
    """Return the template's format with the observed syntaxes, in the order of their evidence."""
    format = found.answers[0].turn.format if found.tool_format != "auto" and found.answers else found.template.format
    calling = [answer for answer in found.answers if answer.task.wanted and not answer.error]
    left, day = [answer for answer in calling if answer.kind == "other"], datetime.now(UTC).date()
    read_by: dict[CallSyntax, list[Answer]] = {}
    for answer in left:
        for syntax in best_syntaxes(read(answer, repair="none", tolerated=False)):
            read_by.setdefault(syntax, []).append(answer)
    added: list[CallSyntax] = []
    while read_by:
        syntax = max(read_by, key=lambda syntax: sum(answer in left for answer in read_by[syntax]))
        those = [answer for answer in read_by.pop(syntax) if answer in left]
        if len(those) < _FEW:
            break
        why = f"observed in {len(those)} of {len(calling)} answers of {engine}, on {day}"
        added.append(replace(syntax, checked=True, why=why))
        left = [answer for answer in left if answer not in those]
    # A longer start marker is tried first: after the one of a single call, the other calls of a list would remain as text.
    added.sort(key=lambda it: len("".join(it.openers)), reverse=True)
    for syntax in added:
        with suppress(FormatError):  # a syntax may conflict with the format's own
            format = replace(format, tolerated=(*format.tolerated, syntax))
    return format
