"""A target for coverage-guided fuzzing: bytes choose a format and a text, and every guarantee of the parser is checked.

python fuzz/parse.py [libFuzzer's arguments, e.g. -max_total_time=600]     needs `pip install atheris`

The first byte chooses the family of formats and whether tools are known, the rest is the text. Failing inputs are
saved in `fuzz/regressions/`, which the tests replay even without atheris.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from properties.families import FAMILIES, REQUEST  # noqa: E402
from properties.invariants import check, check_strict  # noqa: E402

from unrender.messages import Message, Request  # noqa: E402

ANY_TOOL = Request(tools=None)


def one_input(data: bytes) -> None:
    """Parse the text in `data`, and assert every guarantee."""
    if data:
        check_promises(data)


def check_promises(data: bytes) -> Message:
    """Parse the text in `data`, which also has the choice, and assert every guarantee. Return the message."""
    family = FAMILIES[data[0] % len(FAMILIES)]
    request = REQUEST if data[0] < 128 else ANY_TOOL
    text = data[1:].decode(errors="surrogateescape")
    check_strict(lambda: family.parser(request=request, strict=True), text)
    return check(lambda: family.parser(request=request), text)


def seeds() -> dict[str, bytes]:
    """Return every family's outputs as inputs of the fuzzer, by file name."""
    return {
        f"{family.name}-{i}": bytes([index]) + output.encode()
        for index, family in enumerate(FAMILIES)
        for i, output in enumerate(family.outputs)
    }


def main() -> None:
    """Run the fuzzer on the corpus in `.cache/fuzz`, which starts with the seeds."""
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
