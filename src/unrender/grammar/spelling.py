"""Converts shapes to nodes, in JSON and similar notations.

Strategy: a `Lexicon` contains the differences between notations: quotes, words, brackets and separators. Properties keep their declared
order. After each property, one rule describes the rest of the object. An object with n optional properties therefore takes n rules instead
of 2^n combinations (`chain`).
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
from unrender.schema import Unsupported, shapes
from unrender.schema.integers import numeric
from unrender.schema.reader import read_schema
from unrender.schema.shapes import Object, Property, Shape, Text
from unrender.values.notations import JSON_LEXICON, Lexicon, Quotes

_ANY_TEXT, _ANY_NUMBERS = Text(), (shapes.Number(), shapes.Integer())
_SPACE = Chars((("\t", "\n"), ("\r", "\r"), (" ", " ")), minimum=0, maximum=MAX_LAYOUT)


@dataclass(slots=True)
class Speller:
    """Converts shapes to nodes with the tokens of one lexicon, and collects their rules in `rules`."""

    lexicon: Lexicon
    rules: Rules
    definitions: Mapping[str, Shape]
    scope: str = ""
    """Prefix for the names of recursive rules."""
    report: Callable[[str, str], None] = lambda _keyword, _reason: None
    """Called with each keyword that isn't enforced, and the reason."""
    memo: dict[int, tuple[Shape, Node]] = field(default_factory=dict)
    recursive: dict[str, str] = field(default_factory=dict)

    def spell(self, shape: Shape, hint: str = "value") -> Node:
        """Return the node of all values of `shape`. Raises `ValueError` if no value has this shape."""
        # Convert each shared shape only once. The memo keeps shapes alive, so their ids aren't reused.
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
        """Return a rule of the lexicon by name, built on first use."""
        full = f"{self.lexicon.name}-{name}"
        if full not in self.rules.table:
            # Reserve the name first, since the rule of a value refers to itself for arrays and objects.
            self.rules.table[full] = EMPTY
            self.rules.table[full] = build()
        return Ref(full)

    def reference(self, name: str) -> Node:
        if name not in self.recursive:
            # Reserve the name first, since the body refers to it.
            self.recursive[name] = self.rules.reserve(f"{self.scope}-{name}")
            self.rules.define(self.recursive[name], self.spell(self.definitions[name], f"{self.scope}-{name}-body"))
        return Ref(self.recursive[name])

    def space(self) -> Node:
        return self.common("space", lambda: _SPACE) if self.lexicon.flexible else EMPTY

    def separator(self, text: str) -> Node:
        """Return a separator, surrounded by any whitespace if the lexicon is flexible."""
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
        """Return the node of a string without escapes, which ends at the first closing quote.

        Keywords that can't be enforced in such a string are reported.
        """
        # Text in `<|a"b|>` isn't escaped, so the string may contain anything except `|>`.
        if shape.pattern is not None and cannot_contain(shape.pattern, close):
            return shape.pattern
        if shape.pattern is None and len(close) == 1:
            words = frozenset(word for word in shape.excluded if close not in word)
            others = Alphabet(forbidden=((close, close),))
            return self.bounded(replace(shape, excluded=words), others, others.character)
        for keyword in keywords_of(shape):
            self.report(keyword, "a string without escapes ends at its first quote")
        return Until((close,))

    def text(self, shape: Text, alphabet: Alphabet) -> Node:
        """Return the node of a string's content, escaped by `alphabet`."""
        if shape.pattern is not None:
            return encoded_node(shape.pattern, alphabet)
        name = f"character-{ord(alphabet.written(chr(34))[0])}"
        return self.bounded(shape, alphabet, lambda: self.common(name, alphabet.character))

    def bounded(self, shape: Text, alphabet: Alphabet, any_one: Callable[[], Node]) -> Node:
        """Return the node of a text with bounded length and excluded words. `any_one` returns the node of one character."""
        least, most = shape.minimum, shape.maximum
        if not shape.excluded:
            return between(any_one(), least, most)
        if (least, most) == (0, None):
            return all_but(shape.excluded, alphabet)
        deepest, character = min(max(map(len, shape.excluded)), MAX_EXCLUDED_WORD), any_one()

        def rest(read: int) -> Node:
            # After a string differs from all excluded words, only its length matters. So for each number of characters read, there is one
            # shared rule, which refers to the next one.
            low, high = max(least - read, 0), None if most is None else most - read
            if read > deepest or high == 0 or (low, high) == (0, None):
                return between(character, low, high)
            onward = Sequence((character, rest(read + 1)))
            return self.rules.add("string-rest", onward if low else Choice((onward, EMPTY)))

        return all_but(shape.excluded, alphabet, (least, most), rest)

    def constant(self, value: Any) -> Node:
        """Return the node of a single value, with the same flexible whitespace as other values."""
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
        """Return the node of the string `text`, with an option for each of `quotes`. By default, all quotes of the lexicon are used."""
        every = quotes or self.lexicon.quotes
        forms = [Literal(f"{q.open}{q.alphabet.written(text) if q.alphabet else text}{q.close}") for q in every]
        return any_pattern(list(dict.fromkeys(forms)))

    def key(self, name: str) -> Node:
        if self.lexicon.bare_keys:
            return Literal(name)
        # `repr()` formats a string in single quotes, but `"it's"` in double quotes, so each key has only one form.
        quotes = self.lexicon.quotes
        if self.lexicon.keys_like_repr:
            quotes = tuple(quote for quote in quotes if repr(name).startswith(quote.open))
        return self.word(name, quotes)

    def joined(self, parts: List[Node]) -> Node | None:
        if not parts:
            return None
        return Sequence((parts[0], *(part for item in parts[1:] for part in (self.comma(), item))))

    def bracketed(self, opening: str, body: Node | None, closing: str, *, optional: bool = False) -> Node:
        """Return the node of an array or object. `body` is the content between the brackets, or None if there is none. The body may be
        omitted if `optional` is True.
        """
        parts = () if body is None else (*(body.parts if isinstance(body, Sequence) else (body,)), self.space())
        inside = (Optional(self.row(*parts)),) if optional and parts else parts
        return self.row(Literal(opening), self.space(), *inside, Literal(closing))

    def row(self, *parts: Node) -> Node:
        """Return the parts as a sequence. If whitespace between tokens isn't flexible, adjacent literals are merged."""
        return Sequence(parts) if self.lexicon.flexible else sequence_of(list(parts))

    def array(self, shape: shapes.Array, hint: str) -> Node:
        return self.bracketed("[", self.items(shape, hint), "]", optional=shape.minimum == 0)

    def items(self, shape: shapes.Array, hint: str) -> Node | None:
        """Return the node of an array's items, at least one; None if the array must be empty."""
        if shape.contained:
            return self.containing(shape, shape.contained, hint)
        fixed = len(shape.prefix)
        most = None if shape.maximum is None else shape.maximum - fixed
        body: Node | None = None
        if not isinstance(shape.items, shapes.Nothing) and most != 0:
            # Build the sequence from its end: `[a, b?, c*]` is a, then optionally b, and any number of c only after b.
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
        """Return the node of an array's items, with the required number of `wanted` items.

        Each run consists of any number of other items and one wanted item. The remaining items follow the last run.
        """
        # `[o, o, w, o, w, o]`, with w for wanted and o for other items: the runs are o o w and o w, followed by o.
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
    """Return the schema keywords that restrict a string of this shape."""
    said = {"pattern": shape.pattern, "minLength": shape.minimum, "maxLength": shape.maximum, "not": shape.excluded}
    return [keyword for keyword, value in said.items() if value]


_NO_BARE_KEY = "\t\n\v\f\r\x1c\x1d\x1e\x1f \"'(),:<=>[]{|}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
_NO_BARE_KEY += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""Whitespace and punctuation, which a key without quotes doesn't contain."""


class Extra(NamedTuple):
    """Entries with undeclared names, and their minimum and maximum number."""

    node: Node
    minimum: int = 0
    maximum: int | None = None


def chain(
    entries: List[tuple[Node, bool]], extra: Extra | None, separator: Node, rules: Rules, hint: str
) -> Node | None:
    """Return one or more entries in order, followed by the extra ones. Optional entries may be missing.

    `entries` are nodes, each with a flag that is True if the entry is required. Returns None if no entry is possible. The number of nodes
    is linear, since the rest after each entry is a rule.
    """
    tail: Node = EMPTY
    if extra is not None and extra.maximum != 0:
        tail = Repeat(Sequence((separator, extra.node)), extra.minimum, extra.maximum)
    # The first written entry, which has no separator, is any entry up to the first required one, or an extra entry if none is
    # required. Of a? b! c?, only a and b can be first ("heads").
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
    """A node, the rules that it refers to, and the keywords that it doesn't enforce."""

    node: Node
    rules: Mapping[str, Node]
    unsupported: tuple[Unsupported, ...]


def schema_grammar(schema: JsonSchema) -> SchemaRules:
    """Return the grammar of JSON that matches `schema`, with any whitespace between tokens.

    Properties keep the order of the schema, and optional ones may be omitted. Keywords that a grammar can't express are listed in
    `unsupported`. In that case, the grammar accepts more than the schema allows. Raises `GrammarError` if `schema` isn't a JSON Schema.

    >>> found = schema_grammar({"type": "integer", "minimum": 1, "maximum": 3})
    >>> found.node
    Chars(ranges=(('1', '3'),), negated=False, minimum=1, maximum=1)
    """
    reading = read_schema(schema, longest=sys.maxsize)
    rules = Rules()
    node = Speller(JSON_LEXICON, rules, reading.definitions).spell(reading.shape)
    return SchemaRules(node, rules.table, reading.unsupported)
