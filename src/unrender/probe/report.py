"""Describes what was found: as data, as text, and as a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from unrender.format import Format
from unrender.probe.causes import Cause, find_causes, parts, rate_of
from unrender.probe.evidence import Evidence, format_rank
from unrender.probe.observed import with_observed


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """The result of probing one engine."""

    engine: str
    """The engine's address, or its kind."""
    found: Evidence

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The causes of trouble, worst first."""
        return find_causes(self.found)

    @cached_property
    def format(self) -> Format:
        """The template's format, with the call syntaxes in which the model was observed to write calls."""
        return with_observed(self.found, self.engine)

    @cached_property
    def parts(self) -> tuple[tuple[str, int, dict[str, int]], ...]:
        """Numbers of answers by part of the tasks: a name, all answers, and the answers by kind and "right"."""
        return tuple(parts(self.found))

    @property
    def right(self) -> int:
        """Number of answers with the wanted calls, and without others."""
        return sum(answer.right for answer in self.found.answers)

    @property
    def tool_format(self) -> str:
        """The best value of `tool_format` for this model: "auto", unless the template has no tools."""
        return self.found.tool_format

    @property
    def ok(self) -> bool:
        """True if no causes were found."""
        return not self.causes

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        found = self.found
        return {
            "engine": self.engine,
            "ok": self.ok,
            "causes": list(map(asdict, self.causes)),
            "right": self.right,
            "asked": len(found.answers),
            "skipped": found.skipped,
            "seconds": round(found.seconds, 1),
            "tokens_per_second": round(rate_of(found.answers), 1),
            "context": found.context,
            "grammar": found.grammar,
            "tool_format": found.tool_format,
            "tool_formats": {name: format_rank(answers) for name, answers in found.formats.items()},
            "syntaxes": dict(Counter(it.detail for it in found.answers if it.kind == "other")),
            "under_grammar": {"asked": len(found.bound), "right": sum(answer.right for answer in found.bound)},
            "parts": {name: {"asked": asked, **kinds} for name, asked, kinds in self.parts},
            "answers": [answer.to_dict() for answer in found.answers],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as lines of text, without the single answers."""
        found = self.found
        skipped = f", {found.skipped} skipped for lack of time" if found.skipped else ""
        yield f"{self.engine}: {self.right} of {len(found.answers)} answers right, in {found.seconds:.0f} s{skipped}"
        for cause in self.causes:
            yield f"{cause.level}: {cause.name}: {cause.what}"
            yield f"  Seen: {cause.evidence}"
            yield f"  Fix:  {cause.fix}"
        if self.ok:
            yield "no causes of trouble found"
        if found.formats:
            yield f"best tool_format: {found.tool_format}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def page(*reports: ProbeReport) -> str:
    """Return a page that shows one report, or compares several. The page is a single file that loads nothing."""
    text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps([report.to_dict() for report in reports], ensure_ascii=False).replace("<", "\\u003c")
    return text.replace("[/*REPORTS*/]", data)
