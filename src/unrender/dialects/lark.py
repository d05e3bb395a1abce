r"""Writes a grammar in llguidance's dialect of Lark. JSON Schemas are passed to llguidance with `%json`.

Strategy: llguidance's lexer prefers the longest lexeme, so every regular rule becomes one terminal (upper case). Text up to a stop is one
lexeme, which ends with the stop and contains no earlier stop.

Rules: `schema.writer` creates the schemas in `%json`, so all dialects interpret a schema in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os.path import commonprefix

from unrender.dialects.context_free import (
    Lowered,
    Stopped,
    longer_stops,
    lower,
    rule_references,
)
from unrender.dialects.gbnf import written_choice
from unrender.dialects.stops import inverted, leaves_first
from unrender.grammar.expansion import Expansion
from unrender.limits import MAX_LAYOUT
from unrender.nodes import Chars, Choice, JsonValue, Literal, Node, Optional, Ref, Repeat, Sequence, refusal_of, walk
from unrender.nodes.patterns import SHORT_BOUNDS, write_pattern
from unrender.schema.reader import Unsupported

_ANY = "(?s:.*)"
# Limit whitespace as in the other dialects, and allow escapes such as `\u00e9`, which JSON parsers accept.
_OPTIONS = {"whitespace_pattern": f"[ \\t\\n\\r]{{1,{MAX_LAYOUT}}}", "json_allow_general_unicode_escapes": True}


def terminals(lowered: Lowered) -> frozenset[str]:
    """Return the rules that become one lexeme each. In all other rules, each literal and each character class is a lexeme."""
    rules = lowered.rules
    below = {name: rule_references(node) for name, node in rules.items()}
    # Regular rules consist of characters and other regular rules, without text up to a stop, schemas or loops. `special` adds a
    # self-reference to rules that aren't regular, so that `leaves_first` treats them as loops and omits them.
    special = {name: [name] for name in rules if name == lowered.root or isinstance(rules[name], (Stopped, JsonValue))}
    regular = frozenset(leaves_first(below | special))
    return _lexemes(rules, regular, below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncompared(Unsupported):
    """A warning that a grammar may reject valid answers."""

    def __str__(self) -> str:
        return f"{self.keyword}: {self.reason}"


UNCOMPARED = Uncompared(
    path="#",
    keyword="Lark",
    reason="too many alternatives to compare, so llguidance's lexer may reject some valid answers; "
    "other dialects accept all of them",
)


def write_lark(expansion: Expansion) -> tuple[str, tuple[Unsupported, ...]]:
    """Return an expanded grammar in llguidance's dialect of Lark, and its warnings. The start rule is `start`.

    If there is a warning, the Lark grammar may reject text that the expanded grammar allows.
    """
    lowered = lower(expansion.grammar, steps=expansion.limits.grammar_steps)
    writer = _Writer(lowered, terminals(lowered))
    text = "%llguidance {}\n\n" + "".join(f"{name}: {body}\n" for name, body in writer.lines())
    return text, (UNCOMPARED,) if lowered.unsure else ()


@dataclass(slots=True)
class _Writer:
    lowered: Lowered
    terminals: frozenset[str]
    """Names of the regular rules that become one lexeme each."""

    def lines(self) -> Iterator[tuple[str, str]]:
        for name, node in self.lowered.rules.items():
            if isinstance(node, Stopped):
                yield from self.text(name, node)
            else:
                yield self.name(name), self.body(node)

    def name(self, rule: str) -> str:
        if rule == self.lowered.root:
            return "start"
        plain = rule.replace("-", "_")
        return f"T_{plain.upper()}" if rule in self.terminals else f"r_{plain}"

    def text(self, name: str, node: Stopped) -> Iterator[tuple[str, str]]:
        """Write text up to a stop: one terminal for each stop that may follow, and one for text without a stop.

        All terminals exclude text that continues after a stop. If several terminals need this exclusion, it is a separate terminal.
        """
        # Text up to the first `</x>` ends in `</x>`, and contains no other `</x>`. Without the second condition, the lexer would read up to
        # the last `</x>`, because it prefers the longest lexeme.
        plain = name.replace("-", "_").upper()
        stops = _any_of(sorted(node.stops))
        beyond = f"/{_ANY}(?:{stops})(?s:.){_ANY}/"
        if len(node.branches) > 1:
            yield f"B_{plain}", beyond
            beyond = f"B_{plain}"
        longer = longer_stops(node.stops)
        options = [f"{_json(text)} {self.name(branch.rule)}" for text, branch in node.exact]
        for at, (stop, branch) in enumerate(node.branches):
            terminal = f"U_{plain}_{at}"
            options.append(f"{terminal} {self.name(branch.rule)}")
            yield terminal, f"/{_ANY}{write_pattern(Literal(stop))}/ & ~{beyond}{_without(stop, node, longer)}"
        if node.at_end:
            # A lexeme is never empty, so the empty string is a separate option.
            options += [f"U_{plain}_END", '""']
            yield f"U_{plain}_END", f"/(?s:.+)/ & ~/{_ANY}(?:{stops}){_ANY}/" if stops else "/(?s:.+)/"
        yield self.name(name), " | ".join(options)

    def body(self, node: Node) -> str:
        if isinstance(node, JsonValue):
            # Replace the schema `true` by `{}`, which is equivalent.
            schema = node.schema if isinstance(node.schema, dict) else {}
            return f"%json {_json({**schema, 'x-guidance': _OPTIONS})}"
        return written_choice(node, self.item)

    def item(self, node: Node) -> str:
        match node:
            case Ref(name):
                return self.name(name)
            case Literal(text):
                return _json(text)
            case Chars():
                return f"/{write_pattern(node)}/"
            case Optional(inner):
                return f"({written_choice(inner, self.item)})?"
            case Repeat(inner, low, high, None):
                bounds = SHORT_BOUNDS.get((low, high)) or f"{{{low},{'' if high is None else high}}}"
                return f"({written_choice(inner, self.item)}){bounds}"
            case Choice() | Sequence():
                return f"({written_choice(node, self.item)})"
        raise refusal_of(node, "cannot be written in Lark")


def _any_of(texts: list[str]) -> str:
    """Return a pattern that matches any of the sorted `texts`. Common prefixes are factored out.

    >>> _any_of(["<call", "<calls>", "<think>", "A", "Action", "B"])
    '[AB]|<(?:call|think>)'
    """
    single = tuple((text, text) for text in texts if len(text) == 1)
    options = [write_pattern(Chars(single))] if single else []
    for _, alike in groupby((text for text in texts if (text[0], text[0]) not in single), key=itemgetter(0)):
        group = list(alike)
        start = commonprefix(group)
        more = "" if group[0] == start else f"(?:{_any_of([text[len(start) :] for text in group])})"
        options.append(write_pattern(Literal(start)) + more)
    return "|".join(options)


def _without(stop: str, node: Stopped, longer: Mapping[str, tuple[str, ...]]) -> str:
    """Return a pattern for the exceptions from the text up to `stop`: longer stops, and exact strings, which have their own rules."""
    ends = "".join(f" & ~/{_ANY}{write_pattern(Literal(other))}/" for other in longer.get(stop, ()))
    # Without this pattern, `<b></x>` could be both an exact string and text up to `</x>`, and a lexer can't decide between the two.
    exact = "|".join(write_pattern(Literal(text)) for text, _ in node.exact if text.endswith(stop))
    return f"{ends} & ~/{exact}/" if exact else ends


def _lexemes(
    rules: Mapping[str, Node | Stopped], regular: frozenset[str], below: Mapping[str, list[str]]
) -> frozenset[str]:
    """Return the regular rules that a lexer can read as one lexeme.

    A lexer takes the longest lexeme, even where a shorter one is correct. So the following rules can't be lexemes:

    - A separator and a rule that is a lexeme elsewhere, as in `(", " entry)?`. The lexer would read
      both as one lexeme, even where the separator alone is correct.
    - A rule that starts with a lexeme that is also used elsewhere, e.g. for another order of arguments.
    - A rule that may end or continue with another lexeme, if the text after the rule starts the same way.
    """
    # If a rule isn't one lexeme, its parts become lexemes, which affects other rules. Repeat until nothing changes.
    kept = {name for name in regular if not _may_go_on(rules[name])}
    first = {name: frozenset(_first_rules(node)) for name, node in rules.items()}
    users = inverted(below)
    queue = [name for name in rules if name not in kept]
    alone: set[str] = set()
    # The rules that `name` refers to become lexemes, and rules that refer to `name` can't be lexemes.
    for name in queue:
        fresh = [other for other in below[name] if other not in alone]
        alone.update(fresh)
        steps = [user for other in fresh for user in users[other] if _is_step(rules[user])]
        longer = [user for other in fresh for user in users[other] if other in first[user]]
        alike = _beside_alike(rules[name], rules, kept)
        broken = {name: None for name in (*steps, *longer, *users.get(name, ()), *alike) if name in kept}
        kept.difference_update(broken)
        queue.extend(broken)
    return frozenset(kept)


def _may_go_on(node: Node | Stopped) -> bool:
    """Return whether a rule may end with an optional reference to other rules."""
    # Read as one lexeme, `"a" (", " b)?` would consume the `, ` after `a`, which may belong to the text after the rule.
    if isinstance(node, Choice):
        return any(map(_may_go_on, node.options))
    last = node.parts[-1] if isinstance(node, Sequence) and node.parts else node
    # For example, `"a" (b? / c)` ends in a choice with the optional `b?`.
    if isinstance(last, Choice):
        return _may_go_on(last)
    return isinstance(last, Optional) and bool(rule_references(last))


def _first_rules(node: Node | Stopped) -> Iterator[str]:
    """Yield the names of rules that a node may directly start with."""
    match node:
        case Ref(name):
            yield name
        case Choice(options):
            for option in options:
                yield from _first_rules(option)
        case Optional(inner) | Repeat(inner):
            yield from _first_rules(inner)
        case Sequence(parts):
            # `a? b c` may start with `a` or `b`, because `b` is the first required part.
            for part in parts:
                yield from _first_rules(part)
                if not (isinstance(part, Optional) or (isinstance(part, Repeat) and part.minimum == 0)):
                    return
        case Stopped() | Literal() | Chars() | JsonValue():
            pass
        case _:
            raise refusal_of(node, "cannot be written in Lark")


def _beside_alike(node: Node | Stopped, rules: Mapping[str, Node | Stopped], lexemes: set[str]) -> Iterator[str]:
    """Yield each lexeme that is an option of a choice, if another option starts with a prefix of the lexeme.

    A lexer would read the longer lexeme even where the other option is correct.
    """
    # With `T_DATE | /[0-9]{1,3}/ "%"`, the lexer would read `2024` in `2024%` as the start of a date.
    choices = () if isinstance(node, Stopped) else (inner for inner in walk(node) if isinstance(inner, Choice))
    for each in choices:
        whole = [node for node in each.options if isinstance(node, Ref) and node.rule in lexemes]
        if not whole:
            continue
        taken = {part for option in set(each.options).difference(whole) for part in _beginnings(option, rules)}
        yield from (option.rule for option in whole if not taken.isdisjoint(_beginnings(option, rules)))


def _beginnings(node: Node, rules: Mapping[str, Node | Stopped]) -> Iterator[Node]:
    """Yield the rules, character classes and literals that a node may start with, including those at the start of other rules."""
    waiting: list[Node | Stopped] = [node]
    seen: set[str] = set()
    for here in waiting:
        match here:
            case Ref(name) if name not in seen:
                seen.add(name)
                waiting.append(rules[name])
                yield here
            case Sequence(parts):
                waiting += parts[:1]
            case Choice(options):
                waiting += options
            case Chars() | Literal():
                yield here
            case Stopped() | Ref() | Optional() | Repeat() | JsonValue():
                pass
            case _:
                raise refusal_of(here, "cannot be written in Lark")


def _is_step(node: Node | Stopped) -> bool:
    # `", " entry` is a separator, followed by a rule that is a lexeme elsewhere.
    inner = node.node if isinstance(node, Optional) else node
    return isinstance(inner, Sequence) and isinstance(inner.parts[0], Literal) and isinstance(inner.parts[1], Ref)


_json = json.JSONEncoder(ensure_ascii=False).encode
"""Return a value as JSON. This reuses one encoder, because `json.dumps` would create an encoder for each call."""
