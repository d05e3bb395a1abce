"""Formats that are broken in one place: each fails the check that is named, with no engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from unit.verify.test_verify import template_named

from unrender import ChatTemplate
from unrender.format import Format
from unrender.verify import GRAMMARS, Verdict, verify

Break = Callable[[Format], Format]


def turn(**texts) -> Break:
    return lambda format: replace(format, turn=replace(format.turn, **texts))


def tools(**parts) -> Break:
    return lambda format: replace(format, tools=replace(format.tools, **parts))


LAYOUT: dict[str, tuple[str, Break]] = {
    "no joint after reasoning": ("json-tags", turn(reasoning_to_content="")),
    "a longer joint before calls": ("json-tags", turn(reasoning_to_tools="\n\n\n\n")),
    "calls before content": ("json-tags", turn(tools_first=True)),
    "a section where none is": ("json-tags", tools(section_start="\n", section_end="\n")),
    "no line break in the opener": ("json-tags", tools(call_start="<tool_call>")),
    "no line break in the closer": ("json-tags", tools(call_end="</tool_call>")),
    "no separator": ("json-tags", tools(separator="")),
    "one call alone": ("json-tags", tools(parallel=False)),
    "an opener that goes on": (
        "json-tags",
        lambda format: replace(format, reasoning=replace(format.reasoning, start="<think>~\n")),
    ),
}


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setattr("unrender.verify.grammars.installed", lambda engine: False)


@pytest.mark.slow
@pytest.mark.parametrize("broken", LAYOUT)
def test_what_is_read_and_never_allowed_fails_without_an_engine(broken, no_engine):
    """A reader takes other layout than the format's; its grammar does not, and forbids what the template writes."""
    name, change = LAYOUT[broken]
    template = template_named(name)
    report = verify(ChatTemplate(template.loaded, format=change(template.format)), only=[GRAMMARS])

    assert [finding.capability for finding in report.failed] == ["written answers"]
    assert {finding.verdict for finding in report.findings[2:]} == {Verdict.SKIPPED}
    assert verify(template, only=[GRAMMARS]).failed == ()
