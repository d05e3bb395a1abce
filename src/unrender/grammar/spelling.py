"""Writes shapes as nodes, in JSON and in notations like it.

Strategy: a `Lexicon` holds the differences between notations: quotes, words, brackets and separators. Properties come in
their declared order. So after each property one rule says what may still follow, and an object with n optional
properties takes n rules instead of 2^n combinations (`chain`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from collections.abc import Sequence as List
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from unrender.json_values import JsonSchema
from unrender.limits import MAX_EXCLUDED_WORD, MAX_LAYOUT
from unrender.nodes import (
    EMPTY,
    Chars,
    Choice,
    Literal,
    Node,
    Optional,
    Ref,
    Repeat,
    Rules,
    Sequence,
    Until,
    sequence_of,
)
from unrender.nodes.patterns import any_pattern
from unrender.nodes.texts import Alphabet, all_but, between, cannot_contain, encoded_node
from unrender.schema import shapes
from unrender.schema.integers import numeric
from unrender.schema.reader import Unsupported, read_schema
from unrender.schema.shapes import Object, Property, Shape, Text
from unrender.values.notations import JSON_LEXICON, Lexicon, Quotes

_ANY_TEXT, _ANY_NUMBERS = Text(), (shapes.Number(), shapes.Integer())
_SPACE = Chars((("\t", "\n"), ("\r", "\r"), (" ", " ")), minimum=0, maximum=MAX_LAYOUT)


@dataclass(slots=True)
class Speller:
    """Writes shapes with the tokens of one lexicon; `rules` collects what they refer to."""

    lexicon: Lexicon
    rules: Rules
    definitions: Mapping[str, Shape]
    scope: str = ""
    """Told apart in the names of recursive rules."""
    report: Callable[[str, str], None] = lambda _keyword, _reason: None
    """Takes a keyword that is not enforced, and why."""
    memo: dict[int, tuple[Shape, Node]] = field(default_factory=dict)
    recursive: dict[str, str] = field(default_factory=dict)

    def spell(self, shape: Shape, hint: str = "value") -> Node:
        """Return the node of all values of `shape`. Raises `ValueError` when there are none."""
        # A shape that is shared is written once. The memo holds it, so that its id stays its own.
        known = self.memo.get(id(shape))
        if known is None:
            known = self.memo[id(shape)] = (shape, self.written(shape, hint))
        return known[1]

    def written(self, shape: Shape, hint: str) -> Node:
        match shape:
            case shapes.Text():
                return self.string(shape)
            case shapes.Object():
                return self.rules.add(hint, self.object(shape, hint))
            case shapes.Anything():
                return self.common("value", self.anything)
            case shapes.Null():
                return Literal(self.lexicon.null)
            case shapes.Boolean():
                return self.common("boolean", lambda: Choice((Literal(self.lexicon.true), Literal(self.lexicon.false))))
            case shapes.Constant(text):
                return self.constant(json.loads(text))
            case shapes.Integer() | shapes.Number():
                return self.numeric(shape)
            case shapes.Array():
                return self.rules.add(hint, self.array(shape, hint))
            case shapes.Union(options):
                return self.rules.add(hint, any_pattern([self.spell(option, hint) for option in options]))
            case shapes.Reference(name):
                return self.reference(name)
        raise ValueError("no value has this shape")

    def common(self, name: str, build: Callable[[], Node]) -> Ref:
        """Return the lexicon's rule with this name; it is built when it is first asked for."""
        full = f"{self.lexicon.name}-{name}"
        if full not in self.rules.table:
            # The rule of a value refers to itself, by lists and objects: its name is taken before it is built.
            self.rules.table[full] = EMPTY
            self.rules.table[full] = build()
        return Ref(full)

    def reference(self, name: str) -> Node:
        if name not in self.recursive:
            # The name comes before the body, which refers to it.
            self.recursive[name] = self.rules.reserve(f"{self.scope}-{name}")
            self.rules.define(self.recursive[name], self.spell(self.definitions[name], f"{self.scope}-{name}-body"))
        return Ref(self.recursive[name])

    def space(self) -> Node:
        return self.common("space", lambda: _SPACE) if self.lexicon.flexible else EMPTY

    def separator(self, text: str) -> Node:
        """Return a separator, with free white space around it if the lexicon is flexible."""
        if not self.lexicon.flexible:
            return Literal(text)
        name = {",": "comma", ":": "colon"}[text]
        return self.common(name, lambda: Sequence((self.space(), Literal(text), self.space())))

    def comma(self) -> Node:
        return self.separator(self.lexicon.item_separator)

    def anything(self) -> Node:
        anything = shapes.Anything()
        return Choice(
            (
                self.common("object", lambda: self.object(Object(extra=((Text(), anything),)), "object")),
                self.common("array", lambda: self.array(shapes.Array(items=anything), "array")),
                self.string(Text()),
                self.numeric(shapes.Number()),
                self.spell(shapes.Boolean()),
                Literal(self.lexicon.null),
            )
        )

    def numeric(self, shape: shapes.Integer | shapes.Number) -> Node:
        if shape in _ANY_NUMBERS:
            return self.common(type(shape).__name__.lower(), lambda: numeric(shape).node)
        written = numeric(shape)
        self.rules.merge(written.rules)
        return written.node

    def string(self, shape: Text) -> Node:
        def build() -> Node:
            return any_pattern([self.quoted(shape, quotes) for quotes in self.lexicon.quotes])

        return self.common("string", build) if shape == _ANY_TEXT else self.rules.add("string", build())

    def quoted(self, shape: Text, quotes: Quotes) -> Node:
        inside = self.unescaped(shape, quotes.close) if quotes.alphabet is None else self.text(shape, quotes.alphabet)
        return Sequence((Literal(quotes.open), inside, Literal(quotes.close)))

    def unescaped(self, shape: Text, close: str) -> Node:
        """Return the node of a string that ends at the first closing quote, with no escapes.

        Keywords of the schema that cannot be enforced in such a string are reported.
        """
        # `<|a"b|>`: nothing is escaped, so a text may hold anything but the `|>` that ends it.
        if shape.pattern is not None and cannot_contain(shape.pattern, close):
            return shape.pattern
        if shape.pattern is None and len(close) == 1:
            words = frozenset(word for word in shape.excluded if close not in word)
            others = Alphabet(forbidden=((close, close),))
            return self.bounded(replace(shape, excluded=words), others, others.character)
        for keyword in keywords_of(shape):
            self.report(keyword, "an unescaped string ends at its quote, whatever comes before it")
        return Until((close,))

    def text(self, shape: Text, alphabet: Alphabet) -> Node:
        """Return the node of a string's text, written in `alphabet`."""
        if shape.pattern is not None:
            return encoded_node(shape.pattern, alphabet)
        name = f"character-{ord(alphabet.written(chr(34))[0])}"
        return self.bounded(shape, alphabet, lambda: self.common(name, alphabet.character))

    def bounded(self, shape: Text, alphabet: Alphabet, any_one: Callable[[], Node]) -> Node:
        """Return the node of a text of some length that is none of some words; `any_one` returns that of a character."""
        least, most = shape.minimum, shape.maximum
        if not shape.excluded:
            return between(any_one(), least, most)
        if (least, most) == (0, None):
            return all_but(shape.excluded, alphabet)
        deepest, character = min(max(map(len, shape.excluded)), MAX_EXCLUDED_WORD), any_one()

        def rest(read: int) -> Node:
            # Many words are told apart at many places: what may follow is a rule for each length, each with the next in it.
            low, high = max(least - read, 0), None if most is None else most - read
            if read > deepest or high == 0 or (low, high) == (0, None):
                return between(character, low, high)
            onward = Sequence((character, rest(read + 1)))
            return self.rules.add("string-rest", onward if low else Choice((onward, EMPTY)))

        return all_but(shape.excluded, alphabet, (least, most), rest)

    def constant(self, value: Any) -> Node:
        """Return the node of one value, with white space as flexible as in other values."""
        match value:
            case dict():
                entries = [
                    Sequence((self.key(k), self.separator(self.lexicon.key_separator), self.constant(v)))
                    for k, v in value.items()
                ]
                return self.bracketed("{", self.joined(entries), "}")
            case list():
                return self.bracketed("[", self.joined([self.constant(item) for item in value]), "]")
            case str():
                return self.word(value)
            case bool() | None:
                return Literal({None: self.lexicon.null, True: self.lexicon.true, False: self.lexicon.false}[value])
        return Literal(json.dumps(value))

    def word(self, text: str, quotes: tuple[Quotes, ...] = ()) -> Node:
        """Return the node of one string, with an option for each of `quotes`, by default all that can hold it."""
        every = quotes or self.lexicon.quotes
        forms = [Literal(f"{q.open}{q.alphabet.written(text) if q.alphabet else text}{q.close}") for q in every]
        return any_pattern(list(dict.fromkeys(forms)))

    def key(self, name: str) -> Node:
        if self.lexicon.bare_keys:
            return Literal(name)
        # `repr()` writes 'a', and "it's" where the text holds a single quote: one form for each key.
        quotes = self.lexicon.quotes
        if self.lexicon.keys_like_repr:
            quotes = tuple(quote for quote in quotes if repr(name).startswith(quote.open))
        return self.word(name, quotes)

    def joined(self, parts: List[Node]) -> Node | None:
        if not parts:
            return None
        return Sequence((parts[0], *(part for item in parts[1:] for part in (self.comma(), item))))

    def bracketed(self, opening: str, body: Node | None, closing: str, *, optional: bool = False) -> Node:
        """Return a list or an object, whose body (None: nothing) may be left out if it is optional."""
        parts = () if body is None else (*(body.parts if isinstance(body, Sequence) else (body,)), self.space())
        inside = (Optional(self.row(*parts)),) if optional and parts else parts
        return self.row(Literal(opening), self.space(), *inside, Literal(closing))

    def row(self, *parts: Node) -> Node:
        """Return parts one after the other; where there is white space between tokens, none of them are one word."""
        return Sequence(parts) if self.lexicon.flexible else sequence_of(list(parts))

    def array(self, shape: shapes.Array, hint: str) -> Node:
        return self.bracketed("[", self.items(shape, hint), "]", optional=shape.minimum == 0)

    def items(self, shape: shapes.Array, hint: str) -> Node | None:
        """Return the nodes of a list's items, at least one; None when there can be none."""
        if shape.contained:
            return self.containing(shape, shape.contained, hint)
        fixed = len(shape.prefix)
        most = None if shape.maximum is None else shape.maximum - fixed
        body: Node | None = None
        if not isinstance(shape.items, shapes.Nothing) and most != 0:
            # Built from the back: `[a, b?, c*]` is a, then optionally b, and only after b any number of c.
            least = max(shape.minimum - fixed, 0 if fixed else 1)
            body = Repeat(self.spell(shape.items, f"{hint}-item"), least or 1, most, self.comma())
        for at in range(fixed - 1, -1, -1):
            item = self.spell(shape.prefix[at], f"{hint}-{at}")
            if body is None:
                body = item
                continue
            rest: Node = Sequence((self.comma(), body))
            body = Sequence((item, rest if shape.minimum > at + 1 else Optional(rest)))
        return body

    def containing(self, shape: shapes.Array, contained: shapes.Contained, hint: str) -> Node:
        """Return the nodes of at least one item, with the required number of wanted ones.

        They are runs of other items that each end in a wanted one, and then the remaining items.
        """
        # Two wanted items (w) among others (o): o o w, o w, and then the rest, `[o, o, w, o, w, o]`.
        low, high = contained.minimum, contained.maximum
        wanted, others = self.spell(contained.wanted, f"{hint}-wanted"), self.spell(contained.others, f"{hint}-other")
        run = self.rules.add(f"{hint}-run", Sequence((Repeat(Sequence((others, self.comma()))), wanted)))
        rest = others if high is not None else self.spell(shape.items, f"{hint}-item")
        runs = Repeat(run, max(low, 1), max(low, 1) if high is None else high, self.comma())
        body = Sequence((runs, Repeat(Sequence((self.comma(), rest)))))
        return body if low else Choice((body, Repeat(others, 1, None, self.comma())))

    def object(self, shape: Object, hint: str) -> Node:
        entries = [(self.entry(item, hint), item.required) for item in shape.properties]
        more: Extra | None = None
        if shape.extra:
            pairs: list[Node] = [
                Sequence(
                    (
                        self.extra_key(keys),
                        self.separator(self.lexicon.key_separator),
                        self.spell(value, f"{hint}-extra"),
                    )
                )
                for keys, value in shape.extra
            ]
            more = Extra(self.rules.add(f"{hint}-extra", any_pattern(pairs)), shape.minimum, shape.maximum)
        body = chain(entries, more, self.comma(), self.rules, hint)
        optional = shape.minimum == 0 and not any(required for _, required in entries)
        return self.bracketed("{", body, "}", optional=optional)

    def entry(self, item: Property, hint: str) -> Ref:
        name = f"{hint}-{item.name}"
        colon = self.separator(self.lexicon.key_separator)
        return self.rules.add(name, self.row(self.key(item.name), colon, self.spell(item.shape, name)))

    def extra_key(self, keys: Text) -> Node:
        if not self.lexicon.bare_keys:
            return self.string(keys)
        if keys.pattern is not None:
            self.report("propertyNames", "a key without quotes may be any word")
        any_word = Chars(tuple((c, c) for c in _NO_BARE_KEY), negated=True)
        words = frozenset(word for word in keys.excluded if not set(_NO_BARE_KEY).intersection(word))
        others = Alphabet(forbidden=any_word.ranges, general=any_word)
        shape = Text(minimum=max(keys.minimum, 1), maximum=keys.maximum or None, excluded=words)
        return self.bounded(shape, others, others.character)


def keywords_of(shape: Text) -> list[str]:
    """Return the keywords of a schema that the shape of a text comes from."""
    said = {"pattern": shape.pattern, "minLength": shape.minimum, "maxLength": shape.maximum, "not": shape.excluded}
    return [keyword for keyword, value in said.items() if value]


_NO_BARE_KEY = "\t\n\v\f\r\x1c\x1d\x1e\x1f \"'(),:<=>[]{|}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
_NO_BARE_KEY += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space and what may be beside a key: none of it is read as part of one without quotes."""


class Extra(NamedTuple):
    """Entries with other names, and how many of them."""

    node: Node
    minimum: int = 0
    maximum: int | None = None


def chain(
    entries: List[tuple[Node, bool]], extra: Extra | None, separator: Node, rules: Rules, hint: str
) -> Node | None:
    """Return one or more entries in their order, each optional one present or not, then the extra ones.

    `entries` are named, each with whether it must be there. None when there is nothing to write. The nodes are linear in the number of entries, since what may follow an entry
    is a rule.
    """
    tail: Node = EMPTY
    if extra is not None and extra.maximum != 0:
        tail = Repeat(Sequence((separator, extra.node)), extra.minimum, extra.maximum)
    # No separator comes before the first entry that is written: any entry up to the first required one, or an extra
    # one where none is required. Of a? b! c?, a and b may be first ("heads"), c never.
    apart = separator != EMPTY
    heads: list[Node] = []
    last_head = next((at for at, (_, required) in enumerate(entries) if required), len(entries))
    for at in range(len(entries) - 1, -1, -1):
        node, required = entries[at]
        if at <= last_head:
            heads.append(_sequence(node, tail))
        if at == 0:
            break
        step: Node = Sequence((separator, node)) if apart else node
        tail = _sequence(step if required else Optional(step), tail)
        if at <= last_head:
            tail = rules.add(f"{hint}-more", tail)
    heads.reverse()
    if extra is not None and last_head == len(entries):
        heads.append(Repeat(extra.node, max(extra.minimum, 1), extra.maximum, separator))
    return any_pattern(heads) if heads else None


def _sequence(first: Node, second: Node) -> Node:
    if second is EMPTY:
        return first
    front, rest = (part.parts if isinstance(part, Sequence) else (part,) for part in (first, second))
    return Sequence((*front, *rest))


class SchemaRules(NamedTuple):
    """A node, the rules it refers to, and the keywords that it does not enforce."""

    node: Node
    rules: Mapping[str, Node]
    unsupported: tuple[Unsupported, ...]


def schema_grammar(schema: JsonSchema) -> SchemaRules:
    """Return the grammar of the JSON texts that obey `schema`, with any white space between tokens.

    Properties come in the order in which the schema declares them; optional ones may be left out. Keywords that a
    grammar cannot express are in `unsupported`, and the grammar is wider there. Raises `GrammarError` when `schema` is
    not a JSON Schema.

    >>> found = schema_grammar({"type": "integer", "minimum": 1, "maximum": 3})
    >>> found.node
    Chars(ranges=(('1', '3'),), negated=False, minimum=1, maximum=1)
    """
    reading = read_schema(schema, longest=sys.maxsize)
    rules = Rules()
    node = Speller(JSON_LEXICON, rules, reading.definitions).spell(reading.shape)
    return SchemaRules(node, rules.table, reading.unsupported)
