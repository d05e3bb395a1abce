"""Finds the grammar of the rest of an answer, after the text that the prompt has already written.

Strategy: the grammar is read against the text, and every way in which the text can be its beginning leaves a rest (a
Brzozowski derivative, on nodes). So an open reasoning block, a closed one, and a half-written answer need no cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from unrender.emit.stops import Rest, unfolded
from unrender.errors import GrammarError
from unrender.grammar import nodes
from unrender.grammar.nodes import Chars, Choice, Grammar, Literal, Node, Ref, Sequence, Until

MAX_STEPS = 1_000_000
"""Steps to read what the prompt has begun; each character of free text may be the last, so it takes one at least."""


def resume_after(grammar: Grammar, begun: str) -> Grammar:
    """Return the grammar of what may follow `begun`. Raises `GrammarError` when no answer begins with it.

    >>> resume_after(Grammar(Literal("<think>")), "<th").root
    Literal(text='ink>')
    """
    found = resume_any(grammar, (begun,))
    if found is None:
        raise GrammarError(f"the prompt begins the answer with {begun!r:.80}, which the format does not write")
    return found


def resume_any(grammar: Grammar, begun: Iterable[str]) -> Grammar | None:
    """Return the grammar of what may follow any of the texts in `begun`; None when no answer begins with one.

    >>> resume_any(Grammar(Literal("<think>")), ("a", "b")) is None
    True
    """
    rests = list(dict.fromkeys(rest for text in begun for rest in _after((grammar.root,), text, grammar.rules)))
    options = tuple(rest[0] if len(rest) == 1 else Sequence(rest) for rest in rests)
    return Grammar(options[0] if len(options) == 1 else Choice(options), grammar.rules) if options else None


def _after(rest: Rest, text: str, rules: Mapping[str, Node]) -> Iterator[Rest]:
    """Yield what is left of `rest` after `text`, once for each way to read it.

    Raises `GrammarError` after `MAX_STEPS` steps.
    """
    waiting: list[tuple[Rest, int]] = [(rest, 0)]
    for _ in range(MAX_STEPS):
        if not waiting:
            return
        rest, at = waiting.pop()
        if at == len(text):
            yield rest
        elif rest:
            waiting.extend(reversed(list(_ways(rest[0], rest[1:], text, at, rules))))
    raise GrammarError(
        f"the prompt begins the answer with {text!r:.80}, which takes more than {MAX_STEPS} steps to read"
    )


def _ways(head: Node, tail: Rest, text: str, at: int, rules: Mapping[str, Node]) -> Iterator[tuple[Rest, int]]:
    """Yield the ways to read `text` from `at` on with `head`: what is left then, and from where on."""
    match head:
        case Literal(literal) | nodes.Layout(literal):
            if text.startswith(literal, at):
                yield tail, at + len(literal)
            elif literal.startswith(text[at : at + len(literal)]):
                yield (Literal(literal[len(text) - at :]), *tail), len(text)
        case Until(stops) | nodes.Tag(_, Until(stops)):
            yield from _through_text(stops, head, tail, text, at)
        case Chars():
            yield from _through_chars(head, tail, text, at)
        case Ref(name):
            yield (rules[name], *tail), at
        case _:
            yield from ((way, at) for way in unfolded(head, tail) or ())


def _through_text(stops: tuple[str, ...], head: Node, tail: Rest, text: str, at: int) -> Iterator[tuple[Rest, int]]:
    ends = [found + len(stop) for stop in stops if (found := text.find(stop, at)) >= 0]
    yield from ((tail, cut) for cut in _cuts(tail, text, at, min((*ends, len(text)))))
    if not ends:
        yield (head, *tail), len(text)


def _cuts(tail: Rest, text: str, start: int, end: int) -> Iterator[int]:
    """Yield where free text may have ended; before a literal, only where that begins or may still begin."""
    literal = tail[0].text if tail and isinstance(tail[0], Literal) else ""
    if not literal:
        yield from range(start, end)
        return
    found = text.find(literal, start)
    while 0 <= found < end:
        yield found
        found = text.find(literal, found + 1)
    last = range(max(start, len(text) - len(literal) + 1), end)
    yield from (cut for cut in last if literal.startswith(text[cut:]))


def _through_chars(head: Chars, tail: Rest, text: str, at: int) -> Iterator[tuple[Rest, int]]:
    end = len(text) if head.maximum is None else min(at + head.maximum, len(text))
    fitting = next((place for place in range(at, end) if not _holds(head, text[place])), end)
    yield from ((tail, cut) for cut in range(at + head.minimum, min(fitting + 1, len(text))))
    if fitting == len(text):
        read = fitting - at
        left = None if head.maximum is None else head.maximum - read
        yield (replace(head, minimum=max(head.minimum - read, 0), maximum=left), *tail), fitting


def _holds(chars: Chars, character: str) -> bool:
    return any(low <= character <= high for low, high in chars.ranges) != chars.negated
