"""A grammar made by hand, written out for the tools of a request."""

from __future__ import annotations

import pytest

from unrender.emit.answer import Answer
from unrender.errors import GrammarError
from unrender.format import Format
from unrender.grammar import combinators as c
from unrender.grammar.nodes import Grammar
from unrender.messages import Message, Request, Tool
from unrender.parsing.combinators import compile_combinators
from unrender.parsing.events import Malformed
from unrender.parsing.ids import CallIds, numbered_id
from unrender.parsing.message import MessageFold
from unrender.parsing.tagged import TaggedReader
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
    reader = TaggedReader(compile_combinators(grammar), REQUEST, strict=False, ids=CallIds(numbered_id))
    events = [*(event for character in text for event in reader.feed(character)), *reader.finish()]
    fold = MessageFold()
    fold.add(events)
    return fold.message, not any(isinstance(event, Malformed) for event in events)


@pytest.mark.parametrize("grammar", [WHOLE, ENTRIES], ids=["whole", "entries"])
def test_what_is_written_is_read(grammar):
    """Random answers are read without a malformed part, their calls name the tools, and the engine accepts them."""
    answer = Answer(format=Format(), request=REQUEST, handmade=grammar)
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
    accepts = lark_reader(Answer(format=Format(), request=REQUEST, handmade=WHOLE).lark())

    assert accepts('Hi<call>get_weather:{"days": 3}</call>')
    assert not accepts('<call>get_weather:{"days": 30}</call>')
    assert not accepts('<call>get_rain:{"days": 3}</call>')


def test_entries_are_bound_by_their_schema():
    """A value that is not a string is written by its schema, a string as the grammar says."""
    accepts = lark_reader(Answer(format=Format(), request=REQUEST, handmade=ENTRIES).lark())

    assert accepts("get_weather(city=New York,days=3)")
    assert not accepts("get_weather(days=New York)")
    assert not accepts("get_weather(town=Rome)")


def test_python_values_are_written_in_pythons_spelling():
    """What is generated reads back as the value that was meant."""
    answer = Answer(format=Format(), request=Request(tools=None), handmade=Grammar(c.content(c.python_value())))

    assert '"None"' in answer.gbnf()
    assert '"null"' not in answer.gbnf()


def test_without_tools_no_call_is_written():
    """Nothing is a call where no tool is offered."""
    answer = Answer(format=Format(), request=Request(), handmade=WHOLE)

    assert not lark_reader(answer.lark())("<call>get_weather:{}</call>")


@pytest.mark.parametrize("request_", [Request(response_schema={"type": "object"}), Request(reasoning_format="none")])
def test_what_only_a_format_can_say_is_refused(request_):
    """An answer in JSON, and reasoning in the content, are named in the error."""
    with pytest.raises(GrammarError, match="made by hand"):
        Answer(format=Format(), request=request_, handmade=WHOLE).gbnf()


def test_one_name_is_read_for_each_tool():
    """A grammar of a single call is written once for every tool."""
    gbnf = Answer(format=Format(), request=REQUEST, handmade=PYTHON).gbnf()

    assert "get_" in gbnf
    assert read(PYTHON, "get_time{'utc': True}")[0].tool_calls[0].arguments == '{"utc": true}'
