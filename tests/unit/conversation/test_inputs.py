"""Tests of messages and tools in the forms of real SDKs."""

from __future__ import annotations

from typing import Any, Literal

import mcp.types
import pytest
from message_rows import plain
from openai import pydantic_function_tool
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel, Field

from unrender import Message, RequestError
from unrender.conversation.messages import object_of, read_messages, values_of
from unrender.conversation.tools import plain_response_format, plain_tool, plain_tools
from unrender.limits import MAX_TOOLS

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


@pytest.mark.parametrize(
    "tool",
    [
        OPENAI,
        FUNCTION,
        {"type": "function", **FUNCTION},
        {"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA},
        {"name": "get_weather", "description": "Weather.", "inputSchema": SCHEMA},
        {"type": "custom", "name": "get_weather", "description": "Weather.", "input_schema": SCHEMA},
        mcp.types.Tool.model_validate({"name": "get_weather", "description": "Weather.", "inputSchema": SCHEMA}),
    ],
    ids=["openai", "bare", "responses", "anthropic", "mcp", "anthropic-typed", "mcp-object"],
)
def test_one_tool_in_every_form_is_the_same_tool(tool):
    """Tools in OpenAI's, Anthropic's and MCP's forms are converted to the same tool."""
    assert plain_tool(tool) == OPENAI


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


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ("get_weather", "tools: expected a list, found str"),
        ([7], r"tools\[0\]: expected an object, a function or a pydantic model, found int"),
        (
            [OPENAI, FUNCTION],
            r"tools\[1\].function.name: expected a unique name, found 'get_weather' as in tools\[0\]",
        ),
        ([{"type": "web_search"}], r"tools\[0\].type: expected 'function', found 'web_search'"),
        ([{"type": "function", "function": 3}], r"tools\[0\].function: expected an object, found int"),
        ([no_hints], r"tools\[0\]: the type hints of no_hints\(\) have no JSON Schema"),
        ([OPENAI] * (MAX_TOOLS + 1), f"expected at most {MAX_TOOLS}"),
    ],
)
def test_what_is_not_a_tool_is_refused(tools, message):
    """The error names the path, the value found and the expected form."""
    with pytest.raises(RequestError, match=message):
        plain_tools(tools)


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


def test_a_custom_tool_is_not_called_a_servers():
    """The error suggests a tool to offer instead."""
    with pytest.raises(
        RequestError, match=r"tools\[0\]\.type: expected 'function', found 'custom'; .* free text; offer"
    ):
        plain_tools([{"type": "custom", "custom": {"name": "run"}}])
