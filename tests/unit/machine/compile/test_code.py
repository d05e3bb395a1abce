"""A program under construction: addresses, and places that are filled later."""

from __future__ import annotations

import pytest

from unrender.machine.compile.code import Code
from unrender.machine.instructions import Halt, Jump, Space


def test_instructions_have_the_addresses_that_were_returned() -> None:
    """Of several, the first one's; of none, that of what comes next."""
    code = Code()

    assert [code.emit(Space()), code.emit(Jump(0), Halt()), code.emit(), code.emit(Space())] == [0, 1, 3, 3]
    assert len(code) == 4
    assert code.program() == (Space(), Jump(0), Halt(), Space())


def test_a_reserved_place_is_filled_later() -> None:
    """With what could not be known before."""
    code = Code()
    first = code.reserve()
    code.emit(Halt())
    second = code.reserve()
    code.put(second, Jump(first))
    code.put(first, Jump(second))

    assert (first, second, len(code)) == (0, 2, 3)
    assert code.program() == (Jump(2), Halt(), Jump(0))


def test_a_place_that_was_forgotten_is_a_mistake() -> None:
    """No program has a hole."""
    code = Code()
    code.reserve()
    code.emit(Halt())

    with pytest.raises(AssertionError):
        code.program()
