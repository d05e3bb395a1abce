"""Random Formats, asked of both engines: llguidance and xgrammar accept what is sampled; `scripts/engines.sh` runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hunting.drawn_formats import Data, cases
from hunting.formats import check_case, replay
from hypothesis import HealthCheck, Phase, given, seed, settings

from unrender.verify.engines import installed

pytestmark = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")


@seed(1)
@given(cases())
@settings(
    max_examples=30,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
def test_engines_accept_what_random_formats_write(case: Data) -> None:
    """What is sampled of a random Format is accepted in every dialect by the engine that reads it."""
    check_case(case)


def test_an_open_failure_is_still_open() -> None:
    """A call after a section's opener that begins with white space: xgrammar refuses it in GBNF, llguidance takes it in Lark."""
    found = replay((Path(__file__).parent / "open" / "formats-gbnf-of-xgrammar.txt").read_text(encoding="utf-8"))

    assert found is not None
    assert found.kind == "gbnf refuses"
