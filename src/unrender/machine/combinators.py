"""Compiles handwritten grammars into programs of one instruction, which reads the whole answer.

Strategy: everything that doesn't depend on the text is computed once for each node. Options that the next character excludes are never
tried. Therefore, a choice buffers text only if its options start with the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from unrender import nodes
from unrender.cache import kept
from unrender.errors import GrammarError
from unrender.format import TurnTexts
from unrender.grammar.handmade import Identity, check_references, check_request, ends_of, stopped_at
from unrender.grammar.starts import Start, class_of, ranges_of, start_of, starts_of
from unrender.machine.frames import IN_CALLS
from unrender.machine.grammar_reader import GrammarPart, ReadGrammar
from unrender.machine.interpreter import Program
from unrender.messages import Request
from unrender.values.finder import Finder
from unrender.values.scanner import LiteralStyle

_STRICT = LiteralStyle(strict=True)


def handmade_program(grammar: nodes.Grammar, request: Request, turn: TurnTexts) -> Program:
    """Return the program for an answer in a handwritten grammar. Raises `GrammarError` if the grammar can't fulfill the request."""
    check_request(request)
    return _kept_program(Identity(grammar), ends_of(turn))


@kept(100_000)
def _kept_program(made: Identity, ends: tuple[str, ...]) -> Program:
    return compile_combinators(made.grammar, ends)


def compile_combinators(grammar: nodes.Grammar, ends: tuple[str, ...] = ()) -> Program:
    """Return the program for `grammar`. `ends` contains the markers that end a turn. These markers end any free text, and all text after
    them is content.

    If the text doesn't match the grammar, the rest of the text, without the markers in `ends`, is content. Raises `GrammarError` for
    undefined rules, left recursion, misplaced tags, and nodes that are only allowed in formats. `GrammarError` is also raised if
    `grammar` isn't a `Grammar`.
    """
    if not isinstance(grammar, nodes.Grammar):
        raise GrammarError(f"grammar: expected an `unrender.grammar.Grammar`, found {type(grammar).__name__}")
    try:
        return _compiled(stopped_at(grammar, ends), ends)
    except RecursionError:
        raise GrammarError("the grammar's nodes are nested too deeply; define rules for the inner ones") from None


def _compiled(grammar: nodes.Grammar, ends: tuple[str, ...]) -> Program:
    check_references(grammar)
    known = starts_of(grammar.rules)
    start_of(grammar.root, known)
    has_ids = _check_tags(grammar)
    rest: nodes.Node = nodes.Tag(nodes.Role.CONTENT, nodes.Until(ends))
    answer = [grammar.root, nodes.End()]
    if ends:
        turn_end = _end_of_turn(ends)
        answer.insert(1, nodes.Repeat(turn_end))
        rest = nodes.Sequence((rest, nodes.Repeat(nodes.Sequence((turn_end, rest)))))
    parts = tuple(_part(node, known) for node in answer)
    rules = {name: _part(node, known) for name, node in grammar.rules.items()}
    return (ReadGrammar(parts, _part(rest, known), rules, has_ids),)


def _end_of_turn(ends: tuple[str, ...]) -> nodes.Node:
    """Return a node for an end-of-turn marker and the whitespace that follows it. Text before the marker becomes final."""
    texts = sorted(ends, key=len, reverse=True)
    return nodes.Sequence((nodes.Choice(tuple(map(nodes.Literal, texts))), nodes.Cut(), nodes.Layout("")))


def _check_tags(grammar: nodes.Grammar) -> bool:
    """Raise `GrammarError` for misplaced tags. Otherwise, return whether calls have ids."""
    # A rule may be used inside several tags. Check each pair of a rule and a tag only once, so that recursive rules terminate.
    seen: set[tuple[str, nodes.Role | None]] = set()
    queue: list[tuple[nodes.Node, nodes.Role | None]] = [(grammar.root, None)]
    has_ids = False
    for node, around in queue:
        inside = around
        if isinstance(node, nodes.Tag):
            _check_tag(node.role, around)
            inside = node.role
            has_ids |= node.role is nodes.Role.ID
        if isinstance(node, nodes.Ref) and (node.rule, around) not in seen:
            seen.add((node.rule, around))
            queue.append((grammar.rules[node.rule], around))
        queue.extend((child, inside) for child in nodes.children(node))
    return has_ids


def _check_tag(role: nodes.Role, around: nodes.Role | None) -> None:
    if role in IN_CALLS and role is not nodes.Role.CALL:
        if around is not nodes.Role.CALL:
            raise GrammarError(f"tag {role.value!r}: expected directly inside a 'call' tag, found {_inside(around)}")
    elif around is not None:
        raise GrammarError(f"tag {role.value!r}: expected outside of other tags, found {_inside(around)}")


def _inside(around: nodes.Role | None) -> str:
    return "outside of any tag" if around is None else f"inside {around.value!r}"


def _part(node: nodes.Node, known: Mapping[str, Start]) -> GrammarPart:
    """Return a node with what its reader needs to know. Raises `GrammarError` for a node that handwritten grammars can't contain."""
    if isinstance(node, nodes.Optional):
        node = nodes.Choice((node.node, nodes.EMPTY))
    inner, wanted = tuple(_part(child, known) for child in nodes.children(node)), _wanted_by(node)
    part = GrammarPart(node, inner, wanted)
    match node:
        case nodes.Chars():
            ranges = ranges_of(node)
            return replace(part, reads=re.compile(f"(?:{class_of(ranges) if ranges else '(?!)'})*"))
        case nodes.Until(stops):
            return replace(part, reads=Finder(stops))
        case nodes.Choice(options):
            # The next character usually excludes all options but one. The remaining option needs no backtracking point.
            guards = tuple(start_of(option, known).pattern() for option in options)
            return replace(part, guards=guards, wanted=" or ".join(dict.fromkeys(map(_wanted_by, options))))
        case nodes.Repeat():
            once = start_of(node.node, known)
            later = start_of(node.separator, known).then(once) if node.separator is not None else once
            return replace(part, guards=(once.pattern(), later.pattern()))
        case nodes.Negate(body):
            return replace(part, wanted=f"anything but {_wanted_by(body)}")
        case nodes.Peek(body) | nodes.Atomic(body):
            return replace(part, wanted=_wanted_by(body))
        case nodes.JsonValue():
            return replace(part, reads=_STRICT)
        case nodes.PythonValue():
            return replace(part, reads=LiteralStyle())
        case nodes.Quoted(quote):
            return replace(part, reads=_STRICT if quote == '"' else LiteralStyle(), wanted=f"a string in {quote}")
        case nodes.AnswerPart():
            start_of(node, known)  # raises `GrammarError`: not allowed in a handwritten grammar
    return part


def _wanted_by(node: nodes.Node) -> str:
    """Return a description of the text that `node` matches, for error messages."""
    match node:
        case nodes.Literal(text):
            return repr(text) if text else "nothing"
        case nodes.Sequence(parts) if parts:
            return _wanted_by(parts[0])
        case nodes.Tag(_, inner) | nodes.Atomic(inner) | nodes.Optional(inner) | nodes.Repeat(inner):
            return _wanted_by(inner)
        case nodes.Chars():
            ranges = ", ".join(low if low == high else f"{low}-{high}" for low, high in node.ranges[:8])
            return f"{'other than ' if node.negated else ''}one of {ranges}"
        case nodes.Choice(options):
            return " or ".join(dict.fromkeys(map(_wanted_by, options[:4]))) or "nothing"
        case nodes.Ref(rule):
            return rule
        case nodes.JsonValue():
            return "a JSON value"
        case nodes.PythonValue():
            return "a Python value"
        case nodes.End():
            return "the end of the output"
        case nodes.Leaf() | nodes.Sequence() | nodes.Peek() | nodes.Negate():
            return "text"
