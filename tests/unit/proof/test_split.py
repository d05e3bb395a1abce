"""Comparison of two texts, and the literals around a row of items."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest
from cases import cases

from unrender import Limits
from unrender.analysis.ask import Spent
from unrender.analysis.find.skeletons import json_spans
from unrender.format import lexemes
from unrender.proof.split import (
    calculate_diff_split,
    closers_of,
    common_prefix,
    common_suffix,
    is_tag,
    is_word,
    openers_of,
    solve,
)

TEXTS = st.text(alphabet="ab <>[]/|\n_1", max_size=30)


@hypothesis.given(TEXTS)
def test_lexemes_lose_nothing(text):
    """The joined lexemes equal the text."""
    assert "".join(lexemes(text)) == text


@hypothesis.given(TEXTS, TEXTS)
def test_split_loses_nothing(left, right):
    """Prefix, middle and suffix of a split give both texts."""
    split = calculate_diff_split(left, right)

    assert split.prefix + split.left + split.suffix == left
    assert split.prefix + split.right + split.suffix == right


@cases
def test_split_never_cuts_a_marker(left, right, prefix, suffix):
    """The common part of two texts ends at their different markers, not inside a marker."""
    split = calculate_diff_split(left, right)

    assert (split.prefix, split.suffix) == (prefix, suffix)


def test_common_ends_compare_words():
    """Words that only start the same aren't shared."""
    assert common_prefix(["find_city", "find_time"]) == ""
    assert common_prefix(["<a>\n\nx", "<a>\ny"]) == "<a>\n"
    assert common_suffix(["one</a>\n", "two</a>\n"]) == "</a>\n"


@cases
def test_openers_and_closers_mirror(opener, closer):
    """A closing marker follows from its opening marker, and the other way round."""
    assert closer in closers_of(opener)
    assert opener in openers_of(closer)
    assert closers_of(closer) == () or opener not in closers_of(closer)


@cases
def test_lexemes_are_tags_or_words(lexeme, tag, word):
    """A tag has both brackets and text between them. A word starts with a letter, a digit or an underscore."""
    assert (is_tag(lexeme), is_word(lexeme)) == (tag, word)


@cases
def test_closers_of_tags(tag, closers):
    """The closing tag has a slash, a bar on the other side, or the other word of a pair."""
    assert list(closers_of(tag)) == closers


@cases
def test_openers_of_closers(closer, openers):
    """The opening tag follows from a closing tag."""
    assert list(openers_of(closer)) == openers


@cases
def test_literals_are_solved(before, between, after, expected):
    """Prefix and suffix are the repeated texts. If they overlap, the border is outside markers and after whitespace."""
    solution = solve(before, between, after)

    assert [solution.prefix, solution.suffix, solution.separator] == expected


def test_json_is_looked_for_at_few_brackets():
    """Trials are limited in a long row of brackets. The last allowed one may open JSON, and later ones are ignored."""
    spans = [list(json_spans("{" * more + '{"a": 1}', "{", 999, Spent(Limits()))) for more in (399, 400)]

    assert [len(found) for found in spans] == [1, 0]
    assert list(json_spans("[" * 50_000, "[", 50_000, Spent(Limits()))) == []


def test_json_is_looked_for_within_the_allowance():
    """Nested values are decoded once for each brace. After too many characters, decoding and analysis stop."""
    text = '{"a":' * 60 + "[" + "0," * 6000 + "0]" + "}" * 60
    spent = Spent(Limits(analysis_searched=50_000))

    found = list(json_spans(text, "{", 999, spent))

    # Each of the first four braces decodes about 12,000 characters. The fifth exceeds the limit.
    assert len(found) == 5
    assert spent.is_over
    assert list(json_spans("{}", "{", 2, spent)) == []


@pytest.mark.parametrize("brackets", ["<>", "[]", "⟦⟧", "«»", "【】", "◁▷"])
def test_markers_in_any_brackets_are_cut_as_a_whole(brackets):
    """Two ends of a turn may share their last character by coincidence."""
    over, wait = (f"{brackets[0]}{word}{brackets[1]}" for word in ("over", "wait"))

    assert common_suffix([f"Hi{over}", f"call{wait}"]) == ""
    assert is_tag(over)
