"""Parse tools in all supported formats, and the constraints of a request.

Tools may be in the format of OpenAI (wrapped, bare, or flat as in Responses), of Anthropic (`input_schema`), or of MCP (`inputSchema`).
Tools may also be pydantic models, functions with type hints and a docstring, and SDK objects in any of these formats.

Rules:
- Tools are never modified in place. A tool that is already in OpenAI's wrapped format is returned unchanged.
- Servers receive the same tools with every request, so requests with equal tools share one `Offer`. An offer holds a
  copy of the tools, so later changes to the caller's data don't affect it.
"""

from __future__ import annotations

import importlib
import inspect
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrender.cache import SHARED, bytes_of, kept
from unrender.conversation import Capabilities
from unrender.conversation.messages import plain_item
from unrender.errors import GrammarError, RequestError
from unrender.json_values import JsonSchema, checked_list, checked_object, content_key, json_type
from unrender.limits import MAX_TOOLS
from unrender.messages import Request, Tool, read_allowed_tools, read_response_schema, read_tool_choice, read_tools
from unrender.version import install_command

_SCHEMA_NAMES = ("parameters", "input_schema", "inputSchema")
"""Keys for a tool's JSON Schema in the formats of OpenAI, Anthropic and MCP."""
_CUSTOM = "its input is free text; offer a function with one string parameter"
_KEPT = ("name", "description", "parameters", "strict")
_SECTION = re.compile(r"^\s*(args|arguments|parameters)\s*:\s*$", re.IGNORECASE)
_OTHER_SECTION = re.compile(r"^\s*(returns?|raises|yields?|examples?|notes?)\s*:\s*$", re.IGNORECASE)
# Matches the description of an argument, such as `city: The city.`, `city (str, optional): …` or `**city**: …`.
_ENTRY = re.compile(r"^\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")


def plain_tools(tools: Any, *, repeats: bool = False) -> list[Mapping[str, Any]] | None:
    """Convert tools to OpenAI's wrapped format. Returns None if `tools` is None.

    If `repeats` is True, which is used for prompts rendered elsewhere, duplicates of a tool are allowed and removed. Raises `RequestError`,
    with the path, for a value that isn't a tool, for a repeated name, and for more than `MAX_TOOLS` tools.
    """
    if tools is None:
        return None
    if len(checked_list(tools, "tools")) > MAX_TOOLS:
        raise RequestError(f"tools: expected at most {MAX_TOOLS}, found {len(tools)}")
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
            raise RequestError(f"tools[{i}].function.name: expected a unique name, found {name!r} as in tools[{first}]")
    return kept


def _equal(tool: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    try:
        return tool == other
    except RecursionError:
        return False


def plain_tool(tool: Any, *, where: str = "tool") -> Mapping[str, Any]:
    """Convert a tool to OpenAI's wrapped format. Raises `RequestError`, with the path `where`, if `tool` isn't a tool."""
    if _is_model(tool):
        return _of_model(tool, id(getattr(tool, "__pydantic_core_schema__", None)))
    if inspect.isfunction(tool):
        return _of_function(tool, where, tool.__doc__, id(tool.__annotations__))
    if inspect.isroutine(tool):
        return _described(tool, where)
    data = plain_item(tool)
    if not isinstance(data, Mapping):
        expected = "an object, a function or a pydantic model"
        raise RequestError(f"{where}: expected {expected}, found {type(tool).__name__}")
    # Don't check the type, which may be missing in the wrapped format.
    if "function" in data:
        checked_object(data["function"], f"{where}.function")
        return data
    if data.get("type", "function") != "function" and not any(name in data for name in _SCHEMA_NAMES):
        kind = data["type"]
        why = _CUSTOM if kind == "custom" else "tools that a server runs itself aren't supported"
        raise RequestError(f"{where}.type: expected 'function', found {kind!r:.60}; {why}")
    return {"type": "function", "function": _flat(data)}


def plain_response_format(response_format: Any) -> Any:
    """Return a response format in OpenAI's format. A pydantic model is replaced by its JSON Schema."""
    if not _is_model(response_format):
        return plain_item(response_format)
    function = plain_tool(response_format)["function"]
    schema = {"name": function["name"], "schema": function["parameters"]}
    return {"type": "json_schema", "json_schema": schema}


def _is_model(tool: Any) -> bool:
    """Return whether `tool` is a pydantic model class."""
    return inspect.isclass(tool) and hasattr(tool, "model_json_schema")


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function of a flat tool, with its JSON Schema as `parameters`."""
    function = {name: value for name, value in data.items() if name in _KEPT and value is not None}
    schema = next((data[name] for name in _SCHEMA_NAMES if data.get(name) is not None), None)
    return function if schema is None else {**function, "parameters": schema}


@kept(5_000)
def _of_model(model: Any, _built: int) -> Mapping[str, Any]:
    """Return the tool for a pydantic model. `_built` is part of the cache key, since a rebuilt model has a new schema."""
    schema = without_titles(model.model_json_schema())
    description = schema.pop("description", "")
    return {"type": "function", "function": {"name": model.__name__, "description": description, "parameters": schema}}


@kept(5_000)
def _of_function(function: Callable[..., Any], where: str, _doc: str | None, _hints: int) -> Mapping[str, Any]:
    """Return the tool for a function. The result is cached until the function's docstring or type hints change."""
    return _described(function, where)


def _described(function: Callable[..., Any], where: str) -> Mapping[str, Any]:
    """Return the tool for a function, from its type hints and its docstring in Google style.

    The conventions are those of `transformers.utils.get_json_schema`. Pydantic generates the schema.
    """
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        raise RequestError(f"{where}: a function as a tool needs pydantic: {install_command('tools')}") from None
    try:
        schema = without_titles(pydantic.TypeAdapter(function).json_schema())
    except (pydantic.errors.PydanticUserError, NameError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise RequestError(f"{where}: the type hints of {function.__name__}() have no JSON Schema: {reason}") from error
    if schema.get("type") != "object":
        raise RequestError(
            f"{where}: {function.__name__}() has positional-only parameters; calls pass arguments by name"
        )
    summary, described = read_docstring(inspect.getdoc(function) or "")
    properties = schema.get("properties", {})
    for name in properties.keys() & described.keys():
        properties[name] = {**properties[name], "description": described[name]}
    return {"type": "function", "function": {"name": function.__name__, "description": summary, "parameters": schema}}


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    r"""Return the summary of a docstring in Google style, and the descriptions of the arguments under `Args:`.

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
    """Return a schema without the titles that pydantic derives from names. A property named `title` is kept.

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


# Tools of a request.


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of a request, as plain dicts and as `Tool` objects."""

    plain: Sequence[Mapping[str, Any]] = ()
    """The tools in OpenAI's wrapped format. Several requests share this list, so it must not be modified."""
    tools: tuple[Tool, ...] = ()
    key: bytes = b""
    """Cache key that identifies the tools. Empty if the tools can't be serialized."""
    weight: int = 0
    """Half of the offer's size in bytes, because the cache stores each offer under two keys and counts this weight for both."""
    problem: str = ""
    """Error message for the first tool whose parameters aren't a valid JSON Schema. Empty if all are valid."""


def read_offer(tools: Any, *, repeats: bool = False) -> Offer:
    """Return the tools of a request. If `tools` is None, the offer is empty. `repeats` has the same meaning as for `plain_tools`, and the
    same errors are raised.
    """
    if tools is None:
        return Offer()
    key = content_key(tools)
    if not key:
        return _read(tools, repeats=repeats)
    found: Offer = SHARED.made(
        ("offer", key, repeats), lambda: _read(tools, repeats=repeats), lambda offer: len(key) + offer.weight
    )
    return found


def _read(tools: Any, *, repeats: bool) -> Offer:
    plain = plain_tools(tools, repeats=repeats) or []
    read = read_tools(plain)
    wrong = (_problem(tool.parameters, f"tools[{i}].function.parameters") for i, tool in enumerate(read))
    problem = next(filter(None, wrong), "")
    try:
        # Use marshal version 2, which has no references, so that equal data has equal bytes. `plain_tools` has already limited the size.
        written = marshal.dumps(plain, 2)
    except ValueError:
        return Offer(plain=plain, tools=read, problem=problem)
    own = marshal.loads(written)  # noqa: S302 -- written just now

    def make() -> Offer:
        # Include the keys under which other caches store the tools and their parameters. These keys are created later, and each is as long
        # as `written`.
        weight = (bytes_of(own, read) + 3 * len(written)) // 2 + _KEY_BYTES
        return Offer(plain=own, tools=read, key=written, weight=weight, problem=problem)

    made: Offer = SHARED.made(("offer", written), make, lambda offer: offer.weight)
    return made


def _problem(schema: JsonSchema, where: str) -> str:
    """Return the error message for an invalid JSON Schema at the path `where`, or "" if the schema is valid."""
    from unrender.schema.reader import read_schema  # noqa: PLC0415 -- imported on use

    try:
        read_schema(schema)
    except GrammarError as error:
        return f"{where}: invalid schema: {error}"
    return ""


_KEY_BYTES = 300
"""Size in bytes of a cache key, apart from its text."""


def read_request(
    tools: Any,
    tool_choice: Any = None,
    *,
    parallel_tool_calls: Any = True,
    response_format: Any = None,
    reasoning_format: Any = "auto",
    repeats: bool = False,
) -> tuple[Offer, Request]:
    """Return the tools of a request and the constraints on its answer.

    `repeats` has the same meaning as for `plain_tools`. Such prompts exist already, so invalid schemas of their tools are allowed, too: a
    grammar doesn't enforce them. Raises `RequestError`, with the path, if an argument is malformed.
    """
    offer = read_offer(tools, repeats=repeats)
    schema = read_response_schema(plain_response_format(response_format))
    problem = "" if repeats else offer.problem
    if problem := problem or ("" if schema is None else _problem(schema, "response_format")):
        raise RequestError(problem)
    if not isinstance(parallel_tool_calls, bool | None):
        raise RequestError(f"parallel_tool_calls: expected True or False, found {parallel_tool_calls!r:.60}")
    if reasoning_format not in ("auto", "none", None):
        raise RequestError(f"reasoning_format: expected 'auto' or 'none', found {reasoning_format!r}")
    tool_choice, offered = read_allowed_tools(tool_choice, offer.tools)
    choice, named = read_tool_choice(tool_choice, offered)
    return offer, Request(
        tools=offered,
        tool_choice=choice,
        named_tool=named,
        parallel_tool_calls=parallel_tool_calls is not False,
        response_schema=schema,
        reasoning_format=reasoning_format or "auto",
    )


# Alternative descriptions of tools, for templates that reject the original ones.

SINGLE_TYPES = "the template refuses the tools; each parameter is described with a single type"


def fitting(
    tools: Sequence[Mapping[str, Any]], capabilities: Capabilities
) -> tuple[Sequence[Mapping[str, Any]], tuple[str, ...]]:
    """Return the tools in a form that the template supports, and notes on information that this form lacks."""
    if not (tools and (capabilities.requires_descriptions or capabilities.requires_single_types)):
        return tools, ()
    in_words, plain = ([described(tool, plain=plain) for tool in tools] for plain in (False, True))
    if capabilities.requires_single_types and plain != in_words:
        return plain, (SINGLE_TYPES,)
    return in_words if capabilities.requires_descriptions else tools, ()


def described(tool: Mapping[str, Any], *, plain: bool) -> dict[str, Any]:
    """Return a tool in which the function and each parameter have a description, which may be empty.

    If `plain` is True, each parameter also gets exactly one type.
    """
    function = {**tool["function"]}
    function.setdefault("parameters", {"type": "object", "properties": {}})
    function["description"] = function.get("description") or ""
    if isinstance(parameters := function["parameters"], Mapping):
        properties = {name: _with_words(schema, plain) for name, schema in (parameters.get("properties") or {}).items()}
        required = {"required": parameters.get("required") or []} if plain or "required" in parameters else {}
        function["parameters"] = {**parameters, "properties": properties, **required}
    return {**tool, "function": function}


def _with_words(schema: Any, plain: bool) -> Any:
    """Return a parameter's schema with a description. If `plain` is True, the schema and its subschemas also get exactly one type."""
    if not isinstance(schema, Mapping):
        return {"description": "", "type": "string"} if plain else schema
    described = {**schema, "description": schema.get("description") or ""}
    if not plain:
        return described
    kind = described["type"] = _one_type(schema)
    inside = {"items": schema.get("items")} if kind == "array" else {}
    if kind == "object":
        known = schema.get("properties") or {}
        inside = {"additionalProperties": schema.get("additionalProperties")}
        described["properties"] = {name: _with_words(item, plain) for name, item in known.items()}
    return described | {name: _with_words(item, plain) for name, item in inside.items()}


def _one_type(schema: Mapping[str, Any]) -> str:
    """Return the first JSON type other than null that a schema names or implies, or "string" if there is none."""
    named = schema.get("type")
    for kind in named if isinstance(named, list) else [named]:
        if isinstance(kind, str) and kind != "null":
            return kind
    if values := [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else [])]:
        return json_type(values[0])
    branches = [branch for word in ("anyOf", "oneOf", "allOf") for branch in schema.get(word) or ()]
    first = next((b for b in branches if isinstance(b, Mapping) and b.get("type") != "null"), None)
    return _one_type(first) if first else "object" if {"properties", "$ref"} & schema.keys() else "string"
