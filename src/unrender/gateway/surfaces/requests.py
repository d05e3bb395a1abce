"""Describes what the requests of several APIs have in common, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from unrender.gateway.schema import Object, Whole
from unrender.limits import MOST_CHOICES, MOST_MESSAGES, MOST_STOPS, MOST_TOKENS

Limit = Annotated[int, Field(ge=1, le=MOST_TOKENS), Whole]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63), Whole]
Choices = Annotated[int, Field(ge=1, le=MOST_CHOICES), Whole]
Stop = str | Annotated[list[str], Field(max_length=MOST_STOPS)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Many = Field(max_length=MOST_MESSAGES)
Penalty = Annotated[float, Field(ge=-2, le=2)]
ToolChoice = Annotated[
    Any, WithJsonSchema({"anyOf": [{"enum": ["none", "auto", "required", None]}, {"type": "object"}]})
]
ResponseFormat = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": ["object", "null"],
            "required": ["type"],
            "properties": {"type": {"enum": ["text", "json_object", "json_schema"]}},
        }
    ),
]
_PARAMETERS = {
    "type": "object",
    "properties": {
        "type": {"const": "object"},
        "properties": {"type": "object", "additionalProperties": {"type": "object"}},
    },
}
_FUNCTION = {"name": {"type": "string", "minLength": 1}, "description": {"type": "string"}}
FUNCTION_TOOL = {
    "type": "object",
    "required": ["type", "function"],
    "properties": {
        "type": {"const": "function"},
        "function": {"type": "object", "required": ["name"], "properties": {**_FUNCTION, "parameters": _PARAMETERS}},
    },
}
BLOCK_TOOL = {
    "type": "object",
    "required": ["name", "input_schema"],
    "properties": {**_FUNCTION, "input_schema": _PARAMETERS},
}
MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "user", "assistant", "tool"]},
        "content": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "object"}}]},
    },
}
"""The forms of what is handed on as it is: the template's own reader says what is wrong with it."""


def with_content(message: Any) -> Any:
    """Return a message. Raises `ValueError` for content that is an object or a number: templates would print it somehow."""
    content = message.get("content") if isinstance(message, dict) else None
    if content is not None and not isinstance(content, str | list):
        raise ValueError(f"content: expected text, null or a list of parts, found {type(content).__name__}")
    return message


class Sampling(Object):
    """What every request may say."""

    model: str | None = None
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=10**9), Whole] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Field(ge=0, le=100)] | None = None

    @property
    def sampling(self) -> dict[str, float]:
        """What steers sampling, by OpenAI's and the engines' common names."""
        values = {name: getattr(self, name) for name in STEERS}
        return {name: float(value) for name, value in values.items() if value is not None}


STEERS = tuple(name for name in Sampling.model_fields if name not in ("model", "stream"))


class StreamOptions(Object):
    """Options of a stream."""

    include_usage: bool | None = None
