"""Measure streaming: µs per chunk by output length, MB/s for complete texts, many streams, and import time.

python benchmarks/streaming.py [--quick] [--json FILE]

Strategy: a chunk has four characters. Each figure is the best processor time of several runs. The ratio relates it to a
parser that does nothing: that parser stores each chunk and returns one event in a list, the least that any parser can
do in Python. So figures of different machines can be compared. The two parsers alternate, and the ratio is the median
over all rounds, so a change of the processor's speed affects both. `growth` is the cost of a chunk at the longest
output relative to the shortest one: 1 means that no text is read twice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from reporting import arguments, save

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
from unrender.machine.events import ContentText
from unrender.machine.policy import Policy
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser

CHUNK = 4
LENGTHS = (1_000, 4_000, 16_000, 64_000, 256_000)
STREAMS = 1_000
CONTENT_BAR, ARGUMENTS_BAR = 3.0, 4.5
"""Maximum cost of a chunk, relative to a parser that does nothing."""

TURN = TurnTexts(headers=("<|start|>assistant\n",), end="<|end|>\n", reasoning_to_content="\n\n", content_to_tools="\n")
THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
JSON_FORMAT = Format(
    turn=TURN,
    reasoning=THINK,
    tools=CallSyntax(
        call_start="<tool_call>\n",
        call_end="\n</tool_call>",
        separator="\n",
        function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    ),
)
TAGGED_FORMAT = Format(
    turn=TURN,
    reasoning=THINK,
    tools=CallSyntax(
        call_start="<tool_call>\n",
        call_end="\n</tool_call>",
        separator="\n",
        function=("<function=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</function>"),
        arguments=Arguments(
            entry=("<parameter=", Slot.KEY, ">\n", Slot.VALUE, "\n</parameter>\n"),
            codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA),
        ),
    ),
)
PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}, "items": {"type": "array"}}}
AS_WRITTEN = Policy(tool_calls="streamed")
TEN_TOOLS = Request(tools=tuple(Tool(name=f"tool_{i}", parameters=PARAMETERS) for i in range(10)))


def prose(size: int) -> str:
    """Return text with line breaks, punctuation and a few brackets."""
    line = "Rain is likely in the north, with 3 < x < 7 mm by noon. "
    return (line * (size // len(line) + 1))[:size].rstrip()


def answer(size: int) -> str:
    """Return reasoning and content."""
    return f"<think>\n{prose(size // 2)}\n</think>\n\n{prose(size // 2)}"


def json_call(arguments: str, tool: int = 0) -> str:
    """Return one call in JSON."""
    return f'<tool_call>\n{{"name": "tool_{tool}", "arguments": {arguments}}}\n</tool_call>'


def long_string(size: int) -> str:
    """Return a call with one long string argument."""
    return json_call(f'{{"text": "{prose(size)}"}}')


def long_tagged(size: int) -> str:
    """Return a tagged call with one long string argument."""
    body = f"<parameter=text>\n{prose(size)}\n</parameter>\n"
    return f"<tool_call>\n<function=tool_0>\n{body}</function>\n</tool_call>"


def nested(size: int) -> str:
    """Return a call whose argument is a long list of objects."""
    item = '{"id": 12, "tags": ["a", "bc"], "ok": true, "at": {"x": 1.5, "y": null}}'
    return json_call(f'{{"items": [{", ".join([item] * max(1, size // (len(item) + 2)))}]}}')


def fifty_calls(size: int) -> str:
    """Return fifty calls in a row."""
    return "\n".join(json_call(f'{{"text": "{prose(size // 50)}"}}', i % 10) for i in range(50))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table."""

    title: str
    format: Format
    request: Request
    write: Callable[[int], str]
    bar: float
    """Maximum cost relative to a parser that does nothing."""
    policy: Policy = Policy()  # noqa: RUF009 -- frozen


CASES = (
    Case(title="(a) reasoning + content", format=JSON_FORMAT, request=Request(), write=answer, bar=CONTENT_BAR),
    Case(title="(b) the same, ten tools", format=JSON_FORMAT, request=TEN_TOOLS, write=answer, bar=CONTENT_BAR),
    Case(title="(c) JSON string argument", format=JSON_FORMAT, request=TEN_TOOLS, write=long_string, bar=ARGUMENTS_BAR),
    Case(
        title="(d) tagged string argument",
        format=TAGGED_FORMAT,
        request=TEN_TOOLS,
        write=long_tagged,
        bar=ARGUMENTS_BAR,
    ),
    Case(title="(e) nested JSON argument", format=JSON_FORMAT, request=TEN_TOOLS, write=nested, bar=ARGUMENTS_BAR),
    Case(title="(f) fifty calls", format=JSON_FORMAT, request=TEN_TOOLS, write=fifty_calls, bar=ARGUMENTS_BAR),
    Case(
        title="(g) JSON string, streamed",
        format=JSON_FORMAT,
        request=TEN_TOOLS,
        write=long_string,
        bar=ARGUMENTS_BAR,
        policy=AS_WRITTEN,
    ),
    Case(
        title="(h) tagged string, streamed",
        format=TAGGED_FORMAT,
        request=TEN_TOOLS,
        write=long_tagged,
        bar=ARGUMENTS_BAR,
        policy=AS_WRITTEN,
    ),
)


def stream(case: Case, chunks: list[str]) -> None:
    """Feed one output, chunk by chunk."""
    parser = Parser(case.format, case.request, policy=case.policy)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()


class Nothing:
    """A parser that does nothing: every chunk is content."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: list[str] = []

    def feed(self, text: str) -> list[ContentText]:
        """Store the chunk; return its event."""
        self.chunks.append(text)
        return [ContentText(text)]


def do_nothing(chunks: list[str]) -> None:
    """Feed one output to the parser that does nothing."""
    parser = Nothing()
    for chunk in chunks:
        parser.feed(chunk)


def best(action: Callable[[], None], runs: int) -> float:
    """Return the lowest processor time of `runs` runs, in seconds."""
    return min(_seconds(action) for _ in range(runs))


def _seconds(action: Callable[[], None]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def chunked(text: str) -> list[str]:
    """Cut a text into chunks."""
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Measurements of a case: µs per chunk by length, for our parser and the parser that does nothing."""

    case: Case
    costs: dict[int, float]
    nothing: dict[int, float]
    ratio: float
    """The median ratio at the longest output."""

    def line(self) -> str:
        """Return the table's row: growth, and the ratio to the parser that does nothing."""
        lengths = list(self.costs)
        cells = "".join(f"{cost:8.2f}" for cost in self.costs.values())
        growth = self.costs[lengths[-1]] / self.costs[lengths[0]]
        return f"{self.case.title:28}{cells}{growth:8.2f}{self.ratio:9.1f} ×{self.case.bar:6.1f}"


def measured(case: Case, lengths: tuple[int, ...], runs: int) -> Row:
    """Return the cost of a case at each length."""
    costs, nothing, ratio = {}, {}, 0.0
    for size in lengths:
        chunks = chunked(case.write(size))
        turns = [(_seconds(partial(stream, case, chunks)), _seconds(partial(do_nothing, chunks))) for _ in range(runs)]
        costs[size], nothing[size] = (min(seconds) / len(chunks) * 1e6 for seconds in zip(*turns, strict=True))
        ratio = median(ours / theirs for ours, theirs in turns)
    return Row(case=case, costs=costs, nothing=nothing, ratio=ratio)


def result(rows: list[Row], command: str) -> dict[str, Any]:
    """Return the measurements as JSON data for `scripts/drawings.py`."""
    found = [
        {
            "title": row.case.title,
            "bar": row.case.bar,
            "ratio": row.ratio,
            "costs": row.costs,
            "nothing": row.nothing,
        }
        for row in rows
    ]
    return {"command": command, "cases": found}


def whole(size: int, runs: int) -> Iterator[str]:
    """Yield MB/s for texts fed in one chunk."""
    for case in CASES:
        text = case.write(size)
        seconds = best(partial(stream, case, [text]), runs)
        yield f"{case.title:28}{len(text) / seconds / 1e6:8.1f} MB/s whole"


def interleaved(size: int) -> str:
    """Return the cost of a chunk when a thousand streams alternate."""
    chunks = chunked(long_string(size))
    parsers = [Parser(JSON_FORMAT, TEN_TOOLS) for _ in range(STREAMS)]
    start = time.process_time()
    for chunk in chunks:
        for parser in parsers:
            parser.feed(chunk)
    seconds = time.process_time() - start
    return f"{STREAMS:,} streams in turn: {seconds / len(chunks) / STREAMS * 1e6:.2f} µs per chunk"


def imports(module: str) -> str:
    """Return the import time of `module` in a fresh interpreter, minus the interpreter's own start-up."""

    def started(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    empty = min(started("pass") for _ in range(5))
    full = min(started(f"import {module}") for _ in range(5))
    return f"import {module}: {(full - empty) * 1e3:.0f} ms"


def main() -> None:
    """Print all results."""
    asked = arguments(__doc__, "--quick", "--json")
    lengths, runs = (LENGTHS[::2][:2], 1) if asked.quick else (LENGTHS, 7)
    print(f"{'µs per chunk at':28}" + "".join(f"{size // 1000:>7}k" for size in lengths) + "  growth  ÷ nothing   bar")
    rows = []
    for case in CASES:
        rows.append(measured(case, lengths, runs))
        print(rows[-1].line(), flush=True)
    if asked.json:
        found = result(rows, "python benchmarks/streaming.py")
        save(asked.json, found)
    print()
    for line in whole(lengths[-1], runs):
        print(line, flush=True)
    print()
    print(interleaved(1_000))
    print(imports("unrender"))
    print(imports("unrender.parser.streaming"))


if __name__ == "__main__":
    main()
