"""Tests of messages and tools in the forms of real SDKs, and of tools that are read once."""

from __future__ import annotations

import json
from collections import OrderedDict
from copy import deepcopy
from typing import Any, Literal

import mcp.types
import pytest
from message_rows import plain
from openai import pydantic_function_tool
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel, Field
from turn_rows import SOURCES

from unrender import ChatTemplate, Message, RequestError
from unrender.conversation.messages import object_of, read_messages, values_of
from unrender.conversation.tools import plain_response_format, plain_tool, plain_tools, read_offer
from unrender.errors import SchemaWarning
from unrender.limits import MAX_TOOLS
from unrender.training import assistant_mask

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FUNCTION = {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}
OPENAI = {"type": "function", "function": FUNCTION}


class Weather(BaseModel):
    """The weather of a city."""

    city: str = Field(description="Where.")
    title: str = "none"


def forecast(city: str, days: int = 3, unit: Literal["c", "f"] | None = None) -> str:
    """Return the forecast.

    Args:
        city: Where, a name
            in any language.
        days (int): How many days.

    Returns:
        A text: with a colon.
    """
    return f"{city}{days}{unit}"


def test_a_tool_object_of_mcp_is_a_tool():
    """A tool in MCP's form may also be an object of its SDK."""
    tool = {"name": "get_weather", "description": "Weather.", "inputSchema": SCHEMA}

    assert plain_tool(mcp.types.Tool.model_validate(tool)) == OPENAI


def test_a_plain_tool_comes_back_as_it_is():
    """A tool in OpenAI's form isn't copied."""
    assert plain_tool(OPENAI) is OPENAI


def test_a_function_is_described_by_its_hints_and_docstring():
    """Types come from the type hints, and descriptions from the docstring, without pydantic's titles."""
    function = plain_tool(forecast)["function"]

    assert function["name"] == "forecast"
    assert function["description"] == "Return the forecast."
    assert function["parameters"]["required"] == ["city"]
    assert function["parameters"]["properties"] == {
        "city": {"type": "string", "description": "Where, a name in any language."},
        "days": {"default": 3, "type": "integer", "description": "How many days."},
        "unit": {"anyOf": [{"enum": ["c", "f"], "type": "string"}, {"type": "null"}], "default": None},
    }


def test_a_function_is_described_once_until_it_changes():
    """Requests with the same function share its description, until its docstring or type hints change."""

    def add(a: int) -> int:
        """Add."""
        return a

    first = plain_tool(add)
    assert plain_tool(add) is first
    add.__doc__ = "Add one."
    assert plain_tool(add)["function"]["description"] == "Add one."
    add.__annotations__ = {"a": str}
    assert plain_tool(add)["function"]["parameters"]["properties"]["a"]["type"] == "string"


def test_a_pydantic_model_is_described_once():
    """Requests with the same model share its description."""
    assert plain_tool(Weather) is plain_tool(Weather)


def test_a_pydantic_model_is_a_tool():
    """A pydantic model is described by its name, docstring and fields. The result of OpenAI's helper is also accepted."""
    function = plain_tool(Weather)["function"]

    assert (function["name"], function["description"]) == ("Weather", "The weather of a city.")
    assert function["parameters"]["properties"]["city"] == {"description": "Where.", "type": "string"}
    assert "title" in function["parameters"]["properties"]
    assert plain_tool(pydantic_function_tool(Weather))["function"]["name"] == "Weather"


def no_hints(a, *, b: "Unknown"):  # type: ignore[name-defined]  # noqa: F821, UP037
    """Do nothing."""


def test_what_is_not_a_tool_is_refused():
    """The error names the path. Rows of `messages.jsonl` have the errors of data."""
    with pytest.raises(RequestError, match=r"tools\[0\]: the type hints of no_hints\(\) have no JSON Schema"):
        plain_tools([no_hints])
    with pytest.raises(RequestError, match=f"expected at most {MAX_TOOLS}"):
        plain_tools([OPENAI] * (MAX_TOOLS + 1))


@pytest.mark.slow
def test_a_tool_that_comes_again_counts_once_where_repeats_are_allowed():
    """A duplicate tool is dropped. A different tool with the same name is an error, and so is one that is too deep to compare."""
    deep: list[dict[str, Any]] = [{}, {}]
    for i in range(2):
        for _ in range(50_000):
            deep[i] = {"a": deep[i]}

    assert plain_tools([OPENAI, OPENAI], repeats=True) == [OPENAI]
    with pytest.raises(RequestError, match="a unique name"):
        plain_tools([OPENAI, {"name": "get_weather"}], repeats=True)
    with pytest.raises(RequestError, match="a unique name"):
        plain_tools([{"name": "f", "parameters": value} for value in deep], repeats=True)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, '{"a": ' * 600 + "1" + "}" * 600])
def test_deep_arguments_stay_text(text):
    """Arguments of earlier calls that are nested too deeply to be rendered stay text."""
    assert object_of(text) is None
    assert values_of(text) == {"arguments": text.strip()}


def test_messages_of_sdks_become_plain():
    """OpenAI's message objects, and call objects inside a mapping, are treated like mappings."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    sdk = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})

    conversation, _ = read_messages(
        [sdk, {"role": "assistant", "content": "", "tool_calls": sdk.tool_calls}, Message(content="Hi")]
    )
    first, second, third = plain(conversation)

    assert first == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert second["tool_calls"] == [call]
    assert third == {"role": "assistant", "content": "Hi"}


def test_a_pydantic_model_is_a_response_format():
    """A model class is converted to its JSON Schema, as for tools. Other response formats are unchanged."""

    class Person(BaseModel):
        """A person."""

        name: str

    format = plain_response_format(Person)

    assert format["json_schema"]["name"] == "Person"
    assert format["json_schema"]["schema"]["properties"] == {"name": {"type": "string"}}
    assert plain_response_format({"type": "text"}) == {"type": "text"}


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


def test_an_invalid_schema_is_no_obstacle_for_what_exists():
    """Prompts and data that exist already are read. Rows of `turns.jsonl` show that no prompt is rendered with such a schema."""
    template, tools = (
        ChatTemplate.from_string(SOURCES["calls"]),
        [TOOL, {"name": "get", "parameters": {"type": "objekt"}}],
    )

    with pytest.warns(SchemaWarning, match="tool 'get': #: parameters is not enforced"):
        template.prepare_rendered(tools=tools).constraint("vllm")
    assert assistant_mask(template, [{"role": "user", "content": "Hello"}], tools=tools).text
