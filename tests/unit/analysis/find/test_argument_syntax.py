"""Calls with no, one, two and many arguments in, how arguments are written out: each clause with a text that needs it."""

from __future__ import annotations

import json

import pytest

from unrender.analysis.ask.answers import ANSWER_KINDS, Answers, WrittenCall
from unrender.analysis.ask.probes import KEYS, NAMES, NUMBERS, VALUES
from unrender.analysis.find.argument_syntax import find_json_arguments, find_tagged_arguments, read_entries
from unrender.format import Arguments, Codec, Slot, Strings, Typing

NAME, (A, B), (ONE, TWO) = NAMES[0], KEYS[:2], NUMBERS[:2]
KEY, VALUE, TYPE = Slot.KEY, Slot.VALUE, Slot.TYPE
FEW = {A: "valdrixo", B: 7}


def called(*entries, start="<f>", middle="", separator="", end="</f>"):
    """Return an answer with one call."""
    return f"{start}{NAME}{middle}{separator.join(entries)}{end}."


def answers(entry, **around):
    """Return answers of a call with one, two and no arguments, each written by `entry`."""
    return Answers(
        call=called(entry(A, ONE), **around),
        long_call=called(entry(A, ONE), entry(B, TWO), **around),
        empty_call=called(**around),
    )


def written(entry, *, kinds=ANSWER_KINDS, values=None, **around):
    """Return what stands for one argument of each kind, and for several at once."""
    return WrittenCall(
        kinds={name: called(entry(A, value), **around) for name, value in kinds.items()},
        many=[(values or FEW, called(*(entry(key, value) for key, value in (values or FEW).items()), **around))],
    )


def found(entry, **around):
    return find_tagged_arguments(answers(entry, **around), written(entry, **around)).arguments


def tags(key, value):
    return f"<k>{key}</k><v>{value}</v>"


def quoted(key, value):
    return f"{key}=<|{value}|>" if isinstance(value, str) else f"{key}={json.dumps(value)}"


ENTRIES = {
    "in tags": (tags, {}, ("<k>", KEY, "</k><v>", VALUE, "</v>"), ""),
    "in tags, on lines": (
        lambda key, value: f"\n<k>{key}</k><v>{value}</v>",
        {"end": "\n</f>"},
        ("<k>", KEY, "</k><v>", VALUE, "</v>\n"),
        "",
    ),
    "with a separator": (
        lambda key, value: f"{key}:{value}",
        {"separator": ", ", "middle": "{", "end": "}"},
        (KEY, ":", VALUE),
        ", ",
    ),
    "with the key at both ends": (
        lambda key, value: f"<{key}>{value}</{key}>",
        {},
        ("<", KEY, ">", VALUE, "</", KEY, ">"),
        "",
    ),
    "with a space before each": (lambda key, value: f" {key}={value}", {}, (" ", KEY, "=", VALUE), ""),
}


@pytest.mark.parametrize(("entry", "around", "skeleton", "separator"), ENTRIES.values(), ids=ENTRIES)
def test_entry_is_what_repeats(entry, around, skeleton, separator):
    """What is around each key and value is the entry's, what is between two the separator."""
    arguments = found(entry, **around)

    assert (arguments.entry, arguments.separator) == (skeleton, separator)
    assert (arguments.codec.strings, arguments.codec.typed_by) == (Strings.RAW, Typing.SCHEMA)


def test_white_space_that_an_empty_call_lacks_begins_the_entry():
    """Between name and first argument is what a call without arguments does not have."""
    lines = Answers(
        call=f"<f>{NAME}\n<k>{A}={ONE}</k>\n</f>.",
        long_call=f"<f>{NAME}\n<k>{A}={ONE}</k>\n<k>{B}={TWO}</k>\n</f>.",
        empty_call=f"<f>{NAME}\n</f>.",
    )
    lacking = Answers(call=lines.call, long_call=lines.long_call, empty_call=f"<f>{NAME}</f>.")
    unknown = Answers(call=lines.call, long_call=lines.long_call, empty_call=None)
    other = Answers(call=lines.call, long_call=lines.long_call, empty_call=f"<f>{NAME[::-1]}</f>.")
    marked = Answers(call=lines.call, long_call=lines.long_call, empty_call=f"<f>{NAME}<k>\n</f>.")

    twice = Answers(call=lines.call, long_call=lines.long_call, empty_call=f"<f>{NAME}\n</f>{NAME}.")

    entries = [
        find_tagged_arguments(item, WrittenCall()).arguments.entry
        for item in (lines, lacking, unknown, other, marked, twice)
    ]

    ended, begun = ("<k>", KEY, "=", VALUE, "</k>\n"), ("\n<k>", KEY, "=", VALUE, "</k>")
    assert entries == [ended, begun, ended, ended, begun, ended]


def test_a_bracket_before_the_white_space_stays_where_it_is():
    """Of what is between name and first argument, the white space alone may begin the entry."""
    item = Answers(
        call=f"<f>{NAME}{{\n<k>{A}={ONE}</k>\n}}</f>.",
        long_call=f"<f>{NAME}{{\n<k>{A}={ONE}</k>\n<k>{B}={TWO}</k>\n}}</f>.",
        empty_call=f"<f>{NAME}{{}}</f>.",
    )

    assert find_tagged_arguments(item, WrittenCall()).arguments.entry == ("\n<k>", KEY, "=", VALUE, "</k>")


def test_space_stays_where_the_entry_does_not_end_in_it():
    """White space that is not a part of what repeats is before all arguments, whatever an empty call has."""
    item = Answers(
        call=f"<f>{NAME}\n<k>{A}={ONE}</k></f>.",
        long_call=f"<f>{NAME}\n<k>{A}={ONE}</k><k>{B}={TWO}</k></f>.",
        empty_call=f"<f>{NAME}</f>.",
    )

    assert find_tagged_arguments(item, WrittenCall()).arguments.entry == ("<k>", KEY, "=", VALUE, "</k>")


@pytest.mark.parametrize("missing", ["call", "long_call"])
def test_without_both_calls_there_is_no_entry(missing):
    """One call alone, or calls that do not show their arguments, leave the entry open."""
    texts = {"call": called(tags(A, ONE)), "long_call": called(tags(A, ONE), tags(B, TWO))}

    for text in (None, called()):
        assert find_tagged_arguments(Answers(**(texts | {missing: text})), WrittenCall()).arguments == Arguments()


def test_strings_may_be_quoted():
    """What a string has around it, and a number has not, are its quotes."""
    result = find_tagged_arguments(answers(quoted), written(quoted))
    codec = result.arguments.codec

    assert (codec.strings, codec.string_open, codec.string_close) == (Strings.QUOTED, "<|", "|>")
    assert result.rules["A3"] == "strings are quoted"


def test_quotes_may_be_followed_by_what_numbers_have_not():
    """A closer is told from what follows it by what follows a number."""

    def entry(key, value):
        return f"{key}=<|{value}|>;" if isinstance(value, str) else f"{key}={json.dumps(value)} ;"

    codec = find_tagged_arguments(answers(entry), WrittenCall(kinds=written(entry).kinds)).arguments.codec

    assert (codec.string_open, codec.string_close) == ("<|", "|>")


def typed(key, value):
    words = {str: "str", int: "num", bool: "bool", type(None): "nil", dict: "map", list: "seq"}
    return f'<{key} type="{words[type(value)]}">{value if isinstance(value, str) else json.dumps(value)}</>'


def test_a_word_may_name_the_type():
    """Where strings and numbers differ in a word before the value, that word is the type's."""
    result = find_tagged_arguments(answers(typed), written(typed))
    arguments = result.arguments

    assert arguments.entry == ("<", KEY, ' type="', TYPE, '">', VALUE, "</>")
    assert arguments.codec.typed_by is Typing.ATTRIBUTE
    assert dict(arguments.codec.types) == {
        "string": "str",
        "number": "num",
        "boolean": "bool",
        "null": "nil",
        "object": "map",
        "array": "seq",
    }
    assert result.rules["A3"] == "a word before the value names its type"
    assert result.unexplained == ()


def test_types_that_are_not_rendered_are_not_known():
    """A kind of value that the template refuses, or writes without its key, has no word."""
    shown = written(typed)
    kinds = dict(shown.kinds) | {"null": None, "array": called(), "object": called(f'<{A} type="">')}

    codec = find_tagged_arguments(answers(typed), WrittenCall(kinds=kinds, many=shown.many)).arguments.codec

    assert dict(codec.types) == {"string": "str", "number": "num", "boolean": "bool"}


def test_number_that_is_written_otherwise_is_reported():
    """Where numbers have something that strings have not, nothing is concluded, and the rule says so."""

    def entry(key, value):
        return f"{key}={value}" if isinstance(value, str) else f"{key}=#{json.dumps(value)}"

    result = find_tagged_arguments(answers(entry), written(entry))

    assert result.rules["A3"] == "numbers are written otherwise, in a way that is not understood"
    assert result.arguments.codec.string_open == ""


def test_value_that_is_written_twice_is_not_its_own_type():
    """What is between key and value ends where the value is first."""

    def entry(key, value):
        return f"{key}={value} ({value})"

    found = find_tagged_arguments(answers(entry), written(entry))

    assert found.rules["A3"] == "numbers are written otherwise, in a way that is not understood"
    assert found.arguments.codec.typed_by is not Typing.ATTRIBUTE


def test_rules_and_the_answer_with_many_values_are_kept():
    """A finding names its heuristics by comparison, and keeps the text that showed many values."""
    result = find_tagged_arguments(answers(tags), written(tags))

    assert result.rules == {
        "T5": "what is between two, and at both ends",
        "A1": "what is between two, and at both ends",
        "A3": "nothing tells strings and numbers apart",
    }
    assert result.many == called(tags(A, "valdrixo"), tags(B, 7))


def test_calls_with_many_values_shrink():
    """A call that the template refuses, or that shows none of its values, is passed over for the next."""
    many = [({A: None}, None), ({A: None}, called()), (FEW, called(tags(A, "valdrixo"), tags(B, "7")))]
    result = find_tagged_arguments(answers(tags), WrittenCall(many=many))

    assert result.unexplained == ()
    assert result.many == many[2][1]


def test_no_call_with_many_values_is_reported():
    """Without any, the codec is what the single values showed."""
    result = find_tagged_arguments(answers(quoted), WrittenCall(kinds=written(quoted).kinds))

    assert result.unexplained == ("no call with values of several kinds is rendered",)
    assert result.arguments.codec == Codec(string_open="<|", string_close="|>")
    assert result.many is None


READ = {
    "closed by a tag": (
        ("<k>", KEY, "</k>", VALUE, "</v>"),
        "",
        f"<k>{A}</k>1</v><k>{B}</k>2</v></f>",
        {A: "1", B: "2"},
    ),
    "parted": ((KEY, "=", VALUE), ", ", f"({A}=1, {B}=2)", {A: "1", B: "2)"}),
    "the last one holds brackets": ((KEY, "=", VALUE), ", ", f"{{{A}=1, {B}=[2, {{}}]}}", {A: "1", B: "[2, {}]"}),
    "the last one is bare": ((KEY, "=", VALUE), ", ", f"{{{A}=1, {B}=2}}", {A: "1", B: "2"}),
    "the key again after the value": (
        ("<", KEY, ">", VALUE, "</", KEY, ">"),
        "",
        f"<{A}>1</{A}><{B}>2</{B}>",
        {A: "1", B: "2"},
    ),
    "with a type": (("<", KEY, ":", TYPE, ">", VALUE, "</>"), "", f"<{A}:str>1</><{B}:num>2</>", {A: "1", B: "2"}),
    "with a type, and what follows it in the value as well": (
        ("<", KEY, ":", TYPE, ">", VALUE, "</>"),
        "",
        f"<{A}:str>1>0</><{B}:num>2>0</>",
        {A: "1>0", B: "2>0"},
    ),
    "with a type and nothing after it": (
        ("<", KEY, ":", TYPE, VALUE, "</>"),
        "",
        f"<{A}:s1</><{B}:n2</>",
        {A: "s1", B: "n2"},
    ),
    "one is missing": (("<k>", KEY, "</k>", VALUE, "</v>"), "", f"<k>{B}</k>2</v>", {B: "2"}),
    "none is there": (("<k>", KEY, "</k>", VALUE, "</v>"), "", "</f>", {}),
    "a value has the closer in it": (
        ("<k>", KEY, "</k>", VALUE, "</v>"),
        "",
        f"<k>{A}</k>1</v>0</v><k>{B}</k>2</v></v>",
        {A: "1</v>0", B: "2"},
    ),
}


@pytest.mark.parametrize(("entry", "separator", "text", "expected"), READ.values(), ids=READ)
def test_written_values_are_cut_out(entry, separator, text, expected):
    """Between the entry's head and its tail, or the next entry, is the value."""
    assert read_entries(text, Arguments(entry=entry, separator=separator), {A: 1, B: 2}) == expected


def test_the_last_value_ends_at_its_brackets_where_something_else_follows():
    """What follows the last value in one call says nothing of a call that ends otherwise."""
    arguments = Arguments(entry=(KEY, "=", VALUE), separator=", ")

    assert read_entries(f"{{{A}=1, {B}=2}}", arguments, {A: 1, B: 2}, "]") == {A: "1", B: "2"}


JSON_TEXT = json.dumps(FEW)


def test_json_arguments_have_a_layout():
    """One JSON object in the margin of its line, or a Python dictionary."""
    plain = find_json_arguments(WrittenCall(many=[(FEW, f"x{JSON_TEXT}y")]))
    python = find_json_arguments(WrittenCall(many=[(FEW, f"x{FEW}y")]))
    indented = json.dumps(FEW, indent=2).replace("\n", "\n    ")
    deep = find_json_arguments(WrittenCall(many=[(FEW, f"x\n  x\n    {indented}y")]))

    assert plain.arguments == Arguments()
    assert plain.many == f"x{JSON_TEXT}y"
    assert python.arguments.codec.strings is Strings.PYTHON
    assert deep.arguments == Arguments(codec=Codec(indent=2))
    assert not any(item.unexplained for item in (plain, python, deep))


def test_json_arguments_shrink():
    """What is refused, or not all there, is passed over; where nothing is understood, the layout is the default."""
    many = [(VALUES, None), (VALUES, f"x{JSON_TEXT}"), (FEW, f"x{JSON_TEXT.replace(', ', ',')}")]

    assert find_json_arguments(WrittenCall(many=many)).arguments.codec == Codec(item_separator=",")
    assert find_json_arguments(WrittenCall(many=many[:2])).arguments == Arguments()
    assert find_json_arguments(WrittenCall(many=many[:2])).many is None


def test_json_in_no_known_layout_is_reported():
    """A layout that nobody knows is said."""
    result = find_json_arguments(WrittenCall(many=[(FEW, "x" + JSON_TEXT.replace(": ", " :"))]))

    assert [text[:13] for text in result.unexplained] == ["the arguments"]
