"""Tests of writing an answer as text: values, calls, and the joints between parts. The rows are in `cases.jsonl`."""

from __future__ import annotations

from answers import said_in
from cases import cases

from unrender.format import Arguments, CallSyntax, Format, Slot


@cases
def test_an_answer_is_written(why, format, said, text):
    """The text between two parts is written before each part, and calls and values are written in the format's syntax."""
    assert said_in(Format.from_dict({"version": 1, **format}), **said) == text


def test_a_tuple_is_a_list():
    """A tuple in arguments is written as a list."""
    listed = Format(tools=CallSyntax(function=("<f>", Slot.NAME, ":", Slot.ARGUMENTS), arguments=Arguments()))

    assert said_in(listed, calls=[("f", {"a": (1, (2,))}, "")]) == '<f>f:{"a": [1, [2]]}'
