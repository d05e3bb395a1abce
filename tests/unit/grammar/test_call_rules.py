"""Tests of one tool's call rules. Each row of `tests/corpus/calls.jsonl` has arguments, parameters, rules and losses.

Each rule is one line (`lines`). Rules of arbitrary JSON values are omitted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cases import cases
from lines import grammar_lines
from recipes import ANALYSIS, rows_of

from unrender.answer.build import calls_in_syntax
from unrender.format import Arguments, CallSyntax, Format, Skeleton, Slot
from unrender.format.data import decode
from unrender.grammar import Grammar, Node
from unrender.grammar.expansion import Values, expand
from unrender.nodes import Literal, Optional, Ref, Repeat, Rules, Sequence
from unrender.types import Tool

SHARED = ("json-", "python-", "single-", "bare-", "object-extra")
USUAL = [{"slot": "name"}, ":", {"slot": "arguments"}]


@pytest.mark.parametrize("row", rows_of(ANALYSIS.with_name("calls.jsonl")), ids=lambda row: row["why"])
def test_a_call_is_written_out(row):
    """Entries, lists, missing arguments and the ends of values follow the codec. Unsupported keywords are reported."""
    syntax = CallSyntax(
        function=decode(Skeleton, row.get("function", USUAL), where=""),
        arguments=decode(Arguments, row["arguments"], where=""),
        **row.get("syntax", {}),
    )
    calls = replace(calls_in_syntax(Format(), syntax), tools=(Tool(name="f", parameters=row["parameters"]),))
    found = expand(Grammar(calls), Values.SPELLED)
    lines = grammar_lines(found.grammar, without=lambda name: name.startswith(SHARED))

    assert {name: line for name, line in lines.items() if name} == row["rules"]
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in found.unsupported] == row.get("lost", [])


def run(ends_turn: bool = False, maximum: int | None = None, **syntax: Any) -> str:
    """Return a run of calls as text."""
    texts = {
        "call_start": "<c>",
        "call_end": "</c>",
        "section_start": "[",
        "section_end": "]",
        "separator": ",",
        **syntax,
    }
    found = CallSyntax(function=(Slot.NAME, Slot.ARGUMENTS), **texts)
    calls = calls_in_syntax(Format(), found)
    calls = replace(calls, tools=(Tool(name="f"),), maximum=maximum, ends_turn=ends_turn)
    return line(expand(Grammar(calls), Values.SPELLED).grammar.root)


def line(node: Node) -> str:
    match node:
        case Literal(text):
            return text
        case Ref():
            return "call"
        case Sequence(parts):
            return "".join(map(line, parts))
        case Optional(inner):
            return f"({line(inner)})?"
        case Repeat(inner, low, high, separator):
            return f"({line(inner)}){{{low},{high}{'' if separator is None else f' by {line(separator)}'}}}"
    raise AssertionError(node)


@cases
def test_a_run_of_calls_is_generated(arguments: dict[str, Any], expected: str) -> None:
    """If the last marker ends the turn, it is optional, because engines strip it."""
    assert run(**arguments) == expected


def test_no_name_of_a_rule_is_given_twice() -> None:
    """A rule name that ends in a number isn't reused for a rule that would get the same number."""
    rules = Rules()

    names = [rules.reserve(hint) for hint in ("a", "a-2", "a", "A!", "a-2", "")]

    assert names == ["a", "a-2", "a-3", "a-4", "a-2-2", "rule"]
