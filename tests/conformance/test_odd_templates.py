"""Templates with an oddity each that once was read wrongly: what they write is read back, or the format says what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from composed.composition import composed
from composed.parts import FRAMES, ID, JSON, NAME, THOUGHTS, Calls, Thoughts
from cut_outs import lost

from unrender import ChatTemplate, FormatWarning
from unrender.format import Slot

EACH = "{%- for key, value in f.arguments.items() -%}"
LENGTH = "«f.arguments | length»"
LAST = "«'' if loop.last else ', '»{%- endfor -%}"
CHATML, TIGHT = FRAMES["chatml"], THOUGHTS["tight"]
TAGS = Calls(call="<call>" + NAME + " " + JSON + "</call>")

ODD = {
    "the number of arguments on the name's line": composed(
        CHATML,
        TIGHT,
        Calls(call="\n@call " + NAME + " " + LENGTH + "\n" + EACH + "«key»: «value | tojson»\n{%- endfor -%}@end"),
    ),
    "the number of arguments in the opener": composed(
        CHATML,
        TIGHT,
        Calls(call="<call args=" + LENGTH + ">" + NAME + "(" + EACH + "«key»=«value | tojson»" + LAST + ")</call>"),
    ),
    "the number of arguments before an object": composed(
        CHATML, TIGHT, Calls(call="<call args=" + LENGTH + ">" + NAME + " " + JSON + "</call>")
    ),
    "the number of arguments in a call's object": composed(
        CHATML,
        TIGHT,
        Calls(call='<call>{"name": "' + NAME + '", "n": ' + LENGTH + ', "arguments": ' + JSON + "}</call>"),
    ),
    "an object for each argument": composed(
        CHATML, TIGHT, Calls(call="<call>" + NAME + EACH + "<a>«{key: value} | tojson»</a>{%- endfor -%}</call>")
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
    "a message of no thoughts, which the prompt writes": composed(
        FRAMES["message"],
        replace(THOUGHTS["a message of its own"], prefill_off="<|thoughts|>⟦end⟧⟦header⟧"),
        Calls(call="<|call|>" + ID + "<|name|>" + NAME + "<|args|>" + JSON + "<|/call|>"),
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_an_odd_template_writes_is_read_back(name):
    """Without a warning, so the format claims to read it."""
    assert lost(ChatTemplate.from_string(ODD[name], bos_token="<s>", eos_token="</s>")) == {}


def test_the_number_of_arguments_is_a_slot():
    """The format names it, and what is written from it has the right number."""
    fmt = ChatTemplate.from_string(ODD["the number of arguments on the name's line"]).format

    assert fmt.tools.function[2:4] == (" ", Slot.COUNT)


def test_a_call_that_opens_reasoning_which_nothing_closes():
    """Calls without reasoning are after its opener, content is not."""
    source = composed(CHATML, Thoughts(start="<think>", end=""), TAGS).replace("thought -%}", "true -%}")
    source = source.replace(
        "{%- if said -%}", "{%- if not message.tool_calls -%}</think>{%- endif -%}{%- if said -%}", 1
    )
    found = lost(ChatTemplate.from_string(source, eos_token="</s>"))

    assert {label.partition(",")[0] for label in found} <= {"content and call", "all"}  # Content is in reasoning there.


def test_calls_that_are_misread_are_warned_of():
    """Where a number of calls is in the section's opener, three calls are not read; the format says so."""
    calls = replace(TAGS, start="<calls n=«message.tool_calls | length»>", end="</calls>")
    with pytest.warns(FormatWarning, match="three calls: what the template writes is not read back"):
        _ = ChatTemplate.from_string(composed(CHATML, TIGHT, calls)).format


def test_parts_that_a_template_writes_as_they_are_hold_no_reasoning():
    """A word of JSON that looks like a place for reasoning is none where the list of parts is printed."""
    source = (
        "{%- for m in messages -%}<|{{ m.role }}|>"
        "{%- if m.tool_calls -%}{{ {'thought': '', 'calls': m.tool_calls | map(attribute='function') | list} | tojson }}"
        "{%- else -%}{{ m.content }}{%- endif -%}<|end|>{%- endfor -%}"
        "{%- if tools -%}{{ tools | tojson }}{%- endif -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
    )

    assert not ChatTemplate.from_string(source).capabilities.reasoning_field
