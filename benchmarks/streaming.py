"""Measure streaming: µs per chunk by output length, relative to a parser that does nothing.

python benchmarks/streaming.py [--quick] [--json FILE]

Strategy: a chunk has four characters. Each figure is the best processor time of several runs. The ratio relates it to a
parser that does nothing: that parser stores each chunk and returns one event in a list, the least that any parser can
do in Python. So figures of different machines can be compared. The two parsers alternate, and the ratio is the median
over all rounds, so a change of the processor's speed affects both. `growth` is the cost of a chunk at the longest
output relative to the cost at 16k: 1 means that no text is read twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from reporting import ROOT, arguments, progress, seconds
from result_tables import finish

from unrender.format import Arguments, Codec, Format, Slot, Strings, Typing
from unrender.machine import ContentText, Policy
from unrender.messages import Request, Tool
from unrender.parser.streaming import Parser

CHUNK = 4
LENGTHS = (1_000, 4_000, 16_000, 64_000, 256_000)
CONTENT_BAR, ARGUMENTS_BAR = 3.0, 4.5
"""Maximum cost of a chunk, relative to a parser that does nothing."""

JSON_FORMAT = Format.from_json((ROOT / "tests" / "formats" / "json-tags.json").read_text(encoding="utf-8"))
TAGGED_FORMAT = replace(
    JSON_FORMAT,
    tools=replace(
        JSON_FORMAT.tools,
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


def thoughts(size: int) -> str:
    """Return reasoning, which precedes other parts."""
    return f"<think>\n{prose(size)}\n</think>\n\n"


def answer(size: int) -> str:
    """Return reasoning and content."""
    return thoughts(size // 2) + prose(size // 2)


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


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    title: str
    write: Callable[[int], str]
    format: Format = JSON_FORMAT
    request: Request = TEN_TOOLS
    bar: float = ARGUMENTS_BAR
    """Maximum cost relative to a parser that does nothing."""
    policy: Policy = Policy()  # noqa: RUF009 -- frozen


CASES = (
    Case("(a) reasoning + content", answer, request=Request(), bar=CONTENT_BAR),
    Case("(b) the same, ten tools", answer, bar=CONTENT_BAR),
    Case("(c) JSON string argument", long_string),
    Case("(d) tagged string argument", long_tagged, TAGGED_FORMAT),
    Case("(e) nested JSON argument", nested),
    Case("(f) fifty calls", fifty_calls),
    Case("(g) JSON string, streamed", long_string, policy=AS_WRITTEN),
    Case("(h) tagged string, streamed", long_tagged, TAGGED_FORMAT, policy=AS_WRITTEN),
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


def chunked(text: str) -> list[str]:
    """Cut a text into chunks."""
    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


def measured(case: Case, lengths: tuple[int, ...], runs: int) -> dict[str, Any]:
    """Return a case's µs per chunk by length, for our parser and the one that does nothing, and the longest's ratio."""
    costs, nothing, ratio = {}, {}, 0.0
    for size in lengths:
        chunks = chunked(case.write(size))
        turns = [(seconds(partial(stream, case, chunks)), seconds(partial(do_nothing, chunks))) for _ in range(runs)]
        costs[size], nothing[size] = (min(spent) / len(chunks) * 1e6 for spent in zip(*turns, strict=True))
        ratio = median(ours / theirs for ours, theirs in turns)
    progress(f"{case.title}: {' '.join(f'{cost:.2f}' for cost in costs.values())} µs, × {ratio:.1f}")
    return {"title": case.title, "bar": case.bar, "ratio": ratio, "costs": costs, "nothing": nothing}


def main() -> None:
    """Print the table."""
    asked = arguments(__doc__, "--quick", "--json")
    lengths, runs = (LENGTHS[2::2], 2) if asked.quick else (LENGTHS, 7)
    cases = [measured(case, lengths, runs) for case in CASES]
    finish(asked, "streaming", {"cases": cases}, "chunk")


if __name__ == "__main__":
    main()
