"""A grammar, and what the prompt has already written of the answer → the grammar of the rest.

Strategy: the grammar is read against the text, and every way in which the text can be its beginning leaves a rest (a
Brzozowski derivative, on nodes). So an open reasoning block, a closed one, and a half-written answer need no cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from unrender.errors import GrammarError
from unrender.grammar import nodes
from unrender.grammar.nodes import Chars, Choice, Grammar, Literal, Node, Optional, Ref, Repeat, Sequence, Until

Rest = tuple[Node, ...]


def resume(grammar: Grammar, begun: str) -> Grammar:
    """Return the grammar of what may follow `begun`; raises `GrammarError` when no answer begins so.

    >>> resume(Grammar(Literal("<think>")), "<th").root
    Literal(text='ink>')
    """
    found = resume_any(grammar, (begun,))
    if found is None:
        raise GrammarError(f"the prompt begins the answer with {begun!r:.80}, which the format does not write")
    return found


def resume_any(grammar: Grammar, begun: Iterable[str]) -> Grammar | None:
    """Return the grammar of what may follow any of the texts in `begun`; None when no answer begins so.

    >>> resume_any(Grammar(Literal("<think>")), ("a", "b")) is None
    True
    """
    rests = list(dict.fromkeys(rest for text in begun for rest in _after((grammar.root,), text, grammar.rules)))
    options = tuple(rest[0] if len(rest) == 1 else Sequence(rest) for rest in rests)
    return Grammar(options[0] if len(options) == 1 else Choice(options), grammar.rules) if options else None


def _after(rest: Rest, text: str, rules: Mapping[str, Node]) -> Iterator[Rest]:
    """Yield what is left of `rest` behind `text`, once for each way to read it."""
    if not text:
        yield rest
        return
    if not rest:
        return
    head, tail = rest[0], rest[1:]
    match head:
        case Literal(literal) | nodes.Layout(literal):
            if text.startswith(literal):
                yield from _after(tail, text[len(literal) :], rules)
            elif literal.startswith(text):
                yield (Literal(literal[len(text) :]), *tail)
        case nodes.Tag(role, Until(stops)):
            yield from _after_text(stops, nodes.Tag(role, Until(stops)), tail, text, rules)
        case Until(stops):
            yield from _after_text(stops, head, tail, text, rules)
        case Chars():
            yield from _after_chars(head, tail, text, rules)
        case Sequence(parts):
            yield from _after((*parts, *tail), text, rules)
        case Choice(options):
            for option in options:
                yield from _after((option, *tail), text, rules)
        case Optional(inner):
            yield from _after((inner, *tail), text, rules)
            yield from _after(tail, text, rules)
        case Repeat():
            yield from _after_repeat(head, tail, text, rules)
        case Ref(name):
            yield from _after((rules[name], *tail), text, rules)
        case nodes.Tag(_, inner) | nodes.Atomic(inner):
            yield from _after((inner, *tail), text, rules)
        case nodes.Cut() | nodes.Tolerated() | nodes.End():
            yield from _after(tail, text, rules)


def _after_text(stops: tuple[str, ...], head: Node, tail: Rest, text: str, rules: Mapping[str, Node]) -> Iterator[Rest]:
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    first = min(ends, default=len(text) + 1)
    for cut in range(min(first, len(text))):
        yield from _after(tail, text[cut:], rules)
    if not ends:
        yield (head, *tail)


def _after_chars(head: Chars, tail: Rest, text: str, rules: Mapping[str, Node]) -> Iterator[Rest]:
    most = len(text) if head.maximum is None else min(head.maximum, len(text))
    fitting = next((at for at in range(most) if not _holds(head, text[at])), most)
    for count in range(head.minimum, min(fitting + 1, len(text))):
        yield from _after(tail, text[count:], rules)
    if fitting == len(text):
        left = None if head.maximum is None else head.maximum - fitting
        yield (replace(head, minimum=max(head.minimum - fitting, 0), maximum=left), *tail)


def _holds(chars: Chars, character: str) -> bool:
    return any(low <= character <= high for low, high in chars.ranges) != chars.negated


def _after_repeat(head: Repeat, tail: Rest, text: str, rules: Mapping[str, Node]) -> Iterator[Rest]:
    if head.maximum != 0:
        less = None if head.maximum is None else head.maximum - 1
        again = head.node if head.separator is None else Sequence((head.separator, head.node))
        more = Repeat(again, max(head.minimum - 1, 0), less)
        yield from _after((head.node, more, *tail), text, rules)
    if head.minimum == 0:
        yield from _after(tail, text, rules)
