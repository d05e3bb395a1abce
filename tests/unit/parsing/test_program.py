"""The programs of hand-made formats, instruction by instruction: a line that changes is a text that is read otherwise.

When one is meant: `python3 scripts/golden_programs.py`, and say why in the commit.
"""

from __future__ import annotations

import golden_programs
import pytest
from golden_programs import Compiled


@pytest.mark.parametrize("compiled", [*golden_programs.compiled()], ids=lambda compiled: compiled.name)
def test_a_format_is_compiled_as_recorded(compiled: Compiled) -> None:
    """Every instruction, what it holds, and where it leads."""
    assert compiled.lines() == compiled.path.read_text("utf-8").splitlines()


def test_no_program_is_left_over() -> None:
    """Each file is the program of a format."""
    assert {compiled.path for compiled in golden_programs.compiled()} == set(golden_programs.PROGRAMS.glob("*.txt"))
