"""The machine reads any grammar of combinators like the naive recogniser, for every chunking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from properties.grammars import grammars, text_for
from splitting import splits

from unrender import ContentText, GrammarError, Malformed, ReasoningText, nodes
from unrender.grammar import Grammar, Node
from unrender.machine import CallIds
from unrender.machine.combinators import compile_combinators
from unrender.machine.interpreter import Machine, Program
from unrender.testing import numbered_id
from unrender.types import Request

TEXTS = 5
"""Number of texts for each grammar."""
_TEXTS = ("content", "reasoning")


Match = tuple[int, tuple[tuple[str, str], ...]]
"""The end of the match, and the text of each tag in it."""


class Recogniser:
    """A naive recogniser, the reference for the machine, in as few lines as possible.

    It matches by plain recursion. `cuts` counts the cuts passed outside lookaheads and atoms.
    """

    def __init__(self, rules: Mapping[str, Node], text: str) -> None:
        self.rules, self.text, self.cuts = rules, text, 0

    def match(self, node: Node, at: int) -> Match | None:  # noqa: C901 -- a table, by kind of node
        match node:
            case nodes.Literal(text):
                return (at + len(text), ()) if self.text.startswith(text, at) else None
            case nodes.Layout():
                return re.compile(r"\s*").match(self.text, at).end(), ()
            case nodes.Chars(ranges, negated, low, high):
                held = [any(a <= c <= b for a, b in ranges) != negated for c in self.text[at:]][:high]
                count = (*held, False).index(False)
                return (at + count, ()) if count >= low else None
            case nodes.Until(stops):
                return min([i for s in stops if (i := self.text.find(s, at)) >= 0], default=len(self.text)), ()
            case nodes.End():
                return (at, ()) if at == len(self.text) else None
            case nodes.Cut():
                self.cuts += 1
                return at, ()
            case nodes.Sequence(parts):
                return self.sequence(parts, at)
            case nodes.Choice(options):
                return self.choice(options, at)
            case nodes.Optional(inner):
                return self.choice((inner, nodes.Literal("")), at)
            case nodes.Repeat():
                return self.repeat(node, at)
            case nodes.Ref(rule):
                return self.match(self.rules[rule], at)
            case nodes.Tag(role, inner):
                inside = self.match(inner, at)
                return inside and (inside[0], ((role.value, self.text[at : inside[0]]),))
            case nodes.Peek(inner):
                return (at, ()) if self.apart(inner, at) else None
            case nodes.Negate(inner):
                return None if self.apart(inner, at) else (at, ())
            case nodes.Atomic(inner):
                return self.apart(inner, at)
        raise AssertionError(node)

    def sequence(self, parts: tuple[Node, ...], at: int) -> Match | None:
        tagged: tuple[tuple[str, str], ...] = ()
        for part in parts:
            found = self.match(part, at)
            if found is None:
                return None
            at, tagged = found[0], tagged + found[1]
        return at, tagged

    def choice(self, options: tuple[Node, ...], at: int) -> Match | None:
        cuts = self.cuts
        for option in options:
            found = self.match(option, at)
            if found is not None or self.cuts != cuts:
                return found
        return None

    def repeat(self, node: nodes.Repeat, at: int) -> Match | None:
        tagged: tuple[tuple[str, str], ...] = ()
        count = 0
        while count != node.maximum:
            again = () if node.separator is None or not count else (node.separator,)
            cuts = self.cuts
            found = self.sequence((*again, node.node), at)
            if found is None:
                return (at, tagged) if count >= node.minimum and self.cuts == cuts else None
            empty, at, tagged, count = found[0] == at, found[0], tagged + found[1], count + 1
            if empty:
                break
        return at, tagged

    def apart(self, node: Node, at: int) -> Match | None:
        cuts = self.cuts
        found = self.match(node, at)
        self.cuts = cuts
        return found


def recognise(grammar: Grammar, text: str) -> tuple[tuple[str, str], ...] | None:
    """Return the tagged texts of an answer that matches the grammar completely; None if it doesn't match."""
    found = Recogniser(grammar.rules, text).match(nodes.Sequence((grammar.root, nodes.End())), 0)
    return found and found[1]


def program(grammar: Grammar) -> Program | None:
    """Compile the grammar; None if the compiler rejects it, which happens only for left recursion."""
    try:
        return compile_combinators(grammar)
    except GrammarError as error:
        if "left recursion" not in str(error):
            raise
        return None


def read(program: Program, chunks: list[str]) -> list[Any]:
    request = Request(tools=None)
    machine = Machine(program=program, request=request, strict=False, ids=CallIds(numbered_id), roles={})
    found = [item for chunk in chunks for item in machine.feed(chunk)]
    found += machine.finish()
    total = len("".join(chunks))
    ends = [end for _, end in machine.final_spans()]
    assert ends == sorted(set(ends))
    assert (ends or [0])[-1] == total
    assert not machine.reread > 64 * total + 10_100
    return found


def tagged(found: list[Any]) -> str | list[tuple[str, str]]:
    """Return the text of each stretch of content and reasoning; "" if the text doesn't match."""
    parts: list[tuple[str, str]] = []
    for item in found:
        match item:
            case Malformed():
                return ""
            case ContentText(text) | ReasoningText(text):
                parts.append(("content" if isinstance(item, ContentText) else "reasoning", text))
    return joined(parts)


def joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join adjacent texts, since chunks split them differently."""
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
    """The match and the text of every tag agree with the recogniser."""
    check(grammar, seed)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(grammars(), st.integers(0, 1 << 30))
def test_the_machine_agrees_with_the_recogniser_at_length(grammar, seed):
    """The machine agrees with the recogniser for 10^5 pairs of grammar and text."""
    check(grammar, seed)
