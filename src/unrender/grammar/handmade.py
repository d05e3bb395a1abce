"""Writes each call of a grammar made by hand out for each tool of a request.

A person writes what a call looks like once. What may be generated depends on the tool: its name is where the grammar
reads a name, its schema binds the arguments. Rules: reading stays as wide as the grammar says; the copies made here are
for writing alone. What a schema asks and entries cannot say (which arguments are required, how many) is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unrender import nodes
from unrender.errors import GrammarError
from unrender.format import TurnTexts
from unrender.grammar.counting import CallCount, counted
from unrender.messages.wire import JsonSchema, Request, Tool, ToolChoice
from unrender.nodes import Choice, Grammar, JsonValue, Literal, Node, Ref, Role, Rules, Sequence, Tag, Until
from unrender.schema import shapes
from unrender.schema.admission import kinds_of, options_of
from unrender.schema.reader import Unsupported, read_schema


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """A grammar as a key of a cache. It equals only itself, not another grammar with equal content."""

    grammar: Grammar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.grammar is self.grammar

    def __hash__(self) -> int:
        return id(self.grammar)


_WANTED = {
    ToolChoice.NONE: CallCount.NONE,
    ToolChoice.AUTO: CallCount.ANY,
    ToolChoice.REQUIRED: CallCount.SOME,
    ToolChoice.NAMED: CallCount.ONE,
}
_AT_MOST_ONE = {CallCount.ANY: CallCount.AT_MOST_ONE, CallCount.SOME: CallCount.ONE}


def ends_of(turn: TurnTexts) -> tuple[str, ...]:
    """Return the texts that end a turn, with and without the layout before them."""
    texts = (form for end in (turn.end, *turn.ends) if end.strip() for form in (end.rstrip(), end.strip()))
    return tuple(dict.fromkeys(texts))


def literals_of(grammar: Grammar) -> Iterator[str]:
    """Yield the texts that the grammar reads literally, and those at which free text stops."""
    for root in (grammar.root, *grammar.rules.values()):
        for node in nodes.walk(root):
            if isinstance(node, Literal):
                yield node.text
            elif isinstance(node, Until):
                yield from node.stops


def stopped_at(grammar: Grammar, ends: tuple[str, ...]) -> Grammar:
    """Return the grammar with its free text also stopping at the ends of a turn.

    >>> stopped_at(Grammar(Until(("<call>",))), ("<end>",)).root
    Until(stops=('<call>', '<end>'))
    """

    def stopped(node: Node) -> Node:
        return Until(tuple(dict.fromkeys((*node.stops, *ends)))) if isinstance(node, Until) else node

    rules = {name: nodes.rewrite(node, stopped) for name, node in grammar.rules.items()}
    return Grammar(nodes.rewrite(grammar.root, stopped), rules)


def check_request(request: Request) -> None:
    """Raise `GrammarError` for a request that no grammar made by hand can fulfil.

    Such a grammar says itself what reasoning and answer are.
    """
    if request.response_schema is not None:
        raise GrammarError(
            "response_format: expected none with a grammar made by hand, which says itself what an answer is, found a schema"
        )
    if request.reasoning_format != "auto":
        raise GrammarError(
            f"reasoning_format: a grammar made by hand says itself what reasoning is, found {request.reasoning_format!r}"
        )


def written_for(grammar: Grammar, request: Request) -> tuple[Grammar, tuple[Unsupported, ...]]:
    """Return what `grammar` may generate in one turn, and the keywords of schemas that its entries cannot express.

    When any name counts as a tool, calls stay as they are. Raises `GrammarError` as `check_request` does, when the
    grammar has no answer with the requested number of calls, and for an end of the output that is not last.
    """
    check_request(request)
    _check_ends(grammar)
    wanted = _WANTED[request.tool_choice] if request.calls_allowed else CallCount.NONE
    found = counted(grammar, _AT_MOST_ONE.get(wanted, wanted) if request.one_call else wanted)
    if request.tools is None or not request.calls_allowed:
        return found, ()
    named = request.tool(request.named_tool)
    writer = _Writer(found.rules, (named,) if named else request.tools)
    writer.made.merge(found.rules)  # Copies take other names.
    for name, node in found.rules.items():
        writer.made.define(name, writer.around_calls(node))
    return Grammar(writer.around_calls(found.root), writer.made.table), tuple(dict.fromkeys(writer.unsupported))


def _check_ends(grammar: Grammar) -> None:
    """Raise `GrammarError` for an `End` that something may follow: no dialect can say that nothing does."""
    seen: set[tuple[str, bool]] = set()
    queue: list[tuple[Node, bool]] = [(grammar.root, True)]
    for node, last in queue:
        match node:
            case nodes.End() if not last:
                raise GrammarError("end(): text may follow it, and grammars cannot forbid that; separate parts instead")
            case Ref(rule) if (rule, last) not in seen:
                seen.add((rule, last))
                queue.append((grammar.rules[rule], last))
            case Sequence(parts):
                taking = [at for at, part in enumerate(parts) if not isinstance(part, nodes.End | nodes.Cut)]
                queue.extend((part, last and at >= max(taking, default=0)) for at, part in enumerate(parts))
            case nodes.Repeat(maximum=most):
                queue.extend((child, last and most == 1) for child in nodes.children(node))
            case _:
                queue.extend((child, last) for child in nodes.children(node))


@dataclass(slots=True)
class _Writer:
    source: Mapping[str, Node]
    tools: tuple[Tool, ...]
    made: Rules = field(default_factory=Rules)
    copies: dict[tuple[str, str], Ref] = field(default_factory=dict)
    """Rules used inside calls: rule and tool → the copy for that tool."""
    unsupported: list[Unsupported] = field(default_factory=list)

    def report(self, tool: Tool, path: str, keyword: str, reason: str) -> None:
        self.unsupported.append(Unsupported(path=path, keyword=keyword, reason=reason, tool=tool.name))

    def around_calls(self, node: Node) -> Node:
        """Return a node that is outside of calls."""
        if isinstance(node, Tag) and node.role is Role.CALL:
            calls = [replace(node, node=self.inside(node.node, tool)) for tool in self.tools]
            return calls[0] if len(calls) == 1 else Choice(tuple(calls))
        return nodes.with_children(node, self.around_calls)

    def inside(self, node: Node, tool: Tool) -> Node:
        """Return a node of a call of `tool`."""
        match node:
            case Ref(rule):
                return self.copy(rule, tool)
            case Tag(role=Role.NAME):
                return replace(node, node=Literal(tool.name))
            case Tag(role=Role.ARGUMENT, node=inner):
                return replace(node, node=self.whole(inner, tool))
            case Tag(role=Role.KEY):
                self.report(tool, "#", "properties", "the grammar writes names of arguments apart from their values")
            case Sequence(parts) if _entry(parts):
                return self.entries(parts, tool)
        return nodes.with_children(node, lambda child: self.inside(child, tool))

    def copy(self, rule: str, tool: Tool) -> Ref:
        key = (rule, tool.name)
        if key not in self.copies:
            self.copies[key] = Ref(self.made.reserve(f"{rule}-{tool.name}"))
            self.made.define(self.copies[key].rule, self.inside(self.source[rule], tool))
        return self.copies[key]

    def whole(self, inner: Node, tool: Tool) -> Node:
        """Return all arguments at once."""
        node = self.resolved(inner)
        if node not in _VALUES:
            self.report(tool, "#", "parameters", "the grammar does not write the arguments as a value")
            return inner
        return self.bound(node, _as_object(tool.parameters), tool, "#")

    def bound(self, node: Node, schema: JsonSchema, tool: Tool, path: str) -> Node:
        """Return a value that obeys the schema; one that is none lets any value pass."""
        try:
            read_schema(schema)
        except GrammarError as error:
            self.report(tool, path, "parameters", str(error))
            schema = {"type": "object"} if path == "#" else True
        return nodes.PythonValue(schema) if isinstance(node, nodes.PythonValue) else JsonValue(schema)

    def entries(self, parts: tuple[Node, ...], tool: Tool) -> Node:
        """Return a choice of the tool's arguments; where its schema names none, the entry stays as it is."""
        parameters = tool.parameters
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if isinstance(parameters, bool) or not isinstance(properties, Mapping) or not properties:
            return Sequence(parts)
        for keyword in sorted(_ABOUT_ENTRIES & parameters.keys()):
            if parameters[keyword]:
                self.report(tool, "#", keyword, "each entry is written for itself")
        return Choice(tuple(self.entry(parts, key, tool) for key in properties))

    def entry(self, parts: tuple[Node, ...], key: str, tool: Tool) -> Node:
        def written(part: Node) -> Node:
            match part:
                case Tag(role=Role.KEY):
                    return replace(part, node=Literal(key))
                case Tag(role=Role.VALUE, node=inner):
                    return replace(part, node=self.value(inner, key, tool))
            return part

        return Sequence(tuple(map(written, parts)))

    def value(self, inner: Node, key: str, tool: Tool) -> Node:
        """Return the value of one argument: by its schema where it is read as a value, or is text that says the same."""
        assert isinstance(tool.parameters, Mapping)
        schema = _with_definitions(tool.parameters["properties"][key], tool.parameters)
        path, node = f"#/properties/{key}", self.resolved(inner)
        if node in _VALUES:
            return self.bound(node, schema, tool, path)
        said = _as_text(node, schema)
        if said is None and _says_more(schema):
            self.report(tool, path, "schema", "the grammar writes the value as text")
        return inner if said is None else said

    def resolved(self, node: Node) -> Node:
        """Return what a reference leads to."""
        seen: set[str] = set()
        while isinstance(node, Ref) and node.rule not in seen:
            seen.add(node.rule)
            node = self.source[node.rule]
        return node


_VALUES = (JsonValue(), nodes.PythonValue())
"""What reads any value, and is written as a schema says."""
_ABOUT_ENTRIES = frozenset(("required", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties"))
"""Keywords about several arguments at once."""
_WORDS = frozenset(("integer", "number", "boolean", "null"))
"""Types whose values are short, and the same as text."""
_OF_WORDS = frozenset("truefalsn0123456789+-.eE")
_NOTHING_MORE = frozenset(("type", "title", "description", "default", "examples", "$defs", "definitions"))


def _entry(parts: tuple[Node, ...]) -> bool:
    roles = [part.role for part in parts if isinstance(part, Tag)]
    return Role.KEY in roles and Role.VALUE in roles


def _as_text(node: Node, schema: JsonSchema) -> Node | None:
    """Return how a value of the schema is written where the grammar reads text; None when its text may be anything."""
    if not isinstance(node, Until):
        return None
    try:
        reading = read_schema(schema)
    except GrammarError:
        return None
    options = list(options_of(reading.shape, reading.definitions))
    words = [option.value for option in options if isinstance(option, shapes.Constant)]
    if len(words) == len(options) and all(isinstance(word, str) and word for word in words):
        free = not any(stop in word for word in words for stop in node.stops)
        return Choice(tuple(map(Literal, words))) if free else None
    # A stop in the text of a value would cut it.
    safe = not any(_OF_WORDS.issuperset(stop) for stop in node.stops)
    return JsonValue(schema) if safe and kinds_of(reading.shape, reading.definitions) <= _WORDS else None


def _says_more(schema: JsonSchema) -> bool:
    """Return whether the schema says more than that a value is a string."""
    if isinstance(schema, bool):
        return not schema
    return schema.get("type", "string") != "string" or not schema.keys() <= _NOTHING_MORE


def _with_definitions(schema: JsonSchema, parameters: Mapping[str, Any]) -> JsonSchema:
    if not isinstance(schema, Mapping):
        return schema
    return {**{name: parameters[name] for name in ("$defs", "definitions") if name in parameters}, **schema}


def _as_object(parameters: JsonSchema) -> JsonSchema:
    return {"type": "object", **parameters} if isinstance(parameters, Mapping) else {"type": "object"}
