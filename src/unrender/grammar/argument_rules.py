"""Writes one argument of a call as nodes: its name, and its value in any codec.

Rules: raw text is generated up to the value's end marker and never contains it, with or without the layout before it, as
the parser ends the value at either. What a codec cannot say of a schema is reported, and the value is wider.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

from unrender.format import Arguments, Codec, Containers, Slot, Typing
from unrender.grammar.call_shapes import items_of, next_arguments, of_type, type_names
from unrender.grammar.rules import Rules
from unrender.grammar.spelling import EMPTY, Entry, Speller, chain
from unrender.nodes import Literal, Node, Optional, Ref, Repeat, Role, Sequence, Tag, Until
from unrender.nodes.patterns import choice
from unrender.nodes.texts import cannot_contain
from unrender.schema import shapes
from unrender.schema.reader import Reading
from unrender.schema.shapes import Object, Shape, Text, alternatives, union
from unrender.values.notations import JSON_LEXICON, PYTHON_BESIDE_JSON, Lexicon, Notation, notation_of


@dataclass(frozen=True, slots=True)
class CallContext:
    """What is needed to write a call as nodes.

    It has the rules to add to, the way a JSON value is written, and a function to report losses.
    """

    rules: Rules
    json: Callable[[Reading, str], Node]
    report: Callable[[str, str, str], None]
    """Path, keyword, reason."""


@dataclass(slots=True)
class ArgumentWriter:
    """Writes the arguments of calls to `tool`, one at a time."""

    arguments: Arguments
    tool: str
    parameters: Reading
    context: CallContext
    ends: tuple[str, ...]
    """What may follow the arguments."""
    recursive: dict[tuple[str, str], str] = field(default_factory=dict)
    """The rules of the tags that refer to themselves, by tag and shape."""

    @property
    def codec(self) -> Codec:
        return self.arguments.codec

    @property
    def notation(self) -> Notation:
        return notation_of(self.codec)

    @property
    def hint(self) -> str:
        return f"args-{self.tool}"

    @property
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

    def json(self, shape: Shape, hint: str) -> Node:
        return self.context.json(replace(self.parameters, shape=shape, unsupported=()), hint)

    def entry(self, key: str | Node, shape: Shape, hint: str) -> Node:
        """Return the nodes of one argument.

        When a word states its type, there is an option for each type that it may have.
        """
        if Slot.TYPE not in self.arguments.entry or self.codec.typed_by is not Typing.ATTRIBUTE:
            return self.typed_entry(key, shape, "", hint)
        by_word: dict[str, list[Shape]] = {}
        words = dict(self.codec.types)
        for option in alternatives(self.resolved(shape)):
            for kind in type_names(option, self.parameters.definitions):
                by_word.setdefault(words.get(kind, kind), []).append(of_type(option, kind))
        options = [self.typed_entry(key, union(found), word, hint) for word, found in by_word.items()]
        return choice(options)

    def typed_entry(self, key: str | Node, shape: Shape, word: str, hint: str) -> Node:
        parts: list[Node] = []
        for at, part in enumerate(self.arguments.entry):
            match part:
                case Slot.KEY:
                    parts.append(Literal(key) if isinstance(key, str) else key)
                case Slot.TYPE:
                    parts.append(Literal(word))
                case Slot.VALUE:
                    parts.append(Tag(Role.ARGUMENT, self.value(shape, self.stops(at), hint)))
                case str():
                    parts.append(Literal(part))
        return Sequence(tuple(parts))

    def stops(self, at: int) -> tuple[str, ...]:
        """Return the texts that end the value at part `at` of the entry."""
        entry = self.arguments.entry
        after = entry[at + 1] if at + 1 < len(entry) else ""
        if isinstance(after, Slot) or not after.strip():
            return tuple(dict.fromkeys((*next_arguments(self.arguments, self.objects), *self.ends)))
        return tuple(dict.fromkeys((after, after.strip())))

    # One value.

    def value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of a value that one of `stops` follows."""
        options: list[Node] = []
        for option in alternatives(self.resolved(shape)):
            node = self.one_value(option, stops, hint)
            if isinstance(node, Until):
                return node
            options.append(node)
        return choice(list(dict.fromkeys(options)))

    def one_value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        raw = self.notation.unquoted
        match shape:
            case shapes.Anything() if raw or self.codec.containers is Containers.XML:
                return Until(stops)
            case shapes.Constant(text) if raw and text.startswith('"'):
                return self.raw_constant(self.notation.write(json.loads(text)), stops, hint)
            case Text() if raw:
                return self.raw_text(shape, stops, hint)
            case shapes.Array() | shapes.Object() | shapes.Anything():
                return self.container(shape, hint)
            case shapes.Constant(text) if text[0] in "[{":
                return self.container(shape, hint)
        return self.speller(self.notation.scalars, hint).spell(shape, hint)

    def raw_constant(self, written: str, stops: tuple[str, ...], hint: str) -> Node:
        if any(stop in written for stop in stops):
            self.context.report(self.path(hint), "enum", f"the value {written!r:.60} contains the marker that ends it")
            return Until(stops)
        return Literal(written)

    def raw_text(self, shape: Text, stops: tuple[str, ...], hint: str) -> Node:
        """Return the nodes of raw text.

        The schema's keywords are enforced only if no text could contain a stop; otherwise they are reported as lost.
        """
        if shape.pattern is not None and all(cannot_contain(shape.pattern, stop) for stop in stops):
            return shape.pattern
        lost = {"pattern": shape.pattern, "minLength": shape.minimum, "maxLength": shape.maximum, "not": shape.excluded}
        for keyword, value in lost.items():
            if value:
                self.context.report(self.path(hint), keyword, "raw text ends at its marker, whatever comes before it")
        return Until(stops)

    def path(self, hint: str) -> str:
        name = hint.removeprefix(self.hint).strip("-")
        return f"#/properties/{name}" if name else "#"

    def container(self, shape: Shape, hint: str) -> Node:
        match self.codec.containers:
            case Containers.JSON:
                return self.json(shape, hint)
            case Containers.PYTHON if isinstance(shape, Object) and self.arguments.entry:
                # Templates that write lists with `str()` may still write objects with `tojson`.
                return choice(
                    [self.speller(found, hint).spell(shape, hint) for found in (PYTHON_BESIDE_JSON, JSON_LEXICON)]
                )
            case Containers.PYTHON | Containers.BARE:
                return self.speller(self.notation.inside, hint).spell(shape, hint)
            case Containers.XML:
                return self.tags(shape, hint)
            case _:
                assert_never(self.codec.containers)

    def speller(self, lexicon: Lexicon, hint: str) -> Speller:
        def report(keyword: str, reason: str) -> None:
            self.context.report(self.path(hint), keyword, reason)

        return Speller(lexicon, self.context.rules, self.parameters.definitions, self.hint, report)

    # Nested tags.

    def tags(self, shape: Shape, hint: str) -> Node:
        """Return a list or an object as tags in the style of the arguments."""
        match shape:
            case Object():
                if shape.extra:
                    self.context.report(
                        self.path(hint), "additionalProperties", "tags are named twice, and may be anything"
                    )
                items = [Entry(self.tag(item.name, item.shape, hint), item.required) for item in shape.properties]
                body = chain(items, None, EMPTY, self.context.rules, hint)
                return EMPTY if body is None else body if any(item.required for item in items) else Optional(body)
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
        inner = f"{hint}-{name}"
        if not isinstance(shape, shapes.Reference):
            return self.context.rules.add(inner, self.entry(name, shape, inner))
        key = (name, shape.name)
        if key not in self.recursive:
            self.recursive[key] = self.context.rules.reserve(inner)
            self.context.rules.define(self.recursive[key], self.entry(name, shape, inner))
        return Ref(self.recursive[key])

    def constant_tags(self, value: object, hint: str) -> Node:
        pairs = value.items() if isinstance(value, dict) else ((self.codec.item_tag, item) for item in items_of(value))
        return Sequence(tuple(self.tag(name, shapes.Constant(json.dumps(item)), hint) for name, item in pairs))
