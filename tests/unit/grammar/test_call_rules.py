"""Calls written out for one tool. Each row of `tests/corpus/calls.jsonl` has its arguments, parameters, rules and losses.

A rule is on one line (`lines`); rules of any JSON value are left out.
"""

from __future__ import annotations

import pytest
from lines import grammar_lines
from recipes import ANALYSIS, rows_of

from unrender.format import Arguments
from unrender.format.data import decode
from unrender.format.parts import Skeleton
from unrender.grammar.expansion import Values, expand
from unrender.messages.wire import Tool
from unrender.nodes import Call, Grammar

SHARED = ("json-", "python-", "single-", "bare-", "object-extra")
USUAL = [{"slot": "name"}, ":", {"slot": "arguments"}]


@pytest.mark.parametrize("row", rows_of(ANALYSIS.with_name("calls.jsonl")), ids=lambda row: row["why"])
def test_a_call_is_written_out(row):
    """Entries, lists, nothing at all, and what ends a value: each as the codec has it; what it cannot say is reported."""
    call = Call(
        function=decode(Skeleton, row.get("function", USUAL), where=""),
        arguments=decode(Arguments, row["arguments"], where=""),
        tools=(Tool(name="f", parameters=row["parameters"]),),
        followed_by=tuple(row.get("followed_by", ())),
    )
    found = expand(Grammar(call), Values.SPELLED)
    lines = grammar_lines(found.grammar, without=lambda name: name.startswith(SHARED))

    assert lines == {"": "$call-f", **row["rules"]}
    assert [f"{item.path} {item.keyword}: {item.reason}" for item in found.unsupported] == row.get("lost", [])
