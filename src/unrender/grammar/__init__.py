"""Grammars of answers: how a tree is written out in plain nodes, and combinators to write a grammar by hand.

In comes what a model writes of the tree of an answer (`answer`). Open `expansion` first: it turns that into plain nodes for the
dialects. `call_rules` writes a call for each tool, and `spelling` a value by its schema. `handmade` does the same for a grammar
that a person wrote; `starts` finds how a node of it may begin. The rule never to break: whatever is written is read as it was meant.

Here are the combinators, the functions that a person writes a grammar with. Texts stand for themselves: wherever a node
is expected, `"<call>"` means `literal("<call>")`. `Grammar(root, rules)` is the whole; the machine reads it, and the
dialects are written from it. The names are those that other parsers' combinators have.

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


def literal(text: str) -> Node:
    """Return `"text"`: exactly this text."""
    return nodes.Literal(text)


def sequence(*parts: Node | str) -> Node:
    """Return `a b c`: one after the other."""
    return nodes.Sequence(tuple(map(_node, parts)))


def choice(*options: Node | str) -> Node:
    """Return `a / b / c`: the first option that matches; a later one is not tried once an earlier one has matched."""
    return nodes.Choice(tuple(map(_node, options)))


def optional(part: Node | str) -> Node:
    """Return `a?`."""
    return nodes.Optional(_node(part))


def repeat(part: Node | str, minimum: int = 0, maximum: int | None = None, separator: Node | str | None = None) -> Node:
    """Return `a{minimum,maximum}`, greedy, with `separator` between two rounds.

    A round that takes no text is the last one. Raises `GrammarError` when the bounds are not 0 <= minimum <= maximum.
    """
    _check_bounds(minimum, maximum)
    return nodes.Repeat(_node(part), minimum, maximum, None if separator is None else _node(separator))


def zero_or_more(part: Node | str, separator: Node | str | None = None) -> Node:
    """Return `a*`."""
    return repeat(part, separator=separator)


def one_or_more(part: Node | str, separator: Node | str | None = None) -> Node:
    """Return `a+`."""
    return repeat(part, 1, separator=separator)


def until(*stops: str) -> Node:
    """Return `(!stop .)*`: all text before the first of `stops`, or to the end of the output; the stop is not consumed."""
    if not all(stops):
        raise GrammarError("until: expected stops of at least one character, found an empty one")
    return nodes.Until(stops)


def rest() -> Node:
    """Return `.*`: the rest of the output."""
    return nodes.Until()


def chars(characters: str, minimum: int = 1, maximum: int | None = 1) -> Node:
    r"""Return `[characters]{minimum,maximum}`, written as in a regular expression's class: `a-z`, `^"`, `\-`.

    Raises `GrammarError` for an empty class, for a range that runs backwards, and for bounds that are not 0 <= minimum
    <= maximum.

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
            raise GrammarError(f"chars: the range {low}-{high} runs backwards")
        ranges.append((low, high))
        at += 1
    if not ranges:
        raise GrammarError(f"chars: expected at least one character, found {characters!r}")
    return nodes.Chars(tuple(ranges), negated, minimum, maximum)


def _check_bounds(minimum: int, maximum: int | None) -> None:
    if minimum < 0 or (maximum is not None and maximum < minimum):
        raise GrammarError(f"expected 0 <= minimum <= maximum, found {minimum} and {maximum}")


def space(text: str = "") -> Node:
    """Return white space: `text` is generated, and any white space is read, even none."""
    return nodes.Layout(text)


def peek(part: Node | str) -> Node:
    """Return `&a`: `a` must follow, and is not consumed."""
    return nodes.Peek(_node(part))


def negate(part: Node | str) -> Node:
    """Return `!a`: `a` must not follow."""
    return nodes.Negate(_node(part))


def end() -> Node:
    """Return `!.`: the end of the output."""
    return nodes.End()


def json_value() -> Node:
    """Return any JSON value; it streams."""
    return nodes.JsonValue()


def schema(json_schema: JsonSchema) -> Node:
    """Return a JSON value that follows the schema when generated. The parser accepts any JSON value."""
    return nodes.JsonValue(json_schema)


def python_value() -> Node:
    """Return one value in Python syntax (JSON is accepted as well)."""
    return nodes.PythonValue()


def quoted(quote: str = '"') -> Node:
    """Return a string between two `quote` characters; a backslash escapes a character in it.

    Raises `GrammarError` for another quote than `"` or `'`.
    """
    if quote not in ('"', "'"):
        raise GrammarError(f"quoted: expected \" or ', found {quote!r}")
    return nodes.Quoted(quote)


def ref(rule: str) -> Node:
    """Return the rule of that name in `Grammar.rules`."""
    return nodes.Ref(rule)


def atomic(part: Node | str) -> Node:
    """Return `a`, whose text is buffered until all of it has matched."""
    return nodes.Atomic(_node(part))


def cut() -> Node:
    """Return a cut: the text matched so far is final, and no other option is tried for it.

    Inside `atomic`, `peek` and `negate`, it is final only for the text matched inside.
    """
    return nodes.Cut()


def tag(role: Role, part: Node | str) -> Node:
    """Return `a`, whose text has this role in the message."""
    return nodes.Tag(role, _node(part))


def reasoning(part: Node | str) -> Node:
    """Return `a`, whose text is the model's reasoning."""
    return tag(Role.REASONING, part)


def content(part: Node | str) -> Node:
    """Return `a`, whose text is the answer."""
    return tag(Role.CONTENT, part)


def tool_call(part: Node | str) -> Node:
    """Return `a`, which is one tool call; `name`, `call_id`, `arguments` and `argument` mark its parts."""
    return tag(Role.CALL, part)


def name(part: Node | str) -> Node:
    """Return `a`, whose text is the call's name; it matches only the name of a tool that is offered."""
    return tag(Role.NAME, part)


def call_id(part: Node | str) -> Node:
    """Return `a`, whose text is the call's id."""
    return tag(Role.ID, part)


def arguments(part: Node | str) -> Node:
    """Return `a`, whose text is the call's arguments: one JSON object, or a value of `python_value` that is one."""
    return tag(Role.ARGUMENT, part)


def argument(key: Node | str, between: Node | str, value: Node | str) -> Node:
    """Return one argument: its name, the text `between` them, and its value.

    A value written as text gets its type from the tool's schema.
    """
    return sequence(tag(Role.KEY, key), between, tag(Role.VALUE, value))


def conforms(value: Any, schema: JsonSchema) -> bool:
    """Return whether a schema allows a JSON value, as far as grammars enforce the schema.

    Raises `GrammarError` when `schema` is not a JSON schema.

    >>> conforms({"n": 1}, {"type": "object", "required": ["n"]}), conforms([], {"type": "object"})
    (True, False)
    """
    reading = read_schema(schema)
    return admits(reading.shape, value, reading.definitions)


def unsupported_keywords(schema: JsonSchema) -> tuple[str, ...]:
    """Return the paths of the keywords that no grammar enforces; empty if grammars enforce the whole schema.

    Raises `GrammarError` when `schema` is not a JSON schema.

    >>> unsupported_keywords({"pattern": "^a+$"}), unsupported_keywords({"pattern": "(?=a)"})
    ((), ('#/pattern',))
    """
    return tuple(f"{found.path}/{found.keyword}" for found in read_schema(schema).unsupported)
