"""Texts with calls in a row in, each call's slots and the literals around them out."""

from __future__ import annotations

import json

import pytest

from unrender.analysis.ask.probes import KEYS, NUMBERS, make_calls
from unrender.analysis.find.rows import find_row
from unrender.analysis.find.skeletons import Row
from unrender.format import Slot, ToolMode

ONE, TWO = make_calls(2)
NAME, ARGS, ID = Slot.NAME, Slot.ARGUMENTS, Slot.ID
JSON = [json.dumps(dict(call.arguments)) for call in (ONE, TWO)]
KEY, NUMBER = KEYS[0], NUMBERS[0]


def native(call, **fields):
    return json.dumps({"name": call.name, "arguments": dict(call.arguments), **fields})


def tagged(call, form="<{}>{}</>"):
    return "".join(form.format(key, value) for key, value in call.arguments.items())


WITH_JSON = {
    "one": (
        f"x<c>{ONE.name}:{JSON[0]}</c>y",
        1,
        Row(before="x<c>", items=((NAME, ":", ARGS),), betweens=(), after="</c>y"),
    ),
    "two": (
        f"x<c>{ONE.name}:{JSON[0]}</c>,<c>{TWO.name}:{JSON[1]}</c>y",
        2,
        Row(before="x<c>", items=((NAME, ":", ARGS),) * 2, betweens=("</c>,<c>",), after="</c>y"),
    ),
    "with an id first": (
        f"{ONE.id}({ONE.name}{JSON[0]})y",
        1,
        Row(before="", items=((ID, "(", NAME, ARGS),), betweens=(), after=")y"),
    ),
    "the second is missing": (f"x<c>{ONE.name}:{JSON[0]}</c>", 2, None),
    "arguments come before a call's name": (
        f"{JSON[0]}{ONE.name}",
        1,
        Row(before="", items=((ARGS, NAME),), betweens=(), after=""),
    ),
    "nothing": ("x", 1, None),
}


@pytest.mark.parametrize(("text", "count", "expected"), WITH_JSON.values(), ids=WITH_JSON)
def test_calls_with_json_arguments(text, count, expected):
    """Name, id and the JSON object are the slots."""
    assert find_row(text, make_calls(count), ToolMode.TAG_WITH_JSON) == expected


ITEM = ('{"name": "', NAME, '", "arguments": ', ARGS, "}")
NATIVE = {
    "two": (
        f"s{native(ONE)}, {native(TWO)}e",
        2,
        Row(before="s", items=(ITEM, ITEM), betweens=(", ",), after="e"),
    ),
    "with an id": (
        f"s{native(ONE, id=ONE.id)}e",
        1,
        Row(before="s", items=((*ITEM[:-1], ', "id": "', ID, '"}'),), betweens=(), after="e"),
    ),
    "nothing": ("x", 1, None),
}


@pytest.mark.parametrize(("text", "count", "expected"), NATIVE.values(), ids=NATIVE)
def test_calls_as_json_objects(text, count, expected):
    """The whole object is the item, from its first brace to its last."""
    assert find_row(text, make_calls(count), ToolMode.JSON_NATIVE) == expected


ENTRY = ("<", Slot.KEY, ">", Slot.VALUE, "</>")
CLOSED = ("<", Slot.KEY, ">", Slot.VALUE, "</", Slot.KEY, ">")
CALL = (NAME, " ", ARGS)
LONG = make_calls(2, 2)
TAGGED = {
    "one": (
        f"x[{ONE.name} {tagged(ONE)}]y",
        make_calls(1),
        ENTRY,
        Row(before="x[", items=(CALL,), betweens=(), after="]y"),
    ),
    "two of two arguments": (
        f"x[{LONG[0].name} {tagged(LONG[0])}]+[{LONG[1].name} {tagged(LONG[1])}]y",
        LONG,
        ENTRY,
        Row(before="x[", items=(CALL, CALL), betweens=("]+[",), after="]y"),
    ),
    "words before the name are not arguments": (
        f"{KEY} {NUMBER} x[{ONE.name} {tagged(ONE)}]y",
        make_calls(1),
        ENTRY,
        Row(before=f"{KEY} {NUMBER} x[", items=(CALL,), betweens=(), after="]y"),
    ),
    "the key is written again after the value": (
        f"x[{ONE.name} {tagged(ONE, '<{0}>{1}</{0}>')}]{KEY}y",
        make_calls(1),
        CLOSED,
        Row(before="x[", items=(CALL,), betweens=(), after=f"]{KEY}y"),
    ),
    "a value is missing": (f"x[{ONE.name} {KEY}]y", make_calls(1), ENTRY, None),
    "arguments are missing": (f"x[{ONE.name}]y", make_calls(1), ENTRY, None),
}


@pytest.mark.parametrize(("text", "calls", "entry", "expected"), TAGGED.values(), ids=TAGGED)
def test_calls_with_tagged_arguments(text, calls, entry, expected):
    """From the first key's opener to the last value's closer, all is arguments."""
    assert find_row(text, calls, ToolMode.TAG_WITH_TAGGED, entry) == expected
