"""Extends a prompt by the answer to it, and by what is said next.

Strategy: the template writes a short conversation that ends as the long one does: its system message, a question, an answer of
the same kind with the same calls, ids and names, and the new messages. What it writes behind the last word of that answer is what
it writes behind the last value of the real one. So much of it is appended as the answer does not hold already. Where what a
template writes depends on more, the whole conversation takes the place of the short one.

Rule: nothing is guessed. What a template is not known to write is an `ExtendError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unrender.conversation.adapt import Media, shown_media
from unrender.conversation.answered import Answered, read_answer
from unrender.conversation.continuation import Continuation, continuation_of
from unrender.conversation.messages import RESULTS, Conversation, Said, conversation_of
from unrender.conversation.pieces import Extended, appended_pieces
from unrender.conversation.preparation import Planned
from unrender.conversation.stubs import QUESTION, AnswerKind, Called, WrittenTail, behind, written
from unrender.conversation.tools import read_request
from unrender.conversation.transcript import Writer
from unrender.errors import ExtendError, TemplateError
from unrender.format import Format
from unrender.machine.ids import is_made_for
from unrender.messages.wire import Request, ToolCall
from unrender.parser.prompt_tail import begun_by
from unrender.turn import Extending, Piece, Turn

_NOTE = re.compile(r"messages\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The messages of a conversation, those of one turn behind those of the turns before it."""

    before: History | None
    messages: Conversation

    def all(self) -> Conversation:
        """Return the messages of all turns, in order."""
        parts: list[Conversation] = []
        turn: History | None = self
        while turn is not None:
            parts.append(turn.messages)
            turn = turn.before
        return tuple(message for part in reversed(parts) for message in part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    """Makes the turns after one; a `Source`."""

    write: Callable[..., tuple[Planned, Writer]]
    """`ChatTemplate.writing`."""
    asked: Mapping[str, Any]
    """The request, by the names that `ChatTemplate.prepare` has for it."""
    settings: Mapping[str, Any]
    """Documents and the call syntax to describe, by the names of `ChatTemplate.prepare`."""
    variables: Mapping[str, Any]
    history: History | None = None
    """None where the prompt was rendered elsewhere."""
    system: Conversation = ()
    """The messages of the system at the beginning of the conversation, as far as they are known."""
    thought: bool = False
    """The prompt holds a thought of an earlier answer, or may hold one."""
    extended: Extended | None = None
    """How the turn's prompt came to be, if it extends another."""

    @property
    def appended(self) -> tuple[Piece, ...]:
        """What the prompt has behind the last prompt and its answer."""
        return () if self.extended is None else appended_pieces(self.extended)

    def held(self) -> Iterator[Any]:
        """Yield what is held of the request and the conversation; what several turns hold is one object."""
        yield from (self.asked.get("tools"), self.variables)
        turn = self.history
        while turn is not None:
            yield turn.messages
            turn = turn.before
        if self.extended is not None:
            yield self.extended.rest

    def begun(self, messages: Conversation) -> Extender:
        """Return the same for a turn whose prompt shows these messages."""
        system = next((i for i, m in enumerate(messages) if m.role not in ("system", "developer")), len(messages))
        return replace(
            self,
            history=History(before=None, messages=messages),
            system=messages[:system],
            thought=any(m.reasoning for m in messages),
        )

    def next(self, turn: Turn, answer: str, messages: Any, how: Extending) -> Turn:
        """Return the turn after an answer. Raises `ExtendError` and `MessageError`."""
        if turn.grammar is not None:
            raise ExtendError("a grammar made by hand does not tell how a template ends answers", "unproved")
        said = read_answer(turn, answer, how.unfinished)
        planned, writer, request, asked = self._writing(turn, how)
        new, ids = answering(_checked(writer.read(messages)), said, len(turn.known_ids))
        facts = continuation_of(writer, planned.format)
        self._check_thoughts(said, new, facts, how)
        kind = _kind_of(said, ids)
        made = self._written(writer, facts, kind, new, how)
        lead, rest = lacking(made.tail, said, kind, turn.format, facts)
        known_ids = (*turn.known_ids, *(call.id for call in said.message.tool_calls))
        following = replace(
            self,
            asked=asked,
            variables={**self.variables, **how.variables},
            history=self.history
            and History(before=self.history, messages=(*conversation_of([said.message.to_openai()]), *new)),
            thought=self.thought or bool(said.message.reasoning),
            extended=_extended(made, lead, rest, _shared_end(rest, said, kind, facts), kind, new),
        )
        return replace(
            turn,
            prompt=turn.prompt + answer + lead + rest,
            request=request,
            format=planned.ended,
            begun=begun_by(planned.format, made.text, lambda: made.writer.text(made.messages, asks=False)),
            continued=False,
            injected=writer.injection,
            media=(*turn.media, *self._media(writer, new)),
            thinking=writer.heard.thinking,
            notes=tuple(self._notes(made, facts, new, how)),
            known_ids=known_ids,
            source=following,
        )

    def _writing(self, turn: Turn, how: Extending) -> tuple[Planned, Writer, Request, Mapping[str, Any]]:
        """Return what writes conversations for this request. Raises `ExtendError` for one that the prompt does not suit."""
        asked = {**self.asked, **how.changes}
        offer, request = read_request(**asked)
        planned, writer = self.write(offer, request, {**self.variables, **how.variables}, **self.settings)
        if how.changes or how.variables:
            first, _ = read_request(**self.asked)
            if "tools" in how.changes and first.key != offer.key:
                raise ExtendError("tools: the prompt shows others; a new prompt is needed", "tools")
            _, before = self.write(first, turn.request, self.variables, **self.settings)
            if before.injection != writer.injection:
                raise ExtendError("the prompt describes the tools for another request", "tools")
            if how.variables and not _alike(before, writer):
                raise ExtendError(f"{', '.join(how.variables)}: the prompt would begin otherwise", "state")
        return planned, writer, request, asked

    def _check_thoughts(self, said: Answered, new: Conversation, facts: Continuation, how: Extending) -> None:
        dropping = {message.role for message in new} & facts.drops_thoughts
        if how.thoughts == "tool_cycle":
            dropping &= {"user"}
        held = self.thought or bool(said.message.reasoning) or said.thinks
        if how.thoughts != "all" and dropping and held:
            raise ExtendError("the template leaves out thoughts that the prompt holds", "thoughts")

    def _written(
        self, writer: Writer, facts: Continuation, kind: AnswerKind, new: Conversation, how: Extending
    ) -> WrittenTail:
        answer = kind.message()
        before: Conversation = (*self.system, QUESTION)
        if self.history is None and how.restate and facts.needs_system & {message.role for message in new}:
            raise ExtendError("the template writes the system message again, and it is not known", "state")
        if facts.needs_history:
            if self.history is None:
                raise ExtendError(f"what the template writes depends on {facts.needs_history[0]}", "unproved")
            before = self.history.all()
        if not how.restate:
            before, writer = (QUESTION,), _without_tools(writer) if facts.restates_tools else writer
        try:
            made = written(writer, (*before, answer, *new))
        except TemplateError as error:
            raise ExtendError(f"the template refuses what is said: {error}", "messages") from error
        if made is None:
            raise ExtendError("the template does not write an answer once, as it was given", "unproved")
        return made

    def _media(self, writer: Writer, new: Conversation) -> Iterator[Media]:
        _, media = shown_media(new, writer.template, writer.capabilities)
        offset = 0 if self.history is None else len(self.history.all()) + 1
        return (replace(one, message=one.message + offset) for one in media)

    def _notes(self, made: WrittenTail, facts: Continuation, new: Conversation, how: Extending) -> Iterator[str]:
        first = len(made.messages) - len(new)
        for note in made.writer.notes[len(made.writer.heard.notes) :]:
            found = _NOTE.search(note)
            if found is None:
                yield note
            elif int(found[1]) >= first:
                yield _NOTE.sub(f"messages[{int(found[1]) - first}]", note, count=1)
        roles = {message.role for message in new}
        if roles & facts.drops_thoughts and self.thought:
            yield "the template would leave out thoughts that the prompt holds"
        if "user" in roles and how.restate:
            if facts.restates_tools:
                yield "the template writes the tools again before the last user's message; the prompt now holds them twice"
            if facts.needs_system & {"user"} and self.system:
                yield "the template writes the system message again; the prompt now holds it twice"


def _extended(made: WrittenTail, lead: str, rest: str, end: str, kind: AnswerKind, new: Conversation) -> Extended:
    before, cut = tuple(made.messages[: -len(new) - 1]), len(made.tail) - len(rest)
    return Extended(writer=made.writer, kind=kind, lead=lead, rest=rest, cut=cut, end=end, before=before, new=new)


def _kind_of(said: Answered, ids: Mapping[str, str]) -> AnswerKind:
    calls = tuple(Called(name=call.name, id=ids.get(call.id, call.id)) for call in said.message.tool_calls)
    return AnswerKind(thinks=bool(said.message.reasoning), calls=calls)


def _checked(new: Conversation) -> Conversation:
    for i, message in enumerate(new):
        if message.role == "assistant":
            expected = "expected what is said after the answer"
            raise ExtendError(f"messages[{i}].role: {expected}, found 'assistant'", "messages")
    return new


def _alike(first: Writer, second: Writer) -> bool:
    """Return whether two writers write a conversation alike but for what asks for the next answer."""
    conversation = (QUESTION, AnswerKind().message(), QUESTION)
    texts = [
        [writer.text(messages, asks=False) for messages in ((QUESTION,), conversation)] for writer in (first, second)
    ]
    return texts[0] == texts[1] and None not in texts[0]


def _without_tools(writer: Writer) -> Writer:
    context = {
        name: value for name, value in writer.heard.context.items() if name != writer.capabilities.tools_variable
    }
    return replace(writer, heard=replace(writer.heard, context=context))


def answering(messages: Conversation, said: Answered, offset: int) -> tuple[Conversation, Mapping[str, str]]:
    """Return the messages, each result under the id of the call that it answers: found by id, by name, or in order.

    With them come other ids of calls: those that the results have, where the answer itself holds none. Raises `ExtendError` for more results than calls.
    """
    calls = list(said.message.tool_calls)
    waiting = [i for i, message in enumerate(messages) if message.role in RESULTS]
    if len(waiting) > len(calls):
        raise ExtendError(
            f"messages: expected at most {len(calls)} results, one for each call, found {len(waiting)}", "messages"
        )
    found: dict[int, ToolCall] = {}

    def fits(by: str, call: ToolCall, message: Said) -> bool:
        given = message.answers or ""
        match by:
            case "id":
                return call.id == given
            case "position":
                return call.id in said.made_ids and is_made_for(given, offset + said.message.tool_calls.index(call))
            case "name":
                return call.name == message.name
        return True

    for by in ("id", "position", "name", "order"):
        for i in waiting:
            call = next((call for call in calls if fits(by, call, messages[i])), None) if i not in found else None
            if call is not None:
                calls.remove(call)
                found[i] = call
    # An id that the answer does not hold is known to the caller alone.
    ids = {call.id: messages[i].answers or call.id for i, call in found.items() if call.id in said.made_ids}
    answered = {i: replace(messages[i], answers=ids.get(call.id, call.id), name=call.name) for i, call in found.items()}
    return tuple(answered.get(i, message) for i, message in enumerate(messages)), ids


def lacking(tail: str, said: Answered, kind: AnswerKind, format: Format, facts: Continuation) -> tuple[str, str]:
    """Return what closes an answer, and what comes after that, of what a template writes behind its last word."""
    lead = format.reasoning.end if said.thinks else ""
    rest = _behind_calls(tail, said, kind, format) if kind.calls else _behind_content(tail, said, format)
    if said.sampled:
        rest = _behind_end(rest, said, kind, facts)
    space = said.space
    whole = lead + rest
    # White space at the end of an answer is not written once more: `</call>\n` before `\n<end>`.
    while space and not whole.startswith(space):
        space = space[1:]
    if lead:
        return lead[len(space) :], rest
    return "", rest[len(space) :]


def _behind_calls(tail: str, said: Answered, kind: AnswerKind, format: Format) -> str:
    call_end, section_end = format.tools.call_end.strip(), format.tools.section_end.strip()
    closers = kind.closers(format).rstrip().removesuffix(section_end)
    at = behind(tail, closers)
    if at is None and call_end in tail and (call_end or section_end in tail):
        # The template writes more before the end of a call than its format knows, e.g. an id.
        at = tail.index(call_end or section_end) + len(call_end)
    if at is None:
        raise ExtendError("the template ends calls otherwise than its format says", "unproved")
    goes_on = (
        call_end
        and section_end
        and not said.sampled
        and said.text.endswith(call_end)
        and not said.text.endswith(section_end)
    )
    # A first call in a template that forgets to end the section may lack its end.
    return tail[at:] if goes_on else tail[at + (behind(tail[at:], section_end) or 0) :]


def _behind_content(tail: str, said: Answered, format: Format) -> str:
    end = format.content.end.strip()
    is_open = said.message.content.strip() and not said.sampled and not said.text.endswith(end)
    at = None if not end or is_open else behind(tail, end)
    return tail if at is None else tail[at:]


def _behind_end(rest: str, said: Answered, kind: AnswerKind, facts: Continuation) -> str:
    bare = rest.lstrip()
    if bare.startswith(said.sampled):
        return bare[len(said.sampled) :]
    # Another end than the template writes before a message, as `<|return|>` for `<|end|>`, stands for it.
    end = _end_of(kind, facts).strip()
    return bare[len(end) :] if end and bare.startswith(end) else rest


def _end_of(kind: AnswerKind, facts: Continuation) -> str:
    return facts.ends.get("two calls" if len(kind.calls) > 1 else "call" if kind.calls else "content", "")


def _shared_end(rest: str, said: Answered, kind: AnswerKind, facts: Continuation) -> str:
    """Return what of the end of the answer `rest` begins with: white space alone, where the end itself was sampled."""
    end = _end_of(kind, facts)
    if said.sampled:
        end = end[len(end.rstrip()) :]
    return next((end[i:] for i in range(len(end)) if rest.startswith(end[i:])), "")
