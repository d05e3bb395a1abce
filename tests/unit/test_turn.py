"""Turns share the constraints of their answers, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from cases import cases
from engines import WRITERS
from lexing import written_anew

from unrender import ChatTemplate, Format, GrammarError, Turn
from unrender.errors import SchemaWarning

SOURCE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
HELLO = [{"role": "user", "content": "Hello"}]


def tools(values):
    schema = {"type": "object", "properties": {"zone": {"enum": values}}}
    return [{"type": "function", "function": {"name": "now", "parameters": schema}}]


def prepared(values=("a",), **options) -> Turn:
    template = ChatTemplate.from_string(SOURCE, format=Format.named("qwen3"))
    return template.prepare(HELLO, tools=json.loads(json.dumps(tools(values))), **options)


@pytest.mark.parametrize("dialect", ["gbnf", "lark"])
def test_a_grammar_is_written_once(dialect):
    """Turns with the same format and request share one grammar object, even from different templates."""
    first = WRITERS[dialect](prepared())

    assert WRITERS[dialect](prepared()) is first
    assert prepared().constraint("llama.cpp").triggers is prepared().constraint("llama.cpp").triggers


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
@cases
def test_what_differs_is_written_for_itself(dialect, changed):
    """No turn gets the grammar of another request, even if Python treats the tools as equal."""
    one, other = prepared([1]), prepared(**{"values": [1], **changed})
    begun = replace(one, prefill="<think>")

    assert json.dumps(WRITERS[dialect](one)) != json.dumps(WRITERS[dialect](other))
    for turn in (one, other, begun):
        assert json.dumps(WRITERS[dialect](turn)) == json.dumps(written_anew(turn, dialect))


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "now"}}])
def test_a_required_call_is_held_where_the_template_writes_none(dialect, choice):
    """After any prompt, the call is JSON in tags, as `prepare` describes it. `tool_format="none"` is an error."""
    template, told = ChatTemplate.from_string(SOURCE), {"tools": tools(["a"]), "tool_choice": choice}
    turn = template.prepare_rendered("<user>Hello</><assistant>", **told)
    sample = turn.sample(1)

    assert sample.startswith("<tool_call>")
    assert [call.name for call in turn.parse(sample).tool_calls][:1] == ["now"]
    assert written_anew(turn, dialect)
    with pytest.raises(GrammarError, match="a call is required, but this template doesn't support tool calls"):
        WRITERS[dialect](template.prepare(HELLO, tool_format="none", **told))


def test_a_structural_tag_may_be_changed():
    """Each caller gets its own copy of the tag."""
    turn = prepared()
    changed = json.loads(turn.constraint("xgrammar").grammar)
    changed.clear()

    assert json.loads(turn.constraint("xgrammar").grammar)["type"] == "structural_tag"


def test_every_caller_is_warned():
    """A keyword that isn't enforced causes a warning each time, at the caller's line."""
    turn = prepared()
    schema = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.3}}}
    turn = replace(turn, request=replace(turn.request, response_schema=schema))

    for _ in range(2):
        with pytest.warns(SchemaWarning, match="multipleOf") as caught:
            turn.constraint("llama.cpp")
        assert caught[0].filename == __file__


def test_a_schema_that_is_no_plain_data_is_written_each_time():
    """If equality can't be determined, nothing is shared."""
    turn = prepared()
    odd = {"type": "integer", "default": object()}
    turn = replace(turn, request=replace(turn.request, response_schema=odd))

    assert turn.constraint("llama.cpp").grammar == turn.constraint("llama.cpp").grammar
    assert turn.request._key is None


@pytest.mark.parametrize("make", ["turn", "template"])
def test_special_tokens_are_those_of_the_tokenizer(make):
    """A special token in ordinary text is text, whatever tokens the format has."""
    template = ChatTemplate.from_string(SOURCE, format=Format.named("qwen3"))
    options = {"special_tokens": ["<tool_call>"]}
    tools_ = tools(["a"])
    parser = (
        template.prepare(HELLO, tools=tools_).parser(**options)
        if make == "turn"
        else template.prepare_rendered(tools=tools_).parser(**options)
    )

    parser.feed('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', special=False)
    parser.finish()

    assert parser.message.tool_calls == ()
    assert "<tool_call>" in parser.message.content
