"""Grammar → what may be generated, in plain nodes: calls written out for each tool, JSON values by their schema.

Rules: linear in the number of tools; equal rules are shared. A schema that cannot be said in full makes its own tool
wider, never the others, and is reported. `Tolerated` parts are left to the emitters to skip.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from unrender.grammar.json_schema import Reading, Unsupported, read_schema
from unrender.grammar.nodes import Grammar, JsonValue, Node
from unrender.grammar.rules import Rules
from unrender.grammar.schema_writer import write_schema
from unrender.grammar.spelling import JSON_NOTATION, Speller


class Values(StrEnum):
    """What becomes of a JSON value with a schema."""

    SPELLED = "spelled"
    """Nodes, character by character."""
    NATIVE = "native"
    """A `JsonValue` whose schema holds only what engines that read JSON Schema agree on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """A grammar without calls, and the keywords that it does not enforce."""

    grammar: Grammar
    unsupported: tuple[Unsupported, ...] = ()


def expand(grammar: Grammar, values: Values) -> Expansion:
    """Return what `grammar` generates, in plain nodes and, if `values` is native, `JsonValue`s.

    Raises `GrammarError` for calls to tools whose names are not known, and for a response schema that is none.
    """
    expander = _Expander(values)
    expander.rules.merge({name: expander.node(node) for name, node in grammar.rules.items()})
    root = expander.node(grammar.root)
    return Expansion(
        grammar=Grammar(root, expander.rules.table), unsupported=tuple(dict.fromkeys(expander.unsupported))
    )


@dataclass(slots=True)
class _Expander:
    values: Values
    rules: Rules = field(default_factory=Rules)
    unsupported: list[Unsupported] = field(default_factory=list)

    def node(self, node: Node) -> Node:
        match node:
            case JsonValue(schema):
                return self.json(read_schema(True if schema is None else schema), "json")
        return node

    def json(self, reading: Reading, hint: str) -> Node:
        self.unsupported += reading.unsupported
        if self.values is Values.NATIVE:
            return self.rules.define(self.rules.reserve(hint), JsonValue(write_schema(reading)))
        speller = Speller(JSON_NOTATION, self.rules, reading.definitions, hint)
        return speller.spell(reading.shape, hint)
