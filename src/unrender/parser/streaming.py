"""The parser: it is fed a model's output in any chunks, and gives events and the message that they add up to.

Strategy: what the prompt has begun of the answer is replayed first, by the same machine, so that an open reasoning block is
open and a continued answer is part of the message. The program depends on the format and on
what the request allows, not on its tools (save where nothing but their names shows a call), and is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unrender.errors import GrammarError, MalformedOutput, StateError
from unrender.format import Format, ReasoningMode
from unrender.machine.buffer import Span
from unrender.machine.compile.program import CONTENT_HUB
from unrender.machine.events import Event, MessageFinished
from unrender.machine.handmade.tagged import TaggedReader
from unrender.machine.ids import CallIds, IdMaker, id_maker
from unrender.machine.interpreter import Machine
from unrender.machine.leftovers import BrokenText, Cleaner
from unrender.machine.policy import USUAL, Policy, read_policy, save_policy
from unrender.machine.saved import MOST, Saved
from unrender.messages.wire import Message, Request
from unrender.nodes import Grammar
from unrender.parser.expectations import expected_by
from unrender.parser.fast_path import account, event_maker, flows, give_up_undecided, keeper, writer
from unrender.parser.fed import Fed
from unrender.parser.message import MessageFold
from unrender.parser.prompt_tail import prefill
from unrender.parser.quoting import Quoter
from unrender.parser.readers import fed_begun, machine_for, reader_for
from unrender.parser.saved_events import read_events, save_events
from unrender.parser.sealing import STATE_VERSION, opened, sealed
from unrender.parser.state import read_machine, save_machine

__all__ = ["STATE_VERSION", "Parser", "Span", "prefill"]

_KEPT = ("_cleaner", "_fed", "_finished", "_fold", "_format", "_grammar", "_machine", "_quoter", "_waiting")
"""What a parser is made of, beside what goes straight through it."""


class Parser:
    """Reads one answer: it is fed text, piece by piece, and gives events.

    `prompt` is the rendered prompt, or its tail: its text after the assistant's header counts as begun. A caller who
    knows the begun text passes it as `begun`; then the prompt is not searched. Begun text is part of the message only
    when it is `continued`, i.e. an answer that the model goes on with; a generation prompt's text is not content.
    A parser is lenient unless `strict`: `feed` and `finish` raise on no text whatever. When strict they raise
    `MalformedOutput`, and nothing else, at the first text that the format does not allow. `policy` decides on text that
    can be read in two ways, and on when a call is given: when it is complete, or as it is written. `special_tokens` matter
    only to callers who tell `feed` which text is special: they are the texts of the tokenizer's special tokens, by
    default the format's preserved tokens. A `grammar` made by hand is read instead of the format's, which then only
    says what the prompt has begun and what ends a turn. With it, a request for an answer in JSON or for reasoning in
    the content is a `GrammarError`, and so is begun text that the grammar does not read. `ids` makes the ids of calls
    from their position in the conversation and the tool's name, by default at random. `known_ids` are the ids of the
    calls before the answer, one for each; none of them is given again.

    A parser can be kept and moved: as JSON data by `state()` and `restore()`, in memory by `copy()`. It also pickles,
    but unpickling runs what the pickle says, so only pickles of your own making are safe to load.

    >>> from unrender.format import Format
    >>> parser = Parser(Format(), Request())
    >>> parser.feed("Hi")
    [ContentText(text='Hi')]
    >>> parser.finish()
    [MessageFinished()]
    >>> parser.message
    Message(content='Hi', reasoning='', tool_calls=(), dead_calls=())
    """

    __slots__ = (*_KEPT, "_event", "_keep", "_passed", "_tail", "_take", "_write")

    _take: Callable[[str], tuple[str, int] | None] | None
    """Takes what goes straight through, but for the tail, which it has not decided yet; None while nothing does."""
    _tail: str
    _passed: int
    """Characters that went straight through, of which the machine knows nothing yet."""
    _event: Callable[[str], Event] | None
    """Makes their event; None while they wait."""
    _write: Callable[[str], object]
    """Adds them to the message, or to the call that waits."""
    _keep: Callable[[str], object] | None
    """Keeps them where the call that they belong to may die."""

    def __init__(
        self,
        format: Format,
        request: Request,
        *,
        grammar: Grammar | None = None,
        prompt: str = "",
        begun: str | None = None,
        continued: bool = False,
        strict: bool = False,
        policy: Policy | None = None,
        special_tokens: Collection[str] | None = None,
        ids: IdMaker | None = None,
        known_ids: Sequence[str] = (),
    ) -> None:
        self._format = format
        self._grammar = grammar
        self._fed: Fed | None = None
        self._fold = MessageFold()
        self._cleaner = Cleaner()
        self._quoter = Quoter(format.preserved_tokens if special_tokens is None else special_tokens)
        self._finished = False
        self._waiting: list[Event] = []
        self._no_flow()
        if begun is None:
            begun = prefill(format, prompt)
        if not begun.strip():  # Layout that the prompt writes is not a part of the message.
            begun = ""
        calls = CallIds(ids or id_maker(format.tools), known_ids)
        self._machine: Machine | TaggedReader
        if grammar is None:
            self._machine = machine_for(format, request, strict=strict, ids=calls)
            self._machine.policy = policy or USUAL
            self._machine.base = -len(begun)
            self._machine.given = not continued
            worded = format.reasoning.mode is ReasoningMode.DELIMITER and format.turn.prefill
            if prompt and not begun and worded:
                # In delimiter.jinja the prompt's own words begin reasoning; a prompt without them begins with content.
                self._machine.pc = CONTENT_HUB
            read = self._machine.feed(begun)
        else:
            self._machine = reader_for(
                format, grammar, request, ids=calls, policy=policy, begun=begun, given=not continued
            )
            read = fed_begun(self._machine, begun)
            self._machine.strict = strict
            self._fed = Fed(begun=begun, continued=continued, known_ids=tuple(known_ids))
        if continued or not format.reasoning.closed_in(begun):  # The prompt itself wrote the closed thought.
            self._waiting = self._emit(read)

    def copy(self, *, ids: IdMaker | None = None) -> Parser:
        """Return an independent parser in the same state, for n > 1 sampling and speculative decoding.

        Calls that begin in the copy get their own ids. They are made by `ids`, or by default as before.
        """
        self._stop_flow()
        other = type(self).__new__(type(self))
        other._format, other._grammar = self._format, self._grammar
        other._fed = self._fed and self._fed.copy()
        other._machine = self._machine.copy()
        if ids is not None:
            other._machine.ids.make = ids
        other._fold = self._fold.copy()
        other._cleaner = self._cleaner.copy()
        other._quoter = self._quoter.copy()
        other._finished = self._finished
        other._waiting = list(self._waiting)
        other._no_flow()
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

        It holds the message so far, the spans, and the text that is held back; it holds nothing of the prompt. The
        caller's format and request are not in it, only their digest. Unlike a pickle, it can be read without trust. For
        a grammar made by hand it holds all the text that was fed, and `restore` reads that again.
        """
        if self._fed is not None:
            return sealed(self._fed_state(self._fed), self._format, self._machine.request, self._grammar)
        assert isinstance(self._machine, Machine)
        self._stop_flow()
        body = {
            "finished": self._finished,
            "message": self._fold.state(),
            "waiting": save_events(self._waiting),
            "called": self._cleaner.called,
            "broken": save_events(self._cleaner.held),
            "quoting": self._quoter.state(),
            "machine": save_machine(self._machine),
        }
        return sealed(body, self._format, self._machine.request, None)

    def _fed_state(self, fed: Fed) -> dict[str, Any]:
        return {
            **fed.state(),
            "finished": self._finished,
            "length_limited": self._machine.length_limited,
            "message": self._fold.state(),
            "policy": save_policy(self._machine.policy),
            "strict": self._machine.strict,
            "tokens": self._quoter.state()["tokens"],
        }

    @classmethod
    def restore(
        cls,
        format: Format,
        request: Request,
        state: Mapping[str, Any],
        *,
        grammar: Grammar | None = None,
        ids: IdMaker | None = None,
    ) -> Parser:
        """Return a parser in the state that another parser's `state` returned. It goes on exactly as that parser would.

        `ids` is as for a new parser. Raises `StateError` when the state is of another version, format, request (tools
        included) or `grammar`, was changed, or holds anything that no parser has written. Nothing in it is executed.
        """
        saved = opened(state, format, request, grammar)
        maker = ids or id_maker(format.tools)
        if grammar is not None:
            return cls._read_again(format, request, grammar, saved, maker)
        parser = cls.__new__(cls)
        parser._format, parser._grammar, parser._fed = format, None, None
        parser._no_flow()
        parser._finished = saved.flag("finished")
        parser._fold = MessageFold.restore(saved.part("message"))
        parser._quoter = Quoter.restore(saved.part("quoting"))
        waiting, _ = read_events(saved.objects("waiting"), 0, MOST)
        parser._waiting = [event for event in waiting if not isinstance(event, BrokenText)]
        parser._cleaner = Cleaner()
        parser._cleaner.called = saved.flag("called")
        parser._cleaner.held, counts = read_events(saved.objects("broken"), parser._fold.calls, MOST)
        parser._machine = machine_for(format, request, strict=False, ids=CallIds(maker))
        read_machine(saved.part("machine"), parser._machine, counts[-1])
        saved.require("finished", parser._finished == parser._machine.final, "what the machine says")
        return parser

    @classmethod
    def _read_again(cls, format: Format, request: Request, grammar: Grammar, saved: Saved, maker: IdMaker) -> Parser:
        """Return a parser of a grammar made by hand that was fed what is saved, and whose calls have the ids they had."""
        fed = Fed.restore(saved)
        given = [call.text("id") for call in saved.part("message").objects("calls")]
        first = len(fed.known_ids)

        def same(position: int, name: str) -> str:
            at = position - first
            return given[at] if at < len(given) else maker(position, name)

        try:
            parser = cls(
                format,
                request,
                grammar=grammar,
                begun=fed.begun,
                continued=fed.continued,
                strict=saved.flag("strict"),
                policy=read_policy(saved.part("policy")),
                special_tokens=saved.texts("tokens"),
                ids=same,
                known_ids=fed.known_ids,
            )
            for special, text in fed:
                parser.feed(text, special=special)
            if saved.flag("finished"):
                parser.finish("length" if saved.flag("length_limited") else None)
        except (MalformedOutput, GrammarError) as error:
            raise StateError(f"state.fed: expected what a parser has read, found that it is refused: {error}") from None
        parser._machine.ids.make = maker
        saved.require(
            "message", parser._fold.state() == MessageFold.restore(saved.part("message")).state(), "what the text says"
        )
        return parser

    def feed(self, text: str, *, special: bool | None = None) -> list[Event]:
        """Take more output; return the events that are final now. Text fed after `finish` is an error of the caller.

        `special` is what the tokenizer knows about `text`. True: it is special tokens. False: it is ordinary text, and
        a special token spelled out in it is a quotation. None: nothing is known.
        """
        if self._take is not None and special is None and type(text) is str and text:
            # The way of most chunks: more of what is being read, see flow.py.
            if self._tail:
                text = self._tail + text
            if (taken := self._take(text)) is not None:
                said, used = taken
                self._passed += used
                self._tail = text[used:]
                if self._keep is not None:
                    self._keep(text[:used])
                if not said:
                    return []
                self._write(said)
                return [self._event(said)] if self._event else []
            self._tail = ""
        if not isinstance(text, str):
            raise TypeError(f"feed(): expected text, found {type(text).__name__}")
        if self._finished:
            raise ValueError("feed() after finish(): the output has ended")
        self._stop_flow()
        if self._fed is not None:
            self._fed.add(text, special)
        if special is not None:
            text = self._quoter.release() + text if special else self._quoter.ordinary(text)
        machine = self._machine
        events = self._emit(machine.feed(text))
        if isinstance(machine, Machine):
            self._start_flow(machine)
        return events

    def _start_flow(self, machine: Machine) -> None:
        """Let what the machine need not see go straight through, unless something has to be done with each event."""
        if machine.flow is None or not flows(machine) or self._cleaner.held or self._quoter.used:
            return
        self._tail = give_up_undecided(machine)
        self._keep = keeper(machine)
        self._event = event_maker(machine)
        self._write = writer(machine, self._fold)
        self._take = machine.flow.take

    def _no_flow(self) -> None:
        self._take, self._keep = None, None
        self._tail, self._passed = "", 0

    def _account(self) -> None:
        """Tell the machine how much went straight through."""
        if self._passed:
            assert isinstance(self._machine, Machine)
            account(self._machine, self._passed)
            self._passed = 0

    def _stop_flow(self) -> None:
        """Let the machine read on."""
        self._take = None
        self._account()
        if self._tail:
            tail, self._tail = self._tail, ""
            self._waiting = self._emit(self._machine.feed(tail))

    def finish(self, reason: str | None = None, *, text: str = "") -> list[Event]:
        """End the output; `reason` is the engine's finish reason: with "length" an unclosed call counts as truncated.

        `text` is the last of the output: given here, it costs less than fed. Returns the last events, and nothing when called again.
        """
        if text and (self._finished or self._fed is not None or type(text) is not str):
            return [*self.feed(text), *self.finish(reason)]
        if self._finished:
            return []
        self._finished = True
        self._stop_flow()
        machine = self._machine
        machine.length_limited = reason == "length"
        events = self._emit(machine.finish(self._quoter.release() + text))
        last = [*self._cleaner.finish(), MessageFinished()]
        self._fold.add(last)
        return [*events, *last]

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
        """Return what may come now, in the words of `MalformedOutput.expected`: quoted texts, and names of free parts."""
        return expected_by(self.copy()._machine)

    @property
    def program(self) -> tuple[Any, ...]:
        """The instructions that read the answer, for people: `unrender.explain.listing` shows them."""
        return self._machine.program

    @property
    def message(self) -> Message:
        """The message so far: what the events add up to, and after it the call that waits until it is complete."""
        message, call = self._fold.message, self._machine.open_call()
        return replace(message, tool_calls=(*message.tool_calls, call)) if call else message

    @property
    def steps(self) -> int:
        """The number of instructions executed so far, a measure of work that does not depend on the machine."""
        self._account()
        return self._machine.steps

    @property
    def settled(self) -> int:
        """The number of characters of the output that `spans` covers; text after them is held back."""
        self._account()
        return max(self._machine.final_end, 0)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The role of every character read so far, in order and without gaps, except text that is held back."""
        self._account()
        spans, start = [], 0
        for role, end in self._machine.final_spans():
            if end > start:
                spans.append(Span(role, start, end))
                start = end
        return tuple(spans)
