"""Random Formats with both engines: llguidance and xgrammar accept samples; `scripts/run.py engines` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import installed
from hunting.drawn_formats import Data, cases
from hunting.formats import check_case, replay
from hunting.tally import drawing
from hypothesis import given, seed

pytestmark = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")


@seed(1)
@given(cases())
@drawing(max_examples=30)
def test_engines_accept_what_random_formats_write(case: Data) -> None:
    """Samples of a random Format are accepted in every dialect, by the engine that reads it."""
    check_case(case)


def test_what_xgrammar_once_refused_holds() -> None:
    """A name before a marker that starts with an accent and a digit is accepted. xgrammar once split the accent."""
    kept = Path(__file__).parent / "regressions" / "formats-gbnf-of-xgrammar.txt"

    assert replay(kept.read_text(encoding="utf-8")) is None
