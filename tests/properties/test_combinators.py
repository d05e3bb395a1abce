"""The machine reads any grammar of combinators as the naive recogniser does, at every chunking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties.grammars import grammars, text_for
from properties.recogniser import recognise
from splitting import splits

from unrender.errors import GrammarError
from unrender.machine.events import ContentText, Malformed, ReasoningText
from unrender.machine.handmade.compiler import compile_combinators
from unrender.machine.handmade.tagged import Closed, Note, Opened
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import Machine, Program
from unrender.messages.wire import Request
from unrender.nodes import Grammar

TEXTS = 5
"""Texts for each grammar."""
_TEXTS = ("content", "reasoning")


def program(grammar: Grammar) -> Program | None:
    """Compile the grammar; None where the compiler refuses it, which it does for left recursion alone."""
    try:
        return compile_combinators(grammar)
    except GrammarError as error:
        if "left recursion" not in str(error):
            raise
        return None


class Unfolded(Machine):
    """A machine whose notices are not delivered: all tags are seen, and what they hold."""

    def deliver(self, found: list[Any]) -> list[Any]:
        return found


def read(program: Program, chunks: list[str]) -> list[Any]:
    request = Request(tools=None)
    machine = Unfolded(program, request, strict=False, ids=CallIds(numbered_id), roles={})
    found = [item for chunk in chunks for item in machine.feed(chunk)]
    found += machine.finish()
    total = len("".join(chunks))
    ends = [end for _, end in machine.final_spans()]
    assert ends == sorted(set(ends))
    assert (ends or [0])[-1] == total
    assert not machine.reread > 64 * total + 10_100
    return found


def tagged(found: list[Any]) -> str | list[tuple[str, str]]:
    """Return the text of each stretch of content and reasoning, and of each part of a call; "" when it does not match."""
    parts: list[tuple[str, str]] = []
    for item in found:
        match item:
            case Malformed():
                return ""
            case Opened(role):
                parts.append((role.value, ""))
            case Note(text):
                parts[-1] = (parts[-1][0], parts[-1][1] + text)
            case ContentText(text) | ReasoningText(text):
                parts.append(("content" if isinstance(item, ContentText) else "reasoning", text))
            case Closed():
                pass
    return joined(parts)


def joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join neighbouring texts, which chunks cut differently."""
    whole: list[tuple[str, str]] = []
    for role, text in parts:
        if role not in _TEXTS:
            whole.append((role, text))
        elif whole and whole[-1][0] == role:
            whole[-1] = (role, whole[-1][1] + text)
        elif text:
            whole.append((role, text))
    return whole


def check(grammar: Grammar, seed: int) -> None:
    compiled = program(grammar)
    assume(compiled is not None)
    assert compiled is not None
    for number in range(TEXTS):
        text = text_for(grammar, seed * TEXTS + number)
        whole = read(compiled, [text])
        if not any(isinstance(item, Malformed) and "fewer attempts" in item.expected for item in whole):
            expected = recognise(grammar, text)
            assert tagged(whole) == ("" if expected is None else joined(expected)), text
        for chunks in splits(text):
            assert tagged(read(compiled, chunks)) == tagged(whole), chunks


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_the_machine_agrees_with_the_recogniser(grammar, seed):
    """What matches, and the text of every tag, are the same in every chunking."""
    check(grammar, seed)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_the_machine_agrees_with_the_recogniser_at_length(grammar, seed):
    """The same for 10^5 pairs of grammar and text."""
    check(grammar, seed)
