"""Claims about a template's texts, their parts, and the answers that are possible."""

from __future__ import annotations

import warnings
from dataclasses import replace

import corpus
import hypothesis
import hypothesis.strategies as st
import pytest
from cases import beside, cases
from properties.families import TAG_AND_JSON, THINK
from rendering_rows import template_of

from unrender import ChatTemplate, Limits
from unrender.analysis.ask import CONTENT, Prober, Spent, own_answers, shapes
from unrender.analysis.ask.discovery import discover
from unrender.analysis.derivation import witness_of
from unrender.analysis.find.skeletons import json_spans
from unrender.errors import FormatWarning
from unrender.format import (
    CallSyntax,
    Content,
    ContentMode,
    Format,
    Reasoning,
    ReasoningMode,
    ToolMode,
    TurnTexts,
    lexemes,
)
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


def witness(name: str) -> Witness:
    path = corpus.TEMPLATES / f"{name}.jinja"
    return witness_of(discover(Prober(template=template_of(path.read_text(encoding="utf-8")))))


@pytest.fixture
def shown():
    return witness("json-tags")


@pytest.fixture
def format():
    return corpus.derived_format(corpus.TEMPLATES / "json-tags.jinja")


def test_calls_that_are_not_read_are_no_longer_claimed(shown, format):
    """A wrong call syntax is dropped with a message. Reasoning and content are kept."""
    proof = prove(
        shown, replace(format, tools=replace(format.tools, call_start="<call>", call_end="</call>", section_start=""))
    )

    assert proof.format.tools.mode is ToolMode.NONE
    assert (proof.format.reasoning, proof.format.content) == (format.reasoning, format.content)
    assert [text.partition(":")[0] for text in proof.given_up] == ["calls are read"]
    assert proof.misread == ()


def test_reasoning_that_is_not_read_is_no_longer_claimed():
    """Wrong reasoning markers are dropped with a message."""
    format = corpus.derived_format(corpus.TEMPLATES / "wrapped-eos.jinja")
    wrong = Reasoning(mode=ReasoningMode.TAG_BASED, start="<plan>", end="</plan>")
    proof = prove(witness("wrapped-eos"), replace(format, reasoning=wrong))

    assert proof.format.reasoning == Reasoning()
    assert [text.partition(":")[0] for text in proof.given_up] == ["reasoning is read"]


@pytest.mark.parametrize("start", [CONTENT, f"{CONTENT}\n<"])
def test_a_wrong_second_wrapper_goes_alone(shown, format, start):
    """A wrong wrapper for content next to calls is dropped. Calls and other content are read as before."""
    wrong = Content(mode=ContentMode.ALWAYS_WRAPPED, start=start, end="</tool_call>")
    proof = prove(shown, replace(format, content_with_calls=wrong))

    assert proof.format.content_with_calls is None
    assert (proof.format.content, proof.format.tools) == (format.content, format.tools)
    assert len(proof.given_up) == 1


def test_a_wrong_wrapper_goes_alone(shown, format):
    """If a piece of content was mistaken for its wrapper, the wrapper is dropped."""
    wrong = Content(mode=ContentMode.ALWAYS_WRAPPED, start=CONTENT, end="</say>")
    proof = prove(shown, replace(format, content=wrong))

    assert (proof.format.content, proof.format.tools) == (format.content, format.tools)
    assert [text.partition(":")[0] for text in proof.given_up] == ["content is wrapped"]


def test_nothing_is_given_up_where_no_answer_is_read(shown, format):
    """If no answer can be read, calls aren't to blame: they are kept, and each misread answer is listed."""
    turn = replace(format.turn, end="", ends=())
    proof = prove(shown, replace(format, turn=turn))

    assert proof.format.tools == format.tools
    assert {found.cut_out.name for found in proof.misread} == set(own_answers())


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


TOOLS = TAG_AND_JSON.format.tools


def test_a_field_goes_before_its_part() -> None:
    """If one field of a turn is invalid, only that field is dropped."""
    found, given_up = possible_format(Format(), turn=TurnTexts(headers=("<h>",), end="x" * 40_000), reasoning=THINK)

    assert found == Format(turn=TurnTexts(headers=("<h>",)), reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].startswith("turn.end: was given up")


def test_a_part_goes_that_its_field_is_needed_for() -> None:
    """Reasoning without a closing marker is dropped as a whole."""
    blank = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="\n")
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<c>", end="</c>")

    found, given_up = possible_format(Format(tools=TOOLS), reasoning=blank, content=wrapped)

    assert found == Format(tools=TOOLS, content=wrapped)
    assert [said.partition(":")[0] for said in given_up] == ["reasoning.end", "reasoning.end"]


def test_what_depends_on_a_part_goes_with_it() -> None:
    """If calls are dropped, reasoning no longer contains calls."""
    holding = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>", holds_calls=True)

    found, given_up = possible_format(Format(tools=TOOLS, reasoning=holding), tools=CallSyntax())

    assert (found.tools, found.reasoning.holds_calls, found.reasoning.end) == (CallSyntax(), False, "</think>")
    assert len(given_up) == 1


def test_what_no_field_is_to_blame_for_goes_together() -> None:
    """Markers that are too long together are all dropped, since nothing shows which of them is wrong."""
    turn = TurnTexts(headers=tuple(f"<{letter * 900}>" for letter in "abcdefghijklmnopqrs"))

    found, given_up = possible_format(Format(reasoning=THINK), turn=turn)

    assert found == Format(reasoning=THINK)
    assert len(given_up) == 1
    assert given_up[0].endswith("and everything found with it was given up")
