"""Writes one tool call as nodes: the function's skeleton, and its arguments, each with its name and its value.

Rules: arguments are in the order in which the schema declares them, or sorted by name: templates write the caller's
order or sort it. Raw text is generated up to the value's end marker and never contains it, with or without the layout
before the marker, since the parser ends the value at either. What a codec cannot say of a schema is reported, and the
value is wider.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from string import whitespace
from typing import Any, assert_never

from unrender import nodes
from unrender.format import Arguments, CallSyntax, Containers, Slot, Strings, Typing
from unrender.format.parts import text_of
from unrender.grammar.spelling import Extra, Speller, chain
from unrender.limits import MOST_EXCLUDED_NAMES
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
from unrender.values.atoms import escape
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


def after_arguments(syntax: CallSyntax) -> tuple[str, ...]:
    """Return the texts that may follow the last argument of a call, without white space around them."""
    function = syntax.function
    at = function.index(Slot.ARGUMENTS) + 1 if Slot.ARGUMENTS in function else len(function)
    inside = (syntax.arguments.end, text_of(*function[at : at + 1]))
    # `f(a=1)` ends at `)`, in the skeleton itself; arguments that nothing closes end where the call does.
    # Layout alone is no sign: a text may hold a line break.
    texts = inside if any(map(str.strip, inside)) else _after_call(syntax)
    return tuple(text.strip() for text in texts if text.strip())


def _after_call(syntax: CallSyntax) -> tuple[str, ...]:
    # A call that nothing ends, `f(a=1)`, is followed by the next one, or by the end of all.
    if syntax.call_end.strip():
        return (syntax.call_end,)
    return syntax.separator + syntax.call_start + text_of(*syntax.function[:1]), syntax.section_end


def next_arguments(arguments: Arguments, objects: Iterable[Object]) -> tuple[str, ...]:
    """Return the texts with which another argument may begin.

    They include its name when all names are known from `objects`.
    """
    between = arguments.between if arguments.open_ended else arguments.separator
    apart = between.strip() or between
    objects = list(objects)
    names = dict.fromkeys(item.name for shape in objects for item in shape.properties)
    known = arguments.open_ended and not arguments.in_code and not any(shape.extra for shape in objects)
    if not known or not 0 < len(names) <= MOST_EXCLUDED_NAMES:
        return (apart,) if apart else ()
    # After the value of `<a>1<b>2` comes `<b>`; the bare `<` could as well be a part of raw text.
    after = arguments.entry[arguments.entry.index(Slot.KEY) + 1]
    return tuple(f"{between.lstrip() or between}{name}{text_of(after)}" for name in names)


_ID = Chars((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")), minimum=1, maximum=64)
_LETTERS_AND_DIGITS = (("0", "9"), ("A", "Z"), ("a", "z"))
_COUNTER = Choice((Literal("0"), Sequence((Chars((("1", "9"),)), Chars((("0", "9"),), minimum=0, maximum=3)))))


JsonWriter = Callable[[Reading, str], Node]
"""Writes a JSON value, by its shape and a name for its rules."""


def call_node(
    syntax: CallSyntax,
    tool: str,
    parameters: Reading,
    rules: Rules,
    json: JsonWriter,
    report: ReportLoss,
    *,
    roles: bool,
) -> Node:
    """Return the node of a call to the function `tool`, whose arguments obey `parameters`.

    `rules` collects what it refers to. With `roles`, the parts of the call are tagged.
    """
    writer = _CallWriter(syntax, tool, parameters, rules, json, report, roles=roles)
    return sequence_of([writer.part(part) for part in syntax.function])


class _CallWriter:
    """Writes calls to `tool`: the skeleton, then all arguments, then one argument, and at last one value."""

    def __init__(
        self,
        syntax: CallSyntax,
        tool: str,
        parameters: Reading,
        rules: Rules,
        json: JsonWriter,
        report: ReportLoss,
        *,
        roles: bool,
    ) -> None:
        self.roles = roles
        self.syntax, self.tool, self.parameters = syntax, tool, parameters
        self.rules, self.write_json, self.report = rules, json, report
        self.arguments, self.codec = syntax.arguments, syntax.arguments.codec
        self.notation = notation_of(self.codec)
        self.hint = f"args-{tool}"
        self.known_stops: dict[int, tuple[str, ...]] = {}
        self.recursive: dict[tuple[str, str], str] = {}
        """The rules of the tags that refer to themselves, by tag and shape."""

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

    def part(self, part: str | Slot) -> Node:
        match part:
            case Slot.NAME:
                # `{"name": "say \\"hi\\""}`: where the whole call is JSON, its name is written as JSON.
                in_json = str(self.syntax.function[0]).lstrip().startswith("{")
                return self.told(Role.NAME, Literal(escape(self.tool) if in_json else self.tool))
            case Slot.ARGUMENTS:
                return self.told(Role.ARGUMENT, self.all_arguments())
            case Slot.ID:
                length = self.syntax.id_length
                exact = Chars(_LETTERS_AND_DIGITS, minimum=length, maximum=length)
                return self.told(Role.ID, exact if length else _ID)
            case Slot.INDEX:
                return _COUNTER
            case Slot():
                return EMPTY
        return Literal(part)

    def told(self, role: Role, node: Node) -> Node:
        """Return `node` with its role, where that is asked for."""
        return Tag(role, node) if self.roles else node

    def all_arguments(self) -> Node:
        """Return the node of all arguments together."""
        objects = self.objects or [ANY_OBJECT]
        if self.arguments.entry:
            options = [node for shape in objects for node in self.entries(shape)]
        else:
            start, end = Literal(self.arguments.start), Literal(self.arguments.end)
            values = [self.container(shape, self.hint) for shape in objects]
            if self.codec.escapes:  # `"{\"city\": …}"`: the object is in a string.
                values = [Sequence((Literal('"'), node, Literal('"'))) for node in values]
            options = [Sequence((start, node, end)) if start.text + end.text else node for node in values]
        empty = self.arguments.when_empty
        bare = not (self.arguments.start or self.arguments.entry or self.arguments.end)
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
        elsewhere = self.arguments.when_empty is not None
        optional = not elsewhere and not _required(written) and not (extra and extra.minimum)
        # Both orders share the rules of the entries; where they are equal, there is one.
        by_name = sorted(written, key=lambda item: item.name)
        for order in (written,) if by_name == written else (written, by_name):
            items = [(nodes[item.name], item.required) for item in order]
            body = chain(items, extra, Literal(self.arguments.separator), self.rules, self.hint)
            # None at all is `when_empty`, if that is something else.
            if body is not None or not elsewhere:
                inside = EMPTY if body is None else Optional(body) if optional else body
                yield in_sequence(Literal(self.arguments.start), inside, Literal(self.arguments.end))

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
        """Return arguments that the schema does not name; None where their names cannot be written."""
        if not shape.extra:
            return None
        if self.arguments.entry.count(Slot.KEY) != 1:
            self.report("#", "additionalProperties", "the argument's name is written twice, and may be anything")
            return None
        if any(keys.pattern is not None for keys, _ in shape.extra):
            self.report("#", "propertyNames", "a name without quotes may be any word")
        # An extra argument with a declared name would be that argument, without its schema.
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
        for at, part in enumerate(self.arguments.entry):
            if part is Slot.TYPE:
                parts.append(Literal(word))
            elif part is Slot.KEY:
                parts.append(Literal(key) if isinstance(key, str) else key)
            elif part is Slot.VALUE:
                stops = self.closing_tags(at, key, shape) or self.stops(at)
                parts.append(self.told(Role.ARGUMENT, self.value(shape, stops, hint)))
            elif self.arguments.closers and self.arguments.entry[at - 1] is Slot.VALUE:
                spelled = [part.replace(part.strip(), other) for other in self.arguments.closers]
                parts.append(Choice(tuple(map(Literal, (part, *spelled)))))
            else:
                parts.append(Literal(part))
        return sequence_of(parts)

    def closing_tags(self, at: int, key: str | Node, shape: Shape) -> tuple[str, ...]:
        """Return how the tag of the argument `key` is closed after the value at `at`; nothing where its name is in no such tag.

        `<html><b>so</b></html>`: only its own tag ends a value, unless lists and objects are tags as well.
        """
        entry = self.arguments.entry
        texts = [text_of(part) for part in (*entry, "", "")]
        named = entry[at + 2 : at + 3] == (Slot.KEY,) and texts[at + 1].strip() and self.codec.strings.unquoted
        if not named or not isinstance(key, str) or self.codec.containers is Containers.XML:
            return ()
        name = key + texts[at + 3].strip()
        # Where a value may be something else than text, tags of its own name are counted in it.
        opener = () if isinstance(self.resolved(shape), Text) else (texts[0].strip() + name,)
        return tuple(
            dict.fromkeys((texts[at + 1] + name, texts[at + 1].strip() + name, *self.arguments.closers, *opener))
        )

    def stops(self, at: int) -> tuple[str, ...]:
        """Return the texts that end the value at part `at` of the entry."""
        if at not in self.known_stops:
            self.known_stops[at] = self.found_stops(at)
        return self.known_stops[at]

    def found_stops(self, at: int) -> tuple[str, ...]:
        # `<a>1</a>`: the value ends at `</a>`. `a=1, b=2`: it ends where the next argument or the call's end begins.
        entry = self.arguments.entry
        after = entry[at + 1] if at + 1 < len(entry) else ""
        if isinstance(after, Slot) or not after.strip():
            return tuple(dict.fromkeys((*next_arguments(self.arguments, self.objects), *after_arguments(self.syntax))))
        return tuple(dict.fromkeys((after, after.strip(), *self.arguments.closers)))

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
        """Whether a text may hold the quote that ends it, with nothing escaped, as in `f(a='it's')`."""
        arguments = self.arguments
        in_code = arguments.in_code and arguments.end.strip() == ")"
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
        lost = {"pattern": shape.pattern, "minLength": shape.minimum, "maxLength": shape.maximum, "not": shape.excluded}
        for keyword, value in lost.items():
            if value:
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
