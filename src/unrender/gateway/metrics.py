"""Counts what happens in a gateway, in the text form that Prometheus reads.

Rules: labels have few values, and no text of a client's makes a new one: a model's name is the one it is served under. A count
costs a dictionary look-up; a stream is counted at its ends, never by the chunk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unrender.gateway.surfaces.surface import Outcome
from unrender.messages.wire import CallStatus
from unrender.parser.completions import Usage

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds."""

Labels = tuple[str, ...]


@dataclass(slots=True)
class Counter:
    """Numbers that only grow, by their labels."""

    name: str
    about: str
    labels: Labels
    values: dict[Labels, float] = field(default_factory=dict)

    def add(self, *labels: str, by: float = 1) -> None:
        """Add `by` to the number with these labels."""
        self.values[labels] = self.values.get(labels, 0) + by

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        yield from _head(self.name, self.about, "counter")
        for labels, value in self.values.items():
            yield f"{self.name}{_braces(self.labels, labels)} {value:g}"


@dataclass(slots=True)
class Histogram:
    """Durations in seconds, by their labels."""

    name: str
    about: str
    labels: Labels
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=dict)

    def observe(self, seconds: float, *labels: str) -> None:
        """Add a duration."""
        counts = self.counts.setdefault(labels, [0] * (len(_BUCKETS) + 1))
        counts[bisect_left(_BUCKETS, seconds)] += 1
        self.sums[labels] = self.sums.get(labels, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        yield from _head(self.name, self.about, "histogram")
        names = (*self.labels, "le")
        for labels, counts in self.counts.items():
            total = 0
            for limit, count in zip((*map(str, _BUCKETS), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_braces(names, (*labels, limit))} {total}"
            yield f"{self.name}_sum{_braces(self.labels, labels)} {self.sums[labels]:.6f}"
            yield f"{self.name}_count{_braces(self.labels, labels)} {total}"


_TIMED = ("surface", "model")


class Metrics:
    """Everything that is counted."""

    def __init__(self) -> None:
        self.requests: Counter = Counter(
            "unrender_requests_total", "Requests, by how they ended.", ("surface", "model", "outcome")
        )
        self.tokens: Counter = Counter("unrender_tokens_total", "Tokens, as the engine counts them.", ("model", "kind"))
        self.answers: Counter = Counter(
            "unrender_answers_total", "Answers, by how they could be read.", ("model", "reading")
        )
        self.grammars: Counter = Counter(
            "unrender_grammar_total", "Answers, by what became of a grammar.", ("model", "result")
        )
        self.cancellations: Counter = Counter(
            "unrender_cancellations_total", "Answers that were broken off, by whom.", ("surface", "by")
        )
        self.rejections: Counter = Counter(
            "unrender_rejections_total", "Requests that were refused before an answer, by the reason.", ("reason",)
        )
        self.engine_errors: Counter = Counter(
            "unrender_backend_errors_total", "Jobs that an engine failed, those sent again included.", ("model", "kind")
        )
        self.request: Histogram = Histogram(
            "unrender_request_seconds", "From a request to the end of its answer.", _TIMED
        )
        self.prompt: Histogram = Histogram(
            "unrender_prompt_seconds", "Checking a request and rendering its prompt.", _TIMED
        )
        self.grammar: Histogram = Histogram(
            "unrender_grammar_seconds", "Building a grammar, or finding it again.", _TIMED
        )
        self.first: Histogram = Histogram(
            "unrender_time_to_first_chunk_seconds", "From a request to the first chunk of its answer.", _TIMED
        )

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
                self.tokens.add(model, kind, by=tokens)

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return all metrics in Prometheus' text form; `gauges` are numbers counted elsewhere."""
        counted: Sequence[Counter | Histogram] = (
            *(self.requests, self.tokens, self.answers, self.grammars),
            *(self.cancellations, self.rejections, self.engine_errors),
            *(self.request, self.prompt, self.grammar, self.first),
        )
        lines = [line for one in counted for line in one.lines()]
        for name, value in gauges.items():
            lines += [*_head(f"unrender_{name}", "Answers on their way.", "gauge"), f"unrender_{name} {value:g}"]
        return "\n".join(lines) + "\n"


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


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _braces(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
