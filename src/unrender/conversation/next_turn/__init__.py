"""Extend prompts with the text that a template writes after an answer, without rendering the complete conversation.

Input: a turn, its parsed answer, and new messages. Output: the next turn. Its prompt starts with the previous prompt and the answer.

Strategy: Render a short conversation that ends like the real one. This conversation consists of the system message, a question, an answer
of the same kind with the same calls, ids and names, and the new messages. The template's text after the short answer is also its text after
the real answer. Append the part that the answer doesn't contain yet. If the template's text depends on more messages, render the complete
conversation instead.

This module uses the following ones:

- `stubs` renders short conversations that end like the long one, with a short history for each possible position of the answer.
- `continuation` finds out which messages the template's text depends on, and whether the template rewrites earlier text.
- `endings` finds the end of the answer, removes text that the answer already contains, and splits the rest into pieces.

The most important rule: never guess. If the template's text isn't known for certain, raise `ExtendError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Generic, TypeVar

from unrender.conversation.adapt import shown_media, split_system
from unrender.conversation.markers import Guarded, MarkerPolicy, guarded, known_markers
from unrender.conversation.messages import RESULTS, Conversation, Said, SaidCall, conversation_of, read_conversation
from unrender.conversation.next_turn.continuation import Continuation, Needs, continuation_of
from unrender.conversation.next_turn.endings import (
    Answered,
    Ending,
    Extended,
    appended_pieces,
    check_shown,
    read_answer,
)
from unrender.conversation.next_turn.stubs import (
    QUESTION,
    THOUGHT,
    Position,
    Stub,
    WrittenTail,
    count_calls,
    histories,
    may_be,
    pasts,
    short_answer,
    system_in,
)
from unrender.conversation.pieces import RenderedConversation
from unrender.conversation.tools import read_request
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError, RequestError
from unrender.format import special_tokens
from unrender.machine import is_made_for
from unrender.messages import Media, Message, Request
from unrender.parser.prompt_tail import begun_by
from unrender.prompt import AUTHORS, Piece, PromptEncoder, SpecialTexts, flagged
from unrender.signatures import expected_one_of
from unrender.turn import Extending, ParsedAnswer, Turn

_NUMBER = re.compile(r"\d+$")
_UNNAMED = "unknown"
"""Name of a failed call whose name can't be parsed."""
T = TypeVar("T")
_NOTE = re.compile(r"messages\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Chain(Generic[T]):
    """The items of all turns of a conversation, stored as a linked list, so that each turn shares the items of earlier turns."""

    before: Chain[T] | None
    items: tuple[T, ...]

    def all(self) -> tuple[T, ...]:
        """Return the items of all turns, in order."""
        parts: list[tuple[T, ...]] = []
        turn: Chain[T] | None = self
        while turn is not None:
            parts.append(turn.items)
            turn = turn.before
        return tuple(item for part in reversed(parts) for item in part)

    def __reduce__(self) -> tuple[type[Chain[T]], tuple[None, tuple[T, ...]]]:
        """Serialize all turns as one, since recursive copying would fail for a chain of a thousand turns."""
        return Chain, (None, self.all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    """Creates the next turn from the template and the arguments of the first turn."""

    write: Callable[..., Writer]
    """Creates a `Writer`: `ChatTemplate._writing` with the call syntax of the first turn."""
    asked: Mapping[str, Any]
    """Arguments of the request, with the names of `ChatTemplate.prepare`'s parameters."""
    variables: Mapping[str, Any]
    markers: MarkerPolicy = "keep"
    """Treatment of the template's markers in new messages."""
    history: Chain[Said] | None = None
    """Earlier messages; None if the prompt was rendered elsewhere."""
    system: Conversation = ()
    """The system messages at the start of the conversation. Empty if they are unknown."""
    thought: bool = False
    """True if the prompt contains reasoning of an earlier answer."""
    remarked: frozenset[str] = frozenset()
    """Warnings of earlier turns. They aren't repeated."""
    extended: Extended | None = None
    """The appended text, or None if the turn's prompt doesn't extend an earlier prompt."""
    shown: RenderedConversation | None = None
    """The conversation of the first prompt; None if that prompt was rendered elsewhere."""
    later: Chain[tuple[str, Extended]] = Chain(None, ())
    """The answer and the appended text of each later turn."""
    answer: str = ""
    """Text of the next answer that the prompt already contains because a call is healed."""
    marked: bool = False
    """True if a text in the prompt contains a marker of the template, and `markers` is "encode"."""

    @property
    def appended(self) -> tuple[Piece, ...]:
        """The pieces that were appended after the previous prompt and its answer."""
        return () if self.extended is None else appended_pieces(self.extended)

    def pieces(self, turn: Turn) -> tuple[Piece, ...]:
        """Return the pieces of a turn's prompt. A prompt that was rendered elsewhere is a single piece with an unknown owner."""
        prompt = turn.prompt.removesuffix(self.answer)
        later = self.later.all()
        for answer, extended in reversed(later):
            prompt = prompt.removesuffix(extended.text).removesuffix(answer)
        pieces = [Piece(text=prompt, kind="unknown")] if self.shown is None else list(self.shown.pieces(prompt))
        for answer, extended in later:
            pieces.append(Piece(text=answer, kind="answer"))
            try:
                pieces += appended_pieces(extended)
            except ExtendError:
                pieces.append(Piece(text=extended.text, kind="unknown"))
        pieces.append(Piece(text=self.answer, kind="answer"))
        return tuple(piece for piece in pieces if piece.text)

    def parts(self, turn: Turn, special_roles: Collection[str] = AUTHORS) -> list[str]:
        """Return the prompt of a turn in parts that contain no marker from a message."""
        if not self.marked:
            return [turn.prompt]
        pieces = flagged(self.pieces(turn), special_roles)
        bodies = special_tokens(text for text, body in pieces if body)
        # Whether a marker is a special token depends on the engine's tokenizer.
        return SpecialTexts(bodies, self.known_markers).split(pieces)

    def ids(self, turn: Turn, encoder: PromptEncoder, special_roles: Collection[str]) -> list[int] | None:
        """Return the ids of a turn's prompt, as `Turn.encode` does. None if the prompt was rendered elsewhere."""
        if self.shown is None:
            return None
        later = (self.shown.of(extended.new) for _, extended in self.later.all())
        texts = (text for shown in (self.shown, *later) for text in shown.texts() if text.role not in special_roles)
        # Usually, no text holds a marker. Then the prompt isn't rendered again.
        if not encoder._may_find_tokens(texts, self.known_markers):
            return encoder.prompt([(turn.prompt, False)]).ids
        return encoder._with_markers(flagged(self.pieces(turn), special_roles), self.known_markers).ids

    def held(self) -> Iterator[Any]:
        """Yield the objects that hold the request and the conversation in memory. Several turns may share these objects."""
        yield from (self.asked.get("tools"), self.variables)
        yield from self.history.all() if self.history else ()
        yield from (part for answer, extended in self.later.all() for part in (answer, extended.rest))

    @property
    def known_markers(self) -> tuple[str, ...]:
        """The template's markers."""
        return () if self.shown is None else known_markers(self.shown.writer)

    def begun_with(self, text: str) -> Extender:
        """Return a copy for a prompt that also contains the start of the answer."""
        return replace(self, answer=self.answer + text)

    def begun(
        self, messages: Conversation, shown: RenderedConversation | None = None, marked: Sequence[str] = ()
    ) -> Extender:
        """Return a copy for a turn whose prompt consists of the given messages, which were rendered as `shown`."""
        system, _ = split_system(messages)
        thought = any(message.reasoning for message in messages)
        return replace(
            self,
            answer="",
            marked=self.markers == "encode" and bool(marked),
            history=Chain(None, messages),
            system=system,
            thought=thought,
            shown=shown,
            later=Chain(None, ()),
        )

    def resumed(self, messages: Sequence[Any]) -> Extender:
        """Return a copy for a later turn, whose prompt contains `messages`."""
        return self.begun(conversation_of(messages))

    def next(self, turn: Turn, answer: ParsedAnswer, messages: Any, how: Extending) -> Turn:
        """Return the turn that follows an answer. Raises `ExtendError` if the next prompt isn't known for certain, and `RequestError` for
        invalid messages.
        """
        writer, before, request, asked = self._writing(turn, how)
        facts = continuation_of(writer)
        said = read_answer(turn, answer, how.unfinished, tuple(facts.ends.values()))
        safe = self._read(messages, writer, request)
        given, offset = safe.rendered.messages, len(turn.known_ids)
        odd = _with_odd_ids(given, said, offset, foreign=answer.foreign_ids)
        new, calls, said = answering(given, said, offset)
        media = tuple(self._media(writer, new))
        short = short_answer(calls, thinks=bool(said.message.reasoning))
        stub = self._stub(turn, (before, writer), facts, said, (short, *new), how)
        made = stub.written(short, new)
        check_shown(stub, made, short, new)
        self._check_thoughts(made, short, facts, how, {message.role for message in new})
        extended = Ending(before, stub, made, said, short, turn.format, facts).extended(new)
        remarks = dict(self._remarks(facts, new, how))
        following = replace(
            self._after(said.message, calls, new, safe.marked),
            asked=asked,
            variables={**self.variables, **how.variables},
            remarked=self.remarked.union(remarks),
            extended=extended,
            later=Chain(self.later, ((self.answer + answer.text + answer.padding, extended),)),
        )
        return replace(
            turn,
            prompt=turn.prompt + answer.text + answer.padding + extended.text,
            request=request,
            format=writer.ended,
            prefill=begun_by(writer.format, made.text, lambda: made.writer.text(made.messages, asks=False)),
            is_continuation=False,
            tool_prompt=writer.injection,
            media=(*turn.media, *media),
            thinking=writer.kwargs.thinking,
            warnings=(*_added(before, writer), *self._notes(made, new, remarks), *safe.notes, *odd),
            marked=safe.marked,
            known_ids=(*turn.known_ids, *(call.id or "" for call in calls)),
            _source=following,
        )

    def _read(self, messages: Any, writer: Writer, request: Request) -> Guarded:
        """Return the new messages, with their markers treated as in the first turn."""
        new = read_conversation(messages, writer.template, as_text=writer.as_text)
        for i, message in enumerate(new):
            if message.role == "assistant":
                expected = "expected a message after the answer"
                raise ExtendError(f"messages[{i}].role: {expected}, found 'assistant'", "messages")
        return guarded(RenderedConversation(writer, new, request).of(new), self.markers)

    def _after(
        self, message: Message, calls: tuple[SaidCall, ...], new: Conversation, marked: Sequence[str]
    ) -> Extender:
        """Return a copy whose history also contains an answer and new messages."""
        answer = Said(role="assistant", content=message.content, reasoning=message.reasoning, calls=calls)
        return replace(
            self,
            answer="",
            history=self.history and Chain(self.history, (answer, *new)),
            thought=self.thought or bool(message.reasoning),
            marked=self.marked or (self.markers == "encode" and bool(marked)),
        )

    def _writing(self, turn: Turn, how: Extending) -> tuple[Writer, Writer, Request, Mapping[str, Any]]:
        """Return the writer of the next prompt and the writer of the current one. Also returns the new request and its arguments.

        Raises `ExtendError` if the new request would change the current prompt, or if the grammar is handwritten.
        """
        if turn.grammar is not None:
            raise ExtendError("with a handwritten grammar, the end of an answer isn't known", "unproved")
        asked = {**self.asked, **how.changes}
        offer, request = read_request(**asked)
        writer = self.write(offer, request, {**self.variables, **how.variables})
        # Share the writer of the last turn, since each turn's stub is kept for `pieces`.
        if self.extended is not None and self.extended.stub.writer == writer:
            writer = self.extended.stub.writer
        before = writer
        if how.changes or how.variables:
            first, _ = read_request(**self.asked)
            if "tools" in how.changes and first.key != offer.key:
                raise ExtendError("tools: the prompt shows other tools; render a new prompt", "tools")
            before = self.write(first, turn.request, self.variables)
            if before.injection != writer.injection:
                raise ExtendError("the prompt describes the tools for another request", "tools")
            if how.variables and not _alike(before, writer):
                raise ExtendError(f"{', '.join(how.variables)}: the start of the prompt would change", "state")
        return writer, before, request, asked

    def _check_thoughts(
        self, made: WrittenTail, answer: Said, facts: Continuation, how: Extending, roles: Collection[str]
    ) -> None:
        if how.thoughts == "all" or (how.thoughts == "tool_cycle" and "user" not in roles):
            return
        shown = made.text.removesuffix(made.tail)
        if (answer.reasoning and THOUGHT not in shown) or (self.thought and facts.drops_thoughts.intersection(roles)):
            raise ExtendError("the template leaves out reasoning that is in the prompt", "thoughts")

    def _stub(
        self,
        turn: Turn,
        writers: tuple[Writer, Writer],
        facts: Continuation,
        said: Answered,
        end: Conversation,
        how: Extending,
    ) -> Stub:
        """Return the start of a short conversation after which the template writes the same text as after the real one. Raises
        `ExtendError` if the text isn't certain.

        `writers` are the writers of the current prompt and of the next prompt.
        """
        before, writer = writers
        if not how.restate and facts.restates_tools:
            writer = writer.without(writer.capabilities.tools_variable)
        answer, *new = end
        system = self.system if how.restate else ()
        if how.restate and self.history is None and facts.needs_system & {message.role for message in new}:
            system = system_in(turn.prompt, before, turn.format)
        stubs = [replace(stub, writer=writer) for stub in self._stubs(turn, before, facts, said, system)]
        if not stubs or (len(stubs) > 1 and len({stub.written(answer, tuple(new)).tail for stub in stubs}) > 1):
            raise ExtendError("the template's text depends on earlier messages, which are unknown", "state")
        return stubs[0]

    def _stubs(
        self, turn: Turn, writer: Writer, facts: Continuation, said: Answered, system: Conversation
    ) -> Iterator[Stub]:
        """Yield the starts of conversations after which the template may write the same text as after the turn. Short conversations start
        with `system`.
        """
        if facts.needs in (Needs.NUMBER, Needs.HISTORY):
            known = self.history and [self.history.all()]
            read = histories(turn.prompt, writer, _past_call) if facts.needs is Needs.NUMBER else ()
            yield from (Stub(writer=writer, before=before) for before in known or read)
            return
        # For an empty answer, the position always matters, because the text after the answer depends on the end of the prompt.
        anywhere = facts.needs is Needs.ANSWER and said.text
        for past in pasts(_past_call)[:1] if anywhere else self._pasts(turn, writer):
            stub = Stub(writer=writer, before=(*system, *past))
            counts = facts.counts and bool(said.written_ids)
            yield self._counting(stub, system, past, said, turn) if counts else stub

    def _pasts(self, turn: Turn, writer: Writer) -> Iterator[Conversation]:
        """Yield a short history for each possible position of the answer."""
        shortest = {Position.behind(past): past for past in reversed(pasts(_past_call))}
        if self.history is not None:
            yield shortest[Position.behind(self.history.all(), thought=self.thought)]
        else:
            yield from (past for past in reversed(shortest.values()) if may_be(past, turn, writer))

    def _counting(self, stub: Stub, system: Conversation, past: Conversation, said: Answered, turn: Turn) -> Stub:
        """Return a stub whose calls have the same numbers as the answer's calls."""
        # If the id contains no number, the number of earlier calls is needed. A generated id may end in a digit that isn't a counter.
        number, start = _NUMBER.search(said.written_ids[0]), turn.format.tools.index_start
        if number is None and self.history is None:
            raise ExtendError("the template counts calls, and the number of earlier calls is unknown", "state")
        by = (int(number[0]) - start if number else len(turn.known_ids)) - count_calls(past)
        nearest = sorted(pasts(_past_call), key=lambda other: Position.behind(other) != Position.behind(past))
        later = next(other for other in nearest if count_calls(other) == count_calls(past) + 1)
        return replace(stub, later=(*system, *later), by=by)

    def _media(self, writer: Writer, new: Conversation) -> Iterator[Media]:
        _, media = shown_media(new, writer.template, writer.capabilities)
        offset = len(self.history.all()) + 1 if media and self.history is not None else 0
        return (replace(one, message=one.message + offset) for one in media)

    def _notes(self, made: WrittenTail, new: Conversation, remarks: Mapping[str, int]) -> Iterator[str]:
        first = len(made.messages) - len(new)
        for note in made.writer.notes[len(made.writer.kwargs.notes) :]:
            found = _NOTE.search(note)
            if found is None:
                yield note
            elif int(found[1]) >= first:
                yield _NOTE.sub(f"messages[{int(found[1]) - first}]", note, count=1)
        yield from (f"messages[{i}]: {remark}" for remark, i in remarks.items() if remark not in self.remarked)

    def _remarks(self, facts: Continuation, new: Conversation, how: Extending) -> Iterator[tuple[str, int]]:
        """Yield each difference between the prompt and a rendering of the complete conversation, with the index of the message that causes
        it.
        """
        first = {message.role: i for i, message in reversed([*enumerate(new)])}
        if self.thought and (dropping := facts.drops_thoughts & first.keys()):
            yield "the template would drop reasoning that is in the prompt", min(first[role] for role in dropping)
        if "user" in first and how.restate:
            if facts.restates_tools:
                yield "the template repeats the tools; they are now in the prompt twice", first["user"]
            if "user" in facts.needs_system and self.system:
                yield "the template repeats the system message; it is now in the prompt twice", first["user"]


def _past_call(number: int) -> SaidCall:
    return SaidCall(name="probe_tool", id=f"call{number:05}")


def _added(before: Writer, writer: Writer) -> list[str]:
    """Return the notes of a writer that an earlier one doesn't have."""
    return [note for note in writer.kwargs.notes if note not in before.kwargs.notes]


def _alike(first: Writer, second: Writer) -> bool:
    """Return whether two writers render conversations identically, apart from the generation prompt."""
    conversation = (QUESTION, short_answer(), QUESTION)
    texts = [
        [writer.text(messages, asks=False) for messages in ((QUESTION,), conversation)] for writer in (first, second)
    ]
    return texts[0] == texts[1] and None not in texts[0]


def answering(
    messages: Conversation, said: Answered, offset: int
) -> tuple[Conversation, tuple[SaidCall, ...], Answered]:
    """Match tool results with the answer's calls.

    Returns the messages and the calls, both with the final call ids. Failed calls without a result are left out, also from the answer.
    Results are matched by id, position, name or order. An id in the answer takes precedence over the id of the result. Raises `ExtendError`
    if there are more results than calls.
    """
    calls = said.calls
    waiting = [i for i, message in enumerate(messages) if message.role in RESULTS]
    if len(waiting) > len(calls):
        found = f"expected at most {len(calls)} results, one for each call, found {len(waiting)}"
        raise ExtendError(f"messages: {found}", "messages")

    answers: dict[int, int] = {}
    for by, i in product(("id", "position", "name", "order"), waiting):
        free = (k for k in range(len(calls)) if k not in answers.values() and _fits(by, said, k, messages[i], offset))
        if i not in answers and (k := next(free, None)) is not None:
            answers[i] = k
    given = {k: messages[i] for i, k in answers.items()}
    named: dict[int, SaidCall] = {}
    for k, call in enumerate(calls):
        if k in given or call.status == "complete":
            id, name = (given[k].answers, given[k].name) if k in given else (None, None)
            id = said.written_ids[k] or id or call.id
            named[k] = SaidCall(name=call.name or name or _UNNAMED, arguments=call.arguments_json, id=id)
    answered = {i: replace(messages[i], answers=named[k].id, name=named[k].name) for i, k in answers.items()}
    said = replace(said, written_ids=tuple(said.written_ids[k] for k in named))
    return tuple(answered.get(i, message) for i, message in enumerate(messages)), tuple(named.values()), said


def _fits(by: str, said: Answered, k: int, message: Said, offset: int) -> bool:
    """Return whether a tool result belongs to call `k` of the answer. `offset` is the number of earlier calls."""
    call, written, given = said.calls[k], said.written_ids[k], message.answers or ""
    match by:
        case "id":
            return given in (call.id, written or call.id)
        case "position":
            return not written and is_made_for(given, offset + k)
        case "name":
            return call.name == message.name
    return True


def _with_odd_ids(messages: Conversation, said: Answered, offset: int, *, foreign: bool) -> list[str]:
    """Return a note for each tool result whose id no call of the answer has. Raises `RequestError` unless ids may be `foreign`."""
    notes = []
    for i, message in enumerate(messages):
        ways = product(("id", "position"), range(len(said.calls)))
        odd = message.role in RESULTS and not any(_fits(by, said, k, message, offset) for by, k in ways)
        if odd and (id := message.answers):
            if not foreign:
                known, what = [call.id for call in said.calls], "the ids of the answer's calls, "
                raise RequestError(expected_one_of(f"messages[{i}].tool_call_id", known, id, what=what))
            where = f"messages[{i}].tool_call_id"
            notes.append(f"{where}: no call has the id {id!r:.60}; the result is matched by name or order")
    return notes
