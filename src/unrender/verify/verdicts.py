"""Holds what verification found: a verdict per capability, how often it held, and the smallest counterexample."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What verification says of a capability: it holds, it does not, or nothing shows it."""

    PROVED = "proved"
    """Every rendering was parsed back into the message it was made of."""
    REFUTED = "refuted"
    """One rendering was not; a counterexample shows it."""
    NOT_OBSERVABLE = "not observable"
    """The template renders nothing that could tell."""

    @property
    def in_history(self) -> str:
        """What the verdict means for the history: whether the next prompt keeps what was written before it."""
        return {Verdict.PROVED: "kept", Verdict.REFUTED: "changed"}.get(self, str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A message that was not parsed back from its rendering."""

    answer: str
    """What the template wrote, as the model would."""
    expected: str
    found: str
    chunking: str
    """How the answer was cut, e.g. `whole` or `every 1`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityFinding:
    """The verdict on one capability."""

    capability: str
    verdict: Verdict
    held: int = 0
    """Renderings that were parsed back."""
    total: int = 0
    """Renderings that showed the capability."""
    counterexample: Counterexample | None = None
    reason: str = ""
    """Why it is not observable."""

    def __str__(self) -> str:
        count = f" ({self.held} of {self.total})" if self.total else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.capability}: {self.verdict}{count}{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings on one template."""

    findings: tuple[CapabilityFinding, ...]
    """What holds of the format: answers, prompts, grammars."""
    history: tuple[CapabilityFinding, ...] = ()
    """What holds of the template's history, whatever the format: whether each prompt begins with the one before."""

    @property
    def refuted(self) -> tuple[CapabilityFinding, ...]:
        """The findings that refute a capability."""
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.REFUTED)

    @property
    def proved(self) -> bool:
        """True when nothing is refuted and something is proved."""
        return not self.refuted and any(finding.verdict is Verdict.PROVED for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "proved": self.proved,
            "findings": [asdict(finding) for finding in self.findings],
            "history": [asdict(finding) for finding in self.history],
        }

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.findings, *self.history)))
