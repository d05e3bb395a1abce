"""Bounds the cost of work on one template: each rendering, the analysis, and the grammar of one request.

>>> from unrender import ChatTemplate
>>> small = Bounds(rendering=Limits(steps=1_000))
>>> endless = "{% for m in messages * 1000 %}{{ m.role }}{% endfor %}"
>>> template = ChatTemplate.from_string(endless, bounds=small)
>>> template.prepare([{"role": "user", "content": "Hi"}])
Traceback (most recent call last):
unrender.errors.TemplateError: template, line 1: the template needs more than 1000 steps
"""

from __future__ import annotations

from dataclasses import dataclass

from unrender.analysis.ask.probes import Allowance
from unrender.rendering.cost import Limits
from unrender.schema.weights import Budget

__all__ = ["Allowance", "Bounds", "Budget", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Three sets of bounds, each with a default. The docstring of a bound says what happens beyond it."""

    rendering: Limits = Limits()  # noqa: RUF009 -- frozen
    """What one rendering of a prompt may cost, and the template's source. Beyond is a `TemplateError`."""
    analysis: Allowance = Allowance()  # noqa: RUF009 -- frozen
    """What the analysis of the template may cost. Beyond is a diagnostic, and the format's default."""
    grammar: Budget = Budget()  # noqa: RUF009 -- frozen
    """What the grammar of one request may take. Beyond is a `SchemaWarning`, or a `GrammarError`."""

    @property
    def analyses_as_usual(self) -> bool:
        """Whether an analysis made under the default bounds can be used for these."""
        return self.analysis == Allowance()
