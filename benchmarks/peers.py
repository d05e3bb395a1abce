"""What others need for the same text: each parser that can be imported, side by side, in one run.

python benchmarks/peers.py [--quick]

Strategy: the cases, texts and timings of `streaming`. A peer reads our format through an export of it, so that both read the
same markers. A peer that is not installed is named. transformers' parser gives a call's arguments when the call ends; ours
gives them as they come.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from streaming import CASES, Case, best, chunked, stream

from unrender.emit.response_template import response_template

LENGTHS = (1_000, 16_000, 64_000)
TRANSFORMERS = "transformers.utils.chat_parsing"


def transformers_reader(case: Case) -> Callable[[list[str]], None]:
    """Return transformers' own parser for the case's format, fed chunk by chunk."""
    from transformers.utils.chat_parsing import ResponseParser  # noqa: PLC0415 - may be missing
    from transformers.utils.chat_parsing.response_templates import load_response_template  # noqa: PLC0415

    loaded = load_response_template(response_template(case.format).template)
    tools: list[dict[str, Any]] = [
        {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
        for tool in case.request.tools or ()
    ]

    def read(chunks: list[str]) -> None:
        parser = ResponseParser(loaded, prefix=case.format.turn.headers[0], tools=tools or None)
        for chunk in chunks:
            parser.feed(chunk)
        parser.finalize()

    return read


def table(lengths: tuple[int, ...], runs: int) -> Iterator[str]:
    """Yield the lines of the table: µs per chunk for each length, growth, and the peer's cost over ours at the longest."""
    yield f"{'µs per 4 characters at':43}" + "".join(f"{size // 1000:>8}k" for size in lengths) + "  growth   × ours"
    for case in CASES:
        ours = list(_costs(partial(stream, case), case, lengths, runs))
        theirs = list(_costs(transformers_reader(case), case, lengths, runs))
        yield _line(case.title, "unrender", ours, 1.0)
        yield _line(case.title, "transformers", theirs, theirs[-1] / ours[-1])


def _costs(read: Callable[[list[str]], None], case: Case, lengths: tuple[int, ...], runs: int) -> Iterator[float]:
    for size in lengths:
        chunks = chunked(case.write(size))
        yield best(partial(read, chunks), runs) / len(chunks) * 1e6


def _line(title: str, name: str, costs: list[float], ratio: float) -> str:
    cells = "".join(f"{cost:9.2f}" for cost in costs)
    return f"{title:28} {name:14}{cells}{costs[-1] / costs[0]:8.2f}{ratio:9.1f}"


def main() -> None:
    """Print the table, or what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only 1k and 16k, one run each")
    quick = parser.parse_args().quick
    if find_spec("transformers") is None or find_spec(TRANSFORMERS) is None:
        print("transformers 5.15 or newer is not installed; `bash scripts/exports.sh` sets up .venv-exports with it")
        return
    for line in table(LENGTHS[:2] if quick else LENGTHS, 1 if quick else 3):
        print(line, flush=True)


if __name__ == "__main__":
    main()
