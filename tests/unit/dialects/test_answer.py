"""Tests of an answer's grammar in each dialect: requests are enforced, and losses are reported."""

from __future__ import annotations

import json
from functools import partial

import pytest
from cases import cases
from engines import converted_reader, gbnf, installed, lark, lark_reader, structural_tag
from splitting import fed

from unrender import GrammarError, Parser, Turn
from unrender.errors import SchemaWarning
from unrender.format import Arguments, CallSyntax, Format, Reasoning, ReasoningMode, Slot, TurnTexts
from unrender.types import Request, Tool

CALLS = CallSyntax(
    call_start="<call>",
    call_end="</call>",
    separator="\n",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
)
FORMAT = Format(
    tools=CALLS,
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>"),
    turn=TurnTexts(end="<end>", reasoning_to_content="\n", content_to_tools="\n", reasoning_to_tools="\n"),
)
TOOLS = tuple(
    Tool(name=name, parameters={"properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]})
    for name in "fg"
)
F = '<call>{"name": "f", "arguments": {"n": 1}}</call>'
G = F.replace('"f"', '"g"')
INDENTED = F.replace('{"n": 1}', json.dumps({"n": 1}, indent=4))
ONE = {"properties": {"a": {"const": 1}}, "required": ["a"]}

pytestmark = [pytest.mark.engine, pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")]


def turn_of(format=FORMAT, prefill="", tools=TOOLS, **request):
    return Turn(prompt="", format=format, prefill=prefill, request=Request(tools=tools, **request))


def accepted(texts, prefill="", **request):
    accepts = lark_reader(turn_of(prefill=prefill, **request).constraint("llguidance").grammar)
    return [text for text in texts if accepts(text)]


@pytest.mark.parametrize(
    ("request_", "right", "wrong"),
    [
        ({}, ["Hi", F, f"Hi\n{F}", f"{F}\n{G}", "<think>a</think>\nHi", f"<think>a</think>\n{G}", INDENTED], []),
        ({}, [], [F.replace('"f"', '"h"'), F.replace('"n": 1', ""), F.replace("1", "10"), F.replace("1", '"1"')]),
        ({"tool_choice": "none"}, ["Hi"], [f"<think>a</think>{F}"]),
        ({"tool_choice": "required"}, [F, f"{G}\n{F}", f"<think>a</think>\n{F}"], ["Hi", ""]),
        ({"tool_choice": "named", "named_tool": "g"}, [G], [F]),
        ({"parallel_tool_calls": False}, [F], [f"{F}\n{G}"]),
        ({"response_schema": ONE}, ['{"a": 1}', '<think>free { text</think>\n{"a": 1}'], ["Hi", '{"a": 2}']),
    ],
    ids=["auto", "wrong arguments", "none", "required", "named", "one at a time", "a response schema"],
)
def test_a_request_is_enforced(request_, right, wrong):
    """The grammar enforces the parts of the answer, the called tools and their arguments. The text of reasoning is free."""
    assert accepted([*right, *wrong], **request_) == right


def test_an_answer_in_json_may_be_a_call_instead():
    """With tools and a response schema, an answer is either JSON or calls, without other text."""
    texts = ['{"a": 1}', F, f"{F}\n{G}", f"<think>a</think>\n{G}", '{"a": 1}\n' + F, f"Hi\n{F}", f'{F}\n{{"a": 1}}']

    assert accepted(texts, response_schema=ONE) == texts[:4]
    assert accepted(texts, response_schema=ONE, tool_choice="none") == texts[:1]
    assert accepted(texts, response_schema=ONE, tool_choice="required") == texts[1:4]
    for text in texts[:4]:
        parser = Parser(FORMAT, Request(tools=TOOLS, response_schema=ONE), strict=True)
        fed(parser, [text])
        assert bool(parser.message.content) == text.startswith("{")


@cases
def test_generation_starts_where_the_prompt_ends(prefill, texts):
    """The grammar continues the prefill: open reasoning must be closed, and prefilled content goes on."""
    assert accepted(["<think>again</think>\nHi", *texts], prefill) == texts


@pytest.mark.parametrize(
    ("prefill", "choice"),
    [
        (":", "required"),
        ("<call>nobody", "required"),
        ("<call>nobody", "auto"),
        ("<end>", "auto"),
        ("x" * 15_000 + "<call>", "auto"),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_after_a_beginning_that_is_not_written_the_answer_goes_on_as_it_is_read(prefill, choice, monkeypatch):
    """If no answer begins with the prefill, a warning says that the prefill isn't enforced, and samples can still be parsed."""
    monkeypatch.setattr("unrender.dialects.remainder.MAX_DOCUMENT", 10_000)  # The bound itself takes seconds.
    request = Request(tools=TOOLS, tool_choice=choice)
    answer = Turn(prompt="", format=FORMAT, request=request, prefill=prefill)
    for write in (partial(gbnf, answer), partial(lark, answer), partial(structural_tag, answer)):
        with pytest.warns(SchemaWarning, match=r"prompt: the prefill .* is not enforced: no answer of the format"):
            write()
    for seed in range(5):
        parser = Parser(FORMAT, request, prefill=prefill, strict=len(prefill) < 2)
        parser.finish(text=answer.sample(seed))

    assert parser.message.tool_calls or choice == "auto"


def test_tools_must_be_known_by_name():
    """The grammar can't be written if the tools' names are unknown."""
    with pytest.raises(GrammarError, match="needs the names of the tools"):
        turn_of(tools=None).constraint("llguidance")


def test_a_loss_is_a_warning_that_names_tool_path_and_keyword():
    """A keyword that can't be enforced widens only its own tool, and the request still works."""
    awkward = Tool(name="h", parameters={"properties": {"a": {"type": "array", "uniqueItems": True}}})
    answer = turn_of(tools=(*TOOLS, awkward))

    with pytest.warns(SchemaWarning, match="tool 'h': #/properties/a: uniqueItems is not enforced") as warned:
        text = answer.constraint("llama.cpp").grammar

    assert '"f' in text
    assert len(warned) == 1


def test_long_texts_are_not_counted():
    """A length that llama.cpp can't count isn't enforced."""
    tool = Tool(name="f", parameters={"properties": {"a": {"type": "string", "maxLength": 10_000}}})

    with pytest.warns(SchemaWarning, match="at most 1000 repetitions can be counted"):
        turn_of(tools=(tool,)).constraint("llama.cpp")


def test_lazy_gbnf_serves_from_the_first_marker_too():
    """A lazy grammar also accepts text that begins at a trigger, even if reasoning was open."""
    lazy = turn_of(prefill="<think>")
    eager = turn_of(prefill="<think>", tool_choice="required")

    assert lazy.constraint("llama.cpp").triggers
    assert converted_reader(lazy.constraint("llama.cpp").grammar)(F)
    assert not eager.constraint("llama.cpp").triggers
    assert not converted_reader(eager.constraint("llama.cpp").grammar)(F)


@pytest.mark.parametrize("block", ["<think></think>", "<think>\n</think>\n\n", "</think>"])
def test_a_prompt_may_close_reasoning_in_its_own_way(block):
    """A prompt may write an empty reasoning block in any way. The answer continues after it, with or without the joint."""
    reasoning = Reasoning(mode=ReasoningMode.FORCED_OPEN, start="<think>\n", end="\n</think>")
    answer = Turn(
        prompt="",
        format=Format(turn=TurnTexts(reasoning_to_content="\n\n"), reasoning=reasoning),
        request=Request(),
        prefill=block,
    )

    accepts = lark_reader(answer.constraint("llguidance").grammar)

    assert (accepts("Hi"), accepts("\n\nHi"), accepts("<think>\nHm\n</think>\n\nHi")) == (True, True, False)


@pytest.mark.parametrize("order", ["nzot", "notz", "no", "zt", "z", ""])
def test_arguments_may_stand_in_both_orders(order):
    """Optional arguments are accepted in the schema's order and in sorted order, whatever their types."""
    written = {"n": 'n="a"', "z": 'z="b"', "o": "o=true", "t": 't=["x"]'}
    properties = {
        "n": {"type": "string"},
        "z": {"type": "string"},
        "o": {"type": "boolean"},
        "t": {"type": "array", "items": {"type": "string"}},
    }
    code = CallSyntax(
        section_start="<calls>",
        section_end="</calls>",
        function=(Slot.NAME, "(", Slot.ARGUMENTS, ")"),
        arguments=Arguments(entry=(Slot.KEY, "=", Slot.VALUE), separator=", "),
    )
    tools = (Tool(name="f", parameters={"type": "object", "properties": properties, "additionalProperties": False}),)
    accepts = lark_reader(turn_of(Format(tools=code), tools=tools).constraint("llguidance").grammar)

    assert accepts("<calls>f(" + ", ".join(written[key] for key in order) + ")</calls>")
