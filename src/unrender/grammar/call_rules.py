"""Writes one tool call as nodes: the function's skeleton, and its arguments, each with its name and its value.

Rules: arguments are in the order in which the schema declares them, or sorted by name: templates write the caller's
order or sort it. Raw text is generated up to the value's end marker and never contains it, with or without the layout
before the marker, since the parser ends the value at either. Parts of a schema that a codec can't express are reported, and the value
allows more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import whitespace
from typing import Any, assert_never

from unrender import nodes
from unrender.answer.follow import closing_tag, written_stops
from unrender.answer.nodes import Calls, Element, Marker, literal_of
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
"""Writes a JSON value, by its shape and a name for its rules."""


@dataclass
class CallWriter:
    """Writes calls to `tool`: the skeleton, then all arguments, then one argument, and at last one value."""

    calls: Calls
    tool: str
    parameters: Reading
    """The schema of the arguments."""
    rules: Rules
    """The rules that a call refers to."""
    write_json: JsonWriter
    report: ReportLoss
    roles: bool
    """The parts of the call are tagged."""
    recursive: dict[tuple[str, str], str] = field(default_factory=dict)
    """The rules of the tags that refer to themselves, by tag and shape."""

    def __post_init__(self) -> None:
        self.arguments, self.codec = self.calls.arguments, self.calls.arguments.codec
        self.notation = notation_of(self.codec)
        self.hint: str = f"args-{self.tool}"

    def call(self) -> Node:
        """Return the node of a call, without the markers around each call."""
        return sequence_of([self.part(part) for part in self.calls.function])

    @cached_property
    def objects(self) -> list[Object]:
        """The shapes of all arguments together, those of objects only."""
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
                # `{"name": "say \\"hi\\""}`: where the whole call is JSON, its name is written as JSON.
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
        """Return `node` with its role, if requested."""
        return Tag(role, node) if self.roles else node

    def all_arguments(self) -> Node:
        """Return the node of all arguments together."""
        objects = self.objects or [ANY_OBJECT]
        if self.arguments.entry:
            options = [node for shape in objects for node in self.entries(shape)]
        else:
            start, end = Literal(self.arguments.open.text), Literal(self.arguments.close.text)
            values = [self.container(shape, self.hint) for shape in objects]
            if self.codec.escapes:  # `"{\"city\": …}"`: the object is in a string.
                values = [Sequence((Literal('"'), node, Literal('"'))) for node in values]
            options = [Sequence((start, node, end)) if start.text + end.text else node for node in values]
        empty = self.arguments.empty
        bare = not (self.arguments.open.text + self.arguments.close.text or self.arguments.entry)
        if bare and self.codec.containers is Containers.JSON and empty == "{}":
            empty = None  # An object without properties is written like that anyway.
        if empty is not None and any(shape.minimum == 0 and not _required(shape.properties) for shape in objects):
            options.append(Literal(empty))
        return any_pattern(options if len(options) == 1 else list(dict.fromkeys(options)))

    # One entry for each argument.

    def entries(self, shape: Object) -> Iterator[Node]:
        """Yield the arguments in the order of the schema and, where that differs, sorted."""
        written = [found for item in shape.properties for found in self.written_property(item)]
        nodes = {
            item.name: self.rule(item.name, self.entry(item.name, item.shape, f"{self.hint}-{item.name}"))
            for item in written
        }
        extra = self.extra(shape)
        elsewhere = self.arguments.empty is not None
        optional = not elsewhere and not _required(written) and not (extra and extra.minimum)
        # Both orders share the rules of the entries; where they are equal, there is one.
        by_name = sorted(written, key=lambda item: item.name)
        for order in (written,) if by_name == written else (written, by_name):
            items = [(nodes[item.name], item.required) for item in order]
            body = chain(items, extra, Literal(self.arguments.separator.text), self.rules, self.hint)
            # None at all is `empty`, if that is something else.
            if body is not None or not elsewhere:
                inside = EMPTY if body is None else Optional(body) if optional else body
                yield in_sequence(Literal(self.arguments.open.text), inside, Literal(self.arguments.close.text))

    def written_property(self, item: Property) -> Iterator[Property]:
        """Yield the property as it is written: where null is left out, null is an absent argument."""
        if not self.codec.omits_null:
            yield item
            return
        # `{"anyOf": [text, null]}`, required: null is written by leaving it out, so the argument is optional.
        options = list(alternatives(item.shape))
        kept = [option for option in options if option not in (shapes.Null(), shapes.Constant("null"))]
        if kept:
            yield Property(item.name, union(kept), item.required and len(kept) == len(options))

    def rule(self, name: str, node: Node) -> Ref:
        return self.rules.add(f"{self.hint}-{name}", node)

    def extra(self, shape: Object) -> Extra | None:
        """Return undeclared arguments; None if their names can't be expressed."""
        if not shape.extra:
            return None
        if self.arguments.entry.count(Slot.KEY) != 1:
            self.report("#", "additionalProperties", "the argument's name is written twice, and may be anything")
            return None
        if any(keys.pattern is not None for keys, _ in shape.extra):
            self.report("#", "propertyNames", "a name without quotes may be any word")
        # An extra argument with a declared name would bypass the schema of the declared argument.
        keys = shape.extra[0][0] if len(shape.extra) == 1 else Text()
        names = {"", *(item.name for item in shape.properties), *keys.excluded}
        key = all_but(names, WORDS, (keys.minimum, keys.maximum or None))
        value = union([value for _, value in shape.extra])
        node = self.entry(key, value, f"{self.hint}-extra")
        return Extra(self.rule("extra", node), shape.minimum, shape.maximum)

    # One argument.

    def entry(self, key: str | Node, shape: Shape, hint: str) -> Node:
        """Return the nodes of one argument.

        When a word states its type, there is an option for each type that it may have.
        """
        if Slot.TYPE not in self.arguments.entry or self.codec.typed_by is not Typing.ATTRIBUTE:
            return self.typed_entry(key, shape, "", hint)
        # `<p a text>x</p>` or `<p a num>1</p>`: the word and the value have to go together.
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
                # Where a value may be something else than text, tags of its own name are counted in it.
                counted = not isinstance(self.resolved(shape), Text)
                tag = closing_tag(self.arguments, key, counted=counted) if isinstance(key, str) else ()
                parts.append(self.told(Role.ARGUMENT, self.value(shape, tag or self.stops, hint)))
            elif isinstance(part, Marker):
                ways = (part.text, *(part.text.replace(part.core, other.text) for other in part.others))
                parts.append(Choice(tuple(map(Literal, ways))) if part.others else Literal(part.text))
        return sequence_of(parts)

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The texts that end a value."""
        return written_stops(self.calls, self.objects)

    # One value.

    def value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of a value that one of `stops` follows."""
        # `{"type": ["integer", "null"]}` is digits or the word; `{"type": ["string", "null"]}` is any text.
        found, options, text = list(alternatives(self.resolved(shape))), list[Node](), self.any_text(stops)
        for option in found:
            options.append(self.one_value(option, stops, hint))
            # Any text up to the stop includes the other options, `12` and `null` are texts as well; but not nested tags.
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
        """True if a text may hold the quote that ends it, with nothing escaped, as in `f(a='it's')`."""
        in_code = self.arguments.in_code and self.arguments.close.core == ")"
        return in_code and len(self.codec.string_close) == 1 and not self.codec.escapes

    def text_with_quotes(self) -> Node:
        """Return the nodes of such a text: a quote ends it where a comma or the bracket follows, and not before a letter."""
        quote, blank = (Chars(tuple((char, char) for char in text)) for text in (self.codec.string_close, whitespace))
        others = Chars((*quote.ranges, *blank.ranges, (",", ","), (")", ")")), negated=True)
        quoted = Sequence((Repeat(quote, 1), Repeat(blank), others))
        inside = Repeat(Choice((replace(quote, negated=True), quoted)))
        # `'say 'hi''`: the last of several quotes ends it.
        return Sequence((Literal(self.codec.string_open), inside, Repeat(quote, 1)))

    def raw_constant(self, written: str, stops: tuple[str, ...], hint: str) -> Node:
        # The enum ["x", "</a>"]: its second value would end before it begins.
        if any(stop in written for stop in stops):
            self.report(self.path(hint), "enum", f"the value {written!r:.60} contains the marker that ends it")
            return self.any_text(stops)
        return Literal(written)

    def raw_text(self, shape: Text, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of raw text.

        The schema's keywords are enforced only if no text could contain a stop; otherwise they are reported as lost.
        """
        # `^[a-z]+$` has no `<`, so `</a>` cannot come in it; `^.*$` may hold the marker that ends it.
        if shape.pattern is not None and all(cannot_contain(shape.pattern, stop) for stop in stops):
            return encoded_node(shape.pattern, raw_alphabet(self.codec))
        for keyword in keywords_of(shape):
            self.report(self.path(hint), keyword, "raw text ends at its marker, whatever comes before it")
        return self.any_text(stops)

    def any_text(self, stops: tuple[str, ...]) -> Node:
        """Return the nodes of all raw text before one of `stops`."""
        # `a \"b\"/>`: text that escapes what it would end at is written sign by sign.
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
                # Templates that write lists with `str()` may still write objects with `tojson`.
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
        """Return a list or an object as tags in the style of the arguments."""
        match shape:
            case Object():
                if shape.extra:
                    self.report(self.path(hint), "additionalProperties", "tags are named twice, and may be anything")
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
        """Return one tag. The tag of a recursive shape is a rule that refers to itself."""
        # `<node><node/></node>`: written out, a tree of tags would never end.
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
    """Return whether one of them must be there."""
    return any(item.required for item in properties)
