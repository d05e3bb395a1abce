"""One hand-made Format of each family of call syntaxes, with outputs as a model would write them.

Rules: the first output of a family is the standard one: the text `CONTENT`, then get_weather(city="Paris", days=3) and
get_time(city="Rome"), or the first alone where a format has one call only. Markers are our own, in the families' styles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Containers,
    Content,
    ContentMode,
    Envelope,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Strings,
    ToolMode,
    TurnTexts,
    Typing,
    Words,
)
from unrender.messages.wire import Request, Tool

NAME, ARGUMENTS, KEY, VALUE, ID, INDEX, TYPE = (
    Slot.NAME,
    Slot.ARGUMENTS,
    Slot.KEY,
    Slot.VALUE,
    Slot.ID,
    Slot.INDEX,
    Slot.TYPE,
)
CONTENT = "Let me see."
PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "note": {"type": ["string", "null"]},
    "options": {"type": "object"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "exact": {"type": "boolean"},
}
TOOLS = tuple(
    Tool(name=name, parameters={"type": "object", "properties": PROPERTIES})
    for name in ("get_weather", "get_time", "now")
)
REQUEST = Request(tools=TOOLS)
THINK = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
NAME_AND_ARGUMENTS = Envelope(name_field=("name",), args_field=("arguments",))
JSON_CALL = ('{"name": "', NAME, '", "arguments": ', ARGUMENTS, "}")
RAW_BY_SCHEMA = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Family:
    """A format, and outputs in it."""

    name: str
    format: Format
    outputs: tuple[str, ...]
    prompt: str = ""
    one_call: bool = False
    """The standard output has the first call only."""
    atomic: int = 0
    """Characters of an argument that are held back on purpose: the id that names the call comes after it."""
    markers: tuple[str, ...] = field(default=())
    """What mutations insert."""

    def __repr__(self) -> str:
        return self.name


JSON_ENVELOPE = Family(
    name="json_envelope",
    format=Format(
        turn=TurnTexts(
            headers=("<|start|>assistant\n",), end="<|end|>\n", reasoning_to_content="\n\n", content_to_tools="\n"
        ),
        reasoning=THINK,
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            call_start="<tool_call>\n",
            function=JSON_CALL,
            call_end="\n</tool_call>",
            separator="\n",
            envelope=NAME_AND_ARGUMENTS,
        ),
    ),
    outputs=(
        "Let me see.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call><|end|>\n',
        '<think>\nIs 1 < 2?\n</think>\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        '<tool_call>{"arguments": {"note": null, "options": {"a": [1, 2.5e3, {"b": "\\u00e9\\n"}]}}, "name": "now"}',
        '<tool_call>\n{"name": "now", "arguments": "{\\"city\\": \\"Rome\\"}"}\n</tool_call>',
        "if a < b:\n    <tool_call> is a marker",
    ),
    markers=(
        "<tool_call>\n",
        "\n</tool_call>",
        "<think>\n",
        "\n</think>",
        '{"name": "',
        '", "arguments": ',
        "}",
        "```json\n",
    ),
)

ARRAY = Family(
    name="array",
    format=Format(
        reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="\n[BEGIN ANSWER]"),
        turn=TurnTexts(
            headers=("<|begin|>\n",), prefill="Here are my steps:\n", reasoning_to_content="\n", content_to_tools="\n"
        ),
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            section_start="<tool_calls>[",
            section_end="]</tool_calls>",
            separator=", ",
            function=JSON_CALL,
            envelope=Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True),
        ),
    ),
    prompt="<|begin|>\nHere are my steps:\n",
    outputs=(
        "\n[BEGIN ANSWER]\nLet me see.\n<tool_calls>["
        '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}, '
        '{"name": "get_time", "arguments": {"city": "Rome"}}]</tool_calls>',
        'I think.\n[BEGIN ANSWER]\n<tool_calls>[{"name": "now", "arguments": {}}]</tool_calls>',
        "I think, and think.",
    ),
    markers=("<tool_calls>[", "]</tool_calls>", ", ", "\n[BEGIN ANSWER]"),
)

NAME_IS_KEY = Family(
    name="name_is_key",
    format=Format(
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<|inner|>", end="<|/inner|>"),
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            section_start="<|tools|>[",
            section_end="]<|/tools|>",
            separator=", ",
            function=('{"', NAME, '": ', ARGUMENTS, "}"),
            envelope=Envelope(array_wrapped=True),
        ),
    ),
    outputs=(
        'Let me see.<|tools|>[{"get_weather": {"city": "Paris", "days": 3}}, {"get_time": {"city": "Rome"}}]<|/tools|>',
        '<|inner|>Hm.<|/inner|><|tools|>[{"now": {}}]<|/tools|>Done.',
    ),
    markers=("<|tools|>[", "]<|/tools|>", '{"now": ', "<|inner|>", "<|/inner|>"),
)

JSON_WITH_IDS = Family(
    name="json_with_ids",
    format=Format(
        content=Content(mode=ContentMode.ALWAYS_WRAPPED, start="<|RESPONSE|>", end="<|/RESPONSE|>"),
        reasoning=Reasoning(mode=ReasoningMode.TOOLS_ONLY, start="<|THINKING|>", end="<|/THINKING|>"),
        turn=TurnTexts(headers=("<|BOT|>",), end="<|END|>"),
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            section_start="<|ACTION|>[\n    ",
            section_end="\n]<|/ACTION|>",
            separator=",\n    ",
            function=('{"call_id": "', INDEX, '", "tool": "', NAME, '", "parameters": ', ARGUMENTS, "}"),
            envelope=Envelope(
                name_field=("tool",), args_field=("parameters",), gen_id_field=("call_id",), array_wrapped=True
            ),
        ),
    ),
    outputs=(
        "<|RESPONSE|>Let me see.<|/RESPONSE|><|ACTION|>[\n"
        '    {"call_id": "0", "tool": "get_weather", "parameters": {"city": "Paris", "days": 3}},\n'
        '    {"call_id": "1", "tool": "get_time", "parameters": {"city": "Rome"}}\n]<|/ACTION|><|END|>',
        '<|THINKING|>So.<|/THINKING|><|ACTION|>[\n    {"call_id": "0", "tool": "now", "parameters": {}}\n]<|/ACTION|>',
        '<|ACTION|>[{"parameters": {"exact": true}, "tool": "now", "call_id": 7}]<|/ACTION|>',
    ),
    markers=("<|ACTION|>[", "]<|/ACTION|>", "<|RESPONSE|>", "<|/RESPONSE|>", '{"call_id": "0", '),
)

JSON_ID_LAST = Family(
    name="json_id_last",
    format=Format(
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            section_start="[CALLS] [",
            section_end="]",
            separator=", ",
            function=('{"name": "', NAME, '", "arguments": ', ARGUMENTS, ', "id": "', ID, '"}'),
            envelope=Envelope(name_field=("name",), args_field=("arguments",), id_field=("id",), array_wrapped=True),
        ),
    ),
    outputs=(
        'Let me see.[CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}, "id": "abcdefghi"}, '
        '{"name": "get_time", "arguments": {"city": "Rome"}, "id": "123456789"}]',
        '[CALLS][{"id": "abcdefghi", "name": "now", "arguments": {}}]',
    ),
    atomic=1 << 20,
    markers=("[CALLS] [", "]", ', "id": "abcdefghi"}', '"arguments": '),
)

BARE_JSON = Family(
    name="bare_json",
    format=Format(
        turn=TurnTexts(headers=("<|header|>assistant\n\n",), end="<|eot|>"),
        tools=CallSyntax(
            mode=ToolMode.JSON_NATIVE,
            function=('{"name": "', NAME, '", "parameters": ', ARGUMENTS, "}"),
            envelope=Envelope(name_field=("name",), args_field=("parameters",)),
            parallel=False,
        ),
    ),
    outputs=(
        'Let me see.{"name": "get_weather", "parameters": {"city": "Paris", "days": 3}}<|eot|>',
        '{"type": "function", "name": "now", "parameters": {}}',
        '{"name": "nobody", "age": 3} and {} and {{',
    ),
    one_call=True,
    markers=('{"name": "now", ', '"parameters": ', "}", "<|eot|>"),
)

TAG_AND_JSON = Family(
    name="tag_and_json",
    format=Format(
        turn=TurnTexts(end="<|eot|>", ends=("<|eom|>",)),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_JSON,
            function=("<function=", NAME, ">", ARGUMENTS, "</function>"),
        ),
    ),
    outputs=(
        'Let me see.<function=get_weather>{"city": "Paris", "days": 3}</function>'
        '<function=get_time>{"city": "Rome"}</function><|eom|>',
        "<function=now>{}</function>",
        "<function=now>{'city': 'Rome', 'exact': True, 'note': None, 'tags': ['a', 'b',]}</function>",
    ),
    markers=("<function=", "<function=now>", "</function>", "<|eom|>"),
)

ID_BETWEEN = Family(
    name="id_between",
    format=Format(
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_JSON,
            call_start="[CALLS]",
            function=(NAME, "[CALL_ID]", ID, "[ARGS]", ARGUMENTS),
        ),
    ),
    outputs=(
        'Let me see.[CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{"city": "Paris", "days": 3}'
        '[CALLS]get_time[CALL_ID]123456789[ARGS]{"city": "Rome"}',
        "[CALLS]now[CALL_ID]abcdefghi[ARGS]{}",
    ),
    markers=("[CALLS]", "[CALL_ID]", "[ARGS]", "[CALLS]now[CALL_ID]x[ARGS]"),
)

ID_FIRST = Family(
    name="id_first",
    format=Format(
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_JSON,
            call_start="<call id=",
            function=(ID, " name=", NAME, ">", ARGUMENTS, "</call>"),
        ),
    ),
    outputs=(
        'Let me see.<call id=a1 name=get_weather>{"city": "Paris", "days": 3}</call>'
        '<call id=a2 name=get_time>{"city": "Rome"}</call>',
        "<call id=a1 name=now>{}</call> and more",
    ),
    markers=("<call id=", "<call id=7 name=now>", "</call>"),
)

COUNTED = Family(
    name="counted",
    format=Format(
        reasoning=Reasoning(mode=ReasoningMode.TOOLS_ONLY, start="<think>", end="</think>", empty="<think></think>"),
        turn=TurnTexts(headers=("<|assistant|>",), end="<|end|>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_JSON,
            section_start="<|calls_begin|>",
            section_end="<|calls_end|>",
            call_start="<|call_begin|>",
            call_end="<|call_end|>",
            function=("functions.", NAME, ":", INDEX, "<|args_begin|>", ARGUMENTS),
            id_parts=(0, 4),
        ),
    ),
    outputs=(
        'Let me see.<|calls_begin|><|call_begin|>functions.get_weather:0<|args_begin|>{"city": "Paris", "days": 3}'
        '<|call_end|><|call_begin|>functions.get_time:1<|args_begin|>{"city": "Rome"}<|call_end|><|calls_end|><|end|>',
        "<think>So<|calls_begin|><|call_begin|>functions.now:0<|args_begin|>{}<|call_end|><|calls_end|>",
        "<think>So<|call_begin|>functions.now:0<|args_begin|>{}<|call_end|> and on</think>Hi",
    ),
    markers=("<|calls_begin|>", "<|call_begin|>", "functions.now:0", "<|args_begin|>", "<|call_end|>", "</think>"),
)

RECIPIENT = Family(
    name="recipient",
    format=Format(
        turn=TurnTexts(headers=("<|header|>assistant\n\n",), end="<|eot|>", prefill=">>>"),
        content=Content(mode=ContentMode.ALWAYS_WRAPPED, start=">>>all\n"),
        tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(">>>", NAME, "\n", ARGUMENTS)),
    ),
    outputs=(
        '>>>all\nLet me see.>>>get_weather\n{"city": "Paris", "days": 3}>>>get_time\n{"city": "Rome"}<|eot|>',
        ">>>now\n{}",
        ">>>all\n>>> print(1)\n1 >>> allocate",
    ),
    markers=(">>>", ">>>all\n", ">>>now\n", "<|eot|>"),
)

TAGGED = Family(
    name="tagged",
    format=Format(
        turn=TurnTexts(
            headers=("<|start|>assistant\n",), end="<|end|>\n", reasoning_to_content="\n", content_to_tools="\n\n"
        ),
        reasoning=THINK,
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            call_start="<tool_call>\n",
            function=("<function=", NAME, ">\n", ARGUMENTS, "</function>"),
            call_end="\n</tool_call>",
            separator="\n",
            arguments=Arguments(
                entry=("<parameter=", KEY, ">\n", VALUE, "\n</parameter>\n"),
                codec=Codec(
                    strings=Strings.RAW, typed_by=Typing.SCHEMA, words=Words.PYTHON, containers=Containers.PYTHON
                ),
            ),
        ),
    ),
    outputs=(
        "Let me see.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n"
        "</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=get_time>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call><|end|>\n",
        "<think>\nSo.\n</think>\n<function=now>\n</function>\n</tool_call>\n</tool_call>",
        "<tool_call>\n<function=now>\n<parameter=options>\n{'a': [1, None, {'b': \"it's\"}]}\n</parameter>\n"
        "<parameter=note>\nNone\n</parameter>\n<parameter=unknown>\n02134\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\n<function=now>\n<parameter=city>\nif a < b:\n  </par\n\n</parameter>\n</function>\n</tool_call>",
    ),
    markers=(
        "<tool_call>\n",
        "</function>",
        "<function=now>\n",
        "<parameter=city>\n",
        "\n</parameter>\n",
        "</tool_call>",
    ),
)

KEY_AND_VALUE = Family(
    name="key_and_value",
    format=Format(
        turn=TurnTexts(
            headers=("<|assistant|>",), ends=("<|user|>",), reasoning_to_content="\n", content_to_tools="\n"
        ),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="\n<think>", end="</think>", empty="\n<think></think>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            call_start="<tool_call>",
            call_end="</tool_call>",
            separator="\n",
            function=(NAME, "\n", ARGUMENTS),
            arguments=Arguments(
                entry=("<arg_key>", KEY, "</arg_key>\n<arg_value>", VALUE, "</arg_value>\n"), codec=RAW_BY_SCHEMA
            ),
        ),
    ),
    outputs=(
        "Let me see.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
        "<tool_call>get_time\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
        "\n<think>So.</think>\n<tool_call>now\n</tool_call><|user|>",
    ),
    markers=(
        "<tool_call>",
        "<tool_call>now\n",
        "<arg_key>",
        "</arg_key>\n<arg_value>",
        "</arg_value>\n",
        "</tool_call>",
    ),
)

TYPED = Family(
    name="typed",
    format=Format(
        turn=TurnTexts(headers=("<|Assistant|>",), end="<|end|>", reasoning_to_tools="\n\n", content_to_tools="\n\n"),
        reasoning=Reasoning(mode=ReasoningMode.FORCED_CLOSED, start="<think>", end="</think>", empty="<think></think>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            section_start="<|ML|calls>\n",
            section_end="</|ML|calls>",
            function=('<|ML|invoke name="', NAME, '">\n', ARGUMENTS, "</|ML|invoke>\n"),
            arguments=Arguments(
                entry=('<|ML|parameter name="', KEY, '" string="', TYPE, '">', VALUE, "</|ML|parameter>\n"),
                codec=Codec(
                    strings=Strings.RAW,
                    typed_by=Typing.ATTRIBUTE,
                    types=(
                        ("string", "true"),
                        ("number", "false"),
                        ("boolean", "false"),
                        ("null", "false"),
                        ("object", "false"),
                        ("array", "false"),
                    ),
                ),
            ),
        ),
    ),
    outputs=(
        'Let me see.\n\n<|ML|calls>\n<|ML|invoke name="get_weather">\n'
        '<|ML|parameter name="city" string="true">Paris</|ML|parameter>\n'
        '<|ML|parameter name="days" string="false">3</|ML|parameter>\n</|ML|invoke>\n'
        '<|ML|invoke name="get_time">\n<|ML|parameter name="city" string="true">Rome</|ML|parameter>\n</|ML|invoke>\n'
        "</|ML|calls><|end|>",
        '<think>So.</think>\n\n<|ML|calls>\n<|ML|invoke name="now">\n</|ML|invoke>\n</|ML|calls>',
        '<|ML|calls>\n<|ML|invoke name="now">\n<|ML|parameter name="tags" string="false">["a", {"b": 1}]</|ML|parameter>\n',
    ),
    markers=("<|ML|calls>\n", '<|ML|invoke name="now">\n', "</|ML|invoke>\n", "</|ML|parameter>\n", '" string="true">'),
)

PYTHON_CALLS = Family(
    name="python_calls",
    format=Format(
        turn=TurnTexts(headers=("<|start|>assistant\n",), end="<|end|>\n"),
        reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            section_start="<|call_start|>[",
            section_end="]<|call_end|>",
            separator=", ",
            function=(NAME, ARGUMENTS),
            arguments=Arguments(
                start="(",
                end=")",
                entry=(KEY, "=", VALUE),
                separator=", ",
                codec=Codec(
                    strings=Strings.QUOTED,
                    words=Words.PYTHON,
                    containers=Containers.PYTHON,
                    string_open="'",
                    string_close="'",
                ),
            ),
        ),
    ),
    outputs=(
        "Let me see.<|call_start|>[get_weather(city='Paris', days=3), get_time(city='Rome')]<|call_end|><|end|>\n",
        "<think>So.</think><|call_start|>[now()]<|call_end|>",
        "<|call_start|>[now(note=None, exact=True, options={\"a\": [1, 'x']}, city='it's me')]<|call_end|>",
    ),
    markers=("<|call_start|>[", "]<|call_end|>", "now(", "')", ", "),
)

BARE_KEYS = Family(
    name="bare_keys",
    format=Format(
        turn=TurnTexts(headers=("<|turn>model\n",), end="<turn|>\n", ends=("<|response>",), tools_first=True),
        reasoning=Reasoning(mode=ReasoningMode.TOOLS_ONLY, start="<|channel>thought\n", end="\n<channel|>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            call_start="<|tool_call>",
            call_end="<tool_call|>",
            function=("call:", NAME, ARGUMENTS),
            arguments=Arguments(
                start="{",
                end="}",
                entry=(KEY, ":", VALUE),
                separator=",",
                codec=Codec(
                    strings=Strings.QUOTED,
                    words=Words.PYTHON_NULL,
                    containers=Containers.BARE,
                    string_open='<|"|>',
                    string_close='<|"|>',
                    item_separator=",",
                    key_separator=":",
                ),
            ),
        ),
    ),
    outputs=(
        'Let me see.<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>'
        '<|tool_call>call:get_time{city:<|"|>Rome<|"|>}<tool_call|>',
        "<|channel>thought\nSo.\n<channel|><|tool_call>call:now{}<tool_call|><|response>",
        '<|tool_call>call:now{options:{a:[1,<|"|>x, "y"<|"|>,true],b:None},note:None}<tool_call|>',
    ),
    markers=("<|tool_call>", "<|tool_call>call:now{", "<tool_call|>", '<|"|>', "<|channel>thought\n", "<channel|>"),
)

NESTED_TAGS = Family(
    name="nested_tags",
    format=Format(
        turn=TurnTexts(headers=("]~b]ai\n",), end="[e~[\n"),
        reasoning=Reasoning(mode=ReasoningMode.FORCED_CLOSED, start="<mm>", end="</mm>", empty="</mm>"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            section_start="]<]ns[>[<tool_call>\n",
            section_end="]<]ns[>[</tool_call>",
            function=(']<]ns[>[<invoke name="', NAME, '">', ARGUMENTS, "]<]ns[>[</invoke>\n"),
            arguments=Arguments(
                entry=("]<]ns[>[<", KEY, ">", VALUE, "]<]ns[>[</", KEY, ">"),
                codec=Codec(
                    strings=Strings.RAW,
                    containers=Containers.XML,
                    typed_by=Typing.SCHEMA,
                    omits_null=True,
                    item_tag="item",
                ),
            ),
        ),
    ),
    outputs=(
        'Let me see.]<]ns[>[<tool_call>\n]<]ns[>[<invoke name="get_weather">]<]ns[>[<city>Paris]<]ns[>[</city>'
        "]<]ns[>[<days>3]<]ns[>[</days>]<]ns[>[</invoke>\n"
        ']<]ns[>[<invoke name="get_time">]<]ns[>[<city>Rome]<]ns[>[</city>]<]ns[>[</invoke>\n]<]ns[>[</tool_call>',
        '</mm>]<]ns[>[<tool_call>\n]<]ns[>[<invoke name="now">]<]ns[>[</invoke>\n]<]ns[>[</tool_call>[e~[\n',
        ']<]ns[>[<tool_call>\n]<]ns[>[<invoke name="now">]<]ns[>[<tags>]<]ns[>[<item>a]<]ns[>[</item>'
        "]<]ns[>[<item>b]<]ns[>[</item>]<]ns[>[</tags>]<]ns[>[<options>]<]ns[>[<options>1]<]ns[>[</options>"
        "]<]ns[>[</options>]<]ns[>[</invoke>\n]<]ns[>[</tool_call>",
    ),
    markers=("]<]ns[>[", "]<]ns[>[<tool_call>\n", ']<]ns[>[<invoke name="now">', "]<]ns[>[<city>", "]<]ns[>[</city>"),
)

RAW_CALLS = Family(
    name="raw_calls",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n", content_to_tools="\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            call_start="<|do|>",
            call_end="<|done|>",
            function=(NAME, ARGUMENTS),
            arguments=Arguments(
                start="(",
                end=")",
                entry=(KEY, "=", VALUE),
                separator=", ",
                codec=RAW_BY_SCHEMA,
            ),
        ),
    ),
    outputs=(
        "Let me see.\n<|do|>get_weather(city=Paris, days=3)<|done|><|do|>get_time(city=Rome)<|done|><|end|>\n",
        """<|do|>now(tags=["a", "b,(c)"], exact=true, note=it's, or not)<|done|>""",
        '<|do|>now(tags=[], options={"a": [1, 2]}, city=a=b)<|done|>',
    ),
    markers=("<|do|>", ")<|done|>", "now(", ", ", ", city=", ")"),
)

RAW_LINES = Family(
    name="raw_lines",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            function=("[do:", NAME, "]", ARGUMENTS, "\n[done]"),
            arguments=Arguments(entry=("\n", KEY, " = ", VALUE), codec=RAW_BY_SCHEMA),
        ),
    ),
    outputs=(
        "Let me see.[do:get_weather]\ncity = Paris\ndays = 3\n[done][do:get_time]\ncity = Rome\n[done]<|end|>\n",
        '[do:now]\nnote = one\n\ntwo = 2, [do\nexact = true\ntags = ["a",\n"b"]\n[done]',
        '[do:now]\ncity = "Rome"\nnote = \ndays = x\n\n[done]',
    ),
    markers=("[do:now]\n", "\n[done]", "\ncity = ", "\nother = ", "\n"),
)

RAW_OPTIONS = Family(
    name="raw_options",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n", content_to_tools="\n", start_to_tools="\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            separator="\n",
            function=("$ ", NAME, ARGUMENTS),
            arguments=Arguments(entry=(" --", KEY, "=", VALUE), codec=RAW_BY_SCHEMA),
        ),
    ),
    outputs=(
        "Let me see.\n$ get_weather --city=Paris --days=3\n$ get_time --city=Rome<|end|>\n",
        "\n$ now --note=a -- b --c=d\n$ five --exact=true",
        "\n$ now",
    ),
    markers=("\n$ ", "\n$ now", " --", " --city=", " --other=", "<|end|>\n"),
)

KEYWORDS = Family(
    name="keywords",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            function=("(do ", NAME, ARGUMENTS, ")"),
            arguments=Arguments(entry=(" :", KEY, " ", VALUE)),
        ),
    ),
    outputs=(
        'Let me see.(do get_weather :city "Paris" :days 3)(do get_time :city "Rome")<|end|>\n',
        '(do now :note ":x 1)" :tags ["a", "b"]  :options {"a": null})',
        "(do now)",
    ),
    markers=("(do ", "(do now", " :", " :city ", ")"),
)

INDENTED = Family(
    name="indented",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n", content_to_tools="\n", start_to_tools="\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            separator="\n",
            function=("@tool: ", NAME, "\n  with:", ARGUMENTS),
            arguments=Arguments(entry=("\n    ", KEY, ": ", VALUE)),
        ),
    ),
    outputs=(
        'Let me see.\n@tool: get_weather\n  with:\n    city: "Paris"\n    days: 3\n'
        '@tool: get_time\n  with:\n    city: "Rome"<|end|>\n',
        '\n@tool: now\n  with:\n    note: "a\\n    b: c"\n    exact : 1\n    exact: true\n - no more: 1',
        "\n@tool: now\n  with:",
    ),
    markers=("\n@tool: ", "\n@tool: now\n  with:", "\n    ", "\n    city: ", " with:", "<|end|>\n"),
)

NAMED_JSON_TAGS = Family(
    name="named_json_tags",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            function=("<f:", NAME, ">", ARGUMENTS, "</f>"),
            arguments=Arguments(entry=("<", KEY, ">", VALUE, "</", KEY, ">")),
        ),
    ),
    outputs=(
        'Let me see.<f:get_weather><city>"Paris"</city><days>3</days></f><f:get_time><city>"Rome"</city></f><|end|>\n',
        '<f:now><note>"</note>"</note> <tags>["a"] </tags></f>',
        "<f:now></f>",
    ),
    markers=("<f:", "<f:now>", "<city>", "</city>", "</note>", "</f>"),
)

LEFT_OUT = Family(
    name="left_out",
    format=Format(
        turn=TurnTexts(headers=("<|bot|>",), end="<|end|>\n"),
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_JSON,
            function=('<call name="', NAME, '"', ARGUMENTS),
            arguments=Arguments(start=">", end="</call>", when_empty="/>"),
        ),
    ),
    outputs=(
        'Let me see.<call name="get_weather">{"city": "Paris", "days": 3}</call>'
        '<call name="get_time">{"city": "Rome"}</call><|end|>\n',
        '<call name="now"/> <call name="now" >{} </call><call name="now"/>',
        '<call name="now">\n```json\n{"note": "/>"}\n```\n</call>',
    ),
    markers=('<call name="', '<call name="now"', '"/>', ">", "</call>"),
)

FAMILIES = (
    JSON_ENVELOPE,
    ARRAY,
    NAME_IS_KEY,
    JSON_WITH_IDS,
    JSON_ID_LAST,
    BARE_JSON,
    TAG_AND_JSON,
    ID_BETWEEN,
    ID_FIRST,
    COUNTED,
    RECIPIENT,
    TAGGED,
    KEY_AND_VALUE,
    TYPED,
    PYTHON_CALLS,
    BARE_KEYS,
    NESTED_TAGS,
    RAW_CALLS,
    RAW_LINES,
    RAW_OPTIONS,
    KEYWORDS,
    INDENTED,
    NAMED_JSON_TAGS,
    LEFT_OUT,
)
