"""The difference core of the seeds."""

from __future__ import annotations

import itertools

import hypothesis
import hypothesis.strategies as st
import pytest

from unrender.analysis.find.split import (
    after_common_suffix,
    calculate_diff_split,
    closers_of,
    common_prefix,
    common_suffix,
    compare_variants,
    is_tag,
    is_word,
    lexemes,
    openers_of,
    segmentize_markers,
    until_common_prefix,
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


@hypothesis.given(TEXTS)
def test_segments_lose_nothing(text):
    """Segments joined are the text again, and two stretches without markers never touch."""
    segments = segmentize_markers(text)

    assert "".join(segment.text for segment in segments) == text
    assert not any(not a.is_marker and not b.is_marker for a, b in itertools.pairwise(segments))


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


def test_markers_are_segments():
    """Angle and square brackets make markers, the rest does not."""
    segments = segmentize_markers("a<b>c[/D]")

    assert [(segment.text, segment.is_marker) for segment in segments] == [
        ("a", False),
        ("<b>", True),
        ("c", False),
        ("[/D]", True),
    ]


def test_text_around_shared_ends():
    """The text before a common prefix and after a common suffix is what holds two variants."""
    assert until_common_prefix("<args><k>one", "<k>one", "<k>two") == "<args>"
    assert after_common_suffix("one</k></args>", "one</k>", "two</k>") == "</args>"


def test_texts_that_share_nothing_cut_nothing():
    """Without a common suffix, all of a text is after it; without a common prefix, before it."""
    assert after_common_suffix("text", "a", "b") == "text"
    assert until_common_prefix("text", "a", "b") == "text"


def test_variants_are_compared():
    """A probe and its changed variant are rendered and split; one that does not render compares as nothing."""
    split = compare_variants("a", str.upper, lambda probe: f"<x>{probe}</x>")

    assert split is not None
    assert (split.left, split.right) == ("a", "A")
    assert compare_variants("a", str.upper, lambda probe: None if probe == "A" else probe) is None


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
