"""Text on the fast path gives exactly the machine's result, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.families import FAMILIES, JSON_ENVELOPE, REQUEST, TAGGED, Family
from properties.outputs import jumbled, mutated
from splitting import fed_only, merged, pieces, random_pieces

from unrender import Event, Parser, Policy
from unrender.testing import numbered_id
from unrender.types import Request, Span

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
RELEASES: tuple[Literal["complete", "streamed"], ...] = ("complete", "streamed")
REQUESTS = (REQUEST, Request(tools=None), Request(tools=REQUEST.tools, reasoning_format="none"))
PROSE = 'If 3 < x, then {"a": [1, 2.5, null, true]} \\ "b"\nand so on. '


class Stepwise(Parser):
    """A parser whose machine reads every chunk."""

    def _start_flow(self, machine: object) -> None:
        pass


def readings(
    family: Family, seed: int, kind: type[Parser], text: str
) -> Iterator[tuple[list[Event], int, tuple[Span, ...]]]:
    """Yield a parser's events and final position after each chunk."""
    random = Random(seed)
    policy = Policy(tool_calls=random.choice(RELEASES))
    request = random.choice(REQUESTS)
    parser = kind(family.format, request, prompt=family.prompt, policy=policy, ids=numbered_id)
    look = random.random() < 0.5
    for chunk in random_pieces(text, random.choice((1, 4, 9)), seed):
        events = merged(parser.feed(chunk))
        yield events, parser._settled if look else 0, parser.spans if look else ()
    yield merged(parser.finish()), parser._settled, parser.spans


def check(family: Family, text: str, seed: int) -> None:
    assert list(readings(family, seed, Parser, text)) == list(readings(family, seed, Stepwise, text))


@pytest.mark.few(12)
@each_family
def test_outputs_are_read_as_step_by_step(family):
    """Long values, and prose with partial markers, leave in the same chunks with the same positions."""
    for seed, output in enumerate(family.outputs):
        longer = output.replace("Paris", PROSE.replace('"', "'").replace("\\", "") * 3).replace(
            "Let me see.", PROSE * 3
        )
        for text in (output, longer, longer + PROSE):
            check(family, text, seed)
            check(family, text, seed + 100)


@pytest.mark.few(12)
@each_family
@settings(max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 3)
@given(data=st.data())
def test_broken_outputs_are_read_as_step_by_step(family, data):
    """For broken outputs, too, each chunk gives the same events at the same time."""
    text = data.draw(st.one_of(mutated(family), jumbled(family)))

    check(family, text, data.draw(st.integers(0, 999)))


@pytest.mark.parametrize("family", [JSON_ENVELOPE, TAGGED], ids=str)
def test_most_of_a_long_answer_goes_straight_through(family):
    """The machine reads the ends of long texts and values, but not their middle, which makes chunks cheap."""
    text = (
        family.outputs[0]
        .replace("Paris", "a city, with < and , in it " * 40)
        .replace("Let me see.", "Well, 3 < x. " * 40)
    )
    parser = family.parser()
    chunks = pieces(text, 4)
    through = 0
    for chunk in chunks:
        before = len(parser._passing)
        parser.feed(chunk)
        through += len(parser._passing) > before

    assert through > len(chunks) * 0.8


@pytest.mark.parametrize("size", [1, 3, 4])
def test_copies_in_mid_flow_go_their_own_ways(size):
    """A copy, a deep copy and a restored parser each continue after the chunk, even inside a marker."""
    text = JSON_ENVELOPE.outputs[0].replace("Let me see.", "a < b <th and <tool_c, so. " * 4)
    whole = JSON_ENVELOPE.parser()
    fed_only(whole, [text])
    for cut in range(0, len(text), 5):
        first = JSON_ENVELOPE.parser()
        fed_only(first, pieces(text[:cut], size))
        for parser in (first.copy(), deepcopy(first), JSON_ENVELOPE.restored(first.state()), first):
            fed_only(parser, pieces(text[cut:], size))
            assert parser.message == whole.message
