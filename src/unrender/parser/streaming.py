"""The streaming parser, which converts a model's output into events and a message.

Strategy: the machine parses the prefill first. A reasoning block that the prompt started is therefore open, and a continued answer is part
of the message. The program depends on the format and the request, but not on the request's tools, unless only tool names identify a call.
Programs are therefore compiled only once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

from unrender.answer.build import answer_of, names_in_openers, names_matter, offered
from unrender.cache import kept
from unrender.errors import GrammarError, ParseError, RequestError, StateError
from unrender.format import Format, ReasoningMode
from unrender.format.declared import known_calls, known_reasoning
from unrender.machine import (
    USUAL,
    ArgumentsText,
    BrokenText,
    CallIds,
    ContentText,
    Event,
    IdMaker,
    Malformed,
    MessageFinished,
    Policy,
    ReasoningText,
    Repairs,
    id_maker,
)
from unrender.machine.call_events import open_call
from unrender.machine.frames import ReadText, Span
from unrender.machine.interpreter import Machine, Program
from unrender.machine.program import CONTENT_HUB, compile_answer
from unrender.messages import Message, Request, Tool
from unrender.nodes import Grammar, Role
from unrender.parser.expectations import expected_by, unread_call
from unrender.parser.message import Cleaner, MessageFold, Quoter
from unrender.parser.prompt_tail import read_prefill
from unrender.parser.saved_states import STATE_VERSION, Saved, Transcript, identity, message_digest
from unrender.signatures import checked, found
from unrender.values import Resumable
from unrender.values.finder import Flow


def begun_machine(
    format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
) -> tuple[Machine, list[Event | BrokenText]]:
    """Return a machine that has parsed the prefill, and the events of the prefill.

    Raises `GrammarError` if the handwritten grammar can't fulfill the request, can't be compiled, or doesn't allow the prefill.
    """
    prefill = transcript.prefill
    if grammar is None:
        program = _program(format, request, repair=transcript.policy.repair)
    else:
        from unrender.machine.combinators import handmade_program  # noqa: PLC0415 -- formats don't need it

        program = handmade_program(grammar, request, format.turn)
    # If a handwritten grammar doesn't allow the prefill, a `GrammarError` is raised below, even if the parser is strict.
    strict = transcript.strict and grammar is None
    roles = {Role.REASONING: Role.CONTENT} if request.reasoning_format == "none" else {}
    machine = Machine(program=program, request=request, strict=strict, ids=ids, roles=roles)
    # Text of the prompt has negative positions. Positions in spans and errors count from the start of the model's text.
    machine.policy, machine.base, machine.given = transcript.policy, -len(prefill), not transcript.is_continuation
    machine.answered = grammar is not None  # In a handwritten grammar, only tags mark content.
    if transcript.skips_reasoning:
        machine.pc = CONTENT_HUB
    events = machine.feed(prefill)
    if grammar is not None and any(isinstance(event, Malformed) for event in events):
        raise GrammarError(f"the prompt begins the answer with {prefill!r:.80}, which the grammar doesn't allow")
    machine.strict = transcript.strict
    return machine, events


def _program(format: Format, request: Request, *, repair: Repairs) -> Program:
    # Omit everything that doesn't affect the program, so that requests with different tools share one program.
    some = None if request._calls_allowed else ()
    shape = replace(request, tools=some, tool_choice="auto", named_tool="", reasoning_format="auto")
    tools = offered(request) if shape._calls_allowed and names_matter(format) else None
    # Don't cache programs with a response schema: they are rarely reused, and a schema isn't a suitable key.
    make = _compiled if shape.response_schema is None else _compiled.__wrapped__  # type: ignore[attr-defined]
    taken = tuple(name for name in _names_in_openers(format) if shape._calls_allowed and request.tool(name))
    program: Program = make(format, shape, tuple(tool.name for tool in tools or ()), taken, repair)
    return program


@kept(1_000)
def _names_in_openers(format: Format) -> tuple[str, ...]:
    known = known_reasoning() if format.undeclared_reasoning else ()
    return tuple(dict.fromkeys(name for name, _ in names_in_openers(format, known)))


@kept(100_000)
def _compiled(
    format: Format, shape: Request, names: tuple[str, ...], taken: tuple[str, ...], repair: Repairs
) -> Program:
    """Compile the program for a format. If tool names identify calls, `names` are the tools that may be called.

    Undeclared reasoning markers are ignored if they look like a call of one of the tools in `taken`. Calls in other well-known syntaxes
    are parsed too: with "offered" after any text, and with "format" if they are the whole answer.
    """
    shape = replace(shape, tools=tuple(Tool(name=name) for name in names)) if names else shape
    known = known_reasoning() if format.undeclared_reasoning else ()
    calls = [block for name, block in names_in_openers(format, known) if name in taken]
    others = [declared.format.tools for declared in known_calls()] if repair != "none" else []
    return compile_answer(
        answer_of(format, shape, [block for block in known if block not in calls], others, alone=repair == "format")
    )


__all__ = ["STATE_VERSION", "Parser", "Span"]

_KEPT = ("_cleaner", "_finished", "_fold", "_format", "_grammar", "_machine", "_quoter", "_transcript", "_waiting")
"""Fields that are copied and pickled, unlike the fields of the fast path."""
_ENDED = ("stop", "tool_calls")
"""Finish reasons of a model that ended its turn."""


@checked
class Parser(Resumable):
    """Streaming parser for one answer: feed it chunks of text, and it returns events.

    `prompt` is the rendered prompt, or its end: the text after the assistant's header is the prefill. If you know the prefill, pass it as
    `prefill`. The prompt isn't searched then. The prefill is part of the message only with `is_continuation`, i.e. if the model continues
    an answer. Unless `strict` is True, a parser is lenient: `feed` and `finish` never raise on model output. A strict parser raises only
    `ParseError`, at the first text that the format doesn't allow. `policy` decides how to parse ambiguous text, and when to send calls.
    `special_tokens` are the texts of the tokenizer's special tokens, by default the format's preserved tokens; they matter only if you pass
    `special` to `feed`. A handwritten `grammar` replaces the format's grammar. The format then only provides the prefill and the end of a
    turn. With a handwritten grammar, a request for JSON or for reasoning in the content raises `GrammarError`. A prefill that the grammar
    doesn't allow raises `GrammarError` too. `ids` is a function that returns the id of a call, given the call's index in the conversation
    and the tool's name. By default, ids are random. `known_ids` contains the ids of all earlier calls, in order. New calls get different
    ids.

    You can save a parser as JSON data with `state()` and `restore()`, and copy it with `copy()`. You can also pickle it, but load only
    pickles that you trust: unpickling can run any code.

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
    """Consumes text on the fast path, except for an undecided end. None if the fast path isn't possible."""
    _free: Flow | None
    """Finds text that may end free text. A chunk without such text becomes one event, which is added to the message later."""
    _tail: str
    _passing: list[str]
    """Undecided text of the machine, followed by the chunks that the machine hasn't received yet."""
    _event: Any  # Typed as `Any`, since an optional callable would need a check for each chunk.
    """Creates the event for a chunk. None while chunks are buffered."""
    _write: Callable[[str], object] | None
    """Appends a chunk to the arguments of the call. None for free text."""
    _told: int
    """Number of argument pieces added to the message, or -1 if the start of the call wasn't emitted."""

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
        if not prefill.strip():  # Leave out layout in the prompt, which isn't part of the message.
            prefill = ""
        transcript = Transcript(
            prefill=prefill,
            is_continuation=is_continuation,
            known_ids=tuple(known_ids),
            policy=policy or USUAL,
            # In `delimiter.jinja`, words in the prompt start reasoning. If these words are missing, the answer starts with content.
            skips_reasoning=bool(prompt and not prefill and format.turn.prefill)
            and format.reasoning.mode is ReasoningMode.DELIMITER
            and grammar is None,
            special_tokens=tuple(format.preserved_tokens if special_tokens is None else special_tokens),
            strict=strict,
        )
        self._begin(format, request, grammar, transcript, CallIds(ids or id_maker(format.tools), known_ids))

    def _begin(
        self, format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
    ) -> None:
        self._format, self._grammar = format, grammar
        # The grammar of a required call allows no marker as text. Engines let a model spell its markers in ordinary tokens.
        self._quoter = Quoter(() if request._call_required else transcript.special_tokens)
        self._transcript, transcript.special_tokens = transcript, self._quoter.tokens
        self._fold, self._cleaner = MessageFold(request), Cleaner()
        self._finished = False
        self._waiting: list[Event] = []
        self._no_flow()
        self._machine, read = begun_machine(format, request, grammar, transcript, ids)
        prefill = transcript.prefill
        # Leave out a complete reasoning block in the prompt, which isn't part of the message.
        if transcript.is_continuation or not format.reasoning.closed_in(prefill):
            self._waiting = self._emit(read)

    def copy(self, *, ids: IdMaker | None = None) -> Self:
        """Return an independent copy of the parser, for n > 1 sampling and speculative decoding.

        Calls that start in the copy get their own ids from `ids`, which defaults to the original's function.
        """
        self._stop_flow()
        # Stopping the fast path adds its text to the machine, so the copy includes that text.
        other = super().copy()
        other._no_flow()
        other._supply_text()
        if ids is not None:
            other._machine.ids.make = ids
        return other

    def _supply_text(self) -> None:
        """Supply the text that the machine of a copy reads again with a handwritten grammar."""
        machine, transcript = self._machine, self._transcript
        if self._grammar is not None and machine.restart is not None:
            text = transcript.prefill + transcript.quoted_text
            machine.past = ReadText(deque([text[: machine.base + len(transcript.prefill)]]))

    def __getstate__(self) -> dict[str, Any]:
        self._stop_flow()
        return {name: getattr(self, name) for name in _KEPT}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, state[name])
        self._no_flow()
        self._supply_text()

    def state(self) -> dict[str, Any]:
        """Return the parser's state as plain JSON data, for `restore` in another process.

        The state contains the prefill and all text fed so far, which `restore` parses again in linear time. The format, request and grammar
        are represented only by a digest. Unlike a pickle, the state is safe to load from untrusted sources.
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
            "stopped": machine.stopped,
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
        """Return a parser that continues exactly like the parser that returned `state`.

        `ids` generates the ids of new calls, as it does for a new parser. Raises `StateError` if a field is invalid, or if the state
        belongs to another version, format, request (including tools) or `grammar`. `StateError` is also raised if parsing the text now
        gives another result. Loading a state never executes code.
        """
        saved = Saved(state)
        saved.require("version", STATE_VERSION, f"{STATE_VERSION}, the version of this release")
        digest = identity(format, request, grammar)
        saved.require("for", digest, f"{digest}, the digest of this format and request")
        transcript, made = Transcript.restore(saved), iter(saved.texts("ids"))
        maker = ids or id_maker(format.tools)
        calls = CallIds(lambda position, name: next(made, None) or maker(position, name), transcript.known_ids)
        finished, length_limited, stopped = map(saved.flag, ("finished", "length_limited", "stopped"))
        # Reuse the generated ids in order, then generate new ones for later calls.
        try:
            parser = cls._replayed(format, request, grammar, transcript, calls)
            if finished:
                parser.finish("length" if length_limited else "stop" if stopped else None)
        except (ParseError, GrammarError, ValueError) as error:
            raise StateError(f"state.fed: expected text that the parser accepts: {error}") from None
        calls.make = maker
        digest = message_digest(parser._fold.message)
        saved.require("message", digest, f"{digest}, the digest of the parsed message")
        return parser

    @classmethod
    def _replayed(
        cls, format: Format, request: Request, grammar: Grammar | None, transcript: Transcript, ids: CallIds
    ) -> Parser:
        """Return a new parser that has parsed the text of the transcript."""
        parser = cls.__new__(cls)
        # Record the text again, so that the new parser can be saved too.
        parser._begin(format, request, grammar, replace(transcript, stretches=[]), ids)
        for special, text in transcript:
            parser.feed(text, special=special)
        return parser

    def feed(self, text: str, *, special: bool | None = None) -> list[Event]:
        """Parse more output, and return the new events. Feeding text after `finish` is an error.

        `special` is True if `text` consists of special tokens, and None if that isn't known. With `special=False`, `text` is ordinary text,
        in which a spelled-out special token is a quotation, unless the request requires a call.
        """
        if self._take is not None and special is None and type(text) is str and text:
            # Most chunks only continue the current part, so the machine isn't needed.
            self._passing.append(text)
            if self._free is not None and not self._tail and self._free.search(text) is None:
                return [self._event(text)]
            text = self._tail + text  # If "<" was undecided and "b" follows, both characters are text.
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
            raise RequestError(f"text: expected text, found {found(text)}")
        if self._finished:
            raise ValueError("feed() can't be called after finish()")
        tail = self._leave_flow()
        self._transcript.add(text, special)
        if special is False:
            text = self._quoter.ordinary(text)
        elif self._quoter.held:
            text = self._quoter.release() + text
        machine = self._machine
        # If the caller distinguishes special tokens from text, a special token isn't a quotation.
        machine.specials = () if special is None else self._quoter.tokens
        events = self._emit(machine.feed(tail + text))
        if special is None:
            self._start_flow(machine)
        return events

    def _quote_only(self, tokens: str) -> None:
        """Quote only special tokens that occur in `tokens`, the texts of a tokenizer's tokens.

        This method must be called before the first text.
        """
        # If `<call>` isn't in the vocabulary, the model starts calls with ordinary tokens, so `<call>` must not be quoted.
        if not any(text for _, text in self._transcript):
            self._quoter = Quoter(token for token in self._quoter.tokens if token in tokens)
            self._transcript.special_tokens = self._quoter.tokens

    def _start_flow(self, machine: Machine) -> None:
        """Start the fast path, unless the machine needs to process the next text or events need changes."""
        if machine.flow is None or (role := _flowing(machine)) is None or self._cleaner.held or self._quoter.used:
            return
        machine.forget()
        # The machine has to process undecided text again, so take it out of the buffer until `_leave_flow`.
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
        """Add text from the fast path to the machine and the transcript."""
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
        """Stop the fast path. Return the text that must be fed to the machine first."""
        if self._take is None:
            return ""
        self._account()
        tail = self._tail
        self._no_flow()
        return tail

    def _stop_flow(self) -> None:
        """Stop the fast path, and feed the machine the undecided text."""
        if tail := self._leave_flow():
            self._waiting = self._emit(self._machine.feed(tail))

    def finish(self, reason: str | None = None, *, text: str = "") -> list[Event]:
        """End the output, and return the last events. A second call returns no events.

        `reason` is the engine's finish reason: after "length", an unclosed call counts as truncated, and after "stop", a call whose arguments
        are complete counts as complete, although its end marker is missing. `text` is the last chunk, which is fed
        first.
        """
        if text != "":
            return [*self.feed(text), *self.finish(reason)]
        if self._finished:
            return []
        self._finished = True
        tail = self._leave_flow()
        machine = self._machine
        machine.length_limited, machine.stopped = reason == "length", reason in _ENDED
        events = self._emit(machine.finish(tail + self._quoter.release()))
        last = self._cleaner.finish()
        self._fold.add(last)
        last += [*self._unread(), MessageFinished()]
        return [*events, *last]

    def _unread(self) -> list[Event]:
        """Return an event for a call that remained in the content, or no event if anything else was reported."""
        machine = self._machine
        if self._fold.reported or self._grammar is not None or not machine.request._calls_allowed:
            return []
        found = unread_call(self._fold.content, self._format, machine.request)
        if found is None:
            return []
        at, name = found
        position = self._place(at)
        wanted = "a call in the format's syntax"
        if machine.strict:
            raise ParseError(position, wanted, name)
        report = Malformed(name, position, wanted)
        self._fold.add([report])
        return [report]

    def _place(self, at: int) -> int:
        """Return the position in the output of the character at index `at` of the content."""
        for span in self.spans:
            if span.role is Role.CONTENT:
                if at < span.end - span.start:
                    return span.start + at
                at -= span.end - span.start
        return self._machine.position

    def _emit(self, read: list[Event | BrokenText]) -> list[Event]:
        events: list[Event] = []
        if read:  # Most chunks inside a call have no events.
            if self._quoter.used:
                read = [self._quoter.unquote(event) for event in read]
            events = self._cleaner.take(read)
            self._fold.add(events)
        if self._waiting:
            events = self._waiting + events
            self._waiting = []
        return events

    def expected(self) -> tuple[str, ...]:
        """Return descriptions of the text that the format allows next, as in `ParseError.expected`: quoted literals, and names of free
        parts.
        """
        return expected_by(self.copy()._machine, by_hand=self._grammar is not None)

    @property
    def message(self) -> Message:
        """The message so far: all events, and the call that isn't complete yet."""
        self._account()
        message, call = self._fold.message, open_call(self._machine)
        return replace(message, tool_calls=(*message.tool_calls, call)) if call else message

    def _parsed_again(self, request: Request) -> Parser:
        """Return a finished parser that has parsed the same text for another request."""
        ids = CallIds(self._machine.ids.make, self._transcript.known_ids)
        other = self._replayed(self._format, request, self._grammar, self._transcript, ids)
        other.finish()
        return other

    @property
    def _record(self) -> Transcript:
        """The text so far, and the parser's options."""
        self._account()
        return self._transcript

    @property
    def _steps(self) -> int:
        """Number of instructions executed so far, as a measure of work that doesn't depend on the hardware."""
        self._account()
        return self._machine.steps

    @property
    def _settled(self) -> int:
        """Number of characters of the output that `spans` covers. Text that is held back isn't included."""
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
                # Join spans of the same role. With a handwritten grammar, the boundary between a failed call and adjacent content would
                # depend on the chunks.
                if self._grammar is not None and spans and spans[-1].role is role:
                    start = spans.pop().start
                spans.append(Span(role, start, end))
        return tuple(spans)


# The fast path of a suspended machine.


def _flowing(machine: Machine) -> Role | None:
    """Return the role of text on the machine's fast path, or None if the fast path isn't possible."""
    end = machine.base + machine.at
    if machine.frames or end < 0 or not machine.span_ends or machine.span_ends[-1] != end:
        return None
    role = machine.span_roles[-1]
    if role is Role.ARGUMENT:
        return role if machine.call is not None else None
    # Whitespace before an answer or between calls may still become layout.
    settled = role is Role.REASONING or (role is Role.CONTENT and machine.answered and not machine.carried)
    return role if settled else None


def _account(machine: Machine, text: str) -> None:
    """Update the machine for `text` that took the fast path."""
    # The text of an argument is still needed, because its call may fail. Other text is kept only as context.
    argument = machine.span_roles[-1] is Role.ARGUMENT
    machine.past.add(text, machine.base, machine.needed_from() if argument else machine.base + len(text))
    if argument and machine.scanner is not None:
        machine.scanner.passed(text)
    machine.thinks = machine.thinks and (argument or text.isspace())
    machine.base += len(text)
    machine.failed_at -= len(text)
    machine.span_ends[-1] += len(text)
    machine.steps += 1
