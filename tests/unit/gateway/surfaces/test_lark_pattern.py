"""Lark into one regular expression, judged by llguidance, which reads the same Lark."""

from __future__ import annotations

import re
import time

import pytest

from unrender.gateway.surfaces.lark_pattern import pattern_of
from unrender.verify.engines import installed, lark_reader

PATCH = r"""
start: begin hunk+ end
begin: "*** Begin" LF   // a comment
end: "*** End" LF?

hunk: add | remove
  | update
add: "*** Add: " filename LF ("+" /(.*)/ LF)+
remove: "*** Remove: " filename LF
update: "*** Update: " filename LF change?
filename: /(.+)/
change: ("@@" | "@@ " /(.+)/) LF -> changed
%import common.LF
"""
GRAMMARS = {
    "patch": (
        PATCH,
        ("*** Begin\n*** Add: a b\n+x\n+\n*** End", "*** Begin\n*** Update: f\n@@ g\n*** Remove: h\n*** End\n"),
        ("", "*** Begin\n*** End", "*** Begin\n*** Add: a\n*** End", "*** Begin\n*** Add: a\n+x\n*** End\nmore"),
    ),
    "operators": (
        'start: A B? ("x" | "y" "z")* [C]~2 D~1..2\nA: "a"\nB: "b".."d"\nC: "(c)"\nD: "."',
        ("a.", "ac..", "axyz(c).", "ab(c)(c)."),
        ("", "a", "ae.", "ay.", "a(c)(c)(c).", "ax"),
    ),
    "library": (
        "start: NAME WS_INLINE INT\n%import common.CNAME -> NAME\n%import common.WS_INLINE\n%import common.INT",
        ("a_1  22", "z 0"),
        ("1 2", "a", "a b"),
    ),
    "escapes": (r'start: "\"[\\^$]\n" "-/{}"', ('"[\\^$]\n-/{}',), ('"[^$]\n-/{}', "")),
    "rules before": ('?item.2: /[0-9]/ | WORD\nstart: item ("," item)*\nWORD.1: /[a-z]+/', ("1,a", "ab"), ("ab1", ",")),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_those_of_the_grammar(name):
    """What the grammar says is matched whole, what it does not say is not; llguidance agrees where it is installed."""
    grammar, said, unsaid = GRAMMARS[name]
    pattern = pattern_of(grammar)
    assert pattern is not None

    assert [text for text in said if not re.search(pattern, text)] == []
    assert [text for text in unsaid if re.fullmatch(pattern.removesuffix("$"), text)] == []
    if installed("llguidance") and name not in ("operators", "rules before"):  # It has no `[…]`, and no priorities.
        accepts = lark_reader(grammar)
        assert [accepts(text) for text in (*said, *unsaid)] == [True] * len(said) + [False] * len(unsaid)


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "(" start? ")"',
        'start: a\na: b\nb: "x" a?',
        'start: "a"\n%ignore " "',
        'start: pair{"a"}\npair{x}: x x',
        "start: SQL\n%import python.SQL",
        "start: missing",
        "begin: X",
        'start: "a"i',
        "start: /a/i",
        "start: /(?=a)a/",
        r"start: /(a)\1/",
        'start: ("a"',
        'start: "a"~',
        "start: ->",
        'start: "a" ) "b"',
        "",
        "}{",
        "start: " + "(" * 500 + '"a"' + ")" * 500,
        "start: " + "[" * 50_000,
        "start: a0 a0\n" + "\n".join(f"a{i}: a{i + 1} a{i + 1}" for i in range(40)) + '\na40: "aaaa"',
        "start: " + "a " * 4000 + "\na: " + '"' + "x" * 1000 + '"',
    ],
)
def test_what_no_expression_says_is_left_to_the_description(grammar):
    """Recursion, layout that is skipped, libraries, broken Lark and Lark without end give nothing, at once."""
    started = time.process_time()

    assert pattern_of(grammar) is None
    assert time.process_time() - started < 1
