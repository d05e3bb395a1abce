"""Describes the paths of the gateway as an OpenAPI document.

Rules: requests are described by the models that read them, so the document cannot say anything but what is read. Of an answer
it says what every client may rely on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from unrender import __version__
from unrender.gateway.schema import Object

VERSION = "3.1.0"
Schema = dict[str, Any]


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


class _Answer(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    id: str
    model: str
    usage: dict[str, Any] | None
    warnings: list[str] = []


def _answer(name: str, **fields: Any) -> type[BaseModel]:
    """Return the model of an API's whole answer."""
    definitions: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=_Answer, **definitions)


_PARTS = list[dict[str, Any]]
ChatAnswer: type[BaseModel] = _answer("ChatAnswer", object=Literal["chat.completion"], created=int, choices=_PARTS)
CompletionsAnswer: type[BaseModel] = _answer(
    "CompletionsAnswer", object=Literal["text_completion"], created=int, choices=_PARTS
)
ResponsesAnswer: type[BaseModel] = _answer("ResponsesAnswer", object=Literal["response"], created_at=int, output=_PARTS)
MessagesAnswer: type[BaseModel] = _answer(
    "MessagesAnswer", type=Literal["message"], role=Literal["assistant"], content=_PARTS
)


class _Words(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    message: str
    type: str


class OpenAIError(BaseModel):
    """An error, as OpenAI writes it."""

    error: _Words


class AnthropicError(BaseModel):
    """An error, as Anthropic writes it."""

    type: Literal["error"]
    error: _Words


class Page(BaseModel):
    """A list, or a page of one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    data: list[Any]


@dataclass(frozen=True, slots=True)
class Path:
    """One path with one method."""

    path: str
    endpoint: Any
    summary: str
    _: KW_ONLY
    method: str = "GET"
    body: type[Object] | None = None
    """Model of the request body; None without one."""
    answer: type[BaseModel] | None = None
    """Model of the answer; None for any object."""
    media: str = "application/json"
    """Media type of the answer."""
    streams: bool = False
    """The answer may come as server-sent events."""
    query: Mapping[str, Schema] = field(default_factory=dict)
    open: bool = False
    """No key is needed."""

    @property
    def error(self) -> type[BaseModel]:
        """The shape of its errors."""
        return AnthropicError if "/messages" in self.path else OpenAIError

    def described(self, refs: Mapping[type[BaseModel], Schema]) -> Schema:
        """Return the OpenAPI operation; `refs` are the schemas of models."""
        plain: Schema = {"type": "object" if self.media == "application/json" else "string"}
        names = [part[1:-1].partition(":")[0] for part in self.path.split("/") if part.startswith("{")]
        parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
        parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in self.query.items()]
        content: Schema = {self.media: {"schema": refs[self.answer] if self.answer else plain}}
        if self.streams:
            content["text/event-stream"] = {"schema": {"description": "Server-sent events."}}
        failed = {"description": "Failed.", "content": {"application/json": {"schema": refs[self.error]}}}
        done = {"description": "Done.", "content": content}
        operation: Schema = {"summary": self.summary, "responses": {"200": done, "4XX": failed, "5XX": failed}}
        if parameters:
            operation["parameters"] = parameters
        if self.body is not None:
            operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": refs[self.body]}}}
        if self.open:
            operation["security"] = []
        return operation


def document(paths: Sequence[Path]) -> Schema:
    """Return the OpenAPI document."""
    models = {model for path in paths for model in (path.body, path.answer, path.error) if model is not None}
    found, schemas = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Untitled,
    )
    refs = {model: found[model, "validation"] for model in models}
    described: dict[str, Schema] = {}
    for path in paths:
        described.setdefault(path.path.replace(":path}", "}"), {})[path.method.lower()] = path.described(refs)
    keys = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    return {
        "openapi": VERSION,
        "info": {"title": "unrender", "version": __version__},
        "paths": described,
        "components": {"securitySchemes": keys, "schemas": schemas.get("$defs", {})},
        "security": [{}, {"bearer": []}, {"key": []}],
    }
