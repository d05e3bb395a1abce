"""Text that arrives in pieces: what is kept of it, what is final, and what going back undoes."""

from __future__ import annotations

from collections import deque

import pytest
from stepping import grammar_machine_at, machine_at

from unrender.machine.buffer import Reading
from unrender.machine.events import Event
from unrender.machine.frames import Frame
from unrender.machine.handmade.tagged import Notice
from unrender.machine.leftovers import BrokenText
from unrender.nodes import Role
from unrender.values.scanner import LiteralScanner, LiteralStyle


class Found(Reading):
    """A reading that tells what it finds as it is."""

    def deliver(self, found: list[Event | BrokenText | Notice]) -> list[Event | BrokenText]:
        return [item for item in found if isinstance(item, BrokenText)]


A, B, C, D = map(BrokenText, "abcd")
"""What is found."""


def reading(text: str = "", *, at: int = 0) -> Found:
    made = Found(())
    made.buffer, made.at = text, at
    return made


def open_way(made: Found) -> Frame:
    frame = Frame(
        targets=(),
        otherwise=0,
        at=made.position,
        events=made.released + len(made.events),
        spans=len(made.span_ends),
        span_end=made.span_end,
        calls=0,
    )
    made.frames.append(frame)
    return frame


class Takes:
    """An instruction that takes all text and notes it, and waits."""

    def step(self, made: Found) -> bool:
        if made.at < len(made.buffer):
            made.events.append(BrokenText(made.buffer[made.at :]))
            made.at = len(made.buffer)
        return True


def test_a_new_reading_has_read_nothing() -> None:
    """It stands at the first instruction, at the beginning of the output."""
    new = Found((Takes(),))
    own = {name: getattr(new, name) for name in Reading.__slots__ if name != "program"}
    zero = ("at", "base", "past_needed", "past_start", "pc", "released", "rest", "steps")
    empty: dict[str, object] = {"events": [], "frames": [], "past": deque(), "span_ends": [], "span_roles": []}

    assert own == {
        **dict.fromkeys(zero, 0),
        **dict.fromkeys(("final", "given", "halted", "strict"), False),
        **empty,
        "buffer": "",
        "flow": None,
        "scanner": None,
    }


def test_what_was_consumed_is_forgotten() -> None:
    """Without a way back nothing of it is kept."""
    made = reading("abcdef", at=4)
    made.forget()

    assert (made.buffer, made.at, made.base, made.position, list(made.past)) == ("ef", 0, 4, 4, [])
    made.forget()
    assert made.base == 4


def test_what_a_way_back_needs_is_kept_in_pieces() -> None:
    """And comes back before the buffer, as far as it is needed."""
    made = reading("abcdef", at=2)
    frame = open_way(made)
    made.at = 4
    made.forget()
    assert (list(made.past), made.past_start, made.buffer) == (["cd"], 2, "ef")
    made.at = 1
    made.forget()
    made.buffer += "gh"
    made.at = 2
    made.forget()
    assert (list(made.past), made.buffer, made.base) == (["cd", "e", "fg"], "h", 7)
    made.go_back(frame)

    assert (made.buffer, made.at, made.base, made.position) == ("cdefgh", 0, 2, 2)


def test_pieces_that_nobody_needs_any_more_are_dropped() -> None:
    """When the way back closes, or another begins later."""
    made = reading("abcdef", at=1)
    open_way(made)
    for _ in range(3):
        made.at = 1
        made.forget()
    assert list(made.past) == ["b", "c"]
    made.frames.clear()
    made.at = 1
    made.forget()

    assert list(made.past) == []


def test_only_whole_pieces_are_dropped() -> None:
    """A piece that is needed in part is kept whole."""
    made = reading("abcdefgh", at=0)
    frame = open_way(made)
    for size in (3, 3):
        made.at = size
        made.forget()
    assert list(made.past) == ["abc", "def"]
    frame.at = 3
    made.at = 1
    made.forget()
    assert (list(made.past), made.past_start) == (["def", "g"], 3)
    frame.at = 5
    made.at = 1
    made.forget()

    assert (list(made.past), made.past_start, made.buffer) == (["def", "g", "h"], 3, "")
    assert made.since(5) == "fgh"


def test_text_since_a_position() -> None:
    """From the past and from the buffer, which stays as it is: an instruction may hold places in it."""
    made = reading("abcdef", at=1)
    open_way(made)
    made.at = 4
    made.forget()
    made.at = 1

    assert made.since(2) == "cde"
    assert made.since(4) == "e"
    assert (made.position, made.base, made.buffer) == (5, 4, "ef")


def test_what_was_found_waits_for_the_first_way_back() -> None:
    """What was found before it is final; the rest is when it closes, and nothing comes twice."""
    made = reading("abc")
    made.events = [A, B]
    open_way(made)
    made.events.append(C)
    assert made.take_final() == [A, B]
    assert (made.events, made.released) == ([C], 2)
    assert made.take_final() == []
    made.events.append(D)
    made.frames.clear()

    assert made.take_final() == [C, D]
    assert (made.events, made.released) == ([], 0)


def test_going_back_undoes_what_was_found_since() -> None:
    """Spans too: the one that went on is as long as it was."""
    made = reading("abcdef")
    made.events, made.released = [A], 1
    made.add_span(Role.CONTENT, 2)
    made.at = 2
    frame = open_way(made)
    made.scanner = LiteralScanner(LiteralStyle())
    made.events.append(B)
    made.add_span(Role.CONTENT, 4)
    made.add_span(Role.MARKER, 5)
    made.at = 5
    assert made.final_spans() == [(Role.CONTENT, 2)]
    assert made.final_end == 2
    made.go_back(frame)

    assert (made.events, made.span_roles, made.span_ends, made.at) == ([A], [Role.CONTENT], [2], 2)
    assert made.scanner is None


def test_spans_of_one_role_are_one() -> None:
    """Another role begins another."""
    made = reading("abc")
    assert (made.span_end, made.final_end, made.final_spans()) == (0, 0, [])
    for role, end in ((Role.CONTENT, 1), (Role.CONTENT, 2), (Role.MARKER, 3)):
        made.add_span(role, end)

    assert made.final_spans() == [(Role.CONTENT, 2), (Role.MARKER, 3)]
    assert (made.span_end, made.final_end) == (3, 3)


def test_no_span_is_final_before_the_first_way_back() -> None:
    """When it was opened before anything was read."""
    made = reading("abc")
    open_way(made).span_end = 7
    made.add_span(Role.MARKER, 2)

    assert (made.final_spans(), made.final_end) == ([], 0)


def test_instructions_run_over_each_chunk() -> None:
    """They are counted; what they leave of the text stays."""
    made = Found((Takes(),))
    setattr(made, "flow", LiteralScanner(LiteralStyle()))  # noqa: B010 -- its type would be narrowed
    assert made.feed("ab") == [BrokenText("ab")]
    assert (made.steps, made.final) == (1, False)
    assert made.flow is None
    assert made.feed("c") == [C]
    assert (made.buffer, made.base, made.position) == ("c", 2, 3)
    assert made.finish() == []

    assert (made.steps, made.final) == (3, True)


def test_text_that_was_not_decided_is_there_with_the_next() -> None:
    """In front of it."""
    made = Found((Takes(),))
    made.buffer = "ab"

    assert made.feed("c") == [BrokenText("abc")]
    assert made.feed("") == []


def test_a_reading_that_has_halted_takes_no_step() -> None:
    """But gives what it has."""
    made = Found((Takes(),))
    made.halted = True

    assert made.feed("ab") == []
    assert made.steps == 0


@pytest.mark.parametrize(
    ("at", "around"), [(50, "x" * 40 + "y" * 40), (10, "x" * 50), (95, "y" * 40 + "z" * 5), (0, "x" * 40)]
)
def test_what_is_around_a_place(at: int, around: str) -> None:
    """At most forty characters on each side."""
    assert reading("x" * 50 + "y" * 45 + "z" * 5, at=at).around() == around


def test_a_copy_shares_nothing_that_changes() -> None:
    """Text that waits, what was found, and the scanner are its own."""
    made = reading("abcdef", at=1)
    open_way(made)
    made.at = 3
    made.forget()
    made.scanner = LiteralScanner(LiteralStyle())
    other = made.copy()
    other.past.append("x")
    other.events.append(A)
    other.span_ends.append(1)
    other.frames.clear()
    other.scanner.scan("[", 0, final=False)

    assert (list(made.past), made.events, made.span_ends, len(made.frames)) == (["bc"], [], [], 1)
    assert isinstance(made.scanner, LiteralScanner)
    assert made.scanner.stack == ""
    assert other.buffer == "def"


def test_all_that_grows_is_copied() -> None:
    """Every list that a reading holds is among those that a copy gets for itself."""
    for made in (reading(""), machine_at(""), grammar_machine_at("")):
        held = {name for part in type(made).__mro__ for name in getattr(part, "__slots__", ()) if hasattr(made, name)}

        assert {name for name in held if isinstance(getattr(made, name), list | deque)} == set(made.lists)
