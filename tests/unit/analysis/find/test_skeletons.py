"""Literals around a call in, its named parts out: each clause with a text that needs it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unrender.analysis.find.skeletons import (
    close_quotes,
    id_parts,
    lead_layout,
    left_out,
    literal_after,
    move_brackets,
    outer_literals,
    split_closer,
    split_opener,
)
from unrender.format import Arguments, CallSyntax, Codec, Slot, Strings, ToolMode

NAME, KEY, VALUE, ARGS, ID, INDEX = Slot.NAME, Slot.KEY, Slot.VALUE, Slot.ARGUMENTS, Slot.ID, Slot.INDEX
LONG = "x" * 1000

OPENERS = [
    ("<call>", "<call>", ""),
    ("<call><name>", "<call><name>", ""),
    ("<call>\n<f=", "<call>\n", "<f="),
    ('<call name="', "", '<call name="'),
    ('<tool>\n<fn id="1" name=\'', "<tool>\n", '<fn id="1" name=\''),
    ("foo name=", "", "foo name="),
    ("[CALLS]f: [x", "[CALLS]f: ", "[x"),
    ("[CALL] f", "[CALL] ", "f"),
    ("x <call> y", "x <call> ", "y"),
    ("<a> b <c>", "<a> ", "b <c>"),
    ("call:", "", "call:"),
    ("a\nf(", "", "a\nf("),
    ("", "", ""),
    (f"{LONG} n=", "", f"{LONG} n="),
    (f"<a>{LONG} n=", "<a>", f"{LONG} n="),
    (f"<a>{LONG[:995]} n=", "<a>", f"{LONG[:995]} n="),
    (f"<a>{LONG[:994]} n=", "", f"<a>{LONG[:994]} n="),
]


@pytest.mark.parametrize(("text", "opener", "prefix"), OPENERS)
def test_opener_ends_before_the_tag_that_holds_the_name(text, opener, prefix):
    """An attribute or an open tag right before the name belongs to the name; else the markers are the call's."""
    assert split_opener(text) == (opener, prefix)


CLOSERS = [
    ("</f></call>", "<call>", "</f>", "</call>"),
    ("</f>\n </call>", "<call>", "</f>", "\n </call>"),
    ("\n</call>", "<call>", "", "\n</call>"),
    ("</f></call>", "", "</f></call>", ""),
    ("</f></call>", "call", "</f></call>", ""),
    ("\n", "<call>", "\n", ""),
    ("</a></b></c>", "<x>\n<y>", "</a>", "</b></c>"),
    ("</a>", "<x><y>", "", "</a>"),
    (")</call>\n", "<call>", ")", "</call>\n"),
]


@pytest.mark.parametrize(("text", "call_start", "close", "call_end"), CLOSERS)
def test_call_is_closed_by_as_many_markers_as_open_it(text, call_start, close, call_end):
    """What is before these closes the function; white space before them is the call's."""
    assert split_closer(text, call_start) == (close, call_end)


TAGGED = Arguments(entry=(KEY, "=", VALUE), separator=",")
BRACKETS = [
    (("f(", ARGS, ")"), ("f", ARGS), "()"),
    ((NAME, "{", ARGS, "}x"), (NAME, ARGS, "x"), "{}"),
    ((NAME, "[", ARGS, "]", ID), (NAME, ARGS, ID), "[]"),
    ((NAME, "(", ARGS, ")", ID, "y"), (NAME, ARGS, ID, "y"), "()"),
    (("a", NAME, " (", ARGS, ") "), ("a", NAME, " ", ARGS, " "), "()"),
]
NO_BRACKETS = [
    (NAME, "(", ARGS, "]"),
    (NAME, ARGS, ")"),
    (ARGS, ")", NAME),
    (NAME, "(", ARGS),
    (NAME, "(", ARGS, ID, ")"),
    (NAME, "<", ARGS, ">"),
    (NAME, "(", ARGS, " )"),
]


@pytest.mark.parametrize(("function", "left", "brackets"), BRACKETS)
def test_brackets_around_arguments_are_theirs(function, left, brackets):
    """A pair of brackets right around the arguments goes to these."""
    moved, arguments = move_brackets(function, TAGGED)

    assert moved == left
    assert (arguments.start, arguments.end) == tuple(brackets)
    assert (arguments.entry, arguments.separator) == (TAGGED.entry, TAGGED.separator)


@pytest.mark.parametrize("function", NO_BRACKETS)
def test_other_literals_stay(function):
    """What is not a pair, or not right around the arguments, belongs to the function."""
    assert move_brackets(function, TAGGED) == (function, TAGGED)


def test_one_json_object_has_its_own_brackets():
    """Arguments that are one JSON object take no brackets from the function."""
    assert move_brackets((NAME, "(", ARGS, ")"), Arguments()) == ((NAME, "(", ARGS, ")"), Arguments())


@pytest.mark.parametrize("quote", ['"', "'"])
def test_quote_is_given_back_to_the_value(quote):
    """In a row of attributes the quote that ends one is before the next: the skeleton is turned by one place."""
    arguments = Arguments(entry=(f"{quote} ", KEY, f"={quote}", VALUE))

    function, turned = close_quotes(("<c n=", NAME, ARGS, f"{quote}/>"), arguments)

    assert function == ("<c n=", NAME, quote, ARGS, "/>")
    assert turned.entry == (" ", KEY, f"={quote}", VALUE, quote)


def test_entry_that_is_a_quote_alone_is_turned():
    """Nothing empty is left where the quote was all that was before the key; what follows the call stays."""
    function, turned = close_quotes((NAME, ARGS, '"', ID), Arguments(entry=('"', KEY, '"', VALUE)))

    assert function == (NAME, '"', ARGS, ID)
    assert turned.entry == (KEY, '"', VALUE, '"')


UNQUOTED = {
    "a separator stands between": (('" ', KEY, '="', VALUE), '"/>', ","),
    "the call does not end in the quote": (('" ', KEY, '="', VALUE), "/>", ""),
    "the value is not last": (('" ', KEY, '="', VALUE, "x"), '"/>', ""),
    "the key is last": (('" ', VALUE, '="', KEY), '"/>', ""),
    "the entry does not begin with the quote": ((" ", KEY, '="', VALUE), '"/>', ""),
    "the value is not quoted": (('" ', KEY, "=", VALUE), '"/>', ""),
    "the quotes are different": (('" ', KEY, "='", VALUE), '"/>', ""),
    "the entry begins with its key": ((KEY, '"', VALUE), '"', ""),
    "the entry is its value": ((VALUE,), '"', ""),
    "what opens and closes is not a quote": (("- ", KEY, "=-", VALUE), "-/>", ""),
    "there is no entry": ((), '"', ""),
}


@pytest.mark.parametrize(("entry", "after", "separator"), UNQUOTED.values(), ids=UNQUOTED)
def test_other_entries_are_not_turned(entry, after, separator):
    """Only a quote that opens and closes in the same way in each place is moved."""
    arguments = Arguments(entry=entry, separator=separator)

    assert close_quotes((NAME, ARGS, after), arguments) == ((NAME, ARGS, after), arguments)


LINES = Arguments(entry=(KEY, "=", VALUE, "\n"), codec=Codec(strings=Strings.RAW))
QUOTED = replace(LINES, codec=Codec(strings=Strings.QUOTED))
LED = {
    "a call that ends in a marker": (
        ((NAME, ":\n", ARGS), LINES, "</call>"),
        ((NAME, ":", ARGS, "\n"), ("\n", KEY, "=", VALUE), "</call>"),
    ),
    "a call that nothing ends": (
        ((NAME, ":\n", ARGS), QUOTED, ""),
        ((NAME, ":", ARGS), ("\n", KEY, "=", VALUE), "\n"),
    ),
    "a function that a marker ends": (
        ((NAME, ":\n", ARGS, "</f>", ID), LINES, ""),
        ((NAME, ":", ARGS, "\n</f>", ID), ("\n", KEY, "=", VALUE), ""),
    ),
}
NOT_LED = {
    "quoted values, and a marker ends the call": ((NAME, ":\n", ARGS), QUOTED, "</call>"),
    "nothing is before the arguments": ((ARGS, NAME), LINES, ""),
    "white space alone is before them": ((NAME, "\n", ARGS), LINES, ""),
    "other white space is before them": ((NAME, ": ", ARGS), LINES, ""),
    "no white space is after a value": ((NAME, ":\n", ARGS), replace(LINES, entry=(KEY, "=", VALUE, ";")), ""),
    "nothing is after a value": ((NAME, ":\n", ARGS), replace(LINES, entry=(KEY, "=", VALUE)), ""),
    "arguments have an opener": ((NAME, ":\n", ARGS), replace(LINES, start="("), ""),
    "arguments are one JSON object": ((NAME, ":\n", ARGS), Arguments(), ""),
}


@pytest.mark.parametrize(("parts", "led"), LED.values(), ids=LED)
def test_layout_after_values_leads_what_follows(parts, led):
    """White space that ends each argument begins the next one, and what ends them all."""
    function, arguments, call_end = parts

    tools = lead_layout(syntax(function, arguments, call_end))

    assert (tools.function, tools.arguments.entry, tools.call_end) == led


@pytest.mark.parametrize("parts", NOT_LED.values(), ids=NOT_LED)
def test_other_layout_stays(parts):
    """Only white space that the text before the first argument ends in as well is moved."""
    assert lead_layout(syntax(*parts)) == syntax(*parts)


def syntax(function, arguments, call_end):
    return CallSyntax(mode=ToolMode.TAG_WITH_TAGGED, function=function, arguments=arguments, call_end=call_end)


@pytest.mark.parametrize("function", [(NAME, ":", ARGS), (NAME, "#", ID, ":", ARGS), (NAME, ":", ARGS, ID)])
def test_arguments_are_left_out_right_after_the_name_only(function):
    """Where something else of a call stands between name and arguments, or after them, nothing is concluded."""
    tools = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=function, call_end="</c>")

    assert (left_out(tools, ":", "</c>.", "</c>.") is not None) == (function == (NAME, ":", ARGS))


IDS = [
    (("functions.", NAME, ":", INDEX, ARGS), (0, 4)),
    ((NAME, ":", INDEX), (0, 3)),
    (("<call>", NAME, ":", INDEX), (1, 4)),
    ((ID, NAME, ":", INDEX), (1, 4)),
    ((NAME, "::", INDEX), None),
    ((NAME, ":", ARGS, ":", INDEX), None),
    ((NAME, ARGS), None),
    ((INDEX, ":", NAME), None),
]


@pytest.mark.parametrize(("function", "parts"), IDS)
def test_name_with_a_counter_is_the_id(function, parts):
    """A name that one character joins to a counter is the id, with a namespace before it but no marker."""
    tools = CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(*function, *([] if ARGS in function else [ARGS])))

    assert id_parts(tools) == parts


def test_json_has_its_id_in_a_field():
    """In one JSON object, name and counter side by side are not an id."""
    assert id_parts(CallSyntax(mode=ToolMode.JSON_NATIVE, function=(NAME, ":", INDEX, ARGS))) is None


def test_literals_of_a_skeleton():
    """The literals at both ends, and the one right after a slot."""
    assert outer_literals(("a", NAME, "b")) == ("a", "b")
    assert outer_literals((NAME, "x", ID)) == ("", "")
    assert [literal_after(skeleton, NAME) for skeleton in ((NAME, "x"), (NAME,), (NAME, ID, "x"))] == ["x", "", ""]
