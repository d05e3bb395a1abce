"""Tests of conversations that a template refuses, and of fields with values of every type."""

from __future__ import annotations

import warnings
from copy import deepcopy
from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import pytest
from cases import beside, cases
from rendering_rows import template_of

from unrender import ChatTemplate, Limits, TemplateError, UnrenderError
from unrender.conversation.transcript import SharedTime
from unrender.errors import TemplateWarning
from unrender.rendering import Rendering, Template
from unrender.training import assistant_mask

TEMPLATES = Path(__file__).parents[2] / "templates"
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
TOOL = {"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}, "required": ["a"]}
REQUEST = {
    "messages": [
        {"role": "system", "content": "s", "name": "x"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": "c", "reasoning_content": "r", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "out"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "strict": True, "parameters": TOOL}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": True,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": TOOL}},
    "reasoning_format": "auto",
    "tool_format": "auto",
    "continue_final_message": False,
    "enable_thinking": True,
    "thinking": {"type": "enabled", "budget_tokens": 5},
    "reasoning_effort": "low",
    "documents": [{"text": "d"}],
    "chat_template_kwargs": {"thinking_budget": 5, "keep": "x"},
}
VALUES = (
    None,
    5,
    1.5,
    [],
    {},
    "",
    True,
    [[]],
    {"a": {"b": [None]}},
    [{}],
    [{"type": 5}],
    b"x",
    {1},
    {1: 2},
    object,
    "\ud800",
)
REFUSING = beside(__file__, "refusing.jinja")
USER = {"role": "user", "content": "Hi"}


def places(value, path=()):
    """Yield the path of every field."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(path, value):
    """Return the request with the value at a path replaced."""
    request = deepcopy(REQUEST)
    holder: Any = request
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return request


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["json-tags", "bracket-id", "plain"])
def test_a_field_of_any_type_is_taken_or_refused_by_name(name):
    """Any value in any field of a request raises only the documented errors."""
    template, unexpected = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja"), []
    for path, value in product(places(REQUEST), VALUES):
        request = changed(path, value)
        for ask in (
            lambda request=request: template.prepare(**request),
            lambda request=request: assistant_mask(template, request["messages"], tools=request["tools"]),
        ):
            try:
                ask()
            except UnrenderError:
                pass
            except Exception as error:  # noqa: BLE001 -- the test reports it
                unexpected.append((path, value, error))

    assert unexpected == []


def test_what_is_refused_is_said_otherwise():
    """Each refused feature is rewritten separately, with a warning that contains the template's error."""
    template = ChatTemplate.from_string(REFUSING)
    silent = [USER, {"role": "assistant", "content": None}, {"role": "user", "content": "Well?"}]
    orphan = [USER, {"role": "assistant", "content": "half"}, {"role": "tool", "tool_call_id": "x", "content": "out"}]

    with pytest.warns(TemplateWarning, match=r"refuses the conversation \(empty\); empty answers are left out"):
        assert template.prepare(silent).prompt == "<user>Hi\nWell?</><assistant>"
    with pytest.warns(TemplateWarning, match="results without a call become user messages"):
        assert "out" in template.prepare(orphan).prompt


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_template_that_refuses_tools_is_not_given_them(choice):
    """Tools that the template refuses are described in the prompt, unless no tool may be called."""
    refusing = "{% if tools %}{{ raise_exception('no tools') }}{% endif %}"
    said = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]

    turn = ChatTemplate.from_string(refusing + said).prepare([USER], tools=tools, tool_choice=choice)

    assert turn.prompt.endswith("<user>Hi</><assistant>")
    assert ("look_up" in turn.prompt) == (choice == "auto")


TYPED = beside(__file__, "typed.jinja")
"""A template whose macro for parameters supports only single types."""


@pytest.mark.filterwarnings("ignore::unrender.errors.TemplateWarning")
@cases
def test_tools_that_a_template_cannot_describe_are_described_with_single_types(schema, shown):
    """A type that the template's macro refuses is simplified in the prompt, but the enforced schema is unchanged."""
    parameters = {"type": "object", "properties": {"a": schema}, "required": None}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}

    turn = ChatTemplate.from_string(TYPED).prepare([USER], tools=[tool])

    assert turn.prompt == f"f[a: {shown}]<user>Hi<bot>"
    assert turn.request.tools[0].parameters["properties"] == {"a": schema}
    assert turn.warnings == (() if schema == {"type": "string"} else (PLAIN,))


PLAIN = "the template refuses the tools; each parameter is described with a single type"


@cases
def test_calls_that_a_template_does_not_show_are_named(shows, tools):
    """Some templates drop earlier calls if the request has no tools, and others if the message has content."""
    template = ChatTemplate.from_string(
        "{{ tools }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls if " + shows + " %}"
        "<c>{{ c.function | tojson }}</c>{% endfor %}{% endfor %}<bot>"
    )
    said = [USER, {"role": "assistant", "content": "c", "tool_calls": [CALL]}, {**USER, "content": "So?"}]

    with pytest.warns(TemplateWarning):
        turn = template.prepare(said, tools=tools)

    assert turn.warnings == ("messages[1].tool_calls: not shown by the template",)


def test_what_stays_refused_has_the_first_reason():
    """If no rewrite helps, the error is the template's own for the original conversation."""
    template = ChatTemplate.from_string(
        "{% if messages %}{{ raise_exception(messages | length ~ ' messages') }}{% endif %}"
    )

    with pytest.raises(TemplateError, match="3 messages"):
        template.prepare([USER, {"role": "assistant", "content": ""}, USER])


SHOWN = "{{ '<bot>' if add_generation_prompt }}"
FIRST_SYSTEM = (
    "{% if messages[0].role == 'system' %}[{{ messages[0].content | trim }}]{% endif %}"
    "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}" + SHOWN
)
LAST = "{{ messages[-1].content }}" + SHOWN
JSON = "{% for m in messages %}{{ m.content | tojson }}{% endfor %}" + SHOWN
LATER = {"role": "system", "content": "Two."}
ANSWER = {"role": "assistant", "content": "Well."}
PARTS = "{% for m in messages %}{{ 'A' + m.content }}{% endfor %}"


@cases
def test_what_is_said_is_shown_or_named(source, messages, prompt, notes):
    """Text that the template drops is moved or reported. Dropped answers are only reported. Escapes and whitespace don't count."""
    turn = ChatTemplate.from_string(globals()[source]).prepare(messages)

    assert turn.prompt == prompt
    assert list(turn.warnings) == notes


def test_masks_warn_of_what_is_not_shown():
    """Masks warn about dropped text, as prompts do, and the warning has the caller's line."""
    with pytest.warns(TemplateWarning, match="later system messages become user messages") as caught:
        masked = assistant_mask(ChatTemplate.from_string(FIRST_SYSTEM), [USER, ANSWER, LATER, USER])

    assert "Two." in masked.text
    assert caught[0].filename == __file__


SLOW = "{% set n = namespace(x=0) %}{% for i in range(90000) %}{% for j in range(9) %}{% set n.x = n.x + 1 %}{% endfor %}{% endfor %}"
LONG = "{% if messages[2] %}WORK{% endif %}"
SAYS = "{% for m in messages %}<{{ m.role }}>{{ m.content | e }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TALK = [
    {"role": "system", "content": "Be <kind>"},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Ho"},
    {"role": "system", "content": "Be nice"},
    {"role": "user", "content": "Hi"},
]


def test_all_renderings_of_a_conversation_share_their_time():
    """A slow refusal isn't repeated for every concession. The first error is raised within two renderings' time."""
    source = SAYS + LONG.replace("WORK", SLOW.replace("90000", "2000") + "{{ raise_exception('no') }}")
    template = ChatTemplate.from_string(source, limits=Limits(rendering_seconds=0.25))
    template.analysis  # noqa: B018 -- made once, in time of its own
    start = thread_time()

    with pytest.raises(TemplateError, match=": no$"):
        template.prepare(TALK)

    assert thread_time() - start < 2 * 0.25 + 0.2


def test_what_takes_too_long_is_never_rendered():
    """Each rendering gets the remaining time. If too little is left, rendering doesn't start."""
    template = template_of("{{ messages[0].content }}", limits=Limits(rendering_seconds=1.0))
    time = SharedTime(left=1.5)
    seen = []

    def render(limited: Template) -> Rendering:
        seen.append(limited.limits.rendering_seconds)
        return Rendering(text="x")

    time.spend(template, render)
    time.left, time.kept = 0.8, 0.3
    time.spend(template, render)
    time.left = 0.3
    refused = time.spend(template, render)

    assert seen == [1.0, pytest.approx(0.5)]
    assert (refused.exhausted, time.cut) == (True, True)


def test_a_result_of_a_function_is_a_tools_where_the_template_knows_no_function():
    """`function` is OpenAI's older role for results. A template that supports only `tool` would drop such a message."""
    source = (
        "{% for m in messages %}{% if m.role == 'tool' %}<r>{{ m.content }}</r>{% elif m.role != 'function' %}<{{ m.role }}>"
        "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<c>{{ c.function.name }}{{ c.function.arguments | tojson }}</c>"
        "{% endfor %}</>{% endif %}{% endfor %}"
    )
    call = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    asked: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    result: Any = {"role": "function", "name": "now", "content": "noon"}

    for known, shown in ((source.replace(" != 'function'", " in ['user', 'assistant']"), "<r>noon</r>"), (source, "")):
        template = ChatTemplate.from_string(known)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TemplateWarning)
            assert template.prepare([*asked, result]).prompt.endswith(f"</>{shown}")


ALTERNATES = (
    "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}</>{% set messages = messages[1:] %}{% endif %}"
    "{% set ns = namespace(i=0) %}{% for m in messages %}{% if (m.role == 'user') != (ns.i % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% set ns.i = ns.i + 1 %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
)


@pytest.mark.parametrize(("turns", "shown"), [(1, False), (2, True)])
@pytest.mark.filterwarnings("ignore")
def test_a_conversation_that_a_template_takes_is_not_rephrased(turns: int, shown: bool) -> None:
    """A template that counts messages may refuse a later system message in one conversation, and accept it in another."""
    said = [{"role": role, "content": "Hi"} for role in ("user", "assistant", "user")][: 2 * turns - 1]
    said += [{"role": "assistant", "content": "Hi"}] * (turns == 1)
    more = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Bye"}]

    turn = ChatTemplate.from_string(ALTERNATES).prepare([*said, *more])

    assert ("<system>" in turn.prompt, turn.warnings == ()) == (shown, shown)
