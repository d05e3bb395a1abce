"""Work and memory grow with the output, and no faster: shown by counting, on texts made to hurt.

Strategy: instructions are counted (`Parser.steps`); the work inside an instruction is bounded by what is buffered, so the
buffer is measured as well; what is fed whole is timed at two sizes, coarsely, since no count sees inside a regex.
"""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from properties.families import FAMILIES, REQUEST, TAGGED, TYPED, Family
from splitting import pieces

from unrender.parsing.parser import Parser

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
SIZE = 24_000
STEPS_PER_CHARACTER = 12
BUFFERED = 4_096
"""More than any marker, name or number that is waited for, in characters."""
UNITS = ("<", "{", "[", '"', "'", "\\", "`", " ", "a", "9", "[1,", '{"a":', '[{"a":', "\\u12", "<a>", "</a>", '\\"')


def hostile(family: Family, size: int) -> list[str]:
    """Return texts of `size` repeated units: in content, in the place of a tool's name, and inside an argument."""
    output = family.outputs[0]
    places = ("", output.partition("get_weather")[0], output.partition("Paris")[0], output.partition("3")[0])
    halves = [marker[: len(marker) // 2 + 1] for marker in family.markers]
    units = (*UNITS, *family.markers, *halves, "".join(family.markers))
    return [place + (unit * (size // len(unit) + 1))[:size] for place in places for unit in units]


@each_family
def test_steps_grow_with_the_text(family: Family) -> None:
    """Fed in small pieces, hostile text costs a bounded number of steps for each character, and is not hoarded."""
    for text in hostile(family, SIZE // 10):
        parser = Parser(family.format, REQUEST, prompt=family.prompt)
        for chunk in pieces(text, 7):
            parser.feed(chunk)
            assert len(parser._machine.buffer) <= BUFFERED
        parser.finish()

        assert parser.steps <= STEPS_PER_CHARACTER * len(text), text[:200]


@each_family
def test_time_grows_with_the_text(family: Family) -> None:
    """Fed whole, four times the text takes nowhere near sixteen times the time."""
    short, long, longer = (hostile(family, size) for size in (SIZE // 4, SIZE, SIZE * 4))
    suspects = [i for i in range(len(long)) if seconds(family, long[i]) > 9 * seconds(family, short[i])]

    # A second look: once may have been the garbage collector, or the place where nesting becomes too deep.
    slow = [long[i][:80] for i in suspects if least_seconds(family, longer[i]) > 9 * least_seconds(family, long[i])]

    assert slow == []


def least_seconds(family: Family, text: str) -> float:
    return min(seconds(family, text) for _ in range(3))


def seconds(family: Family, text: str) -> float:
    parser = Parser(family.format, REQUEST, prompt=family.prompt)
    start = time.process_time()
    parser.feed(text)
    parser.finish()
    assert parser.steps <= STEPS_PER_CHARACTER * max(len(text), 100)
    return time.process_time() - start


@pytest.mark.parametrize("place", ["city", "note", "days", "unheard_of", "options", "tags"])
def test_a_huge_argument_costs_its_length(place: str) -> None:
    """A megabyte in one argument, whatever its type, takes a few seconds at most in chunks, and is all there."""
    body = "lorem ipsum " * 87_000
    parser = Parser(TAGGED.format, REQUEST)
    start = time.process_time()
    for chunk in ["<function=now>\n", f"<parameter={place}>\n", *pieces(body, 40), "\n</parameter>\n</function>"]:
        parser.feed(chunk)
    parser.finish()

    assert len(parser.message.tool_calls[0].arguments) >= len(body)
    assert time.process_time() - start < 10


def test_nesting_is_bounded() -> None:
    """A million brackets end in an invalid call, not in a deep recursion."""
    parser = Parser(TYPED.format, REQUEST)
    parser.feed('<|ML|calls>\n<|ML|invoke name="now">\n<|ML|parameter name="tags" string="false">')

    for chunk in pieces("[" * 1_000_000, 1000):
        parser.feed(chunk)

    assert parser.finish()
    assert parser.message.tool_calls[0].status != "complete"


def test_nothing_but_the_message_grows() -> None:
    """However much text a parser has read, between two pieces it keeps no more of it than a marker's length."""
    parser = Parser(TAGGED.format, REQUEST)
    sizes = []

    for _ in range(50):
        parser.feed("Some text, no call. " * 50)
        sizes.append(len(parser._machine.buffer) + len(parser._machine.events) + len(parser._machine.span_ends))

    assert all(b <= max(a, 64 + 1000) for a, b in pairwise(sizes))
