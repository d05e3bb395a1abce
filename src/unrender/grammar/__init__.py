"""Grammars of answers: expansion into plain nodes, and combinators for handwritten grammars.

The input is the tree of an answer (`answer`). Read `expansion` first: it turns the tree into plain nodes for the dialects. `call_rules`
creates the call of each tool, and `spelling` creates values from their schemas. `handmade` adapts handwritten grammars to a request, and
`starts` computes how a node may start. Rule: text that a grammar generates is always parsed as intended.

This module contains the combinators for handwritten grammars. Wherever a node is expected, a string such as `"<call>"` means
`literal("<call>")`. `Grammar(root, rules)` is a complete grammar. The parser uses the grammar directly, and each engine's dialect is
generated from it. The combinators' names are common in other parser combinator libraries.

>>> one_call = tool_call(sequence("<call>", name(chars("a-z_", 1, None)), " ", arguments(json_value()), "</call>"))
>>> Grammar(sequence(content(until("<call>")), optional(one_call))).root.parts[0]
Tag(role=<Role.CONTENT: 'content'>, node=Until(stops=('<call>',)))
"""

from __future__ import annotations

import re
from typing import Any

from unrender import nodes
from unrender.errors import GrammarError
from unrender.json_values import JsonSchema
from unrender.nodes import Grammar, Node, Role
from unrender.schema.admission import admits
from unrender.schema.places import bundled
from unrender.schema.reader import read_schema
from unrender.signatures import checked

__all__ = [
    "Grammar",
    "Node",
    "Role",
    "argument",
    "arguments",
    "atomic",
    "bundled",
    "call_id",
    "chars",
    "choice",
    "conforms",
    "content",
    "cut",
    "end",
    "json_value",
    "literal",
    "name",
    "negate",
    "one_or_more",
    "optional",
    "peek",
    "python_value",
    "quoted",
    "reasoning",
    "ref",
    "repeat",
    "rest",
    "schema",
    "sequence",
    "space",
    "tag",
    "tool_call",
    "unsupported_keywords",
    "until",
    "zero_or_more",
]

_CHARACTER = re.compile(r"\\(.)|(.)", re.DOTALL)


def _node(part: Node | str) -> Node:
    if isinstance(part, str):
        return nodes.Literal(part)
    if not isinstance(part, Node):
        raise GrammarError(f"expected a node or a text, found {type(part).__name__}")
    return part


@checked
def literal(text: str) -> Node:
    """Return `"text"`: exactly this text."""
    return nodes.Literal(text)


def sequence(*parts: Node | str) -> Node:
    """Return `a b c`: all parts in this order."""
    return nodes.Sequence(tuple(map(_node, parts)))


def choice(*options: Node | str) -> Node:
    """Return `a / b / c`: the first option that matches. Once an option has matched, later ones aren't tried."""
    return nodes.Choice(tuple(map(_node, options)))


@checked
def optional(part: Node | str) -> Node:
    """Return `a?`."""
    return nodes.Optional(_node(part))


@checked
def repeat(part: Node | str, minimum: int = 0, maximum: int | None = None, separator: Node | str | None = None) -> Node:
    """Return `a{minimum,maximum}`, greedy, with `separator` between iterations.

    An iteration that matches no text ends the repetition. Raises `GrammarError` unless 0 <= minimum <= maximum.
    """
    _check_bounds(minimum, maximum)
    return nodes.Repeat(_node(part), minimum, maximum, None if separator is None else _node(separator))


@checked
def zero_or_more(part: Node | str, separator: Node | str | None = None) -> Node:
    """Return `a*`."""
    return repeat(part, separator=separator)


@checked
def one_or_more(part: Node | str, separator: Node | str | None = None) -> Node:
    """Return `a+`."""
    return repeat(part, 1, separator=separator)


def until(*stops: str) -> Node:
    """Return `(!stop .)*`: all text before the first of `stops`, or up to the end of the output. The stop isn't consumed."""
    if not all(stops):
        raise GrammarError("until: expected stops of at least one character, found an empty one")
    return nodes.Until(stops)


def rest() -> Node:
    """Return `.*`: the rest of the output."""
    return nodes.Until()


@checked
def chars(characters: str, minimum: int = 1, maximum: int | None = 1) -> Node:
    r"""Return `[characters]{minimum,maximum}`, with the syntax of a regular expression's class: `a-z`, `^"`, `\-`.

    Raises `GrammarError` for an empty class, for a reversed range, and unless 0 <= minimum <= maximum.

    >>> chars("a-z_")
    Chars(ranges=(('a', 'z'), ('_', '_')), negated=False, minimum=1, maximum=1)
    """
    _check_bounds(minimum, maximum)
    negated = characters.startswith("^")
    found = [(a or b, bool(a)) for a, b in _CHARACTER.findall(characters[negated:])]
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(found):
        low = high = found[at][0]
        if at + 2 < len(found) and found[at + 1] == ("-", False):
            high = found[at + 2][0]
            at += 2
        if low > high:
            raise GrammarError(f"chars: the range {low}-{high} is reversed")
        ranges.append((low, high))
        at += 1
    if not ranges:
        raise GrammarError(f"chars: expected at least one character, found {characters!r}")
    return nodes.Chars(tuple(ranges), negated, minimum, maximum)


def _check_bounds(minimum: int, maximum: int | None) -> None:
    if minimum < 0 or (maximum is not None and maximum < minimum):
        raise GrammarError(f"expected 0 <= minimum <= maximum, found {minimum} and {maximum}")


@checked
def space(text: str = "") -> Node:
    """Return a node for whitespace. The node generates `text`, and accepts any whitespace, including none."""
    return nodes.Layout(text)


@checked
def peek(part: Node | str) -> Node:
    """Return `&a`: `a` must follow, but isn't consumed."""
    return nodes.Peek(_node(part))


@checked
def negate(part: Node | str) -> Node:
    """Return `!a`: `a` must not follow."""
    return nodes.Negate(_node(part))


def end() -> Node:
    """Return `!.`: the end of the output."""
    return nodes.End()


def json_value() -> Node:
    """Return a node for any JSON value. The parser streams the value."""
    return nodes.JsonValue()


@checked
def schema(json_schema: JsonSchema) -> Node:
    """Return a node for JSON values. Generated values follow the schema, but the parser accepts any value."""
    return nodes.JsonValue(json_schema)


def python_value() -> Node:
    """Return a node for one value, in Python syntax or JSON."""
    return nodes.PythonValue()


@checked
def quoted(quote: str = '"') -> Node:
    """Return a node for a string between two `quote` characters. A backslash escapes the next character.

    Raises `GrammarError` unless `quote` is `"` or `'`.
    """
    if quote not in ('"', "'"):
        raise GrammarError(f"quoted: expected \" or ', found {quote!r}")
    return nodes.Quoted(quote)


@checked
def ref(rule: str) -> Node:
    """Return a reference to a rule in `Grammar.rules`."""
    return nodes.Ref(rule)


@checked
def atomic(part: Node | str) -> Node:
    """Return `part`, with its text buffered until all of it has matched."""
    return nodes.Atomic(_node(part))


def cut() -> Node:
    """Return a cut: a commitment to the text matched so far, after which no other option is tried.

    Inside `atomic`, `peek` and `negate`, a cut commits only to the text matched inside that node.
    """
    return nodes.Cut()


@checked
def tag(role: Role, part: Node | str) -> Node:
    """Return `a`, tagged with this role in the message."""
    return nodes.Tag(role, _node(part))


@checked
def reasoning(part: Node | str) -> Node:
    """Return `part`, tagged as reasoning."""
    return tag(Role.REASONING, part)


@checked
def content(part: Node | str) -> Node:
    """Return `part`, tagged as content."""
    return tag(Role.CONTENT, part)


@checked
def tool_call(part: Node | str) -> Node:
    """Return `part`, tagged as one tool call. Tag the parts of the call with `name`, `call_id`, `arguments` and `argument`."""
    return tag(Role.CALL, part)


@checked
def name(part: Node | str) -> Node:
    """Return `part`, tagged as the name of a call, which must be the name of an offered tool."""
    return tag(Role.NAME, part)


@checked
def call_id(part: Node | str) -> Node:
    """Return `part`, tagged as the id of a call."""
    return tag(Role.ID, part)


@checked
def arguments(part: Node | str) -> Node:
    """Return `part`, tagged as the arguments of a call: a JSON object, or a Python dict with `python_value`."""
    return tag(Role.ARGUMENT, part)


@checked
def argument(key: Node | str, between: Node | str, value: Node | str) -> Node:
    """Return one argument: its name, the text `between` name and value, and its value.

    A value written as text gets its type from the tool's schema.
    """
    return sequence(tag(Role.KEY, key), between, tag(Role.VALUE, value))


@checked
def conforms(value: Any, schema: JsonSchema) -> bool:
    """Return True if a JSON value matches a schema. Only keywords that grammars enforce are checked.

    Raises `GrammarError` if `schema` isn't a JSON schema.

    >>> conforms({"n": 1}, {"type": "object", "required": ["n"]}), conforms([], {"type": "object"})
    (True, False)
    """
    reading = read_schema(schema)
    return admits(reading.shape, value, reading.definitions)


@checked
def unsupported_keywords(schema: JsonSchema) -> tuple[str, ...]:
    """Return the paths of the keywords that grammars can't enforce; empty if they enforce the complete schema.

    Raises `GrammarError` if `schema` isn't a JSON schema.

    >>> unsupported_keywords({"pattern": "^a+$"}), unsupported_keywords({"pattern": "(?=a)"})
    ((), ('#/pattern',))
    """
    return tuple(f"{found.path}/{found.keyword}" for found in read_schema(schema).unsupported)
