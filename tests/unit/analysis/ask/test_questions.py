"""A template in, records of what follows its questions and results out."""

from __future__ import annotations

from unrender.analysis.ask.answers import Continuations, Turns, render_turns
from unrender.analysis.ask.probes import CONTENT, EOS, NAMES, REASONING, RESULT, USER, USER2, Prober
from unrender.rendering.capabilities import ReasoningPlace
from unrender.rendering.template import Template

SOURCE = """\
{{- bos }}
{%- for m in messages -%}
<{{ m.role }}{{ '-' if enable_thinking is false }}>
{%- if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}
{{- m.content or '' }}
{%- for c in m.tool_calls or [] %}[{{ c.function.name }}]{% endfor %}
{{- '$' if m.role == 'assistant' and END }}
{%- endfor -%}
{{- '<assistant>' if add_generation_prompt }}"""
C, R, N = CONTENT, REASONING, NAMES[0]


def prober(source=SOURCE, end="true", **capabilities):
    known = {
        "supports_tool_calls": True,
        "supports_tool_role": True,
        "supports_content_with_reasoning_and_calls": True,
        "reasoning_place": ReasoningPlace.FIELD,
        "reasoning_field": "reasoning_content",
        "thinking_off": (("enable_thinking", False),),
    }
    return Prober(template=Template(source.replace("END", end))).with_capabilities(**(known | capabilities))


def asked(header="<assistant>"):
    ends = "$"
    return Continuations(
        prompt=header,
        prompt_no_thinking=header,
        bare="",
        bare_no_thinking="",
        answers=(
            f"{header}{C}{ends}",
            f"{header}({R}){C}{ends}",
            f"{header}[{N}]{ends}",
            f"{header}({R})[{N}]{ends}",
            f"{header}{C}[{N}]{ends}",
        ),
        no_thinking=f"<assistant->{C}{ends}",
        in_history=f"{header}({R}){C}{ends}<user>{USER2}",
    )


def test_questions_and_results_are_asked_alike():
    """Prompts, answers of five shapes, one with thinking off, and one in the middle of a conversation."""
    answer = f"<assistant>{C}$"

    assert render_turns(prober()) == Turns(
        question=asked(),
        result=asked(),
        opening="",
        content=answer,
        followed=f"{answer}<user>{USER2}",
        call=f"<assistant>[{N}]$",
        call_answered=f"<assistant>[{N}]$<tool>{RESULT}",
        after_result=(answer, f"<assistant>{C}[{N}]$"),
    )


def test_results_are_asked_where_they_are_taken():
    """A template without calls, or without results, is not asked for answers to results."""
    for missing in ({"supports_tool_calls": False}, {"supports_tool_role": False}):
        turns = render_turns(prober(**missing))

        assert turns.result is None
        assert turns.after_result == ()


def test_refused_answers_are_left_out():
    """Answers that the template refuses are not among the others."""
    refusing = SOURCE + "{% for m in messages if m.tool_calls %}{{ raise_exception('no') }}{% endfor %}"
    turns = render_turns(prober(refusing))

    assert turns.question.answers == (f"<assistant>{C}$", f"<assistant>({R}){C}$")
    assert turns.after_result == ()
    assert turns.call is None


def test_opening_is_rendered_where_the_last_answer_ends_otherwise():
    """What is before the first question is asked for where an answer in history does not end as the last one does."""
    unended = prober(end="not loop.last")
    appended = prober(SOURCE + "{{ 'Bye' if not add_generation_prompt }}")
    longer = prober(end="loop.last", source=SOURCE.replace("'$'", "'$' ~ eos_token"))

    assert render_turns(unended).opening == "<user>"
    assert render_turns(appended).opening == "<user>"
    assert render_turns(longer).opening == "<user>"
    assert render_turns(prober(end="false")).opening == "<user>"
    assert render_turns(prober(SOURCE.replace("'$'", "'\\n'"))).opening == "<user>"
    assert render_turns(prober(SOURCE + "{{ messages[0].content }}", end="false")).opening == "<user>"
    assert (
        render_turns(prober("{% for m in messages if m.role == 'user' %}<user>{{ m.content }}{% endfor %}")).opening
        == "<user>"
    )


def test_opening_of_a_template_that_refuses_is_empty():
    """Where a lone question does not render, nothing is before it."""
    refusing = "{% if messages | length < 2 %}{{ raise_exception('no') }}{% endif %}" + SOURCE

    assert render_turns(prober(refusing, end="false")).opening == ""


def test_opening_is_rendered_where_no_question_follows():
    """A template that refuses a second question shows no end of an answer in history."""
    refusing = "{% if (messages | selectattr('role', 'eq', 'user') | list | length) > 1 %}{{ raise_exception('no') }}{% endif %}"
    turns = render_turns(prober(refusing + SOURCE))

    assert (turns.followed, turns.opening) == (None, "<user>")


def test_texts_follow_the_last_input():
    """What is before the question is in no record."""
    turns = render_turns(prober())

    assert USER not in repr(turns)
    assert EOS not in repr(turns)
