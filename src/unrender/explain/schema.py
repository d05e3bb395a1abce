"""Compares arguments with a tool's schema: names, types, choices and bounds, at every depth.

Rules: the schema means what it means to grammars and parsers. What it admits is not complained about, except for names
that it does not know; what of it is not understood counts as kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from unrender.errors import GrammarError
from unrender.limits import MAX_COMPLAINT_DEPTH, MAX_COMPLAINTS
from unrender.messages.wire import Tool
from unrender.schema import shapes
from unrender.schema.admission import Definitions, admits, admits_text, kind_of, kinds_of, options_of
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Object, Shape


def complaints(arguments: Any, tool: Tool) -> Iterator[str]:
    """Yield a sentence for each value that is missing, unknown, of the wrong type, or otherwise against the schema."""
    if not isinstance(arguments, Mapping):
        return
    try:
        reading = read_schema(tool.parameters)
    except GrammarError:
        return
    checker = _Checker(reading.definitions)
    yield from islice(checker.value(reading.shape, arguments, ()), MAX_COMPLAINTS)


Path = tuple[str | int, ...]


def _named(path: Path) -> str:
    """Return the words for a value, e.g. `argument 'days[0].from'`."""
    text = str(path[0])
    for step in path[1:]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return f"argument {text!r}"


@dataclass(frozen=True, slots=True)
class _Checker:
    definitions: Definitions

    def value(self, shape: Shape, value: Any, path: Path) -> Iterator[str]:
        options = list(options_of(shape, self.definitions))
        fitting = [option for option in options if admits(option, value, self.definitions)]
        if fitting:
            yield from self.parts(fitting[0], value, path)
            return
        # `{"days": "7"}` against an integer or null: no option is an object, so the value itself is complained of. Where exactly
        # one option is an object as the value is, its parts say better what is wrong.
        near = [option for option in options if _is_kind(option, value, self.definitions)]
        if len(near) == 1 and isinstance(near[0], Object | shapes.Array):
            yield from self.parts(near[0], value, path)
        elif path:
            yield f"{_named(path)} should be {_wanted(near or options, self.definitions)}, found {value!r:.60}"

    def parts(self, shape: Shape, value: Any, path: Path) -> Iterator[str]:
        if len(path) < MAX_COMPLAINT_DEPTH:
            if isinstance(shape, Object) and isinstance(value, Mapping):
                yield from self.object(shape, value, path)
            elif isinstance(shape, shapes.Array) and isinstance(value, list):
                yield from self.array(shape, value, path)

    def array(self, shape: shapes.Array, value: list[Any], path: Path) -> Iterator[str]:
        most = len(value) if shape.maximum is None else shape.maximum
        if not shape.minimum <= len(value) <= most:
            yield f"{_named(path)} should have {_count(shape.minimum, shape.maximum)} items, found {len(value)}"
        for at, item in enumerate(value):
            expected = shape.prefix[at] if at < len(shape.prefix) else shape.items
            yield from self.value(expected, item, (*path, at))

    def object(self, shape: Object, value: Mapping[str, Any], path: Path) -> Iterator[str]:
        missing = (item.name for item in shape.properties if item.required and item.name not in value)
        for name in missing:
            yield f"the required {f'property {name!r} of {_named(path)}' if path else f'argument {name!r}'} is missing"
        declared = {item.name: item.shape for item in shape.properties}
        for name, item in value.items():
            expected = [declared[name]] if name in declared else _extra(shape, name)
            if expected:
                yield from self.value(shapes.union(expected), item, (*path, name))
            elif shape.properties:
                called = f"{_named(path)} has no property" if path else "no argument is called"
                yield f"{called} {name!r}; known are {sorted(declared)}"


def _extra(shape: Object, name: str) -> list[Shape]:
    return [value for keys, value in shape.extra if admits_text(keys, name)]


def _is_kind(shape: Shape, value: Any, definitions: Definitions) -> bool:
    kinds = kinds_of(shape, definitions)
    return kind_of(value) in kinds or (kind_of(value) == "integer" and "number" in kinds)


def _wanted(options: list[Shape], definitions: Definitions) -> str:
    """Return what was expected, in words."""
    if options and all(isinstance(option, shapes.Constant) for option in options):
        values = [option.value for option in options if isinstance(option, shapes.Constant)]
        return f"one of {values!r:.80}"
    words = [_RULES[type(option)](option) if type(option) in _RULES else "" for option in options]
    kinds = [" or ".join(sorted(kinds_of(option, definitions))) for option in options]
    said = [f"{kind} {rule}".strip() for kind, rule in zip(kinds, words, strict=True)]
    return " or ".join(dict.fromkeys(said)) or "left out"


def _count(low: int, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if not low else f"{low}" if low == high else f"{low} to {high}"


def _text_rule(shape: Any) -> str:
    if shape.pattern is not None:
        return "of another form (pattern or format)"
    if shape.minimum or shape.maximum is not None:
        return f"of {_count(shape.minimum, shape.maximum)} characters"
    return f"but none of {sorted(shape.excluded)!r:.80}" if shape.excluded else ""


def _number_rule(shape: Any) -> str:
    bounds = [
        (shape.minimum, "above" if getattr(shape, "exclusive_minimum", False) else "from"),
        (shape.maximum, "below" if getattr(shape, "exclusive_maximum", False) else "up to"),
        (getattr(shape, "multiple", 1) if getattr(shape, "multiple", 1) > 1 else None, "in steps of"),
        (getattr(shape, "places", None), "with digits after the point up to"),
    ]
    return " ".join(f"{word} {bound}" for bound, word in bounds if bound is not None)


_RULES: Mapping[type[Shape], Callable[[Any], str]] = MappingProxyType(
    {shapes.Text: _text_rule, shapes.Integer: _number_rule, shapes.Number: _number_rule}
)
