"""Messages, tools and requests as frozen values, with conversions from and to OpenAI's formats, and limits for the size of input.

These values don't depend on a template, a format or a model. `conversation` parses other formats.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NotRequired, TypedDict

from unrender.errors import RequestError
from unrender.json_values import JsonSchema, check_values, checked_list, checked_object, content_key, frozen, thawed
from unrender.limits import MAX_BLANK, MAX_NAME
from unrender.signatures import checked, expected_one_of

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Message fields that may contain reasoning. If several fields contain text, the first one is used."""
ReasoningField = Literal["reasoning_content", "reasoning"]
"""Name of the reasoning field. Most servers and templates use `reasoning_content`, as DeepSeek does; OpenRouter uses `reasoning`."""


MEDIA_FORMS = ("{}", "{}_url", "input_{}")
"""Patterns of part types: those of transformers, of OpenAI's Chat Completions, and of OpenAI's Responses and audio input."""


class FunctionCallBody(TypedDict):
    """The `function` of a tool call: the tool's name, and the arguments as JSON text."""

    name: str
    arguments: str


class ToolCallBody(TypedDict):
    """An element of a message's `tool_calls`."""

    id: str
    type: Literal["function"]
    function: FunctionCallBody
    status: NotRequired[str]


class ToolMessageBody(TypedDict):
    """A message with the result of a call."""

    role: Literal["tool"]
    tool_call_id: str
    content: str


class MessageFields(TypedDict, total=False):
    """Optional fields of an assistant message: tool calls, and reasoning under one of two names."""

    reasoning_content: str
    reasoning: str
    tool_calls: list[ToolCallBody]


class MessageBody(MessageFields):
    """An assistant message in OpenAI's format."""

    role: Literal["assistant"]
    content: str


class FunctionBody(TypedDict):
    """The function of a tool; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any] | bool


class ToolBody(TypedDict):
    """An element of a request's `tools`."""

    type: Literal["function"]
    function: FunctionBody


CallStatus = Literal["open", "complete", "truncated", "invalid"]
"""Status of a tool call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call: the tool's name, and the arguments.

    >>> call = ToolCall(name="add", arguments_json='{"a": 1, "b": 2}', id="a1")
    >>> call.arguments["b"]
    2
    """

    name: str
    arguments_json: str
    """The arguments as JSON text. The text is complete only if `status` is "complete"."""
    id: str
    status: CallStatus = "complete"
    offered: bool = True
    """False if no tool with this name was offered."""
    text: str = ""
    """The text of a failed call as the model wrote it, including markers. Empty for other calls, and for calls whose arguments were
    streamed.
    """
    tool: Tool | None = field(default=None, compare=False, repr=False)
    """The offered tool that is called. None if no such tool was offered, or if the offered tools aren't known."""

    @property
    def arguments(self) -> dict[str, Any] | Any:
        """The arguments as a new dict. None if the call isn't complete, or if the arguments can't be parsed as a JSON object."""
        if self.status != "complete":
            return None
        try:
            value = json.loads(self.arguments_json)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def problems(self) -> tuple[str, ...]:
        """Return a message for each violation of the tool's schema. The result is empty if there are no violations, or if the tool isn't
        known.

        Each message starts with the path of the violation in the arguments, such as `$.city`. Keywords that grammars don't enforce aren't
        checked. Writing a grammar issues a `SchemaWarning` for each of these keywords. Raises `GrammarError` if the tool's parameters
        aren't a valid JSON Schema.

        >>> tool = Tool(name="go", parameters={"properties": {"to": {"enum": ["Rome", "Oslo"]}}})
        >>> ToolCall(name="go", arguments_json='{"to": "Bonn"}', id="1", tool=tool).problems()
        ('$.to: expected one of ["Rome", "Oslo"], found "Bonn"',)
        """
        from unrender.schema.problems import problems_of  # noqa: PLC0415 -- loaded when it is used
        from unrender.schema.reader import read_schema  # noqa: PLC0415

        if not self.offered:
            return (f"expected the name of an offered tool, found {self.name!r:.60}",)
        if self.tool is None:
            return ()
        try:
            arguments = json.loads(self.arguments_json)
        except (ValueError, RecursionError):
            return (f"$: expected JSON, found {self.arguments_json!r:.60}",)
        return problems_of(read_schema(self.tool.parameters), arguments)

    def to_openai(self) -> ToolCallBody:
        """Return the call as an element of an OpenAI message's `tool_calls`. For a call that isn't complete, the element includes the
        `status`.
        """
        function: FunctionCallBody = {"name": self.name, "arguments": self.arguments_json}
        call: ToolCallBody = {"id": self.id, "type": "function", "function": function}
        if self.status != "complete":
            call["status"] = self.status
        return call

    def result(self, value: Any) -> ToolMessageBody:
        """Return the tool message with the result of this call. `value` is text or JSON data.

        Raises `RequestError` for any other value.

        >>> ToolCall(name="now", arguments_json="{}", id="a1").result({"hour": 12})
        {'role': 'tool', 'tool_call_id': 'a1', 'content': '{"hour": 12}'}
        """
        try:
            content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise RequestError(
                f"value: expected text or JSON data as the result of {self.name!r:.60}; {error}"
            ) from error
        return {"role": "tool", "tool_call_id": self.id, "content": content}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A parsed answer: content, reasoning and tool calls."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    failed_calls: tuple[ToolCall, ...] = ()
    """Truncated or invalid calls, with everything that was parsed. The name is empty if a call was cut off before its name. `Policy`
    decides whether `content` and `tool_calls` also contain failed calls.
    """

    def finish_reason(self, reason: str | None = None) -> str:
        """Return OpenAI's finish reason. `reason` is the engine's finish reason, or None.

        >>> Message(tool_calls=(ToolCall(name="now", arguments_json="{}", id="0"),)).finish_reason("stop")
        'tool_calls'
        """
        if any(call.status == "complete" for call in self.tool_calls) and reason in (None, "stop"):
            return "tool_calls"
        cut_off = any(call.status == "truncated" for call in self.failed_calls)
        return reason or ("length" if cut_off else "stop")

    def to_openai(self, *, reasoning_field: ReasoningField = "reasoning_content") -> MessageBody:
        """Return the message in OpenAI's format. The result can be sent back in the next turn, and equals the combined deltas of a stream.

        Calls that are still being parsed are left out. A failed call is included only if it was streamed, with the `status` "truncated" or
        "invalid". `content` is always a string. Reasoning and calls are included only if they aren't empty, because templates expect this.
        """
        message: MessageBody = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message[reasoning_field] = self.reasoning
        calls = [call.to_openai() for call in self.tool_calls if call.status != "open"]
        if calls:
            message["tool_calls"] = calls
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image, audio clip, video or file."""

    kind: str
    """`image`, `audio`, `video` or `file`."""
    part: Mapping[str, Any]
    """The part as the caller passed it."""
    message: int
    """Index of the message."""

    @property
    def data(self) -> Any:
        """The URL or data of the part, as the caller passed it."""
        return media_value(self.part, self.kind)


def media_value(part: Mapping[str, Any], kind: str) -> Any:
    """Return the URL of a media part, or the part's data."""
    # Unwrap a nested URL, as in `{'url': 'https://…'}`.
    value = next((part[form.format(kind)] for form in MEDIA_FORMS if form.format(kind) in part), None)
    return value.get("url", value) if isinstance(value, Mapping) else value


@checked
@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function that the model may call. `parameters` is the JSON Schema of the arguments, which is copied and frozen."""

    name: str
    parameters: JsonSchema = field(default_factory=dict)
    description: str = ""
    strict: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", frozen(self.parameters))

    @cached_property
    def _key(self) -> bytes:
        """Cache key that identifies the tool. Empty if `parameters` isn't plain data."""
        parameters = content_key(self.parameters)
        return content_key((self.name, self.description, parameters, self.strict)) if parameters else b""

    @classmethod
    def from_openai(cls, tool: Any, *, where: str = "tool") -> Tool:
        """Convert a tool from OpenAI's format. The bare `function` object is also accepted.

        Raises `RequestError` if the name or the parameters are malformed. The error message starts with the path `where`.
        """
        function = checked_object(checked_object(tool, where).get("function", tool), f"{where}.function")
        check_values(tool, where=where)
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise RequestError(f"{where}.function.name: expected a non-empty string, found {name!r}")
        if name != name.strip():
            raise RequestError(f"{where}.function.name: expected no whitespace around the name, found {name!r:.80}")
        limit = MAX_NAME - MAX_BLANK  # The parser also needs the text that ends the name.
        if len(name) > limit:
            raise RequestError(f"{where}.function.name: expected at most {limit} characters, found {len(name)}")
        parameters, place = function.get("parameters"), f"{where}.function.parameters"
        if parameters is None:
            parameters = {"type": "object", "properties": {}}
        if not isinstance(parameters, Mapping | bool):
            raise RequestError(f"{place}: expected a JSON Schema, found {parameters!r:.80}")
        properties = {} if isinstance(parameters, bool) else parameters.get("properties", {})
        for key, value in checked_object(properties, f"{place}.properties").items():
            if not isinstance(value, Mapping | bool):
                raise RequestError(f"{place}.properties.{key}: expected a JSON Schema, found {type(value).__name__}")
        description = function.get("description")
        return cls(
            name=name,
            parameters=parameters,
            description=description if isinstance(description, str) else "",
            strict=bool(function.get("strict")),
        )

    def to_openai(self) -> ToolBody:
        """Return the tool as a new dict, in the format of OpenAI's `tools`."""
        parameters = thawed(self.parameters)
        function: FunctionBody = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


ToolChoice = Literal["auto", "none", "required", "named"]
"""Restriction of tool calls, named as in OpenAI's `tool_choice`. "named" requires a call of one particular tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPrompt:
    """Description of the tools, which is added to the prompt if the template ignores them."""

    format_name: str
    """The declared format whose call syntax is described. Empty if the template's own syntax is described."""
    text: str
    """Text that is added to the system message."""


@checked
@dataclass(frozen=True, kw_only=True)
class Request:
    """Constraints for one turn: the offered tools, the tool choice, and the schema of the content.

    `tools` is None if the offered tools aren't known. Calls are then accepted regardless of their names. `tools` is empty if no tools are
    offered. The schema is copied and frozen.
    """

    tools: tuple[Tool, ...] | None = ()
    tool_choice: ToolChoice = "auto"
    named_tool: str = ""
    parallel_tool_calls: bool = True
    response_schema: JsonSchema | None = None
    reasoning_format: Literal["auto", "none"] = "auto"

    def __post_init__(self) -> None:
        if self.response_schema is not None:
            object.__setattr__(self, "response_schema", frozen(self.response_schema))

    @property
    def _calls_allowed(self) -> bool:
        """True if the parser looks for tool calls."""
        return self.tool_choice != "none" and self.tools != ()

    @property
    def _call_required(self) -> bool:
        """True if the answer must contain a call."""
        return self.tool_choice in ("required", "named")

    @property
    def _one_call(self) -> bool:
        """True if the answer may contain at most one call."""
        return not self.parallel_tool_calls or self.tool_choice == "named"

    @cached_property
    def _key(self) -> Hashable | None:
        """Cache key that identifies the request. None if a schema isn't plain data."""
        tools = None if self.tools is None else tuple(tool._key for tool in self.tools)
        schema = content_key(self.response_schema)
        if not schema or (tools and not all(tools)):
            return None
        said = (self.tool_choice, self.named_tool, self.parallel_tool_calls, self.reasoning_format)
        return (tools, schema, *said)

    @cached_property
    def _tool_names(self) -> tuple[str, ...]:
        """The names of the offered tools."""
        return tuple(tool.name for tool in self.tools or ())

    @checked
    def tool(self, name: str) -> Tool | None:
        """Return the offered tool with this name, or None."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Tool]:
        """The tools by name. If several tools have the same name, the first one is used."""
        return {tool.name: tool for tool in reversed(self.tools or ())}


def read_tools(tools: Sequence[Any] | None) -> tuple[Tool, ...]:
    """Convert OpenAI's `tools` to `Tool` values. Raises `RequestError` with the path of a malformed tool."""
    listed = () if tools is None else checked_list(tools, "tools")
    return tuple(Tool.from_openai(tool, where=f"tools[{i}]") for i, tool in enumerate(listed))


def read_allowed_tools(choice: Any, tools: Sequence[Tool]) -> tuple[Any, tuple[Tool, ...]]:
    """Split a `tool_choice` with a list of allowed tools: return the plain `tool_choice`, and the allowed tools. Without such a list, all
    tools are allowed.

    The list is OpenAI's `{"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required", "tools": […]}}`, or the flat form of the
    Responses API. Raises `RequestError`, with the path, if the list is malformed or contains an unknown tool.
    """
    if not isinstance(choice, Mapping) or choice.get("type") != "allowed_tools":
        return choice, tuple(tools)
    where = "tool_choice.allowed_tools"
    body = checked_object(choice.get("allowed_tools", choice), where)
    mode, listed = body.get("mode", "auto"), body.get("tools")
    if mode not in ("auto", "required"):
        raise RequestError(f"{where}.mode: expected 'auto' or 'required', found {mode!r:.60}")
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes) or not listed:
        raise RequestError(f"{where}.tools: expected a list of tools, found {listed!r:.60}")
    known = [tool.name for tool in tools]
    names = [_tool_name(item, known, where=f"{where}.tools[{i}]") for i, item in enumerate(listed)]
    return mode, tuple(tool for tool in tools if tool.name in names)


def _tool_name(item: Any, known: Sequence[str], *, where: str) -> str:
    """Return the name in a reference to a tool. Raises `RequestError` if the name isn't one of `known`."""
    function = item.get("function", item) if isinstance(item, Mapping) else item
    name = function.get("name") if isinstance(function, Mapping) else None
    if name not in known:
        raise RequestError(expected_one_of(where, known, name, what="the tools "))
    return str(name)


def read_tool_choice(choice: Any, tools: Sequence[Tool]) -> tuple[ToolChoice, str]:
    """Convert OpenAI's `tool_choice` to a `ToolChoice` and the name of the required tool, or "" if no tool is named.

    A tool's name alone also counts. Raises `RequestError` for an unknown mode, an unknown tool, or a required call without tools.
    """
    if choice is None:
        return "auto", ""
    names = [tool.name for tool in tools]
    if isinstance(choice, Mapping):
        return "named", _tool_name(choice, names, where="tool_choice")
    if choice not in ("auto", "none", "required"):
        if choice in names:
            return "named", choice
        raise RequestError(expected_one_of("tool_choice", ("auto", "none", "required", *names), choice))
    if choice == "required" and not tools:
        raise RequestError("tool_choice: 'required' needs at least one tool")
    return choice, ""


def read_response_schema(response_format: Any) -> JsonSchema | None:
    """Return the JSON Schema in OpenAI's `response_format`, or None if the answer is free text.

    Raises `RequestError` for a malformed or unknown response format.
    """
    if response_format is None:
        return None
    kind = checked_object(response_format, "response_format").get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        raise RequestError(f"response_format.type: expected 'text', 'json_object' or 'json_schema', found {kind!r}")
    check_values(response_format, where="response_format")
    where = "response_format.json_schema" if "json_schema" in response_format else "response_format"
    wrapper = response_format.get("json_schema", response_format)
    wrapper = checked_object(wrapper, where, "an object with a name and a schema")
    if not isinstance(wrapper.get("name", ""), str):
        raise RequestError(f"{where}.name: expected a string, found {wrapper['name']!r:.60}")
    schema = wrapper.get("schema")
    if not isinstance(schema, Mapping | bool):
        raise RequestError(f"{where}.schema: expected a JSON Schema, found {schema!r:.80}")
    return schema
