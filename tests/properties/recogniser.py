"""A naive recogniser of combinators: what the engine must agree with, in as few lines as it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unrender import nodes
from unrender.nodes import Grammar, Node

Match = tuple[int, tuple[tuple[str, str], ...]]
"""Where the match ends, and the text of each tag in it."""


class Recogniser:
    """Matches by plain recursion; `cuts` counts the cuts that were passed outside lookaheads and atoms."""

    def __init__(self, rules: Mapping[str, Node], text: str) -> None:
        self.rules, self.text, self.cuts = rules, text, 0

    def match(self, node: Node, at: int) -> Match | None:  # noqa: C901 -- a table, by kind of node
        match node:
            case nodes.Literal(text):
                return (at + len(text), ()) if self.text.startswith(text, at) else None
            case nodes.Layout(text, verbatim):
                layout = "".join(f"(?:{re.escape(c)}" for c in text) + ")?" * len(text) if verbatim else r"\s*"
                return re.compile(layout).match(self.text, at).end(), ()
            case nodes.Chars(ranges, negated, low, high):
                held = [any(a <= c <= b for a, b in ranges) != negated for c in self.text[at:]][:high]
                count = (*held, False).index(False)
                return (at + count, ()) if count >= low else None
            case nodes.Until(stops):
                return min([i for s in stops if (i := self.text.find(s, at)) >= 0], default=len(self.text)), ()
            case nodes.End():
                return (at, ()) if at == len(self.text) else None
            case nodes.Cut():
                self.cuts += 1
                return at, ()
            case nodes.Sequence(parts):
                return self.sequence(parts, at)
            case nodes.Choice(options):
                return self.choice(options, at)
            case nodes.Optional(inner):
                return self.choice((inner, nodes.Literal("")), at)
            case nodes.Repeat():
                return self.repeat(node, at)
            case nodes.Ref(rule):
                return self.match(self.rules[rule], at)
            case nodes.Tag(role, inner):
                inside = self.match(inner, at)
                return inside and (inside[0], ((role.value, self.text[at : inside[0]]),))
            case nodes.Peek(inner):
                return (at, ()) if self.apart(inner, at) else None
            case nodes.Negate(inner):
                return None if self.apart(inner, at) else (at, ())
            case nodes.Atomic(inner):
                return self.apart(inner, at)
        raise AssertionError(node)

    def sequence(self, parts: tuple[Node, ...], at: int) -> Match | None:
        tagged: tuple[tuple[str, str], ...] = ()
        for part in parts:
            found = self.match(part, at)
            if found is None:
                return None
            at, tagged = found[0], tagged + found[1]
        return at, tagged

    def choice(self, options: tuple[Node, ...], at: int) -> Match | None:
        cuts = self.cuts
        for option in options:
            found = self.match(option, at)
            if found is not None or self.cuts != cuts:
                return found
        return None

    def repeat(self, node: nodes.Repeat, at: int) -> Match | None:
        tagged: tuple[tuple[str, str], ...] = ()
        count = 0
        while count != node.maximum:
            again = () if node.separator is None or not count else (node.separator,)
            cuts = self.cuts
            found = self.sequence((*again, node.node), at)
            if found is None:
                return (at, tagged) if count >= node.minimum and self.cuts == cuts else None
            empty, at, tagged, count = found[0] == at, found[0], tagged + found[1], count + 1
            if empty:
                break
        return at, tagged

    def apart(self, node: Node, at: int) -> Match | None:
        cuts = self.cuts
        found = self.match(node, at)
        self.cuts = cuts
        return found


def recognise(grammar: Grammar, text: str) -> tuple[tuple[str, str], ...] | None:
    """Return the tagged texts of an answer that the grammar matches whole; None when it does not."""
    found = Recogniser(grammar.rules, text).match(nodes.Sequence((grammar.root, nodes.End())), 0)
    return found and found[1]
