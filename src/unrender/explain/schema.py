"""Arguments and a tool into what does not fit its schema, as far as a person would look: names, types, choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from unrender.messages import Tool

_CHECKS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "string": lambda value: isinstance(value, str),
        "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or _is_round(value)),
        "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": lambda value: isinstance(value, bool),
        "null": lambda value: value is None,
        "array": lambda value: isinstance(value, list),
        "object": lambda value: isinstance(value, dict),
    }
)


def complaints(arguments: Any, tool: Tool) -> Iterator[str]:
    """Yield a sentence for each argument that is missing, unknown, of another type, or none of the choices.

    Looks at the schema's first level only; what it does not understand it does not complain about.
    """
    schema = tool.parameters
    if isinstance(schema, bool) or not isinstance(arguments, Mapping):
        return
    properties = schema.get("properties", {})
    yield from (
        f"the required argument {name!r} is missing" for name in schema.get("required", ()) if name not in arguments
    )
    for name, value in arguments.items():
        if name not in properties:
            if properties and not schema.get("additionalProperties"):
                yield f"no argument is called {name!r}; known are {sorted(properties)}"
        else:
            yield from _mismatches(name, value, properties[name])


def _mismatches(name: str, value: Any, schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    wanted = schema.get("type", ())
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    if kinds and not any(_CHECKS[kind](value) for kind in kinds if kind in _CHECKS) and set(kinds) <= set(_CHECKS):
        yield f"argument {name!r} should be {' or '.join(kinds)}, found {value!r:.60}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"argument {name!r} should be one of {list(schema['enum'])!r:.80}, found {value!r:.60}"


def _is_round(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()
