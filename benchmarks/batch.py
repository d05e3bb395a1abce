"""Measure the parsing of recorded answers from Arrow: answers per second in one and two processes.

python benchmarks/batch.py [--quick]

Strategy: each worker is a new process that receives a reader and creates its own answers of 500 characters. It reads
record batches into record batches with the columns content, reasoning and calls as JSON. `cpu` is answers per second of
the worker's processor time, `wall` answers per second of wall time. Both are those of a worker's fastest batch, since
machines are often shared; two workers read at the same time. Start-up is the processor time until a worker has read its
first batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pyarrow as pa
from reporting import arguments, table
from streaming import TAGGED_FORMAT, TEN_TOOLS, Case, answer, json_call, long_tagged, prose, thoughts

from unrender.batch import Reader

SIZE, ROWS = 500, 1_000
"""Characters of an answer, and rows of one record batch."""
TOOLS = [tool.to_openai() for tool in TEN_TOOLS.tools or ()]
CASES = (
    Case("reasoning and content", answer),
    Case(
        "reasoning and a call in JSON",
        lambda size: thoughts(size - 220) + json_call(json.dumps({"text": prose(90), "items": [1, "b"]})),
    ),
    Case("reasoning and a tagged call", lambda size: thoughts(size - 230) + long_tagged(90), TAGGED_FORMAT),
)


def texts(case: Case) -> list[str]:
    """Return the answers of a batch, whose lengths differ a little."""
    return [case.write(SIZE + row % 20) for row in range(ROWS)]


def work(conn: Connection, at: int, reader: Reader, batches: int) -> None:
    """Run a worker: report when the first batch is read, wait for the others, then send the fastest batch's times."""
    start, rows = time.process_time(), pa.record_batch({"text": texts(CASES[at])})

    def read() -> pa.RecordBatch:
        return pa.record_batch(reader({"text": rows.column("text").to_pylist()}))

    read()
    conn.send(time.process_time() - start)
    conn.recv()
    times = []
    for _ in range(batches):
        wall, cpu = time.perf_counter(), time.process_time()
        read()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    conn.send([min(spent) for spent in zip(*times, strict=True)])


def measured(at: int, workers: int, batches: int) -> tuple[float, float, float]:
    """Return the answers per second of wall time and of processor time, and the slowest start of the workers."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(workers)]
    reader = Reader(CASES[at].format, tools=TOOLS)
    processes = [context.Process(target=work, args=(end, at, reader, batches)) for _, end in pipes]
    for process in processes:
        process.start()
    start = max(own.recv() for own, _ in pipes)
    for own, _ in pipes:
        own.send("go")
    times = [own.recv() for own, _ in pipes]
    for process in processes:
        process.join()
    wall, cpu = (sum(ROWS / spent for spent in each) for each in zip(*times, strict=True))
    return wall, cpu, start


def rows(batches: int) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for at, case in enumerate(CASES):
        (wall, cpu, start), (walls, cpus, late) = (measured(at, workers, batches) for workers in (1, 2))
        rates = (f"{rate:,.0f}" for rate in (cpu, cpus, wall, walls))
        yield [case.title, *rates, f"{walls / wall / 2:.2f}", f"{max(start, late):.2f} s"]


def main() -> None:
    """Print the table."""
    given = arguments(__doc__, "--quick")
    heads = ("answers a second", "1 cpu", "2 cpu", "1 wall", "2 wall", "scaling", "start")
    print(*table(heads, rows(2 if given.quick else 20)), sep="\n")


if __name__ == "__main__":
    main()
