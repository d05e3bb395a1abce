"""Grammar → xgrammar's structural tag: JSON that vLLM, SGLang and others take for constrained decoding.

Strategy: the tag is a tree, so rules are written out where they are used; text up to a stop is a `tag` of `any_text`, an
argument's JSON is a `json_schema`, and what is regular is an EBNF `grammar`. A grammar that refers to itself is no tree
and is handed over as EBNF in one piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from unrender.emit.gbnf import write_gbnf, write_rules
from unrender.emit.lowering import Stopped, lower, reachable, references
from unrender.grammar.expansion import Expansion, Values, expand
from unrender.grammar.nodes import Choice, Grammar, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence, walk
from unrender.grammar.schema_rules import schema_rules
from unrender.grammar.spelling import MAX_SPACE
from unrender.messages import JsonSchema

Tag = dict[str, Any]
MAX_DEPTH = 64
"""A tag that would be nested deeper is handed over as EBNF: readers of JSON have limits of their own."""


def structural_tag(grammar: Grammar) -> Tag:
    """Return the grammar as a structural tag, plain JSON data (xgrammar 0.2: `{"type": "structural_tag", "format": …}`).

    Raises `GrammarError` when the grammar cannot be written, e.g. calls to tools whose names are not known.
    """
    return write_structural_tag(expand(grammar, Values.NATIVE), expand(grammar, Values.SPELLED))


def write_structural_tag(native: Expansion, spelled: Expansion) -> Tag:
    """Return an expanded grammar as a structural tag; `spelled` is the same grammar, for when it is no tree."""
    lowered = lower(native.grammar)
    plain = _plain(lowered.rules)
    if _is_no_tree(lowered.rules, lowered.root, plain):
        body: Tag = {"type": "grammar", "grammar": write_gbnf(spelled)}
    else:
        body = _Writer(lowered.rules, plain).rule(lowered.root)
    return {"type": "structural_tag", "format": body}


def _is_no_tree(rules: Mapping[str, Node | Stopped], root: str, plain: frozenset[str]) -> bool:
    """Return whether a rule that is not plain can be reached from itself, or is too deep to be told from that."""
    done: set[str] = set()

    def visit(name: str, above: frozenset[str]) -> bool:
        if name in above or len(above) > MAX_DEPTH:
            return True
        if name in done or name in plain:
            return False
        done.add(name)
        return any(visit(below, above | {name}) for below in references(rules[name]))

    return visit(root, frozenset())


def _plain(rules: Mapping[str, Node | Stopped]) -> frozenset[str]:
    """Return the rules that hold neither JSON nor text up to a stop, nor refer to one that does: EBNF says them all."""
    users: dict[str, list[str]] = {}
    for name, node in rules.items():
        for below in references(node):
            users.setdefault(below, []).append(name)
    queue = [name for name, node in rules.items() if isinstance(node, Stopped) or _holds_json(node)]
    special = set(queue)
    for name in queue:
        fresh = [user for user in users.get(name, ()) if user not in special]
        special.update(fresh)
        queue.extend(fresh)
    return frozenset(rules) - special


def _holds_json(node: Node) -> bool:
    return any(isinstance(below, JsonValue) for below in walk(node))


class _Writer:
    """Writes rules as a tree."""

    def __init__(self, rules: Mapping[str, Node | Stopped], plain: frozenset[str]) -> None:
        self.rules = rules
        self.plain = plain
        self.written: dict[str, Tag] = {}

    def rule(self, name: str) -> Tag:
        if name not in self.written:
            node = self.rules[name]
            self.written[name] = self.text(node) if isinstance(node, Stopped) else self.node(node)
        return self.written[name]

    def text(self, node: Stopped) -> Tag:
        """Write text up to a stop: a choice of what it may end with."""
        options = [_sequence([_text_before(node, stop), self.rule(ref.rule)]) for stop, ref in node.branches]
        if node.at_end:
            options.append(_any_text(node.stops))
        return _choice(options)

    def node(self, node: Node) -> Tag:
        if not isinstance(node, Literal | JsonValue) and self.is_plain(node):
            found = {name: rule for below in references(node) for name, rule in reachable(below, self.rules).items()}
            return {"type": "grammar", "grammar": write_rules("root", {"root": node, **found})}
        match node:
            case Literal(text):
                return {"type": "const_string", "value": text}
            case JsonValue(schema):
                return _json(True if schema is None else schema)
            case Sequence(parts):
                return _sequence([self.node(part) for part in parts])
            case Choice(options):
                return _choice([self.node(option) for option in options])
            case Optional(inner):
                return {"type": "optional", "content": self.node(inner)}
            case Repeat(inner, low, high, None):
                most = -1 if high is None else high
                return {"type": "repeat", "min": low, "max": most, "content": self.node(inner)}
            case Ref(name):
                return self.rule(name)
        raise TypeError(f"{type(node).__name__} is no context-free node")

    def is_plain(self, node: Node) -> bool:
        return not _holds_json(node) and all(name in self.plain for name in references(node))


_COMMON = frozenset(
    (
        *("type", "anyOf", "enum", "const", "$ref", "$defs", "properties", "required", "additionalProperties"),
        *("items", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
    )
)
"""Keywords that xgrammar enforces exactly; it drops or widens others, and patterns of some kinds are an error there."""


def _json(schema: JsonSchema) -> Tag:
    """Write a JSON value: natively where xgrammar reads the schema exactly, else spelled out."""
    if reads_exactly(schema):
        return {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": MAX_SPACE}
    found = schema_rules(schema)
    lowered = lower(Grammar(found.node, found.rules))
    return {"type": "grammar", "grammar": write_rules(lowered.root, lowered.rules)}


def reads_exactly(schema: Any) -> bool:
    """Return whether xgrammar enforces all of `schema`, which `write_schema` wrote; else it is spelled out for it."""
    if not isinstance(schema, Mapping):
        return True
    values = [*schema.get("enum", ()), schema.get("const")]
    plain = json.dumps(values, ensure_ascii=False).isascii() and not any(isinstance(v, dict | list) for v in values)
    if not (schema.keys() <= _COMMON and plain):
        return False
    named = (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values())
    listed = (*schema.get("anyOf", ()), *schema.get("prefixItems", ()))
    return all(map(reads_exactly, (*named, *listed, schema.get("items"), schema.get("additionalProperties"))))


def _text_before(node: Stopped, stop: str) -> Tag:
    """Write text with `stop` behind it; as EBNF where a longer stop, behind which nothing follows, ends with it."""
    alive = {stop for stop, _ in node.branches}
    if alive.issuperset(node.longer(stop)):
        return {"type": "tag", "begin": "", "content": _any_text(node.stops), "end": stop}
    rules: dict[str, Node | Stopped] = {"root": Stopped(node.stops, ((stop, Ref("end")),), False), "end": Literal("")}
    return {"type": "grammar", "grammar": write_rules("root", rules)}


def _any_text(stops: tuple[str, ...]) -> Tag:
    return {"type": "any_text", "excludes": list(stops)}


def _sequence(parts: list[Tag]) -> Tag:
    flat = list(_flat("sequence", parts))
    return flat[0] if len(flat) == 1 else {"type": "sequence", "elements": flat}


def _choice(options: list[Tag]) -> Tag:
    flat = list(_flat("or", options))
    return flat[0] if len(flat) == 1 else {"type": "or", "elements": flat}


def _flat(kind: str, parts: list[Tag]) -> Iterator[Tag]:
    """Yield `parts`, those of the same kind taken apart, and nothing in a sequence left out."""
    for part in parts:
        if part["type"] == kind:
            yield from part["elements"]
        elif kind == "or" or part != {"type": "const_string", "value": ""}:
            yield part
