"""An answer in a format as text: values, calls, and what joins the parts. The rows are in `cases.jsonl`."""

from __future__ import annotations

from answers import said_in
from cases import cases

from unrender.format import Arguments, CallSyntax, Format, Slot


@cases
def test_an_answer_is_written(why, format, said, text):
    """Each part after the joint that both ask for, calls as their skeleton says, values as the codec does."""
    assert said_in(Format.from_dict({"version": 1, **format}), **said) == text


def test_a_tuple_is_a_list():
    """Frozen lists are tuples."""
    listed = Format(tools=CallSyntax(function=("<f>", Slot.NAME, ":", Slot.ARGUMENTS), arguments=Arguments()))

    assert said_in(listed, calls=[("f", {"a": (1, (2,))}, "")]) == '<f>f:{"a": [1, [2]]}'
