"""Combinators, compiled and run: streaming, rejected grammars, and broken answers."""

from __future__ import annotations

import pickle

import pytest
from cases import cases
from remainders import grammar_of, node_of

from unrender import (
    ChatTemplate,
    ContentText,
    Event,
    GrammarError,
    Malformed,
    Message,
    Parser,
    Policy,
    ReasoningText,
)
from unrender import grammar as c
from unrender.format import Format
from unrender.grammar import Grammar
from unrender.testing import numbered_id
from unrender.types import Request, Tool

WEATHER = Tool(name="get_weather", parameters={"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}})
REQUEST = Request(tools=(WEATHER, Tool(name="get_time")))
AS_WRITTEN = Policy(tool_calls="streamed")
NAME = c.name(c.chars("a-z_", 1, None))
CALL = c.tool_call(c.sequence("<call>", NAME, ":", c.cut(), c.arguments(c.json_value()), "</call>"))
ANSWER = Grammar(
    c.sequence(
        c.optional(c.sequence("<think>", c.cut(), c.reasoning(c.until("</think>")), "</think>")),
        c.content(c.until("<call>")),
        c.zero_or_more(CALL),
    )
)


def reader(
    grammar: Grammar, *, format: Format | None = None, strict: bool = False, policy: Policy | None = None
) -> Parser:
    return Parser(format or Format(), REQUEST, grammar=grammar, strict=strict, policy=policy, ids=numbered_id)


def read(grammar: Grammar, *chunks: str, strict: bool = False, policy: Policy | None = None) -> list[Event]:
    made = reader(grammar, strict=strict, policy=policy)
    return [*(event for chunk in chunks for event in made.feed(chunk)), *made.finish()][:-1]


def message(grammar: Grammar, text: str, format: Format | None = None) -> Message:
    made = reader(grammar, format=format)
    made.finish(text=text)
    return made.message


def test_an_option_that_the_next_character_rules_out_holds_nothing_back():
    """Options with different first characters need no backtracking, even without a cut."""
    made = reader(Grammar(c.choice(c.sequence("<", c.reasoning(c.rest())), c.content(c.chars("^<", 1, None)))))

    assert made.feed("<why") == [ReasoningText("why")]


def test_deeply_nested_rules_can_be_copied_and_pickled():
    """Copies continue inside 5,000 open rules, and a copy of a copy does, too."""
    nested = Grammar(c.content(c.ref("x")), {"x": c.choice(c.sequence("(", c.ref("x"), ")"), "a")})
    parser = reader(nested)
    parser.feed("(" * 5_000)

    for copy in (parser.copy().copy(), pickle.loads(pickle.dumps(parser)), parser):
        copy.finish(text="a" + ")" * 5_000)
        assert copy.message.content == "(" * 5_000 + "a" + ")" * 5_000


@cases
def test_double_quotes_are_those_of_json(quote, text, matches):
    """Double quotes have JSON's escapes. Single quotes are Python's, and their text is read literally."""
    events = read(Grammar(c.content(c.quoted(quote))), *text)

    assert any(isinstance(event, Malformed) for event in events) is not matches
    assert message(Grammar(c.content(c.quoted(quote))), text).content == text


def test_rules_may_refer_to_themselves():
    """Nested brackets are read to any depth, in one linear pass."""
    grammar = Grammar(c.content(c.ref("nest")), {"nest": c.sequence("(", c.zero_or_more(c.ref("nest")), ")")})
    made = reader(grammar)
    text = "(" * 5000 + ")" * 5000

    events = [*made.feed(text), *made.finish()]

    assert not [event for event in events if isinstance(event, Malformed)]
    assert made._steps < 10 * len(text)


def test_a_grammar_that_tries_too_much_ends_in_content():
    """Nested repetitions could take exponential time. A limit stops them, and the text is content."""
    letters = c.zero_or_more(c.sequence(c.zero_or_more("a"), "a"))
    text = "a" * 400 + "b"

    events = read(Grammar(c.sequence(letters, letters, letters, "c")), text)

    assert events[-1] == ContentText(text)
    made = reader(Grammar(c.sequence(letters, letters, letters, "c")))
    made.finish(text=text)
    assert made._steps < 1000 * len(text)


@cases
def test_a_grammar_that_cannot_be_read_is_refused(grammar, message):
    """The error names the rule, or the tag and its place."""
    with pytest.raises(GrammarError, match=message):
        reader(grammar_of(grammar))


def test_nodes_nested_too_deeply_are_refused():
    """Deep nesting raises a `GrammarError` instead of a `RecursionError`. Rules need no such nesting."""
    node = c.literal("a")
    for _ in range(3000):
        node = c.optional(node)

    with pytest.raises(GrammarError, match="nested too deeply"):
        ChatTemplate.from_string("", grammar=Grammar(node))
    with pytest.raises(GrammarError, match="nested too deeply"):
        reader(Grammar(node))


@cases
def test_errors_say_what_was_wanted(node, wanted):
    """The report lists the expected texts in the grammar's words, each once."""
    found = read(Grammar(c.sequence(node_of(node), "."), {"word": c.literal("w")}), "!")

    assert [event.expected for event in found if isinstance(event, Malformed)] == [wanted]


def test_a_stop_in_a_longer_one_decides_nothing_yet() -> None:
    """Free text ends at the longer stop, even if a chunk ends inside it."""
    grammar = Grammar(c.sequence(c.content(c.until("abc", "b")), c.rest()))

    for chunks in (["xabc"], ["xab", "c"], [*"xabc"]):
        assert [event.text for event in read(grammar, *chunks) if isinstance(event, ContentText)] == ["x"]
    assert message(grammar, "xabd").content == "xa"
