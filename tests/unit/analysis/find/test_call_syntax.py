"""Answers with one and two calls in, the call syntax out: each clause with a text that needs it."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from unrender.analysis.ask.answers import Answers, WrittenCall
from unrender.analysis.ask.probes import CONTENT, KEYS, NAMES, NUMBERS, REASONING, make_calls
from unrender.analysis.find.call_syntax import Known, find_mode, find_tools
from unrender.analysis.find.reasoning import ReasoningFinding
from unrender.analysis.find.turn_frame import TurnFrame
from unrender.format import Arguments, Content, ContentMode, Envelope, Reasoning, ReasoningMode, Slot, ToolMode

C, R, NAME = CONTENT, REASONING, NAMES[0]
CALLS = make_calls(2)
COUNT = {CALLS[1].name: 1}
THINK = ReasoningFinding(
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<think>", end="</think>", empty="<think></think>"),
    to_content="\n",
)
SAY = Content(mode=ContentMode.ALWAYS_WRAPPED, start="<say>", end="</say>")
WITH_JSON, TAGGED, NATIVE = ToolMode.TAG_WITH_JSON, ToolMode.TAG_WITH_TAGGED, ToolMode.JSON_NATIVE
FUNCTION = (Slot.NAME, ":", Slot.ARGUMENTS)
PLAIN = {"mode": WITH_JSON, "call_start": "<c>", "call_end": "</c>", "function": FUNCTION}


def arguments(call):
    return json.dumps(dict(call.arguments))


def named(call):
    return f"{call.name}:{arguments(call)}"


def native(call):
    return json.dumps({"name": call.name, "arguments": dict(call.arguments), "id": call.id})


def written(
    write=named, *, section=("", ""), call=("<c>", "</c>"), separator="", lead="", said="", thought=None, end="<end>"
):
    """Return the answers of a template that writes calls so; `said` is after content, `thought` after reasoning."""

    def row(calls):
        return section[0] + separator.join(call[0] + write(item) + call[1] for item in calls) + section[1]

    one = row(CALLS[:1])
    return {
        "content": f"{C}{end}",
        "call": f"{lead}{one}{end}",
        "two_calls": f"{lead}{row(CALLS)}{end}",
        "empty_call": f"{lead}{row(make_calls(1, 0))}{end}",
        "mixed": f"{C}{said}{one}{end}",
        "reasoned_call": None if thought is None else f"<think>{R}</think>{thought}{one}{end}",
    }


ONE = written()["call"].removesuffix("<end>")
"""One call, as most templates here write it."""


def find(texts, *, turn_end="<end>", content=None, reasoning=None, appended="", header="<bot>"):
    """Return what is found in answers; the call of one argument is the one with many values as well."""
    answers = Answers(**texts)
    many = [(dict(CALLS[0].arguments), answers.call)]
    known = Known(
        reasoning=reasoning or ReasoningFinding(reasoning=Reasoning()), content=content or Content(), turn_end=turn_end
    )
    frame = TurnFrame(lead=header, header=header, appended=appended)
    return find_tools(frame, answers, find_mode(answers.call), WrittenCall(many=many), known)


def changed(value, *without):
    """Return the fields that are not the default."""
    names = [item for item in fields(value) if item.name not in without]
    return {
        item.name: getattr(value, item.name)
        for item in names
        if getattr(value, item.name) not in (item.default, {}) and item.name != "tools"
    }


def found(texts, **known):
    """Return what a call syntax has, and what else was found of calls."""
    finding = find(texts, **known)
    return changed(finding.tools), changed(finding, "rules", "many")


SYNTAXES = {
    "a marker for each": (written(), {}, PLAIN, {"end": "<end>"}),
    "a section, and lines": (
        written(section=("<s>\n", "\n</s>"), separator="\n"),
        {},
        PLAIN | {"section_start": "<s>\n", "section_end": "\n</s>", "separator": "\n"},
        {"end": "<end>"},
    ),
    "calls on lines of their own": (
        written(call=("\n<c>", "</c>\n")),
        {},
        PLAIN | {"separator": "\n\n", "section_end": "\n"},
        {"end": "<end>", "start_to_tools": "\n", "content_to_tools": "\n"},
    ),
    "calls on lines of a section": (
        written(section=("<s>", "</s>"), call=("\n<c>", "</c>")),
        {},
        PLAIN | {"section_start": "<s>\n", "section_end": "</s>", "separator": "\n"},
        {"end": "<end>"},
    ),
    "joints": (
        written(lead="\n", said="\n\n", thought=" "),
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>", "start_to_tools": "\n", "content_to_tools": "\n\n", "reasoning_to_tools": " "},
    ),
    "one call only": (
        written() | {"two_calls": None},
        {},
        PLAIN | {"parallel": False},
        {"end": "<end>"},
    ),
    "one call only, with an end of its own": (
        written(end="<stop>") | {"two_calls": None},
        {},
        PLAIN | {"parallel": False},
        {"end": "<stop>"},
    ),
    "one call only, on lines of its own, with an end of its own": (
        written(call=("<c>\n", "\n</c>"), end="<stop>") | {"two_calls": None},
        {},
        PLAIN | {"call_start": "<c>\n", "call_end": "\n</c>", "parallel": False},
        {"end": "<stop>"},
    ),
    "one call only, and nothing ends it": (
        written(end="") | {"two_calls": None},
        {"turn_end": ""},
        PLAIN | {"parallel": False},
        {},
    ),
    "one call only, without markers": (
        written(call=("", "")) | {"two_calls": None},
        {},
        {"mode": WITH_JSON, "function": FUNCTION, "parallel": False},
        {"end": "<end>"},
    ),
    "calls end otherwise than content": (
        written(end="</turn>") | {"content": f"{C}<end>"},
        {},
        PLAIN,
        {"end": "</turn>"},
    ),
    "a section and an end of its own": (
        written(section=("<s>", "</s>"), end="<stop>"),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "</s>"},
        {"end": "<stop>"},
    ),
    "a section on lines, and an end of its own": (
        written(section=("<s>", "\n</s>"), end="<stop>\n"),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "\n</s>"},
        {"end": "<stop>\n"},
    ),
    "a function's own marker does not end the turn": (
        written(call=("", "</f>"), separator="<bot>", end=""),
        {},
        {"mode": WITH_JSON, "separator": "<bot>", "function": (*FUNCTION, "</f>")},
        {},
    ),
    "a section that ends the turn": (
        written(section=("<s>", "</s>"), end=""),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "</s>"},
        {"end": "</s>"},
    ),
    "a section on a line ends the turn": (
        written(section=("<s>", "</s>\n"), end=""),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "</s>\n"},
        {"end": "</s>"},
    ),
    "words after a section do not end the turn": (
        written(section=("<s>", "</s> Done"), end=""),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "</s> Done"},
        {},
    ),
    "the last call's marker does not end the turn where no header shows that it does": (
        written(end=""),
        {"header": ""},
        PLAIN,
        {},
    ),
    "the last call's marker does not end the turn, as more may follow": (written(end=""), {}, PLAIN, {}),
    "a call's marker ends the turn where no other follows": (
        written(end="") | {"two_calls": None},
        {},
        {"mode": WITH_JSON, "call_start": "<c>", "function": FUNCTION, "parallel": False},
        {"end": "</c>"},
    ),
    "no end of turn is known": (
        written(section=("<s>", "</s>"), end="<stop>"),
        {"turn_end": ""},
        PLAIN | {"section_start": "<s>", "section_end": "</s><stop>"},
        {},
    ),
    "the conversation's end is not the turn's": (
        written(end="<end>Bye"),
        {"appended": "Bye"},
        PLAIN,
        {"end": "<end>"},
    ),
    "each call is a message of its own": (
        written(separator="<stop><bot>", end="<stop>"),
        {},
        PLAIN | {"call_end": "<stop>", "separator": "<bot>", "function": (*FUNCTION, "</c>")},
        {"end": "<stop>"},
    ),
    "a JSON list": (
        written(native, section=("[", "]"), call=("", ""), separator=", "),
        {},
        {
            "mode": NATIVE,
            "section_start": "[",
            "section_end": "]",
            "separator": ", ",
            "function": ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, ', "id": "', Slot.ID, '"}'),
            "envelope": Envelope(name_field=("name",), args_field=("arguments",), id_field=("id",), array_wrapped=True),
        },
        {"end": "<end>"},
    ),
    "JSON in markers": (
        written(native),
        {},
        {
            "mode": NATIVE,
            "call_start": "<c>",
            "call_end": "</c>",
            "function": ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, ', "id": "', Slot.ID, '"}'),
            "envelope": Envelope(name_field=("name",), args_field=("arguments",), id_field=("id",)),
        },
        {"end": "<end>"},
    ),
    "JSON after a marker and a word": (
        written(native, call=("<c>call ", "</c>")),
        {},
        {
            "mode": NATIVE,
            "call_start": "<c>call ",
            "call_end": "</c>",
            "function": ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, ', "id": "', Slot.ID, '"}'),
            "envelope": Envelope(name_field=("name",), args_field=("arguments",), id_field=("id",)),
        },
        {"end": "<end>"},
    ),
    "a counter in the id": (
        written(lambda call: f"{call.name}:{COUNT.get(call.name, 0)}{arguments(call)}"),
        {},
        PLAIN | {"function": (Slot.NAME, ":", Slot.INDEX, Slot.ARGUMENTS), "id_parts": (0, 3)},
        {"end": "<end>"},
    ),
    "a counter before the name": (
        written(lambda call: f"[{COUNT.get(call.name, 0) + 1}]{call.name}{arguments(call)}", call=("", ";")),
        {},
        {
            "mode": WITH_JSON,
            "function": ("[", Slot.INDEX, "]", Slot.NAME, Slot.ARGUMENTS, ";"),
            "index_start": 1,
        },
        {"end": "<end>"},
    ),
    "a counter in a marker": (
        written(lambda call: f"<{COUNT.get(call.name, 0)}>{call.name}:{arguments(call)}", said="\n", lead="\n"),
        {},
        {"mode": WITH_JSON, "call_end": "</c>", "function": ("<c><", Slot.INDEX, ">", *FUNCTION)},
        {"end": "<end>", "start_to_tools": "\n", "content_to_tools": "\n"},
    ),
    "two counters in markers": (
        written(lambda call: "<{0}><{0}>".format(COUNT.get(call.name, 0)) + named(call), said="\n", lead="\n"),
        {},
        {
            "mode": WITH_JSON,
            "call_end": "</c>",
            "function": ("<c><", Slot.INDEX, "><", Slot.INDEX, ">", *FUNCTION),
        },
        {"end": "<end>", "start_to_tools": "\n", "content_to_tools": "\n"},
    ),
    "a counter after the arguments": (
        written(lambda call: f"{call.name}:{arguments(call)}<#{COUNT.get(call.name, 0)}>", call=("<c>", "")),
        {},
        {"mode": WITH_JSON, "call_start": "<c>", "function": (*FUNCTION, "<#", Slot.INDEX, ">")},
        {"end": "<end>"},
    ),
    "no reasoning is written in so many words": (
        written(lead="<think></think>\n", thought="\n"),
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>", "reasoning_to_tools": "\n"},
    ),
    "no reasoning before the first call, where none is shown": (
        written(lead="<think></think>\n"),
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>", "reasoning_to_tools": "\n"},
    ),
    "no reasoning is written on a line of its own": (
        written(lead="\n<think></think>\n"),
        {"reasoning": ReasoningFinding(reasoning=replace(THINK.reasoning, empty="\n<think></think>"))},
        PLAIN,
        {"end": "<end>", "reasoning_to_tools": "\n"},
    ),
    "content before and after a call": (
        written() | {"mixed": f"{C}\n{ONE}{C}<end>"},
        {},
        PLAIN,
        {"end": "<end>", "content_to_tools": "\n"},
    ),
    "content takes the place of calls": (written() | {"mixed": f"{C}<end>"}, {}, PLAIN, {"end": "<end>"}),
    "content and calls do not go together": (written() | {"mixed": None}, {}, PLAIN, {"end": "<end>"}),
    "calls inside reasoning": (
        written() | {"reasoned_call": f"<think>{R}\n{ONE}</think><end>"},
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>", "in_reasoning": True, "reasoning_to_tools": "\n"},
    ),
    "content in reasoning's markers": (
        written() | {"mixed": f"<think>{C}</think>{ONE}<end>"},
        {"reasoning": THINK},
        PLAIN,
        {
            "end": "<end>",
            "content_as_reasoning": True,
            "diagnostics": ("content beside calls is written as reasoning",),
        },
    ),
    "content in reasoning's markers, and again after them": (
        written() | {"mixed": f"<think>{C}</think>{C}{ONE}<end>"},
        {"reasoning": THINK},
        PLAIN,
        {
            "end": "<end>",
            "content_as_reasoning": True,
            "diagnostics": ("content beside calls is written as reasoning",),
        },
    ),
    "content beside calls is left out, and reasoning opened after them": (
        written() | {"mixed": f"{ONE}<end><bot><think>"},
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>"},
    ),
    "content that always stands after the marker is not reasoning": (
        written(said="\n") | {"mixed": f"So <think>{C}\n{ONE}<end>", "content": f"So <think>{C}<end>"},
        {"reasoning": THINK},
        PLAIN,
        {"end": "<end>", "content_to_tools": "\n"},
    ),
    "calls first": (
        written() | {"mixed": f"{ONE}\n{C}<end>"},
        {},
        PLAIN,
        {"end": "<end>", "tools_first": True, "tools_to_content": "\n"},
    ),
    "calls first, then content twice": (
        written() | {"mixed": f"{ONE}\n{C}\n{C}<end>"},
        {},
        PLAIN,
        {"end": "<end>", "tools_first": True, "tools_to_content": "\n"},
    ),
    "calls first, then content in its wrapper": (
        written(section=("<s>", "</s>")) | {"mixed": f"<s>{ONE}</s>\n<say>{C}</say><end>"},
        {"content": SAY},
        PLAIN | {"section_start": "<s>", "section_end": "</s>"},
        {"end": "<end>", "tools_first": True, "tools_to_content": "\n"},
    ),
    "content in its wrapper": (
        written() | {"mixed": f"<say>{C}</say>\n{ONE}<end>"},
        {"content": SAY},
        PLAIN,
        {"end": "<end>", "content_to_tools": "\n"},
    ),
    "content whose wrapper is left open": (
        written() | {"mixed": f"<say>{C}\n{ONE}<end>"},
        {"content": SAY},
        PLAIN,
        {"end": "<end>"},
    ),
    "an empty wrapper before calls": (
        written(lead="\n<say></say> ") | {"mixed": f"<say>{C}</say> {ONE}<end>"},
        {
            "content": Content(mode=SAY.mode, start="<say>", end="</say>", wraps_empty=True),
            "reasoning": ReasoningFinding(reasoning=Reasoning(), to_content="\n"),
        },
        PLAIN,
        {"end": "<end>", "start_to_tools": " ", "content_to_tools": " "},
    ),
    "content alone is not rendered": (written() | {"content": None}, {}, PLAIN, {"end": "<end>"}),
    "one call, whose last marker ends the turn though words follow it": (
        written(end="<stop>\n") | {"two_calls": None},
        {},
        PLAIN | {"parallel": False},
        {"end": "<stop>\n"},
    ),
    "one call, and a text that ends the conversation": (
        written(end="<end>Bye") | {"two_calls": None},
        {"appended": "Bye"},
        PLAIN | {"parallel": False},
        {"end": "<end>"},
    ),
    "content after a name that is not a call": (
        written() | {"mixed": f"{NAME} {C}<end>"},
        {},
        PLAIN,
        {"end": "<end>"},
    ),
    "calls end their turn with a marker of their own": (written(end="<stop>"), {}, PLAIN, {"end": "<stop>"}),
    "a section ends the turn": (
        written(section=("<s>", "</s>"), end=""),
        {},
        PLAIN | {"section_start": "<s>", "section_end": "</s>"},
        {"end": "</s>"},
    ),
    "a wrapper that is not written empty": (
        written(lead="<say></say>") | {"mixed": f"<say>{C}</say>{ONE}<end>"},
        {"content": SAY},
        PLAIN,
        {"end": "<end>", "start_to_tools": "<say></say>"},
    ),
}


@pytest.mark.parametrize(("texts", "known", "tools", "others"), SYNTAXES.values(), ids=SYNTAXES)
def test_call_syntax_is_what_calls_share(texts, known, tools, others):
    """Section, call, separator and joints are solved from the literals between the slots."""
    assert found(texts, **known) == (tools, others)


EMPTY = {
    "as usual": (f"<c>{NAME}:{{}}</c><end>", None, "as usual, with nothing inside"),
    "nothing": (f"<c>{NAME}:</c><end>", "", "nothing is written"),
    "a word": (f"<c>{NAME}:null</c><end>", "null", "as null"),
    "something else": (f"<c>{NAME}:?</c><end>", None, "in a way that is not understood"),
    "not rendered": (None, None, "a call without arguments is not rendered"),
    "without its name": ("<c>:{}</c><end>", None, "a call without arguments is not rendered"),
}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (f"<c>{NAME}</c><end>", Arguments(start=":", when_empty="")),
        (f"<c>{NAME}/><end>", Arguments(start=":", end="</c>", when_empty="/>")),
        (f"<c>{NAME}!</c><end>", Arguments(start=":", when_empty="!")),
    ],
)
def test_what_is_left_out_with_the_arguments(text, arguments):
    """Texts around the arguments may be left out, or replaced, with them."""
    finding = find(written() | {"empty_call": text})

    assert finding.tools.arguments == arguments
    assert finding.rules["T6"] == "left out, with the text around them"


@pytest.mark.parametrize(("text", "when_empty", "rule"), EMPTY.values(), ids=EMPTY)
def test_call_without_arguments(text, when_empty, rule):
    """What is in the place of no arguments is compared with what usually would."""
    finding = find(written() | {"empty_call": text})

    assert finding.tools.arguments == Arguments(when_empty=when_empty)
    assert finding.rules["T6"] == rule


def test_counters_and_ids_are_written_in_an_empty_call_too():
    """An empty call is looked for with the first call's id and counter in it."""
    by_id = written(lambda call: f"{call.id}:{call.name}:{arguments(call)}")
    by_count = written(
        lambda call: f"{COUNT.get(call.name, 0) + 1}:{call.name}:{arguments(call)}", call=("<c>x", "</c>")
    )

    assert find(by_id).rules["T6"] == find(by_count).rules["T6"] == "as usual, with nothing inside"


def test_tagged_arguments_are_found():
    """Arguments that are written one by one have a skeleton, and are empty with nothing inside their brackets."""

    def write(call):
        return f"{call.name}({', '.join(f'{key}={value}' for key, value in call.arguments.items())})"

    texts = written(write) | {"long_call": "<c>" + write(make_calls(1, 2)[0]) + "</c><end>"}
    finding = find(texts)

    assert finding.tools.function == (Slot.NAME, Slot.ARGUMENTS)
    assert (finding.tools.arguments.start, finding.tools.arguments.end) == ("(", ")")
    assert finding.tools.arguments.entry == (Slot.KEY, "=", Slot.VALUE)
    assert finding.rules["T1"] == "each argument is written for itself"
    assert finding.rules["T6"] == "as usual, with nothing inside"


@pytest.mark.parametrize(("opener", "closer"), [("(", ")"), ("((", "))")])
def test_content_after_tagged_arguments(opener, closer):
    """What is between calls and content is cut at the call's own closers."""

    def write(call):
        values = ", ".join(f"{key}={value}" for key, value in call.arguments.items())
        return f"{call.name}{opener}{values}{closer}"

    texts = written(write) | {"long_call": "<c>" + write(make_calls(1, 2)[0]) + "</c><end>"}
    mixed = {"mixed": f"<c>{write(CALLS[0])}</c> {C}<end>"}

    assert find(texts | mixed).tools_to_content == " "


MODES = [
    (None, ToolMode.NONE),
    ("x", ToolMode.NONE),
    (NAME, ToolMode.NONE),
    (f"{NAME}{KEYS[0]}", ToolMode.NONE),
    (f"{NAME}{NUMBERS[0]}", ToolMode.NONE),
    (f"{KEYS[0]}{NUMBERS[0]}", ToolMode.NONE),
    (f"{NAME}{KEYS[0]}{NUMBERS[0]}", TAGGED),
    (f"{NAME}{arguments(CALLS[0])}", WITH_JSON),
    (f"{NAME}{dict(CALLS[0].arguments)}", WITH_JSON),
    (f"{arguments(CALLS[0])}{NAME}", WITH_JSON),
    (native(CALLS[0]), NATIVE),
]


@pytest.mark.parametrize(("body", "mode"), MODES)
def test_mode_is_what_a_call_is_made_of(body, mode):
    """One JSON object, a JSON object of arguments, or each argument for itself; nothing where parts are missing."""
    assert find_mode(body) is mode


UNKNOWN = {
    "no calls": ({"call": None}, "tool calls are not rendered"),
    "arguments in no order": (
        {"call": f"{NAME} {KEYS[0]} {NUMBERS[0]}"},
        "arguments are rendered in a way that is not understood",
    ),
    "arguments before the name": (
        {
            "call": f"{KEYS[0]}={NUMBERS[0]} {NAME}",
            "long_call": f"{KEYS[0]}={NUMBERS[0]}, {KEYS[1]}={NUMBERS[1]} {NAME}",
        },
        "calls are rendered in a way that is not understood",
    ),
}


@pytest.mark.parametrize(("texts", "diagnostic"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_understood_is_said(texts, diagnostic):
    """No syntax is claimed for calls that are not there, or not understood."""
    finding = find(texts)

    assert finding.diagnostics == (diagnostic,)
    assert finding.tools.mode is ToolMode.NONE


def test_rules_tell_how_calls_were_solved():
    """T1 and T2 name what a call is made of, and how its borders were drawn."""
    rows = [written(), written(section=("<s>\n", "\n</s>"), separator="\n"), written() | {"two_calls": None}]
    stopped = written(end="<stop>") | {"two_calls": None}

    assert [find(texts).rules["T2"] for texts in (*rows, stopped)] == [
        "what is between two, and at both ends",
        "the border lies between whole tags",
        "one call alone, to its end",
        "one call alone, whose last marker ends the turn",
    ]
    assert find(rows[0]).rules["T1"] == "the arguments are one JSON object"
    assert find(written(native)).rules["T1"] == "one JSON object holds name and arguments"
    assert find(rows[0]).many == rows[0]["call"]
