"""Writes a grammar as xgrammar's structural tag: JSON for constrained decoding in vLLM, SGLang and other engines.

Strategy: the tag is a tree that contains a copy of a rule for each of its uses. Text up to a stop is a `tag` of `any_text`, an argument's
JSON is a `json_schema`, and regular parts are an EBNF `grammar`. A tree can't refer to a part by name to use it several times. So a
recursive grammar, or one that would be too long as a tree, becomes a single EBNF grammar.

Rules: a tree is never longer than `SHORT` characters, or twice the length of the EBNF, whichever is longer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from unrender import nodes
from unrender.dialects.context_free import (
    Stopped,
    longer_stops,
    lower,
    reachable,
    rule_references,
)
from unrender.dialects.gbnf import text_pieces, write_gbnf, write_rules
from unrender.dialects.stops import inverted, leaves_first
from unrender.grammar.expansion import Expansion
from unrender.grammar.spelling import schema_grammar
from unrender.json_values import JsonSchema
from unrender.limits import MAX_GRAMMAR_DEPTH, MAX_LAYOUT
from unrender.nodes import Choice, Grammar, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence, reached, walk

TagFormat = dict[str, Any]
_PART = 25
"""Minimum length of one part of a schema in a tree, without names and values: `{"x": {"type": "string"}}, `."""
_PLACES = 2
"""Usual number of copies of a call in a tree: one for the first call, and one for all later calls."""
SHORT = 8_000
"""Length up to which a tree is always used, so that small requests benefit from the engine's own features."""


def is_long(spelled: Expansion) -> bool:
    """Return whether a grammar is too long for a tree, and EBNF enforces all of its schema keywords.

    Engines compile such EBNF in half the time.
    """
    size = spelled.weight.characters + _PART * spelled.weight.parts
    return not spelled.unsupported and _PLACES * size > SHORT


def write_ebnf(spelled: Expansion) -> TagFormat:
    """Return an expanded grammar as a structural tag that contains a single EBNF grammar."""
    return {"type": "structural_tag", "format": _grammar(write_gbnf(spelled))}


def write_structural_tag(native: Expansion, spelled: Expansion) -> TagFormat:
    """Return an expanded grammar as a structural tag in plain JSON data (xgrammar 0.2: `{"type": "structural_tag", "format": …}`).

    `spelled` is the same grammar with JSON spelled out. The grammar is written as EBNF if the tree would be too long.
    """
    lowered = lower(native.grammar, for_lexer=False, steps=native.limits.grammar_steps)
    body = _Writer(lowered.rules, _plain(lowered.rules)).tree(lowered.root, lambda: write_gbnf(spelled))
    return {"type": "structural_tag", "format": body}


def _tree_order(rules: Mapping[str, Node | Stopped], root: str, plain: frozenset[str]) -> list[str]:
    """Return the rules of a tree, each after the rules that it refers to. Returns an empty list if the rules don't form a tree, or if the
    tree is nested too deeply.
    """
    below = {
        name: [other for other in rule_references(node) if other not in plain]
        for name, node in rules.items()
        if name == root or name not in plain
    }
    depths: dict[str, int] = {}
    for name in leaves_first(below):
        depths[name] = 1 + max((depths[other] for other in below[name]), default=-1)
    # Recursive rules, and rules that refer to them, are missing from `depths`.
    return list(depths) if depths.keys() == below.keys() and depths[root] <= MAX_GRAMMAR_DEPTH else []


def _plain(rules: Mapping[str, Node | Stopped]) -> frozenset[str]:
    """Return the plain rules: neither these rules nor the rules that they refer to contain JSON or text up to a stop."""
    users = inverted({name: rule_references(node) for name, node in rules.items()})
    special = (name for name, node in rules.items() if isinstance(node, Stopped) or _holds_json(node))
    return frozenset(rules) - reached(special, lambda name: users.get(name, ()))


def _holds_json(node: Node) -> bool:
    return any(isinstance(below, JsonValue) for below in walk(node))


class _Writer:
    """Writes rules as a tree if the tree isn't too long."""

    def __init__(self, rules: Mapping[str, Node | Stopped], plain: frozenset[str]) -> None:
        self.rules = rules
        self.plain = plain
        self.written: dict[str, TagFormat] = {}
        self.sizes: dict[int, int] = {}

    def tree(self, root: str, ebnf: Callable[[], str]) -> TagFormat:
        """Return the rule `root` as a tree. Returns EBNF if the rules form no tree, or one that is longer than both `SHORT` and twice the
        EBNF.
        """
        most, instead = SHORT, ""
        for name in _tree_order(self.rules, root, self.plain):
            node = self.rules[name]
            self.written[name] = self.text(node) if isinstance(node, Stopped) else self.node(node)
            size = self.size(self.written[name])
            # Write the EBNF only for a long tree, because this takes more time than writing most trees.
            if size > most and not instead:
                instead = ebnf()
                most = max(SHORT, 2 * len(instead))
            if size > most:
                break
        return self.written[root] if root in self.written and size <= most else _grammar(instead or ebnf())

    def size(self, tag: TagFormat) -> int:
        """Return the approximate length of a tag as JSON. Each part is measured only once, even if it occurs several times."""
        # In memory, the uses of a part share one object. As JSON, each use is a copy, so thirty parts may become a billion characters long.
        known = self.sizes.get(id(tag))
        if known is None:
            known = self.sizes[id(tag)] = sum(len(key) + 6 + self.length(value) for key, value in tag.items())
        return known

    def length(self, value: Any) -> int:
        if isinstance(value, str):
            return len(value) + 2
        if isinstance(value, dict):
            return self.size(value)
        return sum(map(self.length, value)) + len(value) if isinstance(value, list) else 5

    def text(self, node: Stopped) -> TagFormat:
        """Return text up to a stop as a choice between the stops."""
        options = [_row("sequence", [_text_before(node, stop), self.node(ref)]) for stop, ref in node.branches]
        if node.at_end:
            rest = {"root": Stopped(node.stops, (), at_end=True)}
            options.append(_any_text(node.stops) if _are_whole(node.stops) else _grammar(write_rules("root", rest)))
        return _row("or", options)

    def node(self, node: Node) -> TagFormat:
        # Write a node without JSON and free text as EBNF, not as a tree, because the engine compiles EBNF as one piece.
        if not isinstance(node, Literal | JsonValue) and self.is_plain(node):
            return self.regular(node)
        match node:
            case Literal(text):
                return _text(text)
            case JsonValue(schema):
                return _json(True if schema is None else schema)
            case Sequence(parts):
                return _row("sequence", [self.node(part) for part in parts])
            case Choice(options):
                return _row("or", [self.node(option) for option in options])
            case Optional(inner):
                return {"type": "optional", "content": self.node(inner)}
            case Repeat(inner, low, high, None):
                most = -1 if high is None else high
                return {"type": "repeat", "min": low, "max": most, "content": self.node(inner)}
            case Ref(name):
                return self.written[name]
        raise nodes.refusal_of(node, "cannot be written in a structural tag")

    def regular(self, node: Node) -> TagFormat:
        """Write a plain node as EBNF, with all the rules that it needs. A single literal stays a literal."""
        if isinstance(node, Ref) and isinstance(word := self.rules[node.rule], Literal):
            return self.node(word)
        found = {name: rule for below in rule_references(node) for name, rule in reachable(below, self.rules).items()}
        return _grammar(write_rules("root", {"root": node, **found}))

    def is_plain(self, node: Node) -> bool:
        return not _holds_json(node) and all(name in self.plain for name in rule_references(node))


_COMMON = frozenset(
    (
        *("type", "anyOf", "enum", "const", "$ref", "$defs", "properties", "required", "additionalProperties"),
        *("items", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
    )
)
"""Schema keywords that xgrammar enforces exactly. xgrammar ignores or weakens other keywords, and rejects some patterns."""


def _json(schema: JsonSchema) -> TagFormat:
    """Write a JSON value as a schema if xgrammar enforces the schema exactly, otherwise as EBNF."""
    if reads_exactly(schema):
        return {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": MAX_LAYOUT}
    found = schema_grammar(schema)
    lowered = lower(Grammar(found.node, found.rules), for_lexer=False)
    return _grammar(write_rules(lowered.root, lowered.rules))


def reads_exactly(schema: Any) -> bool:
    """Return whether xgrammar enforces all of `schema`. If not, the value has to be spelled out.

    `schema` must be a result of `write_schema`.
    """
    if not isinstance(schema, Mapping):
        return True
    if False in schema.get("properties", {}).values():
        return False
    values = [*schema.get("enum", ()), schema.get("const")]
    # xgrammar allows only one spelling of a constant, e.g. not both `é` and `\u00e9`. In constant objects and lists, it allows only one
    # form of whitespace.
    plain = json.dumps(values, ensure_ascii=False).isascii() and not any(isinstance(v, dict | list) for v in values)
    if not (schema.keys() <= _COMMON and plain):
        return False
    named = (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values())
    listed = (*schema.get("anyOf", ()), *schema.get("prefixItems", ()))
    return all(map(reads_exactly, (*named, *listed, schema.get("items"), schema.get("additionalProperties"))))


def _text_before(node: Stopped, stop: str) -> TagFormat:
    """Return free text followed by `stop`. EBNF is used if `stop` is the end of a longer stop that isn't allowed here."""
    # A tag that ends at `>>f` would also end at `>>>f`. If `>>>f` isn't allowed, only EBNF can exclude it.
    alive = {stop for stop, _ in node.branches}
    if _are_whole(node.stops) and alive.issuperset(longer_stops(node.stops).get(stop, ())):
        return {"type": "tag", "begin": "", "content": _any_text(node.stops), "end": stop}
    rules: dict[str, Node | Stopped] = {"root": Stopped(node.stops, ((stop, Ref("end")),), False), "end": Literal("")}
    return _grammar(write_rules("root", rules))


def _are_whole(stops: tuple[str, ...]) -> bool:
    """Return whether each stop is a single piece. Engines misread stops that have to be split into several pieces."""
    return all(len(text_pieces(stop)) == 1 for stop in stops)


def _grammar(ebnf: str) -> TagFormat:
    return {"type": "grammar", "grammar": ebnf}


def _any_text(stops: tuple[str, ...]) -> TagFormat:
    return {"type": "any_text", "excludes": list(stops)}


def _text(text: str) -> TagFormat:
    pieces: list[TagFormat] = [{"type": "const_string", "value": piece} for piece in text_pieces(text)]
    return pieces[0] if len(pieces) == 1 else {"type": "sequence", "elements": pieces}


def _row(kind: str, parts: list[TagFormat]) -> TagFormat:
    """Return a `sequence` or an `or` of `parts`.

    Nested parts of the same type are flattened, and empty strings in a sequence are dropped.
    """
    flat = [inner for part in parts for inner in (part["elements"] if part["type"] == kind else (part,))]
    flat = [part for part in flat if kind == "or" or part != {"type": "const_string", "value": ""}]
    return flat[0] if len(flat) == 1 else {"type": kind, "elements": flat}
