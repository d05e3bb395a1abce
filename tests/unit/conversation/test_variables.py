"""Tests of the template's other arguments: switches, budgets, documents, and its own variables."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from cases import cases

from unrender import ChatTemplate, RequestError, TemplateError
from unrender.errors import FormatWarning, TemplateWarning

USER = {"role": "user", "content": "Hello"}
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
SWITCHED = (
    PLAIN + "{% if effort is not defined %}{% set effort = 'low' %}{% endif %}{{ '!' if effort == 'high' }}"
    "{{ date | default('today') }}{% if add_generation_prompt %}<assistant>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}{% endif %}"
)
# Answers with reasoning, so that analysis finds the switch.
THINKING = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% if SWITCH %}<think></think>{% endif %}"
    "{% endif %}"
)
ON_BY_DEFAULT = THINKING.replace("SWITCH", "enable_thinking is defined and not enable_thinking")
OFF_BY_DEFAULT = THINKING.replace("SWITCH", "not thinking")


@cases
def test_a_misspelled_argument_is_an_error_that_names_it(typo, meant):
    """A misspelled argument of `prepare` isn't passed on as a template variable."""
    with pytest.raises(RequestError, match=f"^{typo}: unknown argument.*did you mean '{meant}'"):
        ChatTemplate.from_string(SWITCHED).prepare([USER], **{typo: "required"})


@cases
def test_a_variable_that_nobody_reads_is_a_warning(name, note):
    """An unused variable is a warning, because the same request may go to any model. It names the closest variable, or lists all."""
    template = ChatTemplate.from_string(SWITCHED)
    with pytest.warns(TemplateWarning) as caught:
        turn = template.prepare([USER], **{name: "x"})

    assert [str(item.message) for item in caught] == list(turn.warnings) == [note]
    assert turn.prompt == template.prepare([USER]).prompt


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


@pytest.mark.parametrize("name", ["messages", "add_generation_prompt"])
def test_what_prepare_sets_itself_is_refused(name):
    """Variables that `prepare` sets can't be passed."""
    with pytest.raises((RequestError, TypeError), match=name):
        ChatTemplate.from_string(PLAIN).prepare([USER], **{name: True})


def test_a_switch_that_is_not_there_is_a_warning():
    """`enable_thinking` causes a warning at the caller's line if the template has no switch, unless it is None."""
    template = ChatTemplate.from_string(PLAIN)

    assert template.prepare([USER], enable_thinking=None).thinking is None
    with pytest.warns(TemplateWarning, match="no switch for thinking") as caught:
        turn = template.prepare([USER], enable_thinking=False)

    assert caught[0].filename == __file__
    assert turn.prompt == template.prepare([USER]).prompt


def test_a_value_that_is_refused_changes_nothing():
    """A value that the template refuses isn't listed among the values that change the prompt."""
    source = "{{ raise_exception('no') if effort is defined and effort is not string }}{{ effort }}" + PLAIN

    assert ChatTemplate.from_string(source).variables["effort"].changes == ("low", "high")


def test_variables_are_listed_with_what_they_do():
    """Each variable has its default from the source, and the values that change a prompt."""
    variables = ChatTemplate.from_string(SWITCHED).variables

    assert (variables["effort"].default, variables["effort"].changes) == ("low", ("high",))
    assert variables["date"].default == "today"
    assert variables["enable_thinking"].changes == (False,)
    assert set(variables) == {"effort", "date", "enable_thinking"}


@cases
def test_a_turn_says_whether_it_thinks(source, given, thinking):
    """`thinking` is also set if the caller passed nothing, or if the switch has another name."""
    assert ChatTemplate.from_string(source).prepare([USER], **given).thinking is thinking


@cases
def test_a_default_is_what_the_source_writes_out(source, default):
    """A default may be a negative number. Expressions aren't evaluated."""
    assert ChatTemplate.from_string(PLAIN + source)._with_tools.facts.defaults.get("budget") == default


ASKED = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
BOT = "{% if add_generation_prompt %}<bot>{% endif %}"
LOUD = "{{ 'Effort: ' ~ reasoning_effort if reasoning_effort }}" + ASKED + BOT
STRICT = (
    "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'no' %}{% elif reasoning_effort not in "
    "['no', 'low', 'high'] %}{{ raise_exception('no such effort') }}{% endif %}"
    + ASKED
    + BOT
    + "{% if reasoning_effort == 'no' %}<think></think>{% else %}{{ reasoning_effort }}{% endif %}"
)
STRONG = ASKED + BOT + "{{ 'much' if thinking_strength == 'high' }}"
BUDGETED = ASKED + BOT + "{{ token_budget }}"
EITHER = ASKED + BOT + "{{ '<think></think>' if reasoning_effort == 'none' or reasoning_effort == 'never' }}"
WORD = (
    "{% set ns = namespace(off=false) %}{% for m in messages %}{% if '/no_think' in m.content %}{% set ns.off = true %}"
    "{% endif %}<{{ m.role }}>{{ m.content.replace('/no_think', '').strip() }}</>{% endfor %}"
    + BOT
    + "{{ '<think></think>' if ns.off else '<think>' }}"
)


@cases
def test_switches_are_the_templates_own(source, said, written, thinking, note):
    """The request's thinking options are converted to the template's own. A note names each option that the template lacks."""
    turn = ChatTemplate.from_string(globals()[source]).prepare([USER], **said)

    assert written in turn.prompt
    assert turn.thinking is thinking
    assert [note in said for said in turn.warnings] == [True] * bool(note)


@cases
def test_what_is_malformed_is_an_error_for_every_template(said):
    """A malformed option is an error, whether or not the template reads it."""
    for source in (PLAIN, ON_BY_DEFAULT):
        with pytest.raises(RequestError, match=f"^{next(iter(said))}"):
            ChatTemplate.from_string(source).prepare([USER], **said)


def test_documents_are_shown_or_named():
    """Each document that the template doesn't show is reported. Some templates also expect a list of tools."""
    first = ASKED + "{{ documents[0].text if documents }}"
    listed = ASKED + "{% if documents %}{% for tool in tools %}{{ tool }}{% endfor %}{{ documents }}{% endif %}"
    documents = [{"text": "Text one"}, {"text": "Text two"}]

    def notes(source):
        return ChatTemplate.from_string(source).prepare([USER], documents=documents).warnings

    assert notes(PLAIN) == ("documents: not supported by the template; put their text in a message",)
    assert notes(first) == ("documents[1]: not shown by the template",)
    assert notes(listed) == ()


NAMED = "{{ 'You are ' + model_name + '. ' }}" + PLAIN
DATED = "{{ 'Today is ' + current_date + '. ' }}" + PLAIN
SEPARATED = "{% for m in messages %}<{{ m.role }}>{{ m.content + sep_token }}{% endfor %}"


@cases
def test_a_variable_that_the_template_needs_is_never_made_up(source, way):
    """A placeholder of the analysis never reaches a prompt. The error explains how to pass the variable."""
    with pytest.raises(TemplateError, match=way):
        ChatTemplate.from_string(source).prepare([USER])


def test_a_variable_that_the_template_needs_may_be_given():
    """The caller's value is used, even for a date."""
    assert ChatTemplate.from_string(NAMED).prepare([USER], model_name="Ada").prompt.startswith("You are Ada. ")
    assert ChatTemplate.from_string(DATED).prepare([USER], current_date="1 May").warnings == ()


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


STUBBORN = (
    "{% if enable_thinking is defined and not enable_thinking %}{{ raise_exception('it always thinks') }}{% endif %}"
    + PLAIN
    + "{% if add_generation_prompt %}<assistant><think>{% endif %}"
)


def test_a_switch_that_the_template_refuses_is_a_note():
    """A switch that the template rejects is ignored, and the note has the template's error."""
    template = ChatTemplate.from_string(STUBBORN)

    turn = template.prepare([USER], enable_thinking=False)

    assert turn.prompt == template.prepare([USER]).prompt
    assert turn.thinking == template.prepare([USER]).thinking
    assert turn.warnings == ("enable_thinking: ignored, since the template rejects it (it always thinks)",)
