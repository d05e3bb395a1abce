"""What a response template leaves out of a Format, in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from properties.families import TAG_AND_JSON, TAGGED

from unrender.export.response_template import Omission, omissions
from unrender.format import Format, Reasoning, ReasoningMode, Slot

PLAIN = Format()


def with_arguments(format: Format, **changed: Any) -> Format:
    tools = format.tools
    return replace(format, tools=replace(tools, arguments=replace(tools.arguments, **changed)))


WORDS = replace(
    PLAIN,
    reasoning=Reasoning(mode=ReasoningMode.FORCED_CLOSED, start="<t>", end="</t>"),
    turn=replace(PLAIN.turn, prefill="<t>", prefill_no_thinking="<t>skipped</t>"),
)
ID_LAST = replace(
    TAG_AND_JSON.format,
    tools=replace(TAG_AND_JSON.format.tools, function=("<f>", Slot.NAME, ">", Slot.ARGUMENTS, "#", Slot.ID, "#")),
)


@pytest.mark.parametrize(
    ("format", "omission"),
    [
        (
            replace(PLAIN, reasoning=Reasoning(mode=ReasoningMode.DELIMITER, end="<go>")),
            Omission(
                what="reasoning has no opener: what comes before the delimiter, or without any, is read as reasoning",
                concerns=("content", "content and tool calls"),
            ),
        ),
        (WORDS, Omission(what="the words with which a prompt closes reasoning are read as reasoning")),
        (
            replace(PLAIN, tolerated=(TAGGED.format.tools,)),
            Omission(what="call syntaxes that are tolerated but not generated are not read"),
        ),
        (ID_LAST, Omission(what="ids that stand after the arguments are not read", concerns=("call ids",))),
        (
            with_arguments(TAG_AND_JSON.format, when_empty=""),
            Omission(what="a call without arguments has no JSON to read", concerns=("no arguments",)),
        ),
    ],
    ids=["delimiter", "words", "tolerated", "id last", "nothing when empty"],
)
def test_what_is_left_out_is_said(format: Format, omission: Omission) -> None:
    """Once, with the capabilities that it may cost."""
    assert omissions(format).count(omission) == 1


@pytest.mark.parametrize(
    "format",
    [
        PLAIN,
        TAG_AND_JSON.format,
        replace(WORDS, turn=replace(WORDS.turn, prefill_no_thinking="<t>\n</t>")),
    ],
    ids=["plain", "tag and JSON", "closed without words"],
)
def test_nothing_is_left_out_of_plain_formats(format: Format) -> None:
    """JSON between markers, and reasoning that is closed without words, are read in full."""
    assert omissions(format) == ()


def test_empty_arguments_in_entries_are_read() -> None:
    """Where each argument has markers, nothing is lost when there are none."""
    found = omissions(with_arguments(TAGGED.format, when_empty=""))

    assert [omission.what for omission in found if "without arguments" in omission.what] == []
