"""Time to build the grammars of one turn with 1, 10 and 100 tools, and how it grows.

Run `python benchmarks/grammar.py`; the target is 10 tools in at most 10 ms per dialect.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from unrender.emit.answer import Answer
from unrender.format import Arguments, Codec, Format, Reasoning, ReasoningMode, Slot, Strings, ToolMode, Tools, Turn
from unrender.messages import Request, Tool

COUNTS = (1, 10, 100)
ROUNDS = 15

JSON_CALLS = Tools(
    mode=ToolMode.JSON_NATIVE,
    call_start="<tool_call>\n",
    call_end="\n</tool_call>",
    separator="\n",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
)
TAGGED_CALLS = Tools(
    mode=ToolMode.TAG_WITH_TAGGED,
    call_start="<tool_call>\n",
    call_end="</tool_call>",
    separator="\n",
    function=("<function=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</function>\n"),
    arguments=Arguments(
        entry=("<parameter=", Slot.KEY, ">\n", Slot.VALUE, "\n</parameter>\n"), codec=Codec(strings=Strings.RAW)
    ),
)


def format_of(calls: Tools) -> Format:
    """Return a format with reasoning, content and these calls."""
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
    turn = Turn(end="<|im_end|>\n", reasoning_to_content="\n\n", content_to_tools="\n", reasoning_to_tools="\n\n")
    return Format(turn=turn, reasoning=reasoning, tools=calls)


def tools(count: int) -> tuple[Tool, ...]:
    """Return tools with the schemas that people write: a few strings, numbers, words to choose from, and a list."""
    return tuple(
        Tool(
            name=f"tool_{number}",
            parameters={
                "type": "object",
                "properties": {
                    f"city_{number}": {"type": "string", "description": "Where."},
                    "days": {"type": "integer", "minimum": 1, "maximum": 14 + number},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
                    "place": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
                },
                "required": [f"city_{number}"],
            },
        )
        for number in range(count)
    )


def milliseconds(build: Callable[[], object]) -> float:
    """Return the median time of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        build()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main() -> None:
    """Print a table: one line per format and dialect, milliseconds by the number of tools."""
    print(f"{'calls':8} {'dialect':16}" + "".join(f"{count:>6} tools" for count in COUNTS) + "   100 ÷ 10")
    for name, calls in (("json", JSON_CALLS), ("tagged", TAGGED_CALLS)):
        for dialect in ("gbnf", "lark", "structural_tag"):
            times = []
            for count in COUNTS:
                answer = Answer(format=format_of(calls), request=Request(tools=tools(count)))
                times.append(milliseconds(getattr(answer, dialect)))
            row = "".join(f"{spent:>9.1f} ms" for spent in times)
            print(f"{name:8} {dialect:16}{row}{times[2] / times[1]:>10.1f}")


if __name__ == "__main__":
    main()
