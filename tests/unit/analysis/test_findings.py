"""Findings of an analysis: their evidence and log records, doubts, declared formats, preserved tokens, and words of prompts."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import corpus
import pytest
from cases import beside, case_rows, cases
from rendering_rows import template_of

from unrender import ChatTemplate, Parser
from unrender.analysis import Analysis, Evidence, Shown
from unrender.analysis.ask import CONTENT, NAMES, REASONING, Prober
from unrender.analysis.ask.answers import Answers, render_answers, render_turns
from unrender.analysis.ask.discovery import discover
from unrender.analysis.completion import calls_are_refuted, find_doubts
from unrender.analysis.find.turn_frame import TurnFrame, find_frame
from unrender.format import (
    CallSyntax,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    TurnTexts,
    preserved_tokens,
    special_tokens,
)
from unrender.format.declared import Declared, declared_formats, with_declared

SOURCE = beside(__file__, "source.jinja")


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return ChatTemplate.from_string(SOURCE).analysis


@cases
def test_a_comparison_has_its_two_texts(analysis, comparison, part, left, right):
    """A comparison has two different texts, and a finding."""
    item = {(item.comparison, item.part): item for item in analysis.evidence}[comparison, part]

    assert (item.left.what, item.right.what) == (left, right)
    assert item.left.text != item.right.text
    assert item.finding


def test_all_comparisons_are_shown(analysis, request):
    """Every comparison has a part that can be looked up in the format. Some have a rule."""
    shown = analysis.evidence
    rows = [row for row in case_rows(request.path.with_name("cases.jsonl")) if "comparison" in row]

    assert {(item.comparison, item.part) for item in shown} == {(row["comparison"], row["part"]) for row in rows}
    assert attrgetter(shown[0].part)(analysis.format) == analysis.format.turn.headers
    assert {item.comparison for item in shown if item.rule} == {"R1", "C1", "T1", "T2", "T5", "T6", "A1", "A3"}


def test_split_gives_both_texts_again():
    """The common and different parts add up to both texts."""
    left, right = Shown(what="", text="a b c"), Shown(what="", text="a x c")
    split = Evidence(part="", comparison="", finding="", left=left, right=right).split

    assert (split.prefix, split.left, split.right, split.suffix) == ("a ", "b", "x", " c")


TEMPLATES = Path(__file__).parents[2] / "templates"


def analysed(name):
    """Return the analysis of a template, made anew."""
    return ChatTemplate.from_string((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"), cache=False).analysis


def test_each_decision_is_a_record(caplog):
    """Capabilities, evidence with its values, and defaults are logged at level DEBUG, each on one line."""
    caplog.set_level(logging.DEBUG, logger="unrender")

    analysis = analysed("json-tags")

    said = [record.getMessage() for record in caplog.records if record.name == "unrender.analysis"]
    for evidence in analysis.evidence:
        assert any(evidence.part in line and evidence.finding in line for line in said)
    assert any(line.startswith("capability supports_tools: True") for line in said)
    assert any("start='<think>" in line for line in said)
    assert any("content: the default; from " in line for line in said)
    assert any(line.startswith(r"T2 tools.call_start: '<tool_call>\n'; from ") for line in said)
    assert said[-1] == f"derived from {analysis.renderings} renderings"
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
    assert not any("\n" in line for line in said)


def test_nobody_listening_costs_nothing(caplog):
    """Without level DEBUG, nothing is logged."""
    caplog.set_level(logging.INFO, logger="unrender")

    analysed("json-tags")

    assert caplog.records == []


@pytest.fixture
def proof():
    path = corpus.TEMPLATES / "json-tags.jinja"
    prober = discover(Prober(template=template_of(path.read_text(encoding="utf-8"))))
    frame = find_frame(render_turns(prober), part_opener="")
    return render_answers(prober, frame.body, frame.prefill), frame, corpus.derived_format(path)


def doubts(proof, format: Format):
    answers, frame, _ = proof
    return find_doubts(answers, frame, format)


def test_wrong_marker_is_a_doubt(proof):
    """A wrong marker causes a doubt for every shape that contains it, and the message quotes both texts."""
    format = proof[2]
    wrong = replace(format, tools=replace(format.tools, call_start="<call>"))

    found = doubts(proof, wrong)

    assert re.search("rendered as .*<tool_call>.*, understood as .*<call>", found["one call"])
    assert calls_are_refuted(found, wrong)
    assert not calls_are_refuted((), wrong)


def test_shapes_that_do_not_show_all_parts_are_not_judged():
    """An answer is compared with the format only if it contains its needles."""
    frame = TurnFrame(lead="", header="", appended="Bye")
    hidden = Answers(content="nothing", mixed=f"{CONTENT}!", two_calls=NAMES[0], reasoned=CONTENT)
    written = Answers(content=f"{CONTENT}!", empty_call=f" {CONTENT}")

    assert find_doubts(hidden, frame, Format()) == {}
    assert [*find_doubts(written, frame, Format())] == ["content"]
    assert find_doubts(Answers(content=f"{CONTENT} Bye"), frame, Format()) == {}
    later = Answers(content="nothing", reasoned=f"{CONTENT}{REASONING}")
    assert [*find_doubts(later, frame, Format())] == ["reasoning and content"]


def test_what_ends_a_turn_is_no_doubt():
    """An answer may be followed by any end of turn, or by none. The empty form of reasoning may be missing."""
    frame = TurnFrame(lead="", header="")
    ended = Format(
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<r>", end="</r>", empty="<r></r>"),
        turn=TurnTexts(end="<end>", ends=("<stop>",)),
    )

    for text in (CONTENT, f"{CONTENT}<end>", f"{CONTENT}<stop>", f"<r></r>{CONTENT}", f"<r>\n</r>{CONTENT}\n<end>"):
        assert find_doubts(Answers(content=text), frame, ended) == {}
    assert find_doubts(Answers(content=f"{CONTENT}<other>"), frame, ended) != {}


def test_a_doubt_shows_both_texts():
    """The message names the shape, and quotes the rendered and the rebuilt text, both shortened."""
    frame = TurnFrame(lead="", header="")

    assert find_doubts(Answers(content=f"<a>{CONTENT}"), frame, Format()) == {
        "content": f"content: rendered as '<a>{CONTENT}', understood as '{CONTENT}'"
    }
    (long,) = find_doubts(Answers(content=CONTENT + "a" * 900), frame, Format()).values()
    assert len(long) < 500


def test_two_calls_count_where_they_may_be():
    """A syntax is refuted if it reproduces neither one call nor two, or not one call if it allows only one."""
    one, two = "one call", "two calls"
    tools = CallSyntax(call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS))
    several, single = Format(tools=tools), Format(tools=replace(tools, parallel=False))

    assert [calls_are_refuted(doubts, several) for doubts in ((one,), (two,), (one, two))] == [False, False, True]
    assert [calls_are_refuted(doubts, single) for doubts in ((one,), (two,))] == [True, False]
    assert not calls_are_refuted((one, two), Format())


@cases
def test_a_declared_format_is_added_to_a_derived_one(
    why: str, derived: dict[str, Any], declared: dict[str, Any], merged: dict[str, Any]
) -> None:
    """A derived part is kept, and a missing one is filled. Another call syntax is tolerated."""
    own, ours, both = (Format.from_dict({"version": 2, **data}) for data in (derived, declared, merged))

    assert with_declared(own, Declared(name="ours", why="for a test", format=ours)) == both


@pytest.mark.parametrize("item", [item for item in declared_formats() if item.evidence], ids=lambda item: item.name)
def test_evidence_in_the_source_decides(item):
    """A declared format is added if its evidence is in the source, and only then."""
    evidence = item.evidence
    source = " ".join((*evidence.all, *evidence.any))

    assert (
        evidence.found_in(source) == (item.name in ChatTemplate.from_string(f"{{{{ {source!r} }}}}").format.declared)
        or item.format == Format()
    )


def test_tokens_between_and_around_the_parts_are_preserved() -> None:
    """Joints, the prefill, the empty form of reasoning and ignored markers are preserved, but the header isn't."""
    fmt = Format(
        turn=TurnTexts(
            headers=("<|start|>assistant",),
            end="<|end|>",
            prefill="<|open|>",
            reasoning_to_content="<|next|>final",
            tools_to_content="<|again|>",
        ),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>", empty="<none/></t>"),
        ignored=("<|noise|>",),
    )

    assert set(preserved_tokens(fmt)) == {
        *("<t>", "</t>", "<none/>", "<|end|>", "<|open|>", "<|next|>", "<|again|>", "<|noise|>"),
    }


def test_tolerated_markers_count_where_the_template_knows_them() -> None:
    """Markers of a tolerated syntax are preserved if they are in the template's source."""
    other = CallSyntax(call_start="<c>", call_end="</c>", function=(Slot.NAME, ":", Slot.ARGUMENTS))

    assert preserved_tokens(Format(tolerated=(other,)), "{{ '<c>' }}") == ("<c>",)


def test_markers_with_quotes_or_braces_are_no_tokens() -> None:
    """Text around a value isn't a token, but a marker without quotes or braces may be one."""
    assert list(special_tokens(['<a="b"><c>', "<d={x}>[E]", "<f>"])) == ["<c>", "[E]", "<f>"]


MESSAGES = "{% for m in messages %}<{{ m.role }}>{{ before if m.role == 'assistant' }}{{ m.content }}<end>{% endfor %}"
TOOL = {"name": "now"}


@pytest.mark.parametrize("tools", [None, [TOOL]])
@cases
def test_answers_are_generated_after_every_prompt(prompt, before, begun, tools):
    """If prompt and history differ, the prompt's text is a header. Grammars can be written, and samples are parsed without errors."""
    source = f"{{% set before = {before!r} %}}{MESSAGES}{{% if add_generation_prompt %}}{prompt}{{% endif %}}"
    template = ChatTemplate.from_string(source)

    headers = template.format.turn.headers
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=tools)

    assert headers[-1].endswith(begun)
    assert turn.prefill == ""
    assert turn.constraint("llama.cpp").grammar
    assert turn.constraint("llguidance").grammar
    assert json.loads(turn.constraint("xgrammar").grammar)
    for seed in range(5):
        parser = Parser(turn.format, turn.request, prompt=turn.prompt, strict=True)
        parser.finish(text=turn.sample(seed))


def test_reasoning_that_the_prompt_opens_stays_open():
    """Only the text before the opening marker becomes a header."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ ' <think>' ~ m.reasoning_content ~ '</think>' if m.reasoning_content }}"
        "{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>:<think>{% endif %}"
    )
    turn = ChatTemplate.from_string(source).prepare([{"role": "user", "content": "Hi"}])

    assert turn.prefill.endswith("<think>")
    assert turn.parse("Hm.</think>Yes.<end>").reasoning == "Hm."
    assert turn.constraint("llama.cpp").grammar
