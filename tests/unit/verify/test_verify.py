"""Verdicts on sound templates, and on formats that don't fit their templates."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cases import beside
from engines import installed

from unrender import ChatTemplate
from unrender.errors import FormatWarning
from unrender.format import CallSyntax
from unrender.verify import Verdict, verify, verify_quickly
from unrender.verify.verdicts import Counterexample, diff

TEMPLATES = Path(__file__).parents[2] / "templates"
SWITCHED = beside(__file__, "switched.jinja")

UNENDED = beside(__file__, "unended.jinja")


def template_named(name):
    return ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")


def verified(template, **changes):
    return verify(ChatTemplate(template._loaded, format=replace(template.format, **changes)), samples=3)


@cache
def report_of(name):
    """Return the report on one of our templates, which several tests use."""
    return verified(template_named(name))


def verdicts(findings):
    return {finding.capability: finding.verdict for finding in findings}


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["json-tags", "tagged-raw", "bracket-id", "python-calls", "channels", "bare-keys"])
def test_sound_formats_pass(name):
    """A format derived from its template never fails, and most capabilities can be observed."""
    report = report_of(name)

    assert report.failed == ()
    assert report.passed
    assert verdicts(report.findings)["second turn"] is Verdict.PASSED
    assert verdicts(report.findings)["message shapes"] is Verdict.PASSED
    assert verdicts(report.findings)["generated answers"] is Verdict.PASSED


def test_a_quick_report_is_kept(tmp_path, monkeypatch):
    """A later process reads the stored report on a derived format. A format passed by the caller is always checked."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))
    template, asked = ChatTemplate.from_string(UNENDED), []
    given = ChatTemplate(template._loaded, format=replace(template.format, ignored=("<x>",)))

    def recorded(template, **options):
        asked.append(template)
        return verify(template, **options)

    monkeypatch.setattr("unrender.verify.verify", recorded)
    report = verify_quickly(template)

    assert {"content", "message shapes"} <= {finding.capability for finding in report.findings}
    assert verify_quickly(template) == report
    for _ in range(2):
        verify_quickly(given)
    assert asked == [template, given, given]


@pytest.mark.slow
def test_wrong_call_syntax_fails():
    """A format with another call syntax loses the template's calls, and the next turn."""
    template = template_named("json-tags")
    tools = replace(template.format.tools, call_start="<other>", call_end="</other>")

    found = verdicts(verified(template, tools=tools, tolerated=()).findings)

    assert found["tool calls"] is Verdict.FAILED
    assert found["second turn"] is Verdict.FAILED
    assert found["content"] is Verdict.PASSED


def test_calls_that_are_read_as_text_fail():
    """Calls read as content fail, although the template would write the same text again."""
    template = template_named("json-tags")

    found = verdicts(verified(template, tools=CallSyntax(), tolerated=()).findings)

    assert found["tool calls"] is Verdict.FAILED
    assert found["parallel tool calls"] is Verdict.FAILED
    assert found["strings"] is Verdict.FAILED


def test_an_answer_that_is_written_to_be_continued_is_shown_in_history():
    """If a template writes the last answer for continuation, verification uses an earlier answer."""
    source = (
        "{% for m in messages %}{% if not (loop.last and m.role == 'assistant') %}"
        "<{{ m.role }}>{{ m.content.split('</think>')[-1] }}<end>{% endif %}{% endfor %}"
        "{% set last = messages[-1] %}{% if add_generation_prompt %}<assistant><think>{% endif %}"
        "{% if last.role == 'assistant' %}<assistant><think>{{ last.content }}<end>{% endif %}"
    )
    template = ChatTemplate.from_string(source)

    report = verify(template, samples=3)

    assert template.format.reasoning.start == "<think>"
    assert verdicts(report.findings)["content"] is Verdict.PASSED
    assert report.failed == ()


def test_second_turn_is_observed_only_with_calls():
    """Without calls, there is no second turn to compare."""
    found = verdicts(report_of("plain").findings)

    assert found["second turn"] is Verdict.SKIPPED


@pytest.mark.slow
def test_thinking_switch_is_tried_both_ways():
    """Answers are parsed after prompts that open or close reasoning."""
    template = ChatTemplate.from_string(SWITCHED)

    found = verdicts(verified(template).findings)

    assert (found["thinking on"], found["thinking off"]) == (Verdict.PASSED, Verdict.PASSED)


@pytest.mark.slow
def test_wrong_prefill_fails():
    """A format that mistakes the prompt's reasoning marker for a header doesn't know that reasoning is open."""
    template = ChatTemplate.from_string(SWITCHED)
    turn = replace(template.format.turn, headers=("<|assistant|><think>", "<|assistant|><think></think>"))

    assert verdicts(verified(template, turn=turn).findings)["thinking on"] is Verdict.FAILED


@pytest.mark.slow
def test_closers_are_not_cut_apart():
    """Calls and content with different end markers share no end, although the last characters are the same."""
    found = verdicts(verified(ChatTemplate.from_string(UNENDED)).findings)

    assert found["content"] is found["tool calls"] is found["arrays"] is Verdict.PASSED


@pytest.mark.slow
def test_markers_in_a_question_are_text():
    """A question with the format's markers doesn't change how its answer is parsed."""
    assert verdicts(report_of("json-tags").findings)["markers in a question"] is Verdict.PASSED


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["json-tags", "python-calls", "tagged-raw"])
def test_quotes_and_markers_inside_strings_are_text(name):
    """Strings with any text are read back. A format with other quotes than the template's loses them."""
    template = template_named(name)
    syntax = template.format.tools

    assert verdicts(report_of(name).findings)["quotes in strings"] is Verdict.PASSED
    assert verdicts(report_of(name).findings)["markers in strings"] is Verdict.PASSED
    ends = verdicts(report_of(name).findings)["ends of calls in strings"]
    assert ends is (Verdict.SKIPPED if name == "tagged-raw" else Verdict.PASSED)
    if name == "json-tags":
        nothing = replace(
            template.format, tools=replace(syntax, call_start="<other>", call_end="</other>"), tolerated=()
        )
        found = verify(ChatTemplate(template._loaded, format=nothing), samples=1).findings
        assert verdicts(found)["markers in strings"] is Verdict.FAILED


@pytest.mark.slow
def test_changed_questions_are_skipped():
    """If a template removes markers from questions, the check is skipped."""
    source = (TEMPLATES / "json-tags.jinja").read_text(encoding="utf-8")
    stripping = source.replace(
        "<|{{ message.role }}|>{{ message.content }}",
        "<|{{ message.role }}|>{{ message.content | replace('<|end|>', '') }}",
    )

    found = verdicts(verified(ChatTemplate.from_string(stripping)).findings)

    assert found["content"] is Verdict.PASSED
    assert found["markers in a question"] is Verdict.SKIPPED


@pytest.mark.slow
@pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
def test_grammar_is_asked_of_its_engine():
    """The Lark grammar accepts the template's output, and a wrong format's grammar rejects it."""
    template = template_named("json-tags")
    wrong = replace(template.format.reasoning, end="</thought>", empty="")

    assert verdicts(report_of("json-tags").findings)["grammar in Lark"] is Verdict.PASSED
    assert verdicts(verified(template, reasoning=wrong).findings)["grammar in Lark"] is Verdict.FAILED


def test_missing_engines_are_named():
    """A dialect without its engine is skipped, and the finding names the engine."""
    findings = [finding for finding in report_of("plain").findings if "not installed" in finding.reason]

    assert all(finding.verdict is Verdict.SKIPPED for finding in findings)
    assert ("GBNF" in str(findings)) is not installed("xgrammar")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "verdict"),
    [
        ("json-tags", "content, then a question", Verdict.PASSED),
        ("json-tags", "call, then its result", Verdict.PASSED),
        ("forced-open", "content, then a question", Verdict.FAILED),
        ("plain", "call, then its result", Verdict.SKIPPED),
    ],
)
def test_history_extends_prompts_or_not(name, kind, verdict):
    """A prompt that doesn't extend the last one is reported, but the format still passes."""
    report = report_of(name)

    assert verdicts(report.history)[kind] is verdict
    assert report.failed == ()


@pytest.mark.parametrize("name", ["delimiter", "reminded"])
def test_words_of_the_prompt_alone_refute_nothing(name):
    """A prompt may have text that the history lacks, such as a reminder. Answers come after it."""
    reminded = (
        "{% for m in messages %}<turn><{{ m.role }}>{{ m.content }}<end>{% endfor %}"
        "{% if add_generation_prompt %}<turn><system>Be brief.<end><turn><assistant>{% endif %}"
    )
    template = template_named(name) if name == "delimiter" else ChatTemplate.from_string(reminded)

    report = verify(template, samples=1)

    assert report.failed == ()
    assert verdicts(report.findings)["content"] is Verdict.PASSED


@pytest.mark.parametrize("source", ["", "{{ 1/0 }}", "{{ raise_exception('no') }}", "{{ x.y.z }}"])
def test_nothing_fails_of_what_writes_nothing(source):
    """If a template writes nothing, all capabilities are skipped."""
    assert not verify(ChatTemplate.from_string(source), samples=1).failed


@pytest.mark.slow
def test_same_seed_same_report():
    """The same seed gives the same answers and report."""
    template = template_named("tagged-raw")

    assert verify(template, samples=2, seed=5) == verify(template, samples=2, seed=5)


def test_diff_of_messages_shows_what_differs():
    """The difference contains only the parts that differ, and ignores generated ids."""
    calls = [[{"id": id, "function": {"name": name, "arguments": "{}"}}] for id, name in (("a", "f"), ("b", "g"))]
    expected, found = (json.dumps({"content": "x", "tool_calls": it}) for it in calls)

    lines = list(diff(Counterexample(answer="", expected=expected, found=found, chunking="whole")))

    assert lines == [
        '- tool_calls: [{"name": "f", "arguments": "{}"}]',
        '+ tool_calls: [{"name": "g", "arguments": "{}"}]',
    ]


def test_diff_of_texts_shows_the_place():
    """Long texts are shortened to the first difference."""
    expected, found = ("a" * 100 + middle + "b" * 100 for middle in ("X", "YY"))

    lines = list(diff(Counterexample(answer="", expected=expected, found=found, chunking="whole")))

    assert lines == [f"- …'{'a' * 30}X{'b' * 30}'…", f"+ …'{'a' * 30}YY{'b' * 30}'…"]


@pytest.mark.slow
def test_a_chat_template_brings_its_format_along():
    """A loaded template is verified with its own format, or with the one that was passed."""
    template = template_named("json-tags")
    wrong = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja", format=replace(template.format, tools=CallSyntax()))

    assert verify(template, samples=1).passed
    assert "tool calls" in {finding.capability for finding in verify(wrong, samples=1).failed}


def test_calls_whose_arguments_the_rendering_does_not_depend_on_neither_pass_nor_fail():
    """If the rendering doesn't depend on the arguments, calls are skipped."""
    written = "{{- '<call>' ~ call.function.name ~ ' ' ~ (message.reasoning_content or 'so') ~ '</call>' }}"
    silent = UNENDED.replace(next(line for line in UNENDED.splitlines() if "'<call>'" in line), written)
    assert silent != UNENDED

    with pytest.warns(FormatWarning, match="calls are read"):
        report = verify(ChatTemplate.from_string(silent), samples=2)

    found = verdicts(report.findings)
    assert found["reasoning and tool calls"] is Verdict.SKIPPED
    assert found["strings"] is Verdict.SKIPPED


REASONED_BEFORE_THE_HEADER = beside(__file__, "reasoned-before-the-header.jinja")
CLOSED_BEFORE_THE_CALLS = beside(__file__, "closed-before-the-calls.jinja")
CONTENT_ALONE_AFTER_THE_HEADER = beside(__file__, "content-alone-after-the-header.jinja")


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "source", [REASONED_BEFORE_THE_HEADER, CLOSED_BEFORE_THE_CALLS, CONTENT_ALONE_AFTER_THE_HEADER]
)
def test_what_does_not_follow_the_prompt_fails_no_grammar(source):
    """If the history opens an answer differently from the prompt, grammars aren't tested with it."""
    report = verify(ChatTemplate.from_string(source), samples=2)

    assert report.failed == ()
    assert verdicts(report.findings)["generated answers"] is Verdict.PASSED


ASKS_WITH_MORE = beside(__file__, "asks-with-more.jinja")
NEVER_ASKS = beside(__file__, "never-asks.jinja")


@pytest.mark.slow
@pytest.mark.parametrize("source", [ASKS_WITH_MORE, NEVER_ASKS])
def test_an_answer_is_cut_out_where_headers_look_like_ends(source):
    """The answer is complete, even after a prefill without reasoning, and an end of turn may look like a header."""
    assert verify(ChatTemplate.from_string(source), samples=2).failed == ()
