"""Tools with equal content are parsed once, from a copy."""

from __future__ import annotations

import json
from collections import OrderedDict
from copy import deepcopy

import pytest

from unrender import RequestError
from unrender.conversation.tools import read_offer

TOOL = {
    "type": "function",
    "function": {"name": "now", "parameters": {"type": "object", "properties": {"zone": {"enum": [1, "a"]}}}},
}


def test_equal_tools_are_read_once():
    """Requests with equal tools share the parsed tools, even if the lists are different objects."""
    first = read_offer([deepcopy(TOOL)])

    assert read_offer(json.loads(json.dumps([TOOL]))).tools is first.tools
    assert read_offer((deepcopy(TOOL),)).tools is first.tools


def test_tools_that_differ_in_the_type_of_a_number_are_not_equal():
    """`enum: [1]` and `enum: [true]` are different tools."""
    other = json.loads(json.dumps([TOOL]).replace("[1,", "[true,"))

    assert read_offer([TOOL]).key != read_offer(other).key
    assert read_offer(other).tools[0].parameters["properties"]["zone"]["enum"][0] is True


def test_changing_tools_afterwards_changes_nothing_that_was_read():
    """Tools are fixed when the request is created. The next request has the modified ones."""
    tools = [deepcopy(TOOL)]
    before = read_offer(tools)
    tools[0]["function"]["parameters"]["properties"]["zone"]["enum"].append("b")

    assert before.tools[0].parameters == TOOL["function"]["parameters"]
    assert read_offer(tools).tools[0].parameters["properties"]["zone"]["enum"] == [1, "a", "b"]


def test_what_is_not_plain_data_is_read_each_time():
    """Mappings that aren't plain dicts are accepted, but not cached."""
    odd = [{"type": "function", "function": OrderedDict(TOOL["function"])}]

    assert read_offer(odd).tools[0].name == "now"
    assert read_offer(odd).key == b""


def test_mistakes_are_found_every_time():
    """A mistake is an error each time, even if an earlier request made the same mistake."""
    for _ in range(2):
        with pytest.raises(RequestError, match=r"tools\[1\]\.function\.name: expected a unique name"):
            read_offer([TOOL, TOOL])

    assert len(read_offer([TOOL, TOOL], repeats=True).tools) == 1
    with pytest.raises(RequestError, match=r"tools\[1\]"):
        read_offer([TOOL, TOOL])


def test_no_tools_are_an_empty_offer():
    """None and an empty list offer no tools."""
    assert read_offer(None).tools == read_offer([]).tools == ()
