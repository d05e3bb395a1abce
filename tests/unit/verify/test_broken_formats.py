"""Formats with one error: each fails the expected check, even without an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from cases import beside
from unit.verify.test_verify import template_named

from unrender import ChatTemplate
from unrender.format import Format, Slot
from unrender.verify import GRAMMARS, Verdict, verify

TRIMS = beside(__file__, "trims.jinja")
Break = Callable[[Format], Format]


def turn(**texts) -> Break:
    return lambda format: replace(format, turn=replace(format.turn, **texts))


def tools(**parts) -> Break:
    return lambda format: replace(format, tools=replace(format.tools, **parts))


def entry(*parts) -> Break:
    return lambda format: tools(arguments=replace(format.tools.arguments, entry=parts))(format)


def failed(template: ChatTemplate, change: Break, **how) -> list[str]:
    """Return the failed capabilities after a change of the format. The original format must pass."""
    assert verify(template, samples=2, **how).failed == ()
    report = verify(ChatTemplate(template._loaded, format=change(template.format)), samples=2, **how)
    return [finding.capability for finding in report.failed]


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


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("broken", LAYOUT)
def test_what_is_read_and_never_allowed_fails_without_an_engine(broken, no_engine):
    """The parser accepts unusual layout, but the grammar doesn't, so it rejects the template's own answers."""
    name, change = LAYOUT[broken]
    template = template_named(name)
    report = verify(ChatTemplate(template._loaded, format=change(template.format)), only=[GRAMMARS])

    assert report.failed[-1].capability == "written answers"
    assert {finding.verdict for finding in report.findings[2:]} == {Verdict.SKIPPED}
    assert verify(template, only=[GRAMMARS]).failed == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "change"),
    [
        ("content", turn(start_to_content="")),
        ("strings", entry("<v ", Slot.KEY, ">", Slot.VALUE, "</v>")),
    ],
)
def test_white_space_is_not_excused_by_a_template_that_trims(check, change):
    """The template trims ` a` to `a`. A format that reads ` a` for the written `a` still fails."""
    assert failed(ChatTemplate.from_string(TRIMS), change, only=[check]) == [check]


def arguments(**parts) -> Break:
    return lambda format: tools(arguments=replace(format.tools.arguments, **parts))(format)


def double_quotes(format: Format) -> Format:
    codec = replace(format.tools.arguments.codec, string_open='"', string_close='"')
    return arguments(codec=codec)(format)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "check", "capability"),
    [
        ("attributes", arguments(start="("), "tools without parameters", "tools without parameters"),
        ("json-tags", turn(ends=('{"text"',)), "stop strings", "stop strings"),
        ("headed-parts", tools(call_start="##"), "unusual names of tools", "unusual names of tools"),
        ("python-quoted", double_quotes, "text in strings", "quotes in strings"),
        ("tagged-raw", arguments(closers=("here</val>",)), "text in strings", "markers in strings"),
    ],
)
def test_what_is_easily_misread_fails_its_check(name, change, check, capability):
    """A format that misreads the template's output fails the check for this error."""
    assert capability in failed(template_named(name), change, only=[check])
