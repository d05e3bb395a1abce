"""Templates with an oddity each that once was read wrongly: what they write is read back, or the format says what is not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from composed.composition import composed
from composed.parts import FRAMES, ID, JSON, NAME, THOUGHTS, Calls, Thoughts
from cut_outs import TOOLS, lost
from lexing import remainder_of

from unrender import ChatTemplate, FormatWarning
from unrender.format import ToolMode
from unrender.verify import Verdict, verify

EACH = "{%- for key, value in f.arguments.items() -%}"
LENGTH = "«f.arguments | length»"
LAST = "«'' if loop.last else ', '»{%- endfor -%}"
CHATML, TIGHT = FRAMES["chatml"], THOUGHTS["tight"]
SHOWN = (
    "{%- for m in messages -%}{%- if loop.first and tools -%}<|tools|>{{ tools | tojson }}{%- endif -%}"
    "<|{{ m.role }}|>{{ m.content or '' }}CALLS<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""A template; in the place of `CALLS` it writes the calls of a message `m`."""
LISTED = "[{%- for call in m.tool_calls -%}{{ call.function.name }}({%- for key, value in call.function.arguments.items() -%}"
LISTED = "{%- if m.tool_calls -%}" + LISTED + "ENTRY{%- endfor -%}){%- endfor -%}]{%- endif -%}"
GLUED = SHOWN.replace("CALLS", LISTED.replace("ENTRY", "{{ key }}={{ value | tojson }}"))
QUOTED = SHOWN.replace("CALLS", LISTED.replace("ENTRY", '{{ key }}="{{ value }}"{{ "" if loop.last else ", " }}'))
TAGS = Calls(call="<call>" + NAME + " " + JSON + "</call>")

CALLED = SHOWN.replace(
    "CALLS", "{%- for call in m.tool_calls or [] -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}"
)
TEXT = "{%- set text = value if value is string else value | tojson -%}"
ESCAPING = {
    "arguments in a string of JSON": composed(
        CHATML, TIGHT, Calls(call='<call>{"name": "' + NAME + '", "arguments": «f.arguments | tojson | tojson»}</call>')
    ),
    "the same, beside the name": composed(
        CHATML, TIGHT, Calls(call="<call>" + NAME + " «f.arguments | tojson | tojson»</call>")
    ),
    "markup in values, escaped": composed(
        CHATML, TIGHT, Calls(call="<call>" + NAME + EACH + TEXT + "<a is='«key»'>«text | e»</a>{%- endfor -%}</call>")
    ),
    "the same, between an argument's name": composed(
        CHATML,
        TIGHT,
        Calls(
            call="<call>" + NAME + EACH + TEXT + "<«key»>«text | replace('&', '&amp;') | replace('<', '&lt;')»</«key»>"
            "{%- endfor -%}</call>"
        ),
    ),
    "quotes in attributes, escaped": composed(
        CHATML,
        TIGHT,
        Calls(
            call="<call>" + NAME + EACH + TEXT + "<a «key»=\"«text | replace('\"', '\\\\\"')»\"/>{%- endfor -%}</call>"
        ),
    ),
    "quotes in code, escaped": composed(
        CHATML,
        TIGHT,
        Calls(
            call="<call>"
            + NAME
            + "("
            + EACH
            + "«key»=«'\"' + value | replace('\"', '\\\\\"') + '\"' if value is string else value | tojson»"
            "«'' if loop.last else ', '»{%- endfor -%})</call>"
        ),
    ),
    **{
        f"the marker after {which}, escaped": composed(
            CHATML,
            TIGHT,
            Calls(call="<call>" + NAME + EACH + f"<a is='«key»'>«({value}) + '</a>'»" + "{%- endfor -%}</call>"),
        )
        for which, value in (
            (
                "lists and objects",
                "value | tojson | safe if value is iterable and value is not string else value | string",
            ),
            ("texts in quotes", "value | tojson | safe if value is iterable else value | string"),
        )
    },
}
"""Templates that escape characters of values, whole arguments, or their own markers."""
ODD = {
    "a prompt that ends inside its header": CALLED.replace("<|{{ m.role }}|>", "{{ m.role | upper }}: ")
    .replace("<|assistant|>", "ASSISTANT")
    .replace("<|end|>", "{{ '\\n###\\n' }}"),
    "parts of one kind of tag": SHOWN.replace(
        "{{ m.content or '' }}CALLS",
        "{%- if m.reasoning_content -%}<part is='thought'>{{ m.reasoning_content }}</part>{%- endif -%}"
        "{%- if m.content -%}<part is='text'>{{ m.content }}</part>{%- endif -%}"
        "{%- for call in m.tool_calls or [] -%}<part is='call' name='{{ call.function.name }}'>{{ call.function.arguments | tojson }}</part>{%- endfor -%}",
    ),
    "parts that end alike": SHOWN.replace(
        "{{ m.content or '' }}CALLS",
        "{%- if m.reasoning_content -%}<so>{{ m.reasoning_content }}<over>{%- endif -%}"
        "{%- if m.content -%}<say>{{ m.content }}<over>{%- endif -%}"
        "{%- for call in m.tool_calls or [] -%}<do>{{ call.function.name }}{{ call.function.arguments | tojson }}<over>{%- endfor -%}",
    ),
    "layout alone ends a turn": CALLED.replace("<|end|>", "{{ '\\n\\n' }}"),
    "a turn that one sign ends": CALLED.replace("<|end|>", "{{ ' ∎\\n' }}"),
    "calls that are refused without their results": CALLED.replace(
        "<|{{ m.role }}|>",
        "{%- if m.tool_calls and (loop.last or messages[loop.index0 + 1].role != 'tool') -%}"
        "{{ raise_exception('Each call must be followed by its result') }}{%- endif -%}<|{{ m.role }}|>",
    ),
    "an object for each argument": composed(
        CHATML, TIGHT, Calls(call="<call>" + NAME + EACH + "<a>«{key: value} | tojson»</a>{%- endfor -%}</call>")
    ),
    "attributes whose quotes are not escaped": composed(
        CHATML, TIGHT, Calls(call='<call name="' + NAME + '"' + EACH + ' «key»="«value»"{%- endfor -%} />')
    ),
    "calls inside the wrapper of content": composed(
        CHATML,
        Thoughts(start="<think>\n", end="\n</think>\n", empty="<think>\n\n</think>\n", says=("", "")),
        TAGS,
    )
    .replace(
        '{{- "<|im_start|>assistant\\n" -}}', '{{- "<|im_start|>assistant\\n" -}}{%- set inner = "<answer>\\n" -%}'
    )
    .replace("{%- if said -%}", "{{- inner -}}{%- if said -%}", 1)
    .replace(
        "{{- \"<|im_end|>\\n\" -}}{%- elif message.role == 'user'",
        "{{- \"\\n</answer><|im_end|>\\n\" -}}{%- elif message.role == 'user'",
    ),
    "tools right after the question, and a header for each part": (
        "{%- for m in messages -%}{%- if m.role == 'assistant' -%}"
        "{%- if m.content -%}assistant<|sep|>{{ m.content }}<|end|>{%- endif -%}"
        "{%- for call in m.tool_calls or [] -%}call<|sep|>{{ call.function | tojson }}<|end|>{%- endfor -%}"
        "{%- else -%}{{ m.role }}<|sep|>{{ m.content }}<|end|>{%- endif -%}"
        "{%- if loop.first and tools -%}tools<|sep|>{{ tools | tojson }}<|end|>{%- endif -%}{%- endfor -%}"
        "{%- if add_generation_prompt -%}assistant<|sep|>{%- endif -%}"
    ),
    "arguments that nothing separates but what begins the next one": SHOWN.replace(
        "CALLS",
        "{%- for call in m.tool_calls or [] -%}<{{ call.function.name }}{%- for key, value in call.function.arguments.items() -%}"
        "|>{{ key }}<x>{{ value | tojson }}{%- endfor -%}{%- endfor -%}",
    ),
    "line breaks around arguments, also around none": SHOWN.replace(
        "CALLS",
        "{%- for call in m.tool_calls or [] -%}<call is='{{ call.function.name }}'>{{ '\\n' }}"
        "{%- for key, value in call.function.arguments.items() -%}<arg is='{{ key }}'>{{ value | tojson }}</arg>"
        "{%- if not loop.last -%}{{ '\\n' }}{%- endif -%}{%- endfor -%}{{ '\\n' }}</call>{%- endfor -%}",
    ),
    "a list of calls without separators": GLUED,
    **ESCAPING,
    "the same, with commas between calls": GLUED.replace(
        "){%- endfor -%}]", ")«'' if loop.last else ', '»{%- endfor -%}]".replace("«", "{{ ").replace("»", " }}")
    ),
    "a message of no thoughts, which the prompt writes": composed(
        FRAMES["message"],
        replace(THOUGHTS["a message of its own"], prefill_off="<|thoughts|>⟦end⟧⟦header⟧"),
        Calls(call="<|call|>" + ID + "<|name|>" + NAME + "<|args|>" + JSON + "<|/call|>"),
    ),
    "a space before calls, and two line breaks after a thought": composed(
        CHATML, THOUGHTS["lines"], replace(TAGS, after_content=" ")
    ),
    "raw values with commas, where a space is left of no arguments": composed(
        CHATML,
        TIGHT,
        Calls(
            call="§call " + NAME + ": " + EACH + "«key»: «value if value is string else value | tojson»" + LAST + "§"
        ),
    ),
    "the name of the tool on a fence": composed(CHATML, TIGHT, Calls(call="```" + NAME + "\n" + JSON + "\n```")),
}


@pytest.mark.parametrize("name", ODD)
def test_what_an_odd_template_writes_is_read_back(name):
    """Without a warning, so the format claims to read it."""
    assert lost(ChatTemplate.from_string(ODD[name], bos_token="<s>", eos_token="</s>")) == {}


def test_a_thought_that_only_the_prompt_begins():
    """The history has its end alone; what follows the prompt is read with it, and generated."""
    source = composed(CHATML, Thoughts(end="\n</think>\n\n", prefill="<think>\n"), TAGS)
    template = ChatTemplate.from_string(source, eos_token="</s>")
    report = verify(template, samples=1, only=["reasoning and content", "content", "later turns", "grammars"])

    assert (template.format.reasoning.start, template.format.reasoning.end) == ("<think>\n", "\n</think>")
    assert (template.analysis.diagnostics, report.failed) == ((), ())


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("name", ESCAPING)
def test_escaped_values_are_generated(name):
    """Grammars write what is read, and accept what the template writes."""
    report = verify(
        ChatTemplate.from_string(ESCAPING[name]), samples=2, only=["strings", "objects", "arrays", "grammars"]
    )

    assert report.failed == ()
    assert {found.verdict for found in report.findings if found.capability == "strings"} == {Verdict.PASSED}


def test_calls_that_are_refused_without_their_results():
    """Are derived from answers with results, which are cut off again."""
    template = ChatTemplate.from_string(ODD["calls that are refused without their results"])

    assert template.format.tools.mode is ToolMode.JSON_NATIVE
    assert template.capabilities.supports_parallel_tool_calls


@pytest.mark.slow
def test_calls_that_are_refused_without_their_results_pass():
    """Verification asks for the results as well."""
    report = verify(ChatTemplate.from_string(ODD["calls that are refused without their results"]), samples=1)

    assert report.failed == ()
    assert {found.verdict for found in report.findings if found.capability == "parallel tool calls"} == {Verdict.PASSED}


def test_tools_after_the_conversation_are_no_part_of_an_answer():
    """Wherever tools are listed, calls are written alike; so the format is the same."""
    call = "{%- for call in m.tool_calls or [] -%}<f={{ call.function.name }}>ENTRY</f>{%- endfor -%}"
    entry = "{%- for key, value in call.function.arguments.items() -%}<p={{ key }}>{{ value }}</p>{%- endfor -%}"
    first = SHOWN.replace("CALLS", call.replace("ENTRY", entry))
    before = "{%- if loop.first and tools -%}<|tools|>{{ tools | tojson }}{%- endif -%}"
    after = "{%- if tools -%}<|tools|>{{ tools | tojson }}<|end|>{%- endif -%}"
    last = first.replace(before, "").replace("{%- if add_generation_prompt", after + "{%- if add_generation_prompt")

    assert ChatTemplate.from_string(last).format == ChatTemplate.from_string(first).format
    assert ChatTemplate.from_string(last).format.tools.mode is ToolMode.TAG_WITH_TAGGED


def test_calls_that_no_format_can_say_take_nothing_along():
    """Where white space alone parts names, calls are given up; header and end of the turn are not."""
    call = "{{ call.function.name }}\t{%- for k, v in call.function.arguments.items() -%}{{ k }}:{{ v | tojson }}\t{%- endfor -%}\n"
    call = call.replace("\t", "{{ '\\t' }}").replace("\n", "{{ '\\n' }}")
    source = SHOWN.replace("CALLS", "{%- for call in m.tool_calls or [] -%}" + call + "{%- endfor -%}")
    with pytest.warns(FormatWarning):
        format = ChatTemplate.from_string(source).format

    assert (format.turn.headers, format.turn.end) == (("<|assistant|>",), "<|end|>")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('{"city": "Rome"}', {"response_format": {"type": "json_object"}}),
        ('<call>{"name": "find_place", "arguments": {"text": "Rome"}}</call>', {"tool_choice": "required"}),
    ],
)
@pytest.mark.parametrize("name", ["layout alone ends a turn", "a prompt that ends inside its header"])
def test_layout_before_the_end_is_allowed(name, text, asked):
    """A model writes the layout with which its turn ends; engines cut off the token after it at most."""
    template = ChatTemplate.from_string(ODD[name])
    turn = template.prepare(
        [{"role": "user", "content": "Hello"}], tools=TOOLS if "tool_choice" in asked else None, **asked
    )
    layout = template.format.turn.end.partition("#")[0]
    answer = remainder_of(turn)

    assert answer.refused([template.format.turn.unasked + text + layout, text]) == []


def test_keys_that_a_template_sorts_are_generated_sorted():
    """Also in objects inside of arguments; no grammar allows the order in which the schema has them."""
    properties = {"b": {"type": "object", "properties": {"d": {"const": 1}, "c": {"const": 2}}}, "a": {"const": 3}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    turn = ChatTemplate.from_string(CALLED.replace("tojson", "tojson(sort_keys=true)")).prepare(
        [{"role": "user", "content": "Hello"}], tools=[tool], tool_choice="required"
    )
    answer = remainder_of(turn)
    call, other = (
        '<call>{"arguments": ' + text + ', "name": "f"}</call>'
        for text in ('{"a": 3, "b": {"c": 2, "d": 1}}', '{"a": 3, "b": {"d": 1, "c": 2}}')
    )

    assert answer.refused([call, other]) == [other]


def test_a_closer_before_calls_stands_for_no_thought():
    """After a result the template writes none, so none is demanded of a call there."""
    source = (
        "{%- for m in messages -%}{%- if m.role == 'assistant' -%}"
        "{%- if messages[loop.index0 - 1].role != 'tool' -%}<bot>{{ '</think>' if m.tool_calls else '' }}{%- endif -%}"
        "{{ m.content or '' }}"
        "{%- for call in m.tool_calls or [] -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}<end>"
        "{%- else -%}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{%- endif -%}{%- endfor -%}"
        "{%- if add_generation_prompt and messages[-1].role == 'user' -%}<bot>{{ '<think>' if thinking else '</think>' }}{%- endif -%}"
    )
    format = ChatTemplate.from_string(source).format

    assert (format.turn.start_to_tools, format.reasoning.empty) == ("", "</think>")


def test_a_call_that_opens_reasoning_which_nothing_closes():
    """Calls without reasoning are after its opener, content is not."""
    source = composed(CHATML, Thoughts(start="<think>", end=""), TAGS).replace("thought -%}", "true -%}")
    source = source.replace(
        "{%- if said -%}", "{%- if not message.tool_calls -%}</think>{%- endif -%}{%- if said -%}", 1
    )
    found = lost(ChatTemplate.from_string(source, eos_token="</s>"))

    assert {label.partition(",")[0] for label in found} <= {"content and call", "all"}  # Content is in reasoning there.


@pytest.mark.parametrize(
    "calls",
    [
        replace(TAGS, start="<calls n=«message.tool_calls | length»>", end="</calls>"),
        Calls(call="<call args=" + LENGTH + ">" + NAME + "(" + EACH + "«key»=«value | tojson»" + LAST + ")</call>"),
        Calls(call="<call args=" + LENGTH + ">" + NAME + " " + JSON + "</call>"),
    ],
    ids=["the number of calls", "the number of arguments", "the number of arguments before an object"],
)
def test_calls_that_are_misread_are_warned_of(calls):
    """Where a number is in an opener, calls with other numbers are not read; the format says so."""
    with pytest.warns(FormatWarning, match="three calls: what the template writes is not read back"):
        _ = ChatTemplate.from_string(composed(CHATML, TIGHT, calls)).format


def test_content_that_nothing_tells_from_reasoning_is_warned_of():
    """Where reasoning has only an end, content without it is read as reasoning; the format says so."""
    source = composed(CHATML, Thoughts(end="\n=== ANSWER ===\n"), TAGS)
    with pytest.warns(FormatWarning, match="content: what the template writes is not read back"):
        _ = ChatTemplate.from_string(source).format


def test_calls_that_content_swallows_are_warned_of():
    """Where nothing is between content and a call without markers, no reader can tell; the format says so."""
    source = SHOWN.replace(
        "CALLS",
        "{%- for call in m.tool_calls or [] -%}{{ call.function.name }}({%- for key, value in call.function.arguments.items() -%}"
        "{{ key }}={{ value | tojson }}{{ '' if loop.last else ', ' }}{%- endfor -%}){%- endfor -%}",
    )
    with pytest.warns(FormatWarning, match="content and a call: what the template writes is not read back"):
        _ = ChatTemplate.from_string(source).format


def test_texts_that_are_misread_are_warned_of():
    """Where a text that looks like a string of code is written as it is, its quotation marks are lost; the format says so."""
    source = composed(CHATML, TIGHT, Calls(call="<call>" + NAME + "(" + EACH + "«key»=«value»" + LAST + ")</call>"))
    with pytest.warns(FormatWarning, match="a call with texts: what the template writes is not read back"):
        _ = ChatTemplate.from_string(source).format


@pytest.mark.parametrize(("start", "end"), [("", ""), ("[", "]")])
def test_a_fence_in_content_is_no_empty_call(start, end):
    """Where nothing but fences is around a call, a block of code and a bracket stay in content."""
    calls = Calls(start=start, end=end, call="```tool\n«f | tojson»\n```", separator=", ")
    turn = ChatTemplate.from_string(composed(CHATML, TIGHT, calls)).prepare(
        [{"role": "user", "content": "Hello"}], tools=TOOLS
    )

    for text in ("So [y].", "```tool\nold\n``` was it", "[] and ```"):
        assert turn.parse(text).content == text


def test_parts_that_a_template_writes_as_they_are_hold_no_reasoning():
    """A word of JSON that looks like a place for reasoning is none where the list of parts is printed."""
    source = (
        "{%- for m in messages -%}<|{{ m.role }}|>"
        "{%- if m.tool_calls -%}{{ {'thought': '', 'calls': m.tool_calls | map(attribute='function') | list} | tojson }}"
        "{%- else -%}{{ m.content }}{%- endif -%}<|end|>{%- endfor -%}"
        "{%- if tools -%}{{ tools | tojson }}{%- endif -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
    )

    assert not ChatTemplate.from_string(source).capabilities.reasoning_field


def test_a_prompt_without_its_words_begins_no_reasoning():
    """Where only words of the prompt begin reasoning, and thinking is off, grammar and parser both know content alone."""
    source = (
        "{%- for m in messages -%}<|{{ m.role }}|>{%- if m.reasoning_content -%}{{ m.reasoning_content + '\\n[FINAL]\\n' }}{%- endif -%}"
        "{{ m.content }}<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>"
        "{%- if enable_thinking is not defined or enable_thinking -%}{{ 'My steps:\\n' }}{%- endif -%}{%- endif -%}"
    )
    template = ChatTemplate.from_string(source)
    asked = [{"role": "user", "content": "Hello"}]
    thinking, silent = (template.prepare(asked, enable_thinking=value) for value in (True, False))

    assert "FINAL" in thinking.lark()
    assert "FINAL" not in silent.lark()
    assert thinking.parse("R\n[FINAL]\nC").content == "C"
    for seed in range(8):
        assert silent.parse(silent.sample(seed)).reasoning == ""


QUOTING = EACH + "«key»=«('\"' + value + '\"') if value is string else value»" + LAST


@pytest.mark.parametrize("text", ['f("x")', 'say "no", then go', '"', '"quoted"', "it's"])
def test_quotes_that_code_does_not_escape(text):
    """A quotation mark ends an argument only where the call goes on after it, at every chunking."""
    code = Calls(start="[", call=NAME + "(" + QUOTING + ")", separator=", ", end="]")
    template = ChatTemplate.from_string(composed(CHATML, TIGHT, code))
    turn = template.prepare([{"role": "user", "content": "Hello"}], tools=TOOLS)
    answer = f'[get_weather(text="{text}", count=3), find_place(text="{text}")]<|im_end|>'
    for chunks in ([answer], list(answer)):
        parser = turn.parser()
        for chunk in chunks:
            parser.feed(chunk)
        parser.finish()
        read = [json.loads(call.arguments) for call in parser.message.tool_calls]
        assert read == [{"text": text, "count": 3}, {"text": text}]


@pytest.mark.parametrize(
    ("source", "text", "arguments"),
    [
        (QUOTED, '[get_weather(text="x", count="3")find_place(text="y")]', [{"text": "x", "count": 3}, {"text": "y"}]),
        (
            QUOTED,
            '[get_weather(text="x", count="3"), find_place(text="y")]',
            [{"text": "x", "count": 3}, {"text": "y"}],
        ),
        (QUOTED, '[get_weather(text="(a) b(c)", count="3")]', [{"text": "(a) b(c)", "count": 3}]),
        (GLUED, '[get_weather(count=3flag=truetext="a")find_place()]', [{"count": 3, "flag": True, "text": "a"}, {}]),
        (
            GLUED,
            '[get_weather(count=3, flag=true, text="a"), find_place()]',
            [{"count": 3, "flag": True, "text": "a"}, {}],
        ),
        (GLUED, '[get_weather(count=2e1text="a")]', [{"count": 2e1, "text": "a"}]),
    ],
)
def test_no_value_swallows_a_call(source, text, arguments):
    """Whatever separators the template drops, and the model writes."""
    turn = ChatTemplate.from_string(source).prepare([{"role": "user", "content": "Hello"}], tools=TOOLS)
    for chunks in ([text], list(text)):
        parser = turn.parser()
        for chunk in chunks:
            parser.feed(chunk)
        parser.finish()
        assert [json.loads(call.arguments) for call in parser.message.tool_calls] == arguments


NAMED = SHOWN.replace(
    "CALLS",
    "{%- for call in m.tool_calls or [] -%}{{ call.function.name }}\n{{ call.function.arguments | tojson }}{%- endfor -%}",
)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('find_place\n{"text": "Rome"}', 1),
        ('find_place\n{"text": 5}', 0),
        ('find_place\n{"text": ["Rome"]}', 0),
        ('somewhere\n{"text": "Rome"}', 0),
    ],
)
def test_a_call_that_nothing_marks_obeys_the_schema(text, calls):
    """A tool's name and JSON that the tool does not take are text, with an event that says so."""
    message = ChatTemplate.from_string(NAMED).prepare([{"role": "user", "content": "Hello"}], tools=TOOLS).parse(text)

    assert len(message.tool_calls) == calls
    assert message.content == ("" if calls else text)


def test_json_arguments_that_a_mapping_does_not_show():
    """`{"name": "f", "arguments": {'a': 1}}` is not JSON; arguments that are text make it that."""
    source = SHOWN.replace(
        "CALLS",
        '{%- for call in m.tool_calls or [] -%}<call>{"name": "{{ call.function.name }}", '
        '"arguments": {{ call.function.arguments }}}</call>{%- endfor -%}',
    )
    template = ChatTemplate.from_string(source)

    assert template.format.tools.mode is ToolMode.JSON_NATIVE
    assert not template.capabilities.supports_object_arguments


PROMPTED = (
    "{%- if tools -%}<|system|>{{ tools | tojson }}\nEXAMPLE<|end|>{%- endif -%}"
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
CALL = '{"name": "get_weather", "arguments": {"text": "Rome"}}'


@pytest.mark.parametrize(
    ("example", "answer"),
    [
        (
            'Return <fn>\n{"name": <function-name>, "arguments": <args-json-object>}\n</fn> for each call.',
            f"Well.<fn>\n{CALL}\n</fn>",
        ),
        ('Respond in the format {"name": function name, "arguments": dictionary of arguments}.', CALL),
        (
            'Write <|calls|>[{"name": "tool name", "arguments": {"key": "value"}}]<|/calls|>.',
            f"<|calls|>[{CALL}]<|/calls|>",
        ),
        (
            'To call, say [CALL] {"tool_name": "...", "tool_input": {...}} [/CALL].',
            '[CALL] {"tool_name": "get_weather", "tool_input": {"text": "Rome"}} [/CALL]',
        ),
    ],
)
def test_calls_are_as_in_the_prompts_own_example(example, answer):
    """Where the template writes no calls; the format says that no answer shows them."""
    template = ChatTemplate.from_string(PROMPTED.replace("EXAMPLE", example))
    with pytest.warns(FormatWarning, match="as in the prompt's own example"):
        _ = template.format
    message = template.prepare([{"role": "user", "content": "Hello"}], tools=TOOLS).parse(answer)

    assert [(call.name, json.loads(call.arguments)) for call in message.tool_calls] == [
        ("get_weather", {"text": "Rome"})
    ]
    assert message.content in ("", "Well.")


@pytest.mark.parametrize(
    "example",
    [
        "Call tools as you like.",
        'Say {"name": <one>, "arguments": <args>} or <x>{"name": <one>, "arguments": <args>}</x>.',
        'A result is {"status": "ok", "output": "text"}.',
    ],
)
def test_a_prompt_that_shows_no_single_example(example):
    """Tells no call syntax."""
    assert ChatTemplate.from_string(PROMPTED.replace("EXAMPLE", example)).format.tools.mode is ToolMode.NONE


@pytest.mark.parametrize("marker", ["<｜call>｜>", "<|call||>"])
def test_a_marker_with_a_typing_error_is_read_without_it(marker):
    """The history shows the error, the model writes the token that it was taught: both are calls."""
    call = "{%- for call in m.tool_calls or [] -%}" + marker + "{{ call.function | tojson }}<end_call>{%- endfor -%}"
    template = ChatTemplate.from_string(
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content }}" + call + "<end>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=TOOLS)
    name = TOOLS[0]["function"]["name"]

    for text in (marker, marker[:-3] + marker[1] + ">"):
        message = turn.parse(f'Yes.{text}{{"name": "{name}", "arguments": {{}}}}<end_call><end>')
        assert (message.content, [call.name for call in message.tool_calls]) == ("Yes.", [name])
