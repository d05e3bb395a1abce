"""Converts the tools of all APIs to function tools, and the calls of custom tools to text or a JSON argument.

Rule: a custom tool is a function with one text argument, `input`. A tool that only its vendor's servers can run, such as web search or a
code interpreter, is omitted and listed as ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, model_validator

from unrender.gateway.failure import Failure, invalid
from unrender.gateway.schema import JsonObject, Name, wrong_field

_OPENING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_HALF_OPENING = re.compile(r'\s*+(?:\{\s*+(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*+(?::\s*+)?)?)?)?)?)?)?)?)?')
_WHOLE = re.compile(
    r'(?>(?:[^"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\]|\\[^u])))*)"
)
"""Matches the part of a JSON string that can be decoded: up to its end, an incomplete escape, or half a surrogate pair."""


@dataclass(slots=True)
class Tools:
    """The tools of a request: functions, names of custom tools, and ignored tools."""

    functions: list[Mapping[str, Any]] = field(default_factory=list)
    custom: set[str] = field(default_factory=set)
    unheeded: list[str] = field(default_factory=list)


class _Grammar(JsonObject):
    syntax: Any = None
    definition: str | None = None


class _Format(_Grammar):
    grammar: _Grammar | None = None
    """In Chat Completions, `syntax` and `definition` are inside this object. In Responses, they are next to `type`."""


class _Custom(JsonObject):
    name: Name
    description: str | None = None
    format: _Format | None = None


def read_api_tools(tools: Sequence[Any] | None) -> Tools:
    """Convert the tools of a request. Raises `Failure` for a tool that is not an object, or whose `type` is not a string."""
    found = Tools()
    for i, tool in enumerate(tools or ()):
        where = f"tools[{i}]"
        if not isinstance(tool, Mapping):
            raise invalid(f"{where}: expected an object, found {type(tool).__name__}", param=where)
        kind = tool.get("type")
        if not isinstance(kind, str | None):
            raise wrong_field(f"{where}.type", "a tool type", kind)
        if kind == "custom" and "input_schema" not in tool:
            custom = _Custom.read(tool.get("custom", tool), where)
            function, unheeded = _of_custom(custom, where)
            found.functions.append({"type": "function", "function": function})
            found.custom.add(custom.name)
            found.unheeded += unheeded
        # `ChatTemplate.prepare` supports Anthropic's tools, but not their field `type`, so omit it.
        elif "input_schema" in tool:
            check_strict(tool, where, "input_schema")
            found.functions.append({name: tool[name] for name in tool if name not in ("type", "cache_control")})
        elif kind in (None, "function"):
            nested = isinstance(tool.get("function"), Mapping)  # Chat Completions nests the function; Responses doesn't
            own, place = (tool["function"], f"{where}.function") if nested else (tool, where)
            check_strict(own, place, "parameters", code="invalid_function_parameters")
            found.functions.append(tool)
        else:
            found.unheeded.append(f"{where} ({kind!s:.60})")
    return found


def _of_custom(tool: _Custom, where: str) -> tuple[dict[str, Any], list[str]]:
    text: dict[str, Any] = {"type": "string"}
    description, unheeded = tool.description or "", []
    form = (tool.format and tool.format.grammar) or tool.format
    if form is not None and form.definition and form.syntax == "regex":
        text["pattern"] = f"^(?:{form.definition})$"
    elif form is not None and form.definition:
        description = f"{description}\n\nThe input follows this grammar:\n{form.definition}".strip()
        unheeded.append(f"{where}.format (described in the prompt, not enforced)")
    # A grammar for free text couldn't find the end of the call. In JSON, a quote marks the end.
    parameters = {"type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False}
    return {"name": tool.name, "description": description, "parameters": parameters}, unheeded


_Type = Literal["object", "array", "string", "number", "integer", "boolean", "null"]


class _Strict(JsonObject):
    """A schema marked as strict, with the checks that vendors make: every object is closed."""

    type: _Type | list[_Type] | None = None
    properties: dict[str, _Strict] | None = None
    required: list[str] | None = None
    additional: Any = Field(None, alias="additionalProperties")
    items: _Strict | None = None
    defs: dict[str, _Strict] | None = Field(None, alias="$defs")
    any_of: list[_Strict] | None = Field(None, alias="anyOf")
    all_of: list[_Strict] | None = Field(None, alias="allOf")

    @model_validator(mode="after")
    def closed(self, info: ValidationInfo) -> Self:
        """Check that the schema is strict, and return it. Raises `ValueError` for an object that allows additional properties or has
        optional ones.
        """
        if ("object" in (self.type or ()) or self.properties) and self.additional is not False:
            raise ValueError(f"expected additionalProperties: false in a strict schema, found {self.additional!r:.80}")
        missing = set(self.properties or ()) - set(self.required or ())
        if missing and (info.context or {})["whole"]:
            raise ValueError(
                f"expected all properties to be required in a strict schema, found optional {min(missing)!r:.80}"
            )
        return self


def check_strict(form: Any, where: str, name: str = "schema", *, param: str = "", code: str | None = None) -> None:
    """Raise `Failure` if a tool or response format is marked as strict, but its schema is invalid or not strict.

    `name` is the field with the schema. With `input_schema`, properties may be optional.
    """
    if not isinstance(form, Mapping) or form.get("strict") is not True or form.get(name) is None:
        return
    place = f"{where}.{name}"
    try:
        schema = _Strict.read(form[name], place, whole=name != "input_schema")
        if schema.type != "object":
            raise wrong_field(f"{place}.type", "'object'", schema.type)
    except Failure as failure:
        raise invalid(failure.message, param=param or place, code=code) from None


def plain_choice(choice: Any) -> Any:
    """Return a tool choice that names custom tools as functions.

    >>> plain_choice({"type": "custom", "custom": {"name": "run"}})
    {'type': 'function', 'function': {'name': 'run'}}
    """
    if not isinstance(choice, Mapping):
        return choice
    # Look for the list of tools in the places that the two APIs use: Chat Completions has `{"allowed_tools": {"tools": […]}}`, Responses
    # has `{"type": "allowed_tools", "tools": […]}`.
    for inner in (choice.get("allowed_tools"), choice):
        if isinstance(inner, Mapping) and isinstance(inner.get("tools"), list):
            return {"type": choice.get("type"), **inner, "tools": [plain_choice(tool) for tool in inner["tools"]]}
    if choice.get("type") != "custom":
        return choice
    return {"type": "function", "function": choice.get("custom", {"name": choice.get("name")})}


def custom_arguments(text: str) -> str:
    """Return the JSON arguments of a custom tool call for its text; the inverse of `InputText`."""
    return json.dumps({"input": text}, ensure_ascii=False)


class InputText:
    r"""Extracts the text of a custom tool call from its streamed JSON arguments.

    >>> stream = InputText()
    >>> stream.feed('{"input": "a\\'), stream.feed('nb"'), stream.feed("}")
    ('a', '\nb', '')
    """

    __slots__ = ("_done", "_held", "_open", "_other")

    def __init__(self) -> None:
        self._held = ""
        self._open = self._done = self._other = False

    def feed(self, text: str) -> str:
        """Feed more JSON and return the text that is final."""
        if self._done:
            return ""
        # `{"cmd": "ls"}` doesn't match the tool's schema, but it is the model's output, so it is returned unchanged.
        if self._other:
            return text
        self._held += text
        # Until `{"input": "` is complete, the text may be other JSON, which is returned unchanged.
        if not self._open:
            found = _OPENING.match(self._held)
            if found is None:
                self._other = not _HALF_OPENING.fullmatch(self._held)
                return self._held if self._other else ""
            self._open, self._held = True, self._held[found.end() :]
        return self._decoded()

    def _decoded(self) -> str:
        found = _WHOLE.match(self._held)
        # In `a\\`, only "a" is final: the backslash waits for the escaped character, and half of "😀" for its other half.
        ready = found.group() if found else ""
        self._held = self._held[len(ready) :]
        self._done = self._held.startswith('"')
        # A model may write a raw newline where JSON requires `\\n`; `strict=False` accepts both.
        try:
            return str(json.loads(f'"{ready}"', strict=False))
        except ValueError:
            return ready
