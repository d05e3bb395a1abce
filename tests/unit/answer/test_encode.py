"""An answer in a format as text: values, calls, and what joins the parts. The rows are in `cases.jsonl`."""

from __future__ import annotations

from answers import said_in
from cases import cases

from unrender.format import Arguments, CallSyntax, Format, Slot
from unrender.messages.wire import json_type

VALUES = {
    "number": (1, -2.5),
    "boolean": (True,),
    "string": ("a",),
    "null": (None,),
    "object": ({},),
    "array": ([], ()),
}


@cases
def test_an_answer_is_written(why, format, said, text):
    """Each part after the joint that both ask for, calls as their skeleton says, values as the codec does."""
    assert said_in(Format.from_dict({"version": 1, **format}), **said) == text


def test_values_are_named_and_written_as_in_json():
    """Numbers of both kinds; a tuple is a list, as in what is frozen."""
    listed = CallSyntax(function=("<f>", Slot.NAME, ":", Slot.ARGUMENTS), arguments=Arguments())

    assert {name: {json_type(value) for value in values} for name, values in VALUES.items()} == {
        name: {name} for name in VALUES
    }
    assert said_in(Format(tools=listed), calls=[("f", {"a": (1, (2,))}, "")]) == '<f>f:{"a": [1, [2]]}'
