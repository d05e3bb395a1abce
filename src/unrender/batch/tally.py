"""Adds readings up: calls of each tool, how rows ended, and the commonest reasons.

Rules: names and reasons come from models, so only so many of them are kept apart; the rest are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unrender.batch.rows import Reading
from unrender.limits import LONGEST_COUNTED_NAME, MOST_COUNTED_NAMES

REST = "(others)"


@dataclass(slots=True)
class Tally:
    """Counts of the rows that were read."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Rows by status."""
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    """Calls by tool, then by status."""
    reasons: Counter[str] = field(default_factory=Counter)
    """What was expected where something else was met."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Why rows could not be read at all."""

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return self.statuses.total()

    def take(self, reading: Reading) -> None:
        """Count one row."""
        self.statuses[reading.status.value] += 1
        message = reading.message
        for call in (*message.tool_calls, *(dead for dead in message.dead_calls if dead not in message.tool_calls)):
            self._calls_of(call.name)[call.status.value] += 1
        if reading.reasons:
            count(self.reasons, reading.reasons)

    def refuse(self, reason: str) -> None:
        """Count a row that could not be read."""
        self.statuses["unreadable"] += 1
        count(self.refusals, [reason])

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.statuses.update(other.statuses)
        for name, statuses in other.calls.items():
            self._calls_of(name).update(statuses)
        for mine, theirs in ((self.reasons, other.reasons), (self.refusals, other.refusals)):
            for reason, times in theirs.items():
                count(mine, [reason], times)

    def _calls_of(self, name: str) -> Counter[str]:
        known = _within(name, self.calls)
        return self.calls.setdefault(known, Counter())

    def data(self) -> dict[str, Any]:
        """Return the counts as plain JSON data."""
        return {
            "statuses": dict(self.statuses),
            "calls": {name: dict(statuses) for name, statuses in self.calls.items()},
            "reasons": dict(self.reasons),
            "refusals": dict(self.refusals),
        }

    @classmethod
    def restore(cls, data: Mapping[str, Any]) -> Tally:
        """Return the tally that `data` was made from."""
        return cls(
            statuses=Counter(data["statuses"]),
            calls={name: Counter(statuses) for name, statuses in data["calls"].items()},
            reasons=Counter(data["reasons"]),
            refusals=Counter(data["refusals"]),
        )


def count(counter: Counter[str], names: Iterable[str], times: int = 1) -> None:
    """Add `times` to the count of each name; names beyond the limit are counted together."""
    for name in names:
        counter[_within(name, counter)] += times


def _within(name: str, known: Mapping[str, Any]) -> str:
    name = named(name)
    return name if name in known or len(known) < MOST_COUNTED_NAMES else REST


def named(name: str) -> str:
    """Return the name under which something is counted: a name that is too long is cut."""
    return name[:LONGEST_COUNTED_NAME]
