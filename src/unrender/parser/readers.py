"""Makes the machine that reads answers of a format, or of a grammar made by hand; programs are compiled once."""

from __future__ import annotations

from dataclasses import replace

from unrender.cache import kept
from unrender.errors import GrammarError
from unrender.format import Format
from unrender.formats import known_reasoning
from unrender.grammar.assemble import answer_grammar, names_matter, offered
from unrender.grammar.handmade import Identity, check_request, ends_of, stopped_at
from unrender.machine.compile.program import CONTENT_HUB, compile_grammar
from unrender.machine.events import BrokenText, Event, Malformed
from unrender.machine.handmade.compiler import compile_combinators
from unrender.machine.ids import CallIds
from unrender.machine.interpreter import Machine, Program
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import Grammar, Role
from unrender.parser.saved_states import Transcript


@kept(100_000)
def _handmade_program(made: Identity, ends: tuple[str, ...]) -> Program:
    return compile_combinators(stopped_at(made.grammar, ends), ends)


def begun_machine(
    format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
) -> tuple[Machine, list[Event | BrokenText]]:
    """Return a machine that has read the part of the answer that the prompt already contains, and the events of it.

    Raises `GrammarError` for a request that no grammar made by hand can fulfil, for one that cannot be compiled, and when no
    answer of it begins so.
    """
    begun = transcript.begun
    if grammar is None:
        program = _program(format, request)
    else:
        check_request(request)
        program = _handmade_program(Identity(grammar), ends_of(format.turn))
    # A strict reading refuses what a grammar made by hand does not allow; that the prompt begins so is an error of its own.
    strict = transcript.strict and grammar is None
    roles = {Role.REASONING: Role.CONTENT} if request.reasoning_format == "none" else {}
    machine = Machine(program=program, request=request, strict=strict, ids=ids, roles=roles)
    machine.policy, machine.base, machine.given = transcript.policy, -len(begun), not transcript.continued
    if transcript.skips_reasoning:
        machine.pc = CONTENT_HUB
    events = machine.feed(begun)
    if grammar is not None and any(isinstance(event, Malformed) for event in events):
        raise GrammarError(f"the prompt begins the answer with {begun!r:.80}, which the grammar does not read")
    machine.strict = transcript.strict
    return machine, events


def _program(format: Format, request: Request) -> Program:
    # What does not change the program is left out of it: a thousand requests with tools of their own share one.
    some = None if request.calls_allowed else ()
    shape = replace(request, tools=some, tool_choice=ToolChoice.AUTO, named_tool="", reasoning_format="auto")
    tools = offered(request) if shape.calls_allowed and names_matter(format) else None
    # A program for one response schema is hardly ever wanted again, and a schema is no key to keep it by.
    make = _compiled if shape.response_schema is None else _compiled.__wrapped__  # type: ignore[attr-defined]
    program: Program = make(format, shape, tuple(tool.name for tool in tools or ()))
    return program


@kept(100_000)
def _compiled(format: Format, shape: Request, names: tuple[str, ...]) -> Program:
    """Compile what is read; where `names` of tools show calls, these calls alone may be made."""
    shape = replace(shape, tools=tuple(Tool(name=name) for name in names)) if names else shape
    return compile_grammar(answer_grammar(format, shape, known_reasoning() if format.undeclared_reasoning else ()))
