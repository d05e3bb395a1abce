"""Expands a grammar into plain nodes: calls written out for each tool, JSON values by their schema.

Rules: linear in the number of tools; equal rules are shared. A schema that cannot be said in full makes its own tool
wider, never the others, and is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from unrender import nodes
from unrender.answer.nodes import Calls
from unrender.errors import GrammarError
from unrender.grammar.call_rules import CallWriter
from unrender.grammar.spelling import Speller
from unrender.json_values import JsonSchema
from unrender.limits import MAX_REPETITIONS, STANDARD, Limits
from unrender.messages.wire import Tool
from unrender.nodes import Choice, Grammar, JsonValue, Literal, Node, Optional, Repeat, Rules, Sequence
from unrender.schema import shapes
from unrender.schema.reader import Reading, Unsupported, read_schema, within
from unrender.schema.weights import Weight
from unrender.schema.writer import Unwritable, is_writable, write_schema
from unrender.values.notations import JSON_LEXICON, PYTHON_LEXICON


class Values(StrEnum):
    """The spelling of JSON values that have a schema."""

    SPELLED = "spelled"
    """Nodes, character by character."""
    NATIVE = "native"
    """A `JsonValue` whose schema holds only what engines that read JSON Schema agree on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A grammar without calls, and the keywords that it does not enforce."""

    grammar: Grammar
    unsupported: tuple[Unsupported, ...] = ()
    limits: Limits = STANDARD
    weight: Weight = field(default_factory=Weight)
    """Of the parameters of all tools together."""


def expand(grammar: Grammar, values: Values, limits: Limits = STANDARD, *, roles: bool = True) -> Expansion:
    """Expand `grammar` into plain nodes and, if `values` is native, `JsonValue`s.

    Without `roles`, nothing is tagged: dialects write the text alone.

    Raises `GrammarError` for calls to tools whose names are not known, for a response schema that is not a JSON Schema,
    and for a response schema, or tools together, that exceed the limits.
    """
    expander = _Expander(values, limits, roles)
    expander.rules.merge(grammar.rules)  # What is made on the way takes other names.
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
                return node  # What only looks ahead is not generated.
            case nodes.Leaf() | nodes.Ref() | Sequence() | Choice() | Optional() | Repeat() | nodes.Tag():
                return nodes.with_children(node, self.node)

    def read(self, schema: JsonSchema) -> Reading:
        reading = read_schema(schema, longest=MAX_REPETITIONS)
        # What loses nothing like that means the same however values are handed over, and is read once for both.
        if self.values is Values.SPELLED or not reading.unsupported:
            return reading
        # What cannot be handed over is spelled as well, and loses as much: the reading that says so is taken.
        native = read_schema(schema)
        return native if is_writable(native) else reading

    def response(self, schema: JsonSchema) -> Reading:
        """Return the reading of a response's schema; there is nothing wider that would still be one."""
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
        # "A number that is not whole" has no words in engines' own readers; our rules say it.
        if self.values is Values.NATIVE:
            with suppress(Unwritable):
                return self.rules.define(self.rules.reserve(hint), JsonValue(write_schema(reading)))
        return Speller(JSON_LEXICON, self.rules, reading.definitions, hint).spell(reading.shape, hint)

    def run(self, calls: Calls) -> Node:
        """Return a run of calls, without layout before it."""
        markers = (calls.open, calls.call_open, calls.call_close, calls.separator, calls.close)
        start, call_open, call_close, separator, end = (Literal(marker.text) for marker in markers)
        call = Sequence((call_open, self.call(calls)))
        if calls.ends_turn and not calls.close:
            # `<c>f</c>`: the engine strips the last `</c>`, the token that ends the turn, so the text may lack it.
            more = None if calls.maximum is None else calls.maximum - 1
            again = Repeat(Sequence((call_close, separator, call)), 0, more)
            return Sequence((start, call, again, Optional(Sequence((call_close, end)))))
        several = Repeat(Sequence((call, call_close)), 1, calls.maximum, separator)
        return Sequence((start, several, Optional(end) if calls.ends_turn else end))

    def call(self, calls: Calls) -> Node:
        """Return the choice of all tools' calls."""
        if calls.tools is None:
            raise GrammarError("calls: any name counts as a tool; a grammar needs the tools by name")
        # The same calls are in several places of an answer; tools are not hashable, but they are the same objects.
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
        """Return a tool's parameters; where its schema is invalid or too large, more arguments pass."""

        def wider(path: str, reason: str) -> None:
            report(path, "parameters", reason)

        try:
            reading = self.read(_by_name(tool.parameters) if sorted_keys else tool.parameters)
        except GrammarError as error:
            wider("#", str(error))
            reading = self.read({"type": "object"})
        except RecursionError:  # A schema from Python may be deeper than any limit that is checked.
            wider("#", "it is nested too deep; any arguments may be given")
            reading = self.read({"type": "object"})
        for item in reading.unsupported:
            report(item.path, item.keyword, item.reason)
        # What each tool alone may take, and then what all of them may take together.
        narrow, weight = within(reading, self.limits, wider)
        self.spend(tool.name, weight)
        return narrow

    def spend(self, tool: str, weight: Weight) -> None:
        """Count a tool's size; raises `GrammarError` if all tools together exceed the limits."""
        # A tool may be met again, in another syntax of the same answer: it counts once.
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
    """Return a schema with all keys in alphabetical order: those of properties, and of the objects in an `enum`."""
    if isinstance(schema, list | tuple):
        return [_by_name(item) for item in schema]
    return {key: _by_name(schema[key]) for key in sorted(schema)} if isinstance(schema, Mapping) else schema
