"""Formats into response templates, whose patterns are tried on what a model writes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unrender.errors import ExportError
from unrender.export.response_template import Target, response_template_of
from unrender.format import (
    Arguments,
    CallSyntax,
    Codec,
    Content,
    ContentMode,
    Envelope,
    Format,
    Reasoning,
    ReasoningMode,
    Slot,
    Spelling,
    Strings,
    ToolMode,
    TurnTexts,
    Typing,
)

FORMATS = Path(__file__).resolve().parents[2] / "formats"
TURN = TurnTexts(headers=("<|assistant|>",), end="<|end|>\n")
THINKING = Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>\n", end="\n</think>")
OBJECT = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    call_start="<call>\n",
    call_end="\n</call>",
    separator="\n",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",)),
)
TAGGED = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    section_start="<calls>\n",
    section_end="</calls>",
    function=("<fn=", Slot.NAME, ">\n", Slot.ARGUMENTS, "</fn>\n"),
    arguments=Arguments(
        entry=("<arg=", Slot.KEY, ">\n", Slot.VALUE, "\n</arg>\n"),
        codec=Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA),
    ),
)


def fields(format: Format, **options: Any) -> dict[str, Any]:
    return dict(response_template_of(format, **options).template["fields"])


def calls(tools: CallSyntax, turn: TurnTexts = TURN) -> dict[str, Any]:
    return dict(fields(Format(turn=turn, tools=tools))["tool_calls"])


def kept(name: str) -> Format:
    return Format.from_json((FORMATS / f"{name}.json").read_text(encoding="utf-8"))


def test_the_answer_begins_after_any_header() -> None:
    """All headers are anchors, a single one as plain text."""
    one, two = (response_template_of(Format(turn=TurnTexts(headers=it))).template for it in (("<a>",), ("<a>", "<b>")))

    assert (one["start_anchor"], two["start_anchor"]) == ("<a>", ["<a>", "<b>"])


def test_without_a_header_the_prompt_is_no_part_of_the_answer() -> None:
    """A format that knows no header gets an anchor at the prompt's end."""
    assert response_template_of(Format()).template["start_anchor_pattern"] == r"\Z"


@pytest.mark.parametrize(("target", "name"), [("transformers", "reasoning_content"), (Target.VLLM, "thinking")])
def test_reasoning_has_the_name_that_the_target_reads(target: str, name: str) -> None:
    """The field of reasoning is named after who reads the response template."""
    assert list(fields(Format(turn=TURN, reasoning=THINKING), target=target)) == [name, "content"]


def test_an_unknown_target_is_an_error() -> None:
    """A target that nobody reads is refused with those there are."""
    with pytest.raises(ExportError, match=r"target: expected one of \['transformers', 'vllm'\], found 'other'"):
        response_template_of(Format(), target="other")


def test_layout_beside_reasoning_is_taken_as_far_as_it_is_written() -> None:
    """Of line breaks beside verbatim text only those of the marker are taken, and its text is not stripped."""
    field = fields(Format(turn=TURN, reasoning=THINKING))["reasoning_content"]

    opened = re.match(field["open_pattern"], "<think>\n\nHm")
    closed = re.search(field["close_pattern"], "Hm\n\n</think>")

    assert opened
    assert opened.end() == len("<think>\n")
    assert closed
    assert closed.start() == len("Hm\n")
    assert field["content_args"] == {"strip": False}


def test_a_closer_that_nothing_opened_closes_no_reasoning() -> None:
    """An answer may begin with the closer alone; later the closer is text."""
    pattern = fields(Format(turn=TURN, reasoning=THINKING))["reasoning_content"]["open_pattern"]

    assert re.search(pattern, "\n</think>Hi")
    assert not re.search(pattern, "Hi </think>")


def test_reasoning_begins_where_the_answer_does() -> None:
    """Its opener is matched after layout at the beginning; in content it is text, since what was read would be replaced."""
    pattern = fields(Format(turn=TURN, reasoning=THINKING))["reasoning_content"]["open_pattern"]

    assert re.search(pattern, "\n\n<think>\nHm").end() == len("\n\n<think>\n")
    assert not re.search(pattern, "Write <think> first")
    assert not re.compile(pattern).search("</think>\n\n<think> b", len("</think>"))


def test_reasoning_begins_where_a_message_of_the_answer_does() -> None:
    """Where an answer is made of messages, each with its header, reasoning may follow any header, and nothing else."""
    pattern = fields(kept("channels"))["reasoning_content"]["open_pattern"]

    assert re.match(pattern, "<|channel|>analysis<|message|>Hm")
    assert re.search(pattern, "Hm<|end|><|assistant|><|channel|>analysis<|message|>So")
    assert not re.search(pattern, "a <|channel|>analysis<|message|> b")


def test_a_call_ends_reasoning_that_holds_calls() -> None:
    """Where no end of reasoning is written before a call, the call is not read as reasoning."""
    pattern = fields(kept("calls-in-reasoning"))["reasoning_content"]["close_pattern"]
    text = 'Hm <|use|> so\n<|use|>[{"name": "f"'

    assert re.search(pattern, text).span() == (text.index("\n"), text.index("\n"))


def test_the_joint_is_not_taken_after_empty_reasoning_of_another_form() -> None:
    """Where no reasoning is written in a way of its own, what is content begins at once; else after the joint."""
    turn = replace(TURN, reasoning_to_content="\n")
    own, same = (
        fields(Format(turn=turn, reasoning=replace(THINKING, empty=empty)))["reasoning_content"]["close_pattern"]
        for empty in ("<think></think>", "<think>\n\n</think>")
    )

    assert re.sub(own, "|", "<think></think>\n Hi") == "<think>|\n Hi"
    assert re.sub(own, "|", "<think>\nHm\n</think>\n\nHi") == "<think>\nHm|\nHi"
    assert re.sub(own, "|", "<think>\n</think>\nHi") == "<think>|Hi"
    assert re.sub(same, "|", "<think>\n\n</think>\n\nHi") == "<think>\n|\nHi"


def test_content_ends_with_the_turn_and_its_wrapper() -> None:
    """Wrappers and ends of turn, the end-of-sequence token included, close content and are not part of it."""
    wrapped = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<say>", end="</say>")
    pattern = fields(Format(turn=TURN, content=wrapped).ended_by("</s>"))["content"]["close_pattern"]

    assert re.sub(pattern, "", "<say>Hello</say><|end|>\n</s>") == "Hello"


def test_reasoning_without_an_opener_is_what_belongs_to_no_other_field() -> None:
    """With a delimiter alone, content is opened and reasoning is not, and the omission is told."""
    delimited = Reasoning(mode=ReasoningMode.DELIMITER, end="\n[FINAL]")
    exported = response_template_of(Format(turn=TURN, reasoning=delimited))

    assert "open_pattern" not in exported.template["fields"]["reasoning_content"]
    assert re.search(exported.template["fields"]["content"]["open_pattern"], "So\n[FINAL]Hi")
    assert "reasoning has no opener" in exported.omissions[0].what


def test_a_json_call_is_read_whole_and_taken_apart() -> None:
    """A call that is a JSON object may have its keys in any order: the transform names them."""
    field = calls(OBJECT)

    assert (field["content"], field["repeats"]) == ("json", True)
    assert field["transform"]["function"] == {"name": "{content.name}", "arguments": "{content.arguments}"}
    assert re.match(field["open_pattern"], '\n\n<call>{ "name": "f", "id": 1, "arguments" : {')
    assert re.search(field["close_pattern"], "}\n</call>\n")


@pytest.mark.parametrize(
    "text",
    ['{"name": "x"}', 'a {"name": " b', '{"name": "x", "of": {"parameters": {}}}', '{"name": "x"} {"parameters": {}}'],
)
def test_json_without_arguments_is_content(text: str) -> None:
    """JSON that begins as a call does and has no arguments is none: a transform would lose the whole message over it."""
    pattern = fields(kept("json-bare"))["tool_calls"]["open_pattern"]

    assert re.search(pattern, 'a {"name": "f", "parameters": {"x": 1}}')
    assert not re.search(pattern, text)


def test_a_call_is_opened_where_its_arguments_lie_deeper() -> None:
    """The key of the arguments is looked for in the object that it is in."""
    function = ('{"type": "function", "function": {"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}}")
    envelope = Envelope(name_field=("function", "name"), args_field=("function", "arguments"))
    pattern = calls(replace(OBJECT, function=function, envelope=envelope))["open_pattern"]

    assert re.search(pattern, '<call>{"type": "function", "function": { "name": "f", "arguments": {}}}')
    assert not re.search(pattern, '<call>{"type": "function", "arguments": {}}')


def test_a_list_without_arguments_is_content() -> None:
    """Where nothing but JSON makes a list one of calls, its first element has arguments."""
    tools = replace(OBJECT, section_start="[", section_end="]", call_start="", call_end="", separator=", ")
    envelope = Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True)
    pattern = calls(replace(tools, envelope=envelope))["open_pattern"]

    assert re.search(pattern, 'a [ {"name": "f", "arguments": {}}]')
    assert not re.search(pattern, 'a [{"name": "f"}]')


@pytest.mark.parametrize(
    ("name", "text", "end"),
    [
        ("json-tags", '{"name": "f", "arguments": {"a": "b </tool_call> c"}}\n</tool_call>', "\n</tool_call>"),
        ("tag-json", '{"a": "b </fn> c"}</fn>', "</fn>"),
        ("bracket-id", '{"a": "b [CALL]f[ID]1[ARGS] c"}[CALL]', "[CALL]"),
        ("bare-keys", '{a:<|"|>b <call|> c<|"|>}<call|>', "<call|>"),
        ("tools-only", '[{"a": "b <|/act|> c"}]<|/act|>', "<|/act|>"),
        ("json-bare", '{"name": "f", "parameters": {"a": "b <|end|> c"}} <|end|>', " <|end|>"),
    ],
)
def test_what_ends_json_is_after_its_bracket(name: str, text: str, end: str) -> None:
    """A closer inside a JSON string ends no call; layout before it does not matter."""
    pattern = fields(kept(name))["tool_calls"]["close_pattern"]

    assert re.search(pattern, text).start() == len(text) - len(end)


def test_a_call_without_json_ends_anyhow() -> None:
    """Where a call without arguments has no JSON at all, its closer does not wait for a bracket."""
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_JSON,
        function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>"),
        arguments=Arguments(when_empty=""),
    )

    assert re.search(calls(tools)["close_pattern"], "</fn>")


def test_the_next_call_ends_one_only_where_there_is_a_next() -> None:
    """Where the template writes one call, what begins another is an argument."""
    text = '{"a": "{} to=functions.b"}<|call|>'
    pattern = fields(kept("channels"))["tool_calls"]["close_pattern"]

    assert re.search(pattern, text).start() == text.index("<|call|>")


def test_a_json_list_is_transformed_element_by_element() -> None:
    """Calls in one JSON list are one region, ids included."""
    field = fields(kept("json-array"))["tool_calls"]

    assert field["transform_each"] is True
    assert field["transform"]["id"] == "{id}"
    assert re.match(field["open_pattern"], '[CALLS][{"name"')


def test_brackets_in_json_do_not_close_a_list() -> None:
    """Where JSON alone closes the list of calls, it ends with the turn."""
    pattern = fields(kept("json-wrapped"))["tool_calls"]["close_pattern"]
    text = '[{"id": "a"}, {"id": {}}]}<|end|>'

    assert re.search(pattern, text).start() == text.index("}<|end|>")


def test_the_name_is_captured_before_tagged_arguments() -> None:
    """The opener captures the name, with or without the section's start; the values are read verbatim."""
    field = calls(TAGGED)
    entry = re.search(field["content_args"]["tag_pattern"], "<arg=a>\n\n x\n\n</arg>\n", re.DOTALL)

    assert {re.match(field["open_pattern"], text)["name"] for text in ("<calls>\n<fn=f>", "\n<fn=f>\n")} == {"f"}
    assert entry
    assert (entry["key"], entry["value"]) == ("a", "\n x\n")
    assert field["content_args"]["value_parser"] == {"name": "text", "args": {"strip": False}}


def test_what_ends_a_section_is_no_content() -> None:
    """The end of a section closes content where no call is open."""
    pattern = fields(Format(turn=TURN, tools=TAGGED))["content"]["close_pattern"]

    assert re.sub(pattern, "", "\n</calls>") == ""


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("bracket-id", "[CALL]f[ID]abc[ARGS]", {"name": "f", "id": "abc"}),
        ("namespace-counter", "<|call_begin|>functions.f:0<|args_begin|>", {"name": "f", "id": "functions.f:0"}),
        ("counted-tags", "<call_1>f|", {"name": "f"}),
    ],
)
def test_ids_are_captured_where_the_format_writes_them(name: str, text: str, found: dict[str, str]) -> None:
    """Names and ids are captured out of the opener, and a counter is skipped."""
    match = re.match(fields(kept(name))["tool_calls"]["open_pattern"], text)

    assert match
    assert match.groupdict() == found


def test_content_is_no_call_to_a_function_of_its_name() -> None:
    """Where calls and content begin alike, the opener of calls leaves content alone."""
    pattern = fields(kept("recipient"))["tool_calls"]["open_pattern"]

    assert re.match(pattern, ">>>f\n{}")
    assert not re.match(pattern, ">>>all\nHi")


def test_other_spellings_are_read() -> None:
    """A marker that models misspell is matched in each of its spellings."""
    format_ = Format(turn=TURN, reasoning=THINKING, spellings=(Spelling(marker="</think>", others=("</thought>",)),))

    assert re.search(fields(format_)["reasoning_content"]["close_pattern"], "Hm\n</thought>")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("json-name-key", "the function's name is a key of the JSON"),
        ("python-calls", "they are written as code"),
        ("python-dict", "the arguments are a Python dict, not JSON"),
        ("tagged-key", "nothing but its name tells a call from text"),
        ("name-first", "nothing but its name tells a call from text"),
        ("calls-on-lines", "nothing but its name tells a call from text"),
    ],
)
def test_what_cannot_be_expressed_is_refused(name: str, reason: str) -> None:
    """A call syntax that no field can read raises an error that says why."""
    with pytest.raises(ExportError, match=f"tool calls: .*{reason}"):
        response_template_of(kept(name))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("tagged-raw", "typed by the tools' schemas"),
        ("tagged-flag", "types written beside values are not read"),
        ("tagged-repr", "lists and objects are Python literals"),
        ("bare-keys", "keys that are not words"),
    ],
)
def test_what_is_left_out_is_told(name: str, what: str) -> None:
    """What a response template says only in part is an omission."""
    assert any(what in omission.what for omission in response_template_of(kept(name)).omissions)


@pytest.mark.parametrize("path", sorted(FORMATS.glob("*.json")), ids=lambda path: path.stem)
def test_servers_find_what_they_ask_for(path: Path) -> None:
    """For vLLM and SGLang there are no fields but theirs, verbatim text stays text, and calls have an opener."""
    try:
        template = response_template_of(kept(path.stem), target="vllm").template
    except ExportError:
        pytest.skip("refused, as another test shows")
    regions = template["fields"]
    texts = [regions[name] for name in ("thinking", "content") if name in regions]

    assert set(regions) <= {"thinking", "content", "tool_calls"}
    assert set(template["defaults"]) == {"role"}
    assert [set(field) & {"transform", "join"} for field in texts] == [set()] * len(texts)
    assert "open_pattern" in regions.get("tool_calls", {"open_pattern": ""})


def test_arguments_between_mere_white_space_are_refused():
    """A response template ends a value at a marker; a line break alone ends none."""
    arguments = Arguments(entry=("  ", Slot.KEY, ": ", Slot.VALUE, "\n"))
    tools = CallSyntax(
        mode=ToolMode.TAG_WITH_TAGGED,
        call_start="<call>",
        call_end="</call>",
        function=(Slot.NAME, "\n", Slot.ARGUMENTS),
        arguments=arguments,
    )

    with pytest.raises(ExportError, match="there is only white space between two arguments"):
        response_template_of(Format(turn=TurnTexts(headers=("<a>",), end="<end>"), tools=tools))
