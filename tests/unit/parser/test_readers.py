"""Machines for a format or a grammar, and a request: what they share, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from unrender.errors import GrammarError
from unrender.format import CallSyntax, Format, Reasoning, ReasoningMode, Slot, ToolMode, TurnTexts
from unrender.grammar import combinators as c
from unrender.machine.events import ContentText, Malformed, ReasoningText
from unrender.machine.ids import CallIds, numbered_id
from unrender.machine.interpreter import Machine, Program
from unrender.machine.policy import USUAL
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import Grammar, Role
from unrender.parser.readers import begun_machine, machine_for
from unrender.parser.saved_states import Transcript

FORMAT = Format(
    turn=TurnTexts(end="<end>"),
    reasoning=Reasoning(mode=ReasoningMode.TAG_BASED, start="<t>", end="</t>"),
    tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=("<fn=", Slot.NAME, ">", Slot.ARGUMENTS, "</fn>")),
)
ON_LINES = Format(
    turn=TurnTexts(content_to_tools="\n"),
    tools=CallSyntax(mode=ToolMode.TAG_WITH_JSON, function=(Slot.NAME, "\n", Slot.ARGUMENTS), separator="\n"),
)
NOW, THEN = Tool(name="now"), Tool(name="then")
REQUEST = Request(tools=(NOW,))
GRAMMAR = Grammar(c.sequence("<t>", c.reasoning(c.until("</t>")), "</t>", c.content(c.rest())))


def program(request: Request, format: Format = FORMAT) -> Program:
    return machine_for(format, request, strict=False, ids=CallIds(numbered_id)).program


def reader(
    grammar: Grammar | None = GRAMMAR,
    request: Request = REQUEST,
    *,
    begun: str = "",
    given: bool = False,
    skips_reasoning: bool = False,
) -> tuple[Machine, list[Any]]:
    transcript = Transcript(
        begun=begun,
        continued=not given,
        known_ids=(),
        policy=USUAL,
        skips_reasoning=skips_reasoning,
        special_tokens=(),
        strict=True,
    )
    return begun_machine(FORMAT, request, grammar, transcript, CallIds(numbered_id))


def test_a_machine_stands_at_the_beginning() -> None:
    """With the caller's request, ids and strictness."""
    ids = CallIds(numbered_id)
    machine = machine_for(FORMAT, REQUEST, strict=True, ids=ids)

    assert (machine.pc, machine.position, machine.buffer, machine.strict) == (0, 0, "", True)
    assert (machine.request, machine.ids, machine.roles) == (REQUEST, ids, {})


def test_reasoning_is_content_where_the_request_wants_it_so() -> None:
    """The program is the same; its text has another role."""
    request = replace(REQUEST, reasoning_format="none")
    machine = machine_for(FORMAT, request, strict=False, ids=CallIds(numbered_id))

    assert machine.roles == {Role.REASONING: Role.CONTENT}
    assert machine.program is program(REQUEST)


@pytest.mark.parametrize(
    "request_",
    [
        Request(tools=(THEN,)),
        Request(tools=None),
        Request(tools=(NOW,), tool_choice=ToolChoice.REQUIRED),
        Request(tools=(NOW, THEN), tool_choice=ToolChoice.NAMED, named_tool="now"),
    ],
)
def test_programs_do_not_depend_on_the_tools(request_: Request) -> None:
    """They are compiled once for all requests in which calls are allowed."""
    assert program(request_) is program(REQUEST)


def test_where_no_call_is_allowed_the_program_is_another() -> None:
    """No tools, or none that may be called."""
    silent = program(Request())

    assert silent != program(REQUEST)
    assert program(replace(REQUEST, tool_choice=ToolChoice.NONE)) is silent


def test_names_of_tools_count_where_nothing_else_shows_a_call() -> None:
    """There, each set of tools has its own program, and a named tool is the only one."""
    both = Request(tools=(NOW, THEN))
    named = replace(both, tool_choice=ToolChoice.NAMED, named_tool="now")
    described = Request(tools=(Tool(name="now", description="Tells the time."),))

    assert program(REQUEST, ON_LINES) != program(both, ON_LINES)
    assert program(named, ON_LINES) is program(REQUEST, ON_LINES)
    assert program(described, ON_LINES) is program(REQUEST, ON_LINES)
    assert program(Request(), ON_LINES) is program(replace(both, tool_choice=ToolChoice.NONE), ON_LINES)
    assert "now" in str(program(REQUEST, ON_LINES))
    assert "then" not in str(program(REQUEST, ON_LINES))


def test_an_answer_in_json_is_compiled_each_time() -> None:
    """A schema can be large, and no other request has it."""
    request = Request(response_schema={"type": "object"})

    assert program(request) is not program(request)
    assert len(program(request)) == len(program(request)) > len(program(Request()))


def test_well_known_reasoning_is_read_unless_the_format_has_none() -> None:
    """`undeclared_reasoning` says so."""
    plain = Format(turn=TurnTexts(end="<end>"))

    assert "<think>" in str(program(Request(), plain))
    assert "<think>" not in str(program(Request(), replace(plain, undeclared_reasoning=False)))


def test_a_reader_of_a_grammar_made_by_hand() -> None:
    """Its parts are read, and the ends of turn of the format end its text."""
    made, _ = reader()

    assert made.feed("<t>So.</t>Hi") == [ReasoningText("So."), ContentText("Hi")]
    assert made.feed("<end>") == []
    assert (made.finish(), made.strict, made.request) == ([], True, REQUEST)
    assert reader()[0].program is reader()[0].program


def test_what_was_begun_is_before_the_output() -> None:
    """What a generation prompt gave of the content is not the model's."""
    grammar = Grammar(c.content(c.rest()))
    (given, none), (continued, read) = (reader(grammar, begun="abc", given=flag) for flag in (True, False))

    assert (none, given.feed("d"), read) == ([], [ContentText("d")], [ContentText("abc")])
    assert (given.position, continued.position) == (1, 0)


def test_an_answer_that_the_grammar_does_not_begin_so_is_refused() -> None:
    """The error shows what the prompt has begun, of which not too much."""
    with pytest.raises(GrammarError, match="the prompt begins the answer with 'Hi', which the grammar does not read"):
        reader(begun="Hi")
    with pytest.raises(GrammarError) as raised:
        reader(begun="x" * 200)

    assert "x" * 79 + ", which" in str(raised.value)
    machine, events = reader(begun="<t>So")
    assert machine.strict
    assert not any(isinstance(event, Malformed) for event in events)


def test_a_format_may_begin_with_content() -> None:
    """Where the prompt lacks the words that begin reasoning."""
    machine, _ = reader(None, skips_reasoning=True)

    assert machine.feed("So") == [ContentText("So")]


@pytest.mark.parametrize("changes", [{"response_schema": {"type": "object"}}, {"reasoning_format": "none"}])
def test_requests_that_no_grammar_made_by_hand_fulfils(changes: dict[str, Any]) -> None:
    """What the answer is, the grammar says."""
    with pytest.raises(GrammarError):
        reader(request=replace(REQUEST, **changes))
