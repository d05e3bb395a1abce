"""Calls that the end of the output cuts off between their name and their arguments."""

from __future__ import annotations

import pytest
from splitting import fed, splits

from unrender import CallStatus, Parser, Request
from unrender.formats import declared_format

WHOLE = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
NAMED = WHOLE.index('"now"') + len('"now"')
BROUGHT_TO_AN_END = WHOLE.index("}}") + 1


@pytest.mark.parametrize("end", range(NAMED, BROUGHT_TO_AN_END))
def test_a_call_that_is_cut_off_is_truncated(end):
    """Wherever the output ends after the name, also inside a key, the call is truncated and its text is content."""
    for chunks in splits(WHOLE[:end]):
        parser = Parser(declared_format("tool-call-json"), Request(tools=None))
        fed(parser, chunks)

        (call,) = parser.message.dead_calls
        assert (call.name, call.status, parser.message.content) == ("now", CallStatus.TRUNCATED, WHOLE[:end])
        assert parser.message.tool_calls == ()
        assert parser.spans[-1].end == end


@pytest.mark.parametrize("end", range(len("<tool_call>\n") + 1, NAMED))
def test_before_the_name_there_is_no_call(end):
    """What ends before its name is whole is content, every character of it."""
    parser = Parser(declared_format("tool-call-json"), Request(tools=None))

    fed(parser, [WHOLE[:end]])

    assert parser.message.tool_calls == ()
    assert parser.message.content == WHOLE[:end]
