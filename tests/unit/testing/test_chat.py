"""Cases that pass, reports of cases that fail, and expectations as Python source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import cases
from engines import installed
from letters import WEATHER

from unrender import ChatTemplate, Message, RequestError, TemplateError, ToolCall
from unrender.testing import Chat, broken_call, call
from unrender.testing.chat import source_of, source_of_message

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def broken(name, arguments, status="truncated"):
    return broken_call(name, arguments, status=status)


def expectation(parts):
    """Return arguments of `expect`. Calls are the arguments of `call` and `broken_call`."""
    calls: dict[str, Any] = {"tool_calls": call, "failed_calls": broken}
    return {name: [calls[name](*one) for one in it] if name in calls else it for name, it in parts.items()}


def message(parts):
    """Return a message. Calls are a name, JSON and a status."""
    calls = {
        name: tuple(
            ToolCall(name=tool, arguments_json=text, id="1", status=status) for tool, text, status in parts[name]
        )
        for name in ("tool_calls", "failed_calls")
        if name in parts
    }
    return Message(**parts | calls)


def failure(case, **expected):
    with pytest.raises(AssertionError) as failed:
        case.expect(**expected)
    return str(failed.value)


@cases
def test_a_case(why, template, given, output, expected, said, grammars):
    """A case passes if `said` is null. Otherwise its report contains these texts, and no control characters except line breaks.

    A row with `grammars` needs llguidance, which reads them.
    """
    if grammars and not installed("llguidance"):
        pytest.skip("llguidance reads the grammars")
    case = Chat([TEMPLATES])(ChatTemplate.from_string(template) if "{%" in template else f"{template}.jinja")
    case = case.given(**{"tools": [WEATHER]} | given) if given is not None else case
    case = case.output(output) if output is not None else case
    wanted = expectation(expected)

    if said is None:
        case.expect(**wanted)
        return
    report = failure(case, **wanted)
    assert [text for text in said if text not in report] == [], why
    assert all(char.isprintable() for char in report if char != "\n")


def test_mistakes_of_the_test_are_named():
    """A missing template and a malformed request raise the library's errors."""
    with pytest.raises(TemplateError, match=r"nowhere\.jinja"):
        Chat([TEMPLATES])("nowhere.jinja")
    with pytest.raises(RequestError, match="tool_choice"):
        Chat([TEMPLATES])("json-tags.jinja").given(tool_choice="maybe").output("").expect()


def test_unfinished_cases_are_known():
    """A case is unfinished until `expect` is called."""
    chat = Chat([TEMPLATES])
    finished, unfinished = chat("plain.jinja").output("Hi"), chat("plain.jinja").output("Hi")

    failure(finished, content="Ho")

    assert chat.unfinished == (unfinished,)


@cases
def test_expectations_are_compared_with_messages(why, expected, parts, equal):
    """An expectation and a message are equal if their sources are."""
    assert (source_of(**expectation(expected)) == source_of_message(message(parts))) is equal, why


def test_white_space_is_shown():
    """Line breaks are visible."""
    assert source_of(content="Hi\n") == r".expect(content='Hi\n')"


@cases
def test_the_source_makes_the_same_expectation(parts):
    """A printed expectation can be pasted into a test."""

    class Case:
        def expect(self, **expected):
            return expected

    given = expectation(parts)

    assert eval("case" + source_of(**given), {"case": Case(), "call": call, "broken_call": broken_call}) == given
