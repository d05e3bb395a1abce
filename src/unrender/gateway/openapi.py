"""Describes the paths of the gateway as an OpenAPI document.

Rules: requests are described by what reads them (`schema.py`); a table here has only what a reader hands on unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unrender.gateway.schema import Schema, schema_of
from unrender.version import __version__

VERSION = "3.1.0"

_OBJECT: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_PARTS: Schema = {"type": "array", "items": _OBJECT}
_CONTENT: Schema = {"anyOf": [{"type": ["string", "null"]}, _PARTS]}
_NAME: Schema = {"type": "string", "minLength": 1}
_PARAMETERS: Schema = {"type": "object", "properties": {"type": {"const": "object"}, "properties": {"type": "object", "additionalProperties": _OBJECT}}}  # fmt: skip
FORMS: Mapping[str, Mapping[str, Schema]] = {
    "chat": {
        "messages[]": {
            "type": "object",
            "required": ["role"],
            "properties": {"role": {"enum": ["system", "user", "assistant", "tool"]}, "content": _CONTENT},
        },
        "tools[]": {
            "type": "object",
            "required": ["type", "function"],
            "properties": {
                "type": {"const": "function"},
                "function": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": _NAME, "description": _TEXT, "parameters": _PARAMETERS},
                },
            },
        },
        "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required", None]}, _OBJECT]},
        "response_format": {"type": ["object", "null"], "required": ["type"], "properties": {"type": {"enum": ["text", "json_object", "json_schema"]}}},
        "chat_template_kwargs": {"type": ["object", "null"]},
    },
    "completions": {"prompt": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 1}]}},
    "responses": {
        "input": {"anyOf": [_TEXT, {"type": "array", "items": _OBJECT}]},
        "tools[]": _OBJECT,  # those of other kinds are left out, and named
        "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required", None]}, _OBJECT]},
        "text.format": {"type": ["object", "null"], "required": ["type"], "properties": {"type": {"enum": ["text", "json_object", "json_schema"]}}},
        "chat_template_kwargs": {"type": ["object", "null"]},
    },
    "messages": {
        "messages[]": {
            "type": "object",
            "required": ["role", "content"],
            "properties": {
                "role": {"enum": ["user", "assistant", "system"]},
                "content": {"anyOf": [_TEXT, _PARTS]},
            },
        },
        "tools[]": {
            "type": "object",
            "required": ["name", "input_schema"],
            "properties": {"name": _NAME, "description": _TEXT, "input_schema": _PARAMETERS},
        },
        "system": {"anyOf": [{"type": ["string", "null"]}, _PARTS]},
        "chat_template_kwargs": {"type": ["object", "null"]},
    },
}  # fmt: skip
"""API → the forms of what it hands on as it is, by its place in a request."""


def _with(required: Sequence[str], **properties: Schema) -> Schema:
    return {"type": "object", "required": [*required], "properties": properties}


def _whole(kind: Schema, *required: str, **properties: Schema) -> Schema:
    """Return the schema of a whole answer."""
    return _with([*required, *properties], **properties, warnings={"type": "array", "items": _TEXT}) | kind


ANSWERS: Mapping[str, Schema] = {
    "chat": _whole({}, "model", "usage", id=_TEXT, object={"const": "chat.completion"}, created=_INTEGER, choices=_PARTS),
    "completions": _whole({}, "model", "usage", id=_TEXT, object={"const": "text_completion"}, created=_INTEGER, choices=_PARTS),
    "responses": _whole({}, "model", "usage", id=_TEXT, object={"const": "response"}, created_at=_INTEGER, output=_PARTS),
    "messages": _whole({}, "model", "usage", id=_TEXT, type={"const": "message"}, role={"const": "assistant"}, content=_PARTS),
}  # fmt: skip
"""API → a whole answer."""
ERRORS: Mapping[str, Schema] = {
    "openai": _with(["error"], error=_with(["message", "type"], message=_TEXT, type=_TEXT)),
    "anthropic": _with(["type", "error"], type={"const": "error"}, error=_with(["message", "type"], message=_TEXT, type=_TEXT)),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One path with one method."""

    path: str
    endpoint: Any
    summary: str
    method: str = "GET"
    body: Schema | None = None
    """What is sent; None where nothing is."""
    answer: Schema = field(default_factory=lambda: {"type": "object"})
    media: str = "application/json"
    """What the answer is written in."""
    streams: bool = False
    """The answer may come as server-sent events."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    open: bool = False
    """No key is needed."""
    errors: str = "openai"
    """In whose shape errors come."""

    def described(self) -> Schema:
        """Return the OpenAPI operation."""
        names = [part[1:-1].partition(":")[0] for part in self.path.split("/") if part.startswith("{")]
        parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
        parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in self.query.items()]
        content: Schema = {self.media: {"schema": self.answer}}
        if self.streams:
            content["text/event-stream"] = {"schema": {"description": "Server-sent events."}}
        failed = {"description": "Failed.", "content": {"application/json": {"schema": ERRORS[self.errors]}}}
        operation: Schema = {
            "summary": self.summary,
            "responses": {"200": {"description": "Done.", "content": content}},
        }
        operation["responses"] |= {"4XX": failed, "5XX": failed}
        if parameters:
            operation["parameters"] = parameters
        if self.body is not None:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": self.body}}}
        if self.open:
            operation["security"] = []
        return operation


def request_of(
    api: str, read: Callable[[Any], object], *required: str, given: Mapping[str, Any] | None = None, **more: Schema
) -> Schema:
    """Return the schema of an API's requests, as `read` reads them."""
    schema = schema_of(read, FORMS[api], given)
    return {**schema, "required": [*required, *more], "properties": {**schema["properties"], **more}}


def document(paths: Sequence[Path]) -> Schema:
    """Return the OpenAPI document."""
    found: dict[str, Schema] = {}
    for path in paths:
        found.setdefault(path.path.replace(":path}", "}"), {})[path.method.lower()] = path.described()
    keys = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    return {
        "openapi": VERSION,
        "info": {"title": "unrender", "version": __version__},
        "paths": found,
        "components": {"securitySchemes": keys},
        "security": [{}, {"bearer": []}, {"key": []}],
    }
