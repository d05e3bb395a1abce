"""Measure the parsing of recorded answers from Arrow: answers per second in one and two processes, for several parsers.

python benchmarks/batch.py [--quick]      (in `.venv-engines` and `.venv-plugins` it finds the others: scripts/run.py)

Strategy: each worker is a new process that receives a reader and creates its own answers of 500 characters. It reads
record batches into record batches with the columns content, reasoning and calls as JSON. `cpu` is answers per second of
the worker's processor time, `wall` answers per second of wall time. Both are those of a worker's fastest batch, since
machines are often shared; two workers read at the same time. Start-up is the time until a worker has read its first
answer, including imports. First, every parser's messages are compared with ours. A parser with different messages gets
no figure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
from readers import SGLANG_TOOL_PARSERS, VLLM_TOOL_PARSERS, Vocabulary, tokens
from reporting import arguments
from streaming import JSON_FORMAT, TAGGED_FORMAT, TEN_TOOLS, prose

from unrender.batch import Reader
from unrender.export import response_template_of
from unrender.format import Format

SIZE = 500
ROWS = 1_000
"""Rows of one record batch."""
TOOLS = [tool.to_openai() for tool in TEN_TOOLS.tools or ()]
BAR, SCALING_BAR, START_BAR = 20_000, 0.9, 1.0
"""Required answers per second in two processes, speed-up of two processes, and seconds until the first answer."""

Answer = tuple[str, str, list[tuple[str, Any]]]
"""Reasoning, content, and the calls' names and arguments."""
ReadText = Callable[[str], Answer]


def thinking(size: int) -> str:
    """Return reasoning, which precedes other parts."""
    return f"<think>\n{prose(size)}\n</think>\n\n"


def plain(at: int) -> str:
    """Return reasoning and content."""
    return f"{thinking(SIZE // 2 - 40)}{prose(SIZE // 2)} {at}<|end|>\n"


def json_call(at: int) -> str:
    """Return reasoning and a call in JSON."""
    call = f'{{"name": "tool_{at % 10}", "arguments": {{"text": "{prose(80)} {at}", "items": [1, "b"]}}}}'
    return f"{thinking(SIZE - 220)}<tool_call>\n{call}\n</tool_call><|end|>\n"


def tagged_call(at: int) -> str:
    """Return reasoning and a call in tags."""
    values = f'<parameter=text>\n{prose(80)} {at}\n</parameter>\n<parameter=items>\n[1, "b"]\n</parameter>\n'
    return f"{thinking(SIZE - 280)}<tool_call>\n<function=tool_{at % 10}>\n{values}</function>\n</tool_call><|end|>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of answer."""

    title: str
    format: Format
    write: Callable[[int], str]


CASES = (
    Case(title="reasoning and content", format=JSON_FORMAT, write=plain),
    Case(title="reasoning and a call in JSON", format=JSON_FORMAT, write=json_call),
    Case(title="reasoning and a tagged call", format=TAGGED_FORMAT, write=tagged_call),
)


def unrender_text(case: Case) -> ReadText:
    """Return our parser as a function of one text, for comparison with the others."""
    reader = Reader(case.format, tools=TOOLS)

    def read(text: str) -> Answer:
        message = reader.read({"text": text}).message
        return (
            message.reasoning,
            message.content,
            [(call.name, call.arguments) for call in message.tool_calls],
        )

    return read


def transformers_text(case: Case) -> ReadText:
    """Return the parser behind `tokenizer.parse_response`, using a single export of the format."""
    from transformers.utils.chat_parsing import ResponseParser  # noqa: PLC0415 - may be missing
    from transformers.utils.chat_parsing.response_templates import load_response_template  # noqa: PLC0415

    loaded = load_response_template(response_template_of(case.format).template)
    header = case.format.turn.headers[0]

    def read(text: str) -> Answer:
        parser = ResponseParser(loaded, prefix=header, tools=TOOLS)
        parser.feed(text)
        message, _ = parser.finalize()
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
        return message.get("reasoning_content", ""), message.get("content", ""), calls

    return read


def vllm_text(case: Case) -> ReadText:
    """Return vLLM's parser for whole answers, as its server calls it."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: PLC0415
    from vllm.parser.parser_manager import ParserManager  # noqa: PLC0415

    vocabulary = Vocabulary(tokens(case.write(0)))
    parser_class = ParserManager.get_parser(
        tool_parser_name=VLLM_TOOL_PARSERS[case.format.tools.mode],
        reasoning_parser_name="qwen3",
        enable_auto_tools=True,
        tokenizer=vocabulary,
    )
    request = ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], tools=TOOLS)

    def read(text: str) -> Answer:
        ended = text.removesuffix("<|end|>\n")  # The server drops the end of turn.
        reasoning, content, calls = parser_class(vocabulary, request.tools).parse(
            ended, request, enable_auto_tools=True
        )
        return reasoning or "", content or "", [(call.name, json.loads(call.arguments)) for call in calls or ()]

    return read


def sglang_text(case: Case) -> ReadText:
    """Return SGLang's parsers for whole answers, as its server calls them."""
    from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: PLC0415
    from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: PLC0415
    from sglang.srt.parser.reasoning_parser import ReasoningParser  # noqa: PLC0415

    offered = [Tool.model_validate(tool) for tool in TOOLS]
    name = SGLANG_TOOL_PARSERS[case.format.tools.mode]

    def read(text: str) -> Answer:
        reasoning, rest = ReasoningParser("qwen3").parse_non_stream(text.removesuffix("<|end|>\n"))
        parser = FunctionCallParser(offered, name)
        content, calls = parser.parse_non_stream(rest or "") if parser.has_tool_call(rest or "") else (rest or "", [])
        return reasoning or "", content, [(call.name, json.loads(call.parameters)) for call in calls]

    return read


PARSERS: dict[str, tuple[str, Callable[[Case], ReadText]]] = {
    "unrender": ("unrender", unrender_text),
    "transformers": ("transformers.utils.chat_parsing", transformers_text),
    "vLLM": ("vllm.parser.parser_manager", vllm_text),
    "SGLang": ("sglang.srt.function_call.function_call_parser", sglang_text),
}
"""Required modules, and a function that creates the reader of a text."""


def through_arrow(reader: Reader) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return our reader as a function of record batches."""
    return lambda batch: pa.record_batch(reader({"text": batch.column("text").to_pylist()}))


@dataclass(frozen=True, slots=True)
class Columns:
    """Another parser as a function of record batches, with the same columns in its results."""

    read: ReadText

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Read a batch."""
        answers = [self.read(text) for text in batch.column("text").to_pylist()]
        calls = [json.dumps([{"name": name, "arguments": value} for name, value in found]) for *_, found in answers]
        columns = {"content": [content for _, content, _ in answers], "reasoning": [thought for thought, *_ in answers]}
        for name, values in {**columns, "tool_calls": calls}.items():
            batch = batch.append_column(name, pa.array(values, pa.string()))
        return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Measurements of one worker."""

    rows: int
    wall: float
    cpu: float
    start: float
    """Processor time until the first answer was read."""


def work(conn: Connection, name: str, at: int, reader: Reader, batches: int) -> None:
    """Run a worker: report when the first answer is read, wait for the others, then read the batches."""
    case = CASES[at]
    make = PARSERS[name][1]
    columns: Callable[[pa.RecordBatch], Any] = through_arrow(reader) if name == "unrender" else Columns(make(case))
    columns(pa.record_batch({"text": [case.write(0)]}))
    start = time.process_time()
    texts = pa.record_batch({"text": [case.write(row) for row in range(ROWS)]})
    columns(texts)
    conn.send("ready")
    conn.recv()
    times = []
    for _ in range(batches):
        wall, cpu = time.perf_counter(), time.process_time()
        columns(texts)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    conn.send(Run(rows=ROWS, wall=min(wall for wall, _ in times), cpu=min(cpu for _, cpu in times), start=start))


def measured(name: str, at: int, workers: int, batches: int) -> list[Run]:
    """Return the measurements of several concurrent workers."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    reader = Reader(CASES[at].format, tools=TOOLS)
    processes = [context.Process(target=work, args=(theirs, name, at, reader, batches)) for _, theirs in pipes]
    for process in processes:
        process.start()
    for ours, _ in pipes:
        ours.recv()
    for ours, _ in pipes:
        ours.send("go")
    runs = [ours.recv() for ours, _ in pipes]
    for process in processes:
        process.join()
    return runs


def table(names: list[str], batches: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"{'answers of 500 characters a second':46}{'1 cpu':>9}{'2 cpu':>9}{'1 wall':>9}{'2 wall':>9}{'scaling':>9}{'start':>9}"
    for at, case in enumerate(CASES):
        expected = [_trimmed(unrender_text(case)(case.write(row))) for row in range(20)]
        for name in names:
            read = PARSERS[name][1](case)
            line = f"{case.title:32} {name:13}"
            if [_trimmed(read(case.write(row))) for row in range(20)] != expected:
                yield f"{line} its messages are not ours: not timed"
                continue
            yield line + "".join(_cells(name, at, batches))


def _trimmed(answer: Answer) -> Answer:
    """Return an answer without whitespace around its texts, since parsers differ there."""
    reasoning, content, calls = answer
    return reasoning.strip(), content.strip(), calls


def _cells(name: str, at: int, batches: int) -> Iterator[str]:
    one, two = (measured(name, at, workers, batches) for workers in (1, 2))
    by_cpu = [sum(run.rows / run.cpu for run in runs) for runs in (one, two)]
    by_wall = [sum(run.rows / run.wall for run in runs) for runs in (one, two)]
    yield from (f"{rate:9,.0f}" for rate in (*by_cpu, *by_wall))
    yield f"{by_wall[1] / by_wall[0] / 2:9.2f}"
    yield f"{max(run.start for run in (*one, *two)):8.2f}s"


def main() -> None:
    """Print the table."""
    given = arguments(__doc__, "--quick", only={"choices": list(PARSERS), "help": "one parser"})
    found = []
    for name, (module, _) in PARSERS.items():
        try:
            import_module(module)
        except ImportError as error:
            print(f"{name}: not installed ({error})")
        else:
            found.append(name)
    for line in table([given.only] if given.only else found, 2 if given.quick else 20):
        print(line, flush=True)
    print(f"bars: {BAR:,} with 2 processes, scaling {SCALING_BAR}, start {START_BAR} s")


if __name__ == "__main__":
    main()
