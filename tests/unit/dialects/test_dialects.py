"""GBNF, Lark and structural tags as text, and as the engines read them."""

from __future__ import annotations

import json
import re

import pytest
from engines import converted_reader, gbnf_reader, installed, lark_reader, tag_reader

from unrender import GrammarError
from unrender.dialects.gbnf import gbnf_of
from unrender.dialects.lark import lark_of
from unrender.dialects.structural_tag import structural_tag_of
from unrender.grammar import Grammar, Node, Role
from unrender.nodes import (
    Atomic,
    Chars,
    Choice,
    Cut,
    End,
    JsonValue,
    Layout,
    Literal,
    Negate,
    Optional,
    Peek,
    Ref,
    Repeat,
    Sequence,
    Tag,
    Until,
)

LLGUIDANCE = pytest.mark.skipif(not installed("llguidance"), reason="llguidance is not installed")
XGRAMMAR = pytest.mark.skipif(not installed("xgrammar"), reason="xgrammar is not installed")
READERS = [
    pytest.param(lark_of, lark_reader, id="lark", marks=LLGUIDANCE),
    pytest.param(gbnf_of, converted_reader, id="gbnf-llguidance", marks=LLGUIDANCE),
    pytest.param(gbnf_of, gbnf_reader, id="gbnf-xgrammar", marks=XGRAMMAR),
    pytest.param(structural_tag_of, tag_reader, id="structural-tag", marks=XGRAMMAR),
]
CALL = Sequence((Literal("<call>"), JsonValue({"properties": {"a": {"const": 1}}}), Literal("</call>")))
A, B, STOP, LETTER = Literal("a"), Literal("b"), Literal("<x>"), Chars((("a", "z"),))
TO_STOP = Sequence((Until(("<x>",)), Literal("<x>a")))
GRAMMARS: dict[str, tuple[Node | Grammar, list[str], list[str]]] = {
    "quotes and controls": (Literal('"\\\n\t\x01'), ['"\\\n\t\x01'], ['"', "\\n"]),
    "digits after an accent": (
        Sequence((Until(("</x>",)), Literal("</x>Québec"), Repeat(Literal("\x01a"), 0, 2))),
        ["</x>Québec", "é1</x>Québec\x01a", "1</x>Québec\x01a\x01a"],
        ["</x>", "</x>Qué", "</x>Québec\x01"],
    ),
    "digits after an accent in a stop": (
        Sequence((Until(("§end§",)), Literal("§end§"))),
        ["§end§", "a§en§end§", "§b§end§"],
        ["", "a", "§end", "§end§end§"],
    ),
    "digits after an accent in a stop, to the end": (
        Sequence((Until(("§end§",)), Optional(Literal("§end§a")))),
        ["", "a§en", "b§end§a"],
        ["§end§", "a§end§b", "§end§a§end§a"],
    ),
    "digits after a control": (
        Chars((("\x01", "\x01"), ("1", "1")), minimum=2, maximum=2),
        ["\x011"],
        ["\x01", "\x02\x01"],
    ),
    "markers of any script": (Literal("<｜tool▁calls😀｜>"), ["<｜tool▁calls😀｜>"], ["<|tool_calls|>", "<｜tool"]),
    "classes": (
        Chars((("^", "^"), ("]", "]"), ("+", "/")), minimum=2, maximum=3),
        ["^-", "]^+", "/]"],
        ["^", "a]", "----"],
    ),
    "the signs of classes": (
        Sequence(
            (
                Chars((("^", "^"),)),
                Chars((("-", "-"), ("^", "^"))),
                Chars((("[", "`"),)),
                Chars((("^", "^"),), negated=True),
            )
        ),
        ["^-]x", "^^^-", "^-`a"],
        ["^-ax", "a-]x", "^-]^", "^x]x"],
    ),
    "negated class": (Chars((("-", "-"), ("a", "c")), negated=True), ["d", "é", "\n"], ["-", "b", ""]),
    "repetition": (Repeat(Choice((Literal("ab"), Literal("c"))), 1, 3), ["ab", "cabc"], ["", "abc" * 2]),
    "separator": (Repeat(Literal("x"), 1, None, Literal(", ")), ["x", "x, x"], ["x,x", "x, "]),
    "optional": (Sequence((Optional(Literal("a")), Literal("b"))), ["ab", "b"], ["a", "aab"]),
    "text up to a stop": (
        Sequence((Until(("</x>",)), Literal("</x>!"))),
        ["</x>!", "a<b</x>!", "</</x>!", "日本</x>!"],
        ["a", "</x>", "</x>a</x>!", "</x"],
    ),
    "text up to one of two stops": (
        Sequence((Until(("<a>", "<b>")), Choice((Literal("<a>1"), Literal("<b>2"))))),
        ["x<a>1", "<<b>2"],
        ["<a>2", "<b><a>1", "<a>"],
    ),
    "layout before the stop": (
        Sequence((Until(("</x>",)), Literal("\n</x>"))),
        ["\n</x>", "a\n\n</x>"],
        ["</x>", "a</x>\n</x>", "\n</x>\n</x>"],
    ),
    "a longer stop that may not end the text": (
        Sequence((Until((">>f", ">>>f")), Literal(">>f!"))),
        ["a>>f!", "> >>f!", "a> b>>f!"],
        [">>>f!", "a>>>f!", "a>>>>f!", ">>f>>f!"],
    ),
    "a stop that overlaps itself": (
        Sequence((Until(("aab",)), Literal("aab!"))),
        ["aaab!", "aaaaab!"],
        ["aabaab!", "aab"],
    ),
    "text, and calls in it": (
        Sequence((Until(("<call>",)), Optional(Sequence((CALL, Until(("<call>",))))))),
        ["", "free < text", 'a<call>{"a": 1}</call>b', "<call>{}</call>"],
        ["<call>", '<call>{"a": 2}</call>', "<call>{}</call><call>"],
    ),
    "no text at all": (Literal(""), [""], ["a"]),
    "what only a parser needs": (
        Sequence((Tag(Role.CONTENT, A), Cut(), Layout("\n"), Atomic(B), End())),
        ["a\nb"],
        ["a\na", "a\nba", "ab"],
    ),
    "text that the next round stops": (
        Repeat(Sequence((STOP, Until(("<x>",))))),
        ["", "<x>", "<x>a<x>", "<x><x><<x"],
        ["a", "a<x>"],
    ),
    "one or two rounds of text": (
        Repeat(Sequence((STOP, Until(("<x>",)))), 1, 2),
        ["<x>", "<x>a<x>b"],
        ["", "<x><x><x>"],
    ),
    "a lookahead before a choice": (
        Sequence((Until(("<x>",)), Peek(Literal("<x>b")), Choice((Literal("<x>a"), Literal("<x>b"))))),
        ["<x>b", "a<x>b"],
        ["<x>a"],
    ),
    "a lookahead that forbids": (
        Sequence((Until(("<x>",)), Negate(Literal("<x>b")), Choice((Literal("<x>a"), Literal("<x>b"))))),
        ["<x>a", "b<x>a"],
        ["<x>b"],
    ),
    "options after text that begin alike": (
        Sequence((Until(("<x>",)), STOP, Choice((Sequence((A, LETTER)), Literal("a!end"))))),
        ["<x>ab", "a<x>a!end"],
        ["<x>a", "<x>a!"],
    ),
    "rounds that begin as what follows them": (
        Sequence((Repeat(Sequence((Literal("\n"), LETTER))), Literal("\nend"))),
        ["\nend", "\na\ne\nend"],
        ["\nen", "\ne"],
    ),
    "a literal beside text": (
        Choice((Sequence((Until(("<x>",)), Literal("<x>a"))), Literal("\n<x>b"))),
        ["<x>a", "\n<x>a", "\n<x>b", "\n\n<x>a"],
        ["<x>b", "a<x>b", "\n\n<x>b"],
    ),
    "a literal that says what text beside it says": (
        Choice((TO_STOP, Sequence((Literal("\n"), TO_STOP)), Literal("\n<x>a"))),
        ["<x>a", "\n<x>a", "b<x>a"],
        ["\n<x>b"],
    ),
    "a repetition beside what begins with its separator": (
        Choice((Literal("abx"), Sequence((Repeat(A, 1, None, B), Literal("!"))))),
        ["abx", "a!", "aba!"],
        ["abx!", "ab!", "aba"],
    ),
    "a rule that ends in text": (
        Grammar(Sequence((Ref("text"), STOP)), {"text": Sequence((A, Until(("<x>",)))), "unused": B}),
        ["a<x>", "ab<<x>"],
        ["a", "b<x>", "a<x><x>"],
    ),
}


FOR_A_LEXER = {
    "rounds that begin as what follows them",
    "a literal beside text",
    "a repetition beside what begins with its separator",
}
"""Only Lark takes these apart for a lexer: engines that read GBNF have none, and llguidance's converter makes one of it."""


def grammar(name: str) -> Grammar:
    root = GRAMMARS[name][0]
    return root if isinstance(root, Grammar) else Grammar(root)


@pytest.mark.engine
@pytest.mark.parametrize(("write", "read"), READERS)
@pytest.mark.parametrize("name", GRAMMARS)
def test_a_grammar_is_read_as_it_was_meant(name, write, read):
    """The engine accepts the texts of the grammar, and no others."""
    if read is converted_reader and name in FOR_A_LEXER:
        pytest.skip("the converter loses lexemes")
    _, right, wrong = GRAMMARS[name]
    accepts = read(write(grammar(name)))

    verdicts = {text: accepts(text) for text in (*right, *wrong)}

    assert verdicts == {**dict.fromkeys(right, True), **dict.fromkeys(wrong, False)}


@pytest.mark.parametrize("name", GRAMMARS)
def test_gbnf_defines_every_rule_that_it_uses_and_uses_every_rule(name):
    """No rule is left undefined, defined twice, or unreachable."""
    lines = gbnf_of(grammar(name)).splitlines()
    defined = [line.split(" ::= ")[0] for line in lines]
    bodies = [re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', "", line.split(" ::= ", 1)[1]) for line in lines]
    used = {word for body in bodies for word in re.findall(r"[a-z][a-z0-9-]*", body)}

    assert defined[0] == "root"
    assert len(defined) == len(set(defined))
    assert used | {"root"} == set(defined)


def test_gbnf_is_written_in_plain_utf8():
    """Characters of any script stay as they are; only quotes, backslashes and controls are escaped."""
    assert gbnf_of(Grammar(Literal('<｜é"\n\x02'))) == 'root ::= "<｜é\\"\\n\\x02"\n'


def test_lark_hands_schemas_over():
    """A JSON value is `%json` with the schema, resolved, and the same white space as in the other dialects."""
    text = lark_of(Grammar(JsonValue({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}})))

    schema = json.loads(text.partition("%json ")[2])
    assert schema.pop("x-guidance")["whitespace_pattern"] == "[ \\t\\n\\r]{1,32}"
    assert schema == {"type": "boolean"}


def test_a_structural_tag_says_what_it_can_in_its_own_words():
    """Text is a tag, JSON a schema, and a word a constant."""
    written = structural_tag_of(Grammar(Sequence((Until(("<call>",)), CALL))))

    assert written["type"] == "structural_tag"
    assert [part["type"] for part in written["format"]["elements"]] == ["tag", "json_schema", "const_string"]


def test_a_structural_tag_of_a_recursive_grammar_is_ebnf():
    """What refers to itself is not a tree, and handed over in one piece."""
    again = Sequence((Literal("<call>"), Until(("<call>",)), Optional(Ref("again"))))
    written = structural_tag_of(Grammar(Sequence((Until(("<call>",)), Ref("again"))), {"again": again}))

    assert written["format"]["type"] == "grammar"
    assert written["format"]["grammar"].startswith("root ::= ")


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (Sequence((Peek(A), A)), "Peek cannot be written as a context-free rule"),
        (Sequence((Negate(A), A)), "Negate cannot be written as a context-free rule"),
        (Sequence((Negate(Chars((("a", "b"),))), A)), "Negate cannot be written as a context-free rule"),
        (Sequence((Until(("<x>",)), LETTER)), "cannot be told from what follows"),
        (Ref("nowhere"), "rule 'nowhere' is not defined"),
    ],
    ids=str,
)
@pytest.mark.parametrize("write", [gbnf_of, lark_of, structural_tag_of])
def test_what_no_rule_can_say_is_refused_by_name(root, message, write):
    """An error, not silence: a lookahead that is not decided by literals, text that nothing ends, a missing rule."""
    with pytest.raises(GrammarError, match=message):
        write(Grammar(root))
