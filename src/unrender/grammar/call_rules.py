"""Writes a tool call as nodes: the function's skeleton, and its arguments with their names and values.

Rules: arguments are in schema order or sorted by name, since templates use either order. Raw text never contains the value's end marker,
with or without the whitespace before it, since the parser ends the value at either. If a codec can't express a part of a schema, that part
is reported, and the grammar also allows other values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import whitespace
from typing import Any, assert_never

from unrender import nodes
from unrender.answer import Calls, Element, Marker, literal_of
from unrender.answer.views import CallView
from unrender.format import Containers, Slot, Strings, Typing
from unrender.grammar.spelling import Extra, Speller, chain, keywords_of
from unrender.nodes import (
    EMPTY,
    Chars,
    Choice,
    Literal,
    Node,
    Optional,
    Ref,
    Repeat,
    Role,
    Rules,
    Sequence,
    Tag,
    in_sequence,
    sequence_of,
)
from unrender.nodes.patterns import any_pattern
from unrender.nodes.texts import WORDS, all_but, cannot_contain, encoded_node
from unrender.schema import shapes
from unrender.schema.admission import kinds_of
from unrender.schema.conjuncts import ReportLoss
from unrender.schema.reader import Reading
from unrender.schema.shapes import Object, Property, Shape, Text, alternatives, union
from unrender.values.json_text import escape
from unrender.values.notations import PYTHON_OR_JSON, Lexicon, escaped_json, notation_of, raw_alphabet

ANY_OBJECT = Object(extra=((Text(), shapes.Anything()),))


_BY_TYPE: dict[str, Shape] = {
    "string": Text(),
    "number": shapes.Number(),
    "boolean": shapes.Boolean(),
    "null": shapes.Null(),
    "array": shapes.Array(),
    "object": ANY_OBJECT,
}


_ID = Chars((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")), minimum=1, maximum=64)
_LETTERS_AND_DIGITS = (("0", "9"), ("A", "Z"), ("a", "z"))
_COUNTER = Choice((Literal("0"), Sequence((Chars((("1", "9"),)), Chars((("0", "9"),), minimum=0, maximum=3)))))


JsonWriter = Callable[[Reading, str], Node]
"""Writes a JSON value, given its shape and a name for its rules."""


@dataclass
class CallWriter:
    """Writes the calls of `tool` as nodes, from the skeleton down to single values."""

    calls: Calls
    tool: str
    parameters: Reading
    """The schema of the arguments."""
    rules: Rules
    """The rules that the call refers to."""
    write_json: JsonWriter
    report: ReportLoss
    roles: bool
    """True if the parts of the call are tagged with roles."""
    recursive: dict[tuple[str, str], str] = field(default_factory=dict)
    """Rules for recursive tags, by tag and shape."""

    def __post_init__(self) -> None:
        self.arguments, self.codec = self.calls.arguments, self.calls.arguments.codec
        self.notation = notation_of(self.codec)
        self.hint: str = f"args-{self.tool}"

    def call(self) -> Node:
        """Return the node of a call, without the markers around the call."""
        return sequence_of([self.part(part) for part in self.calls.function])

    @cached_property
    def objects(self) -> list[Object]:
        """The possible shapes of the arguments, limited to objects."""
        options = alternatives(self.resolved(self.parameters.shape))
        return [shape for shape in options if isinstance(shape, Object)]

    def resolved(self, shape: Shape) -> Shape:
        if isinstance(shape, shapes.Reference):
            return self.parameters.definitions[shape.name]
        if isinstance(shape, shapes.Union):
            return union([self.resolved(option) for option in shape.options])
        return shape

    def part(self, part: Element) -> Node:
        match part:
            case Marker(text):
                return Literal(text)
            case Slot.NAME:
                # If the complete call is JSON, escape the name as in JSON: `{"name": "say \\"hi\\""}`.
                in_json = literal_of(self.calls.function[0]).lstrip().startswith("{")
                return self.told(Role.NAME, Literal(escape(self.tool) if in_json else self.tool))
            case Slot.ARGUMENTS:
                return self.told(Role.ARGUMENT, self.all_arguments())
            case Slot.ID:
                length = self.calls.id_length
                exact = Chars(_LETTERS_AND_DIGITS, minimum=length, maximum=length)
                return self.told(Role.ID, exact if length else _ID)
            case Slot.INDEX:
                return _COUNTER
        return EMPTY

    def told(self, role: Role, node: Node) -> Node:
        """Return `node`, tagged with `role` if tags are requested."""
        return Tag(role, node) if self.roles else node

    def all_arguments(self) -> Node:
        """Return the node of all arguments together."""
        objects = self.objects or [ANY_OBJECT]
        if self.arguments.entry:
            options = [node for shape in objects for node in self.entries(shape)]
        else:
            start, end = Literal(self.arguments.open.text), Literal(self.arguments.close.text)
            values = [self.container(shape, self.hint) for shape in objects]
            if self.codec.escapes:  # The object is inside a string: `"{\"city\": …}"`
                values = [Sequence((Literal('"'), node, Literal('"'))) for node in values]
            options = [Sequence((start, node, end)) if start.text + end.text else node for node in values]
        empty = self.arguments.empty
        bare = not (self.arguments.open.text + self.arguments.close.text or self.arguments.entry)
        if bare and self.codec.containers is Containers.JSON and empty == "{}":
            empty = None  # An object without properties already has the text `empty`.
        if empty is not None and any(shape.minimum == 0 and not _required(shape.properties) for shape in objects):
            options.append(Literal(empty))
        return any_pattern(options if len(options) == 1 else list(dict.fromkeys(options)))

    # Argument entries.

    def entries(self, shape: Object) -> Iterator[Node]:
        """Yield the arguments in schema order. If sorting them by name gives another order, also yield that order."""
        written = [found for item in shape.properties for found in self.written_property(item)]
        nodes = {
            item.name: self.rule(item.name, self.entry(item.name, item.shape, f"{self.hint}-{item.name}"))
            for item in written
        }
        extra = self.extra(shape)
        elsewhere = self.arguments.empty is not None
        optional = not elsewhere and not _required(written) and not (extra and extra.minimum)
        # Both orders share the rules of the entries.
        by_name = sorted(written, key=lambda item: item.name)
        for order in (written,) if by_name == written else (written, by_name):
            items = [(nodes[item.name], item.required) for item in order]
            body = chain(items, extra, Literal(self.arguments.separator.text), self.rules, self.hint)
            # If there are no arguments, the format's `empty` text is generated, if it has one.
            if body is not None or not elsewhere:
                inside = EMPTY if body is None else Optional(body) if optional else body
                yield in_sequence(Literal(self.arguments.open.text), inside, Literal(self.arguments.close.text))

    def written_property(self, item: Property) -> Iterator[Property]:
        """Yield the property as it's generated. If the format omits null, a nullable property becomes optional."""
        if not self.codec.omits_null:
            yield item
            return
        # A required `{"anyOf": [text, null]}` is optional here, since null is written by omitting the argument.
        options = list(alternatives(item.shape))
        kept = [option for option in options if option not in (shapes.Null(), shapes.Constant("null"))]
        if kept:
            yield Property(item.name, union(kept), item.required and len(kept) == len(options))
        elif item.required:
            self.report(self.path(f"{self.hint}-{item.name}"), "required", "the format has no text for null")

    def rule(self, name: str, node: Node) -> Ref:
        return self.rules.add(f"{self.hint}-{name}", node)

    def extra(self, shape: Object) -> Extra | None:
        """Return the entries for undeclared arguments. Returns None if there are none, or if a grammar can't express their names."""
        if not shape.extra:
            return None
        if self.arguments.entry.count(Slot.KEY) != 1:
            self.report(
                "#", "additionalProperties", "the argument's name is written twice, which a grammar cannot match"
            )
            return None
        if any(keys.pattern is not None for keys, _ in shape.extra):
            self.report("#", "propertyNames", "a name without quotes may be any word")
        # Exclude declared names: an extra argument with such a name would bypass the schema of the declared argument.
        keys = shape.extra[0][0] if len(shape.extra) == 1 else Text()
        names = {"", *(item.name for item in shape.properties), *keys.excluded}
        key = all_but(names, WORDS, (keys.minimum, keys.maximum or None))
        value = union([value for _, value in shape.extra])
        node = self.entry(key, value, f"{self.hint}-extra")
        return Extra(self.rule("extra", node), shape.minimum, shape.maximum)

    # A single argument.

    def entry(self, key: str | Node, shape: Shape, hint: str) -> Node:
        """Return the nodes of one argument.

        If the entry contains a type word, there is one option per possible type.
        """
        if Slot.TYPE not in self.arguments.entry or self.codec.typed_by is not Typing.ATTRIBUTE:
            return self.typed_entry(key, shape, "", hint)
        # The type word must match the type of the value: `<p a text>x</p>` or `<p a num>1</p>`.
        by_word: dict[str, list[Shape]] = {}
        words = dict(self.codec.types)
        for option in alternatives(self.resolved(shape)):
            kinds = kinds_of(option, self.parameters.definitions)
            for kind, whole in _BY_TYPE.items():
                if kind in kinds or (kind == "number" and "integer" in kinds):
                    found = whole if isinstance(option, shapes.Anything) else option
                    by_word.setdefault(words.get(kind, kind), []).append(found)
        options = [self.typed_entry(key, union(found), word, hint) for word, found in by_word.items()]
        return any_pattern(options)

    def typed_entry(self, key: str | Node, shape: Shape, word: str, hint: str) -> Node:
        parts: list[Node] = []
        for part in self.arguments.entry:
            if part is Slot.TYPE:
                parts.append(Literal(word))
            elif part is Slot.KEY:
                parts.append(Literal(key) if isinstance(key, str) else key)
            elif part is Slot.VALUE:
                # Count nested tags with the argument's name to find the end of the value, except in string values.
                counted = not isinstance(self.resolved(shape), Text)
                stops = self.view.excluded(key if isinstance(key, str) else "", self.names, counted=counted)
                parts.append(self.told(Role.ARGUMENT, self.value(shape, stops, hint)))
            elif isinstance(part, Marker):
                ways = (part.text, *(part.text.replace(part.core, other.text) for other in part.others))
                parts.append(Choice(tuple(map(Literal, ways))) if part.others else Literal(part.text))
        return sequence_of(parts)

    @cached_property
    def view(self) -> CallView:
        """The parser's view of the calls, whose `excluded` says what values can't contain."""
        return CallView(self.calls)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments. Empty if the schema allows others."""
        known = dict.fromkeys(item.name for shape in self.objects for item in shape.properties)
        return () if any(shape.extra for shape in self.objects) else tuple(known)

    # A single value.

    def value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of a value that is followed by one of `stops`."""
        # `{"type": ["integer", "null"]}` becomes digits or `null`. `{"type": ["string", "null"]}` becomes any text.
        found, options, text = list(alternatives(self.resolved(shape))), list[Node](), self.any_text(stops)
        for option in found:
            options.append(self.one_value(option, stops, hint))
            # Any text already covers values such as `12` and `null`, so the other options are dropped, except for nested tags.
            if options[-1] == text and self.codec.containers is not Containers.XML:
                return text
        if text in options:
            tags = zip(found, options, strict=True)
            options = [text, *(node for option, node in tags if isinstance(option, Object | shapes.Array))]
        return any_pattern(options if len(options) == 1 else list(dict.fromkeys(options)))

    def one_value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        raw = self.notation.unquoted
        match shape:
            case shapes.Anything() if raw or self.codec.containers is Containers.XML:
                return self.any_text(stops)
            case shapes.Constant(text) if raw and text.startswith('"'):
                return self.raw_constant(self.notation.write(json.loads(text)), stops, hint)
            case Text() if raw:
                return self.raw_text(shape, stops, hint)
            case Text() if shape == Text() and self.holds_quotes:
                return self.text_with_quotes()
            case shapes.Array() | shapes.Object() | shapes.Anything():
                return self.container(shape, hint)
            case shapes.Constant(text) if text[0] in "[{":
                return self.container(shape, hint)
        return self.speller(self.notation.scalars, hint).spell(shape, hint)

    @property
    def holds_quotes(self) -> bool:
        """True if a string may contain its unescaped closing quote, as in `f(a='it's')`."""
        in_code = self.arguments.in_code and self.arguments.close.core == ")"
        return in_code and len(self.codec.string_close) == 1 and not self.codec.escapes

    def text_with_quotes(self) -> Node:
        """Return the nodes of a string with unescaped quotes. A quote closes the string only before a comma or bracket.

        Inside the string, a quote never follows a backslash, because the parser can't tell whether the backslash escapes it.
        """
        quote, blank, slash = (
            Chars(tuple((char, char) for char in text)) for text in (self.codec.string_close, whitespace, "\\")
        )
        plain = Chars((*quote.ranges, *slash.ranges), negated=True)
        others = Chars((*plain.ranges, *blank.ranges, (",", ","), (")", ")")), negated=True)
        slashes = Sequence((Repeat(slash, 1), plain))
        quoted = Sequence((Repeat(quote, 1), Repeat(blank), Choice((others, slashes))))
        inside = Repeat(Choice((plain, slashes, quoted)))
        # The last of several consecutive quotes closes the string: `'say 'hi''`.
        end = Choice((Repeat(quote, 1), Sequence((Repeat(slash, 1), quote))))
        return Sequence((Literal(self.codec.string_open), inside, end))

    def raw_constant(self, written: str, stops: tuple[str, ...], hint: str) -> Node:
        # An enum value that contains its own end marker can't be parsed, so the enum isn't enforced.
        if any(stop in written for stop in stops):
            self.report(self.path(hint), "enum", f"the value {written!r:.60} contains the marker that ends it")
            return self.any_text(stops)
        return Literal(written)

    def raw_text(self, shape: Text, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of raw text.

        The schema's keywords are enforced only if a matching text can't contain a stop. Keywords that aren't enforced are reported.
        """
        # A pattern is enforced only if its texts can't contain a stop: `^[a-z]+$` can't contain `</a>`, but `^.*$` can.
        if shape.pattern is not None and all(cannot_contain(shape.pattern, stop) for stop in stops):
            return encoded_node(shape.pattern, raw_alphabet(self.codec))
        for keyword in keywords_of(shape):
            self.report(self.path(hint), keyword, "raw text ends at the first end marker")
        return self.any_text(stops)

    def any_text(self, stops: tuple[str, ...]) -> Node:
        """Return the nodes of any raw text before one of `stops`."""
        # If the format escapes the end marker inside values, as in `a \"b\"/>`, the text is generated character by character.
        escaped = dict(self.codec.escapes)
        character = raw_alphabet(self.codec).general if all(stop[:1] in escaped for stop in stops) else None
        return Repeat(character) if character else nodes.Until(stops)

    def path(self, hint: str) -> str:
        name = hint.removeprefix(self.hint).strip("-")
        return f"#/properties/{name}" if name else "#"

    def container(self, shape: Shape, hint: str) -> Node:
        match self.codec.containers:
            case Containers.JSON if self.codec.escapes and self.codec.strings is not Strings.QUOTED:
                return self.speller(escaped_json(self.codec), hint).spell(shape, hint)
            case Containers.JSON:
                return self.write_json(replace(self.parameters, shape=shape, unsupported=()), hint)
            case Containers.PYTHON if isinstance(shape, Object) and self.arguments.entry:
                # Allow both notations, since templates that format lists with `str()` may still format objects with `tojson`.
                return any_pattern([self.speller(found, hint).spell(shape, hint) for found in PYTHON_OR_JSON])
            case Containers.PYTHON | Containers.BARE:
                return self.speller(self.notation.inside, hint).spell(shape, hint)
            case Containers.XML:
                return self.tags(shape, hint)
            case _:
                assert_never(self.codec.containers)

    def speller(self, lexicon: Lexicon, hint: str) -> Speller:
        def report(keyword: str, reason: str) -> None:
            self.report(self.path(hint), keyword, reason)

        return Speller(lexicon, self.rules, self.parameters.definitions, self.hint, report)

    # Nested tags.

    def tags(self, shape: Shape, hint: str) -> Node:
        """Return an array or object as nested tags in the style of the arguments."""
        match shape:
            case Object():
                if shape.extra:
                    self.report(
                        self.path(hint),
                        "additionalProperties",
                        "a tag's name is written twice, which a grammar cannot match",
                    )
                items = [(self.tag(item.name, item.shape, hint), item.required) for item in shape.properties]
                body = chain(items, None, EMPTY, self.rules, hint)
                return EMPTY if body is None else body if _required(shape.properties) else Optional(body)
            case shapes.Array():
                first = [self.tag(self.codec.item_tag, item, hint) for item in shape.prefix]
                if isinstance(shape.items, shapes.Nothing):
                    return Sequence(tuple(first))
                least = max(shape.minimum - len(first), 0)
                most = None if shape.maximum is None else shape.maximum - len(first)
                return Sequence((*first, Repeat(self.tag(self.codec.item_tag, shape.items, hint), least, most)))
        assert isinstance(shape, shapes.Constant)
        return self.constant_tags(json.loads(shape.json), hint)

    def tag(self, name: str, shape: Shape, hint: str) -> Ref:
        """Return one tag. A recursive shape becomes a rule that refers to itself."""
        # Without a rule, nested tags such as `<node><node/></node>` would expand forever.
        inner = f"{hint}-{name}"
        if not isinstance(shape, shapes.Reference):
            return self.rules.add(inner, self.entry(name, shape, inner))
        key = (name, shape.name)
        if key not in self.recursive:
            self.recursive[key] = self.rules.reserve(inner)
            self.rules.define(self.recursive[key], self.entry(name, shape, inner))
        return Ref(self.recursive[key])

    def constant_tags(self, value: dict[str, Any] | list[Any], hint: str) -> Node:
        pairs = value.items() if isinstance(value, dict) else [(self.codec.item_tag, item) for item in value]
        return Sequence(tuple(self.tag(name, shapes.Constant(json.dumps(item)), hint) for name, item in pairs))


def _required(properties: Iterable[Property]) -> bool:
    """Return True if any property is required."""
    return any(item.required for item in properties)
