"""Tests of the differences between two Formats."""

from __future__ import annotations

from dataclasses import replace

from properties.families import THINK

from unrender.format import CallSyntax, Codec, Format, Slot, TurnTexts
from unrender.format.data import differences

CALL = (Slot.NAME, ">", Slot.ARGUMENTS)
FORMAT = Format(
    turn=TurnTexts(end="<|end|>"),
    tools=CallSyntax(function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>")),
    tolerated=(CallSyntax(function=CALL),),
)


def test_equal_formats_do_not_differ() -> None:
    """A format and its copy have no differences."""
    assert differences(FORMAT, Format.from_json(FORMAT.to_json())) == ()


def test_a_difference_is_named_by_the_smallest_part() -> None:
    """A difference is named by its path, with both values."""
    other = replace(FORMAT, turn=TurnTexts(end="<|stop|>"), reasoning=THINK)

    found = [(it.path, it.before, it.after) for it in differences(FORMAT, other)]

    assert found == [
        ("turn.end", "<|end|>", "<|stop|>"),
        ("reasoning.mode", "none", "tag_based"),
        ("reasoning.start", "", THINK.start),
        ("reasoning.end", "", THINK.end),
    ]


def test_a_skeleton_is_compared_whole() -> None:
    """A skeleton is compared as one text, in which slots are marked."""
    other = replace(FORMAT, tools=replace(FORMAT.tools, function=("<f>", Slot.NAME, "|", Slot.ARGUMENTS, "</f>")))

    (found,) = differences(FORMAT, other)

    assert (found.path, found.after) == ("tools.function", "<f>«name»|«arguments»</f>")


def test_tolerated_syntaxes_are_compared_one_by_one() -> None:
    """A syntax that only one format has is shown completely. Of a changed syntax, only the changes are shown."""
    more = replace(FORMAT, tolerated=(*FORMAT.tolerated, CallSyntax(call_start="<x>", function=CALL)))
    changed = replace(FORMAT, tolerated=(replace(FORMAT.tolerated[0], call_start="<y>"),))

    (added,), (edited,) = differences(FORMAT, more), differences(FORMAT, changed)

    assert (added.path, added.before, added.after) == (
        "tolerated[1]",
        None,
        {
            "call_start": "<x>",
            "function": "«name»>«arguments»",
        },
    )
    assert (edited.path, edited.before, edited.after) == ("tolerated[0].call_start", "", "<y>")


def test_values_are_plain_data() -> None:
    """Values are those of the Format's JSON, and nested parts have their path."""
    codec = replace(FORMAT.tools.arguments, codec=Codec(ascii_only=True))
    other = replace(FORMAT, tools=replace(FORMAT.tools, arguments=codec))

    (found,) = differences(FORMAT, other)

    assert (found.path, type(found.after), str(found)) == (
        "tools.arguments.codec.ascii_only",
        bool,
        "tools.arguments.codec.ascii_only\n  - False\n  + True",
    )
