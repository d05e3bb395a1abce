"""Text leaves the parser as soon as its meaning is certain.

Rules: hold-back is the number of characters fed but not yet final, after each single character. By default, a whole
call may turn out to be text, so it's held back. If calls are streamed, only a call's start is held back, up to its
name. So is a value whose type depends on its text.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from properties.families import CONTENT, COUNTED, FAMILIES, JSON_ENVELOPE, TAGGED, Family

from unrender import Parser, Policy
from unrender.types import Request

AS_WRITTEN = Policy(tool_calls="streamed")
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
PROSE = "The quick brown fox; 12 lazy dogs, all of them - and so on! Yes? «Où».\n\nA new paragraph.\n"


def held_back(parser: Parser, text: str) -> list[int]:
    """Feed `text` character by character; return the hold-back after each."""
    held = []
    for fed, character in enumerate(text, 1):
        parser.feed(character)
        held.append(fed - (parser.spans[-1].end if parser.spans else 0))
    return held


def opening(family: Family) -> str:
    """Return the text between the content and the first letter of the first argument."""
    return family.outputs[0].partition(CONTENT)[2].partition("Paris")[0]


def in_content(family: Family) -> Parser:
    """Return a parser that has read the start of the standard output, up to its content."""
    parser = family.parser()
    parser.feed(family.outputs[0].partition(CONTENT)[0] + CONTENT)
    return parser


@each_family
def test_no_more_is_held_than_the_opening_of_a_call(
    family: Family, record_property: Callable[[str, object], None]
) -> None:
    """In a standard output, at most the start of a call is held back, up to its name.

    The output has no content before the calls. Otherwise, whitespace between them waits until it's known whether more
    follows.
    """
    output = family.outputs[0].replace(CONTENT, "")
    held = held_back(family.parser(policy=AS_WRITTEN), output)
    record_property("mean hold-back", sum(held) / len(held))
    record_property("maximum hold-back", max(held))

    assert max(held) <= len(opening(family)) + len(CONTENT.rstrip()[-1:])


@each_family
def test_prose_is_not_held_at_all(family: Family) -> None:
    """With tools, content leaves the parser by character, except for a character that may start a call."""
    parser = in_content(family)
    prose = PROSE.replace("\n", " ")

    assert {character for character in prose if not parser.feed(character)} <= {str(family.format.tools.function[0])[0]}


@each_family
def test_a_string_argument_is_held_by_no_more_than_its_end(family: Family) -> None:
    """A long string argument streams. At most its possible end marker is held back."""
    before = family.outputs[0].partition("Paris")[0]
    parser = family.parser()
    parser.feed(before)
    longest = max(map(len, family.markers))
    held = []

    for fed, character in enumerate(PROSE, 1):
        parser.feed(character)
        arguments = "".join(call.arguments_json for call in parser.message.tool_calls)
        held.append(fed - len(arguments.partition('"city": "')[2].replace("\\n", "\n")))

    assert max(held) <= longest + family.atomic


@pytest.mark.parametrize("name", ["note", "unheard_of"])
def test_a_value_of_uncertain_type_is_held_while_it_may_be_a_word(name: str) -> None:
    """A value that may be null or a number is held back. It streams as soon as it can only be text."""
    parser = TAGGED.parser(policy=AS_WRITTEN)
    parser.feed(f"<tool_call>\n<function=now>\n<parameter={name}>\n")

    assert [len(parser.feed(character)) for character in "null an"] == [0, 0, 0, 0, 0, 1, 1]


def test_arguments_before_the_name_wait_for_it() -> None:
    """Arguments before the name are sent together with the name, since clients need the name first."""
    parser = JSON_ENVELOPE.parser(policy=AS_WRITTEN)

    waiting = parser.feed('<tool_call>{"arguments": {"city": "Rome"}, "name": ')
    named = parser.feed('"now"')

    assert waiting == []
    assert len(named) == 2


def test_a_call_inside_open_reasoning_waits_for_the_end() -> None:
    """A call inside reasoning is decided as soon as reasoning continues or the output ends."""
    parser = COUNTED.parser()

    assert parser.feed("<think>So<|call_begin|>functions.now:0<|args_begin|>{}<|call_end|>")[1:] == []
    assert len(parser.feed(" then")) > 0


def test_a_fence_without_a_line_break_does_not_hold_the_answer_back() -> None:
    """A JSON answer on the same line as the fence streams like any other."""
    parser = JSON_ENVELOPE.parser(request=Request(response_schema={"type": "object"}))

    events = [parser.feed(character) for character in '```json {"a": 1}']

    assert [len(event) for event in events[-7:]] == [1] * 7
