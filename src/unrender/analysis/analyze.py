"""A template in, its `Analysis` out: capabilities, format, the evidence for each finding, and what stayed open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from unrender.analysis.capabilities import Capabilities
from unrender.analysis.content import find_content, find_tails, wrapper_end
from unrender.analysis.discovery import discover
from unrender.analysis.probes import Prober, Renderer, carries_needle
from unrender.analysis.reasoning import find_openings, find_reasoning
from unrender.analysis.tools import Known, find_tools
from unrender.analysis.turn import find_frame, next_opener
from unrender.format import Format, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was learnt of a template."""

    format: Format
    capabilities: Capabilities
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Per part of the format: the comparison that found it, and from what."""
    diagnostics: tuple[str, ...] = ()
    """What could not be determined, and why."""
    renderings: int = 0


def analyze(template: Renderer) -> Analysis:
    """Derive format and capabilities of a template by rendering probes and comparing. Raises nothing.

    What cannot be determined is left at its default and said in `diagnostics`. The result does not depend on the
    template's BOS and EOS tokens, on the clock, or on the probes' own words.
    """
    prober = discover(Prober(template=template))
    frame = find_frame(prober)
    openings = find_openings(prober, frame)
    tails = find_tails(prober, frame)
    reasoning = find_reasoning(prober, frame, openings, wrapper_end(tails))
    content, end = find_content(openings, tails, reasoning)
    tools = find_tools(prober, frame, Known(reasoning=reasoning, content=content, turn_end=end))
    opener = tools.tools.separator.strip()
    if opener and frame.header.endswith(opener):
        frame = find_frame(prober, part_opener=opener)
        openings = find_openings(prober, frame)
        reasoning = find_reasoning(prober, frame, openings, wrapper_end(tails))
        content, end = find_content(openings, tails, reasoning)
        tools = find_tools(prober, frame, Known(reasoning=reasoning, content=content, turn_end=end))
    header = frame.header.removeprefix(end) if end.strip() and frame.header != end else frame.header
    ends = [tools.end] if end else [next_opener(prober)]
    turn = Turn(
        headers=tuple(h for h in (header, frame.tool_header) if h),
        end=end,
        ends=tuple(e for e in ends if e and e != end),
        prefill=frame.prefill,
        prefill_no_thinking=frame.prefill_no_thinking,
        reasoning_to_content=reasoning.to_content,
        reasoning_to_tools=tools.reasoning_to_tools,
        content_to_tools=tools.content_to_tools,
        start_to_tools=tools.start_to_tools,
        tools_to_content=tools.tools_to_content,
        tools_first=tools.tools_first,
    )
    fmt = Format(turn=turn, reasoning=reasoning.reasoning, content=content, tools=tools.tools)
    assert not carries_needle(fmt.to_json())
    return Analysis(
        format=fmt, capabilities=prober.capabilities, diagnostics=tools.diagnostics, renderings=prober.renderings
    )
