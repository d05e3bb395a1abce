"""One tool call → nodes: the function's skeleton filled in, its arguments in any codec.

Rules: raw text is generated up to the value's end marker and never contains it, with or without the layout before it, as
the parser ends the value at either. Arguments are in the order in which the schema declares them, or sorted by name:
templates write the caller's order or sort it. What a codec cannot say of a schema is reported, and the value is wider.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from unrender.format import Arguments, Codec, Containers, Skeleton, Slot, Typing
from unrender.grammar import shapes
from unrender.grammar.call_ends import after_arguments, next_arguments
from unrender.grammar.call_shapes import (
    ANY_OBJECT,
    is_list,
    is_object,
    items_of,
    joined,
    may_be_empty,
    may_be_empty_list,
    not_empty,
    of_type,
    renamed,
    type_names,
)
from unrender.grammar.json_schema import Reading
from unrender.grammar.nodes import (
    Call,
    Chars,
    Choice,
    Literal,
    Node,
    Optional,
    Ref,
    Repeat,
    Role,
    Sequence,
    Tag,
    Until,
)
from unrender.grammar.notations import JSON_LEXICON, PYTHON_LEXICON, Lexicon, Notation, notation_of
from unrender.grammar.regex import choice
from unrender.grammar.rules import Rules
from unrender.grammar.shapes import Object, Property, Shape, Text, alternatives, union
from unrender.grammar.spelling import (
    EMPTY,
    Entry,
    Extra,
    Speller,
    chain,
)
from unrender.grammar.strings import JSON, WORDS, Alphabet, all_but, cannot_contain, encode

_ID = Chars((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")), minimum=1, maximum=64)
_COUNTER = Choice((Literal("0"), Sequence((Chars((("1", "9"),)), Chars((("0", "9"),), minimum=0, maximum=3)))))


@dataclass(frozen=True, slots=True)
class Tools:
    """What writing a call needs: rules to add to, how a JSON value is written, and where losses are reported."""

    rules: Rules
    json: Callable[[Reading, str], Node]
    report: Callable[[str, str, str], None]
    """Path, keyword, reason."""


def call_node(call: Call, name: str, parameters: Reading, tools: Tools) -> Node:
    """Return the node of a call to the function `name`, whose arguments obey `parameters`."""
    writer = _Writer(call.arguments, name, parameters, tools, after_arguments(call))
    return Sequence(tuple(writer.part(part) for part in call.function))


@dataclass(slots=True)
class _Writer:
    arguments: Arguments
    tool: str
    parameters: Reading
    tools: Tools
    ends: tuple[str, ...]
    """What may follow the arguments."""
    recursive: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def codec(self) -> Codec:
        return self.arguments.codec

    @property
    def notation(self) -> Notation:
        return notation_of(self.codec)

    @property
    def is_json_object(self) -> bool:
        bare = not (self.arguments.start or self.arguments.end or self.arguments.as_string)
        return self.codec.containers is Containers.JSON and not self.arguments.entry and bare

    @property
    def hint(self) -> str:
        return f"args-{self.tool}"

    def part(self, part: str | Slot) -> Node:
        match part:
            case Slot.NAME:
                return Tag(Role.NAME, Literal(self.tool))
            case Slot.ARGUMENTS:
                return Tag(Role.ARGUMENT, self.all_arguments())
            case Slot.ID:
                return Tag(Role.ID, _ID)
            case Slot.INDEX:
                return _COUNTER
            case Slot():
                return EMPTY
        return Literal(part)

    def all_arguments(self) -> Node:
        """Return the node of all arguments together."""
        objects = self.objects or [ANY_OBJECT]
        written = self.entries if self.arguments.entry else self.json_object
        options = [node for shape in objects for node in written(shape)]
        empty = None if self.is_json_object and self.arguments.when_empty == "{}" else self.arguments.when_empty
        if empty is not None and any(map(may_be_empty, objects)):
            options.append(Literal(empty))
        return choice(list(dict.fromkeys(options)))

    @property
    def objects(self) -> list[Object]:
        """The shapes of all arguments together, as far as they are objects."""
        options = alternatives(self.resolved(self.parameters.shape))
        return [shape for shape in options if isinstance(shape, Object)]

    def resolved(self, shape: Shape) -> Shape:
        if isinstance(shape, shapes.Reference):
            return self.parameters.definitions[shape.name]
        if isinstance(shape, shapes.Union):
            return union([self.resolved(option) for option in shape.options])
        return shape

    # One JSON object.

    def json_object(self, shape: Object) -> Iterator[Node]:
        node = self.as_string(shape) if self.arguments.as_string else self.container(shape, (), self.hint)
        around = Literal(self.arguments.start), Literal(self.arguments.end)
        yield Sequence((around[0], node, around[1])) if self.arguments.start + self.arguments.end else node

    def json(self, shape: Shape, hint: str) -> Node:
        return self.tools.json(replace(self.parameters, shape=shape, unsupported=()), hint)

    def as_string(self, shape: Object) -> Node:
        """Return the JSON object written as a JSON string."""
        codec = self.codec
        lexicon = replace(
            JSON_LEXICON, flexible=False, item_separator=codec.item_separator, key_separator=codec.key_separator
        )
        return Sequence((Literal('"'), self.encoded(shape, lexicon, JSON, self.hint), Literal('"')))

    def encoded(self, shape: Shape, lexicon: Lexicon, alphabet: Alphabet, hint: str) -> Node:
        """Return values of `shape` whose text is itself written in `alphabet`, each rule encoded once."""
        inner = Rules()
        node = Speller(lexicon, inner, self.parameters.definitions, hint).spell(shape, hint)
        names = {name: self.tools.rules.reserve(f"{name}-encoded") for name in inner.table}
        for name, body in inner.table.items():
            self.tools.rules.define(names[name], renamed(encode(body, alphabet), names))
        return renamed(encode(node, alphabet), names)

    # One entry for each argument.

    def entries(self, shape: Object) -> Iterator[Node]:
        """Yield the arguments in the order of the schema and, where that differs, sorted."""
        written = [found for item in shape.properties for found in self.written_property(item)]
        bodies = {item.name: self.named_entry(item) for item in written}
        nodes = {name: self.rule(name, body) for name, body in bodies.items() if body is not None}
        properties = tuple(item for item in written if item.name in nodes)
        orders = dict.fromkeys((properties, tuple(sorted(properties, key=lambda item: item.name))))
        extra = self.extra(shape)
        for order in orders:
            items = [Entry(nodes[item.name], item.required) for item in order]
            body = chain(items, extra, Literal(self.arguments.separator), self.tools.rules, self.hint)
            optional = not any(item.required for item in order) and not (extra and extra.minimum)
            yield from self.enclosed(body, optional)

    def enclosed(self, body: Node | None, optional: bool) -> Iterator[Node]:
        """Yield the arguments with what is around them; none at all is `when_empty`, if that is something else."""
        elsewhere = self.arguments.when_empty is not None
        if body is None and elsewhere:
            return
        inside = EMPTY if body is None else Optional(body) if optional and not elsewhere else body
        yield Sequence((Literal(self.arguments.start), inside, Literal(self.arguments.end)))

    def written_property(self, item: Property) -> Iterator[Property]:
        """Yield the property as it is written: where null is left out, null is an absent argument."""
        if self.arguments.repeats and any(map(may_be_empty_list, alternatives(self.resolved(item.shape)))):
            item = replace(item, required=False)
        if not self.codec.omits_null:
            yield item
            return
        options = list(alternatives(item.shape))
        kept = [option for option in options if option not in (shapes.Null(), shapes.Constant("null"))]
        if kept:
            yield Property(item.name, union(kept), item.required and len(kept) == len(options))

    def rule(self, name: str, node: Node) -> Ref:
        return self.tools.rules.add(f"{self.hint}-{name}", node)

    def named_entry(self, item: Property) -> Node | None:
        """Return the argument; where lists are repeated, one entry for each item, and None where there can be none."""
        hint, skeleton = f"{self.hint}-{item.name}", self.arguments.entry

        def entry(shape: Shape) -> Node:
            return self.entry(item.name, shape, hint, skeleton)

        if not self.arguments.repeats:
            return entry(item.shape)
        separator = self.arguments.separator
        options = list(alternatives(self.resolved(item.shape)))
        others = union([option for option in options if not is_list(option)])
        lists = [self.run(option, entry, separator) for option in options if is_list(option)]
        written = [node for node in lists if node is not None]
        if isinstance(others, shapes.Anything):
            written = [Repeat(entry(others), 1, None, Literal(separator) if separator else None)]
        elif not isinstance(others, shapes.Nothing):
            written.append(entry(others))
        return choice(written) if written else None

    def run(self, shape: Shape, node: Callable[[Shape], Node], separator: str) -> Node | None:
        """Return the items of a list, at least one, with separators between them; None where there can be none."""
        if isinstance(shape, shapes.Constant):
            listed = [node(shapes.Constant(json.dumps(item))) for item in shape.value]
            return joined(listed, separator) if listed else None
        assert isinstance(shape, shapes.Array)
        listed = [node(item) for item in shape.prefix]
        least = max(shape.minimum - len(listed), 0)
        most = None if shape.maximum is None else max(shape.maximum - len(listed), 0)
        if isinstance(shape.items, shapes.Nothing) or most == 0:
            return joined(listed, separator) if listed else None
        more = Repeat(node(shape.items), max(least, 1), most, Literal(separator) if separator else None)
        if least or not listed:
            return joined([*listed, more], separator)
        return Sequence((joined(listed, separator), Optional(Sequence((Literal(separator), more)))))

    def entry(self, key: str | Node, shape: Shape, hint: str, skeleton: Skeleton) -> Node:
        """Return one argument; where a word says its type, one for each type it may have."""
        if Slot.TYPE not in skeleton or self.codec.typed_by is not Typing.ATTRIBUTE:
            return self.typed_entry(key, shape, "", hint, skeleton)
        by_word: dict[str, list[Shape]] = {}
        words = dict(self.codec.types)
        for option in alternatives(self.resolved(shape)):
            for kind in type_names(option, self.parameters.definitions):
                by_word.setdefault(words.get(kind, kind), []).append(of_type(option, kind))
        options = [self.typed_entry(key, union(found), word, hint, skeleton) for word, found in by_word.items()]
        return choice(options)

    def typed_entry(self, key: str | Node, shape: Shape, word: str, hint: str, skeleton: Skeleton) -> Node:
        parts: list[Node] = []
        for at, part in enumerate(skeleton):
            match part:
                case Slot.KEY:
                    parts.append(Literal(key) if isinstance(key, str) else key)
                case Slot.TYPE:
                    parts.append(Literal(word))
                case Slot.VALUE:
                    parts.append(Tag(Role.ARGUMENT, self.value(shape, self.stops(skeleton, at), hint)))
                case str():
                    parts.append(Literal(part))
        return Sequence(tuple(parts))

    def stops(self, skeleton: Skeleton, at: int) -> tuple[str, ...]:
        behind = skeleton[at + 1] if at + 1 < len(skeleton) else ""
        if isinstance(behind, Slot) or not behind.strip():
            return tuple(dict.fromkeys((*next_arguments(self.arguments, self.objects), *self.ends)))
        return tuple(dict.fromkeys((behind, behind.strip())))

    def extra(self, shape: Object) -> Extra | None:
        """Return arguments that the schema does not name; None where their names cannot be written."""
        if not shape.extra:
            return None
        skeleton = self.arguments.entry
        if skeleton.count(Slot.KEY) != 1:
            self.tools.report("#", "additionalProperties", "the argument's name is written twice, and may be anything")
            return None
        key = all_but({"", *(item.name for item in shape.properties)}, WORDS)
        value = union([value for _, value in shape.extra])
        if self.arguments.repeats and any(map(is_list, alternatives(self.resolved(value)))):
            self.tools.report(
                "#", "additionalProperties", "each item of a list repeats the name, which may be anything"
            )
            value = union([option for option in alternatives(self.resolved(value)) if not is_list(option)])
            if isinstance(value, shapes.Nothing):
                return None
        node = self.entry(key, value, f"{self.hint}-extra", skeleton)
        return Extra(self.rule("extra", node), shape.minimum, shape.maximum)

    # One value.

    def value(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return the node of a value that is followed by one of `stops`."""
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
                return self.container(shape, stops, hint)
            case shapes.Constant(text) if text[0] in "[{":
                return self.container(shape, stops, hint)
        return self.speller(self.notation.scalars, hint).spell(shape, hint)

    def raw_constant(self, written: str, stops: tuple[str, ...], hint: str) -> Node:
        if any(stop in written for stop in stops):
            self.tools.report(self.path(hint), "enum", f"the value {written!r:.60} contains the marker that ends it")
            return Until(stops)
        return Literal(written)

    def raw_text(self, shape: Text, stops: tuple[str, ...], hint: str) -> Node:
        """Return raw text; what the schema says of it holds where no text could contain a stop."""
        alphabet = self.notation.alphabet
        if all(any(character in dict(alphabet.escapes) for character in stop) for stop in stops):
            return self.speller(self.notation.scalars, hint).text(shape, alphabet)
        if shape.pattern is not None and all(cannot_contain(shape.pattern, stop) for stop in stops):
            return shape.pattern
        lost = {"pattern": shape.pattern, "minLength": shape.minimum, "maxLength": shape.maximum, "not": shape.excluded}
        for keyword, value in lost.items():
            if value:
                self.tools.report(self.path(hint), keyword, "raw text ends at its marker, whatever stands before it")
        return Until(stops)

    def path(self, hint: str) -> str:
        name = hint.removeprefix(self.hint).strip("-")
        return f"#/properties/{name}" if name else "#"

    def container(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        if self.codec.escaped_containers:
            return self.encoded(shape, self.notation.inside, self.notation.alphabet, hint)
        match self.codec.containers:
            case Containers.JSON:
                return self.json(shape, hint)
            case Containers.PYTHON if isinstance(shape, Object) and self.arguments.entry:
                # Templates that write lists with `str()` may still write objects with `tojson`.
                return choice(
                    [self.speller(found, hint).spell(shape, hint) for found in (PYTHON_LEXICON, JSON_LEXICON)]
                )
            case Containers.PYTHON | Containers.BARE | Containers.SINGLE:
                return self.speller(self.notation.inside, hint).spell(shape, hint)
            case Containers.JOINED:
                return self.json(shape, hint) if is_object(shape) else self.joined(shape, stops, hint)
            case Containers.XML:
                return self.tags(shape, hint)
            case _:
                assert_never(self.codec.containers)

    def speller(self, lexicon: Lexicon, hint: str) -> Speller:
        def report(keyword: str, reason: str) -> None:
            self.tools.report(self.path(hint), keyword, reason)

        return Speller(lexicon, self.tools.rules, self.parameters.definitions, self.hint, report)

    # Lists without brackets.

    def joined(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return a list's items with separators between them; an empty list is nothing."""
        separator = self.codec.item_separator
        ends = (*stops, separator.strip(), *self.key_ends())
        body = self.run(shape, lambda item: self.joined_item(item, ends, hint), separator)
        if body is None:
            return EMPTY
        return Optional(body) if may_be_empty_list(shape) else body

    def key_ends(self) -> tuple[str, ...]:
        """Return what shows that another argument's name came before, where nothing closes a value: `a, b=`."""
        *before, last = self.arguments.entry or ("",)
        between = before[-1] if before and last is Slot.VALUE else ""
        return () if isinstance(between, Slot) or not between.strip() else (between.strip(),)

    def joined_item(self, shape: Shape, stops: tuple[str, ...], hint: str) -> Node:
        """Return one item, not empty: no item and an empty one are written alike. What holds others is JSON."""
        options: list[Node] = []
        for option in alternatives(self.resolved(shape)):
            nested = is_object(option) or is_list(option)
            node = self.json(option, hint) if nested else self.one_value(option, stops, hint)
            options.append(not_empty(stops) if isinstance(node, Until) else node)
        return choice(list(dict.fromkeys(options)))

    # Nested tags.

    def tags(self, shape: Shape, hint: str) -> Node:
        """Return a list or an object as tags in the style of the arguments themselves."""
        match shape:
            case Object():
                if shape.extra:
                    self.tools.report(
                        self.path(hint), "additionalProperties", "tags are named twice, and may be anything"
                    )
                items = [Entry(self.tag(item.name, item.shape, hint), item.required) for item in shape.properties]
                body = chain(items, None, EMPTY, self.tools.rules, hint)
                return EMPTY if body is None else body if any(item.required for item in items) else Optional(body)
            case shapes.Array():
                items_ = [self.tag(self.codec.item_tag, item, hint) for item in shape.prefix]
                if isinstance(shape.items, shapes.Nothing):
                    return Sequence(tuple(items_))
                least = max(shape.minimum - len(items_), 0)
                most = None if shape.maximum is None else shape.maximum - len(items_)
                return Sequence((*items_, Repeat(self.tag(self.codec.item_tag, shape.items, hint), least, most)))
        assert isinstance(shape, shapes.Constant)
        return self.constant_tags(json.loads(shape.json), hint)

    def tag(self, name: str, shape: Shape, hint: str) -> Ref:
        """Return one tag; a recursive shape's tag is a rule that refers to itself."""
        inner = f"{hint}-{name}"
        if not isinstance(shape, shapes.Reference):
            return self.tools.rules.add(inner, self.entry(name, shape, inner, self.arguments.entry))
        key = (name, shape.name)
        if key not in self.recursive:
            self.recursive[key] = self.tools.rules.reserve(inner)
            self.tools.rules.define(self.recursive[key], self.entry(name, shape, inner, self.arguments.entry))
        return Ref(self.recursive[key])

    def constant_tags(self, value: object, hint: str) -> Node:
        pairs = value.items() if isinstance(value, dict) else ((self.codec.item_tag, item) for item in items_of(value))
        return Sequence(tuple(self.tag(name, shapes.Constant(json.dumps(item)), hint) for name, item in pairs))
