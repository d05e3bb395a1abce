"""Validates external JSON with pydantic models. Errors name the invalid field, and ignored fields are listed.

Null counts as absent in every field, as OpenAI's clients expect.

>>> class Pair(JsonObject):
...     n: Annotated[int, Field(ge=1, le=16), Whole] | None = None
>>> list(Pair.read({"n": 2, "top_k": 5, "user": None}).unheeded())
['top_k']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from unrender.gateway.failure import Failure, invalid
from unrender.limits import MAX_COUNT, MAX_LISTED, MAX_MESSAGES, MAX_SHOWN_ITEMS, MAX_SMALL
from unrender.signatures import nearest

_NOTHING = object()
_SIMILAR = 0.85
"""Minimum similarity of an unknown field's name to a known one that is suggested, between 0 and 1."""
Name = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0.01, le=1e9)]
"""Duration in seconds."""
Whole: BeforeValidator = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
"""Accepts `1.0` as an integer, like JSON Schema."""
Limit = Annotated[int, Field(ge=1, le=MAX_COUNT), Whole]
"""Number of tokens."""
StopField = str | Annotated[list[str], Field(max_length=MAX_SMALL)]
TopLogprobs = Annotated[int, Field(ge=0, le=MAX_SHOWN_ITEMS), Whole]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Many: Any = Field(max_length=MAX_MESSAGES)
"""Field for lists of messages, items and tools, which limits their length."""


class JsonObject(BaseModel):
    """A JSON object. Unknown fields are kept, so that `unheeded` can list them."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="allow", frozen=True)
    neutral: ClassVar[Mapping[str, Any]] = {}
    """Values of ignored fields, by name, that need no warning because they have no effect."""

    @classmethod
    def read(cls, value: Any, where: str = "", **context: Any) -> Self:
        """Validate the object at the path `where`. Raises `Failure` with the name of the invalid field."""
        try:
            return cls.model_validate(value, context=context)
        except ValidationError as error:
            errors = error.errors(include_url=False)[:MAX_LISTED]
            found = [(_mistake(cls, one, value, where), not one["type"].endswith("_type")) for one in errors]
            # For `content: [{"text": 5}]`, pydantic reports that `content` isn't a string, and that `content[0].text` isn't one. Raise the
            # more helpful second error: the one with the deepest path is about the intended type. For a list of too many stop strings, it
            # reports that `stop` isn't a string, and that the list is too long. Here, too, the second error is about the intended type.
            raise max(found, key=lambda one: (_depth(one[0]), one[1]))[0] from None

    def unheeded(self, where: str = "") -> Iterator[str]:
        """Yield the paths of ignored fields in this object and in nested ones."""
        for name in type(self).model_fields:
            if isinstance(inner := getattr(self, name), JsonObject):
                yield from inner.unheeded(f"{where}{name}.")
        for name, value in (self.model_extra or {}).items():
            if value is not None and self.neutral.get(name, _NOTHING) != value:
                near = nearest(name, type(self).model_fields, cutoff=_SIMILAR)
                yield f"{where}{name}{f' (did you mean {near}?)' if near else ''}"


class Settings(JsonObject):
    """Base class of the operator's settings. Unknown fields are errors."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def wrong_field(where: str, expected: str, found: Any, *, param: str | None = None) -> Failure:
    """Return the failure for a field with an invalid value. `param` names a different field to report."""
    return invalid(f"{where}: expected {expected}, found {found!r:.80}", param=param or where)


def texts(value: str | list[str] | None) -> tuple[str, ...]:
    """Return the non-empty strings of a field that is a single string or a list."""
    return tuple(filter(None, [value] if isinstance(value, str) else value or ()))


def _depth(failure: Failure) -> int:
    return (failure.param or "").count(".") + (failure.param or "").count("[")


_WORDS = {"missing": "a value", "model_type": "an object", "none_required": "none"}


def _mistake(cls: type[JsonObject], error: ErrorDetails, value: Any, where: str) -> Failure:
    """Return the failure for a pydantic error. The path of the failure omits steps that pydantic adds for alternative types."""
    place, kind, steps = where, error["type"], error["loc"]
    # A pydantic path such as ("messages", 0, "content", "list[Block]", 2, "text") contains names of types. Omit steps that don't exist in
    # the value, so that the path becomes `messages[0].content[2].text`.
    for step in steps:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            place, value = f"{place}[{step}]", value[step]
        elif isinstance(value, Mapping) and (step in value or (kind == "missing" and step == steps[-1])):
            place, value = f"{place}.{step}" if place else str(step), value.get(step)
    if kind == "extra_forbidden":
        near = nearest(str(steps[-1]), cls.model_fields)
        hint = f"; did you mean {f'{where}.{near}' if where else near!r}?" if near else ""
        return invalid(f"{place}: not a setting{hint}", param=place)
    field = cls.model_fields.get(str(steps[0])) if steps else None
    if kind in ("none_required", "literal_error") and field and field.description:
        return invalid(f"{place}: {field.description}", param=place)
    if kind == "value_error":
        return invalid(f"{place}: {error['ctx']['error']}", param=place)
    said = error["msg"].replace("Input should be ", "a number " if "_than" in kind else "")
    said = said.replace("List should have ", "").replace(" after validation", "")
    return wrong_field(place or "body", _WORDS.get(kind, said), value)
