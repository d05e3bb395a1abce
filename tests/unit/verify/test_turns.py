"""Prompts: those that extend earlier ones and those that do not, next turns, opened reasoning, and forged conversations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from cases import beside, cases
from unit.verify.conftest import SOURCE, changed, sound

from unrender import ChatTemplate, Turn
from unrender.conversation.messages import Said
from unrender.errors import ExtendError
from unrender.proof import CutOut
from unrender.verify import Verdict, check_append_only, check_next_turns
from unrender.verify.hostile import TEXT_KINDS, forgeries, kinds_with
from unrender.verify.judge import check_history
from unrender.verify.renditions import Candidate, proof_answer
from unrender.verify.response_templates import show_closing
from unrender.verify.verdicts import Report

KINDS = [
    "content, then a question",
    "reasoning, then a question",
    "call, then its result",
    "reasoning and call, then its result",
]


def told(candidate):
    return [str(finding).removeprefix(f"{finding.capability}: ") for finding in check_history(candidate)]


def test_a_template_that_keeps_all_it_wrote():
    """Prompt and answer are both unchanged after each kind of turn."""
    assert [finding.capability for finding in check_history(sound())] == KINDS
    assert told(sound()) == ["passed (2 of 2)"] * 4


@cases
def test_a_template_that_changes_what_it_wrote(old, new, verdicts):
    """Text that is missing from the next prompt fails. A conversation that the template rejects is skipped."""
    assert told(changed(old, new)) == verdicts


def test_the_counterexample_shows_both_prompts():
    """The counterexample has the original text and its replacement."""
    candidate = changed("{%- if message.reasoning_content %}", "{%- if message.reasoning_content and loop.last %}")
    example = list(check_history(candidate))[1].counterexample

    assert example.answer == "<think>Animals.</think>They are striped.<|end|>"
    assert example.expected.endswith("<|assistant|><think>Animals.</think>They are striped.<|end|>")
    assert example.found.startswith("<|user|>What about zebra crossings?<|end|><|assistant|>They are striped.<|end|>")
    assert len(example.found) == len(example.expected)
    assert example.chunking == "whole"


TAKES_TOOLS = "{%- if tools %}{{ '<|tools|>' ~ tools | tojson }}{% endif %}" + SOURCE
FORGETFUL = SOURCE.replace("if message.reasoning_content", "if message.reasoning_content and loop.last")


def extended(source: str):
    return check_next_turns(ChatTemplate.from_string(source), Random(7))


def test_answers_of_all_kinds_are_extended():
    """Content, reasoning and calls are followed by questions and results, from messages and from rendered prompts."""
    found = extended(TAKES_TOOLS)

    assert (found.verdict, found.held, found.total) == (Verdict.PASSED, 24, 24)


def test_a_wrong_text_behind_an_answer_is_shown(monkeypatch):
    """The counterexample has the template's text and the appended text."""
    extend = Turn.next
    monkeypatch.setattr(Turn, "next", lambda *given: replace(turn := extend(*given), prompt=turn.prompt + "\n"))
    found = extended(SOURCE)

    assert found.verdict is Verdict.FAILED
    assert found.counterexample.found == found.counterexample.expected + "\n"


def test_what_is_refused_is_no_failure(monkeypatch):
    """If the next turn is refused, the reason is reported and nothing is compared."""

    def refuse(*given):
        raise ExtendError("nobody knows", "unproved")

    monkeypatch.setattr(Turn, "next", refuse)
    found = extended(SOURCE)

    assert (found.verdict, found.reason) == (Verdict.SKIPPED, "nobody knows")


@pytest.mark.parametrize(
    ("source", "verdict", "why"), [(SOURCE, Verdict.PASSED, ""), (FORGETFUL, Verdict.FAILED, "thoughts: after user")]
)
def test_a_template_that_rewrites_is_told_with_a_conversation(source, verdict, why):
    """The reason has the shortest conversation that is rewritten, and the kind of change."""
    found = check_append_only(ChatTemplate.from_string(source))

    assert found.verdict is verdict
    assert found.reason.startswith(why)


TEMPLATE = beside(__file__, "template.jinja")


def shown(empty: str, answer: Said) -> CutOut | None:
    candidate = Candidate.of(ChatTemplate.from_string(TEMPLATE.replace("EMPTY", repr(empty))))
    return show_closing(candidate, answer)


@cases
def test_what_the_prompt_opened_is_closed(empty: str, text: str) -> None:
    """The answer closes the reasoning first, with the whitespace before the content."""
    closing = shown(empty, proof_answer(content="It rains."))

    assert closing
    assert closing.start.endswith("<|assistant|><think>\n")
    assert closing.answer == text


def test_reasoning_closes_itself() -> None:
    """An answer with reasoning continues the prompt directly."""
    assert shown("", proof_answer(content="It rains.", reasoning="Let me look.")) is None


SOURCE = (Path(__file__).resolve().parents[2] / "templates" / "json-tags.jinja").read_text(encoding="utf-8")
ALL = [kind for kind in TEXT_KINDS.values() if kind != "document"]


def forged(source: str) -> tuple[list[str], list[str]]:
    """Return the kinds of text in which a conversation can be forged in text, and in ids."""
    found = forgeries(ChatTemplate.from_string(source))
    return [it.kind for it in found if it.in_text], [it.kind for it in found if it.in_ids]


def test_every_kind_of_text_can_be_forged_in_text_but_not_in_ids():
    """A template writes text unchanged. Kinds that the template doesn't write aren't in the result."""
    assert forged(SOURCE) == (ALL, [])
    documents = "{% for document in documents or [] %}{{ document.text }}{% endfor %}"
    assert forged(documents + SOURCE) == ([*ALL, "document"], [])


def test_a_template_may_escape_markers():
    """Then nobody can forge a conversation in this kind of text."""
    escaped = SOURCE.replace("{{ message.content }}", "{{ message.content | replace('<', '< ') }}")

    assert escaped != SOURCE
    assert "user message" not in forged(escaped)[0]
    assert "user message" not in kinds_with(ChatTemplate.from_string(escaped), "x<|end|>y")


@cases
def test_words_are_forged_in_text_but_not_in_ids(source, kinds):
    """Words such as `USER:` have other ids in a message. Without markers, or if the template rejects the conversation, nothing is forged."""
    assert forged(source) == (kinds, [])


def test_a_report_sums_up_its_forgeries():
    """In one line, and as data."""
    report = Report(findings=(), forgeries=forgeries(ChatTemplate.from_string(SOURCE)))

    assert report.forged == "possible in 7 of 7 kinds of text, with Turn.encode in 0"
    assert report.to_dict()["forgeries"][1] == {"kind": "user message", "in_text": True, "in_ids": False}
