"""The inside of a call, one instruction at a time: values, what is between them, what closes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.families import TAGGED
from stepping import machine_at, step, taken

from unrender.format import Arguments, CallSyntax, Codec, Containers, Slot, Strings, ToolMode, Typing, Words
from unrender.machine.arguments import (
    CloseArguments,
    CloseValue,
    DropEmpty,
    Entries,
    JsonArguments,
    NoArguments,
    Value,
    literal_style,
)
from unrender.machine.events import ArgumentsText, Malformed, ToolCallFinished
from unrender.machine.interpreter import Instruction, Machine
from unrender.messages.wire import CallStatus, Request, Tool
from unrender.parser.streaming import Parser
from unrender.values.code_value import CodeValueScanner
from unrender.values.finder import Finder
from unrender.values.raw import RawScanner
from unrender.values.scanner import LiteralScanner, LiteralStyle
from unrender.values.unmarked_ends import Follow
from unrender.values.xml import TagStyle, XmlScanner

PROPERTIES = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "any": {},
}
TOOL = Tool(name="now", parameters={"properties": PROPERTIES, "additionalProperties": False})
RAW = Codec(strings=Strings.RAW, typed_by=Typing.SCHEMA)
END = Finder(("</v>",))


def calling(text: str, *, at: int = 0, final: bool = False, **fields: Any) -> Machine:
    """Return a machine that is reading a call of `now`, whose start is out; `fields` are the call's."""
    machine = machine_at(text, at=at, final=final, request=Request(tools=(TOOL,)))
    call = machine.begin_call()
    machine.named("now")
    call.begun, machine.calls, call.key = True, 1, "city"
    for name, value in fields.items():
        setattr(call, name, value)
    return machine


def said(machine: Machine) -> str:
    """Return the arguments so far."""
    return "".join(event.text for event in machine.events if isinstance(event, ArgumentsText))


@pytest.mark.parametrize(
    ("text", "final", "outcome", "json"),
    [
        ('{"a": 1}x', False, "on", '{"a": 1}'),
        ('"{\\"a\\": 1}"x', False, "on", '{"a": 1}'),
        ('{"a', False, "waits", '{"a'),
        ("", False, "waits", ""),
        ("", True, "fails: a JSON object", ""),
        ("[1]", False, "fails: a JSON object", ""),
        ("x{}", False, "fails: a JSON object", ""),
    ],
)
def test_one_object_holds_all_arguments(text: str, final: bool, outcome: str, json: str) -> None:
    """It is an object, bare or written as a string; anything else fails at its first character."""
    machine = calling("~" + text, at=1, final=final)

    assert (step(JsonArguments(LiteralStyle()), machine), said(machine)) == (outcome, json)
    assert (machine.call is not None and machine.call.closed) is (outcome == "on")


@pytest.mark.parametrize(
    ("text", "final", "wanted"),
    [('{"a": !', False, "a JSON value"), ('{"a": 1', True, "the rest of the arguments"), ("{!", True, "a JSON value")],
)
def test_arguments_that_break_off_say_what_was_expected(text: str, final: bool, wanted: str) -> None:
    """Half a value at the end of the output wants its rest; anything else is not a value."""
    machine = calling(text, final=final)

    assert JsonArguments(LiteralStyle()).step(machine) is False
    assert machine.wanted == wanted


def test_a_value_goes_on_where_it_was_suspended() -> None:
    """What is inside a string goes straight through until then."""
    machine = calling('{"a": "b')
    instruction = JsonArguments(LiteralStyle())

    assert step(instruction, machine) == "waits"
    assert isinstance(machine.flow, LiteralScanner)
    machine.buffer += '"}'
    assert step(instruction, machine) == "on"
    assert (machine.scanner, said(machine)) == (None, '{"a": "b"}')


MARKS = Finder(("<p>", "</f>", "<f>"))
ENTRIES = Entries(20, 30, "<p>", "|,", MARKS)


@pytest.mark.parametrize(
    ("text", "final", "outcome", "read"),
    [
        ("<p>x", False, "to 20", ""),
        (" \n<p>x", False, "to 20", "layout ' \\n'"),
        ("</f>", False, "to 30", ""),
        ("<f>", False, "to 30", ""),
        ("|,<p>", False, "to 20", "marker '|,'"),
        (" |, \n<p>", False, "to 20", "layout ' ', marker '|,', layout ' \\n'"),
        ("|,</f>", False, "to 30", "marker '|,'"),
        ("|", False, "waits", ""),
        (" |", False, "waits", "layout ' '"),
        ("<", False, "waits", ""),
        ("", False, "waits", ""),
        ("  ", False, "waits", "layout '  '"),
        ("x", False, "fails: '<p>' or the end of the arguments", ""),
        ("|x", False, "fails: '<p>' or the end of the arguments", ""),
        ("", True, "fails: '<p>' or the end of the arguments", ""),
        ("|", True, "fails: '<p>' or the end of the arguments", ""),
        ("|,|,<p>", False, "fails: '<p>' or the end of the arguments", ""),
    ],
)
def test_between_two_arguments(text: str, final: bool, outcome: str, read: str) -> None:
    """White space is layout and one separator a marker; then another argument begins, or a marker ends them."""
    machine = calling(text, final=final, count=1)

    assert (step(ENTRIES, machine), taken(machine)) == (outcome, read)


def test_a_separator_comes_after_an_argument() -> None:
    """Before the first one, and after another separator, it is not one."""
    first, again, next_one = (
        calling("|,<p>"),
        calling("|,<p>", count=1, separated=1),
        calling("|,<p>", count=2, separated=1),
    )

    assert step(ENTRIES, first).startswith("fails")
    assert step(ENTRIES, again).startswith("fails")
    assert step(ENTRIES, next_one) == "to 20"
    assert next_one.call is not None
    assert next_one.call.separated == 2


def test_a_separator_is_not_read_twice_after_a_suspension() -> None:
    """What was read of it before is remembered."""
    machine = calling("|,", count=1)

    assert step(ENTRIES, machine) == "waits"
    machine.buffer += "|,<p>"
    assert step(ENTRIES, machine).startswith("fails")


def test_without_a_closing_marker_anything_else_ends_the_arguments() -> None:
    """Where nothing closes them they end where no other follows; an empty opener is anywhere but at the end."""
    open_ended = Entries(20, 30, "<p>", "", MARKS, closed=False)
    unmarked = Entries(20, 30, "", "", Finder(("</f>",)))

    assert step(open_ended, calling("x")) == "to 30"
    assert step(open_ended, calling("", final=True)) == "to 30"
    assert step(unmarked, calling("key")) == "to 20"
    assert step(unmarked, calling("</f>")) == "to 30"
    assert step(unmarked, calling("", final=True)).startswith("fails")


OPTIONS = CallSyntax(
    mode=ToolMode.TAG_WITH_TAGGED,
    separator="\n",
    function=("$ ", Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(entry=(" --", Slot.KEY, "=", Slot.VALUE), codec=RAW),
)


def test_what_follows_tells_whether_another_argument_comes() -> None:
    """Where neither a marker nor a separator does, its beginning does; nothing is taken before that is known."""
    entries = Entries(20, 30, "", "", Finder(()), further=Follow(OPTIONS))

    assert step(entries, calling(" --a=")) == "to 20"
    assert step(entries, calling(" --a=", count=1)) == "to 20"
    assert step(entries, calling(" --")) == "waits"
    assert step(entries, calling(" --", final=True)) == "to 30"
    assert step(entries, calling(" x")) == "to 30"


def test_the_first_argument_has_no_separator_before_it() -> None:
    """The others have."""
    separated = replace(OPTIONS, arguments=Arguments(entry=(Slot.KEY, "=", Slot.VALUE), separator="; ", codec=RAW))
    entries = Entries(20, 30, "", "", Finder(()), further=Follow(separated))
    found = [step(entries, calling(text, count=count)) for text in (" a=", "; a=") for count in (0, 1)]

    assert found == ["to 20", "to 30", "to 30", "to 20"]


@pytest.mark.parametrize("text", ["Rome, days=3", "'Rome', days=3", '"Rome", days=3'])
def test_a_value_in_code_may_have_either_quotes_or_none(text: str) -> None:
    """What is in them is the value."""
    machine = calling(text)

    assert step(value(suffix=Follow(CODE)), machine) == "on"
    assert said(machine) == '{"city": "Rome"'


def value(codec: Codec = RAW, *, suffix: Finder | Follow = END, **more: Any) -> Value:
    return Value(codec, suffix, more.pop("style", LiteralStyle()), **more)


def test_an_argument_begins_with_its_key() -> None:
    """The first opens the object, others follow a comma; keys are escaped as JSON wants it."""
    first, second = calling("Oslo</v>", key='a"b'), calling("Oslo</v>", count=1)

    assert step(value(), first) == "on"
    assert step(value(), second) == "on"
    assert (said(first), said(second)) == ('{"a\\"b": "Oslo"', ', "city": "Oslo"')
    assert first.call is not None
    assert (first.call.count, first.call.keys, taken(first)) == (1, {'a"b'}, "argument 'Oslo'")


def test_a_value_goes_on_where_it_was_left() -> None:
    """With the same scanner; the argument begins once."""
    machine = calling("Os")
    assert step(value(), machine) == "waits"
    scanner = machine.scanner
    machine.buffer += "lo</v>"
    assert (machine.at, machine.scanner is scanner) == (2, True)
    assert step(value(), machine) == "on"

    assert (said(machine), machine.scanner) == ('{"city": "Oslo"', None)
    assert machine.call is not None
    assert machine.call.count == 1
    assert not [event for event in machine.events if isinstance(event, Malformed)]


def test_an_argument_that_comes_twice_is_reported() -> None:
    """It is delivered all the same: which one counts is for the reader of the JSON."""
    machine = calling("Oslo</v>", keys={"city"}, count=1)
    other = calling("Oslo</v>", keys={"days"}, count=1)
    step(value(), machine)
    step(value(), other)

    assert [event for event in machine.events if isinstance(event, Malformed)] == [
        Malformed("city", 0, "another argument")
    ]
    assert not [event for event in other.events if isinstance(event, Malformed)]


CDATA = replace(RAW, cdata=True)


@pytest.mark.parametrize(
    ("text", "final", "outcome", "json", "read"),
    [
        ("<![CDATA[a</v>b]]></v>", False, "on", '"a</v>b"', "marker '<![CDATA[', argument 'a</v>b', marker ']]>'"),
        ("<![CDATA[7]]></v>", False, "on", '"7"', "marker '<![CDATA[', argument '7', marker ']]>'"),
        ("plain</v>", False, "on", '"plain"', "argument 'plain'"),
        ("<![CDA</v>", False, "on", '"<![CDA"', "argument '<![CDA'"),
    ],
)
def test_a_value_may_be_in_cdata(text: str, final: bool, outcome: str, json: str, read: str) -> None:
    """Then it is text, whatever it looks like, and ends where CDATA ends."""
    machine = calling(text, final=final)

    assert step(value(CDATA), machine) == outcome
    assert (said(machine), taken(machine)) == (f'{{"city": {json}', read)
    assert machine.call is not None
    assert machine.call.kind == ""


@pytest.mark.parametrize(
    ("text", "final", "outcome"),
    [("<![CD", False, "waits"), ("", False, "waits"), ("<![CD", True, "fails: the rest of the arguments")],
)
def test_half_an_opener_of_cdata_is_waited_for(text: str, final: bool, outcome: str) -> None:
    """No argument begins before it is known how it is written."""
    machine = calling("~" + text, at=1, final=final)

    assert step(value(CDATA), machine) == outcome
    assert (said(machine), machine.scanner) == ("", None)


def test_cdata_is_text_even_where_the_schema_wants_a_number() -> None:
    """The model said that it is text; without CDATA the schema decides."""
    marked, plain = calling("<![CDATA[7]]></v>", key="days"), calling("7</v>", key="days")
    step(value(CDATA), marked)
    step(value(CDATA), plain)

    assert (said(marked), said(plain)) == ('{"days": "7"', '{"days": 7')


def test_a_value_in_code_waits_for_its_first_character() -> None:
    """It may be a quotation mark."""
    machine = calling("")

    assert step(value(suffix=Follow(CODE)), machine) == "waits"
    assert (said(machine), machine.scanner) == ("", None)


TAGS = TagStyle("<", "</", ">", "item")
CODE = replace(
    OPTIONS,
    function=(Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=replace(RAW, words=Words.PYTHON, containers=Containers.PYTHON),
    ),
)


@pytest.mark.parametrize(
    ("instruction", "key", "quoted", "kind"),
    [
        (value(), "city", False, RawScanner),
        (value(), "city", True, RawScanner),
        (value(suffix=Follow(CODE)), "city", True, CodeValueScanner),
        (value(suffix=Follow(CODE)), "city", False, RawScanner),
        (value(suffix=Follow(OPTIONS)), "city", True, RawScanner),
        (value(tags=TAGS), "city", False, XmlScanner),
        (value(replace(RAW, strings=Strings.JSON)), "city", False, LiteralScanner),
        (value(replace(RAW, strings=Strings.PYTHON)), "city", True, LiteralScanner),
        (value(replace(RAW, strings=Strings.QUOTED)), "city", False, LiteralScanner),
        (value(replace(RAW, strings=Strings.SINGLE)), "city", False, LiteralScanner),
    ],
)
def test_the_codec_says_which_scanner_reads_a_value(instruction: Value, key: str, quoted: bool, kind: type) -> None:
    """So does a quotation mark where calls are code."""
    machine = calling("", key=key)
    assert machine.call is not None

    assert type(instruction.scanner(machine.call, quoted=quoted)) is kind


def test_what_a_scanner_is_told() -> None:
    """The types of the argument, and the names that begin another argument."""
    machine = calling("", key="tags")
    call = machine.call
    assert call is not None
    listed = value().scanner(call, quoted=False)
    raw = value(suffix=Follow(OPTIONS)).scanner(call, quoted=False)
    style = LiteralStyle(bare_keys=True)
    literal = value(replace(RAW, strings=Strings.JSON), style=style).scanner(call, quoted=False)
    tags = value(tags=TAGS).scanner(call, quoted=False)

    assert isinstance(listed, RawScanner)
    assert (set(listed.types), listed.finder) == ({"array"}, END)
    assert isinstance(raw, RawScanner)
    assert isinstance(raw.finder, Follow)
    assert raw.finder.names == ("city", "days", "tags", "any")
    assert isinstance(literal, LiteralScanner)
    assert literal.style is style
    assert isinstance(tags, XmlScanner)
    assert (tags.key, tags.style) == ("tags", TAGS)


@pytest.mark.parametrize(
    ("kind", "text", "json"),
    [
        ("str", "7", '"7"'),
        ("num", "7", "7"),
        ("num", "x", '"x"'),
        ("", "7", "7"),
        ("?", "null", "null"),
        ("bool", "TRUE", "true"),
        ("?", "TRUE", '"TRUE"'),
    ],
)
def test_a_word_beside_the_value_says_its_type(kind: str, text: str, json: str) -> None:
    """The word for strings leaves the text as it is; one that nobody knows says nothing."""
    codec = replace(RAW, typed_by=Typing.ATTRIBUTE, types=(("string", "str"), ("integer", "num"), ("boolean", "bool")))
    machine = calling(f"{text}</v>", kind=kind, key="undeclared")

    assert step(value(codec), machine) == "on"
    assert said(machine) == f'{{"undeclared": {json}'


@pytest.mark.parametrize(
    ("key", "kind", "text", "json"),
    [
        ("city", "num", "7", '"7"'),
        ("city", "bool", "null", '"null"'),
        ("days", "str", "7", "7"),
        ("days", "str", "x", '"x"'),
        ("tags", "str", '["a"]', '["a"]'),
        ("tags", "str", '["a"', '"[\\"a\\""'),
    ],
)
def test_the_schema_corrects_the_word_beside_the_value(key: str, kind: str, text: str, json: str) -> None:
    """Where the schema does not allow the named type, the value is what the schema allows; what fits nothing is text."""
    codec = replace(RAW, typed_by=Typing.ATTRIBUTE, types=(("string", "str"), ("integer", "num"), ("boolean", "bool")))
    machine = calling(f"{text}</v>", kind=kind, key=key)

    assert step(value(codec), machine) == "on"
    assert said(machine) == f'{{"{key}": {json}'


@pytest.mark.parametrize(
    ("suffix", "stops", "ends"),
    [
        (Finder(("</v>", "\n</v>")), ("<",), ("<",)),
        (Finder(("|", ",", "end", "_x", ".", "+", "-")), (",", "_x", "end", "|"), ("+", ",", "-", ".", "_", "e", "|")),
        (Finder(("\n",)), (), ()),
        (Follow(OPTIONS), (), ()),
    ],
)
def test_what_ends_a_number_or_a_word(suffix: Finder | Follow, stops: tuple[str, ...], ends: tuple[str, ...]) -> None:
    """The first sign of what may follow, unless words or numbers hold it themselves."""
    style = literal_style(replace(RAW, strings=Strings.JSON), suffix)

    assert (style.stops, style.ends) == (stops, ends)
    assert (style.quote_open, style.quote_close, style.bare_keys, style.strict) == ("", "", False, False)


def test_quotes_and_keys_of_a_notation() -> None:
    """Delimiters of its own, and keys without quotes, are read where the codec has them."""
    own = Codec(strings=Strings.QUOTED, containers=Containers.BARE, string_open="<|", string_close="|>")
    style = literal_style(own, Finder(()))

    assert (style.quote_open, style.quote_close, style.bare_keys) == ("<|", "|>", True)


CLOSE = CloseValue("</v>", ("</f></c>",))


@pytest.mark.parametrize(
    ("text", "final", "outcome", "read"),
    [
        ("</v>x", False, "on", "marker '</v>'"),
        ("</", False, "waits", ""),
        ("</f></", False, "waits", ""),
        ("", False, "waits", ""),
        ("</f></c>", False, "on", ""),
        ("</f></c>x", False, "on", ""),
        ("</f>x", False, "fails: '</v>'", ""),
        ("</", True, "fails: '</v>'", ""),
        ("x</v>", False, "fails: '</v>'", ""),
    ],
)
def test_what_closes_a_value(text: str, final: bool, outcome: str, read: str) -> None:
    """Its own marker is taken; where the whole call is closed instead, that is left to what reads the end of calls."""
    machine = calling("~" + text, at=1, final=final)
    machine.frames[-1].at, machine.span_ends, machine.span_roles = 1, [], []

    assert step(CLOSE, machine) == outcome
    reported = [event for event in machine.events if isinstance(event, Malformed)]
    assert reported == ([Malformed("", 1, "'</v>'")] if "</c>" in text else [])
    assert taken(machine).replace("marker '~</v>'", "marker '</v>'") == read


def test_a_call_without_a_values_closer_ends_with_its_own() -> None:
    """It is complete, and what comes after it is read, before the output ends."""
    parser = Parser(TAGGED.format, Request(tools=(TOOL,)))
    events = parser.feed(
        "<tool_call>\n<function=now>\n<parameter=city>\nRome\n</function>\n</tool_call>" + "\n" + "Hi " * 5
    )

    assert ToolCallFinished(0, CallStatus.COMPLETE) in events
    assert parser.message.content.startswith("\nHi Hi")


@pytest.mark.parametrize(("count", "json"), [(0, "{}"), (1, "}")])
@pytest.mark.parametrize("bracketed", [True, False])
def test_the_end_of_the_arguments_closes_the_object(count: int, json: str, bracketed: bool) -> None:
    """No arguments are an empty object."""
    machine = calling("x", count=count)

    assert step(CloseArguments(bracketed), machine) == "on"
    assert said(machine) == json
    assert machine.call is not None
    assert (machine.call.closed, machine.call.ended) == (True, bracketed)


def test_a_call_with_nothing_in_it_says_nothing() -> None:
    """It is reported; its markers are gone, and so many closers have been read."""
    machine = machine_at("x", at=1)

    assert step(DropEmpty(2), machine) == "on"
    assert machine.events == [Malformed("", 1, "a call")]
    assert (machine.closed, machine.frames) == (2, [])


NONE, NOTHING = NoArguments("none", Finder(("{",)), 20), NoArguments("", Finder(("<p>",)), 20)


@pytest.mark.parametrize(
    ("instruction", "text", "final", "outcome", "json"),
    [
        (NONE, "none", False, "to 20", "{}"),
        (NONE, "none</f>", False, "to 20", "{}"),
        (NONE, "no", False, "waits", ""),
        (NONE, "no", True, "on", ""),
        (NONE, "{", False, "on", ""),
        (NONE, "x", False, "on", ""),
        (NOTHING, "<p>", False, "on", ""),
        (NOTHING, "<", False, "waits", ""),
        (NOTHING, "", False, "waits", ""),
        (NOTHING, "", True, "to 20", "{}"),
        (NOTHING, "<", True, "to 20", "{}"),
        (NOTHING, "</f>", False, "to 20", "{}"),
    ],
)
def test_what_stands_for_no_arguments(
    instruction: NoArguments, text: str, final: bool, outcome: str, json: str
) -> None:
    """A text of its own, or nothing at all where no argument begins."""
    machine = calling("~" + text, at=1, final=final)

    assert (step(instruction, machine), said(machine)) == (outcome, json)
    assert machine.call is not None
    assert machine.call.closed is (outcome == "to 20")
    assert machine.at == (1 + len(instruction.text) if outcome == "to 20" else 1)


INSTRUCTIONS: list[Instruction] = [CLOSE, NONE, NOTHING, ENTRIES]


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_a_step_that_waits_takes_nothing_but_layout(instruction: Instruction) -> None:
    """The next chunk finds everything as it was."""
    machine = calling("<", count=1)

    assert step(instruction, machine) in ("waits", "on", "to 20")
    assert machine.at == 0


def test_any_of_what_closes_more_may_come_instead() -> None:
    """Each shows that the value has ended; the missing marker is reported."""
    instruction = CloseValue("</v>", ("</f></c>", "</all>"))
    for text in ("</f></c>", "</all>"):
        machine = calling(text)
        assert step(instruction, machine) == "on"
        assert [event.expected for event in machine.events if isinstance(event, Malformed)] == ["'</v>'"]
    assert step(instruction, calling("</x>")) == "fails: '</v>'"
    assert step(instruction, calling("</a")) == "waits"
