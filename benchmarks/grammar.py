"""Time and size of a turn's grammars: with 1, 10 and 100 tools, and for large cases, with their growth.

Run `python benchmarks/grammar.py`. The targets: 10 tools in at most 10 ms in each dialect. Each large case must take at
most two seconds and 200 MB, and twice the input at most twice the time and size (2.3 times with noise).
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

from unrender.dialects.constraint import Dialect
from unrender.dialects.remainder import Remainder
from unrender.errors import SchemaWarning
from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Strings,
    TurnTexts,
    Typing,
)
from unrender.json_values import JsonSchema
from unrender.messages.wire import Request, Tool

COUNTS = (1, 10, 100)
ROUNDS = 5

_RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
JSON_CALLS = CallSyntax(
    call_start="<tool_call>\n",
    call_end="\n</tool_call>",
    separator="\n",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
)
TAGGED_CALLS = CallSyntax(
    call_start="<tool_call>\n",
    call_end="</tool_call>",
    separator="\n",
    function=("<function=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</function>\n"),
    arguments=Arguments(entry=("<parameter=", Slot.KEY, ">\n", Slot.VALUE, "\n</parameter>\n"), codec=_RAW),
)
PYTHONIC_CALLS = CallSyntax(
    section_start="[",
    section_end="]",
    separator=", ",
    function=(Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=_RAW,
    ),
)
CALLS = {"json": JSON_CALLS, "tagged": TAGGED_CALLS, "pythonic": PYTHONIC_CALLS}
DIALECTS = ("gbnf", "lark", "structural_tag")


def format_of(calls: CallSyntax) -> Format:
    """Return a format with reasoning, content and these calls."""
    reasoning = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
    turn = TurnTexts(end="<|im_end|>\n", reasoning_to_content="\n\n", content_to_tools="\n", reasoning_to_tools="\n\n")
    return Format(turn=turn, reasoning=reasoning, tools=calls)


def tools(count: int) -> tuple[Tool, ...]:
    """Return tools with realistic schemas: a few strings, numbers, an enum, and a list."""
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
    """Return the median processor time of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        build()
        times.append((time.process_time() - start) * 1000)
    return statistics.median(times)


def nested(depth: int) -> JsonSchema:
    """Return a schema of objects within objects."""
    schema: JsonSchema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def one(properties: dict[str, JsonSchema]) -> tuple[Tool, ...]:
    """Return one tool with these properties."""
    return (Tool(name="large", parameters={"type": "object", "properties": properties}),)


LARGE: dict[str, tuple[int, Callable[[int], tuple[Tool, ...]]]] = {
    "tools": (100, tools),
    "enum values": (10_000, lambda count: one({"value": {"enum": [f"value {number}" for number in range(count)]}})),
    "properties": (1_000, lambda count: one({f"p{number}": {"type": "string"} for number in range(count)})),
    "levels": (200, lambda count: one({"deep": nested(count)})),
}


def measured(calls: CallSyntax, dialect: str, offered: tuple[Tool, ...]) -> tuple[float, int]:
    """Return a dialect's milliseconds of processor time and its number of characters."""
    answer = Remainder(format=format_of(calls), request=Request(tools=offered))
    start = time.process_time()
    written = answer.written(Dialect(dialect)).said
    spent = (time.process_time() - start) * 1000
    return spent, len(written)


def print_large() -> None:
    """Print a table with one line per case, format and dialect, and the growth from half the size."""
    print(f"\n{'large':20} {'calls':9} {'dialect':16}{'time':>12}{'size':>12}   growth of time, size from half as much")
    for name, (count, make) in LARGE.items():
        for kind, calls in CALLS.items():
            for dialect in DIALECTS:
                half, whole = (measured(calls, dialect, make(size)) for size in (count // 2, count))
                growth = f"{whole[0] / half[0]:>12.1f}{whole[1] / half[1]:>8.1f}"
                print(f"{count:>7} {name:12} {kind:9} {dialect:16}{whole[0]:>9.0f} ms{whole[1]:>12}{growth}")


def main() -> None:
    """Print a table with one line per format and dialect, and milliseconds by number of tools; then the large cases."""
    warnings.simplefilter("ignore", SchemaWarning)
    print(f"{'calls':9} {'dialect':16}" + "".join(f"{count:>6} tools" for count in COUNTS) + "   100 ÷ 10")
    for name, calls in CALLS.items():
        for dialect in DIALECTS:
            times = []
            for count in COUNTS:
                answer = Remainder(format=format_of(calls), request=Request(tools=tools(count)))
                times.append(milliseconds(partial(answer.written, Dialect(dialect))))
            row = "".join(f"{spent:>9.1f} ms" for spent in times)
            print(f"{name:9} {dialect:16}{row}{times[2] / times[1]:>10.1f}")
    print_large()


if __name__ == "__main__":
    main()
