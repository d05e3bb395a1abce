"""Parsers that are saved in the middle of an answer go on in another process as they would have gone on here."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from properties.families import (
    COUNTED,
    ESCAPED,
    JOINED,
    JSON_ENVELOPE,
    JSON_ID_LAST,
    JSON_WITH_IDS,
    NESTED_TAGS,
    PYTHON_CALLS,
    REPEATED,
    REQUEST,
    TAGGED,
    TYPED,
    Family,
)
from saving import restored, state_of

from unrender.machine.events import ContentText
from unrender.machine.ids import numbered_id
from unrender.parser.streaming import Parser

HELD = "<think>So<|calls_begin|><|call_begin|>functions.now:0<|args_begin|>{"


@pytest.mark.parametrize(
    ("family", "text"),
    [
        (JSON_WITH_IDS, '<|ACTION|>[{"call_id": "0", "call_id": "1", "parameters": {"a": 1}, "tool": "no'),
        (JSON_ENVELOPE, '<tool_call>{"function": {"name": "now", "name": [1'),
        (TAGGED, "A\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_c"),
        (JSON_ENVELOPE, '<tool_call>```json\n{"name": "now", "arguments": {}}\n'),
        (TAGGED, "<function=now>\n<parameter=city>\nRome\n</parameter>\n<parameter=city>\nOs"),
        (TAGGED, "<function=now>\n<parameter=note>\nNo"),
        (TAGGED, "<function=now>\n<parameter=options>\n{'a': [1, "),
        (JSON_ENVELOPE, '<tool_call>\n{"name": "now", "arguments": "{\\"a'),
        (JSON_ENVELOPE, '<tool_call>\n{"name": "now", "arguments": "{}\\n'),
        (JSON_ID_LAST, '[CALLS] [{"name": "now", "arguments": {"city": "Rome"}, "i'),
        (ESCAPED, '<use name="now">\n<with name="city">a &l'),
        (JOINED, "<|do|>now(tags=a b ,"),
        (JOINED, "<|do|>now(city='Ro"),
        (JOINED, "<|do|>now(city='Rome' "),
        (JOINED, "<|do|>now(city='Rome' or"),
        (NESTED_TAGS, ']<]ns[>[<tool_call>\n]<]ns[>[<invoke name="now">]<]ns[>[<tags>]<]ns[>[<tags>a'),
        (NESTED_TAGS, ']<]ns[>[<tool_call>\n]<]ns[>[<invoke name="now">]<]ns[>[<city>a'),
        (REPEATED, '<invoke name="now">\n<param name="tags">a</param>\n<param name="tags">b'),
        (REPEATED, '<invoke name="now">\n<param name="more">7</param>\n<param na'),
        (TYPED, '<|ML|calls>\n<|ML|invoke name="now">\n<|ML|parameter name="tags" string="false">["a", '),
        (PYTHON_CALLS, "<|call_start|>[now(note='it"),
        (COUNTED, HELD),
    ],
)
def test_a_state_is_the_same_after_a_journey(family: Family, text: str) -> None:
    """What is restored is saved as it was, and goes on like the parser that was saved."""
    state = state_of(family, text)
    here = Parser(family.format, REQUEST, prompt=family.prompt, ids=numbered_id)
    here.feed(text)
    there = restored(family, state)
    assert json.loads(json.dumps(there.state())) == state

    rest = "\" x' = 1, </param>"
    assert here.feed(rest) == there.feed(rest)
    assert (here.finish(), here.message, here.spans) == (there.finish(), there.message, there.spans)


def test_text_that_has_the_shape_of_a_call_waits_in_a_state() -> None:
    """In formats that keep the leftovers of calls out of content."""
    cleaned = replace(JSON_ENVELOPE, format=replace(JSON_ENVELOPE.format, cleans_content=True))
    state = state_of(cleaned, "Hi <tool_call>{!}\n<tool_c")
    parser = restored(cleaned, state)

    assert state["broken"] == [{"kind": "broken", "text": "<tool_call>{!}"}]
    assert json.loads(json.dumps(parser.state())) == state
    assert "<tool_call>{!}" in "".join(event.text for event in parser.finish() if isinstance(event, ContentText))
