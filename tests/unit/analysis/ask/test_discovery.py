"""Finding out what a template takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrender.analysis import Capabilities, ReasoningPlace, analyze
from unrender.analysis.ask.discovery import discover
from unrender.analysis.ask.probes import Prober
from unrender.rendering.template import Template

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"


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


def test_as_many_missing_variables_are_supplied_as_are_allowed():
    """After six of them, the template is taken as it is."""
    source = "".join(f"{{{{ v{number} + 'x' }}}}" for number in range(7)) + written()

    assert len(discover(Prober(template=Template(source))).capabilities.required_context) == 6


def test_flat_calls_are_tried():
    """A template that reads name and arguments from the call itself is understood."""
    source = (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}"
        "{%- for c in m.tool_calls or [] -%}<c>{{ c.name }}<a>{{ c.arguments | tojson }}</c>{%- endfor -%}{%- endfor -%}"
    )

    assert analyze(Template(source)).capabilities.requires_flat_calls


def tools_where(place: str, calls: str) -> str:
    """Return a template that offers its tools after a question, in `place`, and writes `calls` of an answer."""
    return (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}"
        "{%- if tools and m.role == 'user' " + place + " -%}<tools>{{ tools | tojson }}</tools>{%- endif -%}"
        "{%- for c in " + calls + " -%}<c>{{ c.function.name }} {{ c.function.arguments | tojson }}</c>{%- endfor -%}"
        "</>{%- endfor -%}"
    )


@pytest.mark.parametrize("place", ["", "and loop.last"])
def test_calls_are_told_from_tools_after_the_question(place):
    """Tools that are offered after a question, or after the open one only, are not taken for calls, nor hide them."""
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


def plans_where(before: str, after: str, alone: str = "") -> str:
    """Return a template that writes a plan, or content in its place, before calls; content `alone` has its own marker."""
    return (
        "{%- for m in messages -%}<{{ m.role }}>"
        "{%- if m.tool_calls -%}" + before + "{{ m.plan or m.content or '' }}" + after + "<calls>"
        "{%- for c in m.tool_calls -%}<c>{{ c.function.name }} {{ c.function.arguments | tojson }}</c>{%- endfor -%}"
        "</calls>{%- else -%}" + alone + "{{ m.content }}{%- endif -%}</>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )


@pytest.mark.parametrize("alone", ["", "<answer>"])
def test_plan_that_content_stands_in_for_is_reasoning(alone):
    """Where calls are after a marked plan, or content in its place, the plan is reasoning, and content alone is not."""
    analysis = analyze(Template(plans_where("<plan>", "</plan>", alone)))

    assert analysis.capabilities.reasoning_field == "plan"
    assert (analysis.format.reasoning.start, analysis.format.reasoning.end) == ("<plan>", "</plan>")
    assert analysis.format.content.start == alone
    assert analysis.format.tools.section_start == "<calls>"


@pytest.mark.parametrize("alone", ["", "<answer>"])
@pytest.mark.parametrize("space", ["", "{{ '\\n' }}"])
def test_unmarked_plan_is_content(alone, space):
    """Where nothing but white space tells a plan from the content in whose place it is, it is content."""
    found = analyze(Template(plans_where(space, "", alone))).capabilities

    assert found.reasoning_field == ""
    assert found.supports_content_with_calls


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("(reasoning_effort if reasoning_effort is defined else 'high') == 'none'", "none"),
        ("reasoning_effort | default('high') | lower == 'off'", "off"),
        ("reasoning_effort in ['low', 'minimal']", "minimal"),
        ("reasoning_effort | default('high') == 'low'", "low"),
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


def test_plan_is_found_where_content_alone_is_refused():
    """The template that takes answers with calls only has a plan in markers, too."""
    source = "{{ raise_exception('x') if messages[-1].role == 'assistant' and not messages[-1].tool_calls }}"
    source += plans_where("<plan>", "</plan>")

    assert discover(Prober(template=Template(source))).capabilities.reasoning_field == "plan"


def test_plan_in_the_wrapper_of_content_is_content():
    """What is in the same pair of markers as content alone is not reasoning."""
    source = plans_where("<say>", "</say>", "<say>").replace("{{ m.content }}", "{{ m.content }}</say>")

    assert discover(Prober(template=Template(source))).capabilities.reasoning_field == ""


LOOP = "{%% for m in messages %%}<{{ m.role }}>{{ m.content or '' }}%s{%% endfor %%}%s{{ '<assistant>' if add_generation_prompt }}"
CALLS = "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
CALLING = {
    "supports_tool_calls": True,
    "supports_parallel_tool_calls": True,
    "supports_content_with_calls": True,
    "supports_content_with_reasoning_and_calls": True,
    "supports_object_arguments": True,
}


def written(inside: str = "", after: str = "") -> str:
    """Return a template with something in each message, and after all of them."""
    return LOOP % (inside, after)


OBSERVED = {
    "nothing but messages": (written(), {}),
    "tools in the usual variable": (written(after="{{ tools | tojson if tools }}"), {"supports_tools": True}),
    "tools in another variable": (
        written(after="{{ functions | tojson if functions }}"),
        {"supports_tools": True, "tools_variable": "functions"},
    ),
    "the usual variable comes first": (
        written(after="{{ tools | tojson if tools }}{{ my_tools if my_tools }}"),
        {"supports_tools": True},
    ),
    "tools as text": (
        written(after="{{ functions | replace('a','a') if functions is string }}"),
        {"supports_tools": True, "tools_variable": "functions", "tools_as_text": True},
    ),
    "tools that must be there": (
        written(after="{% for x in tools %}{{ x.function.name }}{% endfor %}"),
        {"supports_tools": True, "requires_tools": True},
    ),
    "tools that must be there where an answer is asked for": (
        written(after="{% if add_generation_prompt %}{% for x in tools %}{{ x.function.name }}{% endfor %}{% endif %}"),
        {"requires_tools": True},
    ),
    "content that must be parts": (
        "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
        {"supports_typed_content": True, "requires_typed_content": True},
    ),
    "a variable that must be there": (
        written(after="{{ datetime + 'x' }}"),
        {"required_context": (("datetime", "2026-01-01"),)},
    ),
    "a variable that must be there where an answer is asked for": (
        written(after="{{ datetime + 'x' if add_generation_prompt }}"),
        {"required_context": (("datetime", "2026-01-01"),)},
    ),
    "tools that must be there, where parts are not written": (
        "{% if messages[0].content is string %}{% for x in tools %}.{% endfor %}{% endif %}{% for m in messages %}"
        "<{{ m.role }}>{{ m.content if m.content is string }}{% endfor %}",
        {"requires_tools": True},
    ),
    "a variable that does not help": (
        "{{ raise_exception(\"'date' is undefined\") if date != 5 }}" + written(),
        {"required_context": (("date", "2026-01-01"),), "supports_tool_role": False, "supports_system_role": False},
    ),
    "a complaint of no variable": (
        "{{ raise_exception(\"'date' is undefined\") }}" + written(),
        {"supports_tool_role": False, "supports_system_role": False},
    ),
    "two variables that must be there": (
        written(after="{{ datetime + 'x' }}{{ place + 'y' }}"),
        {"required_context": (("datetime", "2026-01-01"), ("place", "2026-01-01"))},
    ),
    "a variable of tools that must be there": (
        written(after="{{ my_functions + 'x' }}"),
        {
            "supports_tools": True,
            "tools_variable": "my_functions",
            "tools_as_text": True,
            "requires_tools": True,
            "required_context": (("my_functions", "[]"),),
        },
    ),
    "a variable of tools that must be text": (
        written(after="{{ (my_functions + 'x') | length }}"),
        {
            "tools_variable": "my_functions",
            "tools_as_text": True,
            "requires_tools": True,
            "required_context": (("my_functions", "[]"),),
        },
    ),
    "after a variable of tools that shows none, the usual one comes first": (
        written(
            after="{{ (my_functions + 'x') | length }}{{ tools | tojson if tools }}{{ a_tools | tojson if a_tools }}"
        ),
        {"supports_tools": True, "requires_tools": True, "required_context": (("my_functions", "[]"),)},
    ),
    "the usual field of reasoning comes first": (
        written("{{ m.reasoning_content or m.reasoning or '' }}"),
        {
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.FIELD,
            "reasoning_field": "reasoning_content",
        },
    ),
    "calls, and no answers without any": (
        written(CALLS + "{{ raise_exception('no') if m.role == 'assistant' and not m.tool_calls }}"),
        CALLING,
    ),
    "a template that refuses everything": (
        "{{ raise_exception('no') }}",
        {"supports_tool_role": False, "supports_system_role": False},
    ),
    "system messages are refused": (
        "{% for m in messages %}{% if m.role=='system' %}{{ raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}",
        {"supports_system_role": False},
    ),
    "a question is left out after a system message": (
        "{% for m in messages if m.role == 'system' or messages[0].role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}",
        {"supports_system_role": False},
    ),
    "a switch that is refused": (
        written(after="{{ raise_exception('no') if enable_thinking is false }}"),
        {},
    ),
    "a word that looks like null": (written(CALLS + "None"), CALLING),
    "two switches, neither of them the usual one": (
        written(after="{{ 'a' if a_thought }}{{ 'b' if thinking }}"),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("thinking", True),),
            "thinking_off": (("thinking", False),),
        },
    ),
    "system messages are ignored": (
        "{% for m in messages if m.role!='system' %}<{{ m.role }}>{{ m.content }}{% endfor %}",
        {"supports_system_role": False},
    ),
    "content that may be parts": (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}",
        {"supports_typed_content": True},
    ),
    "content that may be parts of the usual type": (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}",
        {"supports_typed_content": True},
    ),
    "content that may be parts in questions": (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% elif m.role == 'user' %}"
        "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}",
        {"supports_typed_content": True},
    ),
    "results are ignored": (
        "{% for m in messages if m.role!='tool' %}<{{ m.role }}>{{ m.content }}{% endfor %}",
        {"supports_tool_role": False},
    ),
    "calls": (written(CALLS), CALLING),
    "arguments as text": (
        written("{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments + '' }}]{% endfor %}"),
        {
            "supports_tool_calls": True,
            "supports_parallel_tool_calls": True,
            "supports_content_with_calls": True,
            "supports_content_with_reasoning_and_calls": True,
            "supports_string_arguments": True,
        },
    ),
    "one call at most": (
        written(
            "{% if m.tool_calls %}{% set c = m.tool_calls[0] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endif %}"
        ),
        {
            "supports_tool_calls": True,
            "supports_content_with_calls": True,
            "supports_content_with_reasoning_and_calls": True,
            "supports_object_arguments": True,
        },
    ),
    "calls with ids": (
        written(
            "{% for c in m.tool_calls or [] %}[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
        ),
        CALLING | {"supports_call_id": True},
    ),
    "calls with short ids": (
        written(
            "{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('id') }}{% endif %}[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
        ),
        CALLING | {"supports_call_id": True, "requires_short_id": True},
    ),
    "calls that must have ids": (
        written(
            "{% for c in m.tool_calls or [] %}{{ c.id or raise_exception('id') }}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
        ),
        CALLING | {"supports_call_id": True},
    ),
    "flat calls": (
        written("{% for c in m.tool_calls or [] %}[{{ c.name }} {{ c.arguments | tojson }}]{% endfor %}"),
        CALLING | {"requires_flat_calls": True},
    ),
    "calls whose values must be strings": (
        written(
            "{% for c in m.tool_calls or [] %}[{{ c.function.name }}{% for k, v in c.function.arguments.items() %}{{ ' ' + k + ' ' + v }}{% endfor %}]{% endfor %}"
        ),
        CALLING | {"requires_text_values": True},
    ),
    "calls by their id alone": (
        written("{% for c in m.tool_calls or [] %}[{{ c.id }} {{ c.function.arguments | tojson }}]{% endfor %}"),
        CALLING | {"requires_name_in_id": True},
    ),
    "calls without their arguments": (
        written("{% for c in m.tool_calls or [] %}[{{ c.function.name }}]{% endfor %}"),
        CALLING,
    ),
    "content beside calls must be null": (
        written("{% if m.tool_calls and m.content is not none %}{{ raise_exception('x') }}{% endif %}" + CALLS),
        {
            "supports_tool_calls": True,
            "supports_parallel_tool_calls": True,
            "supports_object_arguments": True,
            "requires_nonnull_content": False,
        },
    ),
    "null would be written as a word": (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}" + CALLS + "{% endfor %}",
        CALLING,
    ),
    "calls in the place of content": (
        "{% for m in messages %}<{{ m.role }}>{% if m.tool_calls %}"
        + CALLS
        + "{% else %}{{ m.content }}{% endif %}{% endfor %}",
        {
            "supports_tool_calls": True,
            "supports_parallel_tool_calls": True,
            "supports_content_with_reasoning_and_calls": True,
            "supports_object_arguments": True,
        },
    ),
    "results": (
        "{% for m in messages %}<{{ m.role }}>{% if m.role == 'tool' %}{{ m.content }}!{% else %}{{ m.content or '' }}{% endif %}"
        + CALLS
        + "{% endfor %}",
        CALLING,
    ),
    "tools and calls": (written(CALLS, "{{ tools | tojson if tools }}"), CALLING | {"supports_tools": True}),
    "reasoning in the usual field": (
        written("{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"),
        {
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.FIELD,
            "reasoning_field": "reasoning_content",
        },
    ),
    "reasoning in another field": (
        "{% for m in messages %}<{{ m.role }}>{% if m.thought %}({{ m.thought }}){% endif %}{{ m.content }}{% endfor %}",
        {"supports_preserve_reasoning": True, "reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "thought"},
    ),
    "of two fields, the usual one": (
        "{% for m in messages %}<{{ m.role }}>{% if m.plan %}({{ m.plan }}){% endif %}"
        "{% if m.thinking %}[{{ m.thinking }}]{% endif %}{{ m.content }}{% endfor %}",
        {"supports_preserve_reasoning": True, "reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "thinking"},
    ),
    "reasoning of the last answer only": (
        "{% for m in messages %}<{{ m.role }}>{% if m.reasoning and loop.last %}({{ m.reasoning }}){% endif %}{{ m.content }}{% endfor %}",
        {"reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "reasoning"},
    ),
    "reasoning of all answers": (
        "{% for m in messages %}<{{ m.role }}>{% if m.reasoning %}({{ m.reasoning }}){% endif %}{{ m.content }}{% endfor %}",
        {"supports_preserve_reasoning": True, "reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "reasoning"},
    ),
    "reasoning run together with content": (
        "{% for m in messages %}<{{ m.role }}>{{ m.reasoning }}{{ m.content }}{% endfor %}",
        {},
    ),
    "reasoning before calls only": (
        "{% for m in messages %}<{{ m.role }}>{% if m.tool_calls %}({{ m.reasoning }}){% endif %}{{ m.content }}"
        + CALLS
        + "{% endfor %}",
        CALLING | {"reasoning_place": ReasoningPlace.FIELD, "reasoning_field": "reasoning"},
    ),
    "reasoning before content only": (
        "{% for m in messages %}<{{ m.role }}>{% if m.reasoning and not m.tool_calls %}({{ m.reasoning }}){% endif %}{{ m.content or '' }}"
        + CALLS
        + "{% endfor %}",
        CALLING
        | {
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.FIELD,
            "reasoning_field": "reasoning",
        },
    ),
    "reasoning in a part": (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'thinking' %}({{ p.thinking }}){% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}",
        {
            "supports_typed_content": True,
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.PART,
            "reasoning_field": "thinking",
        },
    ),
    "reasoning in a block": (
        "{% for m in messages %}<{{ m.role }}>{% if m.content is mapping %}{% for p in m.content.blocks %}{% if p.type == 'thoughts' %}({{ p.text }}){% else %}{{ p.text }}{% endif %}{% endfor %}{% elif m.content is string %}{{ m.content }}{% endif %}{% endfor %}",
        {"supports_preserve_reasoning": True, "reasoning_place": ReasoningPlace.BLOCK, "reasoning_field": "thoughts"},
    ),
    "a switch of two values": (
        written(after="{{ '<t>' if enable_thinking }}"),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("enable_thinking", True),),
            "thinking_off": (("enable_thinking", False),),
        },
    ),
    "a switch that is only looked at when it is set": (
        written(
            after="{{ '<t></t>' if add_generation_prompt and enable_thinking is defined and not enable_thinking }}"
        ),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("enable_thinking", True),),
            "thinking_off": (("enable_thinking", False),),
        },
    ),
    "a switch that shows before the question": (
        "{{ 'A' if enable_thinking }}" + written(),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("enable_thinking", True),),
            "thinking_off": (("enable_thinking", False),),
        },
    ),
    "a switch of words": (
        written(after="{% if mode_of_thought == 'on' %}A{% elif mode_of_thought == 'off' %}B{% endif %}"),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("mode_of_thought", "on"),),
            "thinking_off": (("mode_of_thought", "off"),),
        },
    ),
    "a switch that knows words for off alone": (
        written(after="{% if thinking in ['disabled', 'none'] %}B{% endif %}"),
        {"supports_enable_thinking": True, "thinking_off": (("thinking", "disabled"),)},
    ),
    "a budget": (
        written(after="{% if thinking_budget == 0 %}B{% endif %}"),
        {"supports_enable_thinking": True, "thinking_off": (("thinking_budget", 0),)},
    ),
    "an amount that is written down": (
        written(after="{% if reasoning_effort %}<{{ reasoning_effort }}>{% endif %}"),
        {},
    ),
    "a word that is compared in no way that is known": (
        written(
            after="{{ 'x' if add_generation_prompt and reasoning_effort | default('') == 'none'~'' }}{% set z = 'none' %}"
        ),
        {"supports_enable_thinking": True, "thinking_off": (("reasoning_effort", "none"),)},
    ),
    "a word that means neither on nor off": (
        written(after="{% if my_thinking == 'fast' %}A{% elif my_thinking == 'none' %}B{% endif %}"),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("my_thinking", "fast"),),
            "thinking_off": (("my_thinking", "none"),),
        },
    ),
    "two switches, of which the usual one counts": (
        written(after="{{ 'a' if thinking }}{{ 'b' if enable_thinking }}"),
        {
            "supports_enable_thinking": True,
            "thinking_on": (("enable_thinking", True),),
            "thinking_off": (("enable_thinking", False),),
        },
    ),
    "reasoning, content and calls": (
        written("{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}" + CALLS),
        CALLING
        | {
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.FIELD,
            "reasoning_field": "reasoning_content",
        },
    ),
    "reasoning, content and calls that do not go together": (
        "{% for m in messages %}{% if m.tool_calls and m.content and m.reasoning %}{{ raise_exception('x') }}{% endif %}<{{ m.role }}>{% if m.reasoning %}({{ m.reasoning }}){% endif %}{{ m.content or '' }}"
        + CALLS
        + "{% endfor %}",
        {
            "supports_tool_calls": True,
            "supports_parallel_tool_calls": True,
            "supports_content_with_calls": True,
            "supports_object_arguments": True,
            "supports_preserve_reasoning": True,
            "reasoning_place": ReasoningPlace.FIELD,
            "reasoning_field": "reasoning",
        },
    ),
}


OFF = ["disabled", "off", "none", "no", "false", "never", "disable", "no_think", "nothink"]
ON = ["enabled", "on", "true", "always", "enable", "high", "max", "think", "auto", "adaptive"]


@pytest.mark.parametrize(("on", "off"), [*(("on", word) for word in OFF), *((word, "off") for word in ON)])
def test_words_switch_thinking(on, off):
    """A variable that is compared with a usual word for on and one for off is a switch between them, among other words."""
    test = f"{{{{ 'x' if thinking in ['some', '{off}', 'more', '{on}'] }}}}{{{{ 'y' if thinking == '{off}' }}}}"

    observed = discover(Prober(template=Template(written(after=test)))).capabilities

    assert (observed.thinking_on, observed.thinking_off) == ((("thinking", on),), (("thinking", off),))


@pytest.mark.parametrize(("source", "expected"), OBSERVED.values(), ids=OBSERVED)
def test_only_what_shows_is_observed(source, expected):
    """Each small template has the capabilities that it shows, and no others."""
    observed = discover(Prober(template=Template(source))).capabilities

    assert observed == Capabilities(**({"supports_tool_role": True, "supports_system_role": True} | expected))


def test_tools_are_looked_for_after_an_answer_as_well():
    """A template may write its tools at the end of a conversation only."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        "{% if messages[-1].role == 'assistant' %}{{ tools | tojson }}{% endif %}"
    )

    assert discover(Prober(template=Template(source))).capabilities.supports_tools


def test_ids_of_results_are_tried_as_well():
    """A template may look at the ids of results alone, and demand nine characters of them."""
    source = (
        "{% for m in messages %}{% if m.role == 'tool' and m.tool_call_id | length != 9 %}{{ raise_exception('nine') }}"
        "{% endif %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}<call>"
        "{{ {'name': c.function.name, 'arguments': c.function.arguments, 'id': c.id} | tojson }}</call>{% endfor %}"
        "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    analysis = analyze(Template(source))

    assert analysis.capabilities.requires_short_id
    assert analysis.format.tools.id_length == 9
