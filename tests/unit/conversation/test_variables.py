"""Tests of the template's other arguments: switches, budgets, documents, and its own variables."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from cases import cases
from turn_rows import SOURCES

from unrender import ChatTemplate
from unrender.errors import FormatWarning, TemplateWarning

USER = {"role": "user", "content": "Hello"}
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
# Answers with reasoning, so that analysis finds the switch.


def test_what_only_the_other_named_template_reads_is_accepted(tmp_path):
    """A variable that either named template reads is accepted, with or without tools. Any other variable is a warning."""
    named = [{"name": "default", "template": PLAIN}, {"name": "tool_use", "template": PLAIN + "{{ effort }}"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    template = ChatTemplate.from_pretrained(tmp_path)
    tools = [{"name": "now", "parameters": {"type": "object"}}]

    assert template.prepare([USER], effort="high").prompt == template.prepare([USER]).prompt
    assert template.prepare([USER], tools=tools, effort="high", tool_format="none").prompt.endswith("high")
    with pytest.warns(TemplateWarning, match="efort"):
        template.prepare([USER], efort="high")


def test_a_value_that_is_refused_changes_nothing():
    """A value that the template refuses isn't listed among the values that change the prompt."""
    source = "{{ raise_exception('no') if effort is defined and effort is not string }}{{ effort }}" + PLAIN

    assert ChatTemplate.from_string(source).variables["effort"].changes == ("low", "high")


def test_variables_are_listed_with_what_they_do():
    """Each variable has its default from the source, and the values that change a prompt."""
    variables = ChatTemplate.from_string(SOURCES["switched"]).variables

    assert (variables["effort"].default, variables["effort"].changes) == ("low", ("high",))
    assert variables["date"].default == "today"
    assert variables["enable_thinking"].changes == (False,)
    assert set(variables) == {"effort", "date", "enable_thinking"}


@cases
def test_a_default_is_what_the_source_writes_out(source, default):
    """A default may be a negative number. Expressions aren't evaluated."""
    assert ChatTemplate.from_string(PLAIN + source)._with_tools.facts.defaults.get("budget") == default


DATED = "{{ 'Today is ' + current_date + '. ' }}" + PLAIN
SEPARATED = "{% for m in messages %}<{{ m.role }}>{{ m.content + sep_token }}{% endfor %}"


def test_the_date_that_a_template_needs_is_todays():
    """A missing date variable is set to today's date, with a note."""
    turn = ChatTemplate.from_string(DATED).prepare([USER])

    today = datetime.now().astimezone().date().isoformat()
    assert turn.prompt.startswith(f"Today is {today}. <user>")
    assert turn.warnings == (f"current_date: required by the template; set to today's date, {today}",)


def test_a_token_that_the_template_writes_ends_its_turns():
    """The tokenizer's separator is used in prompts and formats. Without the separator, the format doesn't contain a placeholder."""
    template = ChatTemplate.from_string(SEPARATED, special_tokens={"sep_token": "<sep>"})

    assert template.prepare([USER]).prompt == "<user>Hello<sep>"
    assert template.format.turn.end == "<sep>"
    with pytest.warns(FormatWarning) as warned:
        assert ChatTemplate.from_string(SEPARATED).format.turn.end == ""
    assert any("holds a piece of the probe" in str(warning.message) for warning in warned)
