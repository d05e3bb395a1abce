"""Counts and logs one request: names, times and numbers, never its content."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unrender import Usage
from unrender.gateway.metrics import Metrics, reading

if TYPE_CHECKING:
    from unrender.gateway.answers.answer import Answer
    from unrender.gateway.answers.turns import Prepared

_log = logging.getLogger("unrender.gateway.requests")


@dataclass(slots=True, kw_only=True)
class Record:
    """What is known about a request while it is answered."""

    surface: str
    model: str = ""
    """The name under which the model is served; "" where none was found."""
    outcome: str = "ok"
    """How it ended: "ok", "cancelled", or the kind of failure."""
    cancelled_by: str = ""
    """"client" or "drain", where it was cancelled."""
    rejected: str = ""
    """Why it was refused before there was an answer, in a word."""
    trace: str = ""
    """The id of the trace that it is part of."""
    begun: float = field(default_factory=time.monotonic)
    prepared: Prepared | None = None
    framed_after: float | None = None

    def framed(self) -> None:
        """Note the time of the first frame."""
        if self.framed_after is None:
            self.framed_after = time.monotonic() - self.begun

    def cancel(self, by: str) -> None:
        """Note that the answer was cancelled: `by` says who did not wait for it."""
        self.outcome, self.cancelled_by = "cancelled", by

    def end(self, metrics: Metrics, request_id: str, answer: Answer | None) -> float:
        """Count the request, and write its line of JSON to the log; returns the seconds that it took."""
        seconds = time.monotonic() - self.begun
        self._time(metrics, seconds)
        metrics.requests.labels(self.surface, self.model, self.outcome).inc()
        if self.cancelled_by:
            metrics.cancellations.labels(self.surface, self.cancelled_by).inc()
        if self.rejected:
            metrics.rejections.labels(self.rejected).inc()
        if answer is not None:
            self._count(metrics, answer)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", json.dumps(self._line(request_id, seconds, usage_of(answer))))
        return seconds

    def _time(self, metrics: Metrics, seconds: float) -> None:
        where = (self.surface, self.model)
        metrics.request.labels(*where).observe(seconds)
        if self.prepared is not None:
            metrics.prompt.labels(*where).observe(self.prepared.prompt_seconds)
            if self.prepared.grammar_seconds is not None:
                metrics.grammar.labels(*where).observe(self.prepared.grammar_seconds)
        if self.framed_after is not None:
            metrics.first.labels(*where).observe(self.framed_after)

    def _count(self, metrics: Metrics, answer: Answer) -> None:
        # A 400 from an engine that was given a grammar is nearly always for the grammar.
        refused = bool(answer.prepared.grammar) and self.outcome == "invalid"
        metrics.grammars.labels(self.model, "refused" if refused else answer.prepared.grammar_result).inc()
        for kind in answer.errors:
            metrics.engine_errors.labels(self.model, kind).inc()
        usage = usage_of(answer)
        if usage is not None:
            metrics.count_usage(self.model, usage)
        if self.outcome == "ok":
            for choice in answer.choices:
                metrics.answers.labels(self.model, reading(choice.outcome, choice.broken)).inc()

    def _line(self, request_id: str, seconds: float, usage: Usage | None) -> dict[str, object]:
        return {
            "request": request_id,
            **({"trace": self.trace} if self.trace else {}),
            "surface": self.surface,
            "model": self.model,
            "outcome": self.outcome,
            "seconds": round(seconds, 4),
            "first_chunk": self.framed_after and round(self.framed_after, 4),
            "prompt_tokens": usage and usage.prompt_tokens,
            "completion_tokens": usage and usage.completion_tokens,
        }


def usage_of(answer: Answer | None) -> Usage | None:
    """Return the tokens that an answer has used so far; None when nothing was generated."""
    return answer.usage if answer is not None and answer.choices else None
