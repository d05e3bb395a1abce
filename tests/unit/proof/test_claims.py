"""Claims about a template's texts, their parts, and the answers that are possible."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache

import corpus
import hypothesis
import hypothesis.strategies as st
import pytest
from cases import beside, cases
from rendering_rows import template_of
from rows import patched

from unrender import ChatTemplate, Limits
from unrender.analysis.ask import CONTENT, Prober, Spent, shapes
from unrender.analysis.ask.discovery import discover
from unrender.analysis.derivation import witness_of
from unrender.analysis.find.skeletons import json_spans
from unrender.errors import FormatWarning
from unrender.format import (
    CallSyntax,
    Content,
    Format,
    Reasoning,
    ToolMode,
    TurnTexts,
    lexemes,
)
from unrender.format.data import decode
from unrender.proof import Witness
from unrender.proof.claims import claims_to_read, possible_format, prove
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
from unrender.verify import Verdict, verify

GLUED = beside(__file__, "glued.jinja")
"""A template in which only the prompt writes all the arrows before a call."""


@cache
def witness(name: str) -> Witness:
    path = corpus.TEMPLATES / f"{name}.jinja"
    return witness_of(discover(Prober(template=template_of(path.read_text(encoding="utf-8")))))


@pytest.fixture
def format():
    return corpus.derived_format(corpus.TEMPLATES / "json-tags.jinja")


PARTS = ("tools", "reasoning", "content", "content_with_calls")


@cases
def test_what_is_not_read_is_no_longer_claimed(why, template, wrong, left, given_up, misread):
    """A wrong part of a format is dropped with a message, and the other parts are kept. `wrong` and `left` are changes of the format."""
    derived = corpus.derived_format(corpus.TEMPLATES / f"{template}.jinja").to_dict()
    changed, expected = (Format.from_dict(patched(derived, change)) for change in (spelled(wrong), left))
    proof = prove(witness(template), changed)

    assert [getattr(proof.format, part) for part in PARTS] == [getattr(expected, part) for part in PARTS]
    assert [text.partition(":")[0] for text in proof.given_up] == given_up
    assert sorted({found.cut_out.name for found in proof.misread}) == misread


def spelled(change):
    """Return a change with the probe's content."""
    return json.loads(json.dumps(change).replace("CONTENT", CONTENT))


def test_single_calls_are_claimed_alone(format):
    """For a format that allows one call, no answer with several calls is claimed."""
    single = replace(format, tools=replace(format.tools, parallel=False))

    assert [
        name for name, said in shapes().values() if claims_to_read(format, said) != claims_to_read(single, said)
    ] == [
        "two calls",
        "three calls",
    ]


def test_what_is_given_up_is_a_warning_and_not_a_refuted_claim():
    """The format claims less and warns once. All remaining claims pass."""
    template = ChatTemplate.from_string(GLUED)

    with pytest.warns(FormatWarning, match="several calls are read"):
        format = template.format
    with warnings.catch_warnings(action="error"):
        assert template.format is format
    report = verify(template, samples=3)

    assert format.tools.mode is not ToolMode.NONE
    assert not format.tools.parallel
    assert [found.capability for found in report.failed if "rammar" not in found.capability] == []
    unclaimed = [found for found in report.findings if found.reason == "not part of the format"]
    assert {(found.capability, found.verdict) for found in unclaimed} == {
        ("parallel tool calls", Verdict.SKIPPED),
        ("identical tool calls", Verdict.SKIPPED),
    }


UNMARKED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<bot>{% if m.reasoning_content %}<{{ m.reasoning_content }}{% endif %}"
    "{{ m.content }}<end>{% else %}<user>{{ m.content }}<end>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)


def test_what_cannot_be_derived_is_said_alike_everywhere():
    """Reasoning without an end isn't part of the format. Analysis, its warning and verification agree on that."""
    template = ChatTemplate.from_string(UNMARKED)

    with pytest.warns(FormatWarning, match="reasoning is read: is not claimed"):
        format = template.format
    verdicts = {found.capability: found.verdict for found in verify(template, samples=3).findings}

    assert format.reasoning == Reasoning()
    assert set(template.analysis.given_up) <= set(template.analysis.diagnostics)
    assert verdicts["reasoning"] is Verdict.SKIPPED
    assert verdicts["content"] is Verdict.PASSED


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


@cases
def test_a_text_that_no_format_can_contain_is_given_up(why, format, parts, found, given_up):
    """Only the invalid field is dropped if possible, otherwise its part, and what depends on it. `found` is a change of the format."""
    kinds = {"turn": TurnTexts, "reasoning": Reasoning, "content": Content, "tools": CallSyntax}
    made = {name: decode(kinds[name], part, where=name) for name, part in parts.items()}
    possible, messages = possible_format(Format.from_dict({"version": 2, **format}), **made)

    assert possible == Format.from_dict(patched({"version": 2, **format}, found))
    assert list(messages) == given_up
