"""Every rule on a template that breaks it, and none on one that breaks none."""

from __future__ import annotations

import json

import pytest

from unrender import ChatTemplate
from unrender.lint import RULES, lint

# Breaks no rule: all that is said is written, the same wherever it stands, and no text can end a turn.
SOUND = """\
{{- bos_token }}
{%- if tools %}{{ '<|tools|>' ~ tools | tojson ~ '<|end|>' }}{% endif %}
{%- for message in messages %}
{{- '<|' ~ message.role ~ '|>' }}
{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}
{{- (message.content or '') | replace('<|end|>', '') }}
{%- for call in message.tool_calls or [] %}
{%- set given = call.function.arguments %}
{{- '<call name="' ~ call.function.name ~ '">' ~ (given if given is string else given | tojson) ~ '</call>' }}
{%- endfor %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""

# Rule → what to change in the sound template so that it breaks the rule.
BROKEN = {
    "ordinary-messages-refused": (
        "{{- bos_token }}",
        "{{- bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    ),
    "null-content-refused": ("(message.content or '')", "(message.content ~ '')"),
    "string-arguments-refused": (
        "{%- set given = ",
        "{%- for key in call.function.arguments.keys() %}{% endfor %}{%- set given = ",
    ),
    "object-arguments-refused": ("(given if given is string else given | tojson)", "('' + given)"),
    "arguments-double-encoded": ("(given if given is string else given | tojson)", "(given | tojson)"),
    "second-call-refused": ("in message.tool_calls or []", "in (message.tool_calls or [])[:1]"),
    "tools-ignored": ("{%- if tools %}", "{%- if false %}"),
    "tool-calls-dropped": ("in message.tool_calls or []", "in []"),
    "tool-results-dropped": ("in messages %}", "in messages if message.role != 'tool' %}"),
    "system-message-dropped": ("in messages %}", "in messages if message.role != 'system' %}"),
    "reasoning-never-written": (
        "{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}",
        "{%- if message.role == 'assistant' %}{{ '<think></think>' }}{% endif %}",
    ),
    "reasoning-dropped-after-call": (
        "{%- if message.reasoning_content %}",
        "{%- if message.reasoning_content and not (message.tool_calls and not loop.last) %}",
    ),
    "reasoning-dropped-from-history": (
        "if message.reasoning_content %}",
        "if message.reasoning_content and loop.last %}",
    ),
    "content-in-open-reasoning": (
        "{%- if message.reasoning_content %}",
        "{%- if message.role == 'assistant' and not message.reasoning_content %}{{ '<think>' }}{% endif %}"
        "{%- if message.reasoning_content %}",
    ),
    "content-cut-at-marker": ("(message.content or '')", "((message.content or '').split('</think>')[-1])"),
    "bos-doubled": ("{{- '<|' ~ message.role", "{{- bos_token ~ '<|' ~ message.role"),
    "generation-prompt-missing": ("{%- if add_generation_prompt %}", "{%- if false %}"),
    "generation-prompt-always": ("{%- if add_generation_prompt %}", "{%- if true %}"),
    "history-not-prefix-stable": ("{{- '<|end|>' }}", "{{- '<|end|>' if loop.last else '<|over|>' }}"),
    "special-tokens-injectable": (" | replace('<|end|>', '')", ""),
}


def broken(rule):
    old, new = BROKEN[rule]
    assert old in SOUND
    return ChatTemplate.from_string(SOUND.replace(old, new))


def test_sound_template_has_no_findings():
    """A template that writes all that it is given, the same everywhere, breaks no rule."""
    assert lint(ChatTemplate.from_string(SOUND)) == ()


def test_every_rule_is_broken_here():
    """No rule is without a template that breaks it."""
    assert set(BROKEN) == {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", BROKEN)
def test_rule_finds_what_it_looks_for(rule):
    """A template that breaks a rule gives a finding with the conversation that shows it."""
    found = {finding.rule: finding for finding in lint(broken(rule))}

    assert rule in found
    assert found[rule].messages
    assert found[rule].text
    assert found[rule].fix


@pytest.mark.parametrize("rule", BROKEN)
def test_ignored_rules_find_nothing(rule):
    """A rule that is ignored is not asked."""
    assert rule not in {finding.rule for finding in lint(broken(rule), ignore=[rule])}


def test_conversation_shows_the_finding():
    """Rendering a finding's conversation shows what the finding says."""
    template = broken("system-message-dropped")
    (finding,) = lint(template)

    rendering = template.template.render(list(finding.messages), add_generation_prompt=True)

    assert finding.messages[0]["content"] == "Be BRIEF."
    assert "BRIEF" not in rendering.text


def test_excerpt_shows_the_place():
    """Where something wrong is written, its place in the rendering is shown."""
    (finding,) = lint(broken("arguments-double-encoded"))

    assert '\\"city\\"' in finding.excerpt


def test_finding_is_data():
    """A finding can be written as JSON."""
    (finding,) = lint(broken("bos-doubled"))

    assert json.loads(json.dumps(finding.to_dict()))["rule"] == "bos-doubled"


@pytest.mark.parametrize("source", ["", "{{ 1/0 }}", "{{ raise_exception('no') }}", "{{ messages }}", "{{ x.y.z }}"])
def test_raises_nothing(source):
    """The strangest template is examined, not complained about with an exception."""
    assert isinstance(lint(ChatTemplate.from_string(source)), tuple)
