"""Bytes → a format and a text → every promise of the parser: a target for coverage-guided fuzzing.

python fuzz/parse.py [libFuzzer's arguments, e.g. -max_total_time=600]     needs `pip install atheris`

The first byte chooses the family of formats and whether tools are known, the rest is the text. What breaks goes into
`fuzz/regressions/`, which the tests read with or without atheris.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from properties.families import FAMILIES, REQUEST  # noqa: E402
from properties.invariants import check, check_strict  # noqa: E402

from unrender.messages.wire import Message, Request  # noqa: E402
from unrender.parser.streaming import Parser  # noqa: E402

ANY_TOOL = Request(tools=None)


def one_input(data: bytes) -> None:
    """Read `data` as a choice and a text, and assert every promise."""
    if data:
        check_promises(data)


def check_promises(data: bytes) -> Message:
    """Return the message that `data`, a choice and a text, is read into; asserts every promise."""
    family = FAMILIES[data[0] % len(FAMILIES)]
    request = REQUEST if data[0] < 128 else ANY_TOOL
    text = data[1:].decode(errors="surrogateescape")
    check_strict(lambda: Parser(family.format, request, prompt=family.prompt, strict=True), text)
    return check(lambda: Parser(family.format, request, prompt=family.prompt), text)


def seeds() -> dict[str, bytes]:
    """Return every family's outputs as inputs of the fuzzer, by file name."""
    return {
        f"{family.name}-{i}": bytes([index]) + output.encode()
        for index, family in enumerate(FAMILIES)
        for i, output in enumerate(family.outputs)
    }


def main() -> None:
    """Fuzz from the corpus in `.cache/fuzz`, which begins with the seeds."""
    atheris = importlib.import_module("atheris")
    corpus = ROOT / ".cache" / "fuzz"
    if not corpus.exists():
        corpus.mkdir(parents=True)
        for name, data in seeds().items():
            (corpus / name).write_bytes(data)
    atheris.instrument_all()
    atheris.Setup([*sys.argv, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
