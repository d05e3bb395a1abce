"""The parser's guarantees hold for handwritten grammars, too: those of `by_hand`, and random ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties.by_hand import BY_HAND, FORMAT, LINES, ByHand
from properties.families import REQUEST
from properties.grammars import grammars, text_for
from properties.invariants import check, check_copies, check_strict

from unrender import GrammarError, Malformed, Parser, Turn
from unrender.grammar import Grammar

each = pytest.mark.parametrize("made", BY_HAND, ids=repr)
_PIECES = st.sampled_from(
    ["<|end|>", "\n", "<", "'", "}", "{", ")", "get_time", "! ", "rm", ":", " ", "é", "<call>", ""]
)


def broken(made: ByHand) -> st.SearchStrategy[str]:
    """Draw an output with some pieces inserted or replaced."""

    def put(parts: tuple[str, list[tuple[int, int, str]]]) -> str:
        text, changes = parts
        for at, size, piece in changes:
            place = at % (len(text) + 1)
            text = text[:place] + piece + text[place + size :]
        return text

    change = st.tuples(st.integers(0, 200), st.integers(0, 4), _PIECES)
    return st.tuples(st.sampled_from(made.outputs), st.lists(change, max_size=3)).map(put)


@each
def test_outputs_are_read_alike_at_every_chunking(made: ByHand) -> None:
    """Every character is accounted for once, with or without the end of the turn, and for whole or partial calls."""
    for output in made.outputs:
        plain = check(made.parser, output)
        ended = check(made.parser, output + "<|end|>\n")
        assert ended == plain


@each
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_broken_outputs_are_read_alike_at_every_chunking(made: ByHand, data: st.DataObject) -> None:
    """Text that the grammar doesn't allow is content. Strict parsers raise at one place, and copies continue alike."""
    text = data.draw(broken(made))

    check(made.parser, text)
    check_strict(lambda: made.parser(strict=True), text)
    check_copies(made.parser, text, [len(text) // 3, len(text) // 2])


@each
def test_what_is_generated_is_read(made: ByHand) -> None:
    """Samples are accepted by a strict parser, and every call in them is complete."""
    turn = Turn(prompt="", format=FORMAT, request=REQUEST, grammar=made.grammar)
    for seed in range(25):
        parser = made.parser(strict=True)
        text = turn.sample(seed)
        events = [*parser.feed(text), *parser.finish()]
        assert not [event for event in events if isinstance(event, Malformed)]
        assert all(call.status == "complete" for call in parser.message.tool_calls), text


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_drawn_grammars_keep_the_promises(grammar: Grammar, seed: int) -> None:
    """Any text is read the same for every chunking, without loss, and a strict parser raises at one place."""
    try:
        Parser(FORMAT, REQUEST, grammar=grammar)
    except GrammarError:
        assume(False)  # Left recursion.
    text = text_for(grammar, seed)

    check(lambda: Parser(FORMAT, REQUEST, grammar=grammar), text)
    check_strict(lambda: Parser(FORMAT, REQUEST, grammar=grammar, strict=True), text)


def test_text_that_is_final_is_forgotten() -> None:
    """A parser of a grammar with cuts stores no more after a long answer than after a short one."""
    sizes = []
    for times in (3, 300):
        parser = LINES.parser()
        for character in "\n".join(LINES.outputs[:1] * times):
            parser.feed(character)
        machine = parser._machine
        sizes.append(
            len(machine.buffer) + sum(map(len, machine.past.needed)) + len(machine.events) + len(machine.frames)
        )
        assert len(parser.message.tool_calls) == 2 * times
    assert sizes[1] <= sizes[0]
