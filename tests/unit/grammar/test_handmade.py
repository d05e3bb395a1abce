"""Handmade grammars: expanded for the tools of a request, and the beginnings of their texts."""

from __future__ import annotations

import pytest
from cases import cases
from engines import lark_reader
from hypothesis import given, settings
from hypothesis import strategies as st
from lines import grammar_lines
from recipes import ANALYSIS, rows_of
from remainders import grammar_of, turn_of

from unrender import GrammarError, Malformed, Message, Parser, nodes
from unrender import grammar as c
from unrender.dialects.sample import drawer
from unrender.format import Format, TurnTexts
from unrender.format.data import decode
from unrender.grammar import Grammar
from unrender.grammar.handmade import (
    CallCount,
    Identity,
    check_request,
    counted,
    ends_of,
    literals_of,
    stopped_at,
    written_for,
)
from unrender.grammar.starts import (
    ANY_START,
    LAST,
    NOTHING,
    Start,
    class_of,
    merged_ranges,
    other_characters,
    ranges_of,
    start_of,
    starts_of,
)
from unrender.types import Request, Tool

DAYS = {"type": "integer", "minimum": 1, "maximum": 9}
WEATHER = Tool(name="get_weather", parameters={"properties": {"city": {"type": "string"}, "days": DAYS}})
REQUEST = Request(tools=(WEATHER, Tool(name="get_time", parameters={"properties": {}})))
NAME = c.name(c.chars("a-z_", 1, None))
WHOLE = Grammar(
    c.sequence(c.content(c.until("<call>")), c.zero_or_more(c.ref("call"))),
    {
        "call": c.tool_call(c.sequence("<call>", c.ref("inside"), "</call>")),
        "inside": c.sequence(NAME, ":", c.arguments(c.json_value())),
    },
)
ENTRY = c.argument(c.chars("a-z", 1, None), "=", c.until(",", ")"))
ENTRIES = Grammar(c.one_or_more(c.tool_call(c.sequence(NAME, "(", c.zero_or_more(ENTRY, ","), ")"))))
PYTHON = Grammar(c.tool_call(c.sequence(NAME, c.arguments(c.python_value()))))


def read(grammar: Grammar, text: str) -> tuple[Message, bool]:
    parser = Parser(Format(), REQUEST, grammar=grammar)
    events = [*(event for character in text for event in parser.feed(character)), *parser.finish()]
    return parser.message, not any(isinstance(event, Malformed) for event in events)


@pytest.mark.parametrize("grammar", [WHOLE, ENTRIES], ids=["whole", "entries"])
def test_what_is_written_is_read(grammar):
    """Random answers are parsed without errors, their calls have tool names, and the engine accepts them."""
    turn = turn_of(grammar, REQUEST)
    accepts = lark_reader(turn.constraint("llguidance").grammar)
    names = set()

    for seed in range(60):
        text = turn.sample(seed)
        message, whole = read(grammar, text)
        assert whole, text
        assert accepts(text), text
        names |= {call.name for call in message.tool_calls}

    assert names == {"get_weather", "get_time"}


@pytest.mark.parametrize(
    ("grammar", "tools", "right", "wrong"),
    [
        (WHOLE, REQUEST, ['Hi<call>get_weather:{"days": 3}</call>'], ['<call>get_weather:{"days": 30}</call>']),
        (WHOLE, REQUEST, ["Hi"], ['<call>get_rain:{"days": 3}</call>']),
        (WHOLE, Request(), ["Hi"], ["<call>get_weather:{}</call>"]),
        (ENTRIES, REQUEST, ["get_weather(city=New York,days=3)"], ["get_weather(days=New York)"]),
        (ENTRIES, REQUEST, ["get_weather()"], ["get_weather(town=Rome)"]),
        (PYTHON, REQUEST, ["get_time{}"], ["get_time{'days': null}"]),
    ],
    ids=["arguments", "names", "no tools", "values", "keys", "Python"],
)
def test_a_call_is_bound_by_its_tool(grammar, tools, right, wrong):
    """Each tool name requires the arguments of its own schema. Without tools, the grammar has no calls."""
    accepts = lark_reader(turn_of(grammar, tools).constraint("llguidance").grammar)

    assert [text for text in (*right, *wrong) if accepts(text)] == right


CALL = c.tool_call("c")
INSIDE = {"in": c.sequence(NAME, ":", c.arguments(c.ref("value"))), "value": c.json_value()}
RUN = Grammar(
    c.sequence(c.content(c.until("<")), c.zero_or_more(c.ref("call"))),
    {"call": c.tool_call(c.sequence("<", c.ref("in"), ">")), **INSIDE},
)
RULES = {
    "calls": c.one_or_more(CALL, ","),
    "either": c.choice("x", c.ref("calls"), c.sequence("(", c.ref("either"), ")")),
    "never": c.sequence("a", c.ref("never")),
    "quiet": c.literal("q"),
    "ends": c.sequence("b", c.end()),
    "loop": c.sequence("x", c.optional(c.ref("loop"))),
}
COUNTS = (CallCount.NONE, CallCount.ONE, CallCount.AT_MOST_ONE, CallCount.SOME)
ROWS = rows_of(ANALYSIS.with_name("handmade.jsonl"))


def one(inner, **rules):
    """Return a grammar of one call."""
    return Grammar(c.tool_call(inner), rules)


def text_entry(*stops):
    return one(c.sequence(NAME, c.argument(c.chars("a-z", 1, None), "=", c.until(*stops))))


def value_entry(value, **rules):
    return one(c.sequence(NAME, c.zero_or_more(c.argument("k", ":", value), ",")), **rules)


def made_of(row):
    """Return the grammar of a row, which is written with combinators and may refer to `RULES`."""
    made = eval(row["grammar"], {**vars(c), **globals()})
    return made if isinstance(made, Grammar) else Grammar(made, RULES)


def requested(row):
    """Return the request of a row."""
    tools = None if row["tools"] is None else tuple(Tool(**tool) for tool in row["tools"])
    more = {key: row[key] for key in ("named_tool", "parallel_tool_calls") if key in row}
    return Request(tools=tools, tool_choice=row.get("tool_choice", "auto"), **more)


@pytest.mark.parametrize("row", [row for row in ROWS if "tools" in row], ids=lambda row: row["grammar"])
def test_calls_are_written_out_for_each_tool(row):
    """A call has a tool's name and arguments that follow its schema. Rules of calls are copied for each tool."""
    if row.get("error"):
        with pytest.raises(GrammarError, match=row["error"]):
            written_for(made_of(row), requested(row))
        return
    found, losses = written_for(made_of(row), requested(row))
    assert grammar_lines(found) == row.get("written", grammar_lines(found))
    assert list(map(str, losses)) == row.get("lost", [])


def counted_lines(node, count):
    try:
        lines = grammar_lines(counted(Grammar(node, RULES), count))
    except GrammarError as error:
        return None if "no answer with this number" in str(error) else str(error)
    return lines if len(lines) > 1 else lines[""]


@pytest.mark.parametrize("row", [row for row in ROWS if "counted" in row], ids=lambda row: row["grammar"])
def test_each_node_is_written_for_each_count(row):
    """Nodes that can no longer match are removed. With `CallCount.ANY`, the grammar is unchanged."""
    grammar = made_of(row)

    assert [counted_lines(grammar.root, count) for count in COUNTS] == row["counted"]
    assert counted(grammar, CallCount.ANY) is grammar


def test_as_many_rounds_as_are_written_out():
    """At most 32 iterations are counted. The error states the number found, and the reason."""
    maybe = c.optional(CALL)
    reason = "tool_choice: calls in more than 32 iterations cannot be counted, found 33"

    assert counted_lines(c.repeat(maybe, 0, 32), CallCount.ONE).count("call:") == 32
    assert counted_lines(c.repeat(maybe, 0, 33), CallCount.ONE) == reason
    assert counted_lines(c.repeat(maybe, 33, None), CallCount.SOME) == reason
    assert "calls in the separator" in counted_lines(c.repeat("a", 0, None, CALL), CallCount.NONE)


MEANT = {CallCount.NONE: (0, 0), CallCount.ONE: (1, 1), CallCount.AT_MOST_ONE: (0, 1), CallCount.SOME: (1, 1 << 20)}


def counted_nodes():
    """Return a strategy for nodes that contain calls in any part."""

    def composed(below):
        few = st.lists(below, min_size=1, max_size=3)
        bounds = st.sampled_from([(0, None), (1, None), (2, None), (0, 2), (1, 3), (2, 2)])
        repeated = st.builds(
            lambda node, of, by: c.repeat(node, of[0], of[1], by), below, bounds, st.sampled_from([None, ","])
        )
        several = [few.map(lambda parts: c.sequence(*parts)), few.map(lambda parts: c.choice(*parts))]
        return st.one_of(*several, below.map(c.optional), below.map(c.atomic), repeated)

    leaves = st.sampled_from([CALL, c.literal("x"), c.ref("calls"), c.ref("either")])
    return st.recursive(leaves, composed, max_leaves=5)


@pytest.mark.slow
@settings(max_examples=150)
@given(counted_nodes(), st.sampled_from(COUNTS), st.integers(0, 1 << 20))
def test_every_answer_has_the_number_of_calls(node, count, seed):
    """A counted grammar generates the given number of calls. It is an error only if no answer has that number."""
    least, most = MEANT[count]
    grammar = Grammar(node, {name: RULES[name] for name in ("calls", "either")})

    def fits(found, at):
        return least <= drawer(found)(seed + at).text.count("c") <= most

    try:
        found = counted(grammar, count)
    except GrammarError:
        assert not any(fits(grammar, at) for at in range(5))
    else:
        assert all(fits(found, at) for at in range(5))


@cases
def test_a_turn_ends_with_and_without_the_layout_before(turn, ends):
    """Whitespace alone ends nothing, and every end is listed once."""
    assert list(ends_of(decode(TurnTexts, turn, where=""))) == ends


def test_free_text_stops_at_the_end_of_the_turn():
    """Free text in rules also stops there, and each stop is listed once. `literals_of` returns all texts of the grammar."""
    grammar = Grammar(c.sequence("a", c.until("<x>", "<end>")), {"r": c.optional(c.rest()), "s": c.sequence("b", "c")})
    stopped = stopped_at(grammar, ("<end>", "<e2>"))

    assert grammar_lines(stopped) == {
        "": "'a' text[<x> <end> <e2>]",
        "r": "[text[<end> <e2>]]",
        "s": "'b' 'c'",
    }
    assert sorted(literals_of(stopped)) == ["<e2>", "<e2>", "<end>", "<end>", "<x>", "a", "b", "c"]


def test_a_grammar_is_a_key_by_identity():
    """Two equal grammars have different keys, but one grammar always has the same key."""
    first, second = Grammar(c.literal("a")), Grammar(c.literal("a"))

    assert first == second
    assert Identity(first) == Identity(first)
    assert Identity(first) != Identity(second)
    assert Identity(first) != first
    assert len({Identity(first), Identity(first), Identity(second)}) == 2


@cases
def test_a_request_asks_for_no_more_than_the_grammar_says(given, message):
    """A request can't override the grammar's own reasoning and answer."""
    check_request(Request())
    with pytest.raises(GrammarError, match=message):
        check_request(Request(**given))


KNOWN = {
    "word": Start(ranges=((97, 99),)),
    "maybe": Start(ranges=((120, 120),), empty=True, rules=frozenset({"word"})),
}
STARTS = [row for row in rows_of(ANALYSIS.with_name("handmade.jsonl")) if "starts" in row]


def line(start: Start) -> str:
    """Return a start on one line."""
    pairs = ((chr(low), chr(high)) for low, high in start.ranges)
    inside = "any" if start.ranges == ANY_START.ranges else "".join(a if a == b else f"{a}-{b}" for a, b in pairs)
    rules = f" by {' '.join(sorted(start.rules))}" if start.rules else ""
    return f"[{inside}]{' or nothing' if start.empty else ''}{rules}"


@pytest.mark.parametrize("row", STARTS, ids=lambda row: row["grammar"])
def test_each_node_starts_in_its_way(row: dict[str, str]) -> None:
    """A part counts if all parts before it may be empty. Rules count if they are entered before any character."""
    node = eval(row["grammar"], {**vars(c), "nodes": nodes})

    assert line(start_of(node, KNOWN)) == row["starts"]


@pytest.mark.parametrize("node", [nodes.AnswerPart(), c.optional(nodes.AnswerPart())])
def test_a_part_of_an_answer_has_no_start(node: nodes.Node) -> None:
    """A part of an answer is built from a format, so it isn't allowed in this grammar."""
    with pytest.raises(GrammarError, match="a part of a Format's answer is not allowed in this grammar"):
        start_of(node, {})


def test_rules_start_as_what_they_refer_to() -> None:
    """The order of the definitions doesn't matter."""
    found = starts_of(
        {"a": c.sequence(c.optional(c.ref("b")), "x"), "b": c.choice(c.ref("c"), "y"), "c": c.literal("z")}
    )

    assert {name: line(start) for name, start in found.items()} == {"a": "[x-z] by b c", "b": "[y-z] by c", "c": "[z]"}


@cases
def test_left_recursion_is_refused(rules: dict[str, str]) -> None:
    """A rule may not enter itself in any way before it consumes a character."""
    with pytest.raises(GrammarError, match=r"rule 'a' may enter itself before it .* character \(left recursion\)"):
        starts_of(grammar_of(rules).rules)


def test_a_recursion_that_takes_a_character_first_is_none() -> None:
    """Nested brackets are allowed."""
    assert line(starts_of({"a": c.sequence("(", c.optional(c.ref("a")), ")")})["a"]) == "[(]"


@pytest.mark.parametrize(
    ("start", "pattern"),
    [
        (Start(ranges=((97, 99), (120, 120))), "[\\U00000061-\\U00000063\\U00000078-\\U00000078]"),
        (Start(ranges=((97, 99),), empty=True), None),
        (Start(), "(?!)"),
        (ANY_START, None),
        (NOTHING, None),
    ],
)
def test_the_next_character_is_matched_where_that_decides(start: Start, pattern: str | None) -> None:
    """The pattern is None if the node may be empty or start with any character."""
    found = start.pattern()

    assert (found and found.pattern) == pattern


def test_ranges_are_merged_and_turned_round() -> None:
    """Adjacent and overlapping ranges are merged, and a class has the syntax of `re`."""
    assert merged_ranges([]) == ()
    assert merged_ranges([(5, 9), (1, 4), (20, 30)]) == ((1, 9), (20, 30))
    assert merged_ranges([(1, 9), (3, 4)]) == ((1, 9),)
    assert merged_ranges([(1, 3), (5, 6)]) == ((1, 3), (5, 6))
    assert other_characters(()) == ((0, LAST),) == ((0, 0x10FFFF),)
    assert other_characters(((0, LAST),)) == ()
    assert other_characters(((0, 3), (5, 5))) == ((4, 4), (6, LAST))
    assert ranges_of(nodes.Chars((("c", "e"), ("a", "b")))) == ((97, 101),)
    assert ranges_of(nodes.Chars((("a", "a"),), negated=True)) == ((0, 96), (98, LAST))
    assert class_of(((97, 98),)) == "[\\U00000061-\\U00000062]"
