"""Every rule on a template that breaks it, and none on one that breaks none."""

from __future__ import annotations

import json

import pytest
from lint_examples import BROKEN, SOUND

from unrender import ChatTemplate
from unrender.lint import RULES, lint


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
