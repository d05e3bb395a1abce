"""Hypothesis strategies: outputs of a family with typical errors of models, and texts made of its markers."""

from __future__ import annotations

from hypothesis import strategies as st
from properties.families import Family
from splitting import pieces

_WORDS = (
    *("a", " ", "\n", "<", "{", "[", '"', "'", "\\", ">", "}", "]", ",", ":", "(", ")", "=", "-", "`", "```"),
    *("é", "🌍", "\x00", "\ud800", "null", "1.5", "True", "functions.now:0", '{"name": "now", "arguments": {}}'),
    *("x" * 5000, " " * 70, "\n" * 70, " " * 63, "0" * 300, "[" * 20, '{"a":' * 9),
)
"""Additional texts: all significant characters, words that look like values, and runs longer than any limit."""


def mutated(family: Family) -> st.SearchStrategy[str]:
    """Return outputs with up to three mutations: text deleted, doubled, swapped, cut off, or a marker inserted."""
    steps = st.tuples(
        st.sampled_from(sorted(_MUTATIONS)), st.integers(0, 400), st.integers(0, 400), st.sampled_from(family.markers)
    )
    return st.builds(_mutate, st.sampled_from(family.outputs), st.lists(steps, max_size=3))


def jumbled(family: Family) -> st.SearchStrategy[str]:
    """Return texts of markers, pieces of outputs and awkward characters in any order."""
    parts = [piece for output in family.outputs for piece in pieces(output, len(output) // 5 or 1)]
    piece = st.one_of(st.sampled_from((*family.markers, *_WORDS, *parts)), st.text(max_size=4))
    return st.lists(piece, max_size=14).map("".join)


def _mutate(output: str, steps: list[tuple[str, int, int, str]]) -> str:
    for kind, a, b, marker in steps:
        start, end = sorted((a % (len(output) + 1), b % (len(output) + 1)))
        output = _MUTATIONS[kind](output, start, end, marker)
    return output


_MUTATIONS = {
    "delete": lambda text, start, end, _: text[:start] + text[end:],
    "duplicate": lambda text, start, end, _: text[:end] + text[start:end] + text[end:],
    "swap": lambda text, start, end, _: text[end:] + text[start:end] + text[:start],
    "truncate": lambda text, start, _end, _marker: text[:start],
    "insert": lambda text, start, _end, marker: text[:start] + marker + text[start:],
    "replace": lambda text, start, end, marker: text[:start] + marker + text[end:],
}
