"""The difference core of the seeds."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from unrender.analysis.find.split import (
    calculate_diff_split,
    closers_of,
    common_prefix,
    common_suffix,
    is_tag,
    is_word,
    lexemes,
    openers_of,
)

TEXTS = st.text(alphabet="ab <>[]/|\n_1", max_size=30)


@hypothesis.given(TEXTS)
def test_lexemes_lose_nothing(text):
    """Lexemes joined are the text again."""
    assert "".join(lexemes(text)) == text


@hypothesis.given(TEXTS, TEXTS)
def test_split_loses_nothing(left, right):
    """Prefix, middle and suffix of a split give both texts back."""
    split = calculate_diff_split(left, right)

    assert split.prefix + split.left + split.suffix == left
    assert split.prefix + split.right + split.suffix == right


@pytest.mark.parametrize(
    ("left", "right", "prefix", "suffix"),
    [
        ("<think>a</think>", "<tool_call>a</tool_call>", "", ""),
        ("x<b>1</b>", "x<b>2</b>", "x<b>", "</b>"),
        ("[INST]a[/INST]", "[IMG]a[/INST]", "", "a[/INST]"),
        ("same", "same", "same", ""),
        ("", "<a>", "", ""),
    ],
)
def test_split_never_cuts_a_marker(left, right, prefix, suffix):
    """What two texts share ends where their markers differ, not where these markers' letters do."""
    split = calculate_diff_split(left, right)

    assert (split.prefix, split.suffix) == (prefix, suffix)


def test_common_ends_compare_words():
    """A word that only begins alike is not shared."""
    assert common_prefix(["find_city", "find_time"]) == ""
    assert common_prefix(["<a>\n\nx", "<a>\ny"]) == "<a>\n"
    assert common_suffix(["one</a>\n", "two</a>\n"]) == "</a>\n"


@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        ("<think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|plan|>", "<|/plan|>"),
        ("<|inner_prefix|>", "<|inner_suffix|>"),
        ("<|channel>", "<channel|>"),
        ("<|tool_call_begin|>", "<|tool_call_end|>"),
    ],
)
def test_openers_and_closers_mirror(opener, closer):
    """A closer is known from its opener, and the other way round."""
    assert closer in closers_of(opener)
    assert opener in openers_of(closer)
    assert closers_of(closer) == () or opener not in closers_of(closer)


@pytest.mark.parametrize(
    ("lexeme", "tag", "word"),
    [
        ("<think>", True, False),
        ("[INST]", True, False),
        ("<<X>>", True, False),
        ("<>", False, False),
        ("<a", False, False),
        ("a>", False, True),
        ("<a]", False, False),
        ("word", False, True),
        ("7", False, True),
        ("_x", False, True),
        ("-", False, False),
        ("", False, False),
    ],
)
def test_lexemes_are_tags_or_words(lexeme, tag, word):
    """A tag has both brackets and something between; a word begins with a letter, a digit or an underscore."""
    assert (is_tag(lexeme), is_word(lexeme)) == (tag, word)


@pytest.mark.parametrize(
    ("tag", "closers"),
    [
        ("</think>", ()),
        ("<|/think|>", ()),
        ("<<SYS>>", ("<</SYS>>",)),
        ("<</SYS>>", ()),
        ("[[x]]", ("[[/x]]",)),
        ("[X]", ("[/X]",)),
        ("<|x|>", ("</|x|>", "<|/x|>")),
        ("<|x>", ("</|x>", "<x|>")),
        ("<tool_start>", ("</tool_start>", "<tool_end>")),
        ("<|BEGIN|>", ("</|BEGIN|>", "<|/BEGIN|>", "<|END|>")),
        ("<open>", ("</open>", "<close>")),
        ("<prefix>", ("</prefix>", "<suffix>")),
    ],
)
def test_closers_of_tags(tag, closers):
    """A slash, a bar on the other side, or the other word of a pair; what closes has no closer."""
    assert closers_of(tag) == closers


@pytest.mark.parametrize(
    ("closer", "openers"),
    [
        ("</think>", ("<think>",)),
        ("<|/think|>", ("<|think|>",)),
        ("<</SYS>>", ("<<SYS>>",)),
        ("[[/x]]", ("[[x]]",)),
        ("[/X]", ("[X]",)),
        ("<x|>", ("<|x>",)),
        ("<|x|>", ()),
        ("<tool_end>", ("<tool_start>", "<tool_begin>")),
        ("<|CLOSE|>", ("<|OPEN|>",)),
        ("<x>", ()),
    ],
)
def test_openers_of_closers(closer, openers):
    """The other way round."""
    assert openers_of(closer) == openers
