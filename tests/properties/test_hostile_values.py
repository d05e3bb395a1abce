"""If the grammar accepts a value made of the format's own markers, the parser returns exactly this value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from properties.families import FAMILIES, TOOLS, Family

from unrender import Turn
from unrender.answer import Calls, Marker
from unrender.answer.build import own_calls
from unrender.answer.encode import encode_calls
from unrender.dialects.remainder import Remainder
from unrender.format import lexemes, preserved_tokens
from unrender.types import Request

CALLED = [family for family in FAMILIES if own_calls(family.format) is not None]
each_family = pytest.mark.parametrize("family", CALLED, ids=lambda family: family.name)


def parts_of(calls: Calls) -> list[str]:
    """Return the markers of a call syntax, and their prefixes and suffixes, split at word boundaries."""
    elements = (calls.call_open, calls.call_close, *calls.function, *calls.arguments.entry, calls.arguments.close)
    markers = [element.core for element in elements if isinstance(element, Marker) and len(element.core) > 1]
    found = dict.fromkeys(markers)
    for text in markers:
        borders = [at for at in range(1, len(text)) if not (text[at - 1].isalnum() and text[at].isalnum())]
        found |= dict.fromkeys(piece for at in borders for piece in (text[:at], text[at:]) if len(piece) > 1)
    return [*found]


def hostile_values(calls: Calls) -> Iterator[str]:
    """Yield values that consist of parts of markers, alone and beside other text."""
    for part in parts_of(calls):
        yield from (part, f"x{part}", f"{part}x", f"a\n{part}\nb")


@pytest.mark.few(12)
@each_family
def test_accepted_values_are_read_back(family: Family) -> None:
    """The parser returns each value that the grammar accepts. Rejected values aren't generated."""
    turn = Turn(prompt=family.prompt, request=Request(tools=TOOLS), format=family.format)
    calls = own_calls(family.format)
    assert calls is not None
    remainder = Remainder(format=turn._generated, request=turn.request)
    texts = {
        encode_calls(calls, [("get_weather", {"city": value}, "call00001")]): value for value in hostile_values(calls)
    }
    for text in texts.keys() - {*remainder.refused(texts)}:
        message = turn.parse(text)
        assert [call.arguments for call in message.tool_calls] == [{"city": texts[text]}], text


@pytest.mark.few(12)
@each_family
def test_spelled_markers_end_no_value(family: Family) -> None:
    """With token ids, a value may spell the end of its own call if the marker after the value is a special token."""
    tokens = preserved_tokens(family.format)
    format = replace(family.format, preserved_tokens=tokens)
    turn, calls = Turn(prompt=family.prompt, request=Request(tools=TOOLS), format=format), own_calls(format)
    assert calls is not None
    before, _, after = encode_calls(calls, [("get_weather", {"city": "Kezmar"}, "call00001")]).partition("Kezmar")
    if not any(part in tokens for part in lexemes(after.lstrip())[:1]):
        pytest.skip("an ordinary marker ends the values")
    for value in (f"x{after}", f"a{after}b"):
        parser = turn.parser()
        for text in (*lexemes(before), None, *lexemes(after)):
            parser.feed(text or value, special=text in tokens)
        parser.finish()
        assert [call.arguments for call in parser.message.tool_calls] == [{"city": value}], value
