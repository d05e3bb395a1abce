"""Cases that pass, and reports of cases that fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import cases
from engines import installed
from letters import WEATHER

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.testing import Chat, broken_call, call

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def failure(case, **expected):
    with pytest.raises(AssertionError) as failed:
        case.expect(**expected)
    return str(failed.value)


@cases
def test_a_case(why, template, given, output, expected, said, grammars):
    """A case passes if `said` is null. Otherwise its report contains these texts, and no control characters except line breaks.

    Calls are a name and arguments. A row with `grammars` needs llguidance, which reads them.
    """
    if grammars and not installed("llguidance"):
        pytest.skip("llguidance reads the grammars")
    case = Chat([TEMPLATES])(ChatTemplate.from_string(template) if "{%" in template else f"{template}.jinja")
    case = case.given(**{"tools": [WEATHER]} | given) if given is not None else case
    case = case.output(output) if output is not None else case
    calls = {"tool_calls": call, "failed_calls": broken_call}
    wanted = {name: [calls[name](*one) for one in it] if name in calls else it for name, it in expected.items()}

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
