"""Writes the JSON texts that obey a JSON Schema as nodes and rules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from unrender.grammar.json_schema import Unsupported, read_schema
from unrender.grammar.nodes import Node
from unrender.grammar.notations import JSON_LEXICON
from unrender.grammar.rules import Rules
from unrender.grammar.spelling import Speller
from unrender.messages import JsonSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRules:
    """A node, the rules it refers to, and the keywords that it does not enforce."""

    node: Node
    rules: Mapping[str, Node]
    unsupported: tuple[Unsupported, ...]


def schema_grammar(schema: JsonSchema) -> SchemaRules:
    """Return the grammar of the JSON texts that obey `schema`, with any white space between tokens.

    Properties come in the order in which the schema declares them; optional ones may be left out. Keywords that a
    grammar cannot express are in `unsupported`, and the grammar is wider there. Raises `GrammarError` when `schema` is
    not a JSON Schema.

    >>> found = schema_grammar({"type": "integer", "minimum": 1, "maximum": 3})
    >>> found.node
    Chars(ranges=(('1', '3'),), negated=False, minimum=1, maximum=1)
    """
    reading = read_schema(schema, longest=sys.maxsize)
    rules = Rules()
    node = Speller(JSON_LEXICON, rules, reading.definitions).spell(reading.shape)
    return SchemaRules(node=node, rules=rules.table, unsupported=reading.unsupported)
