"""Compare the speed of all installed parsers on the same texts in one run.

python benchmarks/peers.py [--quick] [--json FILE]
    (`python3 scripts/run.py peers` runs it where vLLM, SGLang and transformers are installed)

Strategy: the cases and texts are those of `streaming`, cut into the same tokens for all parsers. Before timing, a
parser's messages of 1k and 16k are compared with ours; a parser with wrong messages gets no figure. `arguments` shows
whether a call's arguments are returned as they come or whole. Missing parsers are listed. "–" means that one reading
would take more than half a minute if its cost grew quadratically.
"""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import version
from math import inf
from typing import Any

from readers import OURS, PEERS, Piece, Reader, Run, tokens
from reporting import arguments, save
from streaming import AS_WRITTEN, CASES, CHUNK, Case, best

LENGTHS = (1_000, 4_000, 16_000, 64_000)
COMMON = 16_000
"""The maximum length that every peer reads."""
PATIENCE = 30.0
"""Maximum seconds for one reading, extrapolated from the previous length."""


@dataclass(slots=True)
class Call:
    """An unfinished call: its name, and the pieces of its arguments."""

    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """The sum of all pieces."""

    reasoning: str = ""
    content: str = ""
    calls: dict[int, Call] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        """Add a piece."""
        self.reasoning += piece.reasoning
        self.content += piece.content
        if piece.name or piece.arguments:
            call = self.calls.setdefault(piece.index, Call())
            call.name += piece.name
            call.arguments.append(piece.arguments)

    @property
    def meaning(self) -> tuple[Any, ...]:
        """The message, ignoring whitespace around texts and in JSON arguments, where formats differ."""
        calls = [(call.name, _value("".join(call.arguments))) for call in self.calls.values()]
        return self.reasoning.strip(), self.content.strip(), calls

    @property
    def arrival(self) -> str:
        """The kind of arrival of arguments; "whole" if one piece is more than half of a call's arguments."""
        if not self.calls:
            return ""
        whole = any(max(map(len, call.arguments)) * 2 > len("".join(call.arguments)) for call in self.calls.values())
        return "whole" if whole else "as they come"


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return f"no JSON: {arguments}"


def answer(reader: Reader, case: Case, size: int) -> Answer:
    """Read one text of a case and add up the pieces."""
    whole = Answer()
    for given in reader.prepare(case, tokens(case.write(size)))():
        for piece in reader.pieces(given):
            whole.add(piece)
    return whole


def costs(readers: list[Reader], case: Case, lengths: tuple[int, ...], rounds: int) -> dict[str, dict[int, float]]:
    """Return each reader's lowest µs per four characters, for the lengths that it can read in time.

    The readers alternate in each round, so that other load slows all of them down equally.
    """
    texts = {size: case.write(size) for size in lengths}
    seconds: dict[str, dict[int, float]] = {reader.name: {} for reader in readers}
    for _ in range(rounds):
        for size, text in texts.items():
            for reader in readers:
                known = seconds[reader.name]
                if _worthwhile(known, size):
                    once = best(partial(_exhaust, reader.prepare(case, tokens(text))), 1)
                    known[size] = min(once, known.get(size, inf))
    return {
        name: {size: least / len(texts[size]) * CHUNK * 1e6 for size, least in known.items()}
        for name, known in seconds.items()
    }


def _exhaust(run: Run) -> None:
    deque(run(), maxlen=0)


def _worthwhile(known: dict[int, float], size: int) -> bool:
    """Return whether to run a reading again: not if it's slow and known, or likely too slow."""
    if size in known:
        return known[size] < 1
    last = max(known, default=0)
    return not known or known[last] * (size / last) ** 2 < PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Results of a case: each reader's µs per four characters by length (none if its message is wrong)."""

    title: str
    costs: dict[str, dict[int, float]]
    arrival: dict[str, str]
    """For each reader, whether arguments arrive in pieces or whole."""

    def lines(self, lengths: tuple[int, ...]) -> Iterator[str]:
        """Yield the row of each reader: µs for each length, growth, cost relative to ours, and arrival."""
        for name, costs in self.costs.items():
            line = f"{self.title:28} {name:13}"
            if costs:
                yield f"{line}{_cells(costs, self.costs[OURS.name], lengths)}  {self.arrival[name]}".rstrip()
            else:
                yield f"{line} its message differs from ours: not timed"


def measured(peers: list[Reader], lengths: tuple[int, ...], rounds: int) -> Iterator[Row]:
    """Yield the results of each case."""
    for case in (case for case in CASES if case.policy != AS_WRITTEN):
        answers = {reader: _answers(reader, case, lengths) for reader in (OURS, *peers)}
        expected = [answer.meaning for answer in answers[OURS]]
        right = [reader for reader in answers if [answer.meaning for answer in answers[reader]] == expected]
        found = costs(right, case, lengths, rounds)
        yield Row(
            title=case.title,
            costs={reader.name: found.get(reader.name, {}) for reader in answers},
            arrival={reader.name: given[-1].arrival for reader, given in answers.items()},
        )


def heading(lengths: tuple[int, ...]) -> str:
    """Return the first line of the table."""
    heads = [f"{_k(size):>9}" for size in lengths]
    heads += [f"  growth to {_k(size)}  × ours at {_k(size)}" for size in lengths if size >= COMMON]
    return f"{'µs per 4 characters at':42}{''.join(heads)}  arguments"


def _answers(reader: Reader, case: Case, lengths: tuple[int, ...]) -> list[Answer]:
    return [answer(reader, case, size) for size in (lengths[0], COMMON)]


def _cells(theirs: dict[int, float], ours: dict[int, float], lengths: tuple[int, ...]) -> str:
    cells = [f"{theirs[size]:9.2f}" if size in theirs else f"{'–':>9}" for size in lengths]
    for size in lengths:
        if size >= COMMON:
            known = size in theirs
            cells.append(f"{theirs[size] / theirs[lengths[0]]:15.1f}" if known else f"{'–':>15}")
            cells.append(f"{theirs[size] / ours[size]:15.1f}" if known else f"{'–':>15}")
    return "".join(cells)


def _k(size: int) -> str:
    return f"{size // 1000}k"


def importable() -> Iterator[Reader]:
    """Yield the installed peers, and print each version or that it's missing."""
    for peer in PEERS:
        try:
            import_module(peer.module)
        except ImportError as error:
            print(f"{peer.name}: not here ({error}); `python3 scripts/run.py peers` sets up what has it")
        else:
            print(f"{peer.name} {version(peer.module.partition('.')[0])}")
            yield peer


def main() -> None:
    """Print the versions, and the table."""
    asked = arguments(__doc__, "--quick", "--json")
    peers = list(importable())
    # Torch and the engines have a large heap, which must not slow the parsers down. vLLM's server does the same.
    gc.freeze()
    lengths = (LENGTHS[0], COMMON) if asked.quick else LENGTHS
    print(heading(lengths))
    rows = []
    for row in measured(peers, lengths, 1 if asked.quick else 7):
        rows.append(asdict(row))
        print(*row.lines(lengths), sep="\n", flush=True)
    save(asked.json, {"cases": rows})


if __name__ == "__main__":
    main()
