"""Lookaheads, atoms and cuts, one step at a time: what is closed, what is gone back to, where it goes on."""

from __future__ import annotations

from engine_stepping import HERE, TEXT, engine_at, step

from unrender.nodes import Role
from unrender.parsing.engine import Engine
from unrender.parsing.lookaheads import Final, Guarded, Refused, Seen, Whole


def guarded(text: str) -> Engine:
    engine = engine_at(text)
    assert step(Guarded(30), engine) == "on"
    assert (engine.frames[-1].barrier, engine.frames[-1].targets) == (True, (30,))
    engine.take(Role.MARKER, 1)
    engine.open((5,))
    engine.pc = HERE
    return engine


def test_an_atom_is_final_as_a_whole() -> None:
    """What it read stays; the ways back inside it are closed."""
    engine = guarded("ab")

    assert step(Whole(), engine) == "on"
    assert (engine.at, len(engine.frames), engine.stack) == (1, 1, None)


def test_a_lookahead_goes_back() -> None:
    """One that was seen goes on where it began; one that must not be seen fails there."""
    seen, refused = guarded("ab"), guarded("ab")

    assert step(Seen(), seen) == "on"
    assert (seen.at, len(seen.frames), seen.stack, seen.furthest) == (0, 1, None, 1)
    assert step(Refused("anything but 'a'"), refused) == "fails: anything but 'a'"
    assert refused.at == 0


def test_a_lookahead_that_gives_back_too_much_ends_the_reading() -> None:
    """It goes on nowhere."""
    for instruction in (Seen(), Refused("x")):
        engine = guarded("ab")
        engine.spent = 1 << 40
        instruction.step(engine)
        assert (engine.pc, engine.frames) == (TEXT, [])
        assert engine.wanted == "text that the grammar reads in fewer attempts"


def test_a_cut_closes_ways_back_up_to_a_barrier() -> None:
    """What is outside an atom stays open."""
    engine = guarded("ab")
    engine.open((6,))

    assert step(Final(), engine) == "on"
    assert [way.barrier for way in engine.frames] == [False, True]
    free = engine_at("ab")
    step(Final(), free)
    assert free.frames == []
