"""Grammars of answers: combinators to write one by hand, and the nodes that the rest of the package uses.

>>> from unrender.grammar import Grammar, content, until
>>> Grammar(content(until("<end>"))).root
Tag(role=<Role.CONTENT: 'content'>, node=Until(stops=('<end>',)))
"""

from unrender.grammar.combinators import (
    argument,
    arguments,
    atomic,
    call_id,
    chars,
    choice,
    content,
    cut,
    end,
    json_value,
    literal,
    name,
    negate,
    one_or_more,
    optional,
    peek,
    python_value,
    quoted,
    reasoning,
    ref,
    repeat,
    rest,
    schema,
    sequence,
    space,
    tag,
    tool_call,
    until,
    zero_or_more,
)
from unrender.grammar.conformance import conforms, unsupported_keywords
from unrender.nodes import Grammar, Node, Role
from unrender.schema.references import bundled

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
