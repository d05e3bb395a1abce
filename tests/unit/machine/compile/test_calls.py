"""One call syntax, compiled: where a run of calls may begin, how each call is read, and what follows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest

from unrender.format import Arguments, CallSyntax, Envelope, Slot, ToolMode
from unrender.machine.arguments import DropEmpty
from unrender.machine.compile.calls import CallCode, Entry
from unrender.machine.compile.code import Code
from unrender.machine.envelope import ReadEnvelope
from unrender.machine.instructions import Ahead, Hold, Jump, Lit, Loosen, Maybe, MaybeFence, Named, Space
from unrender.machine.interpreter import Instruction, Program
from unrender.machine.slots import Commit, EndId, MarkId, ReadName, ReadWord, RepeatName, SkipWords
from unrender.machine.tail import Tail
from unrender.messages.wire import Tool
from unrender.nodes import Calls

HUB = 90
JSON = CallSyntax(
    mode=ToolMode.JSON_NATIVE,
    section_start="<calls>",
    section_end="</calls>",
    call_start="<call>\n",
    call_end="\n</call>",
    separator=",",
    function=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    envelope=Envelope(name_field=("name",), args_field=("arguments",)),
)
NAMED = CallSyntax(
    mode=ToolMode.TAG_WITH_JSON,
    section_start="<calls>\n",
    section_end="</calls>",
    call_start="<call>",
    call_end="</call>",
    function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>"),
)
UNMARKED = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, "\n", Slot.ARGUMENTS), separator="\n")
Kind = TypeVar("Kind", bound=Instruction)


class Compiled:
    """A run of calls in one syntax, compiled alone."""

    def __init__(self, syntax: CallSyntax, ends: tuple[str, ...] = (), **fields: Any) -> None:
        self.code = Code()
        calls = Calls(syntax=syntax, tools=(Tool(name="now"), Tool(name="then")), **fields)
        self.made = CallCode(self.code, calls, HUB, frozenset(ends))
        self.entries: list[Entry] = self.made.compile()
        self.program: Program = self.code.program()

    def after(self, at: int, count: int) -> list[Instruction]:
        """Return the instructions that are run from `at` on, jumps taken."""
        found: list[Instruction] = []
        while len(found) < count:
            instruction = self.program[at]
            if isinstance(instruction, Jump):
                at = instruction.target
            else:
                found.append(instruction)
                at += 1
        return found

    def every(self, kind: type[Kind]) -> list[Kind]:
        """Return the instructions of one kind."""
        return [instruction for instruction in self.program if isinstance(instruction, kind)]

    @property
    def tail(self) -> Tail:
        (found,) = self.every(Tail)
        assert self.program[self.made.tail] is found
        return found


def openers(syntax: CallSyntax, **fields: Any) -> list[tuple[str, str, bool]]:
    return [(entry.lead, entry.opener, entry.strong) for entry in Compiled(syntax, **fields).entries]


def test_a_run_may_begin_with_its_outermost_marker_or_an_inner_one() -> None:
    """Models leave out the outer ones; an empty call, or section, begins with its own."""
    markers = [("", text, True) for text in ("<calls>", "<call>")]

    assert openers(NAMED) == [*markers, ("", "<fn=", True), ("", "<call>", True), *[("", "<calls>", True)] * 2]
    assert openers(replace(NAMED, call_end="")) == [*markers, ("", "<fn=", True), ("", "<calls>", True)]
    assert openers(replace(NAMED, section_end="")) == [*markers, ("", "<fn=", True), ("", "<call>", True)]
    assert openers(replace(NAMED, call_start="")) == [("", "<calls>", True), ("", "<fn=", True), ("", "<calls>", True)]
    assert openers(replace(NAMED, section_start="")) == [("", "<call>", True), ("", "<fn=", True), ("", "<call>", True)]
    assert [
        len(Compiled(replace(NAMED, **{name: ""})).every(DropEmpty)) for name in ("call_start", "section_start")
    ] == [
        1,
        1,
    ]
    assert openers(replace(NAMED, section_start="", section_end="")) == [
        ("", "<call>", True),
        ("", "<fn=", True),
        ("", "<call>", True),
    ]


def test_what_prose_contains_begins_a_run_only_where_it_is_the_outermost_marker() -> None:
    """And then it is not worth a report when no call follows."""
    plain = replace(NAMED, section_start="", section_end="", call_end="")

    assert openers(replace(plain, call_start="", function=("$", *NAMED.function[1:]))) == [("", "$", False)]
    assert openers(replace(plain, call_start="[", function=("$", *NAMED.function[1:]))) == [("", "[", False)]
    assert openers(replace(plain, call_start="<c>", function=("$", *NAMED.function[1:]))) == [("", "<c>", True)]


def test_layout_before_a_marker_leads_to_it() -> None:
    """What comes before the run, and what the marker begins with."""
    found = openers(replace(NAMED, section_start="\n<calls>"), lead="\n\n")

    assert found[0] == ("\n\n\n", "<calls>", True)
    assert found[1] == ("\n\n", "<call>", True)


def test_other_spellings_begin_a_run_as_well() -> None:
    """They lead to the first call, past the marker."""
    compiled = Compiled(NAMED, spellings=("<tools>",))
    entry = next(entry for entry in compiled.entries if entry.opener == "<tools>")

    assert compiled.after(entry.target, 4) == [Space(), Lit("<tools>"), Space(), Lit("<call>")]


def test_where_each_marker_leads() -> None:
    """To what follows it; the inner ones say that the outermost is missing. What must be whole is held."""
    compiled = Compiled(NAMED)
    section, call, function, *empty = (entry.target for entry in compiled.entries)

    assert compiled.after(section, 4) == [Space(), Lit("<calls>"), Space(), Lit("<call>")]
    assert compiled.after(call, 3) == [Loosen(), Space(), Lit("<call>")]
    assert compiled.after(function, 4)[0] == Loosen()
    assert compiled.after(function, 4)[2:] == [Space(), Lit("<fn=")]
    assert [compiled.every(DropEmpty)] == [[DropEmpty(3)] * 3]
    assert compiled.after(empty[0], 5) == [Space(), Lit("<call>"), Space(), Lit("</call>"), DropEmpty(3)]
    assert compiled.after(empty[1], 5) == [Space(), Lit("<calls>"), Space(), Lit("</calls>"), DropEmpty(3)]
    assert compiled.after(empty[2], 9)[1::2] == [Lit("<calls>"), Lit("<call>"), Lit("</call>"), compiled.tail]
    assert (compiled.every(Hold), len(Compiled(replace(NAMED, whole=True)).every(Hold))) == ([], 2)
    single = Compiled(replace(NAMED, section_start="", section_end=""))
    assert single.after(single.entries[0].target, 2) == [Space(), Lit("<call>")]


def test_a_run_without_a_marker_is_tried_where_the_answer_begins() -> None:
    """With the name of a tool, which arguments must follow; after content, on a line of its own."""
    compiled = Compiled(UNMARKED, lead="\n ", on_lines=True)
    (unmarked,) = compiled.made.unmarked

    assert compiled.entries == []
    assert compiled.after(unmarked, 2) == [Space(), Named()]
    assert compiled.every(Ahead) == [Ahead("{")]
    assert set(compiled.made.lines) == {"\n now", "\n then"}
    assert {compiled.after(at, 3)[2] for at in compiled.made.lines.values()} == {compiled.every(ReadName)[0]}
    assert set(Compiled(UNMARKED, lead="\n\n", on_lines=True).made.lines) == {"\n\nnow", "\nnow", "\n\nthen", "\nthen"}
    assert Compiled(UNMARKED, lead="\n").made.lines == {}


@pytest.mark.parametrize(
    ("arguments", "ahead"),
    [
        (Arguments(), [Ahead("{")]),
        (Arguments(start="(", end=")", when_empty="{}"), [Ahead("(")]),
        (Arguments(start="with (", end=")", when_empty="{}"), [Ahead("with")]),
    ],
)
def test_arguments_show_a_call_that_nothing_else_shows(arguments: Arguments, ahead: list[Ahead]) -> None:
    """Their first character is looked for; with a marker, that is not needed."""
    assert Compiled(replace(UNMARKED, arguments=arguments)).every(Ahead) == ahead
    assert Compiled(replace(UNMARKED, arguments=arguments, call_start="<call>")).every(Ahead) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"bare": False, "waits": False, "arguments_first": False, "strict": False}),
        ({"whole": True}, {"strict": True}),
        ({"section_start": "", "call_start": ""}, {"bare": True}),
        ({"section_start": "[", "call_start": ""}, {"bare": True}),
        ({"section_start": "", "call_start": "<call>"}, {"bare": False}),
        ({"section_start": "<calls>", "call_start": ""}, {"bare": False}),
    ],
)
def test_how_an_object_is_read(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    """One with a marker of more than a bracket before it may have its fields in any order."""
    (read,) = Compiled(replace(JSON, **changes)).every(ReadEnvelope)

    assert {name: getattr(read, name) for name in expected} == expected
    assert read.recover == 0
    assert read.ends.literals == (() if changes.get("whole") else ("</calls>", "</call>"))


@pytest.mark.parametrize(
    ("slots", "waits", "first"),
    [
        ((Slot.NAME, Slot.ARGUMENTS, Slot.ID), True, False),
        ((Slot.ID, Slot.NAME, Slot.ARGUMENTS), False, False),
        ((Slot.ARGUMENTS, Slot.NAME, Slot.ID), True, True),
        ((Slot.ARGUMENTS, Slot.NAME), False, True),
    ],
)
def test_the_order_of_fields(slots: tuple[Slot, ...], waits: bool, first: bool) -> None:
    """An id after the name is waited for; arguments before it are looked for first."""
    texts = {Slot.NAME: ('"name": "', '"'), Slot.ID: ('"id": "', '"'), Slot.ARGUMENTS: ('"arguments": ', "")}
    parts: list[Slot | str] = ["{"]
    for slot in slots:
        before, after = texts[slot]
        parts[-1] = f"{parts[-1]}{before}" if len(parts) == 1 else f"{parts[-1]}, {before}"
        parts += [slot, after]
    parts[-1] = f"{parts[-1]}}}"
    (read,) = Compiled(replace(JSON, function=tuple(parts))).every(ReadEnvelope)

    assert (read.waits, read.arguments_first) == (waits, first)


def test_a_list_around_one_object_is_tolerated_after_a_marker() -> None:
    """Not where a call must be whole, nor where nothing but the bracket shows it; a fence is in any syntax."""
    listed = [
        Compiled(replace(JSON, **changes)).every(Maybe)
        for changes in ({}, {"whole": True}, {"section_start": "", "call_start": ""})
    ]

    assert listed == [[Maybe("[")], [], []]
    assert [len(Compiled(syntax).every(MaybeFence)) for syntax in (JSON, NAMED)] == [1, 1]


def test_the_parts_of_a_function_are_read_in_turn() -> None:
    """Names up to what follows them, once more where they are written again; words that say nothing are skipped."""
    function = ("f ", Slot.NAME, " is ", Slot.ANY, " of ", Slot.NAME, ":", Slot.INDEX, "#", Slot.ARGUMENTS, ";")
    compiled = Compiled(replace(NAMED, function=function))
    (name,), (words,) = compiled.every(ReadName), compiled.every(SkipWords)
    (index,), (commit,) = compiled.every(ReadWord), compiled.every(Commit)

    assert (name.stops.literals, words.stops.literals) == (("is",), ("of",))
    assert (index.slot, index.stops.literals) == (Slot.INDEX, ("#",))
    assert compiled.every(RepeatName) == [RepeatName()]
    assert (commit.recover, commit.waits) == (0, False)
    assert compiled.tail.closers == (";", "</call>")


def test_an_id_after_the_arguments_is_waited_for() -> None:
    """The call starts with it."""
    function = ("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "<id>", Slot.ID, "</fn>")
    compiled = Compiled(replace(NAMED, function=function))

    assert [commit.waits for commit in compiled.every(Commit)] == [True]
    assert [(word.slot, word.stops.literals) for word in compiled.every(ReadWord)] == [(Slot.ID, ("</fn>",))]


def test_an_id_of_several_parts_is_marked() -> None:
    """From its first part to its last."""
    function = ("functions.", Slot.NAME, ":", Slot.INDEX, "<args>", Slot.ARGUMENTS)
    whole, inner = (Compiled(replace(NAMED, function=function, id_parts=parts)) for parts in ((0, 4), (1, 4)))
    places = [
        [at for at, item in enumerate(made.program) if isinstance(item, MarkId | EndId)] for made in (whole, inner)
    ]
    prefix = [made.program.index(Maybe("functions.")) for made in (whole, inner)]

    assert places[0][0] < prefix[0] < places[0][1]
    assert prefix[1] < places[1][0]
    assert [isinstance(made.program[at[1] - 1], ReadWord) for made, at in zip((whole, inner), places, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, True),
        ({"function": ("functions/", Slot.NAME, ">", Slot.ARGUMENTS)}, True),
        ({"function": ("functions ", Slot.NAME, ">", Slot.ARGUMENTS)}, False),
        ({"function": ("<f.", Slot.NAME, ">", Slot.ARGUMENTS)}, False),
        ({"section_start": "", "section_end": ""}, True),
        ({"call_start": ""}, True),
        ({"section_start": "", "section_end": "", "call_start": ""}, False),
    ],
)
def test_a_word_before_the_name_may_be_missing(changes: dict[str, Any], missing: bool) -> None:
    """Where another marker shows the call."""
    syntax = replace(NAMED, function=("functions.", Slot.NAME, ">", Slot.ARGUMENTS))
    optional = [instruction.text for instruction in Compiled(replace(syntax, **changes)).every(Maybe)]

    assert bool(optional) is missing


@pytest.mark.parametrize(
    ("before", "after", "spaced"), [(" ", ">", True), (">", " ", True), ("\n", "\n", True), (":", ">", False)]
)
def test_white_space_before_words_that_say_nothing(before: str, after: str, spaced: bool) -> None:
    """It is taken where the texts beside them have some."""
    function = ("<fn=", Slot.NAME, f"|{before}", Slot.ANY, f"{after}|", Slot.ARGUMENTS)
    program = Compiled(replace(NAMED, function=function)).program
    at = next(at for at, item in enumerate(program) if isinstance(item, SkipWords))

    assert isinstance(program[at - 1], Space) is spaced


@pytest.mark.parametrize(
    ("function", "arguments", "stops"),
    [
        (("<fn=", Slot.NAME, ">", Slot.ARGUMENTS), Arguments(), (">",)),
        (("<fn=", Slot.NAME, " | ", Slot.ARGUMENTS), Arguments(), ("|",)),
        (("<fn=", Slot.NAME, Slot.ARGUMENTS), Arguments(start="(", end=")", when_empty="!"), ("!", "(")),
        (
            ("<fn=", Slot.NAME, Slot.ARGUMENTS),
            Arguments(start="(", end=")", when_empty=""),
            ("</calls>", "</call>", "<call>", "(", ";"),
        ),
        (("<fn=", Slot.NAME, " ", Slot.ANY, ">", Slot.ARGUMENTS), Arguments(), (">",)),
        (("<fn=", Slot.NAME, " ", Slot.INDEX, ">", Slot.ARGUMENTS), Arguments(), ()),
    ],
)
def test_where_a_name_ends(function: tuple[Slot | str, ...], arguments: Arguments, stops: tuple[str, ...]) -> None:
    """At what may come next; where arguments may be left out, at what follows the call as well."""
    compiled = Compiled(replace(NAMED, function=function, arguments=arguments, separator=";"))

    assert compiled.every(ReadName)[0].stops.literals == stops


def test_white_space_before_a_name_is_taken_where_the_format_has_some() -> None:
    """Or where nothing of the function comes before the name."""
    spaced, tight, first = (
        Compiled(replace(NAMED, function=(*before, Slot.NAME, ">", Slot.ARGUMENTS))).program
        for before in (("<fn ",), ("<fn=",), ())
    )

    def before(program: Program) -> Instruction:
        return program[next(at for at, item in enumerate(program) if isinstance(item, ReadName)) - 1]

    assert [isinstance(before(program), Space) for program in (spaced, tight, first)] == [True, False, True]


def test_what_follows_a_call() -> None:
    """Its closers, the end of the run, or the next call, which is tried in the text where nothing holds it."""
    tail, json = Compiled(NAMED, ends=("</fn>", "</calls>")).tail, Compiled(JSON).tail

    assert (tail.closers, tail.section, tail.separator, tail.after) == (("</fn>", "</call>"), ("</calls>",), "", "")
    assert (tail.optional, tail.excess, tail.hub) == (frozenset(("</fn>", "</calls>")), frozenset(), HUB)
    assert list(tail.openers) == ["<call>"]
    assert set(tail.marks.literals) == {"</calls>", "</call>", "<call>", "</fn>", "```"}
    assert (json.closers, json.separator, json.excess) == (("</call>",), ",", frozenset("}]"))
    assert set(json.marks.literals) == {"</calls>", "</call>", "<call>", "```", ",", "}", "]"}
    assert Compiled(replace(JSON, whole=True)).tail.excess == frozenset()


def test_where_the_next_call_leads() -> None:
    """Directly where a run is held; else by an attempt that leads back to the text."""
    compiled = Compiled(NAMED)
    direct, tried = compiled.tail.openers["<call>"]
    attempt: Any = compiled.program[tried]

    assert compiled.after(direct, 2) == [Space(), Lit("<call>")]
    assert (attempt.targets, attempt.otherwise, attempt.reported) == ((direct,), HUB, False)


@pytest.mark.parametrize(
    ("changes", "opener"),
    [
        ({}, ["<call>"]),
        ({"call_start": ""}, ["<fn="]),
        ({"call_start": "", "function": (Slot.NAME, ">", Slot.ARGUMENTS)}, [""]),
        ({"call_start": "", "function": (Slot.INDEX, ">", Slot.NAME, ">", Slot.ARGUMENTS)}, []),
        ({"call_start": "", "function": (Slot.INDEX, ">", Slot.NAME, ">", Slot.ARGUMENTS), "separator": ","}, [""]),
        ({"section_end": "", "whole": True}, []),
        ({"section_end": "", "whole": True, "separator": ","}, ["<call>"]),
        ({"whole": True}, ["<call>"]),
    ],
)
def test_what_begins_the_next_call(changes: dict[str, Any], opener: list[str]) -> None:
    """Its marker; calls that must be whole, with nothing between them, are looked for in the text one by one."""
    assert list(Compiled(replace(NAMED, **changes)).tail.openers) == opener
    assert [list(Compiled(made).tail.openers) for made in (JSON, replace(JSON, call_start=""))] == [["<call>"], ["{"]]


def test_closers_that_begin_as_calls_do_are_whole_words() -> None:
    """They are not cut where they have white space."""
    syntax = replace(NAMED, section_start="", section_end="", call_start="[Tool Call]", call_end="[End Tool]")
    alike = replace(syntax, call_end="[Tool Call End]")

    assert (Compiled(syntax).tail.closers, list(Compiled(syntax).tail.openers)) == (
        ("</fn>", "[End", "Tool]"),
        ["[Tool"],
    )
    assert Compiled(alike).tail.closers == ("</fn>", "[Tool Call End]")
    assert list(Compiled(alike).tail.openers) == ["[Tool Call]"]


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ({"section_end": "</calls>\n\n"}, "\n\n"),
        ({"section_end": "", "call_end": "</call>\n"}, "\n"),
        ({"section_end": "", "call_end": ""}, " "),
    ],
)
def test_layout_after_the_last_marker(changes: dict[str, Any], after: str) -> None:
    """It is a part of the marker that comes last."""
    syntax = replace(NAMED, function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn> "))

    assert Compiled(replace(syntax, **changes)).tail.after == after
