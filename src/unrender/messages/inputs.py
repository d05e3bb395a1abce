"""Converts the messages and tools that people have into plain data in OpenAI's form.

Tools may be OpenAI's (wrapped, bare, or flat as in Responses), Anthropic's (`input_schema`), MCP's (`inputSchema`), pydantic
models, functions with type hints and a docstring, and objects of those SDKs. Messages may be mappings, an SDK's message
objects, and our own `Message`.

Rules:
- Nothing is changed in place. A mapping that is plain already comes back as it is.
- Servers are given the same tools with every request, so tools of the same content share what was read of them (`Offer`).
  They are read from a copy: nothing changes when the caller's own data does.
"""

from __future__ import annotations

import importlib
import inspect
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.cache import SHARED, content_key, kept
from unrender.errors import MessageError
from unrender.limits import MAX_TOOLS
from unrender.messages.wire import Message, Tool, read_tools

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema")
"""What OpenAI, Anthropic and MCP call a tool's JSON Schema."""
_CUSTOM = "a call of it is free text; offer a function with one text as its parameter"
_KEPT = ("name", "description", "parameters", "strict")
_SECTION = re.compile(r"^\s*(args|arguments|parameters)\s*:\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^\s*(returns?|raises|yields?|examples?|notes?)\s*:\s*$", re.IGNORECASE)
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
    section = margin = ""
    latest = ""
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
    calls, content = data.get("tool_calls"), data.get("content")
    changed: dict[str, Any] = {}
    if isinstance(calls, Sequence) and not isinstance(calls, str | bytes):
        plain = [_plain(call) for call in calls]
        if any(one is not other for one, other in zip(plain, calls, strict=True)):
            changed["tool_calls"] = plain
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        parts = [_plain(part) for part in content]
        if any(one is not other for one, other in zip(parts, content, strict=True)):
            changed["content"] = parts
    return {**data, **changed} if changed else data


def _plain(item: Any) -> Any:
    """Return the data of an SDK's object (pydantic's `model_dump`, or a dataclass-like `to_dict`); others as they are."""
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
    """Equal for no tools that differ; empty where there is no such key."""


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
        SHARED.put(("offer", key, repeats), offer, len(key) + len(offer.key))
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
    made: Offer = SHARED.made(
        ("offer", written), lambda: Offer(plain=own, tools=read, key=written), lambda _: len(written)
    )
    return made
