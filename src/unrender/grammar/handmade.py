"""A grammar made by hand, and the tools of a request → the same grammar with each call written out for each tool.

A person writes what a call looks like once. What may be generated depends on the tool: its name stands where the grammar
reads a name, its schema binds the arguments. Rules: reading stays as wide as the grammar says; the copies made here are
for writing alone. What a schema asks and entries cannot say (which arguments are required, none twice) is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from unrender.errors import GrammarError
from unrender.grammar import nodes
from unrender.grammar.nodes import Choice, Grammar, JsonValue, Literal, Node, Ref, Role, Sequence, Tag, Until
from unrender.grammar.rules import Rules
from unrender.messages import JsonSchema, Request, Tool, ToolChoice

NO_CALL = Choice(())
"""Matches nothing: no tool is offered."""


def written_for(grammar: Grammar, request: Request) -> Grammar:
    """Return what `grammar` may generate in one turn; where any name counts as a tool, calls stay as they are.

    Raises `GrammarError` when the request asks for what only a format can say: a call that must be made, an answer in JSON.
    """
    if request.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED):
        raise GrammarError(
            f"tool_choice: a grammar made by hand cannot be told to call, found {request.tool_choice.value!r}"
        )
    if request.response_schema is not None:
        raise GrammarError("response_format: a grammar made by hand says itself what an answer is")
    tools = request.tools if request.calls_allowed else ()
    if tools is None or not _has_calls(grammar):
        return grammar
    writer = _Writer(grammar.rules, tools)
    for name, node in grammar.rules.items():
        writer.made.define(name, writer.around_calls(node))
    return Grammar(writer.around_calls(grammar.root), writer.made.table)


def _has_calls(grammar: Grammar) -> bool:
    roots = (grammar.root, *grammar.rules.values())
    return any(isinstance(node, Tag) and node.role is Role.CALL for root in roots for node in nodes.walk(root))


@dataclass(slots=True)
class _Writer:
    source: Mapping[str, Node]
    tools: tuple[Tool, ...]
    made: Rules = field(default_factory=Rules)
    copies: dict[tuple[str, str], Ref] = field(default_factory=dict)
    """Rules used inside calls: rule and tool → the copy for that tool."""

    def around_calls(self, node: Node) -> Node:
        """Return a node that stands outside of calls."""
        if isinstance(node, Tag) and node.role is Role.CALL:
            calls = [replace(node, node=self.inside(node.node, tool)) for tool in self.tools]
            return calls[0] if len(calls) == 1 else Choice(tuple(calls)) if calls else NO_CALL
        return _with_children(node, self.around_calls)

    def inside(self, node: Node, tool: Tool) -> Node:
        """Return a node of a call of `tool`."""
        match node:
            case Ref(rule):
                return self.copy(rule, tool)
            case Tag(role=Role.NAME):
                return replace(node, node=Literal(tool.name))
            case Tag(role=Role.ARGUMENT, node=JsonValue(schema=None)):
                return replace(node, node=JsonValue(_as_object(tool.parameters)))
            case Sequence(parts) if _entry(parts):
                return self.entry(parts, tool)
        return _with_children(node, lambda child: self.inside(child, tool))

    def copy(self, rule: str, tool: Tool) -> Ref:
        key = (rule, tool.name)
        if key not in self.copies:
            self.copies[key] = Ref(self.made.reserve(f"{rule}-{tool.name}"))
            self.made.define(self.copies[key].rule, self.inside(self.source[rule], tool))
        return self.copies[key]

    def entry(self, parts: tuple[Node, ...], tool: Tool) -> Node:
        """Return a choice of the tool's arguments; where its schema names none, the entry stays as it is."""
        parameters = tool.parameters
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if not isinstance(properties, Mapping) or not properties:
            return Sequence(parts)
        return Choice(tuple(_one_entry(parts, key, schema, parameters) for key, schema in properties.items()))


def _entry(parts: tuple[Node, ...]) -> bool:
    roles = [part.role for part in parts if isinstance(part, Tag)]
    return Role.KEY in roles and Role.VALUE in roles


def _one_entry(parts: tuple[Node, ...], key: str, schema: JsonSchema, parameters: JsonSchema) -> Node:
    def written(part: Node) -> Node:
        match part:
            case Tag(role=Role.KEY):
                return replace(part, node=Literal(key))
            case Tag(role=Role.VALUE, node=inner):
                return replace(part, node=_value(inner, schema, parameters))
        return part

    return Sequence(tuple(map(written, parts)))


def _value(inner: Node, schema: JsonSchema, parameters: JsonSchema) -> Node:
    """Return the value: by its schema where it is read as JSON, or where it is text that can be no string."""
    raw = isinstance(inner, Until | nodes.Chars)
    if (raw and _may_be_text(schema)) or not (raw or inner == JsonValue()):
        return inner
    return JsonValue(_with_definitions(schema, parameters))


def _may_be_text(schema: JsonSchema) -> bool:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind is None or "string" in ([kind] if isinstance(kind, str) else kind)


def _with_definitions(schema: JsonSchema, parameters: JsonSchema) -> JsonSchema:
    if not isinstance(schema, Mapping) or not isinstance(parameters, Mapping):
        return schema
    return {**{name: parameters[name] for name in ("$defs", "definitions") if name in parameters}, **schema}


def _as_object(parameters: JsonSchema) -> JsonSchema:
    return {"type": "object", **parameters} if isinstance(parameters, Mapping) else {"type": "object"}


def _with_children(node: Node, change: Any) -> Node:
    """Return `node` with its children changed; `Ref`s are not followed."""
    changed: dict[str, Any] = {}
    for item in fields(node):
        value: Any = getattr(node, item.name)
        if isinstance(value, Node):
            changed[item.name] = change(value)
        elif isinstance(value, tuple) and any(isinstance(part, Node) for part in value):
            changed[item.name] = tuple(change(part) for part in value)
    return replace(node, **changed) if changed else node
