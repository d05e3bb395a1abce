"""Random grammars of combinators, and texts that may match them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from unrender import nodes
from unrender.grammar import Grammar, Node, Role

ALPHABET = "ab<> "
RULES = ("one", "two")
_TEXTS = st.text(ALPHABET, min_size=1, max_size=3)


def _leaves() -> st.SearchStrategy[Node]:
    ranges = st.sampled_from([(("a", "a"),), (("a", "b"),), (("<", ">"), ("a", "a"))])
    bounds = st.sampled_from([(0, None), (1, None), (1, 1), (0, 2), (2, 3), (0, 0)])
    return st.one_of(
        _TEXTS.map(nodes.Literal),
        st.builds(nodes.Layout, st.sampled_from(["", " ", " a"])),
        st.builds(lambda r, n, b: nodes.Chars(r, n, b[0], b[1]), ranges, st.booleans(), bounds),
        st.lists(_TEXTS, max_size=2).map(lambda stops: nodes.Until(tuple(stops))),
        st.just(nodes.End()),
        st.just(nodes.Cut()),
        st.sampled_from(RULES).map(nodes.Ref),
    )


def _composed(below: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    few = st.lists(below, min_size=1, max_size=3).map(tuple)
    counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (0, 2)])
    return st.one_of(
        few.map(nodes.Sequence),
        few.map(nodes.Choice),
        below.map(nodes.Optional),
        st.builds(lambda n, c, s: nodes.Repeat(n, c[0], c[1], s), below, counts, st.none() | below),
        below.map(nodes.Peek),
        below.map(nodes.Negate),
        below.map(nodes.Atomic),
    )


def _node(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.recursive(leaves, _composed, max_leaves=6)


def grammars() -> st.SearchStrategy[Grammar]:
    """Draw a grammar with two rules. Some are left-recursive, which the compiler rejects."""
    plain = _node(_leaves())
    tagged = st.builds(nodes.Tag, st.sampled_from([Role.CONTENT, Role.REASONING]), plain)
    root = _node(_leaves() | tagged)
    return st.builds(lambda r, one, two: Grammar(r, {"one": one, "two": two}), root, plain, plain)


def text_for(grammar: Grammar, seed: int) -> str:
    """Return a text from the grammar, with up to two random changes."""
    chance = random.Random(seed)
    text = _walk(grammar.root, grammar, chance, 12)
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randint(0, len(text))
        text = text[:at] + chance.choice(("", *ALPHABET)) + text[at + chance.randint(0, 1) :]
    return text[:40]


def _walk(node: Node, grammar: Grammar, chance: random.Random, depth: int) -> str:
    def below(part: Node) -> str:
        return _walk(part, grammar, chance, depth - 1) if depth > 0 else ""

    match node:
        case nodes.Literal(text) | nodes.Layout(text):
            return text
        case nodes.Chars(_, _, low, high):
            return "".join(chance.choices(ALPHABET, k=chance.randint(low, low + 2 if high is None else high)))
        case nodes.Until():
            return "".join(chance.choices(ALPHABET, k=chance.randint(0, 3)))
        case nodes.Sequence(parts):
            return "".join(map(below, parts))
        case nodes.Choice(options):
            return below(chance.choice(options))
        case nodes.Optional(inner):
            return below(inner) if chance.random() < 0.6 else ""
        case nodes.Repeat(inner, low, high, separator):
            rounds = [below(inner) for _ in range(chance.randint(low, low + 2 if high is None else high))]
            return (below(separator) if separator else "").join(rounds)
        case nodes.Ref(rule):
            return below(grammar.rules[rule])
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            return below(inner)
    return ""
