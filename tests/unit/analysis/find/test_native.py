"""Texts with calls as JSON in, the objects and their envelopes out."""

from __future__ import annotations

import json

import pytest

from unrender.analysis.ask.probes import make_calls
from unrender.analysis.find.rows import arguments_of, find_envelope, native_span
from unrender.format import CallSyntax, Envelope, Slot, ToolMode

ONE, TWO = make_calls(2)
ARGUMENTS = dict(ONE.arguments)


def written(call, **fields):
    return {"name": call.name, "arguments": dict(call.arguments), **fields}


A, B = json.dumps(written(ONE)), json.dumps(written(TWO))

SPANS = {
    "alone": (A, 0, A),
    "with text around": (f"x{A}y", 0, A),
    "before another call": (f"{A}{B}", 0, A),
    "from a position on": (f"{A}{A} ", 1, None),
    "inside an object": (f'{{"call": {A}}}', 0, f'{{"call": {A}}}'),
    "in a list of an object": (f'{{"calls": [{A}]}}', 0, A),
    "in a list deep in an object": (f'{{"x": {{"calls": [1, [{A}]]}}}}', 0, A),
    "in a list with another call": (f'{{"calls": [{A}, {B}]}}', 0, A),
    "beside another call in an object": (f'{{"a": {A}, "b": {B}}}', 0, A),
    "in a list alone": (f"[{A}]", 0, A),
    "with other arguments": (json.dumps(written(ONE) | {"arguments": {}}), 0, None),
    "without its name": (json.dumps({"arguments": ARGUMENTS}), 0, None),
    "not as JSON": (f"{ONE.name}({ARGUMENTS})", 0, None),
}


@pytest.mark.parametrize(("text", "position", "expected"), SPANS.values(), ids=SPANS)
def test_call_is_the_outermost_object_of_its_own(text, position, expected):
    """The object that holds name and arguments of one call; lists around calls are not the call's."""
    span = native_span(text, ONE, position)

    assert (None if span is None else text[span.start : span.end]) == expected


def test_each_call_has_its_object():
    """Another call's object is not taken, though it has the same keys; nor is one before the position."""
    span = native_span(f"{A}, {B}", TWO, 0)

    assert span is not None
    assert span.value == written(TWO)
    assert native_span(f"{A}{A}", ONE, 3) is None or native_span(f"{A}{A}", ONE, 3).start >= 3


def test_envelope_is_found_around_the_last_needle():
    """Keys that are before the name are looked for as well: an object may begin between the two."""
    text = json.dumps({"arguments": ARGUMENTS, "name": ONE.name})
    span = native_span(text, ONE, 0)

    assert span is not None
    assert (span.start, span.end) == (0, len(text))


NATIVE = CallSyntax(mode=ToolMode.JSON_NATIVE, function=('{"', Slot.NAME, '": ', Slot.ARGUMENTS, "}"))
ENVELOPES = {
    "flat": (A, {}, Envelope(name_field=("name",), args_field=("arguments",))),
    "deep, with an id": (
        json.dumps({"function": {"name": ONE.name, "arguments": ARGUMENTS}, "id": ONE.id}),
        {},
        Envelope(name_field=("function", "name"), args_field=("function", "arguments"), id_field=("id",)),
    ),
    "the name is a key": (json.dumps({ONE.name: ARGUMENTS}), {}, Envelope()),
    "a list in an object": (
        f'{{"n": 1, "calls": [{A}]}}',
        {},
        Envelope(name_field=("name",), args_field=("arguments",), list_field=("calls",)),
    ),
    "a list deep in an object": (
        f'{{"n": [1], "x": {{"calls": [{A}]}}}}',
        {},
        Envelope(name_field=("name",), args_field=("arguments",), list_field=("x", "calls")),
    ),
    "calls in an object that is not a list": (
        f'{{"a": {A}, "b": {B}}}',
        {},
        Envelope(name_field=("name",), args_field=("arguments",)),
    ),
    "after its name": (f"{ONE.name}: {A}", {}, Envelope(name_field=("name",), args_field=("arguments",))),
    "a list is the section": (
        f"[{A}]",
        {"section_start": "x[ ", "section_end": " ]y"},
        Envelope(name_field=("name",), args_field=("arguments",), array_wrapped=True),
    ),
    "a bracket that is not closed": (
        f"[{A}]",
        {"section_start": "x[ ", "section_end": "."},
        Envelope(name_field=("name",), args_field=("arguments",)),
    ),
    "a bracket that is not opened": (
        f"{A}]",
        {"section_start": "x", "section_end": "]"},
        Envelope(name_field=("name",), args_field=("arguments",)),
    ),
    "a counter as text": (
        json.dumps({"i": "0", **written(ONE)}),
        {"function": (Slot.INDEX, Slot.NAME, Slot.ARGUMENTS)},
        Envelope(name_field=("name",), args_field=("arguments",), gen_id_field=("i",)),
    ),
    "a counter as a number": (
        json.dumps({"i": 3, **written(ONE)}),
        {"function": (Slot.INDEX, Slot.NAME, Slot.ARGUMENTS), "index_start": 3},
        Envelope(name_field=("name",), args_field=("arguments",), gen_id_field=("i",)),
    ),
    "a counter that is nowhere": (
        A,
        {"function": (Slot.INDEX, Slot.NAME, Slot.ARGUMENTS)},
        Envelope(name_field=("name",), args_field=("arguments",)),
    ),
    "a number that counts nothing": (
        json.dumps({"i": "0", **written(ONE)}),
        {},
        Envelope(name_field=("name",), args_field=("arguments",)),
    ),
}


@pytest.mark.parametrize(("text", "fields", "expected"), ENVELOPES.values(), ids=ENVELOPES)
def test_envelope_says_where_the_parts_stand(text, fields, expected):
    """Paths to name, arguments, id and counter, and to the list of calls."""
    values = {"mode": NATIVE.mode, "function": NATIVE.function, **fields}

    class Syntax:
        """A call syntax that need not be whole."""

    tools = Syntax()
    for name, value in ({"section_start": "", "section_end": "", "index_start": 0} | values).items():
        setattr(tools, name, value)

    assert find_envelope(text, ONE, tools) == expected


def test_text_without_the_call_has_no_envelope():
    """Where no object holds the call there is nothing to describe."""
    assert find_envelope("no call", ONE, NATIVE) is None


@pytest.mark.parametrize("text", [json.dumps(ARGUMENTS), str(ARGUMENTS)])
def test_arguments_are_json_or_python(text):
    """A call's arguments are found as a JSON object or as a Python dictionary, from a position on."""
    span = arguments_of(f"f({text})", ONE, 1)

    assert span is not None
    assert (span.start, span.end, span.value) == (2, 2 + len(text), ARGUMENTS)
    assert arguments_of(f"f({text})", ONE, 3) is None
