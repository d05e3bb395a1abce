"""Traces and measures requests with OpenTelemetry's conventions for generative AI (`gen_ai.*`). Needs the extra `otel`.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/, whose names may still change. Spans don't contain message text.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from unrender import __version__
from unrender.gateway.record import Record, usage_of

if TYPE_CHECKING:
    from unrender.gateway.answers.answer import Answer

__all__ = ["Telemetry", "exporting"]

SCOPE = "unrender.gateway"
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_MEASURES = {
    "request.duration": ("Time from a request to the end of its answer.", _SECONDS),
    "time_to_first_token": ("Time from a request to the first chunk of its answer.", _SECONDS),
    "time_per_output_token": ("Time per token after the first.", _TOKEN_SECONDS),
}
"""Histograms with the buckets that the conventions specify."""


class Telemetry:
    """Sends spans and durations to the given providers, or to the global providers of the process."""

    def __init__(self, *, traces: Any = None, meters: Any = None) -> None:
        self.tracer: trace.Tracer = trace.get_tracer(SCOPE, __version__, tracer_provider=traces)
        meter = metrics.get_meter(SCOPE, __version__, meter_provider=meters)
        self.measures: dict[str, metrics.Histogram] = {
            name: meter.create_histogram(
                f"gen_ai.server.{name}", "s", about, explicit_bucket_boundaries_advisory=buckets
            )
            for name, (about, buckets) in _MEASURES.items()
        }

    def begin(self, headers: Mapping[str, str]) -> Span:
        """Start the span of a request in the trace that its headers name."""
        return Span(self, propagate.extract(headers))


class Span:
    """The span of one request."""

    def __init__(self, telemetry: Telemetry, parent: Any) -> None:
        self._telemetry = telemetry
        self._span = telemetry.tracer.start_span("chat", context=parent, kind=SpanKind.SERVER)

    def headers(self) -> dict[str, str]:
        """Return headers that make the engine's spans children of this one."""
        # Replace the client's span id in `traceparent` with this span's: a trace is client → gateway → engine.
        found: dict[str, str] = {}
        propagate.inject(found, trace.set_span_in_context(self._span))
        return found

    def end(self, record: Record, seconds: float, answer: Answer | None) -> None:
        """End the span, and record its durations."""
        told = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "unrender",
            "gen_ai.request.model": record.model,
        }
        if record.outcome != "ok":
            told["error.type"] = record.outcome
            self._span.set_status(Status(StatusCode.ERROR, record.outcome))
        self._span.update_name(f"chat {record.model}".strip())
        self._span.set_attributes({**told, **_attributes(record, answer)})
        self._span.end()
        self._measure(record, seconds, answer, told)

    def _measure(self, record: Record, seconds: float, answer: Answer | None, told: Mapping[str, str]) -> None:
        found, usage = {"request.duration": seconds}, usage_of(answer)
        if record.framed_after is not None:
            found["time_to_first_token"] = record.framed_after
            # The first token's time is `time_to_first_token`. The remaining time is divided among the other tokens.
            if usage is not None and usage.completion_tokens > 1:
                found["time_per_output_token"] = (seconds - record.framed_after) / (usage.completion_tokens - 1)
        for name, spent in found.items():
            self._telemetry.measures[name].record(spent, told)


def _attributes(record: Record, answer: Answer | None) -> dict[str, Any]:
    """Return the span attributes of a request and its answer."""
    if answer is None:
        return {}
    ask, usage = answer.ask, usage_of(answer)
    found: dict[str, Any] = {
        "gen_ai.request.max_tokens": ask.limit,
        "gen_ai.request.seed": ask.seed,
        "gen_ai.request.choice.count": ask.choices if ask.choices > 1 else None,
        "gen_ai.request.temperature": ask.sampling.get("temperature"),
        "gen_ai.request.top_p": ask.sampling.get("top_p"),
    }
    if usage is not None:
        found["gen_ai.response.model"] = record.model
        found["gen_ai.usage.input_tokens"] = usage.prompt_tokens
        found["gen_ai.usage.output_tokens"] = usage.completion_tokens
        if record.outcome == "ok":
            found["gen_ai.response.finish_reasons"] = [choice.outcome.reason or "stop" for choice in answer.choices]
    return {name: value for name, value in found.items() if value is not None}


def exporting() -> Telemetry:
    """Return a `Telemetry` that exports to the collector at `OTEL_EXPORTER_OTLP_ENDPOINT`.

    Raises `ImportError` if the extra `otel` is not installed.
    """
    exporters = "opentelemetry.exporter.otlp.proto.http"
    spans, measures = (importlib.import_module(f"{exporters}.{name}") for name in ("trace_exporter", "metric_exporter"))
    sdk = importlib.import_module("opentelemetry.sdk.trace")
    batches = importlib.import_module("opentelemetry.sdk.trace.export")
    meters = importlib.import_module("opentelemetry.sdk.metrics")
    readers = importlib.import_module("opentelemetry.sdk.metrics.export")
    traces = sdk.TracerProvider()
    traces.add_span_processor(batches.BatchSpanProcessor(spans.OTLPSpanExporter()))
    reader = readers.PeriodicExportingMetricReader(measures.OTLPMetricExporter())
    return Telemetry(traces=traces, meters=meters.MeterProvider(metric_readers=[reader]))
