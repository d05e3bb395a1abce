"""Tables of the ways in which chat templates frame turns, write reasoning and write calls: parts that `composition` joins.

Strategy: all of it is our own short writing of conventions that are common in the field, under names of their shape. A text
between «» is an expression of Jinja; everything else is written as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

JSON = "«f.arguments | tojson»"
TEXT = "«f.arguments if f.arguments is string else f.arguments | tojson»"
NAME = "«f.name»"
ID = "«call.id»"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """How turns are written: what is before and after what a role says."""

    answer: tuple[str, str]
    question: tuple[str, str]
    system: tuple[str, str] = ("", "\n")
    result: tuple[str, str] = ("", "")
    """Empty: a result is written as a question is."""
    asks: str | None = None
    """The generation prompt, where it is not what is before an answer; "" where there is none."""
    first: str = "«bos_token»"
    space: str = ""
    """Before content alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """How reasoning is written."""

    start: str = ""
    end: str = ""
    joint: str = ""
    empty: str = ""
    """Written where an answer has none."""
    prefill: str = ""
    """After the generation prompt."""
    prefill_off: str = ""
    """The same when thinking is switched off; empty: there is no switch."""
    inline: bool = False
    """Reasoning is cut out of content."""
    last_only: bool = False
    """Reasoning of turns before the last question is dropped."""
    unless_calls: bool = False
    says: tuple[str, str] = ("", "")
    """Around content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How calls are written."""

    call: str
    start: str = ""
    end: str = ""
    separator: str = ""
    after_content: str = ""
    """Between content and the first call."""
    ends_with: str | None = None
    """What ends a turn of calls, where it is another than of content."""
    only_first: bool = False
    content_too: bool = True


def _chatml(**fields: str) -> Frame:
    return Frame(
        answer=("<|im_start|>assistant\n", "<|im_end|>\n"),
        question=("<|im_start|>user\n", "<|im_end|>\n"),
        system=("<|im_start|>system\n", "<|im_end|>\n"),
        **fields,  # type: ignore[arg-type]
    )


def _bars(left: str, right: str, end: str, *, user: str = "user", bot: str = "assistant", tool: str = "tool") -> Frame:
    return Frame(
        answer=(left + bot + right, end),
        question=(left + user + right, end),
        system=(left + "system" + right, end),
        result=(left + tool + right, end),
    )


FRAMES: dict[str, Frame] = {
    "chatml": _chatml(),
    "chatml without first": _chatml(first=""),
    "chatml tool": Frame(
        answer=("<|im_start|>assistant\n", "<|im_end|>\n"),
        question=("<|im_start|>user\n", "<|im_end|>\n"),
        system=("<|im_start|>system\n", "<|im_end|>\n"),
        result=("<|im_start|>tool\n", "<|im_end|>\n"),
    ),
    "chatml response": Frame(
        answer=("<|im_start|>assistant\n", "<|im_end|>\n"),
        question=("<|im_start|>user\n", "<|im_end|>\n"),
        result=("<|im_start|>user\n<tool_response>\n", "\n</tool_response><|im_end|>\n"),
    ),
    "chatml eos": Frame(
        answer=("<|im_start|>assistant\n", "<|im_end|>«eos_token»\n"), question=("<|im_start|>user\n", "<|im_end|>\n")
    ),
    "inst": Frame(answer=(" ", " «eos_token»"), question=("«bos_token»[INST] ", " [/INST]"), asks="", first=""),
    "inst tight": Frame(
        answer=("", "«eos_token»"),
        question=("[INST]", "[/INST]"),
        system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        asks="",
    ),
    "inst spaced": Frame(
        answer=(" ", "«eos_token»"),
        question=("[INST] ", " [/INST]"),
        result=('[TOOL_RESULTS] {"content": ', "}[/TOOL_RESULTS]"),
        asks="",
    ),
    "header ids": _bars("<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", tool="ipython"),
    "short headers": _bars("<|header_start|>", "<|header_end|>\n\n", "<|eot|>", tool="ipython"),
    "turn tokens": Frame(
        answer=("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        question=("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        system=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    ),
    "words and eos": Frame(answer=("Assistant: ", "«eos_token»"), question=("User: ", "\n\n"), asks="Assistant:"),
    "words and space": Frame(answer=("Assistant: ", "«eos_token»"), question=("User: ", "\n\n"), asks="Assistant: "),
    "wide bars": Frame(
        answer=("<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
        question=("<｜User｜>", ""),
        result=("<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>", "<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"),
    ),
    "roles in bars": _bars("<|", "|>\n", "<|end|>\n"),
    "roles in bars, tight": _bars("<|", "|>", "<|end|>"),
    "roles in bars, eos": _bars("<|", "|>\n", "«eos_token»\n"),
    "roles in bars, nothing": _bars("<|", "|>\n", "", tool="observation"),
    "im sep": _bars("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
    "im middle": Frame(
        answer=("<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"),
        question=("<|im_user|>user<|im_middle|>", "<|im_end|>"),
        system=("<|im_system|>system<|im_middle|>", "<|im_end|>"),
        result=("<|im_system|>tool<|im_middle|>", "<|im_end|>"),
    ),
    "start of turn": Frame(
        answer=("<start_of_turn>model\n", "<end_of_turn>\n"), question=("<start_of_turn>user\n", "<end_of_turn>\n")
    ),
    "roles": _bars("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n", tool="tool_response"),
    "vicuna": Frame(answer=("ASSISTANT: ", "«eos_token»"), question=("USER: ", " "), asks="ASSISTANT:"),
    "instruction": Frame(
        answer=("### Response:\n", "\n\n"), question=("### Instruction:\n", "\n\n"), result=("### Input:\n", "\n\n")
    ),
    "response and token": Frame(
        answer=("### Response:\n", "\n<|EOT|>\n"), question=("### Instruction:\n", "\n"), asks="### Response:"
    ),
    "falcon": Frame(answer=("Falcon: ", "\n"), question=("User: ", "\n"), asks="Falcon:"),
    "bom": Frame(
        answer=("<|bom|><|assistant|> ", "<|eom|>"),
        question=("<|bom|><|user|> ", "<|eom|>"),
        system=("<|bom|><|system|> ", "<|eom|>"),
        result=("<|bom|><|tool|> ", "<|eom|>"),
        asks="<|bom|><|assistant|>",
    ),
    "bracketed bars": Frame(
        answer=("[|assistant|]", "[|endofturn|]\n"),
        question=("[|user|]", "\n"),
        system=("[|system|]", "[|endofturn|]\n"),
        result=("[|tool|]", "[|endofturn|]\n"),
    ),
    "bracketed, no line": Frame(
        answer=("[|assistant|]", "[|endofturn|]\n"),
        question=("[|user|]", "[|endofturn|]\n"),
        result=("[|tool|]", "[|endofturn|]\n"),
    ),
    "two colons": Frame(
        answer=("<|hy_Assistant|>", "<|hy_eos|>"), question=("<|hy_User|>", ""), result=("<|hy_tool|>", "")
    ),
    "named begin": Frame(
        answer=("]~b]ai\n", "[e~[\n"),
        question=("]~b]user\n", "[e~[\n"),
        result=("]~b]tool\n<response>", "</response>[e~[\n"),
    ),
    "seed": Frame(
        answer=("<seed:bos>assistant\n", "<seed:eos>"),
        question=("<seed:bos>user\n", "<seed:eos>"),
        system=("<seed:bos>system\n", "<seed:eos>"),
        result=("<seed:bos>tool\n", "<seed:eos>"),
    ),
    "correct": Frame(
        answer=("GPT4 Correct Assistant: ", "<|end_of_turn|>"),
        question=("GPT4 Correct User: ", "<|end_of_turn|>"),
        asks="GPT4 Correct Assistant:",
    ),
    "reserved": Frame(answer=("<reserved_107>", "«eos_token»"), question=("<reserved_106>", ""), system=("", "")),
    "extra ids": Frame(
        answer=("<extra_id_1>Assistant\n", "\n"),
        question=("<extra_id_1>User\n", "\n"),
        system=("<extra_id_0>System\n", "\n"),
    ),
    "special numbers": Frame(
        answer=("<SPECIAL_11>Assistant\n", "\n<SPECIAL_12>\n"),
        question=("<SPECIAL_11>User\n", "\n"),
        system=("<SPECIAL_10>System\n", "\n"),
    ),
    "eos between": Frame(
        answer=("Assistant: «eos_token»", "«eos_token»"), question=("Human: ", "\n\n"), asks="Assistant: «eos_token»"
    ),
    "no prompt": Frame(answer=("<|assistant|>\n", "<|end|>\n"), question=("<|user|>\n", "<|end|>\n"), asks=""),
    "always asks": Frame(answer=("[A]", "[/A]"), question=("[Q]", "[/Q]")),
    "names and lines": Frame(answer=("assistant:\n", "\n---\n"), question=("user:\n", "\n---\n")),
    "xml": Frame(
        answer=("<assistant>\n", "\n</assistant>\n"),
        question=("<user>\n", "\n</user>\n"),
        result=("<result>\n", "\n</result>\n"),
    ),
    "xml tight": Frame(
        answer=("<assistant>", "</assistant>"), question=("<user>", "</user>"), result=("<tool>", "</tool>")
    ),
    "message": Frame(
        answer=("<|start|>assistant<|message|>", "<|end|>"),
        question=("<|start|>user<|message|>", "<|end|>"),
        system=("<|start|>system<|message|>", "<|end|>"),
        result=("<|start|>tool<|message|>", "<|end|>"),
    ),
    "asked and spaced": Frame(
        answer=("\n<|assistant|>\n ", "<|endoftext|>"), question=("\n<|user|>\n ", ""), asks="\n<|assistant|>\n"
    ),
    "double new line": Frame(answer=("### Assistant:\n", "\n\n"), question=("### User:\n", "\n\n")),
}

FRAMES |= {
    "corners": Frame(
        answer=("【助手】", "【完】\n"), question=("【用户】", "【完】\n"), result=("【工具】", "【完】\n")
    ),
    "angle quotes": Frame(answer=("‹assistant›\n", "‹/›\n"), question=("‹user›\n", "‹/›\n")),
    "pictures": Frame(answer=("🤖: ", "«eos_token»"), question=("👤: ", "\n\n"), asks="🤖:"),
    "rounds": Frame(answer=("答：", "\n\n"), question=("[Round «loop.index0 // 2 + 1»]\n\n问：", "\n\n"), asks="答："),
    "dated": _chatml(first="«bos_token»<|im_start|>system\nToday is «strftime_now('%d %b %Y')».<|im_end|>\n"),
    "examples first": _chatml(
        first="«bos_token»<|im_start|>system\nWrite <think>\nthoughts\n</think>\n\n first, then an answer or "
        '<tool_call>\n«{"name": "f", "arguments": {}} | tojson»\n</tool_call><|im_end|>\n'
    ),
    "ends twice": Frame(
        answer=("<|im_start|>assistant\n", "<|im_end|><|endoftext|>\n"), question=("<|im_start|>user\n", "<|im_end|>\n")
    ),
    "headings": Frame(answer=("## Assistant\n\n", "\n\n"), question=("## User\n\n", "\n\n")),
    "unused tokens": Frame(
        answer=("<unused3>", "<unused0>"), question=("<unused2>", "<unused0>"), result=("<unused4>", "<unused0>")
    ),
    "attributes": Frame(
        answer=('<turn role="assistant">\n', "\n</turn>\n"),
        question=('<turn role="user">\n', "\n</turn>\n"),
        system=('<turn role="system">\n', "\n</turn>\n"),
        result=('<turn role="tool">\n', "\n</turn>\n"),
    ),
    "numbered turns": Frame(
        answer=("<|turn «loop.index»|>assistant\n", "<|end|>\n"),
        question=("<|turn «loop.index»|>user\n", "<|end|>\n"),
        asks="<|turn «messages | length + 1»|>assistant\n",
    ),
    "named messages": Frame(
        answer=("<|msg|>assistant<|body|>", "<|/msg|>"),
        question=("<|msg|>user<|body|>", "<|/msg|>"),
        result=("<|msg|>tool «message.name or 'tool'»<|body|>", "<|/msg|>"),
    ),
}

_THINK = Thoughts(start="<think>\n", end="\n</think>", joint="\n\n")

THOUGHTS: dict[str, Thoughts] = {
    "none": Thoughts(),
    "lines": _THINK,
    "tight": Thoughts(start="<think>", end="</think>"),
    "tight, then a line": Thoughts(start="<think>", end="</think>", joint="\n"),
    "inline": Thoughts(start="<think>\n", end="\n</think>", joint="\n\n", inline=True),
    "last only": Thoughts(start="<think>\n", end="\n</think>", joint="\n\n", last_only=True),
    "switch": Thoughts(start="<think>\n", end="\n</think>", joint="\n\n", prefill_off="<think>\n\n</think>\n\n"),
    "switch and empty": Thoughts(
        start="<think>\n",
        end="\n</think>",
        joint="\n\n",
        empty="<think>\n\n</think>\n\n",
        prefill_off="<think>\n\n</think>\n\n",
    ),
    "opened": Thoughts(start="<think>\n", end="\n</think>", joint="\n\n", prefill="<think>\n"),
    "opened, switch": Thoughts(
        start="<think>\n",
        end="\n</think>",
        joint="\n\n",
        prefill="<think>\n",
        prefill_off="<think>\n\n</think>\n\n",
        last_only=True,
    ),
    "opened, bare closer": Thoughts(
        start="<think>", end="</think>", empty="</think>", prefill="<think>", prefill_off="</think>"
    ),
    "brackets": Thoughts(start="[THINK]", end="[/THINK]"),
    "thinking tokens": Thoughts(
        start="<|START_THINKING|>", end="<|END_THINKING|>", prefill_off="<|START_THINKING|><|END_THINKING|>"
    ),
    "named": Thoughts(start="<seed:think>", end="</seed:think>"),
    "reasoning": Thoughts(start="<reasoning>\n", end="\n</reasoning>\n"),
    "thought": Thoughts(start="<thought>", end="</thought>", joint="\n"),
    "channel": Thoughts(start="<|channel>thought\n", end="<channel|>", empty=""),
    "bars": Thoughts(start="<|begin_of_thought|>\n\n", end="\n\n<|end_of_thought|>", joint="\n\n"),
    "empty, tight": Thoughts(start="<think>", end="</think>", empty="<think></think>", joint=""),
    "dropped": Thoughts(inline=True),
    "dropped, opened": Thoughts(inline=True, prefill="<think>\n"),
    "with calls alone": Thoughts(start="<plan>", end="</plan>", unless_calls=True),
}

THOUGHTS |= {
    "tildes": Thoughts(start="~~", end="~~", joint="\n"),
    "one token": Thoughts(start="<|think|>", end="<|think|>"),
    "one token, opened": Thoughts(start="<|think|>", end="<|think|>", prefill="<|think|>"),
    "fence": Thoughts(start="```thinking\n", end="\n```", joint="\n\n"),
    "headings": Thoughts(start="### Thinking\n\n", end="\n\n### Answer", joint="\n\n"),
    "corners": Thoughts(start="〔思考〕", end="〔/思考〕", joint="\n"),
    "attribute": Thoughts(start='<think effort="high">\n', end="\n</think>", joint="\n"),
    "channel and message": Thoughts(start="<|channel|>analysis<|message|>", end="<|/channel|>"),
    "thinking and answer": Thoughts(start="<thinking>\n", end="\n</thinking>\n", says=("<answer>\n", "\n</answer>")),
    "a message of its own": Thoughts(start="<|thoughts|>", end="⟦end⟧", joint="⟦header⟧"),
}

_OBJECT = '{"name": "' + NAME + '", "arguments": ' + JSON + "}"
_PARAMETERS = '{"name": "' + NAME + '", "parameters": ' + JSON + "}"
_NO_SPACES = '{"name":"' + NAME + '","arguments":' + JSON + "}"
_AS_DICT = "«{'name': f.name, 'arguments': f.arguments} | tojson»"
_INDENTED = "«{'name': f.name, 'arguments': f.arguments} | tojson(indent=4)»"
_WITH_ID = '{"name": "' + NAME + '", "arguments": ' + JSON + ', "id": "' + ID + '"}'
_EACH = "{%- for key, value in f.arguments.items() -%}"
_RAW = "«value if value is string else value | tojson»"
_REPR = "«key»=«value | tojson»"

CALLS: dict[str, Calls] = {
    "json in tags": Calls(start="", call="<tool_call>\n" + _OBJECT + "\n</tool_call>", separator="\n"),
    "json in tags, after a line": Calls(
        call="<tool_call>\n" + _OBJECT + "\n</tool_call>", separator="\n", after_content="\n"
    ),
    "dict in tags": Calls(call="\n<tool_call>\n" + _AS_DICT + "\n</tool_call>"),
    "pretty in tags": Calls(call="<tool_call>\n" + _INDENTED + "\n</tool_call>", separator="\n"),
    "text in tags": Calls(call='<tool_call>\n{"name": "' + NAME + '", "arguments": ' + TEXT + "}\n</tool_call>\n"),
    "tight tags": Calls(call="<tool_call>" + _NO_SPACES + "</tool_call>"),
    "bare object": Calls(call=_PARAMETERS, only_first=True),
    "objects joined by semicolons": Calls(call=_PARAMETERS, separator="; "),
    "objects on lines": Calls(call=_OBJECT, separator="\n", after_content="\n"),
    "python tag": Calls(start="<|python_tag|>", call=_PARAMETERS, separator=";", ends_with="<|eom_id|>"),
    "list": Calls(start="[", call=_OBJECT, separator=", ", end="]"),
    "list after a token": Calls(start="[TOOL_CALLS] [", call=_OBJECT, separator=", ", end="]"),
    "list with ids": Calls(start="[TOOL_CALLS][", call=_WITH_ID, separator=", ", end="]"),
    "name and args token": Calls(call="[TOOL_CALLS]" + NAME + "[ARGS]" + JSON),
    "name, id, args": Calls(call="[TOOL_CALLS]" + NAME + "[CALL_ID]" + ID + "[ARGS]" + JSON),
    "list in tags": Calls(start="<tool_calls>[", call=_OBJECT, separator=", ", end="]</tool_calls>"),
    "list in tags on lines": Calls(start="<tool_calls>[\n", call=_OBJECT, separator=",\n", end="\n]</tool_calls>"),
    "list in upper tags": Calls(start="<TOOLCALL>[", call=_OBJECT, separator=", ", end="]</TOOLCALL>"),
    "list after a tag": Calls(start="<|tool_call|>[", call=_OBJECT, separator=", ", end="]<|/tool_call|>"),
    "list after one token": Calls(start="<|tool_call|>[", call=_OBJECT, separator=", ", end="]"),
    "list after a word": Calls(start=" functools[", call=_OBJECT, separator=", ", end="]"),
    "action list": Calls(
        start="Action: ```json\n[\n",
        call='    {\n        "tool_name": "' + NAME + '",\n        "parameters": ' + JSON + "\n    }",
        separator=",\n",
        end="\n]```",
    ),
    "action tokens": Calls(
        start="<|START_ACTION|>[\n",
        call='    {"tool_call_id": "«loop.index0»", "tool_name": "' + NAME + '", "parameters": ' + JSON + "}",
        separator=",\n",
        end="\n]<|END_ACTION|>",
    ),
    "sections and fences": Calls(
        start="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + NAME + "\n```json\n" + JSON + "\n```<｜tool▁call▁end｜>",
        separator="\n",
        end="<｜tool▁calls▁end｜>",
    ),
    "sections": Calls(
        start="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>" + NAME + "<｜tool▁sep｜>" + JSON + "<｜tool▁call▁end｜>",
        end="<｜tool▁calls▁end｜>",
    ),
    "ids in a section": Calls(
        start="<|tool_calls_section_begin|>",
        call="<|tool_call_begin|>" + ID + "<|tool_call_argument_begin|>" + JSON + "<|tool_call_end|>",
        end="<|tool_calls_section_end|>",
    ),
    "function tag": Calls(call="<function=" + NAME + ">" + JSON + "</function>"),
    "function tag on lines": Calls(call="<function=" + NAME + ">" + JSON + "</function>", separator="\n"),
    "arrows": Calls(call=">>>" + NAME + "\n" + JSON),
    "name on a line": Calls(call=NAME + "\n" + JSON, separator="\n", after_content="\n"),
    "name on a line between tags": Calls(call="<call>" + NAME + "\n" + JSON + "</call>"),
    "fence in tags": Calls(
        start="<tool_calls>\n",
        call="<tool_call>" + NAME + "\n```json\n" + JSON + "\n```\n</tool_call>",
        separator="\n",
        end="\n</tool_calls>",
    ),
    "action and plugin": Calls(
        start="<|action_start|><|plugin|>\n", call=_PARAMETERS, end="<|action_end|>", only_first=True
    ),
    "react": Calls(call="Action: " + NAME + "\nAction Input: " + JSON, separator="\n", after_content="\n"),
    "python list": Calls(
        start="[",
        call=NAME + "(" + _EACH + _REPR + "«'' if loop.last else ', '»{%- endfor -%})",
        separator=", ",
        end="]",
    ),
    "python in tokens": Calls(
        start="<|tool_call_start|>[",
        call=NAME + "(" + _EACH + _REPR + "«'' if loop.last else ', '»{%- endfor -%})",
        separator=", ",
        end="]<|tool_call_end|>",
    ),
    "python on lines": Calls(
        start="<tool_code>\n",
        call=NAME + "(" + _EACH + _REPR + "«'' if loop.last else ', '»{%- endfor -%})",
        separator="\n",
        end="\n</tool_code>",
    ),
    "keys and values": Calls(
        call="\n<tool_call>"
        + NAME
        + "\n"
        + _EACH
        + "<arg_key>«key»</arg_key>\n<arg_value>"
        + _RAW
        + "</arg_value>\n{%- endfor -%}</tool_call>",
    ),
    "keys and values, tight": Calls(
        call="<tool_call>"
        + NAME
        + _EACH
        + "<arg_key>«key»</arg_key><arg_value>"
        + _RAW
        + "</arg_value>{%- endfor -%}</tool_call>",
    ),
    "parameters": Calls(
        call="<tool_call>\n<function="
        + NAME
        + ">\n"
        + _EACH
        + "<parameter=«key»>\n"
        + _RAW
        + "\n</parameter>\n{%- endfor -%}</function>\n</tool_call>",
        separator="\n",
        after_content="\n",
    ),
    "invoke": Calls(
        start="<function_calls>\n",
        call='<invoke name="'
        + NAME
        + '">\n'
        + _EACH
        + '<parameter name="«key»">'
        + _RAW
        + "</parameter>\n{%- endfor -%}</invoke>",
        separator="\n",
        end="\n</function_calls>",
        after_content="\n\n",
    ),
    "typed parameters": Calls(
        start="<|calls|>\n",
        call='<|invoke name="'
        + NAME
        + '"|>\n'
        + _EACH
        + "<|parameter name=\"«key»\" string=\"«'true' if value is string else 'false'»\"|>"
        + _RAW
        + "<|/parameter|>\n{%- endfor -%}<|/invoke|>\n",
        end="<|/calls|>",
    ),
    "recipient": Calls(
        call="<|recipient|>" + NAME + "<|content|>" + JSON,
    ),
    "to": Calls(
        call="to=functions." + NAME + "<|message|>" + JSON + "<|call|>",
    ),
    "name is the key": Calls(
        start="<tool_call>", call='{"' + NAME + '": ' + JSON + "}", end="</tool_call>", separator="\n"
    ),
    "function inside": Calls(
        start="<|tool_calls|>",
        call='{"type": "function", "function": {"name": "' + NAME + '", "arguments": ' + JSON + "}}",
        separator="\n",
    ),
    "all of it": Calls(call="<tool_calls>«message.tool_calls | tojson»</tool_calls>", only_first=True),
    "function word": Calls(start="<function_call>", call=_NO_SPACES, separator="\n", end=""),
    "json fence": Calls(call="```json\n" + _OBJECT + "\n```", separator="\n"),
    "tool code fence": Calls(
        call="```tool_code\n" + NAME + "(" + _EACH + _REPR + "«'' if loop.last else ', '»{%- endfor -%})\n```",
        separator="\n",
    ),
    "xml by names": Calls(
        start="<tool_calls>\n",
        call="<" + NAME + ">\n" + _EACH + "<«key»>" + _RAW + "</«key»>\n{%- endfor -%}</" + NAME + ">",
        separator="\n",
        end="\n</tool_calls>",
    ),
    "numbered": Calls(
        call='<call id="«loop.index0»"><name>' + NAME + "</name><args>" + JSON + "</args></call>",
    ),
    "pairs on lines": Calls(
        call="<tool>" + NAME + "\n" + _EACH + "«key»: «value | tojson»\n{%- endfor -%}</tool>", separator="\n"
    ),
    "call colon": Calls(
        call="<|tool_call>call:"
        + NAME
        + "{"
        + _EACH
        + "«key»:«value | tojson»«'' if loop.last else ','»{%- endfor -%}}<tool_call|>",
    ),
}

CALLS |= {
    "attributes": Calls(call='<call name="' + NAME + "\" arguments='" + JSON + "'/>", separator="\n"),
    "typed attributes": Calls(call="<call:" + NAME + _EACH + " «key»=«value | tojson»{%- endfor -%}/>", separator="\n"),
    "yaml": Calls(
        call="<tool_call>\nname: "
        + NAME
        + "\narguments:\n"
        + _EACH
        + "  «key»: «value | tojson»\n{%- endfor -%}</tool_call>",
        separator="\n",
    ),
    "tool_call fence": Calls(call="```tool_call\n" + _OBJECT + "\n```", separator="\n", after_content="\n"),
    "numbered lines": Calls(call="«loop.index». " + NAME + ": " + JSON, separator="\n", after_content="\n"),
    "numbered tokens": Calls(call="<|call_«loop.index0»|>" + NAME + "<|args|>" + JSON),
    "list in an object": Calls(start='{"tool_calls": [', call=_OBJECT, separator=", ", end="]}", after_content="\n"),
    "list in an object in tokens": Calls(
        start='<|tools|>{"calls": [', call=_OBJECT, separator=", ", end="]}<|/tools|>"
    ),
    "name in the header": Calls(call="⟦end⟧⟦header⟧to=" + NAME + "\n" + JSON, ends_with=None),
    "name and arguments in tags": Calls(
        call="<tool_use>\n<name>" + NAME + "</name>\n<arguments>" + JSON + "</arguments>\n</tool_use>", separator="\n"
    ),
    "arrow": Calls(call="→ " + NAME + "(" + JSON + ")", separator="\n", after_content="\n"),
    "corners": Calls(call="【" + NAME + "】" + JSON + "【/】"),
    "three tokens": Calls(call="<|tc|>" + NAME + "<|ts|>" + JSON + "<|te|>"),
    "slash": Calls(call="/" + NAME + " " + JSON, separator="\n", after_content="\n"),
    "at": Calls(call="@" + NAME + " <<" + JSON + ">>", separator="\n", after_content="\n"),
    "typed objects on lines": Calls(
        call='{"type": "tool_use", "name": "' + NAME + '", "input": ' + JSON + "}", separator="\n", after_content="\n"
    ),
    "id and name": Calls(call='<invoke id="' + ID + '" name="' + NAME + '">' + JSON + "</invoke>", separator="\n"),
    "arguments before the name": Calls(
        call='<tool_call>{"arguments": ' + JSON + ', "name": "' + NAME + '"}</tool_call>', separator="\n"
    ),
    "equal fences": Calls(call="```\n" + _OBJECT + "\n```", separator="\n", after_content="\n"),
    "equal tokens": Calls(call="<|call|>" + NAME + JSON + "<|call|>"),
    "tag of the name": Calls(call="<" + NAME + ">" + JSON + "</" + NAME + ">", separator="\n", after_content="\n"),
    "keys on lines": Calls(
        call="[[" + NAME + "]]\n" + _EACH + "«key» = «value | tojson»\n{%- endfor -%}[[end]]", separator="\n"
    ),
}
