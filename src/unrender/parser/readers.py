"""Makes the machine that reads answers of a format, or of a grammar made by hand; programs are compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unrender.cache import kept
from unrender.errors import GrammarError
from unrender.format import Format
from unrender.formats import known_reasoning
from unrender.grammar.assemble import answer_grammar, names_matter, offered
from unrender.grammar.handmade import Identity, check_request, ends_of, stopped_at
from unrender.machine.compile.program import CONTENT_HUB, compile_grammar
from unrender.machine.events import Event, Malformed
from unrender.machine.handmade.compiler import compile_combinators
from unrender.machine.ids import CallIds
from unrender.machine.interpreter import Machine, Program
from unrender.machine.leftovers import BrokenText
from unrender.messages.wire import Request, Tool, ToolChoice
from unrender.nodes import Grammar, Role
from unrender.parser.saved_states import Transcript

_IN_CONTENT: Mapping[Role, Role] = {Role.REASONING: Role.CONTENT}


def machine_for(
    format: Format, request: Request, grammar: Grammar | None = None, *, strict: bool, ids: CallIds
) -> Machine:
    """Return a machine at the beginning of an answer in `format`, or of the `grammar` made by hand.

    Raises `GrammarError` for a request that no such grammar can fulfil, and for a grammar that cannot be compiled.
    """
    roles = dict(_IN_CONTENT) if request.reasoning_format == "none" else {}
    if grammar is None:
        program = _program(format, request)
    else:
        check_request(request)
        program = _handmade_program(Identity(grammar), ends_of(format.turn))
    return Machine(program, request, strict=strict, ids=ids, roles=roles)


@kept(100_000)
def _handmade_program(made: Identity, ends: tuple[str, ...]) -> Program:
    return compile_combinators(stopped_at(made.grammar, ends), ends)


def begun_machine(
    format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
) -> tuple[Machine, list[Event | BrokenText]]:
    """Return a machine that has read the part of the answer that the prompt already contains, and the events of it.

    Raises `GrammarError` as `machine_for` does, and when no answer of the grammar begins so.
    """
    begun = transcript.begun
    machine = machine_for(format, request, grammar, strict=transcript.strict and grammar is None, ids=ids)
    machine.policy, machine.base, machine.given = transcript.policy, -len(begun), not transcript.continued
    if transcript.skips_reasoning:
        machine.pc = CONTENT_HUB
    events = machine.feed(begun)
    if grammar is not None and any(isinstance(event, Malformed) for event in events):
        raise GrammarError(f"the prompt begins the answer with {begun!r:.80}, which the grammar does not read")
    machine.strict = transcript.strict
    return machine, events


def _shape(request: Request) -> Request:
    """Return the request without what does not change the program."""
    some = None if request.calls_allowed else ()
    return replace(request, tools=some, tool_choice=ToolChoice.AUTO, named_tool="", reasoning_format="auto")


def _program(format: Format, request: Request) -> Program:
    shape = _shape(request)
    tools = offered(request) if shape.calls_allowed and names_matter(format) else None
    names = [tool.name for tool in tools or ()]
    if shape.response_schema is not None:
        return _compiled(format, shape, names)
    return _cached_program(format, shape, tuple(names))


@kept(100_000)
def _cached_program(format: Format, shape: Request, names: tuple[str, ...]) -> Program:
    return _compiled(format, shape, names)


def _compiled(format: Format, shape: Request, names: Sequence[str]) -> Program:
    """Compile what is read; where `names` of tools show calls, these calls alone may be made."""
    shape = replace(shape, tools=tuple(Tool(name=name) for name in names)) if names else shape
    return compile_grammar(answer_grammar(format, shape, known_reasoning() if format.undeclared_reasoning else ()))
