"""The main class: conversations to prompts, answers to messages, and mistakes to errors that name the place."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from cases import cases
from splitting import fed

from unrender import ChatTemplate, Format, Message, RequestError, TemplateError
from unrender.errors import TemplateWarning
from unrender.testing import numbered_id

# Reasoning before content, calls as JSON in tags, the switch `enable_thinking`, no system role.
SOURCE = """
{%- for m in messages %}
  {%- if m.role == 'system' and not loop.first %}{{ raise_exception('system comes first') }}{% endif %}
  {%- if m.role == 'assistant' %}
<|assistant|>
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}
    {%- for call in m.tool_calls or [] %}
<call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</call>
    {%- endfor %}<|end|>
  {%- else %}
<|{{ m.role }}|>
{{ m.content }}<|end|>
  {%- endif %}
{%- endfor %}
{%- if tools %}
<|tools|>{{ tools | tojson }}<|end|>
{%- endif %}
{%- if add_generation_prompt %}
<|assistant|>
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""

USER = {"role": "user", "content": "Hello"}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = '<call>{"name": "weather", "arguments": {"city": "Rome"}}</call>'


@pytest.fixture(scope="module")
def template():
    return ChatTemplate.from_string(SOURCE, eos_token="</s>")


def test_prepare_and_parse(template):
    """A prompt ends in the assistant's header, and its answer is parsed into parts."""
    turn = template.prepare([USER], tools=[TOOL])

    message = turn.parse("<think>\nHm.\n</think>\n\nOn it." + CALL + "<|end|>")

    assert turn.prompt.endswith("<|assistant|>\n")
    assert (message.reasoning, message.content.strip()) == ("Hm.", "On it.")
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("weather", {"city": "Rome"})]
    assert turn.prompt.count("weather") == 1


def test_second_turn_renders(template):
    """A parsed message can be sent back unchanged, with arguments as text and empty content."""
    turn = template.prepare([USER], tools=[TOOL])
    answer = turn.parse(CALL).to_openai()
    result = {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "sunny"}

    prompt = template.prepare([USER, answer, result], tools=[TOOL]).prompt

    assert CALL in prompt
    assert "sunny" in prompt


def test_streaming_gives_the_same_message(template):
    """`parse` equals feeding and finishing."""
    turn = template.prepare([USER], tools=[TOOL])
    text = "<think>\nHm.\n</think>\n\nOn it." + CALL
    parser = turn.parser(ids=numbered_id)

    fed(parser, text)

    assert parser.message == turn.parse(text, ids=numbered_id)


def test_thinking_off_is_read_off_the_prompt(template):
    """If the prompt closes reasoning, the answer isn't in reasoning."""
    turn = template.prepare([USER], enable_thinking=False)

    assert turn.prompt.endswith("</think>\n\n")
    assert turn.parse("Hi") == Message(content="Hi")


def test_enable_thinking_sets_the_templates_own_switch():
    """`enable_thinking` also works if the template's switch has another name."""
    source = SOURCE.replace("enable_thinking", "thinking")

    turn = ChatTemplate.from_string(source).prepare([USER], enable_thinking=False)

    assert turn.prompt.endswith("</think>\n\n")


def test_reasoning_format_none(template):
    """Reasoning stays in the content, including its markers."""
    turn = template.prepare([USER], reasoning_format="none")

    text = "<think>\nHm.\n</think>\n\nHi"
    assert turn.parse(text) == Message(content=text)


def test_continued_content(template):
    """The last message is continued, and the parsed message is the whole turn."""
    begun = {"role": "assistant", "reasoning_content": "Hm.", "content": "Hello, "}

    turn = template.prepare([USER, begun], continue_final_message=True)

    assert turn.prompt.endswith("<|assistant|>\n<think>\nHm.\n</think>\n\nHello, ")
    assert turn.parse("world") == Message(reasoning="Hm.", content="Hello, world")
    assert turn == template.prepare([USER, begun], continue_final_message="content")


def test_continued_reasoning(template):
    """Reasoning can be continued, too."""
    begun = {"role": "assistant", "reasoning_content": "I", "content": ""}

    turn = template.prepare([USER, begun], continue_final_message="reasoning")

    assert turn.prompt.endswith("<|assistant|>\n<think>\nI")
    assert turn.parse(" see.\n</think>\n\nHi") == Message(reasoning="I see.", content="Hi")


def test_continued_after_a_prefill(template):
    """The continued text replaces the generation prompt's own text after the header."""
    begun = {"role": "assistant", "reasoning_content": "I", "content": None}

    turn = template.prepare([USER, begun], continue_final_message="reasoning", enable_thinking=False)

    assert turn.prompt.endswith("<|assistant|>\n<think>\nI")


def test_continued_first_message():
    """The continued message may be the first one, even if the template rejects answers at the end."""
    source = """{%- if messages and messages[-1].role == 'assistant' %}{{ raise_exception('an answer') }}{% endif -%}
{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"""
    turn = ChatTemplate.from_string(source).prepare(
        [{"role": "assistant", "content": "So"}], continue_final_message=True
    )
    assert turn.prompt == "<assistant>So"


def test_continued_arguments_after_an_empty_thought(template):
    """The continued text may end inside a value of a call. The GBNF grammar writes the rest."""
    begun = '<call>{"name": "weather", "arguments": {"city": "Pa'

    turn = template.prepare([USER, {"role": "assistant", "content": begun}], tools=[TOOL], continue_final_message=True)

    assert turn.prefill.startswith("<think>\n\n</think>")
    [call] = turn.parse('ris"}}</call>').tool_calls
    assert call.arguments == {"city": "Paris"}
    assert turn.constraint("llama.cpp").grammar


@cases
def test_message_that_cannot_be_continued(template, last, continued, message):
    """The error for a message that can't be continued names its place."""
    with pytest.raises(RequestError, match=message):
        template.prepare([USER, last], continue_final_message=continued)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("Hello", r"""messages: expected a list, found 'Hello'; use \[\{"role": "user", "content": "Hello"\}\]"""),
        ([USER, {"content": "x"}], r"messages\[1\]\.role: expected one of .*'user'.*found None"),
        (
            [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {1}}}]}],
            r"messages\[0\]\.tool_calls\[0\]\.function\.arguments: expected JSON, found set",
        ),
    ],
)
def test_malformed_conversation(template, messages, message):
    """The error for a mistake in a conversation names the message and the field."""
    with pytest.raises(RequestError, match=message):
        template.prepare(messages)


@cases
def test_malformed_request(template, arguments, message):
    """The error for a mistake in a request names the argument."""
    with pytest.raises(RequestError, match=message):
        template.prepare([USER], **arguments)


def test_conversation_that_the_template_refuses():
    """The error has the template's own message."""
    with pytest.raises(TemplateError, match="never"):
        ChatTemplate.from_string("{{ raise_exception('never') }}").prepare([USER])


def test_roles_of_the_template_are_known():
    """A role in the template's source is valid."""
    source = "{% for m in messages %}{% if m.role == 'robot' %}R{% endif %}{{ m.content }}{% endfor %}"

    assert ChatTemplate.from_string(source).prepare([{"role": "robot", "content": "x"}]).prompt == "Rx"


def test_developer_is_the_system_where_unknown(template):
    """A developer message becomes a system message if the template has only that role."""
    knowing = ChatTemplate.from_string(
        "{% for m in messages %}{{ m.role if m.role != 'developer' else 'D' }}:{{ m.content }} {% endfor %}"
    )
    developer = {"role": "developer", "content": "Be brief."}

    assert "<|system|>\nBe brief." in template.prepare([developer, USER]).prompt
    assert knowing.prepare([developer, USER]).prompt == "D:Be brief. user:Hello "


def test_request_is_what_was_asked(template):
    """The request contains the choice, the tools and the schema."""
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}

    request = template.prepare(
        [USER], tools=[TOOL], tool_choice="required", parallel_tool_calls=False, response_format=schema
    ).request

    assert [tool.name for tool in request.tools or ()] == ["weather"]
    assert request.tool_choice == "required"
    assert not request.parallel_tool_calls
    assert request.response_schema == {"type": "object"}


def test_arguments_are_not_changed(template):
    """`prepare` changes neither messages nor tools."""
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, USER]
    before = copy.deepcopy((messages, TOOL))

    template.prepare(messages, tools=[TOOL])

    assert (messages, TOOL) == before


def test_bare_functions_are_tools(template):
    """A function without its wrapper is rendered like every tool."""
    assert template.prepare([USER], tools=[TOOL["function"]]) == template.prepare([USER], tools=[TOOL])


def test_tools_without_descriptions():
    """A template that needs descriptions gets empty ones. Other templates get the tools unchanged."""
    insisting = "{% for t in tools %}{{ t.function.description + t.function.parameters.properties.city.description }}{% endfor %}!"

    assert ChatTemplate.from_string(insisting).prepare([USER], tools=[TOOL]).prompt == "!"
    assert "description" not in ChatTemplate.from_string("{{ tools }}").prepare([USER], tools=[TOOL]).prompt


def test_stop_texts(template):
    """Generation stops at the end of a turn and at the end-of-sequence token, neither of which is content."""
    turn = template.prepare([USER])

    assert set(turn.stop) >= {"<|end|>", "</s>"}
    assert turn.parse("Hi<|end|></s>") == Message(content="Hi")


def test_format_does_not_depend_on_tokens(template):
    """The end-of-sequence token is part of the turn, not of the format."""
    assert template.format == ChatTemplate.from_string(SOURCE, eos_token="<eos>").format


def test_parser_for_a_prompt_rendered_elsewhere(template):
    """An open reasoning marker at the end of the prompt is detected. Without tools, nothing is a call."""
    parser = template.prepare_rendered("…<|assistant|>\n<think>\n", tools=[TOOL]).parser()
    fed(parser, ["Hm.\n</think>\n\n" + CALL])
    without = template.prepare_rendered().parser()
    fed(without, [CALL])

    assert parser.message.reasoning == "Hm."
    assert [call.name for call in parser.message.tool_calls] == ["weather"]
    assert without.message.content == CALL


def test_known_ids_are_texts(template):
    """The error for an id that isn't text shows the value."""
    with pytest.raises(RequestError, match=r"known_ids: expected texts, found \[\[\]\]"):
        template.prepare_rendered(known_ids=[[]])


def test_grammars(template):
    """A turn's grammar in every dialect starts after the prefill."""
    begun = {"role": "assistant", "reasoning_content": "I", "content": ""}
    turn = template.prepare([USER, begun], tools=[TOOL], continue_final_message="reasoning")

    assert turn.constraint("llama.cpp").grammar.startswith("root ::= ")
    assert "<call>" in turn.constraint("llama.cpp").grammar
    assert "<think>" not in turn.constraint("llama.cpp").grammar.splitlines()[0]
    assert "start: " in turn.constraint("llguidance").grammar
    assert json.loads(turn.constraint("xgrammar").grammar)["type"] == "structural_tag"


def test_triggers(template):
    """A grammar can wait for the start of a call, unless a call is required."""
    free = template.prepare([USER], tools=[TOOL])
    required = template.prepare([USER], tools=[TOOL], tool_choice="required")

    assert ["<call>" in trigger.value for trigger in free.constraint("llama.cpp").triggers] == [True]
    assert required.constraint("llama.cpp").triggers == ()
    assert template.prepare([USER]).constraint("llama.cpp").triggers == ()


def test_given_format_wins():
    """A format passed by the caller replaces the derived one."""
    given = Format()

    template = ChatTemplate.from_string(SOURCE, format=given)

    assert template.format is given
    assert template.prepare([USER], tools=[TOOL]).parse(CALL).content == CALL


def test_named_templates(tmp_path):
    """The tool template is used if there are tools, otherwise the default one."""
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "with tools"}]
    config = {"chat_template": named, "eos_token": {"content": "</s>"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))

    template = ChatTemplate.from_pretrained(tmp_path)

    assert template.prepare([USER]).prompt == "plain"
    assert template.prepare([USER], tools=[TOOL]).prompt == "with tools"
    assert template._loaded.eos_token == "</s>"


def test_file_with_tokens(tmp_path):
    """A file is loaded with the tokens passed by the caller."""
    (tmp_path / "t.jinja").write_text("{{ bos_token }}{{ eos_token }}")

    template = ChatTemplate.from_file(tmp_path / "t.jinja", bos_token="<s>", eos_token="</s>")

    assert template.prepare([USER]).prompt == "<s></s>"


def test_analysis_is_shared(template):
    """A template with the same source isn't analysed again."""
    assert ChatTemplate.from_string(SOURCE, eos_token="</s>").analysis is template.analysis


def test_documents_are_passed():
    """Documents are passed to the template."""
    template = ChatTemplate.from_string("{{ documents | length if documents else 0 }}")

    assert template.prepare([USER], documents=[{"text": "a"}]).prompt == "1"
    assert template.prepare([USER]).prompt == "0"


@pytest.mark.slow
def test_hostile_template_is_analysed_in_time():
    """Analysis of a hostile template ends in seconds, although it tries many renderings."""
    source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}"
    start = time.thread_time()

    template = ChatTemplate.from_string(source)

    assert template.format.tools == Format().tools
    assert time.thread_time() - start < 5
    with pytest.raises(TemplateError, match=r"the template (writes|needs) more than"):
        template.prepare([USER])


def test_what_ends_reasoning_is_no_stop():
    """A token that ends both reasoning and turns isn't a stop token: it would stop generation before the answer."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.reasoning_content %}<|think|>{{ m.reasoning_content }}<|end|>{% endif %}{{ m.content }}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )

    known, alone = (ChatTemplate.from_string(source, eos_token=eos) for eos in ("</s>", ""))

    assert known.format.reasoning.end == "<|end|>"
    assert known.prepare([{"role": "user", "content": "Hi"}]).stop == ("</s>",)
    assert alone.prepare([{"role": "user", "content": "Hi"}]).stop == ()
    assert alone.prepare_rendered("<|user|>Hi<|end|><|assistant|><|think|>Hm.<|end|>So", is_continuation=True).stop == (
        "<|end|>",
    )


def test_what_begins_calls_is_no_stop_where_calls_may_be_made():
    """A token that ends turns and starts calls is only a stop token if no call is allowed."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}<|end|>call<|is|>{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}"
        "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    template = ChatTemplate.from_string(source, eos_token="</s>")

    stops = {
        choice: template.prepare([USER], tools=[TOOL], tool_choice=choice).stop
        for choice in ("auto", "required", "none")
    }

    assert template.format.tools.call_start.startswith("<|end|>")
    assert stops == {"auto": ("</s>",), "required": ("</s>",), "none": ("<|end|>", "</s>")}


def test_thinking_is_true_or_false() -> None:
    """The text "false" would be true in Jinja."""
    with pytest.raises(RequestError, match="enable_thinking: expected True or False, found 'false'"):
        ChatTemplate.from_string(SOURCE).prepare([USER], enable_thinking="false")


def now(utc: bool) -> str:
    """Return the time."""
    return str(utc)


def test_a_function_is_a_tool():
    """A Python function is rendered and called like a tool in OpenAI's form."""
    template = ChatTemplate.from_file(Path(__file__).parent.parent / "templates" / "json-tags.jinja")
    plain = {
        "type": "function",
        "function": {
            "name": "now",
            "description": "Return the time.",
            "parameters": {
                "additionalProperties": False,
                "properties": {"utc": {"type": "boolean"}},
                "required": ["utc"],
                "type": "object",
            },
        },
    }
    messages = [{"role": "user", "content": "What time is it?"}]

    turn = template.prepare(messages, tools=[now])

    assert turn.prompt == template.prepare(messages, tools=[plain]).prompt
    assert [call.name for call in turn.parse(turn.sample(1)).tool_calls] in ([], ["now"])
    assert template.prepare_rendered(tools=[now]).parser().message.content == ""


def test_a_grammar_and_a_format_are_no_texts():
    """The error for a grammar or a format passed as text explains what to pass."""
    with pytest.raises(RequestError, match=r"grammar: expected a Grammar, found 'start: x'; use .* unrender\.grammar"):
        ChatTemplate.from_string("x", grammar="start: x")
    with pytest.raises(RequestError, match=r"format: expected a Format, found 'chatml'; use template\.format"):
        ChatTemplate.from_string("x", format="chatml")


CALLED = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
WITH_CALLS = (
    "{% for m in messages %}<{{ m.role }}>{% if m.thoughts %}<think>{{ m.thoughts }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments }}</call>{% endfor %}</>{% endfor %}"
)


def test_blocks_are_rendered_as_openai_messages():
    """A conversation in Anthropic's blocks has the same prompt as in OpenAI's form."""
    template = ChatTemplate.from_string(WITH_CALLS)
    used = [{"type": "thinking", "thinking": "so"}, {"type": "tool_use", "id": "c1", "name": "now", "input": {}}]
    told = [{"type": "tool_result", "tool_use_id": "c1", "content": "noon"}, {"type": "text", "text": "Well?"}]
    said = {"role": "assistant", "content": "", "reasoning_content": "so", "tool_calls": [CALLED]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "noon"}

    blocks = template.prepare([USER, {"role": "assistant", "content": used}, {"role": "user", "content": told}])

    assert blocks.prompt == template.prepare([USER, said, result, {"role": "user", "content": "Well?"}]).prompt
    assert blocks.known_ids == ("c1",)


def test_a_result_is_rendered_as_its_json():
    """A result that isn't text is rendered as JSON. If JSON can't represent it, the error names its place."""
    template = ChatTemplate.from_string(WITH_CALLS)
    conversation: list[dict[str, Any]] = [USER, {"role": "assistant", "content": "", "tool_calls": [CALLED]}]

    prompt = template.prepare([*conversation, {"role": "tool", "tool_call_id": "c1", "content": {"ok": True}}]).prompt

    assert prompt.endswith('<tool>{"ok": true}</>')
    with pytest.raises(RequestError, match=r"messages\[2\]\.content\.at: expected JSON, found object"):
        template.prepare([*conversation, {"role": "tool", "tool_call_id": "c1", "content": {"at": object()}}])


def test_thoughts_that_nobody_can_read_are_named():
    """A part of a conversation without effect causes a warning with its place."""
    answer = {
        "role": "assistant",
        "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "A"}],
    }

    with pytest.warns(TemplateWarning, match=r"messages\[1\]\.content\[0\]: not shown to the model"):
        ChatTemplate.from_string(WITH_CALLS).prepare([USER, answer, USER])
