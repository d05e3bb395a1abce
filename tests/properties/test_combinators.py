"""The engine reads any grammar of combinators as the naive recogniser does, at every chunking."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties.grammars import grammars, text_for
from properties.recogniser import recognise
from splitting import splits

from unrender.errors import GrammarError
from unrender.machine.handmade.combinators import compile_combinators
from unrender.nodes import Grammar
from unrender.parsing.engine import Broken, Closed, Engine, Note, Notice, Opened, Program

TEXTS = 5
"""Texts for each grammar."""


def program(grammar: Grammar) -> Program | None:
    """Compile the grammar; None where the compiler refuses it, which it does for left recursion alone."""
    try:
        return compile_combinators(grammar)
    except GrammarError as error:
        if "left recursion" not in str(error):
            raise
        return None


def read(program: Program, chunks: list[str]) -> list[Notice]:
    engine = Engine(program, None)
    notices = [notice for chunk in chunks for notice in engine.feed(chunk)]
    notices += engine.finish()
    total = len("".join(chunks))
    ends = [end for _, end in engine.final_spans()]
    assert ends == sorted(set(ends))
    assert (ends or [0])[-1] == total
    assert not engine.spent > 64 * total + 10_100
    return notices


def tagged(notices: list[Notice]) -> tuple[tuple[str, str], ...] | None:
    """Return the text of each tag; None when the text does not match."""
    found: list[tuple[str, str]] = []
    for notice in notices:
        match notice:
            case Broken():
                return None
            case Opened(role):
                found.append((role.value, ""))
            case Note(role, text):
                assert found[-1][0] == role.value
                found[-1] = (role.value, found[-1][1] + text)
            case Closed():
                pass
    return tuple(found)


def joined(notices: list[Notice]) -> list[Notice]:
    """Join neighbouring notes, which chunks cut differently."""
    whole: list[Notice] = []
    for notice in notices:
        if whole and isinstance(notice, Note) and isinstance(whole[-1], Note) and whole[-1].role is notice.role:
            whole[-1] = Note(notice.role, whole[-1].text + notice.text)
        else:
            whole.append(notice)
    return whole


def check(grammar: Grammar, seed: int) -> None:
    compiled = program(grammar)
    assume(compiled is not None)
    assert compiled is not None
    for number in range(TEXTS):
        text = text_for(grammar, seed * TEXTS + number)
        whole = read(compiled, [text])
        if not any(isinstance(n, Broken) and "fewer attempts" in n.expected for n in whole):
            assert tagged(whole) == recognise(grammar, text), text
        for chunks in splits(text):
            assert joined(read(compiled, chunks)) == joined(whole), chunks


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_the_engine_agrees_with_the_recogniser(grammar, seed):
    """What matches, and the text of every tag, are the same in every chunking."""
    check(grammar, seed)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_the_engine_agrees_with_the_recogniser_at_length(grammar, seed):
    """The same for 10^5 pairs of grammar and text."""
    check(grammar, seed)
