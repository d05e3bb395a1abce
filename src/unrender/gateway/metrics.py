"""Counts what happens in a gateway, for Prometheus.

Rules: labels have few values, and no text of a client's makes a new one: a model's name is the one it is served under. A
stream is counted at its ends, never by the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest

from unrender import CallStatus, Usage
from unrender.gateway.surfaces.surface import Outcome

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds."""


class _Registry(CollectorRegistry):
    """The metrics of one gateway: a process may have several."""

    def collect(self) -> Iterable[Metric]:
        """Leave out the times when each series was made: every counter would be two in the text form."""
        for metric in super().collect():
            # `unrender_requests_created` beside `unrender_requests_total`: nobody asked for it, and it doubles what is read.
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """Everything that is counted; `streams` tells how many answers are on their way."""

    def __init__(self, streams: Callable[[], float]) -> None:
        self._registry = _Registry()
        self.requests: Counter = self._counter(
            "requests_total", "Requests, by how they ended.", "surface", "model", "outcome"
        )
        self.tokens: Counter = self._counter("tokens_total", "Tokens, as the engine counts them.", "model", "kind")
        self.answers: Counter = self._counter(
            "answers_total", "Answers, by how they could be read.", "model", "reading"
        )
        self.grammars: Counter = self._counter(
            "grammar_total", "Answers, by what became of a grammar.", "model", "result"
        )
        self.cancellations: Counter = self._counter(
            "cancellations_total", "Answers that were broken off, by whom.", "surface", "by"
        )
        self.rejections: Counter = self._counter(
            "rejections_total", "Requests that were refused before an answer, by the reason.", "reason"
        )
        self.engine_errors: Counter = self._counter(
            "backend_errors_total", "Jobs that an engine failed, those sent again included.", "model", "kind"
        )
        self.request: Histogram = self._histogram("request_seconds", "From a request to the end of its answer.")
        self.prompt: Histogram = self._histogram("prompt_seconds", "Checking a request and rendering its prompt.")
        self.grammar: Histogram = self._histogram("grammar_seconds", "Building a grammar, or finding it again.")
        self.first: Histogram = self._histogram(
            "time_to_first_chunk_seconds", "From a request to the first chunk of its answer."
        )
        Gauge("unrender_streams", "Answers on their way.", registry=self._registry).set_function(streams)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"unrender_{name}", about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str) -> Histogram:
        return Histogram(f"unrender_{name}", about, ("surface", "model"), registry=self._registry, buckets=_BUCKETS)

    def count_usage(self, model: str, usage: Usage) -> None:
        """Count an answer's tokens."""
        kinds = {
            "prompt": usage.prompt_tokens,
            "cached": usage.cached_tokens or 0,
            "completion": usage.completion_tokens,
            "reasoning": usage.reasoning_tokens or 0,
        }
        for kind, tokens in kinds.items():
            if tokens:
                self.tokens.labels(model, kind).inc(tokens)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text form."""
        return generate_latest(self._registry)


def reading(outcome: Outcome, broken: int) -> str:
    """Return one word for how well an answer could be read.

    `broken` is the number of places that the format does not allow.
    """
    message = outcome.message
    statuses = {call.status for call in message.dead_calls}
    if CallStatus.TRUNCATED in statuses or outcome.reason == "length":
        return "truncated"
    if CallStatus.INVALID in statuses:
        return "malformed"
    if not (message.content or message.reasoning or message.tool_calls):
        return "empty"
    return "tolerated" if broken else "clean"
