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
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from readers import OURS, Piece, Reader, installed, tokens
from reporting import arguments, progress, seconds
from result_tables import finish
from streaming import AS_WRITTEN, CASES, CHUNK, Case

LENGTHS = (1_000, 4_000, 16_000, 64_000)
COMMON = 16_000
"""The maximum length that every peer reads."""
PATIENCE = 30.0
"""Maximum seconds for one reading, extrapolated from the previous length."""


@dataclass(slots=True)
class Answer:
    """The sum of all pieces. A call is its name and the pieces of its arguments."""

    reasoning: str = ""
    content: str = ""
    calls: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        """Add a piece."""
        self.reasoning += piece.reasoning
        self.content += piece.content
        if piece.name or piece.arguments:
            names, arguments = self.calls.setdefault(piece.index, ([], []))
            names.append(piece.name)
            arguments.append(piece.arguments)

    @property
    def meaning(self) -> tuple[Any, ...]:
        """The message, ignoring whitespace around texts and in JSON arguments, where formats differ."""
        calls = [("".join(names), _value("".join(arguments))) for names, arguments in self.calls.values()]
        return self.reasoning.strip(), self.content.strip(), calls

    @property
    def arrival(self) -> str:
        """The kind of arrival of arguments; "whole" if one piece is more than half of a call's arguments."""
        if not self.calls:
            return ""
        whole = any(max(map(len, parts)) * 2 > len("".join(parts)) for _, parts in self.calls.values())
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
    spent: dict[str, dict[int, float]] = {reader.name: {} for reader in readers}
    for _ in range(rounds):
        for size, text in texts.items():
            for reader in readers:
                known = spent[reader.name]
                if _worthwhile(known, size):
                    once = seconds(partial(deque, reader.prepare(case, tokens(text))(), maxlen=0))
                    known[size] = min(once, known.get(size, inf))
    return {
        name: {size: least / len(texts[size]) * CHUNK * 1e6 for size, least in known.items()}
        for name, known in spent.items()
    }


def _worthwhile(known: dict[int, float], size: int) -> bool:
    """Return whether to run a reading again: not if it's slow and known, or likely too slow."""
    if size in known:
        return known[size] < 1
    last = max(known, default=0)
    return not known or known[last] * (size / last) ** 2 < PATIENCE


def measured(peers: list[Reader], lengths: tuple[int, ...], rounds: int) -> Iterator[dict[str, Any]]:
    """Yield each case's µs by reader and length (none for a wrong message), and how arguments arrive."""
    for case in (case for case in CASES if case.policy != AS_WRITTEN):
        answers = {reader: [answer(reader, case, size) for size in (LENGTHS[0], COMMON)] for reader in (OURS, *peers)}
        expected = [answer.meaning for answer in answers[OURS]]
        right = [reader for reader in answers if [answer.meaning for answer in answers[reader]] == expected]
        found = costs(right, case, lengths, rounds)
        progress(f"{case.title}: {found}")
        yield {
            "title": case.title,
            "costs": {reader.name: found.get(reader.name, {}) for reader in answers},
            "arrival": {reader.name: given[-1].arrival for reader, given in answers.items()},
        }


def main() -> None:
    """Print the versions, and the table."""
    asked = arguments(__doc__, "--quick", "--json")
    peers = list(installed())
    # Torch and the engines have a large heap, which must not slow the parsers down. vLLM's server does the same.
    gc.freeze()
    rows = measured(peers, LENGTHS[2:] if asked.quick else LENGTHS, 1 if asked.quick else 7)
    finish(asked, "peers", {"cases": list(rows)}, "peers")


if __name__ == "__main__":
    main()
