"""The parser's guarantees for every family: one reading for any chunking, no errors, no loss, resumable."""

from __future__ import annotations

import pickle

import pytest
from cases import thinned
from hypothesis import given
from hypothesis import strategies as st
from properties.families import CONTENT, FAMILIES, REQUEST, Family
from properties.invariants import MakeParser, check, check_copies, check_strict, read
from properties.outputs import jumbled, mutated
from splitting import fed_only, merged

from unrender import Parser
from unrender.testing import numbered_id
from unrender.types import Request

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
ANY_TOOL = Request(tools=None)


def maker(family: Family, *, strict: bool = False, request: Request = REQUEST) -> MakeParser:
    return lambda: Parser(family.format, request, prompt=family.prompt, strict=strict, ids=numbered_id)


@each_family
def test_the_standard_output_means_the_standard_message(family: Family) -> None:
    """Text and calls in the format's own spelling are read back exactly for every chunking, even by a strict parser."""
    calls = [("get_weather", '{"city": "Paris", "days": 3}'), ("get_time", '{"city": "Rome"}')]

    for strict in (False, True):
        message = check(maker(family, strict=strict), family.outputs[0])

        assert message.content == CONTENT
        assert [(call.name, call.arguments_json) for call in message.tool_calls] == calls[: 1 if family.one_call else 2]


@each_family
def test_every_output_is_read_alike_at_every_chunking(family: Family) -> None:
    """Events, message, deltas and spans don't depend on the chunks, with the tools known or unknown."""
    for output in family.outputs:
        check(maker(family), output)
        check(maker(family, request=ANY_TOOL), output)


@pytest.mark.few(8)
@each_family
@given(data=st.data())
def test_any_text_is_read_alike_at_every_chunking(family: Family, data: st.DataObject) -> None:
    """Markers in any order are read without error or gap for any chunking, even if any name is a tool."""
    text = data.draw(jumbled(family))

    check(maker(family), text)
    check(maker(family, request=ANY_TOOL), text)


@pytest.mark.few(8)
@each_family
@given(data=st.data())
def test_strict_reading_raises_malformed_output_alone(family: Family, data: st.DataObject) -> None:
    """A strict parser reads a text or raises `ParseError` at the same place for every chunking."""
    text = data.draw(st.one_of(mutated(family), jumbled(family)))

    check_strict(maker(family, strict=True), text)


@each_family
@thinned(7)
def test_a_copy_at_every_position_goes_on_like_the_original(family: Family, step: int) -> None:
    """A copy is complete at every position of a real output."""
    output = family.outputs[0]

    check_copies(maker(family), output, list(range(0, len(output) + 1, step)))


@each_family
@thinned(5)
def test_a_parser_pickles_at_every_position(family: Family, step: int) -> None:
    """A parser pickled inside an output continues like the original."""
    output = family.outputs[0]
    expected = read(maker(family)(), output, [output])

    for at in range(0, len(output), 7 * step):
        parser = maker(family)()
        before = fed_only(parser, [output[:at]])
        revived: Parser = pickle.loads(pickle.dumps(parser))
        events = [*before, *revived.feed(output[at:]), *revived.finish()]

        assert (merged(events), revived.message) == expected
