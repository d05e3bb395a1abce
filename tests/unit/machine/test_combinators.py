"""Combinators, compiled and run: streaming, rejected grammars, and broken answers."""

from __future__ import annotations

import pickle

import pytest
from cases import cases
from remainders import grammar_of, node_of

from unrender import (
    ArgumentsText,
    ChatTemplate,
    ContentText,
    Event,
    GrammarError,
    Malformed,
    Message,
    ParseError,
    Parser,
    Policy,
    ReasoningText,
    ToolCallFinished,
    ToolCallStarted,
)
from unrender import grammar as c
from unrender.format import Format, TurnTexts
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
TAGGED = Grammar(
    c.one_or_more(
        c.tool_call(
            c.sequence(NAME, "(", c.zero_or_more(c.argument(c.chars("a-z", 1, None), "=", c.until(",", ")")), ","), ")")
        )
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


def test_an_answer_is_read_into_its_parts():
    """Reasoning, content and calls are returned for any chunking."""
    found = message(ANSWER, '<think>Hm.</think>Wait<call>get_weather:{"city": "Oslo"}</call><call>get_time:{}</call>')

    assert (found.reasoning, found.content) == ("Hm.", "Wait")
    assert [(call.name, call.arguments_json) for call in found.tool_calls] == [
        ("get_weather", '{"city": "Oslo"}'),
        ("get_time", "{}"),
    ]
    assert all(call.status == "complete" for call in found.tool_calls)


def test_a_part_after_a_cut_streams():
    """Text is released with its chunk as soon as no backtracking is possible."""
    made = reader(ANSWER, policy=AS_WRITTEN)

    assert made.feed("<think>Hm") == [ReasoningText("Hm")]
    assert made.feed("</think>") == []
    started, *_ = made.feed("<call>get_time:")
    assert isinstance(started, ToolCallStarted)
    assert made.feed('{"zone') == [ArgumentsText(0, '{"zone')]


def test_an_option_that_the_next_character_rules_out_holds_nothing_back():
    """Options with different first characters need no backtracking, even without a cut."""
    made = reader(Grammar(c.choice(c.sequence("<", c.reasoning(c.rest())), c.content(c.chars("^<", 1, None)))))

    assert made.feed("<why") == [ReasoningText("why")]


def test_arguments_in_entries_are_typed_by_the_schema():
    """Text in entries becomes JSON of the types in the tool's schema."""
    [call] = message(TAGGED, "get_weather(city=7,days=7)").tool_calls

    assert call.arguments_json == '{"city": "7", "days": 7}'


def test_a_call_of_an_unknown_tool_does_not_match():
    """A name matches only the name of an available tool. Otherwise, the text stays text."""
    events = read(ANSWER, "<call>rm_all:{}</call>")

    assert events == [
        Malformed("<", 0, "the end of the output"),
        ContentText("<call>rm_all:{}</call>"),
    ]


@cases
def test_a_call_that_breaks_off_is_not_complete(text, status):
    """An incomplete call, broken arguments, and arguments that aren't an object have their own statuses."""
    written = read(ANSWER, *text, policy=AS_WRITTEN)
    assert [event for event in written if isinstance(event, ToolCallFinished)] == [ToolCallFinished(0, status)]

    events = read(ANSWER, *text)
    assert not any(isinstance(event, ToolCallStarted | ArgumentsText | ToolCallFinished) for event in events)
    assert [event.call.status for event in events if isinstance(event, Malformed) and event.call] == [status]


def test_text_after_what_matches_is_content():
    """The rest of the output is content, and reported."""
    events = read(ANSWER, "<call>get_time:{}</call> and more")

    assert events[-2:] == [Malformed(" ", 24, "the end of the output"), ContentText(" and more")]


def test_a_strict_reader_raises_where_nothing_matches():
    """The error has the position and the expected text."""
    with pytest.raises(ParseError, match="at character 15: expected a JSON value") as caught:
        read(ANSWER, "<call>get_time:", "oops", strict=True)

    assert caught.value.position == 15


def test_an_option_that_may_still_come_is_waited_for():
    """A possible option is awaited even if another option matches the empty text."""
    grammar = Grammar(c.sequence("x", c.optional("a"), c.content(c.choice("b", c.sequence(c.optional("c"), "d")))))

    assert [message(grammar, text).content for text in ("xab", "xb", "xacd", "xd")] == ["b", "b", "cd", "d"]
    assert not any(isinstance(event, Malformed) for event in read(grammar, *"xacd"))


@pytest.mark.parametrize(("text", "matches"), [("ab", True), ("aab", True), ("b", False), ("aaab", False)])
def test_a_loop_has_bounds(text, matches):
    """With too few or too many rounds, the text doesn't match, and all of it is content."""
    grammar = Grammar(c.sequence(c.content(c.repeat("a", 1, 2)), "b"))
    events = read(grammar, *text)

    assert any(isinstance(event, Malformed) for event in events) is not matches
    assert message(grammar, text).content == (text.removesuffix("b") if matches else text)


def test_ends_of_turn_are_not_content():
    """Ends of turn are dropped. If the text doesn't match, content continues after each end of turn."""
    letters = Grammar(c.content(c.chars("a-z", 1, None)))
    format = Format(turn=TurnTexts(end="<end>", ends=("<e",)))

    assert [message(letters, text, format).content for text in ("ab<end> <e", "ab<end>12<e 34<end>")] == [
        "ab",
        "ab1234",
    ]


def test_deeply_nested_rules_can_be_copied_and_pickled():
    """Copies continue inside 5,000 open rules, and a copy of a copy does, too."""
    nested = Grammar(c.content(c.ref("x")), {"x": c.choice(c.sequence("(", c.ref("x"), ")"), "a")})
    parser = reader(nested)
    parser.feed("(" * 5_000)

    for copy in (parser.copy().copy(), pickle.loads(pickle.dumps(parser)), parser):
        copy.finish(text="a" + ")" * 5_000)
        assert copy.message.content == "(" * 5_000 + "a" + ")" * 5_000


def test_layout_is_any_white_space():
    """A parser accepts any whitespace for layout."""
    assert message(Grammar(c.sequence(c.space("\n"), c.content(c.rest()))), "\n  a").content == "a"


def test_an_id_may_come_after_the_arguments():
    """A call waits for the id that its grammar reads."""
    grammar = Grammar(c.tool_call(c.sequence(NAME, c.arguments(c.json_value()), "#", c.call_id(c.rest()))))

    started = next(event for event in read(grammar, *"get_time{}#42") if isinstance(event, ToolCallStarted))

    assert started.id == "42"


def test_python_values_become_json():
    """A Python dictionary becomes JSON arguments."""
    grammar = Grammar(c.tool_call(c.sequence(NAME, c.arguments(c.python_value()))))

    [call] = message(grammar, "get_time{'utc': True, 'at': None}").tool_calls

    assert call.arguments_json == '{"utc": true, "at": null}'


def test_a_quoted_string_is_read_with_its_escapes():
    """A quote after a backslash doesn't end the string."""
    found = message(Grammar(c.sequence(c.content(c.quoted()), c.rest())), '"a\\"b" c')

    assert found.content == '"a\\"b"'


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


def test_a_copy_goes_on_alone():
    """A copy reads its own text without changing the original."""
    made = reader(ANSWER, policy=AS_WRITTEN)
    made.feed('<call>get_weather:{"city": ')
    fork = made.copy()

    assert fork.feed('"Rome"}</call>')[-1] == ToolCallFinished(0, "complete")
    assert made.finish()[0] == ToolCallFinished(0, "truncated")


@cases
def test_errors_say_what_was_wanted(node, wanted):
    """The report lists the expected texts in the grammar's words, each once."""
    found = read(Grammar(c.sequence(node_of(node), "."), {"word": c.literal("w")}), "!")

    assert [event.expected for event in found if isinstance(event, Malformed)] == [wanted]
