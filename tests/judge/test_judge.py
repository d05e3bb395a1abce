"""The judge detects errors: outcomes that break one law each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from judge.arguments import argued, named
from judge.feeding import whole
from judge.laws import accounted, covered, marked, same, turn_of
from judge.outcome import Lost, Outcome
from properties.families import TAGGED, TOOLS

from unrender import ArgumentsText, ContentText
from unrender.grammar import Role
from unrender.types import Span

TURN = turn_of(TAGGED.format, TAGGED.prompt, [{**tool.to_openai()} for tool in TOOLS])
TEXT = TAGGED.outputs[0]
READ = whole(TURN, TEXT)
Change = Callable[[Outcome], Outcome]


def roles(old: Role, new: Role) -> Change:
    def change(outcome: Outcome) -> Outcome:
        spans = (replace(span, role=new) if span.role is old else span for span in outcome.spans)
        return replace(outcome, spans=tuple(spans))

    return change


def spans(change: Callable[[tuple[Span, ...]], tuple[Span, ...]]) -> Change:
    return lambda outcome: replace(outcome, spans=change(outcome.spans))


def arguments(text: str) -> Change:
    def change(outcome: Outcome) -> Outcome:
        first, *others = outcome.message.tool_calls
        calls = (replace(first, arguments_json=text), *others)
        events = (ArgumentsText(0, text) if event == READ.events[2] else event for event in outcome.events)
        return replace(outcome, events=tuple(events), message=replace(outcome.message, tool_calls=calls))

    return change


def check_laws(outcome: Outcome) -> None:
    covered(outcome, TEXT)
    accounted(TURN, outcome, TEXT)
    marked(TURN.format, outcome, TEXT)
    argued(TURN.format, outcome, TEXT)
    named(outcome, TEXT)
    same("again", READ, outcome)


def test_what_is_right_is_right() -> None:
    """An unchanged reading breaks no law."""
    check_laws(READ)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (spans(lambda found: found[:-1]), "spans that end too early"),
        (spans(lambda found: found[1:]), "a gap or an overlap"),
        (spans(lambda found: (*found[:3], *found[2:])), "a gap or an overlap"),
        (roles(Role.CONTENT, Role.REASONING), "content that is not the text under its spans"),
        (roles(Role.CONTENT, Role.MALFORMED), "content that is not the text under its spans"),
        (roles(Role.CONTENT, Role.LAYOUT), "content that is not the text under its spans"),
        (roles(Role.ARGUMENT, Role.MALFORMED), "text that is left out"),
        (roles(Role.ARGUMENT, Role.LAYOUT), "layout that is not whitespace"),
        (roles(Role.ARGUMENT, Role.MARKER), "a marker that the Format does not declare"),
        (roles(Role.ARGUMENT, Role.NAME), "a name that names nothing"),
        (arguments("{}"), "text of arguments that no call has"),
        (arguments('{"city": "Paris"}'), "text of arguments that no call has"),
        (arguments('{"city": "Paris", "days": 3'), "arguments that are not one JSON object"),
        (lambda outcome: replace(outcome, events=outcome.events[1:]), "events that do not add up to the content"),
        (lambda outcome: replace(outcome, events=(*outcome.events, outcome.events[-1])), "again: other events"),
        (
            lambda outcome: replace(outcome, events=(*outcome.events, ContentText("x"))),
            "events that do not add up to the content",
        ),
    ],
)
def test_what_is_wrong_is_seen(change: Change, kind: str) -> None:
    """A reading with one change breaks the law for that change."""
    with pytest.raises(Lost) as lost:
        check_laws(change(READ))

    assert lost.value.kind == kind
