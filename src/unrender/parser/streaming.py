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
from unrender.machine.events import Event, MessageFinished
from unrender.machine.ids import CallIds, IdMaker, id_maker
from unrender.machine.interpreter import Machine
from unrender.machine.leftovers import BrokenText, Cleaner
from unrender.machine.policy import USUAL, Policy
from unrender.messages.wire import Message, Request
from unrender.nodes import Grammar
from unrender.parser.expectations import expected_by
from unrender.parser.fast_path import account, event_maker, flows, give_up_undecided, writer
from unrender.parser.message import MessageFold
from unrender.parser.prompt_tail import prefill
from unrender.parser.quoting import Quoter
from unrender.parser.readers import begun_machine
from unrender.parser.saved_states import STATE_VERSION, Saved, Transcript, identity, message_digest

__all__ = ["STATE_VERSION", "Parser", "Span", "prefill"]

_KEPT = ("_cleaner", "_finished", "_fold", "_format", "_grammar", "_machine", "_quoter", "_transcript", "_waiting")
"""Fields that are copied and pickled; those of the fast path are made again."""


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

    __slots__ = (*_KEPT, "_event", "_passing", "_tail", "_take", "_write")

    _take: Callable[[str], tuple[str, int] | None] | None
    """Takes what goes straight through, but for the tail, which it has not decided yet; None while nothing does."""
    _tail: str
    _passing: list[str]
    """What the machine had not decided, and the chunks since, of which it knows nothing yet."""
    _event: Callable[[str], Event] | None
    """Makes the event of a chunk; None while chunks wait."""
    _write: Callable[[str], object]
    """Adds a chunk to the message, or to the call that waits."""

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
        if begun is None:
            begun = prefill(format, prompt)
        if not begun.strip():  # Layout that the prompt writes is not a part of the message.
            begun = ""
        quoter = Quoter(format.preserved_tokens if special_tokens is None else special_tokens)
        transcript = Transcript(
            begun=begun,
            continued=continued,
            known_ids=tuple(known_ids),
            policy=policy or USUAL,
            # In delimiter.jinja the prompt's own words begin reasoning; a prompt without them begins with content.
            skips_reasoning=bool(prompt and not begun and format.turn.prefill)
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
        self._fold, self._cleaner = MessageFold(), Cleaner()
        self._finished = False
        self._waiting: list[Event] = []
        self._no_flow()
        self._machine, read = begun_machine(format, request, grammar, transcript, ids)
        begun = transcript.begun
        if transcript.continued or not format.reasoning.closed_in(begun):  # The prompt itself wrote the closed thought.
            self._waiting = self._emit(read)

    def copy(self, *, ids: IdMaker | None = None) -> Parser:
        """Return an independent parser in the same state, for n > 1 sampling and speculative decoding.

        Calls that begin in the copy get their own ids. They are made by `ids`, or by default as before.
        """
        self._stop_flow()
        other = type(self).__new__(type(self))
        other._format, other._grammar = self._format, self._grammar
        other._transcript = self._transcript.copy()
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

        It holds all the text that was fed and the part of the answer that the prompt already contains; `restore` reads
        that again, in linear time. The caller's format, request and grammar are not in it, only their digest. Unlike a
        pickle, it can be read without trust.
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
        parser = cls.__new__(cls)
        try:
            quoter = Quoter(transcript.special_tokens)
            parser._begin(format, request, grammar, replace(transcript, stretches=[]), quoter, calls)
            for special, text in transcript:
                parser.feed(text, special=special)
            if finished:
                parser.finish("length" if length_limited else None)
        except (MalformedOutput, GrammarError, ValueError) as error:
            raise StateError(f"state.fed: expected what a parser has read, found that it is refused: {error}") from None
        calls.make = maker
        digest = message_digest(parser._fold.message)
        saved.require("message", digest, f"{digest}, the digest of the message that the text makes")
        return parser

    def feed(self, text: str, *, special: bool | None = None) -> list[Event]:
        """Take more output; return the events that are final now. Text fed after `finish` is an error of the caller.

        `special` is what the tokenizer knows about `text`. True: it is special tokens. False: it is ordinary text, and
        a special token spelled out in it is a quotation. None: nothing is known.
        """
        if self._take is not None and special is None and type(text) is str and text:
            # The way of most chunks: more of what is being read, see flow.py.
            self._passing.append(text)
            if self._tail:
                text = self._tail + text
            if (taken := self._take(text)) is not None:
                said, used = taken
                self._tail = text[used:]
                if not said:
                    return []
                self._write(said)
                return [self._event(said)] if self._event else []
            self._tail, text = text, ""
        if not isinstance(text, str):
            raise TypeError(f"feed(): expected text, found {type(text).__name__}")
        if self._finished:
            raise ValueError("feed() after finish(): the output has ended")
        tail = self._leave_flow()
        self._transcript.add(text, special)
        if special is False:
            text = self._quoter.ordinary(text)
        elif self._quoter.held:
            text = self._quoter.release() + text
        machine = self._machine
        events = self._emit(machine.feed(tail + text))
        if special is None:
            self._start_flow(machine)
        return events

    def _start_flow(self, machine: Machine) -> None:
        """Let what the machine need not see go straight through, unless something has to be done with each event."""
        if machine.flow is None or not flows(machine) or self._cleaner.held or self._quoter.used:
            return
        self._tail = give_up_undecided(machine)
        self._passing = [self._tail]
        self._event = event_maker(machine)
        self._write = writer(machine, self._fold)
        self._take = machine.flow.take

    def _no_flow(self) -> None:
        self._take = None
        self._tail, self._passing = "", []

    def _account(self) -> None:
        """Tell the machine and the transcript what went straight through."""
        if len(self._passing) > 1:
            undecided, *chunks = self._passing
            text = "".join(chunks)
            self._transcript.add(text, None)
            text = undecided + text
            account(self._machine, text[: len(text) - len(self._tail)])
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
        """End the output; `reason` is the engine's finish reason: with "length" an unclosed call counts as truncated.

        `text` is the last of the output: given here, it costs less than fed. Returns the last events, and nothing when called again.
        """
        if text and (self._finished or type(text) is not str):
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
