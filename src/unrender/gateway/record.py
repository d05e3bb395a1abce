"""One request → what is counted and logged of it: names, times and numbers, never a word of what was said."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unrender.gateway.metrics import Metrics, reading

if TYPE_CHECKING:
    from unrender.gateway.answer import Answer

_log = logging.getLogger("unrender.gateway.requests")


@dataclass(slots=True, kw_only=True)
class Record:
    """What is known of a request while it is answered."""

    surface: str
    model: str = ""
    """The name under which the model is served; "" where none was found."""
    outcome: str = "ok"
    """How it ended: "ok", "cancelled", or the kind of failure."""
    begun: float = field(default_factory=time.monotonic)
    prepared_after: float | None = None
    framed_after: float | None = None

    def prepared(self) -> None:
        """Note that the prompt is ready."""
        self.prepared_after = time.monotonic() - self.begun

    def framed(self) -> None:
        """Note the first frame."""
        if self.framed_after is None:
            self.framed_after = time.monotonic() - self.begun

    def end(self, metrics: Metrics, request_id: str, answer: Answer | None) -> None:
        """Count the request, and write its line to the log, as JSON."""
        seconds = time.monotonic() - self.begun
        where = (self.surface, self.model)
        metrics.requests.add(*where, self.outcome)
        metrics.request.observe(seconds, *where)
        if self.prepared_after is not None:
            metrics.prepare.observe(self.prepared_after, *where)
        if self.framed_after is not None:
            metrics.first.observe(self.framed_after, *where)
        if answer is not None:
            self._count(metrics, answer)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", json.dumps(self._line(request_id, seconds, answer)))

    def _count(self, metrics: Metrics, answer: Answer) -> None:
        grammar = "sent" if answer.prepared.grammar else "none"
        lost = any(warning.startswith("not constrained") for warning in answer.prepared.warnings)
        metrics.grammars.add(self.model, "relaxed" if lost else grammar)
        if answer.choices:
            metrics.count_usage(self.model, answer.usage)
        if self.outcome == "ok":
            for choice in answer.choices:
                metrics.answers.add(self.model, reading(choice.outcome, choice.broken))

    def _line(self, request_id: str, seconds: float, answer: Answer | None) -> dict[str, object]:
        usage = answer.usage if answer is not None and answer.choices else None
        return {
            "request": request_id,
            "surface": self.surface,
            "model": self.model,
            "outcome": self.outcome,
            "seconds": round(seconds, 4),
            "first_frame": self.framed_after and round(self.framed_after, 4),
            "prompt_tokens": usage and usage.prompt_tokens,
            "completion_tokens": usage and usage.completion_tokens,
        }
