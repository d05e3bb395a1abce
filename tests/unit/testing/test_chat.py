"""Cases that pass, and reports of cases that fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import installed
from letters import WEATHER

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.testing import Chat, broken_call, call

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
OUTPUT = "<think>\nrain?\n</think>\n\nI'll look.\n" + CALL
NEEDS_ENGINE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance reads the grammars")


@pytest.fixture
def case():
    return Chat([TEMPLATES])("json-tags.jinja").given(tools=[WEATHER])


def failure(check, **expected):
    with pytest.raises(AssertionError) as failed:
        check(**expected)
    return str(failed.value)


def test_an_answer_that_means_what_is_expected_passes(case):
    """Reasoning, content and calls must match exactly."""
    case.output(OUTPUT).expect(reasoning="rain?", content="I'll look.", tool_calls=[call("get_weather", city="Paris")])


def test_an_answer_with_its_end_of_turn_passes(case):
    """The end marker of a turn isn't part of the message."""
    case.output("Hello!<|end|>").expect(content="Hello!")


@pytest.mark.parametrize(
    "expected",
    [
        {"content": "I'll look."},
        {"content": "I'll look", "reasoning": "rain?", "tool_calls": [call("get_weather", city="Paris")]},
        {"content": "I'll look.", "reasoning": "rain?", "tool_calls": [call("get_weather", city="Rome")]},
        {"content": "I'll look.", "reasoning": "rain?"},
        {},
    ],
)
def test_an_answer_that_means_something_else_fails(case, expected):
    """Each part that differs, or is missing, fails the case."""
    failure(case.output(OUTPUT).expect, **expected)


def test_a_failure_says_all_that_is_needed(case):
    """The report contains the difference, the split, the events so far, and an expectation that would pass."""
    text = failure(case.output(OUTPUT).expect, reasoning="rain?", content="I look.")

    assert "-     content='I look.'," in text
    assert '+     content="I\'ll look.",' in text
    assert "split     none, the whole output at once" in text
    assert "ToolCallStarted(index=0," in text
    assert "tool_calls=[call('get_weather', {'city': 'Paris'})]," in text


def test_a_failure_shows_controls_and_prints_none():
    """Control characters are escaped in the report."""
    template = ChatTemplate.from_string(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
    )

    said = failure(Chat()(template).output("\x1b[31m\u202eHi</>").expect, content="Hello\x9b")

    assert "\\x1b[31m\\u202eHi" in said
    assert all(char.isprintable() for char in said if char != "\n")


def test_a_deviation_has_to_be_tolerated_explicitly(case):
    """Output that only the lenient parser accepts fails without `tolerated`."""
    cut_off = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'
    expected = {"content": cut_off, "failed_calls": [broken_call("get_weather", '{"city": "Par')]}

    text = failure(case.output(cut_off).expect, **expected)

    assert "the strict parser rejects it" in text
    assert "pass tolerated=True" in text
    case.output(cut_off).expect(**expected, tolerated=True)


@NEEDS_ENGINE
def test_nothing_is_tolerated_without_need(case):
    """With `tolerated`, an output that follows the format fails."""
    text = failure(case.output("Hello!").expect, content="Hello!", tolerated=True)

    assert "nothing to tolerate" in text


@NEEDS_ENGINE
def test_what_the_grammars_forbid_fails(case):
    """A value that the tool's schema doesn't allow fails, because the grammars reject it."""
    wrong = CALL.replace('"Paris"', "7")

    text = failure(case.output(wrong).expect, tool_calls=[call("get_weather", city=7)])

    assert "these grammars don't allow the output: Lark" in text


@NEEDS_ENGINE
def test_layout_is_no_matter_of_grammars(case):
    """An extra line break passes, because a grammar allows the same message."""
    loose = CALL.replace("\n", "\n\n")

    case.output(loose).expect(tool_calls=[call("get_weather", city="Paris")])


def test_the_prompt_decides_what_is_open():
    """The prompt of the conversation determines whether reasoning is open."""
    template = ChatTemplate.from_file(TEMPLATES / "forced-open.jinja")

    Chat()(template).given([{"role": "user", "content": "Why?"}]).output("so\n</think>\n\nThus.").expect(
        reasoning="so", content="Thus."
    )


def test_an_output_must_be_given(case):
    """A case without an output is an error."""
    assert "call output(…)" in failure(case.expect)


def test_mistakes_of_the_test_are_named(case):
    """A missing template and a malformed request raise the library's errors."""
    with pytest.raises(TemplateError, match=r"nowhere\.jinja"):
        Chat([TEMPLATES])("nowhere.jinja")
    with pytest.raises(RequestError, match="tool_choice"):
        case.given(tool_choice="maybe").output("").expect()


def test_unfinished_cases_are_known():
    """A case is unfinished until `expect` is called."""
    chat = Chat([TEMPLATES])
    finished, unfinished = chat("plain.jinja").output("Hi"), chat("plain.jinja").output("Hi")

    failure(finished.expect, content="Ho")

    assert chat.unfinished == (unfinished,)
