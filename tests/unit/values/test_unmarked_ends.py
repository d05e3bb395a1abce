"""Raw values without a closing marker, as in `[f(city=Paris, days=3)]`, end where the call may continue."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from properties.families import RAW_BY_SCHEMA, RAW_LINES, RAW_OPTIONS
from tables import table

from unrender import Parser
from unrender.answer.build import calls_in_syntax
from unrender.answer.follow import open_ends
from unrender.format import Arguments, CallSyntax, Format, Slot
from unrender.types import Request, Tool
from unrender.values.unmarked_ends import Follow

CALLS = Format.from_dict(table("test_unmarked_ends")["CALLS"]).tools
SPACED = replace(CALLS, arguments=replace(CALLS.arguments, entry=(Slot.KEY, " ", Slot.VALUE)))
TYPES = {"city": "string", "days": "integer", "tags": "array", "exact": "boolean"}
REQUEST = Request(
    tools=(
        Tool(name="f", parameters={"properties": {name: {"type": kind} for name, kind in TYPES.items()}}),
        Tool(name="g"),
    )
)


def follow_of(syntax: CallSyntax, ends: tuple[str, ...] = (), **names: tuple[str, ...]) -> Follow:
    return replace(open_ends(calls_in_syntax(Format(), syntax), ends), **names)


def parser() -> Parser:
    return Parser(Format(tools=CALLS), REQUEST)


def test_a_value_streams() -> None:
    """Text leaves as soon as it can't be the start of an end."""
    reading = parser()
    reading.feed("[f(city=Rome, Italy and so")

    assert reading.message.tool_calls[0].arguments_json == '{"city": "Rome, Italy and so'


@pytest.mark.slow
def test_the_search_for_ends_is_linear() -> None:
    """Text with many possible ends is read in linear time."""

    def seconds(size: int) -> float:
        text = "[f(city=" + ", a " * size
        best = 1e9
        for _ in range(5):
            reading, start = parser(), time.process_time()
            for at in range(0, len(text), 4):
                reading.feed(text[at : at + 4])
            best = min(best, time.process_time() - start)
        return best

    # Four times the text: linear work takes four times as long, quadratic work sixteen times.
    assert seconds(8_000) < 10 * seconds(2_000)


def test_an_end_can_be_pickled() -> None:
    """A program with an end can be sent to another process."""
    follow = pickle.loads(pickle.dumps(follow_of(CALLS)))

    assert follow.find("Rome)]", 0) == (4, ")]")


def test_markers_of_any_length_are_searched_for() -> None:
    """Even a marker of maximum length ends a value."""
    closer = "\n" + "]" * 900
    arguments = Arguments(entry=("\n", Slot.KEY, "=", Slot.VALUE), codec=RAW_BY_SCHEMA)
    function = ("[do:", Slot.NAME, "]", Slot.ARGUMENTS, closer)
    follow = follow_of(CallSyntax(function=function, arguments=arguments))

    assert follow.decided(f"Rome{closer}", 0) == (4, closer)
    assert follow.decided(f"Rome{closer[:-1]}", 0) == (4, "")
    assert follow.decided(f"Rome{closer[:-1]}.", 0)[0] > 4


LINES = RAW_LINES.format.tools
OPTIONS = RAW_OPTIONS.format.tools
CLOSED = replace(CALLS, function=(*CALLS.function, ";"))
SYNTAXES = {"calls": CALLS, "spaced": SPACED, "lines": LINES, "options": OPTIONS, "closed": CLOSED}


def follow_said(syntax: str, ends: list[str], names: list[str] | None = None) -> Follow:
    """Return the ends in a row: a syntax, the text that may follow its calls, and the names of arguments."""
    return follow_of(SYNTAXES[syntax], tuple(ends), **({} if names is None else {"names": tuple(names)}))


@cases
def test_where_a_value_ends(syntax: Any, text: str, decided: list[Any], at_the_end: list[Any]) -> None:
    """The end is found from any place in the buffer, before more text and at the end of the output."""
    follow = follow_said(*syntax)
    assert [list(follow.decided(text, 0)), list(follow.find(text, 0))] == [decided, at_the_end]
    at, mark = follow.decided("~~" + text, 2)
    assert [at - 2, mark] == decided


def test_what_is_before_the_value_does_not_end_it() -> None:
    """Text before a value doesn't end it, even if it looks like an end."""
    assert follow_of(LINES).decided("\nb", 1) == (2, "")
    assert follow_of(LINES).decided("\nb", 0) == (0, "")


@cases
def test_whether_another_argument_follows(syntax: Any, text: str, first: bool, final: bool, found: Any) -> None:
    """The result is None while it depends on later text."""
    assert follow_said(*syntax).goes_on("~" + text, 1, first=first, final=final) is found


def test_what_is_known_of_a_syntax() -> None:
    """A syntax may or may not have closing markers, and may or may not be code."""
    assert [(f.closed, f.in_code) for f in (follow_of(CALLS), follow_of(OPTIONS))] == [
        (True, True),
        (False, False),
    ]


def test_names_are_remembered() -> None:
    """The same names give the same object. Without names, or with too many, any name counts."""
    follow = follow_of(LINES)
    made = follow.among(("a", "b"))

    assert made.names == ("a", "b")
    assert follow.among(("a", "b")) is made
    assert follow.among(()) is follow
    assert follow.among(tuple(f"n{i}" for i in range(256))).names[255] == "n255"
    assert follow.among(tuple(f"n{i}" for i in range(257))) is follow
    assert follow_of(CALLS).among(("a",)).names == ("a",)


def test_names_of_many_tools_are_forgotten() -> None:
    """Names of many tools don't fill the memory."""
    follow = follow_of(LINES)
    sizes = []
    for i in range(300):
        follow.among((f"n{i}",))
        sizes.append(len(follow._named))

    assert max(sizes) == 256


@pytest.mark.parametrize(("size", "found"), [(64, True), (65, False)])
def test_names_and_gaps_are_bounded(size: int, found: bool) -> None:
    """Names and gaps beyond the limit start no argument."""
    for text in (f"Rome, {'x' * size}=3", f"Rome,{' ' * size}days=3"):
        assert bool(follow_of(CALLS).decided(text, 0)[1]) is found
