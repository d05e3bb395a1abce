"""Finding out what a template takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrender.analysis import Capabilities, ReasoningPlace, analyze
from unrender.template.rendering import Template

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def capabilities(name: str) -> Capabilities:
    return analyze(Template((TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8"))).capabilities


@pytest.mark.parametrize(
    ("template", "field", "value"),
    [
        ("plain", "supports_tools", False),
        ("plain", "supports_tool_calls", False),
        ("json-tags", "supports_tools", True),
        ("json-tags", "supports_tool_calls", True),
        ("json-tags", "supports_parallel_tool_calls", True),
        ("json-tags", "supports_content_with_calls", True),
        ("json-tags", "supports_object_arguments", True),
        ("json-tags", "supports_preserve_reasoning", True),
        ("json-bare", "supports_parallel_tool_calls", False),
        ("json-bare", "supports_content_with_calls", False),
        ("json-array", "supports_call_id", True),
        ("json-array", "requires_short_id", False),
        ("bracket-id", "requires_short_id", True),
        ("id-only", "requires_name_in_id", True),
        ("namespace-counter", "supports_string_arguments", True),
        ("recipient", "supports_object_arguments", False),
        ("recipient", "supports_string_arguments", True),
        ("channels", "supports_content_with_calls", False),
        ("channels", "reasoning_field", "thinking"),
        ("answer-wrapped", "reasoning_field", "reasoning"),
        ("typed-parts", "requires_typed_content", True),
        ("typed-parts", "supports_system_role", False),
        ("typed-parts", "reasoning_place", ReasoningPlace.PART),
        ("typed-parts", "reasoning_field", "thinking"),
        ("forced-closed", "thinking_switch", "enable_thinking"),
        ("forced-closed", "supports_enable_thinking", True),
        ("switch-words", "thinking_on", (("thinking_mode", "enabled"),)),
        ("switch-words", "thinking_off", (("thinking_mode", "disabled"),)),
        ("wants-more", "tools_variable", "functions"),
        ("wants-more", "tools_as_text", True),
        ("wants-more", "requires_tools", True),
    ],
)
def test_capability_is_observed(template, field, value):
    """Each capability is found on a template that has it, and not on one that has not."""
    assert getattr(capabilities(template), field) == value


def test_missing_variables_are_supplied():
    """What a template cannot render without is found by its own complaint."""
    assert dict(capabilities("wants-more").required_context).keys() == {"functions", "datetime"}


def test_flat_calls_are_tried():
    """A template that reads name and arguments from the call itself is understood."""
    source = (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}"
        "{%- for c in m.tool_calls or [] -%}<c>{{ c.name }}<a>{{ c.arguments | tojson }}</c>{%- endfor -%}{%- endfor -%}"
    )

    assert analyze(Template(source)).capabilities.requires_flat_calls


def tools_where(place: str, calls: str) -> str:
    """Return a template that offers its tools behind a question, in `place`, and writes `calls` of an answer."""
    return (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}"
        "{%- if tools and m.role == 'user' " + place + " -%}<tools>{{ tools | tojson }}</tools>{%- endif -%}"
        "{%- for c in " + calls + " -%}<c>{{ c.function.name }} {{ c.function.arguments | tojson }}</c>{%- endfor -%}"
        "</>{%- endfor -%}"
    )


@pytest.mark.parametrize("place", ["", "and loop.last"])
def test_calls_are_told_from_tools_behind_the_question(place):
    """Tools that are offered behind a question, or behind the open one only, are not taken for calls, nor hide them."""
    every = analyze(Template(tools_where(place, "m.tool_calls or []"))).capabilities
    first = analyze(Template(tools_where(place, "(m.tool_calls or [])[:1]"))).capabilities
    none = analyze(Template(tools_where(place, "[]"))).capabilities

    assert every.supports_object_arguments
    assert [found.supports_tool_calls for found in (every, first, none)] == [True, True, False]
    assert [found.supports_parallel_tool_calls for found in (every, first, none)] == [True, False, False]


@pytest.mark.parametrize(
    "test", ["effort == 'none'", "effort in ['none', 'off']", "effort is defined and effort == 'off'"]
)
def test_thinking_that_only_goes_off_has_a_switch(test):
    """A template with a word for no reasoning and none for more is switched off by it, and left alone for on."""
    source = (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content }}</>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- if TEST -%}<think></think>{%- endif -%}{%- endif -%}"
    )

    found = analyze(Template(source.replace("TEST", test.replace("effort", "reasoning_effort")))).capabilities

    assert found.supports_enable_thinking
    assert found.thinking_on == ()
    assert found.thinking_off in ((("reasoning_effort", "none"),), (("reasoning_effort", "off"),))


def plans_where(before: str, behind: str, alone: str = "") -> str:
    """Return a template that writes a plan, or content in its place, before calls; content `alone` has its own marker."""
    return (
        "{%- for m in messages -%}<{{ m.role }}>"
        "{%- if m.tool_calls -%}" + before + "{{ m.plan or m.content or '' }}" + behind + "<calls>"
        "{%- for c in m.tool_calls -%}<c>{{ c.function.name }} {{ c.function.arguments | tojson }}</c>{%- endfor -%}"
        "</calls>{%- else -%}" + alone + "{{ m.content }}{%- endif -%}</>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )


@pytest.mark.parametrize("alone", ["", "<answer>"])
def test_plan_that_content_stands_in_for_is_reasoning(alone):
    """Where calls stand behind a marked plan, or content in its place, the plan is reasoning, and content alone is not."""
    analysis = analyze(Template(plans_where("<plan>", "</plan>", alone)))

    assert analysis.capabilities.reasoning_field == "plan"
    assert (analysis.format.reasoning.start, analysis.format.reasoning.end) == ("<plan>", "</plan>")
    assert analysis.format.content.start == alone
    assert analysis.format.tools.section_start == "<calls>"


@pytest.mark.parametrize("alone", ["", "<answer>"])
@pytest.mark.parametrize("space", ["", "{{ '\\n' }}"])
def test_unmarked_plan_is_content(alone, space):
    """Where nothing but white space tells a plan from the content in whose place it stands, it is content."""
    found = analyze(Template(plans_where(space, "", alone))).capabilities

    assert found.reasoning_field == ""
    assert found.supports_content_with_calls


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("(reasoning_effort if reasoning_effort is defined else 'high') == 'none'", "none"),
        ("reasoning_effort | default('high') | lower == 'off'", "off"),
        ("reasoning_effort in ['low', 'minimal']", "minimal"),
    ],
)
def test_a_word_that_closes_reasoning_in_the_prompt_is_a_switch(test, word):
    """However the variable is compared, a word of the template's that changes how the answer begins switches thinking off."""
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<a>{{ '<t></t>' if TEST else '' }}"

    found = analyze(Template(source.replace("TEST", test))).capabilities

    assert (found.thinking_on, found.thinking_off) == ((), (("reasoning_effort", word),))


def test_a_word_that_is_only_said_is_no_switch():
    """A template that repeats the effort in its instructions is not switched off by it."""
    source = "{{ 'off' if none else '' }}Effort: {{ reasoning_effort }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<a>"

    assert not analyze(Template(source)).capabilities.supports_enable_thinking
