"""Compiles handwritten grammars into programs for the machine.

Strategy: emit straight-line code for each node, and one subroutine for each rule. Options that the next character excludes are never tried.
Therefore, a choice buffers text only if its options start with the same characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from unrender import nodes
from unrender.errors import GrammarError
from unrender.grammar.handmade import check_references, stopped_at
from unrender.grammar.starts import Start, class_of, ranges_of, start_of, starts_of
from unrender.machine import control, instructions
from unrender.machine.compile import Code
from unrender.machine.frames import IN_CALLS
from unrender.machine.interpreter import Instruction, Program
from unrender.values.scanner import LiteralStyle

_STRICT = LiteralStyle(strict=True)
_PYTHON = LiteralStyle()


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
    compiler = _Compiler(known, has_ids)
    code = compiler.code
    begin = code.reserve()
    compiler.node(grammar.root)
    rest = nodes.Tag(nodes.Role.CONTENT, nodes.Until(ends))
    if ends:
        compiler.node(nodes.Repeat(_end_of_turn(ends)))
    code.emit(instructions.Look(ends=True), instructions.Halt())
    text = code.emit(control.BreakOff())
    compiler.node(nodes.Sequence((rest, nodes.Repeat(nodes.Sequence((_end_of_turn(ends), rest))))) if ends else rest)
    code.emit(instructions.Halt())
    code.put(begin, instructions.Commit(text))
    rules = {}
    for name, node in grammar.rules.items():
        rules[name] = compiler.node(node)
        code.emit(control.Subroutine())
    # Rules may refer to each other, so their addresses are known only after all rules are compiled.
    for at, rule in compiler.entered:
        code.put(at, control.Subroutine(rules[rule]))
    return code.finished()


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


@dataclass(slots=True)
class _Compiler:
    known: Mapping[str, Start]
    has_ids: bool
    code: Code = field(default_factory=Code)
    entered: list[tuple[int, str]] = field(default_factory=list)
    """Addresses at which rules are called, with the names of the rules."""

    def node(self, node: nodes.Node) -> int:  # noqa: C901 -- a table, by kind of node
        """Emit the code for `node`, and return its address."""
        at = len(self.code)
        match node:
            case nodes.Literal(text):
                self.code.emit(instructions.Lit(text))
            case nodes.Layout():
                self.code.emit(instructions.Space())
            case nodes.Chars():
                self._chars(node)
            case nodes.Until(stops):
                self.code.emit(control.UpTo.first_of(stops))
            case nodes.Sequence(parts):
                for part in parts:
                    self.node(part)
            case nodes.Choice(options):
                self._choice(options)
            case nodes.Optional(inner):
                self._choice((inner, nodes.Literal("")))
            case nodes.Repeat():
                self._repeat(node)
            case nodes.Ref(name):
                self.entered.append((self.code.reserve(), name))
            case nodes.Peek() | nodes.Negate() | nodes.Atomic():
                self._look(node)
            case nodes.Tag(role, inner):
                self.code.emit(control.Tagged(role))
                self.node(inner)
                self.code.emit(control.Tagged(role, ends=True, waits=self.has_ids))
            case nodes.Cut():
                self.code.emit(instructions.Commit())
            case nodes.End():
                self.code.emit(instructions.Look(ends=True))
            case nodes.Mark():
                pass
            case nodes.JsonValue() | nodes.PythonValue() | nodes.Quoted():
                self.code.emit(_value(node))
            case nodes.AnswerPart():
                start_of(node, self.known)  # raises `GrammarError`: not allowed in a handwritten grammar
            case _:
                assert_never(node)
        return at

    def _look(self, node: nodes.Peek | nodes.Negate | nodes.Atomic) -> None:
        """Emit the code for a lookahead or an atom."""
        # The code consists of `Try`, the inner node, the end of the inner node, and the code for a failed match.
        said, head = _wanted_by(node.node), self.code.reserve()
        body, last = self.node(node.node), self.code.reserve()
        if isinstance(node, nodes.Negate):
            self.code.put(last, control.Chosen(self.code.emit(control.Try((), f"anything but {said}")), again=True))
            otherwise = self.code.emit(control.Chosen(len(self.code) + 1))
        else:
            otherwise = self.code.emit(control.Try((), said))
            self.code.put(last, control.Chosen(len(self.code), again=isinstance(node, nodes.Peek)))
        self.code.put(head, control.Try(((None, body), (None, otherwise)), said, holds=True))

    def _chars(self, node: nodes.Chars) -> None:
        most = control.UNLIMITED if node.maximum is None else node.maximum
        ranges = ranges_of(node)
        characters = class_of(ranges) if ranges else "(?!)"
        self.code.emit(control.CharRun(re.compile(f"(?:{characters})*"), node.minimum, most, _wanted_by(node)))

    def _choice(self, options: tuple[nodes.Node, ...]) -> None:
        head = self.code.reserve()
        ends: list[int] = []
        table: list[tuple[control.OptionGuard, int]] = []
        for option in options:
            # The next character usually excludes all options but one. The remaining option needs no backtracking point.
            guard = start_of(option, self.known).pattern()
            table.append((guard, self.node(option)))
            ends.append(self.code.reserve())
        for end in ends:
            self.code.put(end, control.Chosen(len(self.code)))
        wanted = " or ".join(dict.fromkeys(map(_wanted_by, options)))
        self.code.put(head, control.Try(tuple(table), wanted, any(guard is not None for guard, _ in table)))

    def _repeat(self, node: nodes.Repeat) -> None:
        head = self.code.reserve()
        # If there is no separator, use an empty one, so that all loops have the same structure. The empty separator costs one step.
        separator = node.separator if node.separator is not None else nodes.Literal("")
        # The first round starts at `first`, and later rounds at the separator.
        later = self.node(separator)
        first = self.node(node.node)
        once = start_of(node.node, self.known)
        guards = (once.pattern(), start_of(separator, self.known).then(once).pattern())
        most = control.UNLIMITED if node.maximum is None else node.maximum
        loop = control.Loop(node.minimum, most, guards, (first, later), len(self.code) + 1)
        self.code.put(head, loop)
        self.code.emit(replace(loop, ends=True))


def _value(node: nodes.JsonValue | nodes.PythonValue | nodes.Quoted) -> Instruction:
    """Return the instruction for a JSON value, Python value or string."""
    match node:
        case nodes.JsonValue():
            return control.Value(_STRICT, "a JSON value")
        case nodes.PythonValue():
            return control.Value(_PYTHON, "a Python value")
        case nodes.Quoted(quote):
            return control.Value(_STRICT if quote == '"' else _PYTHON, f"a string in {quote}", quote)


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
        case nodes.End():
            return "the end of the output"
        case nodes.Leaf() | nodes.Sequence() | nodes.Peek() | nodes.Negate():
            return "text"
