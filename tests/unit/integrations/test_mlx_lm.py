"""Tool parsers with MLX-LM's interface, made from templates."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from letters import NOW as TOOL

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.integrations.mlx_lm import install

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """Install a fake of the package whose modules the server imports by name."""
    package = type(sys)("mlx_lm.tool_parsers")
    package.__path__ = []
    templates = type(sys)("mlx_lm.chat_templates")
    templates.__path__ = []
    packages = (("mlx_lm", type(sys)("mlx_lm")), ("mlx_lm.tool_parsers", package), ("mlx_lm.chat_templates", templates))
    for name, module in packages:
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("mlx_lm.tool_parsers.unrender", "mlx_lm.chat_templates.unrender"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", ["json-tags", "json-array", "bracket-id"])
def test_reads_what_the_template_writes(name):
    """The text between the markers, as the server extracts it, gives the calls written there."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    install(template)
    module = importlib.import_module("mlx_lm.tool_parsers.unrender")
    turn = template.prepare([{"role": "user", "content": "?"}], tools=[TOOL], tool_choice="required")
    text = next(text for seed in range(20) if module.tool_call_start in (text := turn.sample(seed)))
    region = text.partition(module.tool_call_start)[2]
    region = region.partition(module.tool_call_end)[0] if module.tool_call_end else region

    read = module.parse_tool_call(region, [TOOL])
    assert [call["name"] for call in read] == ["now"] * len(read)
    assert all(isinstance(call["arguments"], dict) for call in read)
    first = turn.parse(text).tool_calls[0]
    assert json.loads(first.arguments_json) == read[0]["arguments"]


def test_what_is_no_call_is_refused():
    """Text that isn't a call of an available tool raises the error that the server expects."""
    module = install(ChatTemplate.from_file(TEMPLATES / "json-tags.jinja"))

    for text in ("", "{", '\n{"name": "other", "arguments": {}}\n'):
        with pytest.raises(ValueError, match="expected a call"):
            module.parse_tool_call(text, [TOOL])
    assert module.parse_tool_call('\n{"name": "other", "arguments": {}}\n', None)[0]["name"] == "other"


@pytest.mark.parametrize("name", ["answer-opened", "json-bare"])
def test_formats_without_markers_are_refused(name):
    """A format without calls, or without an opening marker for them, has no such parser."""
    with pytest.raises(ExportError, match="tool parser"):
        install(ChatTemplate.from_file(TEMPLATES / f"{name}.jinja"))


@pytest.mark.parametrize("name", ["json-tags", "json-array", "bracket-id"])
def test_the_response_format_has_the_reasoning_markers(name):
    """MLX-LM's states use the template's reasoning markers, and its prompts are those of the template."""
    template = ChatTemplate.from_file(TEMPLATES / f"{name}.jinja")
    install(template)
    module = sys.modules["mlx_lm.chat_templates.unrender"]
    reasoning = template.format.reasoning
    messages = [{"role": "user", "content": "Hi"}]

    transitions = module.RESPONSE_FORMAT["transitions"]
    states = {marker: state for edges in transitions.values() for marker, state in edges}
    expected = {reasoning.start.strip(): "reasoning", reasoning.end.strip(): "normal"} if reasoning.start else {}
    assert states == expected
    rendered = module.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=True)
    assert rendered == template.prepare(messages).prompt
    assert module.apply_chat_template(messages) in rendered


def test_the_renderer_reports_what_the_template_rejects():
    """The template's own error reaches the server."""
    source = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}{{ raise_exception('only users') }}{% endif %}{% endfor %}<call>{}</call>"
    template = ChatTemplate.from_file(TEMPLATES / "json-tags.jinja")
    rejecting = ChatTemplate.from_string(source, format=template.format)
    install(rejecting)

    with pytest.raises(ValueError, match="only users"):
        sys.modules["mlx_lm.chat_templates.unrender"].apply_chat_template([{"role": "tool", "content": "x"}])
