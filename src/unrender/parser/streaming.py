"""The parser, which turns a model's output, in any chunks, into events and a message.

Strategy: the machine first parses the prefill, so that an open reasoning block is open and a continued answer is part of the message. The
program depends on the format and the request, but not on its tools, unless only their names identify a call. It's compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

from unrender.answer.build import answer_of, names_in_openers, names_matter, offered
from unrender.cache import kept
from unrender.errors import GrammarError, ParseError, StateError
from unrender.format import Format, ReasoningMode
from unrender.formats import known_calls, known_reasoning
from unrender.grammar.handmade import Identity, check_request, ends_of
from unrender.machine.call_events import open_call
from unrender.machine.compile.combinators import compile_combinators
from unrender.machine.compile.program import CONTENT_HUB, compile_answer
from unrender.machine.control import UpTo
from unrender.machine.events import (
    ArgumentsText,
    BrokenText,
    ContentText,
    Event,
    Malformed,
    MessageFinished,
    ReasoningText,
)
from unrender.machine.ids import CallIds, IdMaker, id_maker
from unrender.machine.instructions import FreeText
from unrender.machine.interpreter import Machine, Program
from unrender.machine.past import Span
from unrender.machine.policy import USUAL, Policy
from unrender.messages.wire import Message, Request, Tool
from unrender.nodes import Grammar, Role
from unrender.parser.message import Cleaner, MessageFold
from unrender.parser.prompt_tail import read_prefill
from unrender.parser.quoting import Quoter
from unrender.parser.saved_states import STATE_VERSION, Saved, Transcript, identity, message_digest
from unrender.parser.unread import unread_call
from unrender.values.finder import Flow
from unrender.values.resumable import Resumable


@kept(100_000)
def _handmade_program(made: Identity, ends: tuple[str, ...]) -> Program:
    return compile_combinators(made.grammar, ends)


def begun_machine(
    format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
) -> tuple[Machine, list[Event | BrokenText]]:
    """Return a machine that has read the part of the answer that the prompt already contains, and the events of it.

    Raises `GrammarError` for a request that no grammar made by hand can fulfil, for one that cannot be compiled, and when no
    answer of it begins so.
    """
    prefill = transcript.prefill
    if grammar is None:
        program = _program(format, request, siblings=transcript.policy.repair == "offered")
    else:
        check_request(request)
        program = _handmade_program(Identity(grammar), ends_of(format.turn))
    # A strict reading refuses what a grammar made by hand does not allow; that the prompt begins so is an error of its own.
    strict = transcript.strict and grammar is None
    roles = {Role.REASONING: Role.CONTENT} if request.reasoning_format == "none" else {}
    machine = Machine(program=program, request=request, strict=strict, ids=ids, roles=roles)
    # What the prompt wrote lies before position 0: spans and errors count from what the model wrote.
    machine.policy, machine.base, machine.given = transcript.policy, -len(prefill), not transcript.is_continuation
    machine.answered = grammar is not None  # Its tags alone say what is content.
    if transcript.skips_reasoning:
        machine.pc = CONTENT_HUB
    events = machine.feed(prefill)
    if grammar is not None and any(isinstance(event, Malformed) for event in events):
        raise GrammarError(f"the prompt begins the answer with {prefill!r:.80}, which the grammar doesn't allow")
    machine.strict = transcript.strict
    return machine, events


def _program(format: Format, request: Request, *, siblings: bool) -> Program:
    # What does not change the program is left out of it: a thousand requests with tools of their own share one.
    some = None if request._calls_allowed else ()
    shape = replace(request, tools=some, tool_choice="auto", named_tool="", reasoning_format="auto")
    tools = offered(request) if shape._calls_allowed and names_matter(format) else None
    # A program for one response schema is hardly ever wanted again, and a schema is no key to keep it by.
    make = _compiled if shape.response_schema is None else _compiled.__wrapped__  # type: ignore[attr-defined]
    taken = tuple(name for name in _names_in_openers(format) if shape._calls_allowed and request.tool(name))
    program: Program = make(format, shape, tuple(tool.name for tool in tools or ()), taken, siblings)
    return program


@kept(1_000)
def _names_in_openers(format: Format) -> tuple[str, ...]:
    known = known_reasoning() if format.undeclared_reasoning else ()
    return tuple(dict.fromkeys(name for name, _ in names_in_openers(format, known)))


@kept(100_000)
def _compiled(
    format: Format, shape: Request, names: tuple[str, ...], taken: tuple[str, ...], siblings: bool
) -> Program:
    """Compile what is read; where `names` of tools show calls, these calls alone may be made.

    Calls of the tools `taken` begin as reasoning does that the format does not have: it is not read. With `siblings`, calls of other
    well-known formats are read.
    """
    shape = replace(shape, tools=tuple(Tool(name=name) for name in names)) if names else shape
    known = known_reasoning() if format.undeclared_reasoning else ()
    calls = [block for name, block in names_in_openers(format, known) if name in taken]
    others = [declared.format.tools for declared in known_calls()] if siblings else []
    return compile_answer(answer_of(format, shape, [block for block in known if block not in calls], others))


__all__ = ["STATE_VERSION", "Parser", "Span"]

_KEPT = ("_cleaner", "_finished", "_fold", "_format", "_grammar", "_machine", "_quoter", "_transcript", "_waiting")
"""Fields that are copied and pickled; those of the fast path are recreated."""


class Parser(Resumable):
    """Streaming parser for one answer: feed it chunks of text, and it returns events.

    `prompt` is the rendered prompt, or its end: the text after the assistant's header is the prefill. If you know the prefill, pass it as
    `prefill`; the prompt isn't searched then. It's part of the message only with `is_continuation`, i.e. if it's an answer that the model
    continues; otherwise, it isn't content. A parser is lenient unless `strict`: `feed` and `finish` never raise on model output. If strict,
    they raise only `ParseError`, at the first text that the format doesn't allow. `policy` decides how to parse ambiguous text, and when to
    send calls. `special_tokens` are the texts of the tokenizer's special tokens, by default the format's preserved tokens. They matter only
    if you pass `special` to `feed`. A handwritten `grammar` replaces the format's, which then only provides the prefill and the end of a
    turn. With it, a request for JSON or for reasoning in the content raises `GrammarError`, and so does a prefill that the grammar doesn't
    allow. `ids` is a function from a call's position in the conversation and the tool's name to its id; by default, ids are random.
    `known_ids` are the ids of earlier calls, one for each; they aren't used again.

    You can save a parser as JSON data with `state()` and `restore()`, and copy it with `copy()`. It can also be pickled, but unpickling can
    run any code, so load only pickles that you trust.

    >>> from unrender.format import Format
    >>> parser = Parser(Format(), Request())
    >>> parser.feed("Hi")
    [ContentText(text='Hi')]
    >>> parser.finish()
    [MessageFinished()]
    >>> parser.message
    Message(content='Hi', reasoning='', tool_calls=(), failed_calls=())
    """

    __slots__ = (*_KEPT, "_event", "_free", "_passing", "_tail", "_take", "_told", "_write")

    _take: Callable[[str], tuple[str, int] | None] | None
    """Fast path for text, except for an undecided end; None if there is no fast path."""
    _free: Flow | None
    """Finds text that may end free text. A chunk without a match is one event; it's added to the message later."""
    _tail: str
    _passing: list[str]
    """Text that the machine hasn't decided, and later chunks that it hasn't seen."""
    _event: Any  # A call of an optional one would cost a question for each chunk.
    """Creates the event for a chunk; None while chunks are buffered."""
    _write: Callable[[str], object] | None
    """Appends a chunk to the arguments of the call; None for free text."""
    _told: int
    """The number of pieces of these that the message has, where the caller was told of the call; else -1."""

    def __init__(
        self,
        format: Format,
        request: Request,
        *,
        grammar: Grammar | None = None,
        prompt: str = "",
        prefill: str | None = None,
        is_continuation: bool = False,
        strict: bool = False,
        policy: Policy | None = None,
        special_tokens: Collection[str] | None = None,
        ids: IdMaker | None = None,
        known_ids: Sequence[str] = (),
    ) -> None:
        if prefill is None:
            prefill = read_prefill(format, prompt)
        if not prefill.strip():  # Layout that the prompt writes is not a part of the message.
            prefill = ""
        quoter = Quoter(format.preserved_tokens if special_tokens is None else special_tokens)
        transcript = Transcript(
            prefill=prefill,
            is_continuation=is_continuation,
            known_ids=tuple(known_ids),
            policy=policy or USUAL,
            # In delimiter.jinja the prompt's own words begin reasoning; a prompt without them begins with content.
            skips_reasoning=bool(prompt and not prefill and format.turn.prefill)
            and format.reasoning.mode is ReasoningMode.DELIMITER
            and grammar is None,
            special_tokens=quoter.tokens,
            strict=strict,
        )
        self._begin(format, request, grammar, transcript, quoter, CallIds(ids or id_maker(format.tools), known_ids))

    def _begin(
        self,
        format: Format,
        request: Request,
        grammar: Grammar | None,
        transcript: Transcript,
        quoter: Quoter,
        ids: CallIds,
    ) -> None:
        self._format, self._grammar = format, grammar
        self._transcript, self._quoter = transcript, quoter
        self._fold, self._cleaner = MessageFold(request), Cleaner()
        self._finished = False
        self._waiting: list[Event] = []
        self._no_flow()
        self._machine, read = begun_machine(format, request, grammar, transcript, ids)
        prefill = transcript.prefill
        if transcript.is_continuation or not format.reasoning.closed_in(
            prefill
        ):  # The prompt itself wrote the closed thought.
            self._waiting = self._emit(read)

    def copy(self, *, ids: IdMaker | None = None) -> Self:
        """Return an independent copy of the parser, for n > 1 sampling and speculative decoding.

        Calls that start in the copy get their own ids, from `ids` or, by default, from the original's function.
        """
        self._stop_flow()
        # The machine was told of what went straight through, so its copy has read the same text.
        other = super().copy()
        other._no_flow()
        if ids is not None:
            other._machine.ids.make = ids
        return other

    def __getstate__(self) -> dict[str, Any]:
        self._stop_flow()
        return {name: getattr(self, name) for name in _KEPT}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, state[name])
        self._no_flow()

    def state(self) -> dict[str, Any]:
        """Return the parser's state as plain JSON data, for `restore` in another process.

        It contains all text fed so far and the prefill; `restore` parses them again, in linear time. It contains only a digest of the
        format, request and grammar. Unlike a pickle, it's safe to load from untrusted sources.
        """
        self._account()
        machine = self._machine
        return {
            "version": STATE_VERSION,
            "for": identity(self._format, machine.request, self._grammar),
            **self._transcript.state(),
            "ids": list(machine.ids.made),
            "finished": self._finished,
            "length_limited": machine.length_limited,
            "message": message_digest(self._fold.message),
        }

    @classmethod
    def _restored(
        cls,
        format: Format,
        request: Request,
        state: Mapping[str, Any],
        *,
        grammar: Grammar | None = None,
        ids: IdMaker | None = None,
    ) -> Parser:
        """Return a parser in the state that another parser's `state` returned. It continues exactly as that parser would.

        `ids` is as for a new parser. Raises `StateError` when the state is of another version, format, request (tools
        included) or `grammar`, when its text is read otherwise than it was, and when a field does not hold what a
        parser writes there. Nothing in it is executed.
        """
        saved = Saved(state)
        saved.require("version", STATE_VERSION, f"{STATE_VERSION}, what this release writes")
        digest = identity(format, request, grammar)
        saved.require("for", digest, f"{digest}, the digest of this format and request")
        transcript, made = Transcript.restore(saved), iter(saved.texts("ids"))
        maker = ids or id_maker(format.tools)
        calls = CallIds(lambda position, name: next(made, None) or maker(position, name), transcript.known_ids)
        finished, length_limited = saved.flag("finished"), saved.flag("length_limited")
        # The ids that were made are given again, in order; those of later calls are made anew.
        parser = cls.__new__(cls)
        try:
            quoter = Quoter(transcript.special_tokens)
            # What is fed now is recorded anew, so that the restored parser can be saved again.
            parser._begin(format, request, grammar, replace(transcript, stretches=[]), quoter, calls)
            for special, text in transcript:
                parser.feed(text, special=special)
            if finished:
                parser.finish("length" if length_limited else None)
        except (ParseError, GrammarError, ValueError) as error:
            raise StateError(f"state.fed: expected text that the parser accepts: {error}") from None
        calls.make = maker
        digest = message_digest(parser._fold.message)
        saved.require("message", digest, f"{digest}, the digest of the message that the text makes")
        return parser

    def feed(self, text: str, *, special: bool | None = None) -> list[Event]:
        """Parse more output and return the new events. Text fed after `finish` is an error.

        `special` is True if `text` consists of special tokens, False if it's ordinary text, in which a spelled-out special token is a
        quotation, and None if that isn't known.
        """
        if self._take is not None and special is None and type(text) is str and text:
            # The way of most chunks: more of what is being read, and no instruction runs.
            self._passing.append(text)
            if self._free is not None and not self._tail and self._free.search(text) is None:
                return [self._event(text)]
            text = self._tail + text  # "<" came before, and "b" now: together they are text.
            if (taken := self._take(text)) is not None:
                said, used = taken
                self._tail = text[used:]
                if not said:
                    return []
                if self._write is not None:
                    self._write(said)
                return [self._event(said)] if self._event is not None else []
            self._tail, text = text, ""
        if not isinstance(text, str):
            raise TypeError(f"feed(): expected text, found {type(text).__name__}")
        if self._finished:
            raise ValueError("feed() can't be called after finish()")
        tail = self._leave_flow()
        self._transcript.add(text, special)
        if special is False:
            text = self._quoter.ordinary(text)
        elif self._quoter.held:
            text = self._quoter.release() + text
        machine = self._machine
        # Where special tokens are told from text, a marker that is one is no quotation.
        machine.specials = () if special is None else self._quoter.tokens
        events = self._emit(machine.feed(tail + text))
        if special is None:
            self._start_flow(machine)
        return events

    def _quote_only(self, tokens: str) -> None:
        """Quote those special tokens alone that are in the text of a tokenizer's `tokens`; has to come before any text."""
        # `<call>` that the vocabulary lacks is letters for the tokenizer, and yet what the model begins a call with.
        if not self._transcript.stretches:
            self._quoter = Quoter(token for token in self._quoter.tokens if token in tokens)
            self._transcript.special_tokens = self._quoter.tokens

    def _start_flow(self, machine: Machine) -> None:
        """Let what the machine need not see go straight through, unless something has to be done with each event."""
        role = _flowing(machine)
        if machine.flow is None or role is None or self._cleaner.held or self._quoter.used:
            return
        machine.forget()
        # What is undecided has to be fed again: the machine gives it up, and `_leave_flow` brings it back.
        self._tail, machine.buffer = machine.buffer, ""
        self._passing = [self._tail]
        self._take = machine.flow.take
        if role is not Role.ARGUMENT:
            self._free = cast(Flow, machine.flow)
            self._event = ReasoningText if role is Role.REASONING else ContentText
        elif machine.current.begun:
            self._event = partial(ArgumentsText, machine.calls - 1)
            self._told = len(machine.current.arguments)
        if role is Role.ARGUMENT:
            self._write = machine.current.arguments.append

    def _no_flow(self) -> None:
        self._take = self._free = self._event = self._write = None
        self._told = -1
        self._tail, self._passing = "", []

    def _account(self) -> None:
        """Report text of the fast path to the machine and the transcript."""
        if len(self._passing) > 1:
            undecided, *chunks = self._passing
            text = "".join(chunks)
            self._transcript.add(text, None)
            text = undecided + text
            decided = text[: len(text) - len(self._tail)]
            _account(self._machine, decided)
            if self._free is not None:
                self._fold.writer(self._machine.span_roles[-1])(decided)
            elif self._told >= 0:
                pieces = self._machine.current.arguments
                self._fold.writer(Role.ARGUMENT)("".join(pieces[self._told :]))
                self._told = len(pieces)
            self._passing = [self._tail]

    def _leave_flow(self) -> str:
        """Let the machine read on; return the text that it has to be fed first."""
        self._account()
        tail = self._tail
        self._no_flow()
        return tail

    def _stop_flow(self) -> None:
        """Let the machine read on, and feed it what it has to read first."""
        if tail := self._leave_flow():
            self._waiting = self._emit(self._machine.feed(tail))

    def finish(self, reason: str | None = None, *, text: str = "") -> list[Event]:
        """End the output and return the last events. `reason` is the engine's finish reason: after "length", an unclosed call counts as
        truncated.

        `text` is the last chunk; passing it here is faster than feeding it. Returns nothing if called again.
        """
        # Only the end of the text is what the limit has cut off.
        if text and (self._finished or type(text) is not str or reason == "length"):
            return [*self.feed(text), *self.finish(reason)]
        if self._finished:
            return []
        self._finished = True
        tail = self._leave_flow()
        if text:
            self._transcript.add(text, None)
        machine = self._machine
        machine.length_limited = reason == "length"
        events = self._emit(machine.finish(tail + self._quoter.release() + text))
        last = self._cleaner.finish()
        self._fold.add(last)
        last += [*self._unread(), MessageFinished()]
        return [*events, *last]

    def _unread(self) -> list[Event]:
        """Return the report of a call that stayed in the content, where nothing else was reported."""
        machine = self._machine
        if self._fold.reported or self._grammar is not None or not machine.request._calls_allowed:
            return []
        found = unread_call(self._fold.content, self._format, machine.request)
        if found is None:
            return []
        at, name = found
        position = self._place(at)
        wanted = "a call as the format writes it"
        if machine.strict:
            raise ParseError(position, wanted, name)
        report = Malformed(name, position, wanted)
        self._fold.add([report])
        return [report]

    def _place(self, at: int) -> int:
        """Return where in the output the character `at` of the content is."""
        for span in self.spans:
            if span.role is Role.CONTENT:
                if at < span.end - span.start:
                    return span.start + at
                at -= span.end - span.start
        return self._machine.position

    def _emit(self, read: list[Event | BrokenText]) -> list[Event]:
        if self._quoter.used:
            read = [self._quoter.unquote(event) for event in read]
        events = self._cleaner.take(read)
        self._fold.add(events)
        if self._waiting:
            events = self._waiting + events
            self._waiting = []
        return events

    def expected(self) -> tuple[str, ...]:
        """Return what the format allows next, as in `ParseError.expected`: quoted texts, and names of free parts."""
        return _expected_by(self.copy()._machine, by_hand=self._grammar is not None)

    @property
    def _program_listing(self) -> tuple[Any, ...]:
        """The instructions that read the answer, for people: `unrender.explain.listing` shows them."""
        return self._machine.program

    @property
    def message(self) -> Message:
        """The message so far: all events, and the call that isn't complete yet."""
        self._account()
        message, call = self._fold.message, open_call(self._machine)
        return replace(message, tool_calls=(*message.tool_calls, call)) if call else message

    @property
    def _made_ids(self) -> tuple[str, ...]:
        """The ids of calls that the model did not write, in order."""
        given = {call.id for call in self.message.tool_calls}
        return tuple(dict.fromkeys(id for id in self._machine.ids.made if id in given))  # A call may be read twice.

    @property
    def _steps(self) -> int:
        """The number of instructions executed so far, a measure of work that does not depend on the machine."""
        self._account()
        return self._machine.steps

    @property
    def _settled(self) -> int:
        """The number of characters of the output that `spans` covers; text after them is held back."""
        self._account()
        return max(self._machine.final_end, 0)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The role of every character parsed so far, in order and without gaps, except for buffered text."""
        self._account()
        spans: list[Span] = []
        for role, end in self._machine.final_spans():
            start = spans[-1].end if spans else 0
            if end > start:
                # In a grammar made by hand, whether a failed call is beside content or a part of it would depend on the chunks.
                if self._grammar is not None and spans and spans[-1].role is role:
                    start = spans.pop().start
                spans.append(Span(role, start, end))
        return tuple(spans)


# The fast path of a suspended machine.


def _flowing(machine: Machine) -> Role | None:
    """Return the role of the text that the machine's `flow` takes; None unless all text so far is final and has it."""
    end = machine.base + machine.at
    if machine.frames or end < 0 or not machine.span_ends or machine.span_ends[-1] != end:
        return None
    role = machine.span_roles[-1]
    if role is Role.ARGUMENT:
        return role if machine.call is not None else None
    # White space before an answer, or between calls, may yet be layout.
    settled = role is Role.REASONING or (role is Role.CONTENT and machine.answered and not machine.carried)
    return role if settled else None


def _account(machine: Machine, text: str) -> None:
    """Tell the machine that `text` took the fast path."""
    # The call that an argument belongs to may fail; other text is context for what follows.
    argument = machine.span_roles[-1] is Role.ARGUMENT
    machine.past.add(text, machine.base, machine.needed_from() if argument else machine.base + len(text))
    if argument and machine.scanner is not None:
        machine.scanner.passed(text)
    machine.base += len(text)
    machine.failed_at -= len(text)
    machine.span_ends[-1] += len(text)
    machine.steps += 1


# What may come next.

_NO_MARKER = "\0"
_TEXT = {Role.CONTENT: "text", Role.REASONING: "reasoning"}


def _expected_by(machine: Machine, *, by_hand: bool) -> tuple[str, ...]:
    """Return the allowed next texts: quoted literals, and names of free parts.

    It is empty after the end of the output.
    """
    if machine.final:
        return ()
    now = machine.program[machine.pc]
    asked = machine.copy()
    asked.strict, asked.wanted, asked.failed_at = False, "", asked.at
    # A copy is fed a character that no marker holds: where something is wanted it fails, and says what.
    wanted = _wanted(asked, asked.feed(_NO_MARKER))
    if by_hand:
        stops = now.finder.literals if isinstance(now, UpTo) else ()
        return (asked.wanted,) if asked.wanted else ("text", *_quoted(stops))
    if not wanted and asked.scanner is not None:
        return ("more of the value", *_quoted(getattr(getattr(now, "suffix", None), "literals", ())))
    after = asked.program[asked.pc]
    if not wanted and isinstance(after, FreeText):
        return (_TEXT[after.role], *_quoted(after.table))
    # A call that is not certain yet may still turn out to be text.
    return (wanted or _wanted(asked, asked.finish()), *(["text"] if machine.frames else []))


def _wanted(asked: Machine, events: list[Event | BrokenText]) -> str:
    """Return what was wanted in the place of the text that was fed; empty where that is text, or nothing is certain."""
    return next((event.expected for event in events if isinstance(event, Malformed)), asked.wanted)


def _quoted(markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(repr(core) for marker in markers if (core := marker.strip())))
