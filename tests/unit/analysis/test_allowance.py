"""Analysis of any template has limits, and reports the limit that stopped it."""

from __future__ import annotations

import re
import time

import pytest
from cases import cases
from recipes import UNEXPECTED
from rendering_rows import template_of

from unrender import ChatTemplate, Limits, TemplateError
from unrender.analysis import analyze
from unrender.analysis.ask import Spent
from unrender.errors import FormatWarning
from unrender.limits import MAX_SLOW_RENDERINGS, STANDARD
from unrender.rendering import Rendering

SAYS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
CALLS = "{% for c in m.tool_calls or [] %}BEFORE{{ c.function.name }}BETWEEN{{ c.function.arguments | tojson }}AFTER{% endfor %}"

HOSTILE = {
    "variables for tools": "".join(f"{{% if tools{i} %}}x{{% endif %}}" for i in range(600)) + SAYS,
    "variables for thinking": "".join(f"{{% if thinking{i} %}}x{{% endif %}}" for i in range(600)) + SAYS,
    "fields for reasoning": SAYS.replace("</>", "".join(f"{{{{ m.reasoning{i} }}}}" for i in range(3000)) + "</>"),
    "closers": SAYS + "{% if x in [" + ",".join(f"'</c{i}>'" for i in range(9000)) + "] %}{% endif %}",
    "blanks in a comparison": "{% if thinking ==" + " " * 150_000 + "x %}{% endif %}" + SAYS,
    "long header": SAYS.replace("<{{ m.role }}>", "{{ '<a></a>' * 12000 }}"),
    "long lines around a call": SAYS.replace(
        "</>", CALLS.replace("BEFORE", "{{ '<t>' * 9000 }}").replace("BETWEEN", "{{ ',' * 9000 }}")
    ),
    "words around a call": SAYS.replace("</>", CALLS.replace("BEFORE", "{{ 'x' * 30000 }} a=")),
    "brackets around a call": SAYS.replace("</>", CALLS.replace("AFTER", "{{ '}' * 30000 }}").replace("BETWEEN", "(")),
    "braces around a call": SAYS.replace(
        "</>",
        CALLS.replace("BEFORE", '{"a": ' * 60 + '{"name": "')
        .replace("BETWEEN", '", "arguments": ')
        .replace("AFTER", ', "l": [' + "0," * 6000 + "0]}" + "}" * 60),
    ),
    "much text": SAYS.replace("</>", "{{ 'x y ' * 20000 }}</>"),
    "much text in every answer": SAYS.replace("</>", "{{ '</>' * 30000 }}"),
    "slow": "{% for i in range(40000) %}{% endfor %}" + SAYS,
}


@pytest.mark.slow
@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_analysis_ends(source):
    """Analysis stays within its limits for many names, many markers and long texts."""
    template = template_of(source)
    start = time.thread_time()

    analysis = analyze(template)

    assert time.thread_time() - start < STANDARD.analysis_seconds + 2
    assert analysis.renderings <= STANDARD.analysis_renderings
    assert analysis.stopped_early == any(text.endswith("was asked no more") for text in analysis.diagnostics)
    assert not any(text.startswith(UNEXPECTED) for text in analysis.diagnostics)


SLOW = Rendering(error="too much", exhausted=True)
REASONS = [
    (Limits(analysis_renderings=2), Rendering(text="x"), 2, "the template has more variants than 2 renderings show"),
    (Limits(analysis_characters=10), Rendering(text="x" * 11), 1, "more than 10 characters"),
    (Limits(analysis_renderings=2, analysis_characters=1), Rendering(text="xx"), 1, "more than 1 characters"),
    (STANDARD, SLOW, MAX_SLOW_RENDERINGS + 1, "the template reaches the limits of rendering"),
    (Limits(analysis_seconds=-1), SLOW, 0, "more than -1 seconds"),
]


@pytest.mark.parametrize(("limits", "rendering", "times", "reason"), REASONS, ids=[row[-1] for row in REASONS])
def test_spent_says_which_limit_was_met(limits, rendering, times, reason):
    """Each limit has its own reason. An exceeded limit stays exceeded, and later ones don't change the reason."""
    spent = Spent(limits)
    for _ in range(times):
        assert not spent.is_over
        spent.add(rendering)
    assert spent.is_over
    spent.add(rendering)

    assert spent.is_over
    assert reason in spent.reason


def test_characters_that_are_searched_are_counted():
    """A search beyond the limit is refused, and ends the analysis."""
    spent = Spent(Limits(analysis_searched=10))

    assert spent.search(10)
    assert not spent.is_over
    assert not spent.search(1)
    assert spent.is_over
    assert "more than 10 characters and values" in spent.reason


def test_a_machine_that_stood_still_once_stops_nothing(monkeypatch):
    """A jump of the clock counts as one slow step. Analysis stops only after many slow steps."""
    times = iter([0.0, 60.0, 60.1, 61.5, 63.0])
    monkeypatch.setattr("unrender.analysis.ask.now", lambda: next(times))
    spent = Spent(Limits(analysis_seconds=3))

    assert [spent.is_over for _ in range(4)] == [False, False, False, True]


COMPLEX = {
    "branches and names": "".join(f"{{% if a{i} %}}{{% endif %}}" for i in range(1500)),
    "blocks and variables": "".join(f"{{% set a{i} = 1 %}}" for i in range(2000))
    + "".join(f"{{% block b{i} scoped %}}{{% endblock %}}" for i in range(1000)),
    "expressions": "{{ 1" + "+1" * 40_000 + " }}",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", COMPLEX.values(), ids=COMPLEX)
def test_what_compiles_slowly_is_refused(source):
    """Jinja's compile time grows with branches times names. Sources far beyond any real template are an error."""
    start = time.thread_time()

    with pytest.raises(TemplateError, match="template: expected .*, found"):
        template_of(source)

    assert time.thread_time() - start < 5


LONG_MARKERS = {
    "turn": SAYS.replace("</>", "{{ 'x' * 40000 }}"),
    "reasoning": SAYS.replace("{{ m.content }}", "<think>{{ m.reasoning_content }}{{ '>' * 2000 }}{{ m.content }}"),
    "tools": SAYS.replace("</>", CALLS.replace("BEFORE", "<call>").replace("BETWEEN", "{{ '-' * 2000 }}") + "</>"),
}


@pytest.mark.parametrize(("part", "source"), LONG_MARKERS.items())
def test_long_markers_are_given_up(part, source):
    """A part with a very long marker is dropped with a diagnostic, because parsing it would take quadratic memory."""
    template = ChatTemplate.from_string(source)

    message = template.prepare([{"role": "user", "content": "Hi"}]).parse("Hello")
    with pytest.warns(FormatWarning) as warned:
        assert len(template.format.to_json()) < 5000

    assert message.content == "Hello"
    assert any(re.match(rf"{part}\..*: was given up: ", str(warning.message)) for warning in warned)
    assert set(template.analysis.given_up) <= set(template.analysis.diagnostics)


BARE = "{% for m in messages %}{% if m.role == 'assistant' %}ANSWER{% else %}{{ m.content }}{% endif %}{% endfor %}"


@cases
def test_templates_without_headers_are_analysed(answer):
    """Analysis doesn't search for a header that is missing, because an empty marker isn't a marker."""
    for call in ("", CALLS.replace("BEFORE", ""), CALLS.replace("BETWEEN", " ")):
        analysis = analyze(template_of(BARE.replace("ANSWER", answer + call)))

        assert not any(text.startswith(UNEXPECTED) for text in analysis.diagnostics)
