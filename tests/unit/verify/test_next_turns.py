"""Next turns compared with the text that a template writes after answers, and whether templates are append-only."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from unit.verify.conftest import SOURCE

from unrender import ChatTemplate, Turn
from unrender.errors import ExtendError
from unrender.verify import Verdict, check_append_only, check_next_turns

TAKES_TOOLS = "{%- if tools %}{{ '<|tools|>' ~ tools | tojson }}{% endif %}" + SOURCE
FORGETFUL = SOURCE.replace("if message.reasoning_content", "if message.reasoning_content and loop.last")


def told(source: str):
    return check_next_turns(ChatTemplate.from_string(source), Random(7))


def test_answers_of_all_kinds_are_extended():
    """Content, reasoning and calls are followed by questions and results, from messages and from rendered prompts."""
    found = told(TAKES_TOOLS)

    assert (found.verdict, found.held, found.total) == (Verdict.PASSED, 24, 24)


def test_a_wrong_text_behind_an_answer_is_shown(monkeypatch):
    """The counterexample has the template's text and the appended text."""
    extend = Turn.next
    monkeypatch.setattr(Turn, "next", lambda *given: replace(turn := extend(*given), prompt=turn.prompt + "\n"))
    found = told(SOURCE)

    assert found.verdict is Verdict.FAILED
    assert found.counterexample.found == found.counterexample.expected + "\n"


def test_what_is_refused_is_no_failure(monkeypatch):
    """If the next turn is refused, the reason is reported and nothing is compared."""

    def refuse(*given):
        raise ExtendError("nobody knows", "unproved")

    monkeypatch.setattr(Turn, "next", refuse)
    found = told(SOURCE)

    assert (found.verdict, found.reason) == (Verdict.SKIPPED, "nobody knows")


@pytest.mark.parametrize(
    ("source", "verdict", "why"), [(SOURCE, Verdict.PASSED, ""), (FORGETFUL, Verdict.FAILED, "thoughts: after user")]
)
def test_a_template_that_rewrites_is_told_with_a_conversation(source, verdict, why):
    """The reason has the shortest conversation that is rewritten, and the kind of change."""
    found = check_append_only(ChatTemplate.from_string(source))

    assert found.verdict is verdict
    assert found.reason.startswith(why)
