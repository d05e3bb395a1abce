"""Messages, tools and requests: frozen values and their OpenAI forms."""

from __future__ import annotations

import pytest

from unrender.errors import MessageError
from unrender.messages.wire import (
    CallStatus,
    Message,
    Request,
    Tool,
    ToolCall,
    ToolChoice,
    read_allowed_tools,
    read_response_schema,
    read_tool_choice,
    read_tools,
)

TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TOOLS = read_tools([TOOL])


def test_calls_are_sent_back_as_they_were_given() -> None:
    """One that is still being written is not there; one that was given as it was written, and died, has its status."""
    calls = tuple(ToolCall(name=status.value, arguments="{}", id="i", status=status) for status in CallStatus)

    wire = Message(content="c", reasoning="r", tool_calls=calls).to_openai()

    assert [(call["function"]["name"], call.get("status")) for call in wire["tool_calls"]] == [
        ("complete", None),
        ("truncated", "truncated"),
        ("invalid", "invalid"),
    ]
    assert wire["reasoning_content"] == "r"


def test_empty_fields_are_left_out() -> None:
    """Content is always a string; reasoning and calls are there only when they hold something."""
    assert Message().to_openai() == {"role": "assistant", "content": ""}


def test_a_tool_is_read_in_both_forms() -> None:
    """The wrapped and the bare function are the same tool; missing parameters mean none."""
    assert Tool.from_openai(TOOL) == Tool.from_openai(TOOL["function"])
    assert Tool.from_openai({"name": "g"}).parameters == {"type": "object", "properties": {}}
    assert Tool.from_openai(TOOL).to_openai() == TOOL


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ("f", "tools: expected a list, found str"),
        ({"name": "f"}, "tools: expected a list, found dict"),
        ([1], r"tools\[0\]: expected an object, found int"),
        ([{"function": 1}], r"tools\[0\].function: expected an object"),
        ([{"name": ""}], r"tools\[0\].function.name: expected a non-empty string"),
        ([{"name": "f", "parameters": []}], r"tools\[0\].function.parameters: expected a JSON Schema"),
        ([{"name": "f", "parameters": {"properties": []}}], r"parameters.properties: expected an object"),
        ([{"name": "f", "parameters": {"properties": {"x": 1}}}], r"properties.x: expected a JSON Schema"),
    ],
)
def test_a_broken_tool_names_the_place(tools: object, message: str) -> None:
    """An error in a caller's tools says where it is and what was expected."""
    with pytest.raises(MessageError, match=message):
        read_tools(tools)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, (ToolChoice.AUTO, "")),
        ("none", (ToolChoice.NONE, "")),
        ("required", (ToolChoice.REQUIRED, "")),
        ({"type": "function", "function": {"name": "f"}}, (ToolChoice.NAMED, "f")),
        ({"name": "f"}, (ToolChoice.NAMED, "f")),
    ],
)
def test_a_tool_choice_is_read(choice: object, expected: tuple[ToolChoice, str]) -> None:
    """Words and named tools are read as OpenAI writes them."""
    assert read_tool_choice(choice, TOOLS) == expected


@pytest.mark.parametrize("choice", ["any", 1, {"name": "g"}, {"function": "f"}])
def test_an_unknown_tool_choice_is_an_error(choice: object) -> None:
    """A word or a tool that is not there is refused."""
    with pytest.raises(MessageError, match="tool_choice: expected"):
        read_tool_choice(choice, TOOLS)


def test_a_required_call_needs_a_tool() -> None:
    """Requiring a call without offering tools is refused."""
    with pytest.raises(MessageError, match="needs at least one tool"):
        read_tool_choice("required", ())


@pytest.mark.parametrize(
    ("response_format", "schema"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array"}}}, {"type": "array"}),
        ({"type": "json_schema", "schema": True}, True),
    ],
)
def test_a_response_format_becomes_a_schema(response_format: object, schema: object) -> None:
    """Text has no schema; an object, or the schema given, is what the answer must obey."""
    assert read_response_schema(response_format) == schema


@pytest.mark.parametrize("response_format", ["json", {"type": "xml"}, {"type": "json_schema"}])
def test_a_broken_response_format_is_an_error(response_format: object) -> None:
    """What is not a response format is refused by name."""
    with pytest.raises(MessageError, match="response_format"):
        read_response_schema(response_format)


def test_a_request_knows_its_tools() -> None:
    """Calls are looked for when tools are offered, or not known, and not forbidden."""
    assert Request(tools=TOOLS).tool("f") == TOOLS[0]
    assert Request(tools=TOOLS).tool("g") is None
    assert [
        Request().calls_allowed,
        Request(tools=None).calls_allowed,
        Request(tools=TOOLS, tool_choice=ToolChoice.NONE).calls_allowed,
    ] == [False, True, False]


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "name": "b"}]}}


def test_allowed_tools_are_some_of_the_tools() -> None:
    """Both spellings of OpenAI give mode and tools."""
    tools = read_tools([{"name": "a"}, {"name": "b"}])
    assert read_allowed_tools(ALLOWED, tools) == ("required", (tools[1],))
    flat = {"type": "allowed_tools", "tools": [{"function": {"name": "a"}}]}
    assert read_allowed_tools(flat, tools) == ("auto", (tools[0],))
    assert read_allowed_tools("none", tools) == ("none", tools)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            {"mode": "none", "tools": [{"name": "a"}]},
            r"allowed_tools\.mode: expected 'auto' or 'required', found 'none'",
        ),
        ({"tools": []}, r"allowed_tools\.tools: expected a list of tools, found \[\]"),
        ({"tools": [{"name": "c"}]}, r"allowed_tools\.tools\[0\]: expected one of the tools \['a'\], found 'c'"),
        ("a", "allowed_tools: expected an object, found str"),
    ],
)
def test_a_malformed_list_of_allowed_tools_is_refused(body: object, said: str) -> None:
    """The error names the place."""
    with pytest.raises(MessageError, match=said):
        read_allowed_tools({"type": "allowed_tools", "allowed_tools": body}, read_tools([{"name": "a"}]))


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ({"name": "x"}, r"json_schema\.schema: expected a JSON Schema, found None"),
        ({"name": 1, "schema": {}}, r"json_schema\.name: expected a string, found 1"),
        ([], "json_schema: expected an object with a name and a schema, found list"),
    ],
)
def test_an_invalid_wrapper_of_a_schema_is_refused(wrapper: object, said: str) -> None:
    """A wrapper without a schema is not taken for one."""
    with pytest.raises(MessageError, match=said):
        read_response_schema({"type": "json_schema", "json_schema": wrapper})
