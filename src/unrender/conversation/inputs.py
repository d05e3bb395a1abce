"""Converts the messages and tools that people have into plain data in OpenAI's form.

Tools may be OpenAI's (wrapped, bare, or flat as in Responses), Anthropic's (`input_schema`), MCP's (`inputSchema`), pydantic
models, functions with type hints and a docstring, and objects of those SDKs. Messages may be mappings, an SDK's message
objects, and our own `Message`.

What a model wrote for the arguments of earlier calls is never refused. A template that takes text gets any text as it is. A
template that takes values alone gets the members that are certain, and the rest of the text as one more member.

Rules:
- Nothing is changed in place. A mapping that is plain already comes back as it is.
- Servers are given the same tools with every request, so tools of the same content share what was read of them (`Offer`).
  They are read from a copy: nothing changes when the caller's own data does.
"""

from __future__ import annotations

import importlib
import inspect
import json
import marshal
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.cache import SHARED, bytes_of, kept
from unrender.errors import MessageError, TemplateWarning
from unrender.freezing import content_key
from unrender.limits import MAX_TOOLS
from unrender.messages.wire import Message, Tool, check_values, read_tools

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema")
"""What OpenAI, Anthropic and MCP call a tool's JSON Schema."""
_CUSTOM = "a call of it is free text; offer a function with one text as its parameter"
_KEPT = ("name", "description", "parameters", "strict")
_SECTION = re.compile(r"^\s*(args|arguments|parameters)\s*:\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^\s*(returns?|raises|yields?|examples?|notes?)\s*:\s*$", re.IGNORECASE)
# `city: The city.`, `city (str, optional): …` and `**city**: …` describe the argument `city`.
_ENTRY = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


def plain_tools(tools: Any, *, repeats: bool = False) -> list[Mapping[str, Any]] | None:
    """Return tools as `{"type": "function", "function": {…}}`; None stays None.

    With `repeats`, a tool may be listed again if all of it is equal, and is returned once: a prompt that was rendered
    elsewhere may hold it twice. Raises `MessageError`, naming the place, for a value that is not a tool, for a repeated
    name and for more than `MAX_TOOLS` tools.
    """
    if tools is None:
        return None
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Sequence):
        raise MessageError(f"tools: expected a list, found {type(tools).__name__}")
    if len(tools) > MAX_TOOLS:
        raise MessageError(f"tools: expected at most {MAX_TOOLS}, found {len(tools)}")
    return _named_once([plain_tool(tool, where=f"tools[{i}]") for i, tool in enumerate(tools)], repeats=repeats)


def _named_once(tools: list[Mapping[str, Any]], *, repeats: bool) -> list[Mapping[str, Any]]:
    places: dict[str, int] = {}
    kept = []
    for i, tool in enumerate(tools):
        name = tool["function"].get("name")
        first = places.setdefault(name, i) if isinstance(name, str) else i
        if first == i:
            kept.append(tool)
        elif not (repeats and _equal(tool, tools[first])):
            raise MessageError(
                f"tools[{i}].function.name: expected a name of its own, found {name!r} as in tools[{first}]"
            )
    return kept


def _equal(tool: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return tool == other
    except RecursionError:
        return False


def plain_tool(tool: Any, *, where: str = "tool") -> Mapping[str, Any]:
    """Return one tool as `{"type": "function", "function": {…}}`. Raises `MessageError`, naming `where`."""
    if _is_model(tool):
        return _of_model(tool, id(getattr(tool, "__pydantic_core_schema__", None)))
    if inspect.isfunction(tool):
        return _of_function(tool, where, tool.__doc__, id(tool.__annotations__))
    if inspect.isroutine(tool):
        return _described(tool, where)
    data = _plain(tool)
    if not isinstance(data, Mapping):
        expected = "an object, a function or a pydantic model"
        raise MessageError(f"{where}: expected {expected}, found {type(tool).__name__}")
    # `{"function": {…}}` without a type is OpenAI's wrapped form all the same.
    if "function" in data:
        function = data["function"]
        if not isinstance(function, Mapping):
            raise MessageError(f"{where}.function: expected an object, found {type(function).__name__}")
        return data
    if data.get("type", "function") != "function" and not any(name in data for name in _SCHEMA_NAMES):
        kind = data["type"]
        why = _CUSTOM if kind == "custom" else "a server runs such tools itself"
        raise MessageError(f"{where}.type: expected 'function', found {kind!r:.60}; {why}")
    return {"type": "function", "function": _flat(data)}


def plain_response_format(response_format: Any) -> Any:
    """Return a response format as OpenAI's data; a pydantic model stands for its JSON Schema."""
    if not _is_model(response_format):
        return _plain(response_format)
    function = plain_tool(response_format)["function"]
    schema = {"name": function["name"], "schema": function["parameters"]}
    return {"type": "json_schema", "json_schema": schema}


def _is_model(tool: Any) -> bool:
    """Return whether `tool` is a pydantic model's class."""
    return inspect.isclass(tool) and hasattr(tool, "model_json_schema")


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function of a tool that is written flat, its schema under any of the known names."""
    function = {name: value for name, value in data.items() if name in _KEPT and value is not None}
    schema = next((data[name] for name in _SCHEMA_NAMES if data.get(name) is not None), None)
    return function if schema is None else {**function, "parameters": schema}


@kept(5_000)
def _of_model(model: Any, _built: int) -> Mapping[str, Any]:
    """Describe a pydantic model; it is asked again when it was built again."""
    schema = without_titles(model.model_json_schema())
    description = schema.pop("description", "")
    return {"type": "function", "function": {"name": model.__name__, "description": description, "parameters": schema}}


@kept(5_000)
def _of_function(function: Callable[..., Any], where: str, _doc: str | None, _hints: int) -> Mapping[str, Any]:
    """Describe a function once, as long as it keeps its docstring and its hints."""
    return _described(function, where)


def _described(function: Callable[..., Any], where: str) -> Mapping[str, Any]:
    """Describe a function by its type hints, and by its docstring as Google's style guide lays it out.

    The conventions are those of `transformers.utils.get_json_schema`; the schema is pydantic's.
    """
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise MessageError(f"{where}: a function as a tool needs pydantic: pip install 'unrender[tools]'") from None
    try:
        schema = without_titles(pydantic.TypeAdapter(function).json_schema())
    except (pydantic.errors.PydanticUserError, NameError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise MessageError(f"{where}: the hints of {function.__name__}() give no JSON Schema: {reason}") from error
    if schema.get("type") != "object":
        raise MessageError(f"{where}: {function.__name__}() takes arguments by position alone; a call names them")
    summary, described = read_docstring(inspect.getdoc(function) or "")
    properties = schema.get("properties", {})
    for name in properties.keys() & described.keys():
        properties[name] = {**properties[name], "description": described[name]}
    return {"type": "function", "function": {"name": function.__name__, "description": summary, "parameters": schema}}


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    r"""Return the summary of a docstring in Google's style, and the description of each argument under `Args:`.

    >>> read_docstring("Add.\n\nArgs:\n    a: The first\n        of two.\n    b (int): The other.\nReturns:\n    The sum.")
    ('Add.', {'a': 'The first of two.', 'b': 'The other.'})
    """
    summary: list[str] = []
    described: dict[str, str] = {}
    section = margin = latest = ""
    for line in text.splitlines():
        if _SECTION.match(line) or _OTHER_SECTION.match(line):
            section, margin, latest = ("args" if _SECTION.match(line) else "other"), "", ""
        elif not section:
            summary.append(line)
        elif section == "args" and line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            margin = margin or indent
            entry = _ENTRY.match(line) if len(indent) <= len(margin) else None
            if entry:
                latest = entry.group(1)
                described[latest] = entry.group(2).strip()
            elif latest:
                described[latest] = f"{described[latest]} {line.strip()}".strip()
    return "\n".join(summary).strip(), described


def without_titles(schema: Any) -> Any:
    """Return a schema without the titles that pydantic derives from names; a property called `title` stays.

    >>> without_titles({"title": "A", "properties": {"title": {"title": "Title", "type": "string"}}})
    {'properties': {'title': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    named = ("properties", "$defs")
    values = ("default", "const", "enum", "examples")
    return {
        key: {name: without_titles(item) for name, item in value.items()}
        if key in named and isinstance(value, dict)
        else (value if key in values else without_titles(value))
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def plain_messages(messages: Any) -> Any:
    """Return a conversation as mappings.

    A value that is not a conversation is returned unchanged, so that `read_messages` refuses it.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        return messages
    return [_plain_message(message) for message in messages]


def _plain_message(message: Any) -> Any:
    data = message.to_openai() if isinstance(message, Message) else _plain(message)
    if not isinstance(data, Mapping):
        return data
    changed: dict[str, Any] = {}
    for name in ("tool_calls", "content"):
        items = data.get(name)
        if isinstance(items, Sequence) and not isinstance(items, str | bytes):
            plain = [_plain(item) for item in items]
            if any(one is not other for one, other in zip(plain, items, strict=True)):
                changed[name] = plain
    return {**data, **changed} if changed else data


def _plain(item: Any) -> Any:
    """Return the data of an SDK's object (pydantic's `model_dump`, or a dataclass-like `to_dict`); others as they are."""
    # The class of a model has `model_dump` as well, and nothing that could be dumped.
    if isinstance(item, Mapping) or inspect.isclass(item):
        return item
    for method in ("model_dump", "to_dict"):
        dump = getattr(item, method, None)
        if callable(dump):
            return dump(exclude_none=True, by_alias=True) if method == "model_dump" else dump()
    return item


# The tools of a request, read once.


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of a request, read for templates and for the library."""

    plain: Sequence[Mapping[str, Any]] = ()
    """Each as `{"type": "function", "function": {…}}`; shared by requests, so never to be changed."""
    tools: tuple[Tool, ...] = ()
    key: bytes = b""
    """Two offers that differ have different keys. Empty where no key can be made."""
    weight: int = 0
    """Half of the bytes that it takes: it is kept under two keys."""


def read_offer(tools: Any, *, repeats: bool = False) -> Offer:
    """Read the tools of a request; none for None. `repeats` and `MessageError`s are as for `plain_tools`."""
    if tools is None:
        return Offer()
    key = content_key(tools)
    found: Offer | None = SHARED.get(("offer", key, repeats)) if key else None
    if found is not None:
        return found
    offer = _read(tools, repeats=repeats)
    if key and offer.key:
        SHARED.put(("offer", key, repeats), offer, len(key) + offer.weight)
    return offer


def _read(tools: Any, *, repeats: bool) -> Offer:
    plain = plain_tools(tools, repeats=repeats) or []
    read = read_tools(plain)
    try:
        # Version 2 knows no shared parts: equal content is written alike. Reading has bounded what that can come to.
        written = marshal.dumps(plain, 2)
    except ValueError:
        return Offer(plain=plain, tools=read)
    own = marshal.loads(written)  # noqa: S302 -- written just now

    def make() -> Offer:
        # The bytes by which caches know a tool and its parameters are made when they are asked for, and as long as these.
        weight = (bytes_of(own, read) + 3 * len(written)) // 2 + _KEY_BYTES
        return Offer(plain=own, tools=read, key=written, weight=weight)

    made: Offer = SHARED.made(("offer", written), make, lambda offer: offer.weight)
    return made


_KEY_BYTES = 300
"""Bytes that a cache takes for a key."""


# The calls of earlier turns.


_UNREAD = "arguments"
"""The member that holds the text which could not be read."""
_DECODER = json.JSONDecoder()
# Possessive (`*+`): a million blanks are looked at once, and not once from each of them.
_OPENING = re.compile(r"\s*+\{\s*+")
_COLON = re.compile(r"\s*+:\s*+")
_COMMA = re.compile(r"\s*+,\s*+")
_ENDED = ('"', "{", "[", "t", "f", "n")
"""How values begin that show where they end. A number may go on: `3` is the beginning of `34`."""


def readable_calls(messages: Sequence[Mapping[str, Any]], *, as_text: bool) -> list[Mapping[str, Any]]:
    """Return the conversation with arguments that a template can render: JSON objects, and other text with `as_text`.

    Each call whose text cannot be rendered as it is gives a `TemplateWarning` that names it. No argument is changed.
    """
    rewritten: list[str] = []
    read = [_readable(message, f"messages[{i}]", rewritten, as_text=as_text) for i, message in enumerate(messages)]
    for text in rewritten:
        warnings.warn(text, TemplateWarning, stacklevel=5)
    return read


def _readable(message: Mapping[str, Any], where: str, rewritten: list[str], *, as_text: bool) -> Mapping[str, Any]:
    if not (calls := message.get("tool_calls")):
        return message
    read = []
    for i, call in enumerate(calls):
        function = call.get("function", call)
        arguments = function.get("arguments")
        said = arguments if isinstance(arguments, Mapping) else arguments_text(arguments)
        if not as_text and isinstance(said, str) and object_of(said) is None:
            values = values_of(said)
            rewritten.append(
                f"{where}.tool_calls[{i}].function.arguments: the template writes JSON objects alone, found {said!r:.60}; "
                f"it is written as {json.dumps(values, ensure_ascii=False):.60}"
            )
            said = values
        changed = {**function, "arguments": said}
        read.append({**call, "function": changed} if "function" in call else changed)
    return {**message, "tool_calls": read}


def message_calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the calls of a message, as far as they are objects."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else ()


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `function` of a call; of a flat call, which has none, the call itself."""
    function = call.get("function", call)
    return function if isinstance(function, Mapping) else {}


def arguments_text(arguments: Any) -> str:
    """Return arguments in any form as text: nothing and white space are `{}`.

    >>> arguments_text(None), arguments_text([1]), arguments_text('{"a": ')
    ('{}', '[1]', '{"a": ')
    """
    if isinstance(arguments, str):
        return arguments if arguments.strip() else "{}"
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def object_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` is; None when it is not one, or nested too deeply to be rendered."""
    try:
        value = json.loads(text)
        check_values(value, where="arguments")
    except (ValueError, RecursionError, MessageError):
        return None
    return value if isinstance(value, dict) else None


def values_of(arguments: Any) -> Mapping[str, Any]:
    """Return arguments in any form as values: those that are certain, and the text that could not be read as one more.

    >>> values_of('{"path": "a.txt", "lines": 3')
    {'path': 'a.txt', 'arguments': '"lines": 3'}
    """
    if isinstance(arguments, Mapping):
        return arguments
    text = arguments_text(arguments)
    whole = object_of(text)
    if whole is not None:
        return whole
    members, rest = _certain_members(text)
    if not rest:
        return members
    name = _UNREAD
    # `{"arguments": 1, "x": 3`: a member of that name is there, so the rest is called `arguments_`.
    while name in members:
        name += "_"
    return {**members, name: rest}


def _certain_members(text: str) -> tuple[dict[str, Any], str]:
    """Return the members at the beginning of a broken object, and the text after them."""
    members: dict[str, Any] = {}
    opening = _OPENING.match(text)
    at = opening.end() if opening else len(text)
    while (member := _member(text, at)) is not None:
        name, value, at = member
        members[name] = value
        if not (comma := _COMMA.match(text, at)):
            break
        at = comma.end()
    rest = text[at:] if members else text
    return members, "" if rest.strip() in ("", "{", "}") else rest.strip()


def _member(text: str, at: int) -> tuple[str, Any, int] | None:
    """Return the name and the value of the member at `at`, and where it ends; None where that is not certain."""
    try:
        name, at = _DECODER.raw_decode(text, at)
        colon = _COLON.match(text, at)
        if not isinstance(name, str) or colon is None:
            return None
        value, end = _DECODER.raw_decode(text, colon.end())
        check_values(value, where="arguments")
    except (ValueError, RecursionError, MessageError):
        return None
    # At the end of a text that was cut off, `"lines": 3` may be the beginning of `"lines": 34`.
    certain = end < len(text) or text.startswith(_ENDED, colon.end())
    return (name, value, end) if certain else None
