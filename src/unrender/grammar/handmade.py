"""Adapts a handwritten grammar to a request: the required number of calls, and only offered tools.

The author of a grammar writes only one call for all tools. For each tool, the call is copied: the tool's name replaces the name node, and
its schema restricts the arguments. Rules: parsing always uses the original grammar. The adapted copies are only for generation. Keywords
that entries can't express, such as `required`, are reported.

To count calls, `counted` creates a copy of each node for each required count. If only one part of a sequence can contain a call, only that
part is copied, so typical grammars don't grow. Nodes that can no longer match are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never

from unrender import nodes
from unrender.errors import GrammarError
from unrender.format import TurnTexts
from unrender.json_values import JsonSchema
from unrender.limits import MAX_PARTS
from unrender.messages import Request, Tool
from unrender.nodes import Choice, Grammar, JsonValue, Literal, Node, Optional, Ref, Repeat, Role, Rules, Sequence, Tag
from unrender.schema import shapes
from unrender.schema.admission import kinds_of, options_of
from unrender.schema.reader import Unsupported, read_schema


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """Cache key that compares grammars by identity instead of content."""

    grammar: Grammar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.grammar is self.grammar

    def __hash__(self) -> int:
        return id(self.grammar)


NEVER = Choice(())
"""Matches nothing."""


class CallCount(StrEnum):
    """The required number of calls in an answer."""

    ANY = "any"
    NONE = "none"
    ONE = "one"
    AT_MOST_ONE = "at-most-one"
    SOME = "some"
    """One or more calls."""

    @property
    def allows_none(self) -> bool:
        return self in (CallCount.ANY, CallCount.NONE, CallCount.AT_MOST_ONE)


_SHARES = {
    CallCount.NONE: ((CallCount.NONE, CallCount.NONE),),
    CallCount.ONE: ((CallCount.ONE, CallCount.NONE), (CallCount.NONE, CallCount.ONE)),
    CallCount.AT_MOST_ONE: ((CallCount.ONE, CallCount.NONE), (CallCount.NONE, CallCount.AT_MOST_ONE)),
    CallCount.SOME: ((CallCount.SOME, CallCount.ANY), (CallCount.NONE, CallCount.SOME)),
}
"""Ways to divide the number of calls between a part and the parts after it."""

_WANTED = {
    "none": CallCount.NONE,
    "auto": CallCount.ANY,
    "required": CallCount.SOME,
    "named": CallCount.ONE,
}
_AT_MOST_ONE = {CallCount.ANY: CallCount.AT_MOST_ONE, CallCount.SOME: CallCount.ONE}


def ends_of(turn: TurnTexts) -> tuple[str, ...]:
    """Return the texts that end a turn, each with and without its leading whitespace."""
    texts = (form for end in (turn.end, *turn.ends) if end.strip() for form in (end.rstrip(), end.strip()))
    return tuple(dict.fromkeys(texts))


def literals_of(grammar: Grammar) -> Iterator[str]:
    """Yield the literals of the grammar, and the stops of its free text."""
    for root in (grammar.root, *grammar.rules.values()):
        for node in nodes.walk(root):
            if isinstance(node, Literal):
                yield node.text
            elif isinstance(node, nodes.Until):
                yield from node.stops


def stopped_at(grammar: Grammar, ends: tuple[str, ...]) -> Grammar:
    """Return the grammar with the end-of-turn texts as additional stops of free text.

    >>> stopped_at(Grammar(nodes.Until(("<call>",))), ("<end>",)).root
    Until(stops=('<call>', '<end>'))
    """

    def stopped(node: Node) -> Node:
        return nodes.Until(tuple(dict.fromkeys((*node.stops, *ends)))) if isinstance(node, nodes.Until) else node

    rules = {name: nodes.rewrite(node, stopped) for name, node in grammar.rules.items()}
    return Grammar(nodes.rewrite(grammar.root, stopped), rules)


def check_request(request: Request) -> None:
    """Raise `GrammarError` if the request has a response schema or a reasoning format.

    Handwritten grammars define content and reasoning themselves.
    """
    if request.response_schema is not None:
        raise GrammarError("response_format: not supported with a handwritten grammar, found a schema")
    if request.reasoning_format != "auto":
        raise GrammarError(
            f"reasoning_format: not supported with a handwritten grammar, found {request.reasoning_format!r}"
        )


def check_references(grammar: Grammar) -> None:
    """Raise `GrammarError` if a `Ref` refers to an undefined rule."""
    for node in (grammar.root, *grammar.rules.values()):
        for name in nodes.references(node):
            if name not in grammar.rules:
                raise GrammarError(f"rule {name!r} is not defined; defined are {sorted(grammar.rules)}")


def written_for(grammar: Grammar, request: Request) -> tuple[Grammar, tuple[Unsupported, ...]]:
    """Return the grammar for generating one turn, and the schema keywords that it can't enforce.

    If the request doesn't restrict tool names, the grammar's calls aren't changed. Raises `GrammarError` if `check_request` or
    `check_references` fails, if no answer can contain the required number of calls, or if text may follow an `End`.
    """
    check_request(request)
    check_references(grammar)
    _check_ends(grammar)
    wanted = _WANTED[request.tool_choice] if request._calls_allowed else CallCount.NONE
    found = counted(grammar, _AT_MOST_ONE.get(wanted, wanted) if request._one_call else wanted)
    if request.tools is None or not request._calls_allowed:
        return found, ()
    named = request.tool(request.named_tool)
    writer = _Writer(found.rules, (named,) if named else request.tools)
    writer.made.merge(found.rules)  # Reserve the names of existing rules.
    for name, node in found.rules.items():
        writer.made.define(name, writer.around_calls(node))
    return Grammar(writer.around_calls(found.root), writer.made.table), tuple(dict.fromkeys(writer.unsupported))


def _check_ends(grammar: Grammar) -> None:
    """Raise `GrammarError` if text may follow an `End`, since no grammar dialect can forbid such text."""
    seen: set[tuple[str, bool]] = set()
    # The queue contains each node with a flag that is True if nothing follows the node. The end is last in `a end`, but not in `(a end)*`.
    queue: list[tuple[Node, bool]] = [(grammar.root, True)]
    for node, last in queue:
        match node:
            case nodes.End() if not last:
                raise GrammarError("end(): text may follow it, which a grammar cannot forbid; use separators instead")
            case Ref(rule) if (rule, last) not in seen:
                seen.add((rule, last))
                queue.append((grammar.rules[rule], last))
            case Sequence(parts):
                taking = [at for at, part in enumerate(parts) if not isinstance(part, nodes.End | nodes.Cut)]
                queue.extend((part, last and at >= max(taking, default=0)) for at, part in enumerate(parts))
            case nodes.Repeat(maximum=most):
                queue.extend((child, last and most == 1) for child in nodes.children(node))
            case Choice() | Optional() | Tag() | nodes.Atomic() | nodes.Peek() | nodes.Negate() | nodes.Leaf() | Ref():
                queue.extend((child, last) for child in nodes.children(node))
            case _:
                assert_never(node)


@dataclass(slots=True)
class _Writer:
    source: Mapping[str, Node]
    tools: tuple[Tool, ...]
    made: Rules = field(default_factory=Rules)
    copies: dict[tuple[str, str], Ref] = field(default_factory=dict)
    """Maps a rule and a tool name to the copy of the rule for that tool."""
    unsupported: list[Unsupported] = field(default_factory=list)

    def report(self, tool: Tool, path: str, keyword: str, reason: str) -> None:
        self.unsupported.append(Unsupported(path=path, keyword=keyword, reason=reason, tool=tool.name))

    def around_calls(self, node: Node) -> Node:
        """Return the adapted copy of a node outside calls."""
        if isinstance(node, Tag) and node.role is Role.CALL:
            calls = [replace(node, node=self.inside(node.node, tool)) for tool in self.tools]
            return calls[0] if len(calls) == 1 else Choice(tuple(calls))
        return nodes.with_children(node, self.around_calls)

    def inside(self, node: Node, tool: Tool) -> Node:
        """Return the adapted copy of a node inside a call of `tool`."""
        match node:
            case Ref(rule):
                return self.copy(rule, tool)
            case Tag(role=Role.NAME):
                return replace(node, node=Literal(tool.name))
            case Tag(role=Role.ARGUMENT, node=inner):
                return replace(node, node=self.whole(inner, tool))
            case Tag(role=Role.KEY):
                self.report(
                    tool, "#", "properties", "the grammar does not pair the names of arguments with their values"
                )
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
        """Return the node for all arguments of a tool."""
        node = self.resolved(inner)
        if node not in _VALUES:
            self.report(tool, "#", "parameters", "the grammar does not write the arguments as a value")
            return inner
        parameters = tool.parameters if isinstance(tool.parameters, Mapping) else {}
        return self.bound(node, {"type": "object", **parameters}, tool, "#")

    def bound(self, node: Node, schema: JsonSchema, tool: Tool, path: str) -> Node:
        """Return a value node restricted by the schema. If the schema is invalid, the node is returned unrestricted."""
        try:
            read_schema(schema)
        except GrammarError as error:
            self.report(tool, path, "parameters", str(error))
            schema = {"type": "object"} if path == "#" else True
        return nodes.PythonValue(schema) if isinstance(node, nodes.PythonValue) else JsonValue(schema)

    def entries(self, parts: tuple[Node, ...], tool: Tool) -> Node:
        """Return a choice of the tool's arguments. If the schema has no `properties`, the entry isn't changed."""
        parameters = tool.parameters
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if isinstance(parameters, bool) or not isinstance(properties, Mapping) or not properties:
            return Sequence(parts)
        # Entries may occur in any order and any number of times, so keywords about several arguments can't be enforced.
        for keyword in sorted(_ABOUT_ENTRIES & parameters.keys()):
            if parameters[keyword]:
                self.report(tool, "#", keyword, "a grammar cannot relate entries to each other")
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
        """Return the node of one argument's value, restricted by its schema if possible."""
        assert isinstance(tool.parameters, Mapping)
        schema = tool.parameters["properties"][key]
        if isinstance(schema, Mapping):  # A `{"$ref": "#/$defs/day"}` needs the definitions of the tool's schema.
            shared = {name: tool.parameters[name] for name in ("$defs", "definitions") if name in tool.parameters}
            schema = {**shared, **schema}
        path, node = f"#/properties/{key}", self.resolved(inner)
        if node in _VALUES:
            return self.bound(node, schema, tool, path)
        # The schema applies even if the grammar reads a value such as the 3 in `days=3` as text, because a number's text is also its JSON.
        said = _as_text(node, schema)
        if said is None and _says_more(schema):
            self.report(tool, path, "schema", "the grammar writes the value as text")
        return inner if said is None else said

    def resolved(self, node: Node) -> Node:
        """Return the target of a reference."""
        seen: set[str] = set()
        while isinstance(node, Ref) and node.rule not in seen:
            seen.add(node.rule)
            node = self.source[node.rule]
        return node


_VALUES = (JsonValue(), nodes.PythonValue())
"""Nodes that accept any value, so a schema can restrict them."""
_ABOUT_ENTRIES = frozenset(("required", "dependentRequired", "dependentSchemas", "minProperties", "maxProperties"))
"""Keywords that apply to several arguments at once."""
_WORDS = frozenset(("integer", "number", "boolean", "null"))
"""Types whose JSON form is the same as their plain text."""
_OF_WORDS = frozenset("truefalsn0123456789+-.eE")
_NOTHING_MORE = frozenset(("type", "title", "description", "default", "examples", "$defs", "definitions"))


def _entry(parts: tuple[Node, ...]) -> bool:
    roles = [part.role for part in parts if isinstance(part, Tag)]
    return Role.KEY in roles and Role.VALUE in roles


def _as_text(node: Node, schema: JsonSchema) -> Node | None:
    """Return a node for values of the schema in text form; None if the text can't be restricted."""
    if not isinstance(node, nodes.Until):
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
    # Restrict the text only if it can't contain a stop, which would truncate the value.
    safe = not any(_OF_WORDS.issuperset(stop) for stop in node.stops)
    return JsonValue(schema) if safe and kinds_of(reading.shape, reading.definitions) <= _WORDS else None


def _says_more(schema: JsonSchema) -> bool:
    """Return True if the schema has any restriction beyond `"type": "string"`."""
    if isinstance(schema, bool):
        return not schema
    return schema.get("type", "string") != "string" or not schema.keys() <= _NOTHING_MORE


# Counting calls.


def counted(grammar: Grammar, count: CallCount) -> Grammar:
    """Return the grammar restricted to answers with the given number of calls.

    Raises `GrammarError` if no such answer exists, or if a repetition of calls is too long to count.

    >>> from unrender.nodes import Literal
    >>> called = Tag(Role.CALL, Literal("<call>"))
    >>> counted(Grammar(Repeat(called)), CallCount.SOME).root
    Repeat(node=Tag(role=<Role.CALL: 'call'>, node=Literal(text='<call>')), minimum=1, maximum=None, separator=None)
    >>> counted(Grammar(Choice((called, Literal("Hi")))), CallCount.NONE).root
    Literal(text='Hi')
    """
    if count is CallCount.ANY:
        return grammar
    counter = _Counter(grammar.rules)
    found = _without_impossible(Grammar(counter.node(grammar.root, count), counter.made.table))
    if found is None:
        raise GrammarError(f"tool_choice: the grammar has no answer with this number of calls: {count.value}")
    return found


class _Counter:
    def __init__(self, rules: Mapping[str, Node]) -> None:
        self.rules = rules
        self.calling = nodes.smallest(rules, _may_call)
        self.silent = nodes.smallest(rules, _is_silent)
        self.made = Rules()
        self.made.merge(rules)
        self.copies: dict[tuple[str, CallCount], Ref] = {}

    def node(self, node: Node, count: CallCount) -> Node:
        if count is CallCount.ANY:
            return node
        if not _may_call(node, self.calling):
            return node if count.allows_none else NEVER
        match node:
            case Tag():
                return NEVER if count is CallCount.NONE else node
            case Ref(rule):
                return self.copy(rule, count)
            case Sequence(parts):
                return self.sequence(parts, count)
            case Choice(options):
                return Choice(tuple(self.node(option, count) for option in options))
            case Optional(inner):
                once = self.node(inner, count)
                return Optional(once) if count.allows_none else once
            case nodes.Atomic(inner):
                return nodes.Atomic(self.node(inner, count))
            case Repeat():
                return self.repeat(node, count)
            case nodes.Leaf() | nodes.Peek() | nodes.Negate():
                raise AssertionError(f"{type(node).__name__} holds no calls")

    def copy(self, rule: str, count: CallCount) -> Ref:
        key = (rule, count)
        if key not in self.copies:
            self.copies[key] = Ref(self.made.reserve(f"{rule}-{count.value}"))
            self.made.define(self.copies[key].rule, self.node(self.rules[rule], count))
        return self.copies[key]

    def sequence(self, parts: tuple[Node, ...], count: CallCount) -> Node:
        # In `call? "-" call?`, either part may contain the call, so "one call" becomes two options.
        callers = [at for at, part in enumerate(parts) if _may_call(part, self.calling)]
        first = callers[0]
        before, part, rest = parts[:first], parts[first], parts[first + 1 :]
        if len(callers) == 1:
            return Sequence((*before, self.node(part, count), *rest))
        options = [
            Sequence((*before, self.node(part, own), self.node(Sequence(rest), others)))
            for own, others in _SHARES[count]
        ]
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def repeat(self, node: Repeat, count: CallCount) -> Node:
        low, high, inner = node.minimum, node.maximum, node.node
        if node.separator is not None and _may_call(node.separator, self.calling):
            raise GrammarError("tool_choice: calls in the separator of a repetition cannot be counted")
        if not _is_silent(inner, self.silent):
            return self.calls(node, count)
        if count is CallCount.NONE:
            return replace(node, node=self.node(inner, count))
        # In a bounded repetition such as `(text / call){1,3}`, one limit covers the iterations before and after the call, so unroll it.
        if high is not None or low > 1:
            return self.node(_unrolled(node), count)
        between = () if node.separator is None else (node.separator,)
        # `(text / call)*` with one call becomes text, then a call, then text.
        own, others = _SHARES[count][0]
        silent = Repeat(Sequence((self.node(inner, CallCount.NONE), *between)))
        rounds = Sequence((silent, self.node(inner, own), Repeat(Sequence((*between, self.node(inner, others))))))
        if count is not CallCount.AT_MOST_ONE:
            return rounds
        return Choice((rounds, replace(node, node=self.node(inner, CallCount.NONE))))

    def calls(self, node: Repeat, count: CallCount) -> Node:
        """Return a repetition in which each iteration contains a call."""
        low, high = node.minimum, node.maximum
        if count is CallCount.SOME:
            return NEVER if high == 0 else replace(node, minimum=max(low, 1))
        none = nodes.EMPTY if low == 0 else NEVER
        one = NEVER if low > 1 or high == 0 else self.node(node.node, CallCount.ONE)
        options = {CallCount.NONE: (none,), CallCount.ONE: (one,), CallCount.AT_MOST_ONE: (one, none)}[count]
        return options[0] if len(options) == 1 else Choice(options)


def _unrolled(node: Repeat) -> Node:
    """Return the repetition as a sequence, with its bounded iterations expanded."""
    low, high = node.minimum, node.maximum
    rounds = low if high is None else high
    if rounds > MAX_PARTS:
        raise GrammarError(f"tool_choice: calls in more than {MAX_PARTS} iterations cannot be counted, found {rounds}")
    between = () if node.separator is None else (node.separator,)
    # `a{1,3}` is `a (a (a)?)?`, with separators; `a{2,}` is `a a a*`.
    tail: Node = Repeat(Sequence((*between, node.node))) if high is None else nodes.EMPTY
    for at in range(rounds, 0, -1):
        this = Sequence((*(between if at > 1 else ()), node.node, tail))
        tail = this if at <= low else Optional(this)
    return tail


def _may_call(node: Node, calling: frozenset[str]) -> bool:
    """Return True if the text of `node` may contain a call. `calling` contains the rules that may match a call."""
    match node:
        case Tag(role=Role.CALL):
            return True
        case Ref(rule):
            return rule in calling
        case nodes.Peek() | nodes.Negate():
            return False
    return any(_may_call(child, calling) for child in nodes.children(node))


def _is_silent(node: Node, rules: frozenset[str]) -> bool:
    return _is_possible(node, rules, calls=False)


def _is_possible(node: Node, rules: frozenset[str], *, calls: bool = True) -> bool:
    """Return True if there is any text that `node` matches.

    `rules` contains the rules that can match. If `calls` is False, matches that contain calls are ignored.
    """
    match node:
        case Tag(role=Role.CALL) if not calls:
            return False
        case Tag(_, inner) | nodes.Atomic(inner):
            return _is_possible(inner, rules, calls=calls)
        case Ref(rule):
            return rule in rules
        case Sequence(parts):
            return all(_is_possible(part, rules, calls=calls) for part in parts)
        case Choice(options):
            return any(_is_possible(option, rules, calls=calls) for option in options)
        case Repeat(inner, low):
            return low == 0 or _is_possible(inner, rules, calls=calls)
        case nodes.Leaf() | Optional() | nodes.Peek() | nodes.Negate():
            return True


def _without_impossible(grammar: Grammar) -> Grammar | None:
    """Return the grammar without options that can't match; None if no option is left."""
    # Rules depend on each other: without calls, `a = call` can't match, so `b = a "x"` can't match either.
    possible = nodes.smallest(grammar.rules, _is_possible)
    if not _is_possible(grammar.root, possible):
        return None

    def kept(node: Node) -> Node:
        match node:
            case Choice(options):
                able = tuple(option for option in options if _is_possible(option, possible))
                return able[0] if len(able) == 1 else Choice(able)
            case Optional(inner) | Repeat(inner, 0) if not _is_possible(inner, possible):
                return nodes.EMPTY
        return node

    rules = {name: nodes.rewrite(grammar.rules[name], kept) for name in grammar.rules if name in possible}
    root = nodes.rewrite(grammar.root, kept)
    needed = nodes.reached(nodes.references(root), lambda name: nodes.references(rules[name]))
    return Grammar(root, {name: node for name, node in rules.items() if name in needed})
