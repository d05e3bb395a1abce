"""One-line notations for shapes and grammar nodes, used in expected values of tests.

A shape: `integer 1..3`, `"a" | null`, `{a: string, b?: any, (string): integer}`, `[null, string*]{1,3}`. A node: `'x'`
is a literal, `[a-z]+` a class, `text[</a>]` free text up to a stop, `[x]` an optional part, `(x){1,3 by ','}` a
repetition with a separator, `$rule` a reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from unrender import nodes
from unrender.grammar import Grammar, Node
from unrender.nodes.patterns import write_pattern
from unrender.schema import shapes
from unrender.schema.shapes import Shape

Bound = object


def shape_line(shape: Shape) -> str:  # noqa: C901 -- a table, by kind of shape
    """Return a shape on one line."""
    match shape:
        case shapes.Anything():
            return "any"
        case shapes.Nothing():
            return "never"
        case shapes.Null():
            return "null"
        case shapes.Boolean():
            return "boolean"
        case shapes.Constant(text):
            return text
        case shapes.Reference(name):
            return f"${name}"
        case shapes.Union(options):
            return " | ".join(map(_within_choice, options))
        case shapes.Integer():
            of = f" of {shape.multiple}" if shape.multiple != 1 else ""
            return f"integer{_range(shape.minimum, shape.maximum)}{of}"
        case shapes.Number():
            return _number(shape)
        case shapes.Text():
            return _text(shape)
        case shapes.Array():
            return _array(shape)
        case shapes.Object():
            return _object(shape)


def _within_choice(shape: Shape) -> str:
    return f"({shape_line(shape)})" if isinstance(shape, shapes.Union) else shape_line(shape)


def _range(low: Bound, high: Bound) -> str:
    return "" if low is high is None else f" {'' if low is None else low}..{'' if high is None else high}"


def _number(shape: shapes.Number) -> str:
    low = f">{shape.minimum}" if shape.exclusive_minimum else shape.minimum
    high = f"<{shape.maximum}" if shape.exclusive_maximum else shape.maximum
    places = (
        "" if shape.places is None else f" to {shape.places} places" if shape.parts is None else f" of 1/{shape.parts}"
    )
    return f"{'fraction' if shape.fractional else 'number'}{_range(low, high)}{places}"


def _text(shape: shapes.Text) -> str:
    pattern = "" if shape.pattern is None else f" /{write_pattern(shape.pattern)}/"
    excluded = f" but {' '.join(map(json.dumps, sorted(shape.excluded)))}" if shape.excluded else ""
    return f"string{_size(shape.minimum, shape.maximum)}{pattern}{excluded}"


def _size(low: int, high: int | None) -> str:
    return "" if (low, high) == (0, None) else f"{{{low},{'' if high is None else high}}}"


def _array(shape: shapes.Array) -> str:
    prefix = list(map(shape_line, shape.prefix))
    items = [] if isinstance(shape.items, shapes.Nothing) else [f"{_within_choice(shape.items)}*"]
    held = ""
    if found := shape.contained:
        size = _range(found.minimum, found.maximum)
        held = f" with{size} {_within_choice(found.wanted)} among {_within_choice(found.others)}"
    return f"[{', '.join([*prefix, *items])}]{_size(shape.minimum, shape.maximum)}{held}"


def _object(shape: shapes.Object) -> str:
    own = [f"{item.name}{'' if item.required else '?'}: {shape_line(item.shape)}" for item in shape.properties]
    extra = [f"({shape_line(keys)}): {shape_line(value)}" for keys, value in shape.extra]
    others = [] if isinstance(shape.others, shapes.Nothing) else [f"...{shape_line(shape.others)}"]
    return f"{{{', '.join([*own, *extra, *others])}}}{_size(shape.minimum, shape.maximum)}"


def node_line(node: Node) -> str:
    """Return a node on one line."""
    match node:
        case nodes.Literal(text):
            return repr(text)
        case nodes.Chars():
            return write_pattern(node)
        case nodes.Until(stops):
            return f"text[{' '.join(stops)}]"
        case nodes.Ref(rule):
            return f"${rule}"
        case nodes.Sequence(parts):
            return " ".join(
                f"({node_line(part)})" if isinstance(part, nodes.Choice) else node_line(part) for part in parts
            )
        case nodes.Choice(options):
            return " | ".join(map(node_line, options)) if options else "never"
        case nodes.Optional(inner):
            return f"[{node_line(inner)}]"
        case nodes.Repeat(inner, low, high, separator):
            by = "" if separator is None else f" by {node_line(separator)}"
            return f"({node_line(inner)}){{{low},{'' if high is None else high}{by}}}"
        case nodes.Tag(role, inner):
            return f"{role.value}:({node_line(inner)})"
        case nodes.JsonValue(schema) | nodes.PythonValue(schema):
            return f"{'json' if isinstance(node, nodes.JsonValue) else 'python'}<{json.dumps(schema)}>"
    return repr(node)


def grammar_lines(grammar: Grammar, *, without: Callable[[str], bool] = lambda _: False) -> dict[str, str]:
    """Return a grammar's root, under "", and its rules by name, except those in `without`."""
    rules = {name: node_line(node) for name, node in grammar.rules.items() if not without(name)}
    return {"": node_line(grammar.root), **rules}


def generates(node: Node, text: str) -> bool:
    """Return whether a node without references generates exactly a text, using a regular expression."""
    return re.fullmatch(write_pattern(node), text) is not None
