"""Work and memory grow linearly with the output, measured by counting, on texts designed to be slow.

Strategy: instructions are counted (`Parser.steps`). The work of one instruction is limited by the buffer, so the buffer
is measured as well. Counting misses work inside a regex or a slice, so processor time is compared as well: the second
half of a text with the first, and twice a text with the text. The best of several measurements counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from random import Random

import pytest
from properties.attacks import attacks, filled, readings
from properties.families import JSON_ENVELOPE, TAGGED, TYPED, Reading
from splitting import fed, pieces

from unrender import Parser

each_reading = pytest.mark.parametrize("reading", readings(), ids=lambda reading: reading.name)
CHOSEN = 2
"""Number of attacks on each format. The hunt in `tests/hunting/outputs.py` tries all of them."""
SIZE = 7_500
WHOLE = 40_000
ENOUGH = 0.05
"""Seconds that stand out from noise. A shorter text is enough if it takes this long."""
STEPS_PER_CHARACTER = 12
BUFFERED = 1_500
"""Maximum hold-back in characters, longer than any marker, name or number."""
GROWTH = 2.3
TRIES = 10
NOISE = 0.003
"""Seconds that may be noise."""


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Disable the garbage collector during measurements."""
    gc.disable()
    yield
    gc.enable()


def chosen(reading: Reading, seed: int) -> list[tuple[str, str]]:
    """Return a sample of a format's attacks. Samples differ, so all kinds occur over all formats."""
    found = list(attacks(reading))
    return Random(f"{reading.name} {seed}").sample(found, min(len(found), CHOSEN))


def halves(reading: Reading, text: str, chunk: int) -> tuple[float, float]:
    """Feed `text`; return the seconds for its first half and its second half. Steps and buffer are checked."""
    parser = reading.parser()
    seconds, middle = [], (len(text) + BUFFERED) // 2
    # The hold-back may first grow up to its limit.
    for part in (text[:BUFFERED], text[BUFFERED:middle], text[middle:]):
        start = time.process_time()
        for piece in pieces(part, chunk):
            parser.feed(piece)
            assert waiting(parser) <= BUFFERED
        seconds.append(time.process_time() - start)
    parser.finish()
    assert parser._steps <= STEPS_PER_CHARACTER * len(text)
    return seconds[1], seconds[2]


def waiting(parser: Parser) -> int:
    """Return the number of characters that the parser examines with the next chunk."""
    return len(parser._machine.buffer) - parser._machine.at + len(parser._tail)


def whole(reading: Reading, text: str) -> float:
    """Return the seconds that `text` takes in one chunk."""
    parser = reading.parser()
    start = time.process_time()
    fed(parser, [text])
    return time.process_time() - start


def doubles(measure: Callable[[], tuple[float, float]], most: float) -> bool:
    """Return whether the second of two costs is at most `most` times the first, in the best of several measurements."""
    first = second = float("inf")
    for _ in range(TRIES):
        one, other = measure()
        first, second = min(first, one), min(second, other)
        if second <= most * first + NOISE:
            return True
    return False


@pytest.mark.few(16)
@pytest.mark.parametrize("chunk", [1, 4])
@each_reading
def test_twice_the_text_in_small_pieces_costs_twice(reading: Reading, chunk: int) -> None:
    """The second half of a text costs as much as the first half, and the buffer doesn't grow."""

    def grows(attack: tuple[str, str], size: int) -> bool:
        return not doubles(partial(halves, reading, filled(*attack, size), chunk), GROWTH - 1)

    # Faster growth is even clearer with more text; the noise of a busy machine isn't.
    slow = [attack for attack in chosen(reading, chunk) if grows(attack, SIZE) and grows(attack, 4 * SIZE)]

    assert slow == []


@pytest.mark.few(12)
@each_reading
def test_twice_the_text_in_one_piece_costs_twice(reading: Reading) -> None:
    """A text fed in one chunk isn't read again, and its rest isn't copied."""

    def grows(attack: tuple[str, str], size: int) -> bool:
        return not doubles(partial(both, reading, *attack, size), GROWTH)

    sized = [(attack, long_enough(reading, *attack)) for attack in chosen(reading, 0)]

    # Faster growth is even clearer with more text.
    assert [attack for attack, size in sized if grows(attack, size) and grows(attack, 4 * size)] == []


def long_enough(reading: Reading, start: str, unit: str) -> int:
    """Return the size of an attack that is worth timing: long enough to take `ENOUGH`, and at most `WHOLE`."""
    # A "/" that starts a call takes 75 µs. 40,000 of them take three seconds and show no more than 5,000.
    size = WHOLE // 8
    while size < WHOLE and whole(reading, filled(start, unit, size)) < ENOUGH:
        size *= 2
    return size


def both(reading: Reading, start: str, unit: str, size: int) -> tuple[float, float]:
    """Return the costs of an attack of `size` characters and of twice as many, each in one chunk."""
    # A single wide character makes copies of the rest four times as expensive.
    short, long = (filled(start, unit, characters) + "🌍" for characters in (size, 2 * size))
    return whole(reading, short), whole(reading, long)


def test_a_held_call_is_not_copied_with_each_chunk() -> None:
    """The next chunk costs the same, however much text waits for the end of a call in reasoning."""
    parser = JSON_ENVELOPE.parser()
    parser.feed('<think>\n<tool_call>\n{"name": "now", "arguments": {"city": "')

    for chunk in pieces("a" * 20_000, 4):
        parser.feed(chunk)
        assert waiting(parser) <= BUFFERED


def test_what_breaks_off_is_read_again_a_bounded_number_of_times() -> None:
    """A thousand calls inside reasoning are reasoning if text follows, and aren't tried one after the other."""
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n'
    steps = []
    for count in (500, 1000):
        parser = JSON_ENVELOPE.parser()
        fed(parser, ["<think>\n" + call * count + "and so on"])
        steps.append(parser._steps)
        assert parser.message.tool_calls == ()
        assert parser.message.reasoning == (call * count + "and so on")

    assert steps[1] < GROWTH * steps[0]


@pytest.mark.parametrize("place", ["city", "note", "days", "unheard_of", "options", "tags"])
def test_a_huge_argument_costs_its_length(place: str) -> None:
    """A megabyte in one argument of any type takes a few seconds at most in chunks, and is complete."""
    body = "lorem ipsum " * 87_000
    end = "\n</function>\n</tool_call>"
    parser = TAGGED.parser()
    start = time.process_time()
    fed(parser, ["<function=now>\n", f"<parameter={place}>\n", *pieces(body, 40), f"\n</parameter>{end}"])

    assert len(parser.message.tool_calls[0].arguments_json) >= len(body)
    assert time.process_time() - start < 10


def test_nesting_is_bounded() -> None:
    """A million brackets end in a failed call, without deep recursion."""
    parser = TYPED.parser()
    parser.feed('<|ML|calls>\n<|ML|invoke name="now">\n<|ML|parameter name="tags" string="false">')

    for chunk in pieces("[" * 1_000_000, 1000):
        parser.feed(chunk)

    assert parser.finish()
    assert (parser.message.tool_calls, [call.status for call in parser.message.failed_calls]) == ((), ["truncated"])


def test_nothing_but_the_message_grows() -> None:
    """Between two chunks, the parser stores no more text than a marker's length, however much it has read."""
    parser = TAGGED.parser()
    sizes = []

    for _ in range(50):
        parser.feed("Some text, no call. " * 50)
        sizes.append(len(parser._machine.buffer) + len(parser._machine.events) + len(parser._machine.span_ends))

    assert all(b <= max(a, 64 + 1000) for a, b in pairwise(sizes))
