"""Measure the cost of parsing recorded answers of 500 characters from Arrow: processor time per answer, in µs.

python benchmarks/batch.py [--quick]

Strategy: a reader reads record batches into record batches with the columns content, reasoning and calls as JSON. The
figure is that of the fastest batch, since machines are often shared.
"""

from __future__ import annotations

import json

import pyarrow as pa
from reporting import arguments, seconds, table
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


def cost(case: Case, batches: int) -> float:
    """Return the µs of an answer, whose lengths differ a little."""
    reader = Reader(case.format, tools=TOOLS)
    rows = pa.record_batch({"text": [case.write(SIZE + row % 20) for row in range(ROWS)]})

    def read() -> pa.RecordBatch:
        return pa.record_batch(reader({"text": rows.column("text").to_pylist()}))

    return min(seconds(read) for _ in range(batches)) / ROWS * 1e6


def main() -> None:
    """Print the table."""
    batches = 3 if arguments(__doc__, "--quick").quick else 60
    rows = ((case.title, f"{cost(case, batches):.0f}") for case in CASES)
    print(*table(("answers of 500 characters", "unrender"), rows), sep="\n")


if __name__ == "__main__":
    main()
