"""Raw values that no marker closes, as in `[f(city=Paris, days=3)]`: they end where the call can go on."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any

import pytest
from properties.invariants import check

from unrender.format import Arguments, Codec, Containers, Format, Slot, Strings, ToolMode, Tools, Typing, Words
from unrender.messages import Request, Tool
from unrender.parsing.follow import Follow
from unrender.parsing.parser import Parser

CALLS = Tools(
    mode=ToolMode.TAG_WITH_TAGGED,
    section_start="[",
    section_end="]",
    separator=", ",
    function=(Slot.NAME, Slot.ARGUMENTS),
    arguments=Arguments(
        start="(",
        end=")",
        entry=(Slot.KEY, "=", Slot.VALUE),
        separator=", ",
        codec=Codec(strings=Strings.RAW, words=Words.PYTHON, containers=Containers.PYTHON, typed_by=Typing.SCHEMA),
    ),
)
TYPES = {"city": "string", "days": "integer", "tags": "array", "exact": "boolean"}
REQUEST = Request(
    tools=(
        Tool(name="f", parameters={"properties": {name: {"type": kind} for name, kind in TYPES.items()}}),
        Tool(name="g"),
    )
)


def parser() -> Parser:
    return Parser(Format(tools=CALLS), REQUEST)


def read(text: str) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in check(parser, text).tool_calls]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("city=Paris, days=3", {"city": "Paris", "days": 3}),
        ("city=Paris, Texas, days=3", {"city": "Paris, Texas", "days": 3}),
        ("city=Paris (France), or Rome", {"city": "Paris (France), or Rome"}),
        ("city=a) b, days=3", {"city": "a) b", "days": 3}),
        ("city=x == y, z==1", {"city": "x == y, z==1"}),
        ('city=say "hi", it\'s', {"city": 'say "hi", it\'s'}),
        ("city='single' the & , days=3", {"city": "'single' the & ", "days": 3}),
        ("city='x, y=1' and z , days=3", {"city": "'x, y=1' and z ", "days": 3}),
        ("city='' , days=3", {"city": "", "days": 3}),
        ("city=, days=3", {"city": "", "days": 3}),
        ("city=", {"city": ""}),
        ("tags=['a, b=c)]', 1], exact=True", {"tags": ["a, b=c)]", 1], "exact": True}),
    ],
)
@pytest.mark.parametrize("behind", ["]", ", g()]", " , g() ]"])
def test_a_value_ends_where_the_call_can_go_on(arguments: str, value: Any, behind: str) -> None:
    """Commas and brackets that nothing follows as the syntax has it belong to the value."""
    assert read(f"[f({arguments}){behind}") == [("f", value), *([("g", {})] if "g" in behind else [])]


def test_python_literals_are_read_as_well() -> None:
    """Models that write Python quote their strings: what is inside the quotes is the value."""
    assert read("""[f(city='Paris, days=2', days=3), f(city="it's", exact=False)]""") == [
        ("f", {"city": "Paris, days=2", "days": 3}),
        ("f", {"city": "it's", "exact": False}),
    ]


def test_the_end_of_the_output_closes_the_arguments() -> None:
    """A bracket that ends the output ends the value; without it the call is cut off."""
    assert read("[f(city=Paris)") == [("f", {"city": "Paris"})]
    assert [str(call.status) for call in check(parser, "[f(city=Paris").tool_calls] == ["truncated"]


def test_a_value_streams() -> None:
    """Text leaves as soon as it cannot be the beginning of an end."""
    reading = parser()
    reading.feed("[f(city=Rome, Italy and so")

    assert reading.message.tool_calls[0].arguments == '{"city": "Rome, Italy and so'


def test_the_search_for_ends_is_linear() -> None:
    """Text full of beginnings of ends costs in proportion to its length."""

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
    """A program that holds one can be sent to another process."""
    follow = pickle.loads(pickle.dumps(Follow(CALLS)))

    assert follow.find("Rome)]", 0) == (4, ")]")
