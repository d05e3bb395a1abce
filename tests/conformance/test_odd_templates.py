"""Templates with one oddity each that was once misread: the answers are read back, or the format reports the loss.

Those without a loss are in `tests/corpus/odd.jsonl`; `escapes` marks templates that escape characters of values, whole
arguments, or their own markers.
"""

from __future__ import annotations

import json

import pytest
from answers import TOOLS, lost
from cases import case_rows, cases
from composed.composition import composed
from composed.parts import FRAMES, JSON, NAME, Calls, Thoughts
from lexing import remainder_of
from recipes import ANALYSIS
from splitting import fed

from unrender import ChatTemplate
from unrender.errors import FormatWarning
from unrender.format import ToolMode
from unrender.verify import Verdict, verify

ROWS = case_rows(ANALYSIS.with_name("odd.jsonl"))
ODD = {row["why"]: row["template"] for row in ROWS}
CHATML = FRAMES["chatml"]
SHOWN = (
    "{%- for m in messages -%}{%- if loop.first and tools -%}<|tools|>{{ tools | tojson }}{%- endif -%}"
    "<|{{ m.role }}|>{{ m.content or '' }}CALLS<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""A template with the placeholder `CALLS` for the calls of a message `m`."""
TAGS = Calls(call="<call>" + NAME + " " + JSON + "</call>")
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.mark.few(10)
@pytest.mark.parametrize("name", ODD)
def test_what_an_odd_template_writes_is_read_back(name):
    """The answers are read back without a warning, so the format claims to support them."""
    assert lost(ChatTemplate.from_string(ODD[name], bos_token="<s>", eos_token="</s>")) == {}


def test_a_thought_that_only_the_prompt_begins():
    """If the history shows only the end of reasoning, the text after the prompt is read and generated as reasoning."""
    source = composed(CHATML, Thoughts(end="\n</think>\n\n", prefill="<think>\n"), TAGS)
    template = ChatTemplate.from_string(source, eos_token="</s>")
    report = verify(template, samples=1, only=["reasoning and content", "content", "later turns", "grammars"])

    assert (template.format.reasoning.start, template.format.reasoning.end) == ("<think>\n", "\n</think>")
    assert (template.analysis.diagnostics, report.failed) == ((), ())


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("name", [row["why"] for row in ROWS if row.get("escapes")])
def test_escaped_values_are_generated(name):
    """Grammars generate values that are read back, and accept the template's own output."""
    report = verify(ChatTemplate.from_string(ODD[name]), samples=2, only=["strings", "objects", "arrays", "grammars"])

    assert report.failed == ()
    assert {found.verdict for found in report.findings if found.capability == "strings"} == {Verdict.PASSED}


@pytest.mark.slow
def test_calls_that_are_refused_without_their_results_pass():
    """Verification adds results to calls that the template would otherwise reject."""
    report = verify(ChatTemplate.from_string(ODD["calls that are refused without their results"]), samples=1)

    assert report.failed == ()
    assert {found.verdict for found in report.findings if found.capability == "parallel tool calls"} == {Verdict.PASSED}


@pytest.mark.parametrize("name", ["layout alone ends a turn", "a prompt that ends inside its header"])
@cases
def test_layout_before_the_end_is_allowed(name, text, asked):
    """A model writes the layout before the end of turn. Engines remove at most the token after it."""
    template = ChatTemplate.from_string(ODD[name])
    turn = template.prepare(HELLO, tools=TOOLS if "tool_choice" in asked else None, **asked)
    layout = template.format.turn.end.partition("#")[0]
    answer = remainder_of(turn)

    assert answer.refused([template.format.turn.unasked + text + layout, text]) == []


def test_keys_that_a_template_sorts_are_generated_sorted():
    """Objects inside arguments are sorted, too. No grammar allows the schema's order."""
    properties = {"b": {"type": "object", "properties": {"d": {"const": 1}, "c": {"const": 2}}}, "a": {"const": 3}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    called = (
        "{%- for call in m.tool_calls or [] -%}<call>{{ call.function | tojson(sort_keys=true) }}</call>{%- endfor -%}"
    )
    turn = ChatTemplate.from_string(
        SHOWN.replace("CALLS", called).replace("tools | tojson", "tools | tojson(sort_keys=true)")
    ).prepare(HELLO, tools=[tool], tool_choice="required")
    answer = remainder_of(turn)
    call, other = (
        '<call>{"arguments": ' + text + ', "name": "f"}</call>'
        for text in ('{"a": 3, "b": {"c": 2, "d": 1}}', '{"a": 3, "b": {"d": 1, "c": 2}}')
    )

    assert answer.refused([call, other]) == [other]


def test_a_call_that_opens_reasoning_which_nothing_closes():
    """A call without reasoning follows the start marker of reasoning, but content doesn't."""
    source = composed(CHATML, Thoughts(start="<think>", end=""), TAGS).replace("thought -%}", "true -%}")
    source = source.replace(
        "{%- if said -%}", "{%- if not message.tool_calls -%}</think>{%- endif -%}{%- if said -%}", 1
    )
    found = lost(ChatTemplate.from_string(source, eos_token="</s>"))

    assert {label.partition(",")[0] for label in found} <= {"content and call", "all"}  # Content inside reasoning.


@cases
def test_what_is_misread_is_warned_of(why, template, shape):
    """If the template's output is ambiguous, the format warns."""
    with pytest.warns(FormatWarning, match=f"^{shape}: what the template writes is not read back"):
        _ = ChatTemplate.from_string(template).format


def test_a_prompt_without_its_words_begins_no_reasoning():
    """If thinking is off, and only text in the prompt starts reasoning, grammar and parser allow content alone."""
    source = (
        "{%- for m in messages -%}<|{{ m.role }}|>{%- if m.reasoning_content -%}{{ m.reasoning_content + '\\n[FINAL]\\n' }}{%- endif -%}"
        "{{ m.content }}<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>"
        "{%- if enable_thinking is not defined or enable_thinking -%}{{ 'My steps:\\n' }}{%- endif -%}{%- endif -%}"
    )
    template = ChatTemplate.from_string(source)
    asked = [{"role": "user", "content": "Hello"}]
    thinking, silent = (template.prepare(asked, enable_thinking=value) for value in (True, False))

    assert "FINAL" in thinking.constraint("llguidance").grammar
    assert "FINAL" not in silent.constraint("llguidance").grammar
    assert thinking.parse("R\n[FINAL]\nC").content == "C"
    for seed in range(8):
        assert silent.parse(silent.sample(seed)).reasoning == ""


@cases
def test_an_answer_is_read(why, template, text, content, calls):
    """An answer in an odd syntax has the expected content and calls, whole and by character.

    A value never includes the next call, a quotation mark ends a value if the call continues, and the model may write
    separators that the template drops. A tool's name with JSON that doesn't fit the tool is text. A marker that the
    history misspells is read as the token from training, too.
    """
    turn = ChatTemplate.from_string(template).prepare(HELLO, tools=TOOLS)
    for chunks in ([text], list(text)):
        parser = turn.parser()
        fed(parser, chunks)
        found = [[call.name, json.loads(call.arguments_json)] for call in parser.message.tool_calls]
        assert (parser.message.content, found) == (content, calls)


PROMPTED = (
    "{%- if tools -%}<|system|>{{ tools | tojson }}\nEXAMPLE<|end|>{%- endif -%}"
    "{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}<|end|>{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)


@cases
def test_calls_are_as_in_the_prompts_own_example(example, answer):
    """If the template writes no calls, the syntax comes from its example, and a warning says so."""
    template = ChatTemplate.from_string(PROMPTED.replace("EXAMPLE", example))
    with pytest.warns(FormatWarning, match="as in the prompt's own example"):
        _ = template.format
    message = template.prepare(HELLO, tools=TOOLS).parse(answer)

    assert [(call.name, json.loads(call.arguments_json)) for call in message.tool_calls] == [
        ("get_weather", {"text": "Rome"})
    ]
    assert message.content in ("", "Well.")


@cases
def test_a_prompt_that_shows_no_single_example(example):
    """Without an example in the prompt, there is no call syntax."""
    assert ChatTemplate.from_string(PROMPTED.replace("EXAMPLE", example)).format.tools.mode is ToolMode.NONE
