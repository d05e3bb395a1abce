"""A grammar made by hand, written out for the tools of a request."""

from __future__ import annotations

from typing import Any

import pytest
from lines import grammar_lines

from unrender.dialects.remainder import Remainder
from unrender.errors import GrammarError
from unrender.format import Format, TurnTexts
from unrender.grammar import combinators as c
from unrender.grammar.handmade import Identity, check_request, ends_of, literals_of, stopped_at, written_for
from unrender.machine.events import Malformed
from unrender.machine.handmade.compiler import compile_combinators
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import Machine
from unrender.messages.wire import Message, Request, Tool, ToolChoice
from unrender.nodes import Grammar, Role
from unrender.parser.message import MessageFold
from unrender.verify.engines import lark_reader

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
    reader = Machine(compile_combinators(grammar), REQUEST, strict=False, ids=CallIds(numbered_id), roles={})
    events = [*(event for character in text for event in reader.feed(character)), *reader.finish()]
    fold = MessageFold()
    fold.add(events)
    return fold.message, not any(isinstance(event, Malformed) for event in events)


@pytest.mark.parametrize("grammar", [WHOLE, ENTRIES], ids=["whole", "entries"])
def test_what_is_written_is_read(grammar):
    """Random answers are read without a malformed part, their calls name the tools, and the engine accepts them."""
    answer = Remainder(format=Format(), request=REQUEST, handmade=grammar)
    accepts = lark_reader(answer.lark())
    names = set()

    for seed in range(60):
        text = answer.sample(seed)
        message, whole = read(grammar, text)
        assert whole, text
        assert accepts(text), text
        names |= {call.name for call in message.tool_calls}

    assert names == {"get_weather", "get_time"}


def test_a_call_is_bound_by_its_tool():
    """Each name brings the arguments of its own schema."""
    accepts = lark_reader(Remainder(format=Format(), request=REQUEST, handmade=WHOLE).lark())

    assert accepts('Hi<call>get_weather:{"days": 3}</call>')
    assert not accepts('<call>get_weather:{"days": 30}</call>')
    assert not accepts('<call>get_rain:{"days": 3}</call>')


def test_entries_are_bound_by_their_schema():
    """A value that is not a string is written by its schema, a string as the grammar says."""
    accepts = lark_reader(Remainder(format=Format(), request=REQUEST, handmade=ENTRIES).lark())

    assert accepts("get_weather(city=New York,days=3)")
    assert not accepts("get_weather(days=New York)")
    assert not accepts("get_weather(town=Rome)")


def test_python_values_are_written_in_pythons_spelling():
    """What is generated reads back as the value that was meant."""
    answer = Remainder(format=Format(), request=Request(tools=None), handmade=Grammar(c.content(c.python_value())))

    assert '"None"' in answer.gbnf()
    assert '"null"' not in answer.gbnf()


def test_without_tools_no_call_is_written():
    """Nothing is a call where no tool is offered."""
    answer = Remainder(format=Format(), request=Request(), handmade=WHOLE)

    assert not lark_reader(answer.lark())("<call>get_weather:{}</call>")


@pytest.mark.parametrize("request_", [Request(response_schema={"type": "object"}), Request(reasoning_format="none")])
def test_what_only_a_format_can_say_is_refused(request_):
    """An answer in JSON, and reasoning in the content, are named in the error."""
    with pytest.raises(GrammarError, match="made by hand"):
        Remainder(format=Format(), request=request_, handmade=WHOLE).gbnf()


def test_one_name_is_read_for_each_tool():
    """A grammar of a single call is written once for every tool."""
    gbnf = Remainder(format=Format(), request=REQUEST, handmade=PYTHON).gbnf()

    assert "get_" in gbnf
    assert read(PYTHON, "get_time{'utc': True}")[0].tool_calls[0].arguments == '{"utc": true}'


GET = Tool(name="get", parameters={"properties": {"a": {"type": "integer"}}, "required": ["a"]})
PING = Tool(name="ping", parameters={})
TEXTS = {
    "word": {"enum": ["x", "y,"]},
    "free": {"enum": ["x", "y"]},
    "empty": {"enum": ["", "y"]},
    "mixed": {"enum": ["x", 1]},
    "count": {"type": "integer"},
    "flag": {"type": ["boolean", "null"]},
    "name": {"type": "string", "title": "t"},
    "short": {"type": "string", "maxLength": 3},
    "any": {},
    "yes": True,
    "list": {"type": "array"},
    "bad": {"type": "text"},
}
TEXT_TOOL = Tool(name="t", parameters={"properties": TEXTS})
BAD = Tool(name="bad", parameters={"properties": {"a": {"pattern": "("}}})
LIMITS = {"required": ["a"], "minProperties": 1, "maxProperties": None, "dependentRequired": {}}
SHARED = Tool(
    name="s",
    parameters={"$defs": {"d": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/d"}, "b": True}, **LIMITS},
)
CALL = c.tool_call(c.sequence("<", c.ref("in"), ">"))
INSIDE = {"in": c.sequence(NAME, ":", c.arguments(c.ref("value"))), "value": c.json_value()}
RUN = Grammar(c.sequence(c.content(c.until("<")), c.zero_or_more(c.ref("call"))), {"call": CALL, **INSIDE})


def one(inner, **rules):
    """Return a grammar of one call."""
    return Grammar(c.tool_call(inner), rules)


def text_entry(*stops):
    return one(c.sequence(NAME, c.argument(c.chars("a-z", 1, None), "=", c.until(*stops))))


def value_entry(value, **rules):
    return one(c.sequence(NAME, c.zero_or_more(c.argument("k", ":", value), ",")), **rules)


def written(grammar, **request):
    """Return a grammar as it is written for a request, and what entries cannot say."""
    found, losses = written_for(grammar, Request(**{"tools": (GET, PING), **request}))
    return grammar_lines(found), list(map(str, losses))


WRITTEN: list[Any] = [
    (
        RUN,
        {},
        {
            "": "content:(text[<]) ($call){0,}",
            "call": "call:('<' $in-get '>') | call:('<' $in-ping '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "in-get": 'name:(\'get\') \':\' argument:(json<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)',
            "in-ping": "name:('ping') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        [],
    ),
    (
        RUN,
        {"tools": (GET,)},
        {
            "": "content:(text[<]) ($call){0,}",
            "call": "call:('<' $in-get '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "in-get": 'name:(\'get\') \':\' argument:(json<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)',
        },
        [],
    ),
    (
        RUN,
        {"tools": None},
        {
            "": "content:(text[<]) ($call){0,}",
            "call": "call:('<' $in '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
        },
        [],
    ),
    (RUN, {"tools": ()}, {"": "content:(text[<]) ''"}, []),
    (RUN, {"tool_choice": ToolChoice.NONE}, {"": "content:(text[<]) ''"}, []),
    (
        RUN,
        {"tool_choice": ToolChoice.REQUIRED},
        {
            "": "content:(text[<]) ($call){1,}",
            "call": "call:('<' $in-get '>') | call:('<' $in-ping '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "in-get": 'name:(\'get\') \':\' argument:(json<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)',
            "in-ping": "name:('ping') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        [],
    ),
    (
        RUN,
        {"tool_choice": ToolChoice.REQUIRED, "tools": None},
        {
            "": "content:(text[<]) ($call){1,}",
            "call": "call:('<' $in '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
        },
        [],
    ),
    (
        RUN,
        {"tool_choice": ToolChoice.NAMED, "named_tool": "ping"},
        {
            "": "content:(text[<]) $call-one",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "call-one": "call:('<' $in-ping '>')",
            "in-ping": "name:('ping') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        [],
    ),
    (
        RUN,
        {"parallel_tool_calls": False},
        {
            "": "content:(text[<]) ($call-one | '')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "call-one": "call:('<' $in-get '>') | call:('<' $in-ping '>')",
            "in-get": 'name:(\'get\') \':\' argument:(json<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)',
            "in-ping": "name:('ping') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        [],
    ),
    (
        RUN,
        {"parallel_tool_calls": False, "tool_choice": ToolChoice.REQUIRED},
        {
            "": "content:(text[<]) $call-one",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "call-one": "call:('<' $in-get '>') | call:('<' $in-ping '>')",
            "in-get": 'name:(\'get\') \':\' argument:(json<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)',
            "in-ping": "name:('ping') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        [],
    ),
    (
        RUN,
        {"tools": (BAD,)},
        {
            "": "content:(text[<]) ($call){0,}",
            "call": "call:('<' $in-bad '>')",
            "in": "name:([a-z_]+) ':' argument:($value)",
            "value": "json<null>",
            "in-bad": "name:('bad') ':' argument:(json<{\"type\": \"object\"}>)",
        },
        ["tool 'bad': #: parameters is not enforced: #/properties/a/pattern: pattern '(': expected ')' at character 1"],
    ),
    (
        one(c.sequence(NAME, c.arguments(c.python_value()))),
        {},
        {
            "": 'call:(name:(\'get\') argument:(python<{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}>)) | call:(name:(\'ping\') argument:(python<{"type": "object"}>))'
        },
        [],
    ),
    (
        one(c.sequence(NAME, c.arguments(c.until("!")))),
        {"tools": (GET,)},
        {"": "call:(name:('get') argument:(text[!]))"},
        ["tool 'get': #: parameters is not enforced: the grammar does not write the arguments as a value"],
    ),
    (
        one(c.sequence(NAME, c.arguments(c.ref("loop"))), loop=c.ref("loop")),
        {"tools": (GET,)},
        {"": "call:(name:('get') argument:($loop))", "loop": "$loop"},
        ["tool 'get': #: parameters is not enforced: the grammar does not write the arguments as a value"],
    ),
    (
        one(
            c.sequence(
                NAME,
                c.sequence("(", c.tag(Role.KEY, "k"), ")", c.tag(Role.VALUE, "v")),
                c.optional(c.atomic(c.choice(NAME, "x"))),
            )
        ),
        {"tools": (GET,)},
        {
            "": "call:(name:('get') ('(' key:('a') ')' value:('v')) [Atomic(node=Choice(options=(Tag(role=<Role.NAME: 'name'>, node=Literal(text='get')), Literal(text='x'))))])"
        },
        [
            "tool 'get': #: required is not enforced: each entry is written for itself",
            "tool 'get': #/properties/a: schema is not enforced: the grammar writes the value as text",
        ],
    ),
    (
        one(c.sequence(NAME, c.sequence(c.sequence(c.tag(Role.KEY, "k"), "="), c.tag(Role.VALUE, "v")))),
        {"tools": (GET,)},
        {"": "call:(name:('get') key:('k') '=' value:('v'))"},
        ["tool 'get': #: properties is not enforced: the grammar writes names of arguments apart from their values"],
    ),
    (
        text_entry(","),
        {"tools": (TEXT_TOOL,)},
        {
            "": "call:(name:('t') (key:('word') '=' value:(text[,]) | key:('free') '=' value:('x' | 'y') | key:('empty') '=' value:(text[,]) | key:('mixed') '=' value:(text[,]) | key:('count') '=' value:(json<{\"type\": \"integer\"}>) | key:('flag') '=' value:(json<{\"type\": [\"boolean\", \"null\"]}>) | key:('name') '=' value:(text[,]) | key:('short') '=' value:(text[,]) | key:('any') '=' value:(text[,]) | key:('yes') '=' value:(text[,]) | key:('list') '=' value:(text[,]) | key:('bad') '=' value:(text[,])))"
        },
        [
            "tool 't': #/properties/word: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/empty: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/mixed: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/short: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/list: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/bad: schema is not enforced: the grammar writes the value as text",
        ],
    ),
    (
        text_entry("e"),
        {"tools": (TEXT_TOOL,)},
        {
            "": "call:(name:('t') (key:('word') '=' value:('x' | 'y,') | key:('free') '=' value:('x' | 'y') | key:('empty') '=' value:(text[e]) | key:('mixed') '=' value:(text[e]) | key:('count') '=' value:(text[e]) | key:('flag') '=' value:(text[e]) | key:('name') '=' value:(text[e]) | key:('short') '=' value:(text[e]) | key:('any') '=' value:(text[e]) | key:('yes') '=' value:(text[e]) | key:('list') '=' value:(text[e]) | key:('bad') '=' value:(text[e])))"
        },
        [
            "tool 't': #/properties/empty: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/mixed: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/count: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/flag: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/short: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/list: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/bad: schema is not enforced: the grammar writes the value as text",
        ],
    ),
    (text_entry("<e>"), {"tools": (PING,)}, {"": "call:(name:('ping') key:([a-z]+) '=' value:(text[<e>]))"}, []),
    (
        value_entry(c.json_value()),
        {"tools": (SHARED,)},
        {
            "": "call:(name:('s') (key:('a') ':' value:(json<{\"$defs\": {\"d\": {\"type\": \"null\"}}, \"$ref\": \"#/$defs/d\"}>) | key:('b') ':' value:(json<true>)){0, by ','})"
        },
        [
            "tool 's': #: minProperties is not enforced: each entry is written for itself",
            "tool 's': #: required is not enforced: each entry is written for itself",
        ],
    ),
    (
        value_entry(c.python_value()),
        {"tools": (SHARED, GET)},
        {
            "": "call:(name:('s') (key:('a') ':' value:(python<{\"$defs\": {\"d\": {\"type\": \"null\"}}, \"$ref\": \"#/$defs/d\"}>) | key:('b') ':' value:(python<true>)){0, by ','}) | call:(name:('get') (key:('a') ':' value:(python<{\"type\": \"integer\"}>)){0, by ','})"
        },
        [
            "tool 's': #: minProperties is not enforced: each entry is written for itself",
            "tool 's': #: required is not enforced: each entry is written for itself",
            "tool 'get': #: required is not enforced: each entry is written for itself",
        ],
    ),
    (
        value_entry(c.ref("v"), v=c.json_value()),
        {"tools": (BAD, GET)},
        {
            "": "call:(name:('bad') (key:('a') ':' value:(json<true>)){0, by ','}) | call:(name:('get') (key:('a') ':' value:(json<{\"type\": \"integer\"}>)){0, by ','})",
            "v": "json<null>",
        },
        [
            "tool 'bad': #/properties/a: parameters is not enforced: #/pattern: pattern '(': expected ')' at character 1",
            "tool 'get': #: required is not enforced: each entry is written for itself",
        ],
    ),
    (
        value_entry(c.quoted()),
        {"tools": (TEXT_TOOL,)},
        {
            "": "call:(name:('t') (key:('word') ':' value:(Quoted(quote='\"')) | key:('free') ':' value:(Quoted(quote='\"')) | key:('empty') ':' value:(Quoted(quote='\"')) | key:('mixed') ':' value:(Quoted(quote='\"')) | key:('count') ':' value:(Quoted(quote='\"')) | key:('flag') ':' value:(Quoted(quote='\"')) | key:('name') ':' value:(Quoted(quote='\"')) | key:('short') ':' value:(Quoted(quote='\"')) | key:('any') ':' value:(Quoted(quote='\"')) | key:('yes') ':' value:(Quoted(quote='\"')) | key:('list') ':' value:(Quoted(quote='\"')) | key:('bad') ':' value:(Quoted(quote='\"'))){0, by ','})"
        },
        [
            "tool 't': #/properties/word: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/free: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/empty: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/mixed: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/count: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/flag: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/short: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/list: schema is not enforced: the grammar writes the value as text",
            "tool 't': #/properties/bad: schema is not enforced: the grammar writes the value as text",
        ],
    ),
    (
        value_entry(c.json_value()),
        {"tools": (Tool(name="x", parameters=True), Tool(name="y", parameters={"properties": {}}))},
        {
            "": "call:(name:('x') (key:('k') ':' value:(json<null>)){0, by ','}) | call:(name:('y') (key:('k') ':' value:(json<null>)){0, by ','})"
        },
        [],
    ),
]
"""A grammar, a request, the lines of what may be generated, and what entries cannot say."""


@pytest.mark.parametrize(("grammar", "request_", "lines", "losses"), WRITTEN)
def test_calls_are_written_out_for_each_tool(grammar, request_, lines, losses):
    """The name is the tool's, arguments obey its schema, and what reads calls is copied for each tool."""
    assert written(grammar, **request_) == (lines, losses)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (c.sequence(c.end(), "a"), "text may follow it"),
        (c.sequence("a", c.end(), c.cut(), c.end()), ""),
        (c.sequence("a", c.optional(c.end())), ""),
        (c.sequence(c.optional(c.end()), "a"), "text may follow it"),
        (c.sequence(c.end(), c.cut()), ""),
        (c.repeat(c.sequence("a", c.end()), 0, 1), ""),
        (c.repeat(c.sequence("a", c.end()), 0, 2), "text may follow it"),
        (c.zero_or_more("a", c.end()), "text may follow it"),
        (c.ref("ends"), ""),
        (c.sequence(c.ref("ends"), "a"), "text may follow it"),
        (c.sequence(c.choice("a", c.ref("loop")), c.ref("ends")), ""),
        (c.sequence(c.ref("loop"), "a", c.ref("ends")), ""),
        (c.choice(c.ref("ends"), c.sequence(c.content(c.ref("ends")), "a")), "text may follow it"),
    ],
)
def test_the_end_of_the_output_is_last(root, message):
    """A part that takes text may not follow an end, by whatever way the end is reached."""
    grammar = Grammar(root, {"ends": c.sequence("b", c.end()), "loop": c.sequence("x", c.optional(c.ref("loop")))})
    if not message:
        assert written(grammar)[1] == []
        return
    with pytest.raises(GrammarError, match=message):
        written(grammar)


@pytest.mark.parametrize(
    ("turn", "ends"),
    [
        (TurnTexts(end="<end>"), ("<end>",)),
        (TurnTexts(end="\n<end>\n"), ("\n<end>", "<end>")),
        (TurnTexts(end=" \n", ends=("<a>", " <b>", "<a>")), ("<a>", " <b>", "<b>")),
        (TurnTexts(), ()),
    ],
)
def test_a_turn_ends_with_and_without_the_layout_before(turn, ends):
    """Layout alone ends nothing, and nothing is named twice."""
    assert ends_of(turn) == ends


def test_free_text_stops_at_the_end_of_the_turn():
    """In rules as well, each stop once; literals are all texts that a grammar names."""
    grammar = Grammar(c.sequence("a", c.until("<x>", "<end>")), {"r": c.optional(c.rest()), "s": c.sequence("b", "c")})
    stopped = stopped_at(grammar, ("<end>", "<e2>"))

    assert grammar_lines(stopped) == {
        "": "'a' text[<x> <end> <e2>]",
        "r": "[text[<end> <e2>]]",
        "s": "'b' 'c'",
    }
    assert sorted(literals_of(stopped)) == ["<e2>", "<e2>", "<end>", "<end>", "<x>", "a", "b", "c"]


def test_a_grammar_is_a_key_by_identity():
    """Equal grammars are two keys; one grammar is one."""
    first, second = Grammar(c.literal("a")), Grammar(c.literal("a"))

    assert first == second
    assert Identity(first) == Identity(first)
    assert Identity(first) != Identity(second)
    assert Identity(first) != first
    assert len({Identity(first), Identity(first), Identity(second)}) == 2


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            Request(response_schema={}),
            "response_format: expected none with a grammar made by hand, which says itself what an answer is, found a schema",
        ),
        (
            Request(reasoning_format="none"),
            "reasoning_format: a grammar made by hand says itself what reasoning is, found 'none'",
        ),
    ],
)
def test_a_request_asks_for_no_more_than_the_grammar_says(request_, message):
    """Reasoning and answer are the grammar's own."""
    check_request(Request())
    with pytest.raises(GrammarError) as caught:
        check_request(request_)

    assert str(caught.value) == message


def test_words_of_every_kind_are_written_as_values():
    """Numbers, booleans and null are the same as text and as values."""
    kinds = {"anyOf": [{"type": kind} for kind in ("integer", "number", "boolean", "null")]}
    lines, losses = written(text_entry("!"), tools=(Tool(name="w", parameters={"properties": {"k": kinds}}),))

    assert "value:(json<" in lines[""]
    assert losses == []
