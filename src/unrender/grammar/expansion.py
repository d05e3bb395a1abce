"""Expands a grammar into plain nodes: one call per tool, and JSON values according to their schemas.

Rules: the size of the result is linear in the number of tools, and equal rules are shared. If a schema can't be fully enforced, only the
calls of its own tool are less restricted, and the keywords are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from unrender import nodes
from unrender.answer import Calls
from unrender.errors import GrammarError
from unrender.grammar.call_rules import CallWriter
from unrender.grammar.spelling import Speller
from unrender.json_values import JsonSchema
from unrender.limits import MAX_REPETITIONS, STANDARD, Limits
from unrender.messages import Tool
from unrender.nodes import Choice, Grammar, JsonValue, Literal, Node, Optional, Repeat, Rules, Sequence
from unrender.schema import shapes
from unrender.schema.reader import Reading, Unsupported, read_schema, within
from unrender.schema.weights import Weight
from unrender.schema.writer import Unwritable, is_writable, write_schema
from unrender.values.notations import JSON_LEXICON, PYTHON_LEXICON


class Values(StrEnum):
    """The representation of JSON values that have a schema."""

    SPELLED = "spelled"
    """Plain nodes for the individual characters of a value."""
    NATIVE = "native"
    """A `JsonValue` with a schema that all engines interpret in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A grammar without `Calls`, and the keywords that it doesn't enforce."""

    grammar: Grammar
    unsupported: tuple[Unsupported, ...] = ()
    limits: Limits = STANDARD
    weight: Weight = field(default_factory=Weight)
    """Total size of the parameters of all tools."""


def expand(grammar: Grammar, values: Values, limits: Limits = STANDARD, *, roles: bool = True) -> Expansion:
    """Expand `grammar` into plain nodes and, if `values` is native, `JsonValue`s.

    If `roles` is False, the result contains no tags, which dialects don't need. Raises `GrammarError` if the grammar contains calls but the
    tools are unknown, or if a response schema is invalid. It's also raised if a response schema, or all tools together, exceed the limits.
    """
    expander = _Expander(values, limits, roles)
    expander.rules.merge(grammar.rules)  # Reserves the names of existing rules.
    for name, node in grammar.rules.items():
        expander.rules.define(name, expander.node(node))
    root = expander.node(grammar.root)
    return Expansion(
        grammar=Grammar(root, expander.rules.table),
        unsupported=tuple(dict.fromkeys(expander.unsupported)),
        limits=limits,
        weight=Weight(expander.parts, expander.characters),
    )


@dataclass(slots=True)
class _Expander:
    values: Values
    limits: Limits
    roles: bool
    rules: Rules = field(default_factory=Rules)
    unsupported: list[Unsupported] = field(default_factory=list)
    calls: dict[object, Node] = field(default_factory=dict)
    spent: dict[str, Weight] = field(default_factory=dict)
    parts: int = 0
    characters: int = 0

    def node(self, node: Node) -> Node:
        match node:
            case JsonValue(schema):
                return self.json(self.response(True if schema is None else schema), "json")
            case nodes.PythonValue(schema):
                reading = self.response(True if schema is None else schema)
                self.unsupported += reading.unsupported
                return Speller(PYTHON_LEXICON, self.rules, reading.definitions, "python").spell(reading.shape, "python")
            case nodes.Quoted(quote):
                lexicon = JSON_LEXICON if quote == '"' else PYTHON_LEXICON
                [quotes] = (quotes for quotes in lexicon.quotes if quotes.open == quote)
                return Speller(lexicon, self.rules, {}, "string").quoted(shapes.Text(), quotes)
            case Calls():
                return self.run(node)
            case nodes.Atomic(inner):
                return self.node(inner)
            case nodes.Tag(_, inner) if not self.roles:
                return self.node(inner)
            case nodes.Peek() | nodes.Negate():
                return node  # Lookahead generates no text, so it isn't expanded.
            case nodes.Leaf() | nodes.Ref() | Sequence() | Choice() | Optional() | Repeat() | nodes.Tag():
                return nodes.with_children(node, self.node)

    def read(self, schema: JsonSchema) -> Reading:
        reading = read_schema(schema, longest=MAX_REPETITIONS)
        # If every keyword is supported, spelled and native values use the same reading.
        if self.values is Values.SPELLED or not reading.unsupported:
            return reading
        # A schema that can't be passed natively is spelled out too, so use the reading for that form.
        native = read_schema(schema)
        return native if is_writable(native) else reading

    def response(self, schema: JsonSchema) -> Reading:
        """Return the reading of a response schema, which is never widened."""
        try:
            reading = self.read(schema)
        except RecursionError:
            raise GrammarError("response schema: nested too deeply; flatten it") from None
        if reason := reading.weight.too_much(self.limits):
            raise GrammarError(f"response schema: #: {reason}; simplify it")
        return reading

    def json(self, reading: Reading, hint: str) -> Node:
        """Return the node of a JSON value."""
        self.unsupported += reading.unsupported
        # Some shapes are spelled out, because the schema readers of engines don't support them, e.g. "a number that isn't an integer".
        if self.values is Values.NATIVE:
            with suppress(Unwritable):
                return self.rules.define(self.rules.reserve(hint), JsonValue(write_schema(reading)))
        return Speller(JSON_LEXICON, self.rules, reading.definitions, hint).spell(reading.shape, hint)

    def run(self, calls: Calls) -> Node:
        """Return the node of consecutive calls, without the whitespace before them."""
        markers = (calls.open, calls.call_open, calls.call_close, calls.separator, calls.close)
        start, call_open, call_close, separator, end = (Literal(marker.text) for marker in markers)
        call = Sequence((call_open, self.call(calls)))
        if calls.ends_turn and not calls.close:
            # If a call's end marker is the end-of-turn token, engines strip the last one, as in `<c>f`. So make the last marker optional.
            more = None if calls.maximum is None else calls.maximum - 1
            again = Repeat(Sequence((call_close, separator, call)), 0, more)
            return Sequence((start, call, again, Optional(Sequence((call_close, end)))))
        several = Repeat(Sequence((call, call_close)), 1, calls.maximum, separator)
        return Sequence((start, several, Optional(end) if calls.ends_turn else end))

    def call(self, calls: Calls) -> Node:
        """Return a choice of all tools' calls."""
        if calls.tools is None:
            raise GrammarError("calls: a grammar needs the names of the tools")
        # Build each choice only once, because the same calls may occur several times in a grammar. Tools aren't hashable, so they're
        # compared by id.
        key = (calls.function, calls.arguments, tuple(map(id, calls.tools)))
        if key not in self.calls:
            options: list[Node] = [
                self.rules.add(f"call-{tool.name}", self.call_of(calls, tool)) for tool in calls.tools
            ]
            self.calls[key] = options[0] if len(options) == 1 else self.rules.add("call", Choice(tuple(options)))
        return self.calls[key]

    def call_of(self, calls: Calls, tool: Tool) -> Node:
        def report(path: str, keyword: str, reason: str) -> None:
            self.unsupported.append(Unsupported(path=path, keyword=keyword, reason=reason, tool=tool.name))

        reading = self.parameters(tool, report, sorted_keys=calls.arguments.codec.sorted_keys)
        return CallWriter(calls, tool.name, reading, self.rules, self.json, report, self.roles).call()

    def parameters(self, tool: Tool, report: Callable[[str, str, str], None], *, sorted_keys: bool) -> Reading:
        """Return the reading of a tool's parameters, widened if the schema is invalid or too large."""

        def wider(path: str, reason: str) -> None:
            report(path, "parameters", reason)

        try:
            reading = self.read(_by_name(tool.parameters) if sorted_keys else tool.parameters)
        except GrammarError as error:
            wider("#", str(error))
            reading = self.read({"type": "object"})
        except RecursionError:  # A schema built in Python may be nested too deeply even for the checks.
            wider("#", "it is nested too deeply; any arguments may be given")
            reading = self.read({"type": "object"})
        for item in reading.unsupported:
            report(item.path, item.keyword, item.reason)
        # First apply the limits for a single tool, then the limits for all tools together.
        narrow, weight = within(reading, self.limits, wider)
        self.spend(tool.name, weight)
        return narrow

    def spend(self, tool: str, weight: Weight) -> None:
        """Add a tool's size to the total. Raises `GrammarError` if the total exceeds the limits."""
        # Subtract an earlier weight of the same tool: a tool may occur in several syntaxes, but counts only once.
        before = self.spent.get(tool, Weight(0))
        self.spent[tool] = weight
        self.parts += weight.parts - before.parts
        self.characters += weight.characters - before.characters
        most_parts, most_characters = self.limits.grammar_parts, self.limits.grammar_characters
        for total, most, name in ((self.parts, most_parts, "parts"), (self.characters, most_characters, "characters")):
            if total > most:
                largest = max(self.spent, key=lambda found: self.spent[found].parts)
                raise GrammarError(
                    f"tools: the first {len(self.spent)} take {total} {name}, more than {most}: offer fewer tools, or "
                    f"simplify them; the largest is {largest!r}, at #/properties"
                )


def _by_name(schema: Any) -> Any:
    """Return a schema with all keys sorted, including those of objects in an `enum`."""
    if isinstance(schema, list | tuple):
        return [_by_name(item) for item in schema]
    return {key: _by_name(schema[key]) for key in sorted(schema)} if isinstance(schema, Mapping) else schema
