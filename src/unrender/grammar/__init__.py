"""Grammars of answers: both halves of one answer's grammar, and combinators to write a grammar by hand.

In comes a Format and a Request; out come the half that a parser reads and the half that a model writes (`assemble`,
which to open first). `expansion` turns the written half into plain nodes for the dialects: `call_rules` writes a call
for each tool, and `spelling` writes a value by its schema. The rule never to break: whatever is written is read as it
was meant. Public are the combinators and `bundled`.

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
from unrender.schema.places import bundled

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
