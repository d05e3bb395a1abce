"""Functions that render conversations, analysed like templates."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from rendering_rows import template_of

from unrender import ChatTemplate, Limits, TemplateError
from unrender.errors import TemplateWarning

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
CALL = {"name": "now", "arguments": {}}
USER = [{"role": "user", "content": "Hello"}]


def written(messages, tools=None, add_generation_prompt=True, enable_thinking=True):
    """Write a conversation by hand, as a library without a Jinja template would."""
    text = f"<tools>{len(tools)} of them, {tools[0]['function']['name']} first</tools>\n" if tools else ""
    for message in messages:
        text += f"<|{message['role']}|>\n"
        if message.get("reasoning_content"):
            text += f"<think>{message['reasoning_content']}</think>\n"
        text += message["content"] or ""
        for call in message.get("tool_calls") or ():
            arguments = "".join(f"\n{key}={value!r}" for key, value in call["function"]["arguments"].items())
            text += f"\n<call>{call['function']['name']}{arguments}</call>"
        text += "<|end|>\n"
    if add_generation_prompt:
        text += "<|assistant|>\n" + ("" if enable_thinking else "<think></think>\n")
    return text


def test_a_function_is_a_template():
    """Prompt, format and answers of a function work as for a template."""
    template = ChatTemplate.from_renderer(written, eos_token="<|end|>")
    turn = template.prepare(USER, tools=[TOOL], enable_thinking=False)
    message = turn.parse("Now.\n<call>now</call><|end|>")

    assert turn.prompt == written(USER, [TOOL], enable_thinking=False)
    assert turn.prefill == "<think></think>\n"
    assert template.format.reasoning.start == "<think>"
    assert (message.content, [call.name for call in message.tool_calls]) == ("Now.", ["now"])
    assert template.variables["enable_thinking"].default is True


@pytest.mark.parametrize("name", ["bare-closer", "call-ends-turn", "json-name-key"])
def test_a_function_means_what_its_template_means(name):
    """A function that renders a template has that template's format."""
    source = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    template = template_of(source)
    known = {"messages", "tools", "add_generation_prompt"}

    def render(messages, tools=None, add_generation_prompt=False, **switches):
        return template.render(messages, tools=tools, add_generation_prompt=add_generation_prompt, **switches).unwrap()

    derived = ChatTemplate.from_renderer(render, variables=sorted(template.variables - known))

    assert derived.format == ChatTemplate.from_string(source).format


def test_what_a_function_writes_is_evidence():
    """Declared formats are matched by the words in a template; for a function, by the words in its output."""

    def render(messages, tools=None):
        return "".join(f"<|{m['role']}|>{m['content']}" for m in messages) + "<|tool_list_start|>" * bool(tools)

    def silent(messages):
        return render(messages)

    assert "python-call-list" in ChatTemplate.from_renderer(render).format.declared
    assert "python-call-list" not in ChatTemplate.from_renderer(silent).format.declared


def test_content_without_reasoning_may_be_refused():
    """With thinking on, an encoder may reject content without reasoning. Its calls are still parsed."""

    def render(messages, tools=None, thinking=False):
        text, asked = str(tools or ""), max(at for at, m in enumerate(messages) if m["role"] == "user")
        for at, message in enumerate(messages):
            if message["role"] != "assistant":
                text += f"<{message['role']}>{message['content']}<bot>" + (
                    "<think>" if thinking and at >= asked else "</think>"
                )
                continue
            reasoning, calls = message.get("reasoning_content"), message.get("tool_calls") or ()
            if thinking and at > asked:
                if not (reasoning or calls):
                    raise ValueError("expected reasoning")
                text += f"{reasoning or ''}</think>"
            names = "".join(f"\n<call>{json.dumps(call['function'])}</call>" for call in calls)
            text += f"{message['content']}{names}<end>"
        return text

    template = ChatTemplate.from_renderer(render)
    called = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": CALL}]}

    assert template.analysis.given_up == ()
    for thinking in (True, False):
        turn = template.prepare(USER, tools=[TOOL], thinking=thinking)
        answer = render([*USER, called], [TOOL], thinking=thinking).removeprefix(turn.prompt)
        assert [call.name for call in turn.parse(answer).tool_calls] == ["now"]


def test_a_function_gets_what_it_has_parameters_for():
    """A function gets only the arguments that it has parameters for. With `**kwargs`, it gets its switches."""
    seen = []

    def render(messages, **switches):
        seen.append(switches)
        return f"{messages[-1]['content']}|"

    template = ChatTemplate.from_renderer(render, variables=["mood"])
    template.prepare(USER, mood="gay")

    assert seen[-1] == {"mood": "gay"}
    assert set().union(*seen) == {"mood"}
    with pytest.warns(TemplateWarning, match="^moot: not a variable of the template; did you mean 'mood'"):
        template.prepare(USER, moot="gay")


def test_a_function_may_change_what_it_is_given():
    """A function gets copies of messages and tools."""

    def render(messages, tools=None):
        messages[0]["content"] = "changed"
        for tool in tools or ():
            tool.clear()
        return messages[-1]["content"]

    messages, tools = [dict(USER[0])], [dict(TOOL)]
    ChatTemplate.from_renderer(render)._with_tools.render(messages, tools=tools)

    assert (messages, tools) == (USER, [TOOL])


@pytest.mark.parametrize(
    ("render", "told"),
    [
        (lambda messages: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda messages: None, "TypeError: expected the renderer to return text, found NoneType"),
        (lambda messages: "x" * 1001, "the renderer writes more than 1000 characters"),
    ],
)
def test_what_goes_wrong_is_in_the_rendering(render, told):
    """If a function raises, or returns too much text or none, the rendering has an error."""
    assert (
        ChatTemplate.from_renderer(render, limits=Limits(rendering_characters=1000))._with_tools.render(USER).error
        == told
    )


@pytest.mark.parametrize(
    ("render", "switches", "told"),
    [("text", (), "expected a function"), (lambda: "", (), "takes messages"), (lambda messages: "", ["x"], "'x'")],
)
def test_what_is_no_renderer_is_refused(render, switches, told):
    """A renderer that can't be called with messages or a switch is an error."""
    with pytest.raises(TemplateError, match=told):
        ChatTemplate.from_renderer(render, variables=switches)


def test_templates_of_the_same_function_are_equal():
    """Templates are equal if function, switches, tokens and limits are."""
    one = ChatTemplate.from_renderer(written, eos_token="x")._with_tools

    assert one == ChatTemplate.from_renderer(written, eos_token="x")._with_tools == pickle.loads(pickle.dumps(one))
    assert one != ChatTemplate.from_renderer(written)._with_tools
    assert one != ChatTemplate.from_renderer(lambda messages: "")._with_tools
    assert one != template_of("", eos_token="x")
    assert one.limited(Limits(rendering_characters=5)).render(USER).exhausted


def test_nothing_is_kept_on_disk(tmp_path, monkeypatch):
    """Analyses of functions aren't stored, since another process may have a different function of that name."""
    monkeypatch.setenv("UNRENDER_CACHE", str(tmp_path))

    ChatTemplate.from_renderer(lambda messages: messages[-1]["content"]).format.to_json()
    assert list(tmp_path.iterdir()) == []
    assert (
        ChatTemplate.from_renderer(written)._with_tools.digest != ChatTemplate.from_renderer(written)._with_tools.digest
    )


def test_bounds_hold_for_a_function():
    """Renderings of a function have the same limits as those of a template."""
    template = ChatTemplate.from_renderer(lambda messages: "x" * 100, limits=Limits(rendering_characters=50))

    with pytest.raises(TemplateError, match="more than 50 characters"):
        template.prepare(USER)
