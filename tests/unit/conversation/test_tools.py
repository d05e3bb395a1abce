"""Tools with equal content are parsed once, from a copy."""

from __future__ import annotations

import json
from collections import OrderedDict
from copy import deepcopy
from typing import Any

import pytest

from unrender import ChatTemplate, RequestError
from unrender.conversation.tools import read_offer
from unrender.errors import SchemaWarning
from unrender.training import assistant_mask

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


TEMPLATE = ChatTemplate.from_string(
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "objekt"}, "#/type: expected one of"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "#/properties/a/$ref: '#/nowhere' has no target"),
        ({"properties": {"a": {"minimum": "3"}}}, "#/properties/a/minimum: expected a number, found '3'"),
    ],
)
def test_invalid_schemas_are_refused(schema, said):
    """A prompt isn't rendered with an invalid schema. Prompts and data that exist already are read."""
    tools = [TOOL, {"name": "get", "parameters": schema}]
    for where, asked in (
        ("tools[1].function.parameters", {"tools": tools}),
        ("response_format", {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
    ):
        with pytest.raises(RequestError) as caught:
            TEMPLATE.prepare(HELLO, **asked)
        assert str(caught.value).startswith(f"{where}: invalid schema: {said}")

    with pytest.warns(SchemaWarning, match="tool 'get': #: parameters is not enforced"):
        TEMPLATE.prepare_rendered(tools=tools).constraint("vllm")
    assert assistant_mask(TEMPLATE, HELLO, tools=tools).text


@pytest.mark.parametrize("schema", [{"required": None, "items": None}, {"properties": {"a": {"pattern": "(?i)a"}}}])
def test_schemas_of_sdks_and_other_dialects_are_accepted(schema):
    """A null keyword is absent, and a pattern of another dialect is valid, although no grammar enforces it."""
    assert TEMPLATE.prepare(HELLO, tools=[{"name": "get", "parameters": schema}]).prompt


def test_result_of_an_unknown_call_is_refused():
    """A result's id is that of an earlier call, if the calls have ids. Otherwise, results belong to calls in order."""
    call = {"id": "call_a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    asked: list[Any] = [*HELLO, {"role": "assistant", "content": "", "tool_calls": [call]}]

    with pytest.raises(RequestError, match="tool_call_id: expected one of .*call_a.*; did you mean 'call_a'"):
        TEMPLATE.prepare([*asked, {"role": "tool", "tool_call_id": "call_b", "content": "1"}], tools=[TOOL])
    for result in ({"tool_call_id": "call_a"}, {}):
        assert TEMPLATE.prepare([*asked, {"role": "tool", "content": "1", **result}], tools=[TOOL]).prompt
    assert TEMPLATE.prepare([*HELLO, {"role": "tool", "tool_call_id": "b", "content": "1"}], tools=[TOOL]).prompt
