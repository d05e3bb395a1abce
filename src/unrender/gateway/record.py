"""Records each request in Prometheus metrics and as a JSON log line, without message content.

Rules: labels have few values and never contain text from clients. The label of a model is its configured name. Metrics of a stream are
updated when it starts and ends, never per chunk.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from unrender.gateway.answers.kept import Conversations
from unrender.openai import Usage

if TYPE_CHECKING:
    from unrender.gateway.answers import RunningAnswer
    from unrender.gateway.answers.choice import ChoiceState
    from unrender.gateway.answers.turns import Prepared

_REQUESTS = "unrender.gateway.requests"
_log = logging.getLogger(_REQUESTS)

_COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "requests_total": ("Requests by outcome.", ("surface", "model", "outcome")),
    "tokens_total": ("Tokens, as counted by the engine.", ("model", "kind")),
    "answers_total": ("Answers by parse result.", ("model", "reading")),
    "healings_total": ("Broken calls that the engine was asked to heal, by result.", ("model", "result")),
    "unread_calls_total": ("Answers with a call in another syntax that was not parsed.", ("model",)),
    "grammar_total": ("Answers by grammar result.", ("model", "result")),
    "prompts_total": (
        "Prompts, extended from a cached answer or rendered, by reason.",
        ("model", "result", "reason"),
    ),
    "prompt_characters_reused_total": (
        "Characters of extended prompts reused from the previous prompt and its answer.",
        ("model",),
    ),
    "marked_texts_total": ("Texts of requests that contain markers of the template.", ("model",)),
    "backend_errors_total": ("Failed engine jobs, including retried ones.", ("model", "kind")),
}
_KEPT: Mapping[str, tuple[str, Callable[[Conversations], int]]] = {
    "conversations": ("Answers cached for the next prompt of their conversation.", len),
    "bytes": ("Size of the cached answers in bytes.", attrgetter("weight")),
}
_TIMES = {
    "request_seconds": "Time from a request to the end of its answer.",
    "prompt_seconds": "Time to validate a request and render its prompt.",
    "grammar_seconds": "Time to build a grammar or find it in the cache.",
    "time_to_first_chunk_seconds": "Time from a request to the first chunk of its answer.",
}
"""Histograms by surface and model."""
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Histogram buckets, in seconds."""


class Metrics:
    """The gateway's counters, gauges and histograms."""

    def __init__(self, kept: Conversations) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"unrender_{name}", about, labels, registry=self._registry)
            for name, (about, labels) in _COUNTERS.items()
        }
        self._times = {
            name: Histogram(f"unrender_{name}", about, ("surface", "model"), registry=self._registry, buckets=_BUCKETS)
            for name, about in _TIMES.items()
        }
        self.ready: Gauge = Gauge(
            "unrender_engine_ready", "1 if the model's engine is ready.", ("model",), registry=self._registry
        )
        self.streams: Gauge = Gauge("unrender_streams", "Answers in progress.", registry=self._registry)
        for name, (about, value) in _KEPT.items():
            gauge = Gauge(f"unrender_kept_{name}", about, registry=self._registry)
            gauge.set_function(partial(value, kept))

    def count(self, name: str, *labels: str, times: float = 1) -> None:
        """Increase a counter."""
        self._counters[name].labels(*labels).inc(times)

    def time(self, name: str, seconds: float, *labels: str) -> None:
        """Record a duration in a histogram."""
        self._times[name].labels(*labels).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)


@dataclass(slots=True, kw_only=True)
class Record:
    """Data about one request for the metrics and the log."""

    surface: str
    model: str = ""
    """Configured name of the model; "" if no model was found."""
    outcome: str = "ok"
    """Outcome of the request: "ok", "cancelled", or the kind of failure."""
    trace: str = ""
    """Id of the request's trace."""
    begun: float = field(default_factory=time.monotonic)
    prepared: Prepared | None = None
    framed_after: float | None = None

    def framed(self) -> None:
        """Record the time of the first frame."""
        if self.framed_after is None:
            self.framed_after = time.monotonic() - self.begun

    def end(self, metrics: Metrics, request_id: str, answer: RunningAnswer | None) -> None:
        """Update the metrics and write the request's log line."""
        seconds, prepared = time.monotonic() - self.begun, self.prepared
        times = {
            "request_seconds": seconds,
            "prompt_seconds": prepared.prompt_seconds if prepared else None,
            "grammar_seconds": prepared.grammar_seconds if prepared else None,
            "time_to_first_chunk_seconds": self.framed_after,
        }
        for name, spent in times.items():
            if spent is not None:
                metrics.time(name, spent, self.surface, self.model)
        metrics.count("requests_total", self.surface, self.model, self.outcome)
        if answer is not None:
            self._count(metrics, answer)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s", json.dumps(self._line(request_id, seconds, answer)))

    def _count(self, metrics: Metrics, answer: RunningAnswer) -> None:
        # Count this as a rejected grammar: if a grammar was sent, a 400 from the engine is nearly always about the grammar.
        refused = bool(answer.prepared.grammar) and self.outcome == "invalid"
        metrics.count("grammar_total", self.model, "refused" if refused else answer.prepared.grammar_result)
        if answer.unread:
            metrics.count("unread_calls_total", self.model, times=answer.unread)
        for kind in answer.errors:
            metrics.count("backend_errors_total", self.model, kind)
        origin = answer.prepared.origin
        metrics.count("prompts_total", self.model, "rendered" if origin.reason else "extended", origin.reason)
        if origin.reused:
            metrics.count("prompt_characters_reused_total", self.model, times=origin.reused)
        if marked := answer.prepared.turn.marked:
            metrics.count("marked_texts_total", self.model, times=len(marked))
        if (usage := usage_of(answer)) is not None:
            tokens = {
                "prompt": usage.prompt_tokens,
                "cached": usage.cached_tokens,
                "completion": usage.completion_tokens,
                "reasoning": usage.reasoning_tokens,
                "healing": sum(choice.rewritten for choice in answer.choices),
            }
            for kind, number in tokens.items():
                if number:
                    metrics.count("tokens_total", self.model, kind, times=number)
        for choice in answer.choices:
            for result in results_of(choice):
                metrics.count("healings_total", self.model, result)
            if self.outcome == "ok":
                metrics.count("answers_total", self.model, reading(choice))

    def _line(self, request_id: str, seconds: float, answer: RunningAnswer | None) -> dict[str, object]:
        usage = usage_of(answer)
        healings = [result for choice in (answer.choices if answer else ()) for result in results_of(choice)]
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
            **({"healings": healings} if healings else {}),
        }


def usage_of(answer: RunningAnswer | None) -> Usage | None:
    """Return the token counts of an answer so far, or None if nothing was generated."""
    return answer.usage if answer is not None and answer.choices else None


def results_of(choice: ChoiceState) -> list[str]:
    """Return one word for each broken call that the engine was asked to heal."""
    return ["healed" if well else "not_healed" for _, well in choice.healings]


def reading(choice: ChoiceState) -> str:
    """Return one word for the outcome of parsing an answer, e.g. "clean" or "truncated"."""
    outcome = choice.outcome
    message = outcome.message
    statuses = {call.status for call in message.failed_calls}
    if "truncated" in statuses or outcome.reason == "length":
        return "truncated"
    if "invalid" in statuses:
        return "malformed"
    if not (message.content or message.reasoning or message.tool_calls):
        return "empty"
    if choice.mismatched:
        return "mismatched"
    return "healed" if choice.healings else "tolerated" if choice.broken else "clean"


class _Lines(logging.Formatter):
    """Formats a log record as one line of JSON with `time`, `level`, and either the request's fields or a `message`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        text = record.getMessage()
        line |= json.loads(text) if record.name == _REQUESTS else {"logger": record.name, "message": text}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write_log(stream: Any = None) -> logging.Handler:
    """Write the gateway's log and uvicorn's warnings to a stream as lines of JSON. Return the handler.

    The default stream is standard error.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines())
    for name, level in {"unrender.gateway": logging.INFO, "uvicorn": logging.WARNING}.items():
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False  # otherwise, a root handler would write each line again as text
    return handler
