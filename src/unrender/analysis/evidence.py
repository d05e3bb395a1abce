"""A finished format and its template in, the evidence out: which comparison shows each part, in which rendering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unrender.analysis.probes import CONTENT, REASONING, Message, Prober, assistant, make_calls
from unrender.analysis.result import Evidence
from unrender.analysis.turn import Frame
from unrender.format import CallIdPosition, Format, ReasoningMode, Slot, ToolMode

_LONGEST = 400
"""Characters of a rendering that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A rendering, as words and as a probe."""

    part: str
    comparison: str
    finding: str
    message: Message


_CONTENT = (
    _Source(
        part="content", comparison="C1", finding="content alone against calls and reasoning", message=assistant(CONTENT)
    ),
)


def collect_evidence(prober: Prober, frame: Frame, fmt: Format, reasoning_comparison: str) -> tuple[Evidence, ...]:
    """Return the evidence for each part of `fmt` that was found; nothing is rendered that was not rendered before."""
    sources = [*_reasoning(fmt, reasoning_comparison), *_CONTENT, *_tools(fmt)]
    shown = [
        Evidence(
            part=source.part,
            comparison=source.comparison,
            finding=source.finding,
            rendering=(frame.body(prober.answer(source.message)) or "")[:_LONGEST],
        )
        for source in sources
    ]
    return (*_turn(fmt, frame), *shown)


def _turn(fmt: Format, frame: Frame) -> Iterator[Evidence]:
    yield Evidence(
        part="turn.headers",
        comparison="",
        finding="what the generation prompt and all answers to one question begin with",
        rendering=frame.lead,
    )
    if fmt.turn.prefill or fmt.turn.prefill_no_thinking:
        yield Evidence(
            part="turn.prefill",
            comparison="R2",
            finding="what the generation prompt writes behind the header, with thinking on against off",
            rendering=f"{fmt.turn.prefill!r} / {fmt.turn.prefill_no_thinking!r}",
        )


def _reasoning(fmt: Format, comparison: str) -> Iterator[_Source]:
    if fmt.reasoning.mode is ReasoningMode.NONE:
        return
    findings = {
        "R1": "an answer with reasoning against one without",
        "R2": "the generation prompt with thinking on against off",
        "R3": "reasoning beside content against reasoning beside calls",
    }
    calls = make_calls(1) if comparison == "R3" else ()
    content = "" if calls else CONTENT
    yield _Source(
        part="reasoning",
        comparison=comparison,
        finding=findings.get(comparison, ""),
        message=assistant(content, REASONING, calls),
    )


def _tools(fmt: Format) -> Iterator[_Source]:
    tools = fmt.tools
    if tools.mode is ToolMode.NONE:
        return
    one, two = assistant(calls=make_calls(1)), assistant(calls=make_calls(2))
    yield _Source(part="tools.mode", comparison="T1", finding="an answer with a call", message=one)
    if tools.parallel:
        finding = "one call against two: what stands between them is the call's own"
        yield _Source(part="tools.call_start", comparison="T2", finding=finding, message=two)
    yield _Source(
        part="tools.function",
        comparison="T3",
        finding="where the functions' names stand",
        message=two if tools.parallel else one,
    )
    if tools.arguments.entry:
        call = assistant(calls=make_calls(1, 2))
        yield _Source(
            part="tools.arguments.entry",
            comparison="A1",
            finding="where keys stand, one argument against two",
            message=call,
        )
        yield _Source(
            part="tools.arguments.codec",
            comparison="A2",
            finding="values of every kind, written again exactly",
            message=one,
        )
        yield _Source(
            part="tools.arguments.separator", comparison="T5", finding="one argument against two", message=call
        )
    yield _Source(
        part="tools.arguments.when_empty",
        comparison="T6",
        finding="a call without arguments",
        message=assistant(calls=make_calls(1, 0)),
    )
    if tools.call_id is not CallIdPosition.NONE or Slot.INDEX in tools.function:
        yield _Source(part="tools.function", comparison="T7", finding="ids and counters of two calls", message=two)
